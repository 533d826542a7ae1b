"""A table of heads as a picture: one number of each, the head that is open marked; a click opens one."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from bertscope.ui import theme
from bertscope.ui.attention import parts
from bertscope.ui.components import head_values
from bertscope.ui.predict.asked import pick


def which(layers: int, heads: int) -> tuple[int, int]:
    """The open head (layer and head from 1), by a select box."""
    names = [f"{layer}-{head}" for layer in range(1, layers + 1) for head in range(1, heads + 1)]
    number = names.index(pick("Head (layer-head)", names, "head", width=130))
    return number // heads + 1, number % heads + 1


def grid(table, column: str, form: Callable[[float], str], bounds: tuple[float, float], key: str,
         chosen: tuple[int, int] | None = None, say: str = "", signed: bool = False) -> None:
    """Draw ``column`` of a table with ``layer`` and ``head``.

    Args:
        form: a number as it is written. bounds: of the scale, the same for tables side by side.
        say: what the number is, for the mouse.
    """
    ordered = table.sort_values(["layer", "head"])
    heads = int(ordered["head"].max())
    values = ordered[column].to_numpy(float).reshape(-1, heads)
    texts = [[form(x) if x == x else "–" for x in row] for row in values]
    titles = [[f"head {l}-{a}: {say} {text}".replace("  ", " ") for a, text in enumerate(row, 1)]
              for l, row in enumerate(texts, 1)]
    head_values.head_values(values, texts, titles, bounds,
                            theme.signed() if signed else theme.sequential(), key,
                            lambda: open_clicked(key, heads), chosen,
                            legend=(form(bounds[0]), form(bounds[1])))


def open_clicked(key: str, heads: int) -> None:
    head = head_values.clicked(key)
    if head is not None and head[1]:
        parts.open_head((head[0] - 1) * heads + head[1] - 1, heads)


def bounds(*columns) -> tuple[float, float]:
    """From the smallest to the largest number, of one or two tables; NaN does not count."""
    import numpy as np

    values = np.concatenate([np.asarray(c, float) for c in columns])
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)


def look_at(head: tuple[int, int]) -> None:
    """Buttons to the open head's own views."""
    def go(view: str) -> None:
        st.session_state["view"] = view

    with st.container(horizontal=True):
        for view, icon in (("One head", "hub"), ("Does it matter?", "toggle_off"),
                           ("Over training", "timeline")):
            st.button(f"{head[0]}-{head[1]}: {view}", icon=f":material/{icon}:", type="tertiary",
                      on_click=go, args=(view,), key=f"go_{view}")
