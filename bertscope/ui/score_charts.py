"""Figures of sentence scores and minimal pairs: bits over steps, what decides a pair, accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertscope.ui import theme
from bertscope.ui.charts import ticks
from bertscope.ui.text import plotly, shorten

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def scale(meaning: str) -> list[list]:
    """From the background (certain) to a checkpoint's colour (surprising)."""
    return [[0, theme.colour("background")], [1, theme.colour(meaning)]]


def bits_over_steps(values: np.ndarray, rows: Sequence[str], steps: Sequence[int], title: str,
                    marks: Sequence[tuple[int, str]]):
    """A row for each piece or word, a column for each checkpoint: [rows, steps] bits from 0 up.

    ``marks`` are steps that are framed in a colour: (step, meaning).
    """
    import plotly.graph_objects as go

    names, labels = [plotly(shorten(r, 24)) for r in rows], [f"{step:,}" for step in steps]
    figure = go.Figure(go.Heatmap(
        z=values, customdata=[[f"{row}, step {label}" for label in labels] for row in names],
        xgap=1, ygap=1, zmin=0, colorscale=theme.sequential(),
        hovertemplate="%{customdata}: %{z:.2f} bits<extra></extra>",
        colorbar={"thickness": 10, "outlinewidth": 0, "lenmode": "pixels", "len": 150, "y": 1,
                  "yanchor": "top", "ticksuffix": " bits"}))
    for step, meaning in marks:
        if step in steps:
            at = list(steps).index(step)
            figure.add_vrect(at - 0.5, at + 0.5, line={"color": theme.colour(meaning), "width": 2})
    figure.update_xaxes(tickvals=list(range(len(steps))), ticktext=labels, title="training step",
                        showgrid=False, tickangle=-45, fixedrange=True)
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=names, showgrid=False,
                        autorange="reversed", fixedrange=True)
    return theme.dress(figure, max(240, 150 + 24 * len(rows)), title_text=plotly(title),
                       dragmode=False, margin={"l": 10, "r": 10, "t": 44, "b": 10})


def curve(table: pd.DataFrame, title: str, marks: Sequence[tuple[int, str]],
          reference: tuple[float, str]):
    """One number of bits over training steps, on a symlog axis, with a dashed line to compare to.

    Args:
        table: columns ``step`` and ``bits``.
    """
    import altair as alt
    import pandas as pd

    x = _steps(table)
    y = alt.Y("bits:Q", title="bits", axis=alt.Axis(tickCount=5))
    level = pd.DataFrame({"bits": [reference[0]], "what": [reference[1]],
                          "step": [int(table["step"].max())]})
    colour = theme.colour("baseline")
    layers = [*_rules(marks, x),
              alt.Chart(level).mark_rule(strokeDash=[5, 4], color=colour).encode(y=y),
              alt.Chart(level).mark_text(align="right", baseline="bottom", dy=-3, color=colour)
              .encode(x=x, y=y, text="what:N"),
              alt.Chart(table).mark_line(point=alt.OverlayMarkDef(filled=True, size=30),
                                         color=theme.colour("main"), strokeWidth=2.4)
              .encode(x=x, y=y, tooltip=[alt.Tooltip("step:Q", format=","),
                                         alt.Tooltip("bits:Q", format="+.2f", title=title)])]
    return alt.layer(*layers).properties(height=300, title=alt.TitleParams(
        title, anchor="start", fontSize=13, fontWeight=600))


def contributions(names: Sequence[tuple[str, str]], sides: Sequence[tuple[str, str, Sequence[float]]],
                  strong: Sequence[int]):
    """How many bits each part of two sentences gives to the first one (right) or the second (left).

    Args:
        names: what stands in either sentence; written once where it is the same.
        sides: (checkpoint, meaning of its colour, bits of each part).
        strong: parts whose names are bold: those that differ.
    """
    import plotly.graph_objects as go

    rows = [plotly(shorten(a, 24)) if a == b else
            f"{plotly(shorten(a, 24) or '–')} | {plotly(shorten(b, 24) or '–')}" for a, b in names]
    figure = go.Figure()
    for label, meaning, bits in sides:
        figure.add_bar(y=list(range(len(rows))), x=list(bits), orientation="h", name=plotly(label),
                       marker_color=theme.colour(meaning), customdata=rows,
                       hovertemplate="%{customdata}: %{x:+.2f} bits<extra></extra>",
                       text=[f"{b:+.1f}" for b in bits], textposition="outside", cliponaxis=False)
    most = max((abs(b) for *_, bits in sides for b in bits), default=1.0) or 1.0
    figure.update_yaxes(tickvals=list(range(len(rows))), autorange="reversed", showgrid=False,
                        zeroline=False, fixedrange=True, ticktext=[f"<b>{r}</b>" if i in strong else r
                                                   for i, r in enumerate(rows)])
    figure.update_xaxes(range=[-1.2 * most, 1.2 * most], fixedrange=True, zeroline=True,
                        zerolinewidth=2, title="← for the second   bits   for the first →")
    return theme.dress(figure, 90 + (16 + 14 * len(sides)) * len(rows), dragmode=False, bargap=0.25,
                       showlegend=len(sides) > 1)


def accuracies(sides: Sequence[tuple[str, str, pd.DataFrame]], column: str):
    """Accuracy with its 95 % interval for each paradigm or phenomenon, a coin's at one half.

    Args:
        sides: (checkpoint, meaning of its colour, table with ``column``, accuracy, low, high); the rows
            are those of the first.
    """
    import plotly.graph_objects as go

    rows = list(sides[0][2][column])
    figure = go.Figure()
    for number, (label, meaning, table) in enumerate(sides):
        known = table.set_index(column).reindex(rows)
        shift = 0.24 * (number - (len(sides) - 1) / 2)
        figure.add_scatter(
            x=known.accuracy.tolist(), y=[i + shift for i in range(len(rows))], mode="markers",
            name=plotly(label), customdata=[plotly(r) for r in rows],
            marker={"color": theme.colour(meaning), "size": 9,
                    "symbol": "circle-open" if meaning == "baseline" else "circle"},
            error_x={"type": "data", "symmetric": False, "array": (known.high - known.accuracy).tolist(),
                     "arrayminus": (known.accuracy - known.low).tolist(), "color": theme.colour(meaning),
                     "thickness": 1.4, "width": 3},
            hovertemplate="%{customdata}: %{x:.1%}<extra>" + plotly(label) + "</extra>")
    figure.add_vline(0.5, line={"dash": "dash", "color": theme.colour("text"), "width": 1.2})
    figure.update_yaxes(tickvals=list(range(len(rows))), showgrid=True, zeroline=False,
                        range=[len(rows) - 0.4, -0.6], fixedrange=True,
                        ticktext=[plotly(shorten(str(r), 52)) for r in rows])
    figure.update_xaxes(range=[-0.02, 1.02], tickformat=".0%", fixedrange=True, zeroline=False,
                        title="share of pairs in which the good sentence is likelier")
    return theme.dress(figure, 110 + (22 + 8 * len(sides)) * len(rows), dragmode=False)


def accuracy_over_steps(table: pd.DataFrame, mean: str, title: str,
                        marks: Sequence[tuple[int, str]]):
    """Accuracies over training steps; the series ``mean`` is thick and has a band, its interval.

    Args:
        table: columns ``step``, ``series``, ``accuracy``, ``low``, ``high``.
    """
    import altair as alt
    import pandas as pd

    x = _steps(table)
    order = [mean, *(s for s in dict.fromkeys(table["series"]) if s != mean)]
    colours = [theme.colour("main"), *theme.categories(len(order))[1:]]
    y = alt.Y("accuracy:Q", title=None, axis=alt.Axis(format="%"),
              scale=alt.Scale(domain=[0, 1], nice=False))
    colour = alt.Color("series:N", sort=order, title=None,
                       scale=alt.Scale(domain=order, range=colours),
                       legend=alt.Legend(orient="top", labelLimit=260, columns=3))
    coin = alt.Chart(pd.DataFrame({"accuracy": [0.5]})).mark_rule(
        strokeDash=[5, 4], color=theme.colour("baseline")).encode(y=y)
    band = alt.Chart(table[table["series"] == mean]).mark_area(
        opacity=0.2, color=theme.colour("main")).encode(x=x, y=alt.Y("low:Q"), y2="high:Q")
    width = alt.condition(alt.datum.series == mean, alt.value(3.2), alt.value(1.5))
    lines = alt.Chart(table).mark_line(point=alt.OverlayMarkDef(filled=True, size=26)).encode(
        x=x, y=y, color=colour, strokeWidth=width, detail="series:N",
        tooltip=[alt.Tooltip("series:N", title=" "), alt.Tooltip("step:Q", format=","),
                 *(alt.Tooltip(f"{c}:Q", format=".1%") for c in ("accuracy", "low", "high"))])
    return alt.layer(*_rules(marks, x), coin, band, lines).properties(
        height=380, title=alt.TitleParams(title, anchor="start", fontSize=13, fontWeight=600))


def _steps(table: pd.DataFrame):
    import altair as alt

    return alt.X("step:Q", title="training step", scale=alt.Scale(type="symlog", nice=False),
                 axis=alt.Axis(format=",d", values=ticks(table["step"]), grid=False,
                               labelOverlap=True))


def _rules(marks: Sequence[tuple[int, str]], x) -> list:
    import altair as alt
    import pandas as pd

    return [alt.Chart(pd.DataFrame({"step": [step]})).mark_rule(
        color=theme.colour(meaning), strokeWidth=1.5, opacity=0.7).encode(x=x)
        for step, meaning in marks]
