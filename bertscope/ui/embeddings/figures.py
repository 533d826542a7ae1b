"""Maps of many points, flat or in space, by WebGL where they are many."""

from __future__ import annotations

from collections.abc import Sequence

from bertscope.ui import theme
from bertscope.ui.text import hover, plotly

#: Above so many points a flat map is drawn by WebGL; below it is SVG, which is saved as SVG.
MANY = 2000
#: What Plotly draws in space.
SYMBOLS_3D = ("circle", "diamond", "square", "cross", "x")
#: Distinct names that get a colour and a line in the legend each; the rest are one grey.
MOST_NAMES = 40


def boxes(texts: Sequence[str]) -> list[str]:
    """What the mouse shows at each point; short where the points are many."""
    return [hover(text, lines=2 if len(texts) > MANY else 6) for text in texts]


def cloud(coordinates, values, title: str | None, texts: Sequence[str], numbers: Sequence[int],
          axes: tuple[str, ...] = ("", "", ""), narrow: bool = False, found: Sequence[int] = (),
          picked: int | None = None, reach: float | None = None, height: int = 560):
    """A map of N points.

    Args:
        coordinates: [N, 2] or [N, 3].
        values: N labels, a pandas Series; None for one colour. Numbers get a scale, words a colour
            and a symbol each.
        title: the label's name.
        texts: N boxes as :func:`boxes` makes them.
        numbers: what each point is called in events (``customdata``).
        found: places (0 to N - 1) of points that are ringed, the others pale.
        picked: the place of one point with a ring of its own.
        reach: the axes go from minus this to this; as far as the points do by default.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    strong, space = set(found), coordinates.shape[1] == 3
    for rows, name, marker in groups(values, title, len(coordinates), space):
        faint = 0.85 if not strong else 0.18 if space else [
            0.9 if i in strong else 0.18 for i in rows]  # in space a trace has one opacity
        add(figure, coordinates[rows], [texts[i] for i in rows], [numbers[i] for i in rows], name,
            {"size": size(len(coordinates), coordinates.shape[1]), "opacity": faint, **marker},
            legend=values is not None and not _numeric(values), many=len(coordinates) > MANY)
    for rows, name, ring in ((list(found), f"found ({len(found):,})", 1.5),
                             ([] if picked is None else [picked], "chosen", 3)):
        if rows:
            add(figure, coordinates[rows], [texts[i] for i in rows], [numbers[i] for i in rows],
                name, {"symbol": "circle-open", "size": 13, "color": theme.colour("text"),
                       "line": {"width": ring}}, legend=True, many=len(rows) > MANY)
    legend = {"orientation": "h", "y": -0.12, "yanchor": "top"} if narrow else \
        {"orientation": "v", "itemsizing": "constant"}
    theme.dress(figure, height, legend=legend, margin={"l": 10, "r": 10, "t": 30, "b": 10},
                modebar={"bgcolor": "rgba(0,0,0,0)", "color": theme.colour("baseline"),
                         "activecolor": theme.colour("main")})
    return _space(figure, axes, reach) if space else _flat(figure, axes, reach)


def size(count: int, dimensions: int) -> float:
    """The diameter of a point, in pixels."""
    flat = 8 if count <= 1000 else 6 if count <= 4000 else 4
    return flat if dimensions == 2 else max(2.5, flat * 0.6)


def groups(values, title, count: int, space: bool):
    """(places, name, what is particular about its marker) of each trace of points."""
    if values is None:
        return [(list(range(count)), "", {"color": theme.colour("main")})]
    if _numeric(values):
        return [(list(range(count)), "", {
            "color": values.astype(float).to_numpy(), "colorscale": "Cividis",
            "colorbar": {"title": plotly(title), "thickness": 10, "outlinewidth": 0, "len": 0.7}})]
    names, symbols = values.fillna("none").astype(str), SYMBOLS_3D if space else theme.SYMBOLS
    colours, made = len(theme.CATEGORIES), []
    order = list(names.value_counts().index)
    for number, name in enumerate(order[:MOST_NAMES]):
        made.append(([i for i, own in enumerate(names) if own == name], name, {
            "color": theme.categories(number + 1)[-1],
            "symbol": symbols[number // colours % len(symbols)]}))
    rest = set(order[MOST_NAMES:])
    if rest:
        made.append(([i for i, own in enumerate(names) if own in rest],
                     f"{len(rest):,} other values", {"color": theme.colour("baseline")}))
    return made


def _numeric(values) -> bool:
    import pandas as pd

    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def add(figure, points, texts, numbers, name: str, marker: dict, legend: bool, many: bool,
        **more) -> None:
    """A trace of points; float32, since no screen shows more."""
    import numpy as np
    import plotly.graph_objects as go

    columns = dict(zip("xyz", np.asarray(points, np.float32).T))
    kind = go.Scatter3d if len(columns) == 3 else go.Scattergl if many else go.Scatter
    figure.add_trace(kind(**columns, **{
        "mode": "markers", "name": plotly(name), "text": texts, "customdata": numbers,
        "marker": marker, "showlegend": legend,
        "hovertemplate": "%{text}<extra>" + plotly(name) + "</extra>", **more}))


def _flat(figure, axes, reach):
    limit = None if reach is None else [-reach, reach]
    figure.update_xaxes(title=axes[0], zeroline=False, showticklabels=False, range=limit)
    figure.update_yaxes(title=axes[1], zeroline=False, showticklabels=False, range=limit,
                        scaleanchor="x")
    return figure  # dragging moves: where it gathers, Streamlit takes no clicks


def _space(figure, axes, reach):
    axis = {"showticklabels": False, "zeroline": False, "gridcolor": theme.colour("grid"),
            "backgroundcolor": "rgba(0,0,0,0)", "showspikes": False,
            "range": None if reach is None else [-reach, reach]}
    return figure.update_layout(dragmode="orbit", scene={
        "aspectmode": "data" if reach is None else "cube",
        **{f"{letter}axis": {**axis, "title": {"text": name}} for letter, name in zip("xyz", axes)}})


def config(name: str, space: bool = False) -> dict:
    """Plotly's toolbar, always in sight, with the lasso and the box; the wheel zooms in space only.
    """
    return {**theme.plotly_config(name), "scrollZoom": space, "displayModeBar": True,
            "modeBarButtonsToRemove": ["autoScale2d"]}


def lines(series, title: str, x: str, tick: str = ".2f", low: float | None = None,
          high: float | None = None, height: int = 300, steps: bool = False):
    """Curves over layers: ``series`` is [(name, xs, ys, colour, dash)]. With ``steps`` the xs are
    training steps, drawn at the logarithm of step + 1: learning happens early."""
    import numpy as np
    import plotly.graph_objects as go

    from bertscope.ui import charts

    figure = go.Figure()
    for name, xs, ys, colour, dash in series:
        xs = np.asarray(list(xs))
        figure.add_scatter(x=np.log10(xs + 1.0) if steps else xs, y=list(ys), name=plotly(name),
                           customdata=xs, mode="lines+markers", marker={"size": 7},
                           line={"color": colour, "dash": dash, "width": 2.4},
                           hovertemplate=f"{plotly(x)} %{{customdata:,}}: %{{y:{tick}}}"
                                         f"<extra>{plotly(name)}</extra>")
    every = [value for _, xs, *_ in series for value in xs]
    places = charts.ticks(every) if steps else list(range(int(max(every)) + 1))
    if steps or len(places) <= 25:
        figure.update_xaxes(tickvals=[float(np.log10(p + 1)) for p in places] if steps else places,
                            ticktext=[f"{p:,}" for p in places])
    figure.update_xaxes(title=x, showgrid=False, zeroline=False)
    figure.update_yaxes(tickformat=tick, range=None if low is None else [low, high])
    named = 19 * len(series) if len(series) > 1 else 0  # the legend stands between title and curves
    return theme.dress(figure, height + named, title_text=plotly(title), dragmode=False,
                       title_y=0.995, title_yanchor="top",
                       legend={"orientation": "v", "y": 1, "yanchor": "bottom", "x": 0},
                       margin={"l": 10, "r": 10, "t": 34 + named, "b": 10})


def heat(z, xs, ys, title: str, x: str, y: str, low: float, high: float, tick: str = ".2f",
         signed: bool = False, square: bool = False, height: int | None = None):
    """A heat map with names along both axes; NaN is blank."""
    import numpy as np
    import plotly.graph_objects as go

    figure = go.Figure(go.Heatmap(
        z=np.asarray(z, np.float32), x=[plotly(n) for n in xs], y=[plotly(n) for n in ys],
        colorscale=theme.diverging() if signed else theme.sequential(), zmin=low, zmax=high,
        colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": tick}, xgap=1, ygap=1,
        hovertemplate=f"{plotly(y)} %{{y}}, {plotly(x)} %{{x}}: %{{z:{tick}}}<extra></extra>"))
    figure.update_xaxes(title=plotly(x), type="category", showgrid=False,
                        **({"constrain": "domain"} if square else {}))
    figure.update_yaxes(title=plotly(y), type="category", showgrid=False,
                        **({"scaleanchor": "x", "constrain": "domain"} if square else {}))
    return theme.dress(figure, height or max(190, 110 + 26 * len(ys)), title_text=plotly(title),
                       dragmode=False, margin={"l": 10, "r": 10, "t": 36, "b": 10})
