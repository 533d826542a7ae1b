"""Two checkpoints: the heads sorted by how much they changed, and the difference of one on the text."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import frame, loaders, theme, waiting
from bertscope.ui.attention import Look, reading, values
from bertscope.ui.components import head_map
from bertscope.ui.text import markdown


def show(look: Look, texts: list, head: tuple[int, int]) -> None:
    st.divider()
    st.markdown(f"##### What changed from {markdown(look.other.label)} to {markdown(look.chosen.label)}")
    try:
        table = changed(look, texts)
    except BertScopeError as error:
        st.warning(markdown(error), icon=":material/compare:")
        return
    if table is None:
        return
    left, right = frame.beside(2, "changes")
    with left:
        st.caption("How much each head changed, in bits. Click one to open it.")
        values.grid(table, "divergence", lambda x: f"{x:.2f}", (0.0, max(1e-6, float(
            table["divergence"].max()))), "changes", head, "changed by")
        first = table.head(5)
        st.markdown("Most: " + ", ".join(f"**{int(r.layer)}-{int(r.head)}** {r.divergence:.2f}"
                                         for r in first.itertuples()))
        frame.download_csv(table, f"{look.chosen.stem}-changed-heads")
    with right:
        difference(look, head)


def changed(look: Look, texts: list):
    """``changed_heads`` over the texts; None while it is cancelled."""
    from bertscope.analysis.attention_sample import texts_digest
    from bertscope.analysis.head_distances import changed_heads_cached

    paths = [choice.path for choice in (look.chosen, look.other)]

    def open_model(path):
        return loaders.model(look.chosen if str(path) == str(look.chosen.path) else look.other)

    return waiting.kept(
        ("changed heads", *paths, *map(loaders.stamp, paths), texts_digest(texts)),
        lambda progress: changed_heads_cached(*paths, texts, progress, open_model), "what changed")


def difference(look: Look, head: tuple[int, int]) -> None:
    """One head on the page's text, the first checkpoint minus the second."""
    from bertscope.analysis.attention import difference as subtract

    try:
        found = subtract(reading.maps(look.chosen, look.text, look.pair),
                         reading.maps(look.other, look.text, look.pair))
    except BertScopeError as error:
        st.caption(markdown(error))
        return
    st.caption(f"Head {head[0]}-{head[1]} on the text above. Blue: more in {markdown(look.chosen.label)}. "
               f"Orange: more in {markdown(look.other.label)}.")
    head_map.head_map(head_map.data(
        found.weights[head[0] - 1, head[1] - 1], found.tokens, found.tokens, theme.diverging(),
        f"{look.chosen.stem}-difference-head-{head[0]}-{head[1]}", signed=True, legend=("less", "more")),
        "changes_map")
