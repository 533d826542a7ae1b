"""Weights between pieces as a map with the pieces on both axes: exact values on hover and by keyboard,
saved as SVG, PNG, or a page of its own."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from bertscope.ui.components.packed import pack, page, script, source

_BODY = ('<div class="picture map"><canvas tabindex="0" role="img" aria-label="weights between pieces; '
         'arrow keys read them"></canvas><div class="tip"></div><div class="foot">'
         '<div class="legend"></div><div class="save"></div></div></div>')
_map = st.components.v2.component(
    "bertscope_head_map", css=source("drawing.css") + ".map canvas { cursor: crosshair; }",
    js=script("head_map.js") + "\nexport default show;", html=_BODY)


def data(weights, rows: Sequence[str], columns: Sequence[str], scale: list[list], name: str,
         signed: bool = False, most: float = 1.0, head: tuple[int, int] | None = None,
         legend: tuple[str, str] = ("", ""), largest: int = 34) -> bytes:
    """The picture's message.

    Args:
        weights: float [len(rows), len(columns)].
        name: of saved files, without an ending.
        most: the weight of the strongest colour; the same for maps that are compared.
        head: layer and head from 0, for the grid of all heads to mark.
        legend: words before and after the scale. largest: side of a cell in pixels, at most.
    """
    import numpy as np

    return pack({"rows": list(rows), "columns": list(columns), "scale": scale, "signed": signed,
                 "most": most, "name": name, "head": head and f"{head[0]}-{head[1]}",
                 "legend": legend, "largest": largest}, np.ascontiguousarray(weights, "<f4").tobytes())


def head_map(message: bytes, key: str) -> None:
    """Draw a message of :func:`data`."""
    _map(key=key, data=message)


def as_page(message: bytes, title: str) -> bytes:
    """The same as one HTML file that works offline."""
    return page("head_map.js", _BODY, message, title)
