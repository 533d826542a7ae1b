"""The views of the Masking page, a module each with one function ``show(look)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from bertscope.ui.selection import Choice


@dataclass(frozen=True)
class Look:
    """What a view is given: the checkpoint, opened, and the second one, which is not opened yet."""

    chosen: Choice
    other: Choice | None
    model: Any


def runs_only(look: Look) -> bool:
    """Whether the checkpoint is of a run, whose log a view is about; else a sentence says so."""
    if look.chosen.run is None:
        st.info("What a model was fed is known of BertScope's own runs only. Choose a run in the "
                "sidebar.", icon=":material/info:")
    return look.chosen.run is not None
