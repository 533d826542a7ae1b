"""Figures of heads: their map, and numbers of them over the training."""

from __future__ import annotations

from bertscope.ui import theme
from bertscope.ui.charts import ticks
from bertscope.ui.text import plotly


#: With more heads than this, points are named by the mouse only, but for the open head.
NAMED = 24


def map_of_heads(points, table, spans, chosen: tuple[int, int]):
    """Heads as points, a colour and a sign for each pattern, the open head named and outlined.

    Args:
        points: [L * A, 2], in the order of the table. spans: (low, high) of both axes, the same for
            maps side by side.
    """
    import plotly.graph_objects as go

    from bertscope.analysis.head_statistics import PATTERNS

    ordered = table.sort_values(["layer", "head"])
    names = [f"{l}-{a}" for l, a in zip(ordered["layer"], ordered["head"])]
    mine = f"{chosen[0]}-{chosen[1]}"
    figure = go.Figure()
    for number, pattern in enumerate(PATTERNS):
        rows = [i for i, p in enumerate(ordered["pattern"]) if p == pattern]
        if rows:
            figure.add_scatter(
                x=points[rows, 0], y=points[rows, 1], name=plotly(pattern), mode="markers+text",
                text=[names[i] if len(names) <= NAMED or names[i] == mine else "" for i in rows],
                customdata=[names[i] for i in rows], textposition="top center", textfont={"size": 11},
                marker={"size": 10, "symbol": theme.SYMBOLS[number],
                        "color": theme.categories(number + 1)[-1],
                        "line": {"color": theme.colour("text"),
                                 "width": [2 if names[i] == mine else 0 for i in rows]}},
                hovertemplate="head %{customdata}<extra>" + plotly(pattern) + "</extra>")
    for axes, (low, high) in zip((figure.update_xaxes, figure.update_yaxes), spans):
        room = 0.12 * max(high - low, 1e-6)
        axes(range=[low - room, high + room], showticklabels=False, zeroline=False)
    figure.update_yaxes(scaleanchor="x")
    return theme.dress(figure, 420, showlegend=True)


def over_steps(table, value: str, name: str, chosen: tuple[int, int], marks, share: bool,
               reference: tuple[float, str] | None = None):
    """One number of every head over the training: the open head strong, the others thin and grey.

    Args:
        table: step, layer, head, and ``value``. marks: vertical lines (step, meaning of the colour).
        share: from 0 to 1; else from the smallest to the largest.
        reference: a horizontal line (value, what it is).
    """
    import altair as alt
    import pandas as pd

    rows = table[["step", "layer", "head", value]].dropna().assign(
        name=[f"{l}-{a}" for l, a in zip(table["layer"], table["head"])])
    mine = rows[(rows["layer"] == chosen[0]) & (rows["head"] == chosen[1])]
    x = alt.X("step:Q", title="training step", scale=alt.Scale(type="symlog", nice=False),
              axis=alt.Axis(format=",d", values=ticks(rows["step"]), grid=False, labelOverlap=True))
    scale = alt.Scale(domain=[0, 1], nice=False) if share else alt.Scale(zero=False)
    y = alt.Y(f"{value}:Q", title=None, scale=scale,
              axis=alt.Axis(format="%" if share else ".3~g", tickCount=5))
    tip = [alt.Tooltip("name:N", title="head"), alt.Tooltip("step:Q", format=","),
           alt.Tooltip(f"{value}:Q", format=".1%" if share else ".2f", title=name)]
    layers = [alt.Chart(pd.DataFrame({"step": [step]})).mark_rule(
        color=theme.colour(meaning), strokeWidth=1.5, opacity=0.7).encode(x=x) for step, meaning in marks]
    if reference:
        layers.append(alt.Chart(pd.DataFrame({value: [reference[0]], "label": [reference[1]]})).mark_rule(
            strokeDash=[5, 4], color=theme.colour("baseline")).encode(y=y, tooltip=["label:N"]))
    layers.append(alt.Chart(rows).mark_line(color=theme.colour("baseline"), opacity=0.4, strokeWidth=1.2)
                  .encode(x=x, y=y, detail="name:N", tooltip=tip))
    layers.append(alt.Chart(mine).mark_line(
        color=theme.colour("main"), strokeWidth=3,
        point=alt.OverlayMarkDef(filled=True, size=45, color=theme.colour("main")))
        .encode(x=x, y=y, tooltip=tip))
    return alt.layer(*layers).properties(height=300, title=alt.TitleParams(
        name, anchor="start", fontSize=13, fontWeight=600))
