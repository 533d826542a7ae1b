"""Curves over training steps of values with any range."""

from __future__ import annotations

from collections.abc import Sequence

from bertscope.ui import charts, theme


def lines(table, value: str, series: str, order: Sequence[str], title: str,
          marks: Sequence[tuple[int, str]] = (), format: str = ".3f", zero: bool = True,
          log: bool = False, colours: Sequence[str] | None = None):
    """A line for each series on a symlog axis of steps.

    Args:
        table: a DataFrame with ``step``, ``value`` and ``series``.
        marks: vertical lines (step, meaning of the colour).
        zero: begin the vertical axis at 0.
        log: symlog on the vertical axis too: counts that grow from 0.
    """
    import altair as alt
    import pandas as pd

    x = alt.X("step:Q", title="training step", scale=alt.Scale(type="symlog", nice=False),
              axis=alt.Axis(format=",d", values=charts.ticks(table["step"]), grid=False,
                            labelOverlap=True))
    scale = alt.Scale(type="symlog" if log else "linear", zero=zero)
    axis = alt.Axis(format="~g", tickCount=5)
    if log:  # each label with a prefix of its own
        axis = alt.Axis(labelExpr="format(datum.value, '.3~s')", labelOverlap=False,
                        values=[tick for tick in charts.ticks(table[value]) if tick != 1])
    layers = [alt.Chart(pd.DataFrame({"step": [step]})).mark_rule(
        color=theme.colour(meaning), strokeWidth=1.5, opacity=0.7).encode(x=x)
        for step, meaning in marks]
    layers.append(alt.Chart(table).mark_line(point=alt.OverlayMarkDef(filled=True, size=30)).encode(
        x=x, y=alt.Y(f"{value}:Q", title=None, scale=scale, axis=axis),
        color=alt.Color(f"{series}:N", sort=list(order), title=None, scale=alt.Scale(
            domain=list(order), range=list(colours or theme.categories(len(order)))),
            legend=alt.Legend(orient="top", labelLimit=220) if len(order) > 1 else None),
        tooltip=[alt.Tooltip(f"{series}:N", title=" "), alt.Tooltip("step:Q", format=","),
                 alt.Tooltip(f"{value}:Q", format=format)]))
    return alt.layer(*layers).properties(height=290, title=alt.TitleParams(
        title, anchor="start", fontSize=13, fontWeight=600))
