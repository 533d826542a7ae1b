"""The nearest pieces of a piece in the input table, and since when they are."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import frame
from bertscope.ui.embeddings import Look
from bertscope.ui.embeddings.table_steps import asked, marks
from bertscope.ui.masking import curves
from bertscope.ui.text import markdown

NEAREST, FOLLOWED = 12, 6


def pieces(look: Look, opened: list[dict], typed: str) -> None:
    """The nearest pieces, and since when they are."""
    from bertscope.analysis.input_table import piece_number

    try:
        number = piece_number(look.model, typed)
    except BertScopeError as error:
        frame.show_error(error)
        return
    columns = frame.beside(2, "pieces")
    near = [nearest(side, typed, column) for side, column in zip(opened, columns)][0]
    if look.chosen.run is not None and len(look.chosen.run.checkpoints()) > 1:
        with columns[1] if len(opened) == 1 else st.container():
            followed(look, opened[0], number, near[:FOLLOWED])


def nearest(side: dict, typed: str, column) -> list[int]:
    """A checkpoint's nearest pieces, as a table and as numbers."""
    import pandas as pd

    from bertscope.analysis.input_table import nearest_pieces, piece_number

    with column:
        try:
            number = piece_number(side["model"], typed)
        except BertScopeError as error:
            st.caption(markdown(error))
            return []
        names = side["tables"].names
        st.markdown(f"**Nearest to** “{markdown(names[number])}” :gray[in "
                    f"{markdown(side['choice'].label)}]")
        found = nearest_pieces(side["tables"], number, NEAREST)
        table = pd.DataFrame({"cosine": [c for _, c in found],
                              "piece": [names[i] for i, _ in found]})
        st.dataframe(table, hide_index=True, width="stretch", height=282, column_config={
            "cosine": st.column_config.NumberColumn(format="%.3f", width=80)})
        frame.download_csv(table, f"{side['choice'].stem}-nearest-pieces",
                           key=f"pieces_csv_{side['meaning']}")
    return [i for i, _ in found]


def followed(look: Look, side: dict, number: int, others: list[int]) -> None:
    """The cosines with today's nearest pieces at the run's other checkpoints."""
    from bertscope.analysis.input_table import cosines_with, tables

    names = side["tables"].names

    def ask(model, step):
        return [{"step": step, "piece": names[i], "cosine": float(cosine)}
                for i, cosine in zip(others, cosines_with(tables(model), number, others))]

    table = asked(look, "pieces", (number, *others), ask)
    if table is not None and not table.empty:
        st.altair_chart(curves.lines(table, "cosine", "piece", [names[i] for i in others],
                                     "When they became its nearest", marks(look), zero=False),
                        width="stretch", theme=None)
        frame.download_csv(table, f"{look.chosen.run.name}-nearest-over-steps", key="followed_csv")
