"""The input tables: vectors of pieces, segments and positions before any context."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import compared, frame, loaders, looking, texts
from bertscope.ui.embeddings import Look, table_lengths, table_pieces, table_positions

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
        table_pieces.pieces(look, opened, typed)
    else:
        st.info("Type a piece.", icon=":material/edit:")
    st.divider()
    table_positions.positions(look, opened)
    st.divider()
    table_lengths.lengths(look, opened)


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
