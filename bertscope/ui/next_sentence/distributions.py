"""The picture of the four kinds of pairs: how their scores are distributed, reader by reader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertscope.ui import theme
from bertscope.ui.text import plotly, shorten

if TYPE_CHECKING:
    import numpy as np

    from bertscope.analysis.coherence_summary import Summary

#: What each kind is called, in the order of the picture.
NAMES = {"next": "true next text", "same": "same document", "other": "another document",
         "swapped": "swapped order"}
BINS = 20


def histograms(readers: Sequence[tuple[str, str, np.ndarray, Summary]], yes: str):
    """A row for each kind, a column for each reader: (label, meaning, scores [N, 4], summary).

    Bars on the right side of one half are full, on the wrong side pale. All panels have one scale.
    """
    import numpy as np
    from plotly.subplots import make_subplots

    kinds = list(NAMES)
    figure = make_subplots(len(kinds), len(readers), shared_xaxes=True, shared_yaxes=True,
                           vertical_spacing=0.045, horizontal_spacing=0.04)
    middle = (np.arange(BINS) + 0.5) / BINS
    for column, (label, meaning, scores, summary) in enumerate(readers, start=1):
        colour = theme.colour(meaning)
        for row, kind in enumerate(kinds, start=1):
            counts, _ = np.histogram(scores[:, row - 1], BINS, (0, 1))
            right = (middle > 0.5) == (kind == "next")
            figure.add_bar(
                x=middle, y=counts / len(scores), width=0.9 / BINS, row=row, col=column,
                marker={"color": colour, "opacity": np.where(right, 1.0, 0.35)},
                customdata=np.where(right, "right", "wrong"),
                hovertemplate=f"{plotly(label)}<br>{NAMES[kind]}<br>P about %{{x:.3f}}: %{{y:.1%}} "
                              "of pairs, %{customdata}<extra></extra>")
            found = summary.right[kind]
            figure.add_annotation(
                text=f"<b>{found.value:.0%}</b> right ({100 * found.low:.0f}–{found.high:.0%})",
                xref="x domain", yref="y domain", x=0.5, y=1.0, yanchor="top", showarrow=False,
                font={"size": 13}, bgcolor=theme.colour("background"), borderpad=1, row=row,
                col=column)
            figure.add_vline(0.5, row=row, col=column,
                             line={"dash": "dash", "color": theme.colour("text"), "width": 1})
        figure.add_annotation(text=f"<b>{plotly(shorten(label, 30))}</b>", x=0.5, y=1.22,
                              xref="x domain", yref="y domain", showarrow=False,
                              font={"color": colour, "size": 14}, row=1, col=column)
    for row, kind in enumerate(kinds, start=1):
        figure.update_yaxes(title={"text": NAMES[kind].replace(" ", "<br>", 1), "standoff": 4},
                            row=row, col=1)
    highest = max(float(trace.y.max()) for trace in figure.data)
    figure.update_yaxes(range=[0, 1.25 * highest], showticklabels=False, showgrid=False,
                        fixedrange=True, zeroline=True)
    figure.update_xaxes(range=[0, 1], tickvals=[0, 0.5, 1], showgrid=False, fixedrange=True)
    figure.update_xaxes(ticktext=["0", "½", "1"], row=len(kinds))
    figure.add_annotation(text=f"score for “{plotly(yes)}”", x=0.5, y=0, xref="paper",
                          yref="paper", yshift=-42, showarrow=False)
    return theme.dress(figure, 560, showlegend=False, bargap=0, dragmode=False,
                       margin={"l": 10, "r": 10, "t": 40, "b": 50})


def comparisons(readers: Sequence[tuple[str, str, Summary]]):
    """How often the true pair has the higher score than one of each other kind, with intervals."""
    import plotly.graph_objects as go

    kinds = ["other", "same", "swapped"]
    figure = go.Figure()
    for number, (label, meaning, summary) in enumerate(readers):
        found = [summary.auc[kind] for kind in kinds]
        shift = 0.22 * (number - (len(readers) - 1) / 2)
        figure.add_scatter(
            x=[e.value for e in found], y=[row + shift for row in range(len(kinds))],
            mode="markers", name=plotly(label), marker={"size": 11, "color": theme.colour(meaning)},
            error_x={"type": "data", "symmetric": False, "array": [e.high - e.value for e in found],
                     "arrayminus": [e.value - e.low for e in found], "thickness": 2},
            customdata=[[e.low, e.high] for e in found],
            hovertemplate=plotly(label) + ": %{x:.1%} (%{customdata[0]:.1%} to %{customdata[1]:.1%})"
                          "<extra></extra>")
    figure.add_vline(0.5, line={"dash": "dash", "color": theme.colour("text"), "width": 1.2})
    figure.update_yaxes(tickvals=list(range(len(kinds))), autorange="reversed", showgrid=False,
                        zeroline=False, ticktext=[f"against: {NAMES[kind]}" for kind in kinds],
                        fixedrange=True)
    lowest = min(e.low for *_, summary in readers for e in summary.auc.values())
    figure.update_xaxes(tickformat=".0%", range=[min(0.4, lowest - 0.03), 1.02], fixedrange=True,
                        title="true pair higher (50% is chance)")
    return theme.dress(figure, 260, dragmode=False)
