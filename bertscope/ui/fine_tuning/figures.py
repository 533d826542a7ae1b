"""Figures of fine-tuning: scores beside baselines, calibration, curves over examples and layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertscope.ui import theme
from bertscope.ui.text import plotly

if TYPE_CHECKING:
    import pandas as pd


def scores(rows: Sequence[tuple[str, str, str, dict[str, float]]], names: Sequence[str],
           titles: Sequence[str]):
    """A line for each metric, on it a mark for each model.

    Args:
        rows: (model, meaning of the colour, symbol, its metrics).
        names: the metrics, the most important first; ``titles`` are what they are called.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    for name, meaning, symbol, values in rows:
        own = [(number, values[metric]) for number, metric in enumerate(names) if metric in values]
        figure.add_scatter(
            x=[value for _, value in own], y=[number for number, _ in own], mode="markers",
            name=plotly(name), cliponaxis=False,
            marker={"size": 15 if meaning != "baseline" else 11, "symbol": symbol,
                    "color": theme.colour(meaning)},
            customdata=[plotly(titles[number]) for number, _ in own],
            hovertemplate="%{customdata}: %{x:.1%}<extra>" + plotly(name) + "</extra>")
    least = min([0.0, *(v for *_, values in rows for m, v in values.items() if m in names)])
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=[plotly(t) for t in titles],
                        range=[len(names) - 0.5, -0.5], zeroline=False, tickfont={"size": 14})
    figure.update_xaxes(range=[min(-0.02, least - 0.05), 1.02], tickformat=".0%", zeroline=False)
    return theme.dress(figure, 90 + 44 * len(names), dragmode=False)


def reliability(tables: Sequence[tuple[str, str, pd.DataFrame]], least: float):
    """How often the answer is right, by how sure the model is; below, how many answers there are.

    Args:
        tables: (name, meaning of the colour, ``outcome.reliability``).
        least: the lowest probability that an answer can have.
    """
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(2, 1, shared_xaxes=True, row_heights=[0.75, 0.25], vertical_spacing=0.06)
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", name="calibrated", row=1, col=1,
                       line={"dash": "dash", "color": theme.colour("baseline")}, hoverinfo="skip")
    for name, meaning, table in tables:
        own, colour = table.dropna(), theme.colour(meaning)
        middle = (table["low"] + table["high"]) / 2
        figure.add_scatter(
            x=own["confidence"], y=own["accuracy"], mode="lines+markers", name=plotly(name),
            line={"color": colour, "width": 2.4}, marker={"size": 8}, customdata=own["count"],
            hovertemplate="sure to %{x:.1%}, right %{y:.1%} of %{customdata:,}<extra></extra>",
            row=1, col=1)
        figure.add_trace(go.Bar(
            x=middle, y=table["count"], width=table["high"] - table["low"], showlegend=False,
            marker={"color": colour, "opacity": 0.7}, hovertemplate="%{y:,} answers<extra></extra>"),
            row=2, col=1)
    low = max(0.0, least - 0.04)
    figure.update_xaxes(range=[low, 1.01], tickformat=".0%", zeroline=False)
    figure.update_xaxes(title="how sure the model is", row=2, col=1)
    figure.update_yaxes(title="right", range=[-0.03, 1.03], tickformat=".0%", zeroline=False, row=1, col=1)
    figure.update_yaxes(title="answers", zeroline=False, row=2, col=1)
    return theme.dress(figure, 430, barmode="overlay", dragmode=False)


def numbers(tables: Sequence[tuple[str, str, pd.DataFrame]]):
    """Predicted against gold numbers: (name, meaning of the colour, table)."""
    import plotly.graph_objects as go

    figure = go.Figure()
    every = [value for *_, table in tables for value in (table["gold"].min(), table["gold"].max())]
    figure.add_scatter(x=[min(every), max(every)], y=[min(every), max(every)], mode="lines", name="exact",
                       line={"dash": "dash", "color": theme.colour("baseline")}, hoverinfo="skip")
    for name, meaning, table in tables:
        figure.add_trace(go.Scattergl(
            x=table["gold"], y=table["predicted"], mode="markers", name=plotly(name),
            marker={"size": 6, "opacity": 0.6, "color": theme.colour(meaning)},
            hovertemplate="gold %{x:.3g}, predicted %{y:.3g}<extra></extra>"))
    figure.update_xaxes(title="gold", zeroline=False)
    figure.update_yaxes(title="predicted", zeroline=False)
    return theme.dress(figure, 430)


def worth(curves: Sequence[tuple[str, str, pd.DataFrame]], title: str, log: bool,
          references: Sequence[tuple[str, float]] = (), form: str = "%"):
    """A metric against the number of training examples, with 95 % intervals over the seeds.

    The axis holds what the metric can be; of few seeds an interval can be wider than that, and is cut.

    Args:
        curves: (name, colour, table with examples, mean, low, high, seeds), from the least pretrained
            to the most.
    """
    import plotly.graph_objects as go

    figure, digits = go.Figure(), 1 if form == "%" else 2
    shown = f".{digits}{form}"
    for number, (name, colour, table) in enumerate(curves):
        # Points of several lines at one number of examples stand side by side.
        shift = 1 + 0.03 * (number - (len(curves) - 1) / 2) if log else 1.0
        figure.add_scatter(
            x=table["examples"] * shift, y=table["mean"], mode="lines+markers", name=plotly(name),
            line={"color": colour, "width": 2.6, "dash": "dash" if not number else "solid"},
            marker={"size": 8}, customdata=table[["examples", "low", "high", "seeds"]],
            error_y={"type": "data", "symmetric": False, "array": table["high"] - table["mean"],
                     "arrayminus": table["mean"] - table["low"], "color": colour, "thickness": 1.4},
            hovertemplate=f"%{{customdata[0]:,}} examples: %{{y:{shown}}} (%{{customdata[1]:{shown}}} to "
                          f"%{{customdata[2]:{shown}}}, %{{customdata[3]}} seeds)"
                          f"<extra>{plotly(name)}</extra>")
    for label, value in references:
        figure.add_hline(value, line={"dash": "dot", "color": theme.colour("baseline"), "width": 1.4})
        figure.add_annotation(text=plotly(label), x=1, xref="paper", xanchor="right", y=value,
                              yanchor="bottom", showarrow=False,
                              font={"color": theme.colour("baseline"), "size": 12})
    sizes = sorted({int(n) for *_, table in curves for n in table["examples"]})
    figure.update_xaxes(title="training examples", type="log" if log else "linear", showgrid=False,
                        zeroline=False, tickvals=sizes, ticktext=[f"{n:,}" for n in sizes])
    low = min([0.0, *(float(t["mean"].min()) for *_, t in curves)])  # a correlation can be below 0
    figure.update_yaxes(title_text=plotly(title), tickformat=f".{digits - 1}{form}", zeroline=False,
                        range=[low - 0.02, 1.05])
    return theme.dress(figure, 460)


def layers(curves: Sequence[tuple[str, str, Sequence[float]]], names: Sequence[str], title: str,
           tick: str = ".2f", most: float | None = None):
    """A number for each layer: (name, meaning of the colour, values); ``names`` are along the axis."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for name, meaning, values in curves:
        figure.add_scatter(
            x=list(range(len(values))), y=list(values), mode="lines+markers", name=plotly(name),
            line={"color": theme.colour(meaning), "width": 2.5}, marker={"size": 8}, showlegend=True,
            hovertemplate="%{x}: %{y:" + tick + "}<extra>" + plotly(name) + "</extra>")
    figure.update_xaxes(tickvals=list(range(len(names))), ticktext=[plotly(n) for n in names],
                        showgrid=False, zeroline=False)
    figure.update_yaxes(tickformat=tick, rangemode="tozero", zeroline=False,
                        range=None if most is None else [0, most])
    return theme.dress(figure, 340, title_text=plotly(title), dragmode=False,
                       margin={"l": 10, "r": 10, "t": 70, "b": 10})
