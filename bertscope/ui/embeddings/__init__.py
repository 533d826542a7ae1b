"""The views of the Embeddings page, a module each with one function ``show(look)``."""

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

    @property
    def sides(self) -> list[tuple[Choice, str]]:
        """(choice, meaning of its colour) of one or two checkpoints."""
        return [(self.chosen, "main")] + ([(self.other, "other")] if self.other else [])


#: Widgets of the views whose values outlive a look at another view.
KEPT = ("pasted", "texts_limit", "layer", "pooling", "word", "piece", "method", "axes", "colour",
        "search", "keep", "along", "equal", "trails", "target", "measure", "values", "of_piece")


def keep_state() -> None:
    """Streamlit forgets a widget that one run of the script does not draw."""
    for key in KEPT:
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]
