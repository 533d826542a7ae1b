"""A number for each head, as a table of buttons: a click chooses a head, or turns it off."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from bertscope.ui.components.packed import script

_CSS = """
.values { font-family: var(--st-font); color: var(--st-text-color); }
.values .cells { display: grid; gap: 3px; align-items: stretch; max-width: 100%; }
.values .axis { font-size: .78rem; opacity: .8; display: flex; align-items: center;
  justify-content: center; padding: 0 .25rem; }
.values button { font: inherit; font-size: .8rem; padding: .42rem .1rem; cursor: pointer; min-width: 0;
  overflow: hidden; color: inherit; background: var(--st-secondary-background-color);
  border: 1px solid var(--st-border-color); border-radius: .25rem; }
.values button:hover { border-color: var(--st-primary-color); }
.values button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
.values button.here { box-shadow: 0 0 0 2.5px var(--st-primary-color); }
.values button.off { text-decoration: line-through; background: repeating-linear-gradient(45deg,
  transparent 0 5px, var(--st-border-color) 5px 7px) !important; color: var(--st-text-color) !important; }
.values .legend { display: flex; gap: .5rem; align-items: center; font-size: .78rem; opacity: .85;
  padding-top: .45rem; }
.values .legend i { display: inline-block; width: 9rem; height: .65rem; border-radius: .15rem;
  border: 1px solid var(--st-border-color); }
"""

_values = st.components.v2.component(
    "bertscope_head_values", css=_CSS, js=script("head_values.js") + "\nexport default show;",
    html='<div class="values"><div class="cells" role="group" aria-label="a number for each head">'
         '</div><div class="legend"></div></div>')


def head_values(values, texts: Sequence[Sequence[str]], titles: Sequence[Sequence[str]],
                bounds: tuple[float, float], scale: list[list], key: str, on_change: Callable[[], None],
                chosen: tuple[int, int] | None = None, off: Sequence[tuple[int, int]] = (),
                layers: tuple | None = None, legend: tuple[str, str] | None = None,
                switches: bool = False) -> None:
    """Draw the table; after a click ``on_change`` is called, and ``clicked(key)`` gives it the head.

    Args:
        values: float [L, A]; NaN has no colour. texts, titles: what is written in each cell and what
            the mouse shows, as they are.
        bounds: values of the scale's ends; the same for tables that are compared.
        chosen: layer and head, from 1, that is outlined. off: those that are crossed out; head 0 is
            the whole layer.
        layers: values, texts and titles of whole layers, each [L], for a column of their own.
        switches: a button is a switch that is on unless in ``off``, rather than a choice.
    """
    import numpy as np

    def plain(numbers) -> list:
        return [None if np.isnan(x) else float(x) for x in numbers]

    _values(key=key, on_head_change=on_change, data={
        "values": [plain(row) for row in values], "texts": [list(row) for row in texts],
        "titles": [list(row) for row in titles], "low": float(bounds[0]), "high": float(bounds[1]),
        "scale": scale, "chosen": chosen and list(chosen), "off": [list(head) for head in off],
        "layers": layers and {"values": plain(layers[0]), "texts": list(layers[1]),
                              "titles": list(layers[2])},
        "legend": legend and list(legend), "switches": switches})


def clicked(key: str) -> tuple[int, int] | None:
    """Layer and head, from 1; head 0 is the whole layer."""
    head = (st.session_state.get(key) or {}).get("head")
    right = isinstance(head, list) and len(head) == 2 and all(isinstance(n, int) for n in head)
    return (head[0], head[1]) if right else None
