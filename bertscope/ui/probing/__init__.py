"""The views of the Probing page, a module each with ``show(look)`` and an ``EXPLANATION``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from bertscope.ui.selection import Choice


@dataclass(frozen=True)
class Look:
    """What a view is given: the checkpoint, opened; the second one, which is not; the annotated
    data (``sources.Source``) and what they offer; and how it is to be asked (``settings.Asked``)."""

    chosen: Choice
    other: Choice | None
    model: Any
    source: Any
    offers: list
    asked: Any

    @property
    def sides(self) -> list[tuple[Choice, str]]:
        """(choice, meaning of its colour) of one or two checkpoints."""
        return [(self.chosen, "main")] + ([(self.other, "other")] if self.other else [])

    def title(self, task: str) -> str:
        """A task's name for people."""
        return next((offer.title for offer in self.offers if offer.name == task), task)


#: Widgets whose values outlive a look at another view.
KEPT = ("task", "tasks", "probe_kind", "probe_size", "probe_seeds", "word_pooling",
        "sentence_pooling", "hide_word", "controls", "types_apart", "whole_scale", "probe_layer",
        "probe_live", "probe_value", "probe_steps", "order", "wrong_label", "tree_number", "tree_size",
        "tree_nonce", "tree_random", "tree_measure", "erase_method", "erase_size")


def keep_state() -> None:
    """Streamlit forgets a widget that one run of the script does not draw."""
    for key in KEPT:
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]
