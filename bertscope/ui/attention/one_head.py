"""One head: arcs between the pieces, several of them summed, or its map."""

from __future__ import annotations

import streamlit as st

from bertscope.ui.attention import Look, parts, pictures
from bertscope.ui.attention.parts import Side
from bertscope.ui.components import arcs, head_map
from bertscope.ui.text import markdown

PICTURES = ("columns", "line", "map")
#: Pieces that can be selected at once.
MOST_SELECTED = 60

EXPLANATION = r"""
An arc goes from a piece that looks to a piece that is looked at; its colour and width are the weight
$\alpha_{ij}$, by its square root, the same in every picture of this page. In columns every piece stands
on both sides, since a BERT looks both ways. Along the line, arcs above it look to the right, arcs below it
to the left, and a ring is a piece that looks at itself.

With several pieces $S$ selected on the side that looks, the numbers on the other side are
$\sum_{i \in S} \alpha_{ij}$, what these pieces look at together: at most as many as are selected. With
pieces selected on the side that is looked at, the numbers on the left are $\sum_{j \in S} \alpha_{ij}$, the
share of each piece's attention that goes to them. Weights below the threshold are not drawn, but counted
in these sums; hidden pieces are not.

After bertviz's head view (Vig 2019). Words: sums to their pieces, means from them (Clark et al. 2019,
section 4.1). What is drawn is where a head *reads*; whether that matters is another question.
"""


def show(look: Look) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        how = st.segmented_control("Picture", PICTURES, default=PICTURES[0], key="picture", required=True,
                                   bind="query-params",
                                   help="Arcs from column to column, arcs along the text, or a map.")
        least = 0.0 if how == "map" else st.slider(
            "Draw weights of at least", 0.0, 1.0, 0.05, 0.01, key="least", bind="query-params", width=260)
    sides, head = parts.ask(look)
    chosen = selection(sides[0])
    wanted = [side for side in sides if not pictures.lacks(side, head)]
    columns = [st.container()] * len(wanted)
    if len(wanted) > 1 and how != "line":
        with st.container(key="beside_one"):
            columns = st.columns(len(wanted))
    for column, side in zip(columns, wanted):
        with column:
            pictures.title(side, head, len(wanted) > 1)
            if how == "map":
                head_map.head_map(pictures.as_map(side, head), f"map_{side.key}")
            else:
                draw(side, sides[0], head, least, how == "line", chosen)
    if how != "map":
        below(sides[0], head, chosen, how == "line")
    with st.container(horizontal=True):
        title = f"Head {head[0] + 1}-{head[1] + 1} of {sides[0].choice.label}"
        if sides[0].has(head):
            pictures.downloads(
                sides[0], head,
                (lambda: head_map.as_page(pictures.as_map(sides[0], head), title)) if how == "map" else
                (lambda: arcs.as_page(message(sides[0], head, least, how == "line", chosen), title)),
                "one")


def draw(side: Side, first: Side, head, least: float, line: bool, chosen) -> None:
    mine = chosen if side.maps.tokens == first.maps.tokens else ([], [])
    key = f"arcs_{side.key}"
    arcs.arcs(message(side, head, least, line, mine), key,
              on_change=lambda: select(side.maps.tokens, *arcs.clicked(key)))


def message(side: Side, head, least: float, line: bool, chosen) -> bytes:
    return arcs.data(side.weights(head), side.maps.tokens, side.rows, side.columns, side.scale,
                     pictures.name_of(side, head), least, line, chosen, side.signed, head,
                     pictures.legend(side))


# -- selected pieces: in the session, and in the address as &from=3,5&to=2 -----------------------------


def selection(side: Side) -> tuple[list[int], list[int]]:
    """The places selected on the side that looks and on the side that is looked at.

    They belong to one row of pieces: of another text, nothing is selected. At the first visit the
    address decides.
    """
    tokens = tuple(side.maps.tokens)
    kept = st.session_state.get("_picked")
    if kept is None:
        kept = (tokens, *(_parse(st.query_params.get(name, "")) for name in ("from", "to")))
    elif kept[0] != tokens:
        kept = (tokens, [], [])
    places = [sorted(set(picked) & set(there))[:MOST_SELECTED]
              for picked, there in zip(kept[1:], (side.rows, side.columns))]
    st.session_state["_picked"] = (tokens, *kept[1:])
    for name, picked in zip(("from", "to"), places):
        value = ",".join(map(str, picked))
        if value and st.query_params.get(name) != value:
            st.query_params[name] = value
        elif not value and name in st.query_params:
            del st.query_params[name]
    return places[0], places[1]


def select(tokens: list[str], looking: list[int], looked_at: list[int]) -> None:
    """A callback: exactly these places."""
    st.session_state["_picked"] = (tuple(tokens), looking, looked_at)


def _parse(text: str) -> list[int]:
    return [int(part) for part in text[:400].split(",") if part.isascii() and part.isdigit()
            and len(part) < 6]


def below(side: Side, head, chosen, line: bool) -> None:
    """What is selected and what it looks at, in words."""
    if not side.has(head):
        return
    if not any(chosen):
        st.caption("Point at a piece to see its own arcs; click pieces to keep them, and their weights are "
                   "summed." + (" Shift and a click: what looks at the piece." if line else ""))
        return
    for places, looked_at, verb in ((chosen[0], False, "look at"), (chosen[1], True, "are looked at by")):
        if places:
            st.markdown(sentence(side, head, places, looked_at, verb))
    st.button("Select nothing", on_click=select, args=(side.maps.tokens, [], []),
              icon=":material/deselect:", type="tertiary")


def sentence(side: Side, head, places: list[int], looked_at: bool, verb: str) -> str:
    """``**the + dog** look at sat 0.91, on 0.40 …``, as Markdown."""
    from bertscope.analysis.attention import summed

    own, names = (side.columns, side.names[0]) if looked_at else (side.rows, side.names[1])
    sums = summed(side.weights(head), [own.index(i) for i in places], looked_at)
    order = abs(sums).argsort()[::-1][:6]
    tokens = side.maps.tokens
    who = " + ".join(f"**{markdown(tokens[i])}**" for i in places[:8]) + (" …" if len(places) > 8 else "")
    if len(places) == 1:
        verb = {"look at": "looks at", "are looked at by": "is looked at by"}[verb]
    return f"{who} {verb} " + ", ".join(f"{markdown(names[k])} :gray[{sums[k]:.2f}]" for k in order)
