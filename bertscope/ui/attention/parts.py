"""Which part of the maps is looked at: pieces or words, a direction, a window; and how two checkpoints
are put side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import theme
from bertscope.ui.attention import Look, reading
from bertscope.ui.predict.asked import pick
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown

#: Texts of more pieces than this can be looked at in a window.
LONG = 48
COMPARE = ("beside", "difference")


@dataclass(frozen=True)
class Side:
    """One picture's worth: maps, the places that look and those that are looked at, whose they are.

    ``signed`` is true of a difference (weights from -1 to 1).
    """

    choice: Choice
    maps: Any
    rows: list[int]
    columns: list[int]
    key: str
    signed: bool = False

    @property
    def names(self) -> tuple[list[str], list[str]]:
        tokens = self.maps.tokens
        return [tokens[i] for i in self.rows], [tokens[j] for j in self.columns]

    @property
    def scale(self) -> list[list]:
        return theme.diverging() if self.signed else theme.sequential()

    def has(self, head: tuple[int, int]) -> bool:
        layers, heads = self.maps.weights.shape[:2]
        return head[0] < layers and head[1] < heads

    def weights(self, head: tuple[int, int]):
        from bertscope.analysis.attention import part

        return part(self.maps, head, self.rows, self.columns)


def ask(look: Look) -> tuple[list[Side], tuple[int, int]]:
    """Draw the controls; what is to be drawn, one side or two, and the head (layer and head from 0)."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        slot = st.container(width=130)
        direction = "all"
        if look.pair:
            from bertscope.analysis.attention import DIRECTIONS

            direction = st.segmented_control("Between the texts", list(DIRECTIONS), default="all",
                                             required=True, key="direction", bind="query-params")
        words = st.toggle("Whole words", key="by_words", bind="query-params",
                          help="Join the pieces of a word: weights to them are summed, weights "
                               "from them averaged (Clark et al. 2019, section 4.1).")
        hide = st.toggle("Hide [CLS] and [SEP]", key="hide", bind="query-params",
                         help="Leaves their rows and columns out. The other weights stay as they are, so "
                              "that rows no longer sum to 1.")
        ours, theirs = reading.both(look, words)
        compare = theirs is not None and st.segmented_control(
            "Second checkpoint", COMPARE, default=COMPARE[0], key="compare_as", required=True,
            bind="query-params")
    with slot:
        head = which_head(ours)
    start, end = window(len(ours.tokens))
    sides = [side(look.chosen, ours, direction, hide, start, end, "main")]
    if compare == COMPARE[0]:
        sides += beside(look, theirs, direction, hide, start, end)
    elif compare:
        sides = [against(look, sides[0], theirs)]
    return sides, head


def which_head(maps) -> tuple[int, int]:
    layers, heads = maps.weights.shape[:2]
    names = [f"{layer}-{head}" for layer in range(1, layers + 1) for head in range(1, heads + 1)]
    return divmod(names.index(pick("Head (layer-head)", names, "head")), heads)


def open_head(number: int, heads: int) -> None:
    """For callbacks: choose head ``number`` (from 0, layer by layer)."""
    st.session_state["head"] = f"{number // heads + 1}-{number % heads + 1}"


def window(length: int) -> tuple[int, int]:
    """The pieces that are shown: all, unless the text is long and a part was chosen."""
    if length <= LONG:
        return 0, length
    kept = st.session_state.get("window")
    if kept is not None and not (isinstance(kept, (tuple, list)) and kept[1] < length):
        del st.session_state["window"]
    first, last = st.slider("From which piece to which", 0, length - 1, (0, length - 1), key="window",
                            bind="query-params", width=520)
    return first, last + 1


def side(choice: Choice, maps, direction: str, hide: bool, start: int, end: int, key: str) -> Side:
    from bertscope.analysis.attention import places

    return Side(choice, maps, *places(maps, direction, hide, start, end), key)


def beside(look: Look, theirs, *how) -> list[Side]:
    try:
        return [side(look.other, theirs, *how, "other")]
    except BertScopeError as error:
        st.caption(f"{markdown(look.other.label)}: {markdown(error)}")
        return []


def against(look: Look, ours: Side, theirs) -> Side:
    """The difference, or the first checkpoint alone where there is none."""
    from bertscope.analysis.attention import difference

    try:
        found = difference(ours.maps, theirs)
    except BertScopeError as error:
        st.caption(markdown(error))
        return ours
    st.caption(f"Blue: more in {markdown(look.chosen.label)}. Orange: more in "
               f"{markdown(look.other.label)}.")
    return Side(look.chosen, found, ours.rows, ours.columns, "difference", signed=True)
