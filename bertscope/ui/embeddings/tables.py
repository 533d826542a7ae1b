"""The input tables: vectors of pieces, segments and positions before any context."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import compared, frame, loaders, looking, texts, theme, waiting
from bertscope.ui.embeddings import Look, figures, measured
from bertscope.ui.embeddings.sources import row
from bertscope.ui.masking import curves
from bertscope.ui.text import hover, markdown, plotly

NEAREST, FOLLOWED = 12, 6
#: Positions on the map, and pieces in the cloud of lengths.
MOST_POSITIONS, MOST_PIECES = 256, 8000
#: Distances between positions that are followed over the checkpoints.
APART = (1, 2, 4, 8, 16)
EXPLANATION = r"""
Before the first layer, a piece is the sum of three rows of learnt tables: its own vector, its
segment's (A or B) and its position's (Devlin et al. 2019, section 3.2). These rows are the same in
every text.

*Nearest pieces* are by cosine of the pieces' own vectors, in all dimensions, out of the whole
vocabulary. Pieces that a model has hardly seen still stand near where they were drawn at random, so
a rare piece's neighbours mean nothing.

*Positions*: the cosine of every position's vector with every other's. A bright band along the
diagonal says that near positions have learnt to be alike; a model that reads short texts never
trains its late positions (Wang and Chen 2020 compare several models).

*Length and frequency*: how often the run had seen a piece by this step, and the Euclidean length
of its vector; the correlation is Spearman's, of the ranks. Rare pieces move little from where
they began.
"""


def show(look: Look) -> None:
    words = [example.answer for example in texts.fills(look.chosen)[:3]]
    if words:
        frame.try_this(*((word, lambda word=word: frame.set_state(of_piece=word))
                         for word in words))
    typed = st.text_input("Piece", words[0] if words else "the", key="of_piece", max_chars=100,
                          width=200, bind="query-params",
                          help="A word, or a piece as it is in the vocabulary: ##ing, [MASK].")
    looking.what(look.chosen, look.model)
    opened = [side for choice, meaning in look.sides
              if (side := open_tables(look, choice, meaning)) is not None]
    if typed.strip():
        pieces(look, opened, typed)
    else:
        st.info("Type a piece.", icon=":material/edit:")
    st.divider()
    positions(look, opened)
    st.divider()
    lengths(look, opened)


def open_tables(look: Look, choice, meaning: str) -> dict | None:
    """A checkpoint's tables; None, with a sentence, for a second one that has none.

    Raises:
        BertScopeError: the first checkpoint has none.
    """
    from bertscope.analysis.input_table import tables

    with compared.aside(choice, meaning):
        model = look.model if meaning == "main" else loaders.model(choice)
        return {"choice": choice, "meaning": meaning, "model": model, "tables": loaders.keep(
            ("tables", choice.path, loaders.stamp(choice.path)), lambda: tables(model))}


# -- pieces -----------------------------------------------------------------------------------


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


def asked(look: Look, what: str, key: tuple, ask):
    """A DataFrame of the rows ``ask(model, step)`` for the run's checkpoints; None while cancelled.
    """
    import pandas as pd

    run, checkpoints = look.chosen.run, measured.chosen_steps(look.chosen)

    def compute(progress):
        made = []
        for place, checkpoint in enumerate(checkpoints):
            progress(f"step {checkpoint.step:,}", place / len(checkpoints))
            path = str(checkpoint.path)
            try:
                made += ask(loaders.one_of_many(path, loaders.stamp(path)), checkpoint.step)
            except BertScopeError:
                continue  # damaged: the others are drawn
        return pd.DataFrame(made)

    return waiting.kept(("input tables", what, str(run.path), run.created, key,
                         tuple(c.step for c in checkpoints)), compute, f"Asking for {what}")


def marks(look: Look) -> list[tuple[int, str]]:
    """The steps of this run that are looked at."""
    return [(choice.checkpoint.step, meaning) for choice, meaning in look.sides
            if choice.run is not None and choice.run.path == look.chosen.run.path]


# -- positions and segments -------------------------------------------------------------------


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


# -- length and frequency ---------------------------------------------------------------------


def lengths(look: Look, opened: list[dict]) -> None:
    """How long the vectors of frequent and of rare pieces are."""
    import numpy as np

    from bertscope.analysis.input_table import norms

    st.markdown("##### Length and frequency")
    side = opened[0]
    if look.chosen.run is None:
        st.caption("How often this checkpoint's training saw each piece is not known.")
        return
    try:
        seen = waiting.kept(("seen", str(look.chosen.run.path), look.chosen.run.created,
                             look.chosen.checkpoint.step),
                            lambda progress: loaders.exposure(
                                look.chosen.run, look.chosen.checkpoint.step, progress),
                            "Counting what the run was fed")
    except BertScopeError as error:
        st.caption(markdown(error))
        return
    if seen is None:
        return
    long, names = norms(side["tables"]), side["tables"].names
    count = np.asarray(seen.seen)[:len(long)]
    shown = np.flatnonzero(count > 0)
    if len(shown) < 3:
        st.caption("At this step the run has not seen anything yet: choose a later checkpoint.")
        return
    draw_lengths(side, long, names, count, shown[:MOST_PIECES])


def draw_lengths(side: dict, long, names, count, shown) -> None:
    import numpy as np
    import pandas as pd
    from scipy.stats import spearmanr

    ranks = spearmanr(count[shown], long[shown]).statistic
    never = len(long) - len(shown)
    figure = figures.cloud(
        np.stack([count[shown], long[shown]], 1), None, None,
        [f"{hover(names[i])}: seen {count[i]:,} times, length {long[i]:.2f}" for i in shown],
        [int(i) for i in shown], ("times seen", "length"), height=380)
    figure.update_xaxes(type="log", showticklabels=True, title=plotly("times seen by this step"))
    figure.update_yaxes(showticklabels=True, scaleanchor=None, title="length of the vector")
    frame.figure(figure, f"{side['choice'].stem}-lengths", "lengths")
    with row():
        st.caption(f"{len(shown):,} pieces that were seen; {never:,} others never were. Rank "
                   f"correlation {ranks:.2f}.")
        frame.download_csv(pd.DataFrame({"piece": [names[i] for i in shown], "seen": count[shown],
                                         "length": long[shown]}),
                           f"{side['choice'].stem}-lengths", key="lengths_csv")
