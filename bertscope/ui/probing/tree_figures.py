"""A sentence with the tree that a layer's distances give, drawn over the gold one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bertscope.ui import theme
from bertscope.ui.text import plotly, shorten

#: Points of one arc.
POINTS = 24


def trees(words: Sequence[str], gold: Iterable[tuple[int, int]],
          recovered: dict[str, Iterable[tuple[int, int]]], root: int | None = None):
    """Arcs above the words: grey and broad the gold tree, over it thin ones that were recovered; those
    of a second checkpoint below the words.

    Args:
        words: of the sentence, in order.
        gold: edges (smaller, larger place).
        recovered: the edges of one or two checkpoints by their names.
        root: the place of the gold tree's root, which is set in bold.
    """
    import plotly.graph_objects as go

    gold = set(gold)
    figure = go.Figure()
    for number, (name, edges) in enumerate(recovered.items()):
        edges, side = set(edges), -1 if number else 1
        label = f" ({name})" if len(recovered) > 1 else ""
        _arcs(figure, gold, side, "gold tree", theme.colour("baseline"), 8, "solid", not number,
              0.35)
        _arcs(figure, edges & gold, side, f"recovered{label}", theme.colour("good"), 2.5, "solid", True)
        _arcs(figure, edges - gold, side, f"recovered, not in the gold tree{label}",
              theme.signed()[0][1], 2, "dot", True)
    for place, word in enumerate(words):
        text = plotly(shorten(word, 18))
        figure.add_annotation(x=place, y=0, text=f"<b>{text}</b>" if place == root else text,
                              showarrow=False, font={"size": 13 if len(words) <= 14 else 10},
                              textangle=0 if len(words) <= 14 else -45,
                              bgcolor=theme.colour("background"))
    longest = max([b - a for a, b in gold.union(*map(set, recovered.values()))], default=1)
    top = _height(longest) * 1.1
    figure.update_xaxes(visible=False, range=[-0.7, len(words) - 0.3])
    figure.update_yaxes(visible=False, range=[-top if len(recovered) > 1 else -0.35, top])
    return theme.dress(figure, 330 if len(recovered) == 1 else 520, hovermode="closest")


def _height(distance: int) -> float:
    return 0.35 + 0.5 * distance ** 0.75


def _arcs(figure, edges, side: int, name: str, colour: str, width: float, dash: str,
          legend: bool, opacity: float = 1.0) -> None:
    """One trace of many arcs, with gaps between them."""
    import numpy as np

    xs: list = []
    ys: list = []
    turn = np.linspace(0, np.pi, POINTS)
    for a, b in sorted(edges):
        xs += [*((a + b) / 2 - (b - a) / 2 * np.cos(turn)), None]
        ys += [*(side * (0.3 + _height(b - a) * np.sin(turn) * 0.8)), None]
    figure.add_scatter(x=xs, y=ys, mode="lines", name=plotly(name), legendgroup=name,
                       opacity=opacity, showlegend=legend and bool(edges), hoverinfo="skip",
                       line={"color": colour, "width": width, "dash": dash})
