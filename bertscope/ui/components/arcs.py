"""One head as arcs between the pieces, in two columns or along a line.

Attention goes both ways here, and is shown so: in columns every piece stands on both sides, along the line
arcs above look to the right and arcs below to the left. A hovered piece shows its own arcs; clicked pieces
stay, and what they look at is summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from bertscope.ui.components.packed import pack, page, script, source

_BODY = ('<div class="picture arcs"><div class="stage" style="overflow-x: auto"></div><div class="note">'
         '</div><div class="foot"><div class="legend"></div><div class="save"></div></div></div>')
_arcs = st.components.v2.component("bertscope_arcs", css=source("drawing.css"), html=_BODY,
                                   js=script("arcs.js") + "\nexport default show;")


def data(weights, tokens: Sequence[str], rows: Sequence[int], columns: Sequence[int],
         scale: list[list], name: str, least: float = 0.0, line: bool = False,
         chosen: tuple[Sequence[int], Sequence[int]] = ((), ()), signed: bool = False,
         head: tuple[int, int] | None = None, legend: tuple[str, str] = ("", "")) -> bytes:
    """The picture's message.

    Args:
        weights: float [len(rows), len(columns)].
        tokens: all pieces; rows: places of those that look, columns: of those that are looked at.
        least: weights below it (by size) are not drawn; of the others the 1,500 strongest are.
        line: along a line, else in two columns.
        chosen: places that are selected, of those that look and those that are looked at.
        name, head, legend: as in ``head_map.data``.
    """
    import numpy as np

    return pack({"tokens": list(tokens), "rows": list(rows), "columns": list(columns), "scale": scale,
                 "signed": signed, "name": name, "least": least, "line": line, "from": list(chosen[0]),
                 "to": list(chosen[1]), "head": head and f"{head[0]}-{head[1]}", "legend": legend},
                np.ascontiguousarray(weights, "<f4").tobytes())


def arcs(message: bytes, key: str, on_change: Callable[[], None]) -> None:
    """Draw a message of :func:`data`; after a click on a piece ``on_change`` is called and
    ``clicked(key)`` gives it the selection."""
    _arcs(key=key, data=message, on_picked_change=on_change)


def clicked(key: str) -> tuple[list[int], list[int]]:
    """The places selected, of pieces that look and of pieces that are looked at."""
    picked = (st.session_state.get(key) or {}).get("picked") or {}
    return tuple([i for i in (picked.get(side) or []) if isinstance(i, int)] for side in ("from", "to"))


def as_page(message: bytes, title: str) -> bytes:
    """The same as one HTML file that works offline."""
    return page("arcs.js", _BODY, message, title)
