"""Figures of probing: curves over layers, maps of layers and steps, confusions, intervals in a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from bertscope.ui import theme
from bertscope.ui.text import plotly

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def layers(curves: Sequence[tuple[str, str, str, pd.DataFrame]],
           references: Sequence[tuple[str, float]], title: str, whole: bool = False,
           best: Sequence[int] = (), form: str = ".1%"):
    """A score over layers with 95 % intervals; the best set is shaded.

    Args:
        curves: (name, meaning of the colour, dash, table with layer, value, low, high); no interval
            is drawn where low and high are missing.
        references: horizontal lines (label, value).
        whole: from 0 to 1; else as much as the curves need, a reference below that is written out.
        best: layers that are not significantly below the best one.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    for start, end in _runs(best):
        figure.add_vrect(start - 0.4, end + 0.4, fillcolor=theme.colour("main"), opacity=0.13,
                         line_width=0, layer="below")
    for name, meaning, dash, table in curves:
        colour = theme.colour(meaning)
        bars = {"type": "data", "symmetric": False, "array": table.high - table.value,
                "arrayminus": table.value - table.low, "color": colour, "thickness": 1.2}
        figure.add_scatter(
            x=table.layer, y=table.value, mode="lines+markers", name=plotly(name),
            line={"color": colour, "dash": dash, "width": 2.5}, marker={"size": 8},
            error_y=bars if table.low.notna().any() else None,
            hovertemplate="layer %{x}: %{y:" + form + "}<extra>" + plotly(name) + "</extra>")
    low, high = _room([t for *_, t in curves], references, form)
    if form == ".1%":  # above 100 % is room for a dot and its interval, and for no tick
        low = 0.0 if whole else low
        high = 1 + 0.02 * (1 - low) if whole or high > 1 else high
    _references(figure, references, low, high, form)
    most = max((int(t.layer.max()) for *_, t in curves), default=1)
    figure.update_xaxes(title="layer (0 = embeddings)", range=[-0.45, most + 0.45], zeroline=False,
                        tickvals=list(range(most + 1)) if most <= 24 else None, showgrid=False)
    figure.update_yaxes(tickformat=".1~%" if form == ".1%" else ".3~f", title_text=plotly(title),
                        range=[low, high])
    return theme.dress(figure, 430)


def _references(figure, references, low: float, high: float, form: str) -> None:
    """Grey lines with their names at the right; those below the figure are written at its foot."""
    written: dict[str, tuple[float, list[str]]] = {}
    for label, value in references:  # alike, they would be written one over the other
        written.setdefault(format(value, form), (value, []))[1].append(label)
    lines = [(value, f"{plotly(', '.join(names))} {text}") for text, (value, names) in written.items()]
    note = {"showarrow": False, "xref": "paper", "font": {"color": theme.colour("baseline"), "size": 12}}
    sides = _sides([value for value, _ in lines], CLOSE * (high - low))
    for number, ((value, text), side) in enumerate(zip(lines, sides, strict=True)):
        if value >= low:
            figure.add_hline(value, line={"dash": ("dot", "dash", "longdash", "dashdot")[number % 4],
                                          "color": theme.colour("baseline"), "width": 1.4})
            figure.add_annotation(text=text, y=value, **side, **note)
    if below := [text for value, text in lines if value < low]:
        figure.add_annotation(text=" · ".join(below) + " ↓", y=0, yref="paper", **ABOVE, **note)


#: Lines nearer to each other than this share of the axis cannot both have their name above them.
CLOSE = 0.06
ABOVE = {"x": 1, "xanchor": "right", "yanchor": "bottom"}
BELOW, LEFT = {**ABOVE, "yanchor": "top"}, {**ABOVE, "x": 0, "xanchor": "left"}


def _sides(values: Sequence[float], close: float) -> list[dict]:
    """Where each line's name goes so that none covers another: above its line, else below it, else left."""
    sides: dict[int, dict] = {}
    before, above = None, ABOVE
    for place in sorted(range(len(values)), key=values.__getitem__, reverse=True):
        near = before is not None and values[before] - values[place] < close
        above = ABOVE if not near else BELOW if above is ABOVE else LEFT
        sides[place], before = above, place
    return [sides[place] for place in range(len(values))]


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Runs of consecutive numbers: ``[1, 2, 4]`` -> ``[(1, 2), (4, 4)]``."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def _room(tables, references, form: str) -> tuple[float, float]:
    """The range of the curves with their intervals, and of the references just above them; of what is
    no share all references."""
    low = min(float(t.low.fillna(t.value).min()) for t in tables)
    high = max([float(t.high.fillna(t.value).max()) for t in tables]
               + [value for _, value in references])
    if form != ".1%":
        low = min([low] + [value for _, value in references])
    pad = max(0.02, 0.12 * (high - low))
    return low - pad if low < 0 else max(0.0, low - pad), high + pad


def over_steps(values: np.ndarray, layers: Sequence[int], steps: Sequence[int], title: str,
               marks: Sequence[tuple[int, str]] = (), best: np.ndarray | None = None,
               span: tuple[float, float] | None = None):
    """Layers down, checkpoints across, equally wide. values float [layers, steps].

    Args:
        best: bool [layers, steps], cells of the best set of the whole map, which get a dot.
        span: the values of the two ends of the colours; the same for maps side by side.
        marks: (step, meaning of the colour) of the checkpoints that the page looks at.
    """
    import plotly.graph_objects as go

    names = [f"{step:,}" for step in steps]
    low, high = span or (float(values.min()), float(values.max()))
    figure = go.Figure(go.Heatmap(
        z=values, x=names, y=[str(layer) for layer in layers], colorscale=theme.sequential(),
        zmin=low, zmax=max(high, low + 0.01), xgap=1, ygap=1,
        hovertemplate="step %{x}, layer %{y}: %{z:.1%}<extra></extra>",
        colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": ".0%"}))
    if best is not None and best.any():
        rows, columns = best.nonzero()
        figure.add_scatter(
            x=[names[c] for c in columns], y=[str(layers[r]) for r in rows], mode="markers",
            marker={"color": theme.colour("background"), "size": 6,
                    "line": {"color": theme.colour("text"), "width": 1}},
            name="not significantly below the best", hoverinfo="skip")
    for step, meaning in marks:
        if step in steps:
            at = list(steps).index(step)
            figure.add_vrect(at - 0.5, at + 0.5, fillcolor="rgba(0,0,0,0)",
                             line={"color": theme.colour(meaning), "width": 2})
    figure.update_xaxes(type="category", title="training step", showgrid=False)
    figure.update_yaxes(type="category", title="layer", showgrid=False)
    return theme.dress(figure, 110 + 34 * len(layers), title_text=plotly(title),
                       margin={"l": 10, "r": 10, "t": 60, "b": 10})


def intervals(rows: Sequence[tuple[str, float, float, float, str]], title: str,
              range_: tuple[float, float] | None = None, form: str = ".2f", height: int = 0,
              beside: Sequence[tuple[str, float, str]] = (), called: Mapping[str, tuple[str, str]] = {},
              place: Callable = float):
    """A dot with its interval for each name, the first on top.

    Args:
        rows: (name, value, low, high, meaning of the colour); rows of one name share a line. Where
            the value is nan the name has no dot.
        beside: (name, value, meaning) of hollow marks without an interval.
        called: for the legend, what dots and hollow marks are, by the meaning of the colour.
        place: where on the axis a value is.
    """
    import plotly.graph_objects as go

    names = list(dict.fromkeys(name for name, *_ in rows))
    meanings = list(dict.fromkeys(row[4] for row in rows))
    figure = go.Figure()
    for meaning in meanings:
        own, colour = [row for row in rows if row[4] == meaning], theme.colour(meaning)
        dots, hollow = (plotly(name) for name in called.get(meaning, ("", "")))
        shift = {"main": -0.12, "other": 0.12}.get(meaning, 0.0) if len(meanings) > 1 else 0.0
        at, low, high = ([place(row[number]) for row in own] for number in (1, 2, 3))
        figure.add_scatter(
            x=at, y=[names.index(row[0]) + shift for row in own],
            mode="markers", marker={"size": 11, "color": colour}, name=dots, showlegend=bool(dots),
            customdata=[(plotly(row[0]), *row[1:4]) for row in own],
            error_x={"type": "data", "symmetric": False, "thickness": 1.6, "color": colour,
                     "array": [b - a for a, b in zip(at, high)],
                     "arrayminus": [a - b for a, b in zip(at, low)]},
            hovertemplate="%{customdata[0]}: %{customdata[1]:" + form + "} (%{customdata[2]:" + form
                          + "} to %{customdata[3]:" + form + "})<extra></extra>")
        if marks := [mark for mark in beside if mark[2] == meaning]:
            figure.add_scatter(
                x=[place(mark[1]) for mark in marks], y=[names.index(mark[0]) + shift for mark in marks],
                mode="markers", marker={"size": 10, "symbol": "diamond-open", "color": colour,
                                        "line": {"width": 2}},
                name=hollow, hovertemplate=hollow + " %{x:" + form + "}<extra></extra>")
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=[plotly(n) for n in names],
                        autorange="reversed", zeroline=False, showgrid=False)
    figure.update_xaxes(title=plotly(title), zeroline=False, range=range_)
    return theme.dress(figure, height or 90 + 34 * len(names))


def mix(curves: Sequence[tuple[str, str, pd.DataFrame]]):
    """Two panels over the layers: their weights in the mix of all, and what each adds to those below.

    Args:
        curves: (name, meaning of the colour, the rows of one checkpoint in ``Result.mixes``).
    """
    from plotly.subplots import make_subplots

    figure = make_subplots(1, 2, subplot_titles=("weight in the mix", "gain over the layers below"))
    for name, meaning, table in curves:
        look = {"name": plotly(name), "marker": {"color": theme.colour(meaning)}, "legendgroup": name}
        figure.add_bar(x=table.layer, y=table.weight, showlegend=len(curves) > 1, **look, row=1, col=1,
                       hovertemplate="layer %{x}: %{y:.3f}<extra></extra>")
        bars = {"type": "data", "symmetric": False, "array": table.gain_high - table.gain,
                "arrayminus": table.gain - table.gain_low, "color": theme.colour("text"), "thickness": 1.2}
        figure.add_bar(x=table.layer, y=table.gain, showlegend=False, **look, row=1, col=2,
                       error_y=bars if table.gain_low.notna().any() else None,
                       hovertemplate="layer %{x}: %{y:+.1%}<extra></extra>")
    figure.update_xaxes(title="layer (0 = embeddings)", showgrid=False, zeroline=False, dtick=1,
                        range=[-0.6, max(t.layer.max() for *_, t in curves) + 0.6])
    figure.update_yaxes(tickformat=".1~%", zeroline=True, col=2)
    figure.update_annotations(font_size=13)
    return theme.dress(figure, 280, margin={"l": 10, "r": 10, "t": 50, "b": 10},
                       legend={"orientation": "h", "y": 1.12, "yanchor": "bottom", "x": 0})


def onsets(rows: Sequence[tuple[str, float, float, float, str]], title: str):
    """``intervals`` of training steps, on an axis of log(step + 1), which has room for step 0."""
    from math import log1p

    figure = intervals(rows, title, form=",.0f", place=log1p)
    steps = step_ticks(min(row[2] for row in rows), max(row[3] for row in rows))
    figure.update_xaxes(tickvals=[log1p(step) for step in steps], ticktext=[f"{step:,}" for step in steps])
    return figure


def step_ticks(low: float, high: float) -> list[int]:
    """Round steps from ``low`` to ``high``: powers of ten, and 2 and 5 times those where they are few."""
    ladder = [0, *(times * 10 ** power for power in range(10) for times in (1, 2, 5))]
    inside = [step for step in ladder if low <= step <= high]
    coarse = [step for step in inside if str(step)[0] in "01"]
    return coarse if len(coarse) > 2 else inside or [round(low)]


def confusion(counts: np.ndarray, names: Sequence[str], title: str):
    """Row = the gold label, column = the answer; colours are shares of the row. counts int [K, K]."""
    import numpy as np
    import plotly.graph_objects as go

    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    labels, size = [plotly(name) for name in names], len(names)
    figure = go.Figure(go.Heatmap(
        z=shares, customdata=np.stack(_named(labels), -1),
        text=[[f"{n:,}" if n else "" for n in row] for row in counts.tolist()],
        colorscale=theme.sequential(), zmin=0, zmax=1, xgap=1, ygap=1,
        texttemplate="%{text}" if size <= 20 else None, textfont={"size": 11},
        hovertemplate="gold %{customdata[0]}, answer %{customdata[1]}: %{text} (%{z:.1%})"
                      "<extra></extra>",
        colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": ".0%"}))
    axis = {"tickvals": list(range(size)), "ticktext": labels, "showgrid": False, "zeroline": False}
    figure.update_xaxes(**axis, title="answer", side="top", tickangle=-45)
    figure.update_yaxes(**axis, title="gold", autorange="reversed")
    return theme.dress(figure, 170 + 26 * size, title={"text": plotly(title), "y": 1, "yanchor": "top",
                                                       "pad": {"t": 4}},
                       margin={"l": 10, "r": 10, "t": 64 if title else 40, "b": 10})


def _named(labels: Sequence[str]):
    """The gold label and the answer of each cell: two object arrays [K, K]."""
    import numpy as np

    names = np.array(labels, dtype=object)
    return np.repeat(names[:, None], len(names), 1), np.repeat(names[None], len(names), 0)
