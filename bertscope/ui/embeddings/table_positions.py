"""Position and segment vectors: how alike they are, by their distance and over the training."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import frame, theme
from bertscope.ui.embeddings import Look, figures
from bertscope.ui.embeddings.table_steps import asked, marks
from bertscope.ui.masking import curves
from bertscope.ui.text import markdown

#: Positions on the map.
MOST_POSITIONS = 256
#: Distances between positions that are followed over the checkpoints.
APART = (1, 2, 4, 8, 16)


def positions(look: Look, opened: list[dict]) -> None:
    """Maps of the positions beside each other, and how alike they are by their distance."""
    st.markdown("##### Positions and segments")
    columns = frame.beside(2, "positions")
    series = [line for side, column in zip(opened, columns)
              if (line := position_map(side, column)) is not None]
    if not series:
        return
    with columns[1] if len(opened) == 1 else st.container():
        frame.figure(figures.lines(series, "Mean cosine of positions that are so far apart",
                                   "positions apart", height=240),
                     "positions-apart", "positions_apart")
        if look.chosen.run is not None and len(look.chosen.run.checkpoints()) > 1 and \
                opened[0]["tables"].positions is not None:
            positions_over_steps(look)


def position_map(side: dict, column):
    """One checkpoint's positions; returns its curve by distance, None without positions."""
    from bertscope.analysis.input_table import by_distance, position_similarity

    with column:
        segments(side)
        similarity = position_similarity(side["tables"], MOST_POSITIONS)
        if similarity is None:
            st.caption(":material/info: This model adds no position vectors: its attention "
                       "compares how far apart two pieces are instead.")
            return None
        places = list(range(1, len(similarity) + 1))
        figure = figures.heat(similarity, places, places,
                              f"Cosine of positions, {side['choice'].label}", "position",
                              "position", -1, 1, signed=True, square=True, height=460)
        figure.update_traces(xgap=0, ygap=0, x=places, y=places)
        figure.update_xaxes(type="linear", nticks=8)
        figure.update_yaxes(type="linear", autorange="reversed", nticks=8)
        frame.figure(figure, f"{side['choice'].stem}-positions", f"positions_{side['meaning']}")
    apart = by_distance(similarity)[:64]
    return (side["choice"].label, range(len(apart)), apart, theme.colour(side["meaning"]), "solid")


def positions_over_steps(look: Look) -> None:
    """How alike near and far positions were at the run's checkpoints."""
    import pandas as pd

    from bertscope.analysis.input_table import by_distance, position_similarity, tables

    def ask(model, step):
        apart = by_distance(position_similarity(tables(model), MOST_POSITIONS))
        return [{"step": step, "apart": f"{k} apart", "cosine": float(apart[k])}
                for k in APART if k < len(apart)]

    table = asked(look, "positions", (), ask)
    if table is not None and not table.empty:
        order = [f"{k} apart" for k in APART]
        title = "Cosine of positions that are so far apart"
        st.altair_chart(curves.lines(table, "cosine", "apart", order, title, marks(look),
                                     zero=False), width="stretch", theme=None)
        frame.download_csv(pd.DataFrame(table), f"{look.chosen.run.name}-positions-over-steps",
                           key="positions_csv")


def segments(side: dict) -> None:
    """How different the two segments' vectors are, in words."""
    import numpy as np

    from bertscope.analysis.embeddings import unit_length

    table = side["tables"].segments
    if table is None or len(table) < 2:
        st.caption(f"{markdown(side['choice'].label)}: no two segment vectors.")
        return
    unit = unit_length(table[:2].astype(np.float64))
    length = np.linalg.norm(table[:2], axis=1)
    st.caption(f"{markdown(side['choice'].label)}: the vectors of segments A and B have the lengths "
               f"{length[0]:.2f} and {length[1]:.2f}, and the cosine {float(unit[0] @ unit[1]):.2f}.")
