"""All attention heads at a glance: one canvas, a map per head, hover for values, click to choose.

A map's pixel (row, column) is the weight from piece *row* to piece *column*, or from some pieces to some
others where there are more pieces than pixels. Which head is open is told by the picture of that head
(``head_map``, ``arcs``), by an event in the page: a click then need not send all the maps again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from bertscope.ui.components.packed import pack, page, script, source

_BODY = ('<div class="picture grid"><canvas tabindex="0" role="img" aria-label="a map per attention '
         'head; arrow keys choose one"></canvas><div class="tip"></div>'
         '<div class="foot"><div class="legend"></div><div class="save"></div></div></div>')
_grid = st.components.v2.component(
    "bertscope_heads", css=source("drawing.css") + ".grid canvas { cursor: pointer; }", html=_BODY,
    js=script("heads.js") + "\nexport default show;")


def data(levels, rows: Sequence[str], columns: Sequence[str], scale: list[list], name: str,
         signed: bool = False, largest: int = 170, legend: tuple[str, str] = ("", "")) -> bytes:
    """The picture's message.

    Args:
        levels: uint8 [L, A, R, C] of ``attention_pictures.quantise``.
        rows: the pieces that look, as many as R or more; columns: those that are looked at.
        scale: ``[[position, "#rrggbb"], ...]`` from 0 to 1.
        name: of saved files, without an ending.
        largest: side of a map in pixels, at most; maps shrink to the width there is.
        legend: words before and after the scale.
    """
    count, heads, height, width = levels.shape
    return pack({"layers": count, "heads": heads, "height": height, "width": width, "rows": list(rows),
                 "columns": list(columns), "scale": scale, "signed": signed, "largest": largest,
                 "name": name, "legend": legend}, levels.tobytes())


def head_grid(message: bytes, key: str, on_change: Callable[[], None]) -> None:
    """Draw a message of :func:`data`; after a click ``on_change`` is called, and ``clicked(key)`` gives
    it the head's number, layer · heads + head (both from 0)."""
    _grid(key=key, data=message, on_head_change=on_change)


def as_page(message: bytes, title: str) -> bytes:
    """The same as one HTML file that works offline."""
    return page("heads.js", _BODY, message, title)


def clicked(key: str) -> int | None:
    head = (st.session_state.get(key) or {}).get("head")
    return head if isinstance(head, int) else None
