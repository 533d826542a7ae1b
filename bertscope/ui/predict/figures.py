"""Figures of the views: tables of layers and places, and how something changed over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertscope.ui import theme
from bertscope.ui.text import plotly, shorten

if TYPE_CHECKING:
    import numpy as np

#: A cell with room for a piece's name has at least so many pixels.
CELL = 30
#: Beyond so many columns, names are cut shorter and written smaller.
WIDE = 8


def table(values: np.ndarray, texts: Sequence[Sequence[str]], hovers: Sequence[Sequence[str]],
          rows: Sequence[str], columns: Sequence[str], most: float, upwards: bool = False):
    """Rows of coloured cells with a word or number in each.

    Args:
        values: [rows, columns], from 0 (background) to ``most`` (the strongest colour).
        hovers: what the mouse shows, plain text.
        upwards: the first row is the lowest.
    """
    import plotly.graph_objects as go

    room = 14 if len(columns) <= WIDE else 8
    figure = go.Figure(go.Heatmap(
        z=values, text=[[plotly(shorten(t, room)) for t in row] for row in texts],
        customdata=[[plotly(h) for h in row] for row in hovers], texttemplate="%{text}",
        textfont={"size": 12 if len(columns) <= WIDE else 10}, xgap=2, ygap=2, zmin=0, zmax=most,
        hovertemplate="%{customdata}<extra></extra>", colorscale=theme.sequential(),
        showscale=False))
    figure.update_xaxes(tickvals=list(range(len(columns))), side="top", showgrid=False,
                        ticktext=[plotly(shorten(c, 24)) for c in columns], fixedrange=True)
    figure.update_yaxes(tickvals=list(range(len(rows))), showgrid=False, fixedrange=True,
                        ticktext=[plotly(shorten(r, 24)) for r in rows],
                        autorange=True if upwards else "reversed")
    return theme.dress(figure, 60 + CELL * len(rows), dragmode=False,
                       margin={"l": 10, "r": 10, "t": 40, "b": 6})


def by_layer(curves: Sequence[tuple[str, str, str, Sequence[float]]], title: str):
    """Probabilities after each layer: (name, meaning of the colour, dash, one value a layer)."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for name, meaning, dash, values in curves:
        figure.add_scatter(
            x=list(range(len(values))), y=list(values), mode="lines+markers", name=plotly(name),
            line={"color": theme.colour(meaning), "dash": dash, "width": 2.5}, marker={"size": 8},
            hovertemplate="after layer %{x}: %{y:.2%}<extra>" + plotly(name) + "</extra>")
    last = max((len(values) for *_, values in curves), default=1) - 1
    figure.update_xaxes(title="after layer (0 = embeddings)", range=[-0.15, last + 0.15],
                        tickvals=list(range(last + 1)) if last <= 24 else None, zeroline=False,
                        showgrid=False, fixedrange=True)
    figure.update_yaxes(tickformat=".3~p", rangemode="tozero", zeroline=False, fixedrange=True)
    return theme.dress(figure, 340, title_text=plotly(title), dragmode=False,
                       margin={"l": 10, "r": 10, "t": 78, "b": 10})


def over_steps(values: np.ndarray, rows: Sequence[str], steps: Sequence[int], title: str,
               marks: Sequence[tuple[int, str]], signed: bool = False, axis: str = "",
               unit: str = ""):
    """A heat map: a column for each checkpoint asked, evenly apart whatever their steps are.

    Args:
        values: [rows, steps]; where ``signed``, around nothing, else from nothing up.
        marks: steps that are framed in a colour: (step, meaning).
    """
    import numpy as np
    import plotly.graph_objects as go

    most = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    most = most if signed else max(most, 0.1)
    names, labels = [plotly(shorten(r, 24)) for r in rows], [f"{step:,}" for step in steps]
    boxes = [[f"{row}, step {label}" for label in labels] for row in names]
    figure = go.Figure(go.Heatmap(
        z=values, customdata=boxes, xgap=1, ygap=1, zmin=-most if signed else 0, zmax=most,
        colorscale=theme.signed() if signed else theme.sequential(),
        hovertemplate="%{customdata}: %{z" + (":.2f" if signed else ":.1%") + "}" + unit
                      + "<extra></extra>",
        colorbar={"thickness": 10, "outlinewidth": 0, "lenmode": "pixels", "len": 150, "y": 1,
                  "yanchor": "top", "tickformat": "" if signed else ".0%", "ticksuffix": unit}))
    for step, meaning in marks:
        if step in steps:
            at = list(steps).index(step)
            figure.add_vrect(at - 0.5, at + 0.5, line={"color": theme.colour(meaning), "width": 2})
    figure.update_xaxes(tickvals=list(range(len(steps))), ticktext=labels, title="training step",
                        showgrid=False, tickangle=-45, fixedrange=True)
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=names, showgrid=False, title=axis,
                        autorange="reversed" if signed else True, fixedrange=True)
    return theme.dress(figure, max(240, 150 + 24 * len(rows)), title_text=plotly(title),
                       dragmode=False, margin={"l": 10, "r": 10, "t": 44, "b": 10})
