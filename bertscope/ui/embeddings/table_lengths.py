"""How long the vectors of frequent and of rare pieces are."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import frame, loaders, waiting
from bertscope.ui.embeddings import Look, figures
from bertscope.ui.embeddings.sources import row
from bertscope.ui.text import hover, plotly

#: Pieces in the cloud.
MOST_PIECES = 8000


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
        frame.show_error(error)
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
