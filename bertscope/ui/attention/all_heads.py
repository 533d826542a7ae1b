"""All heads at a glance, and the one that was clicked large beside them."""

from __future__ import annotations

import streamlit as st

from bertscope.ui.attention import Look, parts, pictures
from bertscope.ui.attention.parts import Side
from bertscope.ui.components import head_map, heads
from bertscope.ui.frame import download
from bertscope.ui.text import markdown

EXPLANATION = r"""
Head $a$ of layer $l$ gives piece $i$ a distribution over all pieces $j$, and the head's output is
the mean of the value vectors under it:

$$
\alpha_{ij} = \operatorname{softmax}_j\left(\frac{q_i \cdot k_j}{\sqrt{d}}\right)
$$

A row is the piece that looks, a column the piece that is looked at; every row sums to 1. A BERT looks
both ways: there are weights above and below the diagonal. Heads are written layer-head, from 1
(*head 2-1*). All maps, small and large and of both checkpoints, have the same colours for the same
weight, by the square root of it, so that small weights can be seen.

Of a long text the small maps have fewer pixels than there are pieces. A pixel then stands for some
neighbouring pieces: what they look at is averaged, what is looked at is summed, as for the pieces of a
word (Clark et al. 2019, section 4.1), so that rows still sum to 1. The open head is always exact.

A weight says where a head *reads*, not how much that matters for the result (Jain and Wallace 2019;
Kobayashi et al. 2020): see *Does it matter?* and *Flow*.

Vaswani et al. 2017, section 3.2.1.
"""


def show(look: Look) -> None:
    sides, head = parts.ask(look)
    if len(sides) == 1:
        with st.container(key="beside_head"):
            left, right = st.columns([3, 2] if wide(sides[0]) else 2)
        with left:
            grid(sides[0])
        with right:
            one(sides[0], head, False)
    else:
        with st.container(key="beside_heads"):
            columns = st.columns(len(sides))
        for column, side in zip(columns, sides):
            with column:
                st.markdown(f"**{markdown(side.choice.label)}**")
                grid(side)
                one(side, head, True)
    st.caption("A row of maps is a layer, a column a head. Point at a map for its weights; click it, or "
               "use the arrow keys, to open it.")
    with st.container(horizontal=True):
        pictures.downloads(sides[0], head,
                           lambda: head_map.as_page(pictures.as_map(sides[0], head),
                                                    f"Head {head[0] + 1}-{head[1] + 1}"), "open")
        download("All heads (HTML)", lambda: heads.as_page(
            small_maps(sides[0]), f"Attention of {sides[0].choice.label}"),
            f"{sides[0].choice.stem}-heads.html", "heads_html",
            help="The small maps, with values by the mouse; works without a network.")


def wide(side: Side) -> bool:
    return side.maps.weights.shape[1] > 4


def grid(side: Side) -> None:
    """The small maps; a click opens a head."""
    key, count = f"grid_{side.key}", side.maps.weights.shape[1]
    heads.head_grid(small_maps(side), key, lambda: take_click(key, count))


def small_maps(side: Side) -> bytes:
    """The message of all the small maps."""
    from bertscope.analysis.attention_pictures import quantise, side as pixels, thumbnails

    weights = side.maps.weights
    layers, count = weights.shape[:2]
    rows, columns = (pixels(len(places), layers * count) for places in (side.rows, side.columns))
    small = thumbnails(cut(weights, side.rows, side.columns), rows, columns)
    return heads.data(quantise(small, side.signed), *side.names, side.scale,
                      f"{side.choice.stem}-{'difference-' * side.signed}heads", side.signed,
                      230 if count <= 4 else 150, pictures.legend(side))


def cut(weights, rows: list[int], columns: list[int]):
    """All heads' weights between some places; without a copy where these are all."""
    length = weights.shape[-1]
    if len(rows) == len(columns) == length:
        return weights
    return weights[:, :, rows][..., columns]


def take_click(key: str, count: int) -> None:
    number = heads.clicked(key)
    if number is not None:
        parts.open_head(number, count)


def one(side: Side, head: tuple[int, int], several: bool) -> None:
    if pictures.lacks(side, head):
        return
    if not several:
        pictures.title(side, head, several)
    head_map.head_map(pictures.as_map(side, head), f"map_{side.key}")
