"""The views of the Attention page, a module each with one function ``show(look)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from bertscope.ui.selection import Choice


@dataclass(frozen=True)
class Look:
    """What a view is given: the checkpoint, opened, the second one (not opened yet), and the text.

    ``encoded`` is None for views that need no text; ``pair`` is None for a single text.
    """

    chosen: Choice
    other: Choice | None
    model: Any
    text: str = ""
    pair: str | None = None
    encoded: Any = None


#: Widgets whose values outlive a look at another view.
KEPT = ("text", "pair", "head", "by_words", "hide", "direction", "window", "compare_as", "picture", "least",
        "docs", "texts", "sampled", "relation", "gold_from", "gold_size", "gold",
        "arc_direction", "statistic", "flow", "flow_layer", "flow_head", "flow_piece", "flow_from",
        "measure", "prune")


def keep_state() -> None:
    """Streamlit forgets a widget that one run of the script does not draw."""
    for key in KEPT:
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]
