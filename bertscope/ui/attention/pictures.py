"""One head drawn, and what can be taken along of it: the picture as a page, its weights as a table."""

from __future__ import annotations

import streamlit as st

from bertscope.ui.attention.parts import Side
from bertscope.ui.components import head_map
from bertscope.ui.frame import download
from bertscope.ui.text import markdown


def name_of(side: Side, head: tuple[int, int]) -> str:
    return f"{side.choice.stem}-{'difference-' * side.signed}head-{head[0] + 1}-{head[1] + 1}"


def legend(side: Side) -> tuple[str, str]:
    return ("less", "more") if side.signed else ("weight", "")


def as_map(side: Side, head: tuple[int, int], largest: int = 34) -> bytes:
    """The message of a head's map."""
    return head_map.data(side.weights(head), *side.names, side.scale, name_of(side, head), side.signed,
                         head=head, legend=legend(side), largest=largest)


def title(side: Side, head: tuple[int, int], several: bool) -> None:
    if several or side.signed:
        st.markdown(f"**{markdown(side.choice.label)}**" if not side.signed else
                    f"**Head {head[0] + 1}-{head[1] + 1}**, the difference")
    else:
        st.markdown(f"**Head {head[0] + 1}-{head[1] + 1}**")


def lacks(side: Side, head: tuple[int, int]) -> bool:
    """Whether there is no such head on this side, which is then said."""
    if side.has(head):
        return False
    st.caption(f"{markdown(side.choice.label)} has no head {head[0] + 1}-{head[1] + 1}.")
    return True


def downloads(side: Side, head: tuple[int, int], page, key: str) -> None:
    """The weights (CSV) and the picture (``page()`` -> bytes of an HTML file), made when asked for."""
    name = name_of(side, head)
    download(f"Head {head[0] + 1}-{head[1] + 1} (CSV)", lambda: table(side, head), f"{name}.csv",
             f"csv_{key}")
    download("Picture (HTML)", page, f"{name}.html", f"html_{key}",
             help="One file with everything in it; works without a network.")


def table(side: Side, head: tuple[int, int]) -> bytes:
    import pandas as pd

    rows, columns = side.rows, side.columns
    tokens = side.maps.tokens
    return pd.DataFrame({
        "from": [i for i in rows for _ in columns], "from_piece": [tokens[i] for i in rows for _ in columns],
        "to": columns * len(rows), "to_piece": [tokens[j] for j in columns] * len(rows),
        "weight": side.weights(head).ravel()}).to_csv(index=False).encode()
