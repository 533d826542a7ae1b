"""Figures of the Next sentence page. All probabilities run from 0 to 1, the same on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertscope.ui import theme
from bertscope.ui.text import hover, plotly, shorten

if TYPE_CHECKING:
    import numpy as np

#: Numbers in a row of a vector's strip; longer vectors take several rows.
ROW = 128
#: Boundaries whose numbers have room in their cells, in a narrow window too.
MOST_WRITTEN = 16


def answers(rows: Sequence[tuple[str, str, float, str, str]]):
    """A bar from 0 to 1 per checkpoint: (label, meaning, P, yes, no), chance at one half."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for number, (label, meaning, p, yes, no) in enumerate(reversed(rows)):
        name = plotly(label)
        figure.add_bar(x=[1], y=[number], orientation="h", marker_color=theme.colour("grid"),
                       hoverinfo="skip")
        figure.add_bar(x=[p], y=[number], orientation="h", marker_color=theme.colour(meaning),
                       text=[f"{yes}: {p:.1%}"], textposition="inside" if p > 0.4 else "outside",
                       insidetextanchor="start", textangle=0, constraintext="none",
                       hovertemplate=f"{name}<br>{yes}: %{{x:.4f}}<extra></extra>")
    figure.add_vline(0.5, line={"dash": "dash", "color": theme.colour("text"), "width": 1.2})
    figure.update_yaxes(tickvals=list(range(len(rows))), showgrid=False,
                        ticktext=[plotly(shorten(label, 40)) for label, *_ in reversed(rows)])
    yes, no = rows[0][3:]
    figure.update_xaxes(range=[0, 1], tickvals=[0, 0.5, 1], showgrid=False, fixedrange=True,
                        ticktext=[no, "chance", yes])
    return theme.dress(figure, 62 + 44 * len(rows), showlegend=False, barmode="overlay",
                       bargap=0.3, dragmode=False, margin={"l": 10, "r": 60, "t": 6, "b": 6})


def strip(vector: np.ndarray, most: float, height: int = 46):
    """A vector as a strip of cells: purple below 0, green above, white 0; ``most`` is the
    strongest."""
    import numpy as np
    import plotly.graph_objects as go

    rows = -(-len(vector) // ROW)
    cells = np.full(rows * min(ROW, len(vector)), np.nan)
    cells[:len(vector)] = vector
    grid = cells.reshape(rows, -1)
    number = np.arange(grid.size).reshape(grid.shape)
    figure = go.Figure(go.Heatmap(
        z=grid, customdata=number, colorscale=theme.signed(), zmin=-most, zmax=most,
        showscale=False, hoverongaps=False,
        hovertemplate="number %{customdata}: %{z:.3f}<extra></extra>"))
    figure.update_xaxes(visible=False, fixedrange=True)
    figure.update_yaxes(visible=False, fixedrange=True, autorange="reversed")
    return theme.dress(figure, height + 10 * (rows - 1), dragmode=False,
                       margin={"l": 0, "r": 0, "t": 2, "b": 2})


def by_layer(curves: Sequence[tuple[str, str, np.ndarray]]):
    """P(yes) from each layer's [CLS]: (label, meaning, [L + 1]) of each checkpoint."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for label, meaning, values in curves:
        figure.add_scatter(
            x=list(range(len(values))), y=values, mode="lines+markers", name=plotly(label),
            line={"color": theme.colour(meaning), "width": 2.5}, marker={"size": 9},
            hovertemplate="layer %{x}: %{y:.1%}<extra>" + plotly(label) + "</extra>")
    most = max(len(values) for *_, values in curves) - 1
    figure.add_hline(0.5, line={"dash": "dash", "color": theme.colour("baseline"), "width": 1.4})
    figure.update_xaxes(title="layer (0 = embeddings)", range=[-0.15, most + 0.15], zeroline=False,
                        tickvals=list(range(most + 1)) if most <= 24 else None, showgrid=False)
    figure.update_yaxes(tickformat=".0%", range=[-0.04, 1.04], zeroline=False)
    return theme.dress(figure, 300, showlegend=len(curves) > 1)


def over_steps(grid: np.ndarray, rows: Sequence[str], steps: Sequence[int], row_title: str,
               hovers: Sequence[str] | None = None):
    """A heat map, rows × steps, of probabilities. Steps are spaced evenly: they were saved densely
    where much was learnt."""
    import numpy as np
    import plotly.graph_objects as go

    names = np.array([plotly(h) for h in (hovers or rows)], dtype=object)
    figure = go.Figure(go.Heatmap(
        z=grid, x=[f"{s:,}" for s in steps], y=list(range(len(rows))),
        customdata=np.repeat(names[:, None], len(steps), 1),
        colorscale=theme.sequential(), zmin=0, zmax=1, xgap=1, ygap=1,
        hovertemplate="step %{x}<br>%{customdata}<br>%{z:.1%}<extra></extra>",
        colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": ".0%",
                  "tickvals": [0, 0.5, 1]}))
    figure.update_xaxes(title="training step", type="category", showgrid=False)
    every = max(1, len(rows) // 40)
    shown = list(range(0, len(rows), every))
    figure.update_yaxes(title=row_title, showgrid=False, autorange="reversed", tickvals=shown,
                        ticktext=[plotly(rows[i]) for i in shown])
    return theme.dress(figure, min(900, 150 + 24 * len(rows)))


def boundaries(strips: Sequence[tuple[str, np.ndarray]], pairs: Sequence[tuple[str, str]]):
    """A row of cells per checkpoint, one for each boundary: they fade where the text breaks."""
    import numpy as np
    import plotly.graph_objects as go

    texts = [f"<b>{i + 1} | {i + 2}</b><br>{hover(a, 50, 3)}<br>—<br>{hover(b, 50, 3)}"
             for i, (a, b) in enumerate(pairs)]
    grid = np.vstack([values for _, values in strips])
    labels = np.array([[f"{100 * v:.0f}" for v in row] for row in grid], dtype=object)
    written = len(pairs) <= MOST_WRITTEN
    figure = go.Figure(go.Heatmap(
        z=grid, x=list(range(len(pairs))), y=list(range(len(strips))),
        customdata=np.repeat(np.array(texts, dtype=object)[None], len(strips), 0),
        text=labels if written else None, texttemplate="%{text}" if written else None,
        colorscale=theme.sequential(), zmin=0, zmax=1, xgap=2, ygap=4,
        hovertemplate="%{customdata}<br><b>%{z:.1%}</b><extra></extra>",
        colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": ".0%",
                  "tickvals": [0, 0.5, 1]}))
    every = max(1, len(pairs) // 20)
    shown = list(range(0, len(pairs), every))
    figure.update_xaxes(title="boundary (between sentences)" + ", in percent" * written,
                        showgrid=False, tickvals=shown, ticktext=[f"{i + 1}|{i + 2}" for i in shown])
    figure.update_yaxes(showgrid=False, autorange="reversed", tickvals=list(range(len(strips))),
                        ticktext=[plotly(shorten(label, 24)) for label, _ in strips])
    return theme.dress(figure, 110 + 48 * len(strips), margin={"l": 10, "r": 10, "t": 8, "b": 10})
