"""The figure of a movement: a map for each step, played or moved by a slider, with trails."""

from __future__ import annotations

from bertscope.ui import theme
from bertscope.ui.embeddings import figures
from bertscope.ui.text import shorten

#: Milliseconds for one step of the animation, half of them for the way there.
FRAME = 700


def like(coordinates, side: dict, first: dict):
    """A second path, as a whole turned so that its reference map lies as the first one's does,
    over the texts that both have."""
    import numpy as np

    from bertscope.analysis.alignment import rotation

    both, here, there = np.intersect1d(side["numbers"], first["numbers"], return_indices=True)
    if len(both) < 3:
        return coordinates
    own = coordinates[side["reference"]][here]
    target = first["path"].coordinates[first["reference"]][there]
    return coordinates @ rotation(own, target)


def animation(coordinates, side: dict, found, label: str | None, boxes, trails: list[int], x: str,
              narrow: bool):
    """Points at the reference step, with a frame for each step, *play*, and a slider.

    Args:
        coordinates: [S, N, d].
        side: ``steps``, ``reference`` and ``numbers`` of the texts.
        trails: places of the texts whose way is drawn.
    """
    import numpy as np
    import plotly.graph_objects as go

    numbers, reference = side["numbers"], side["reference"]
    values = found.table[label].iloc[numbers].reset_index(drop=True) if label else None
    reach = 1.06 * float(np.abs(coordinates).max()) or 1.0
    figure = figures.cloud(coordinates[reference], values, label, [boxes[n] for n in numbers],
                           [int(n) for n in numbers], narrow=narrow, reach=reach, height=640)
    parts = [rows for rows, *_ in figures.groups(values, label, len(numbers),
                                                 coordinates.shape[2] == 3)]
    if trails:
        for trace in figure.data:
            trace.marker.opacity = 0.35
    for number, place in enumerate(trails):
        trail(figure, coordinates[:, place], found.rows[numbers[place]], side["steps"], number,
              len(numbers) > figures.MANY)
    if trails:  # where those texts are now, by their numbers
        figures.add(figure, coordinates[reference][trails], [str(i + 1) for i in range(len(trails))],
                    [int(numbers[p]) for p in trails], "now",
                    {"size": 11, "color": theme.categories(len(trails)),
                     "line": {"width": 1.5, "color": theme.colour("text")}}, False, False,
                    mode="markers+text", textposition="top center",
                    textfont={"size": 14, "color": theme.colour("text")},
                    hovertext=[boxes[numbers[p]] for p in trails],
                    hovertemplate="%{hovertext}<extra></extra>")
        parts = [*parts, trails]
    moved = [*range(len(parts) - bool(trails)), *([len(figure.data) - 1] if trails else [])]
    figure.frames = [go.Frame(name=str(step), traces=moved, data=[
        _at(type(figure.data[trace]), coordinates[s][rows]) for trace, rows in zip(moved, parts)])
        for s, step in enumerate(side["steps"])]
    return _played(figure, side["steps"], reference, x, narrow)


def trail(figure, way, text: str, steps, number: int, many: bool) -> None:
    """The way of one text, [S, d], with a dot at each step."""
    colour = theme.categories(number + 1)[-1]
    figures.add(figure, way, [f"{step:,}" for step in steps], [-1] * len(steps), shorten(text, 36),
                {"size": 4, "color": colour}, False, many, mode="lines+markers",
                line={"color": colour, "width": 2}, opacity=0.75)


def _at(kind, points):
    import numpy as np

    return kind(**dict(zip("xyz", np.asarray(points, np.float32).T)))


def _played(figure, steps, reference: int, x: str, narrow: bool):
    """Play, pause and a slider below the map; WebGL has no gradual transitions."""
    smooth = type(figure.data[0]).__name__ == "Scatter"
    way = FRAME // 2 if smooth else 0

    def options(duration: int, transition: int) -> dict:
        return {"mode": "immediate", "fromcurrent": True,
                "frame": {"duration": duration, "redraw": not smooth},
                "transition": {"duration": transition, "easing": "cubic-in-out"}}

    button = {"type": "buttons", "direction": "left", "showactive": False, "x": 0, "y": -0.03,
              "xanchor": "left", "yanchor": "top", "pad": {"t": 28, "r": 8},
              "bgcolor": theme.colour("background"), "font": {"color": theme.colour("text")},
              "buttons": [
                  {"label": "▶", "method": "animate", "args": [None, options(FRAME, way)]},
                  {"label": "❚❚", "method": "animate", "args": [[None], options(0, 0)]}]}
    left = 0.3 if narrow else 0.22
    slider = {"active": reference, "x": left, "len": 1 - left, "y": -0.03, "pad": {"t": 24},
              "currentvalue": {"prefix": f"{x} ", "font": {"size": 14}},
              "font": {"size": 11, "color": theme.colour("text")},
              "bgcolor": theme.colour("grid"), "activebgcolor": theme.colour("main"),
              "steps": [{"label": f"{step:,}", "method": "animate",
                         "args": [[str(step)], options(way, way)]} for step in steps]}
    rows = -(-sum(bool(trace.showlegend) for trace in figure.data) // 3)  # of the legend, below
    return figure.update_layout(
        updatemenus=[button], sliders=[slider], margin_b=120 + 20 * rows, height=600 + 20 * rows,
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"})


def losses(laid: list[dict], x: str):
    """What each map holds of its step: share of the variance, and trustworthiness."""
    series = []
    for side in laid:
        name = f"{side['choice'].label}: " if len(laid) > 1 else ""
        colour, path = theme.colour(side["meaning"]), side["path"]
        if path.kept is not None:
            series.append((f"{name}share of the variance on the map", side["steps"], path.kept,
                           colour, "solid"))
        series.append((f"{name}trustworthiness", side["steps"], path.trust, colour, "dot"))
    return figures.lines(series, f"What the maps hold of each {x.rsplit(' ', 1)[-1]}", x, ".0%",
                         -0.03, 1.05, 240, steps=x != "layer")


def table(coordinates, side: dict, found, x: str):
    """A row for each text at each step."""
    import numpy as np
    import pandas as pd

    steps, numbers = side["steps"], side["numbers"]
    count, size = len(numbers), coordinates.shape[2]
    flat = coordinates.reshape(-1, size)
    return pd.DataFrame({
        x: np.repeat(steps, count), "number": np.tile(numbers, len(steps)),
        **{f"map {letter}": flat[:, i].round(5) for i, letter in enumerate("xyz"[:size])},
        "text": np.tile(np.array([found.rows[n] for n in numbers], object), len(steps))})
