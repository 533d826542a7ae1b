"""Figures of analyses. Plotly where values are read by the mouse, Altair for curves over steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertscope.ui import theme
from bertscope.ui.text import plotly

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def candidates(rows: Sequence, meaning: str, true: str | None, most: float):
    """Bars of the most probable pieces, the most probable on top; the true one is outlined.

    Args:
        rows: objects with ``token`` and ``probability``.
        meaning: ``main`` or ``other``, which decides the colour.
        most: the probability that fills the width; the same for bars side by side.
    """
    import plotly.graph_objects as go

    rows = list(reversed(rows))
    names = [plotly(row.token) for row in rows]
    right = [row.token == true for row in rows]
    bars = go.Bar(
        x=[row.probability for row in rows], y=list(range(len(rows))), orientation="h",
        marker={"color": theme.colour(meaning),
                "line": {"color": theme.colour("text"), "width": [2.5 if r else 0 for r in right]}},
        text=[f"{row.probability:.1%}" for row in rows], textposition="outside", cliponaxis=False,
        customdata=names, hovertemplate="%{customdata}: %{x:.4f}<extra></extra>")
    figure = go.Figure(bars)
    figure.update_yaxes(tickvals=list(range(len(rows))), showgrid=False, zeroline=False,
                        tickfont={"size": 14},
                        ticktext=[f"<b>{n}</b> ✓" if r else n for n, r in zip(names, right)])
    figure.update_xaxes(range=[0, most * 1.2], visible=False, fixedrange=True)
    return theme.dress(figure, 16 + 27 * len(rows), showlegend=False, bargap=0.25, dragmode=False,
                       margin={"l": 10, "r": 10, "t": 4, "b": 4})


def over_steps(table: pd.DataFrame, value: str, series: str, order: Sequence[str], title: str,
               marks: Sequence[tuple[int, str]] = (), reference: tuple[float, str] | None = None,
               strong: str | None = None, colours: Sequence[str] | None = None,
               full: bool = False, near: bool = False, ranks: bool = False):
    """Curves over training steps on a symlog axis (learning happens early, and step 0 is shown).

    Args:
        table: columns ``step``, ``value`` (0...1) and ``series``.
        marks: vertical lines (step, meaning of the colour), e.g. the chosen checkpoint.
        strong: the series that is drawn thicker.
        full: show 0 to 1 whatever the values are.
        near: show the curves' own range, the reference only where it is within.
        ranks: values are ranks from 1, on a logarithmic axis with 1 on top.
    """
    import altair as alt
    import pandas as pd

    x = alt.X("step:Q", title="training step", scale=alt.Scale(type="symlog", nice=False),
              axis=alt.Axis(format=",d", values=ticks(table["step"]), grid=False,
                            labelOverlap=True))
    highest = max(float(table[value].max()), reference[0] if reference else 0.0)
    most = 1.0 if full else min(1.0, max(0.01, 1.1 * highest))
    least = 0.0
    if near:
        least, most = float(table[value].min()), float(table[value].max())
        pad = max(0.02, 0.1 * (most - least))
        least, most = max(0.0, least - pad), min(1.0, most + pad)
        reference = reference if reference and reference[0] > least else None
    y = alt.Y(f"{value}:Q", title=None, axis=alt.Axis(format=".3~p", tickCount=5),
              scale=alt.Scale(domain=[least, most], nice=False))
    if ranks:
        y = alt.Y(f"{value}:Q", title=None, axis=alt.Axis(format=",d", tickCount=5),
                  scale=alt.Scale(type="log", reverse=True, nice=False,
                                  domain=[1, max(2, int(table[value].max()))]))
    colour = alt.Color(f"{series}:N", sort=list(order), title=None,
                       scale=alt.Scale(domain=list(order),
                                       range=list(colours or theme.categories(len(order)))),
                       legend=alt.Legend(orient="top", labelLimit=220) if len(order) > 1 else None)
    tip = [alt.Tooltip(f"{series}:N", title=" "), alt.Tooltip("step:Q", format=","),
           alt.Tooltip(f"{value}:Q", format=",d" if ranks else ".2%", title=title)]
    layers = []
    if marks:
        for step, meaning in marks:
            layers.append(alt.Chart(pd.DataFrame({"step": [step]})).mark_rule(
                color=theme.colour(meaning), strokeWidth=1.5, opacity=0.7).encode(x=x))
    if reference:
        layers.append(alt.Chart(pd.DataFrame({value: [reference[0]], "label": [reference[1]]}))
                      .mark_rule(strokeDash=[5, 4], color=theme.colour("baseline"))
                      .encode(y=y, tooltip=["label:N"]))
    line = alt.Chart(table).mark_line(point=alt.OverlayMarkDef(filled=True, size=30))
    width = alt.condition(alt.datum[series] == strong, alt.value(3.2), alt.value(1.8)) \
        if strong else alt.value(2.4)
    layers.append(line.encode(x=x, y=y, color=colour, tooltip=tip, detail=f"{series}:N",
                              strokeWidth=width))
    return alt.layer(*layers).properties(height=330, title=alt.TitleParams(
        title, anchor="start", fontSize=13, fontWeight=600))


def ticks(steps) -> list[int]:
    """0, 1, 10, 100 ... and the last step: labels of a symlog axis."""
    last = int(max(steps))
    powers, power = [0], 1
    while power < last / 2:
        powers.append(power)
        power *= 10
    return [*powers, last] if last else powers


def heat_map(weights: np.ndarray, tokens: Sequence[str], title: str, difference: bool = False,
             most: float | None = None):
    """One head: row = the piece that looks, column = the piece looked at. weights [T, T].

    ``most`` is the weight of the strongest colour; the same for maps side by side.
    """
    import numpy as np
    import plotly.graph_objects as go

    rows = [plotly(t) for t in tokens]
    size = len(tokens)
    names = np.array(rows, dtype=object)
    pairs = np.stack([np.repeat(names[:, None], size, 1), np.repeat(names[None, :], size, 0)], -1)
    most = most or float(np.abs(weights).max()) or 1.0
    figure = go.Figure(go.Heatmap(
        z=np.asarray(weights, np.float32), customdata=pairs,
        colorscale=theme.diverging() if difference else theme.sequential(),
        zmin=-most if difference else 0, zmax=most if difference else max(most, 0.2),
        hovertemplate="%{customdata[0]} → %{customdata[1]}: %{z:.3f}<extra></extra>",
        colorbar={"thickness": 10, "outlinewidth": 0, "lenmode": "pixels", "len": 180,
                  "y": 1, "yanchor": "top"}, xgap=1, ygap=1))
    axis = {"tickvals": list(range(size)), "ticktext": rows, "showgrid": False,
            "tickfont": {"size": 12 if size <= 32 else 9}}
    figure.update_xaxes(**axis, tickangle=-60, side="bottom", constrain="domain")
    figure.update_yaxes(**axis, autorange="reversed", scaleanchor="x", constrain="domain",
                        constraintoward="top")
    return theme.dress(figure, min(820, 190 + 20 * size),
                       title_text=plotly(title))
