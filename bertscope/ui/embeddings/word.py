"""One word in many contexts: do its uses come apart, in which layer, and when?"""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import frame, looking, theme
from bertscope.ui.embeddings import Look, figures, measured, sources
from bertscope.ui.embeddings.map import common, draw, drawing, mapped
from bertscope.ui.text import markdown, plotly, shorten

NEAREST = 5
EXPLANATION = r"""
Every point is one use of the word: the mean of the states of its pieces in the chosen layer, in
its own sentence. In layer 0 the uses differ by their position only; what comes apart later, the
context did.

*Same label among the 5 nearest.* Of the 5 nearest uses by cosine, in all dimensions, how many
have the same label, for all uses on average; the chance level is what labels dealt out at random
would give, $\sum_c n_c (n_c - 1) / (n (n - 1))$.

*Self-similarity* is the mean cosine of all pairs of uses, $\frac{1}{n(n-1)} \sum_{i \neq j}
\cos(x_i, x_j)$: 1 if the context does not matter. The *baseline* is the mean cosine of random
words of different sentences: where all vectors point the same way, a high self-similarity says
nothing, so look at the distance between the two. *Standardised*: every dimension has mean 0 and
deviation 1 over the words of these sentences first, because a few dimensions of large values can
decide raw cosines.

Ethayarajh 2019, sections 3.2 and 3.4; Timkey and van Schijndel 2021.
"""


def show(look: Look) -> None:
    experiments, line = st.container(), sources.row()
    source, limit = sources.where(look, line)
    own = sources.given(look) if source is None else None
    if source is None and own is None:
        return
    offered = _offered(source) if source else _offered_in(own.rows)
    with experiments:
        frame.try_this(*((word, lambda word=word: frame.set_state(target=word)) for word in offered[:4]))
    with line:
        word = asked(offered)
    if not word:
        st.info("Type a word.", icon=":material/edit:")
        return
    from bertscope.analysis import contexts, gallery

    table = _in_corpus(source, word, limit) if source else contexts.in_texts(own.table, word)
    spans = tuple(zip(table["start"].tolist(), table["end"].tolist()))
    table = table.drop(columns=["start", "end"])
    found = sources.Texts(table, gallery.label_columns(table), source)
    with line:
        label, search = sources.label(found, "sense"), sources.search()
    with sources.row():
        layer = sources.layer(look)
        method, dimensions = drawing()
    looking.what(look.chosen, look.model)
    st.caption(f":material/format_quote: {len(table):,} uses of “{markdown(word)}” in "
               + (f"sentences of {table['document'].nunique():,} documents." if source
                  else "your texts."))
    sides = mapped(look, found.rows, spans, layer, method, dimensions)
    if not sides:
        return
    keep = common(sides)
    if not keep.all():
        st.caption(f":material/info: {int((~keep).sum()):,} uses are beyond what the model reads at "
                   "once, and are left out.")
    draw(found, sides, keep, label, search,
         [context(text, *span) for text, span in zip(found.rows, spans)], "uses")
    layer_by_layer(look, found, spans, sides, keep, label, word)


def asked(offered: list[str]) -> str:
    """The word; the first one that is offered, until another is asked for."""
    state, first = st.session_state, offered[0] if offered else ""
    if state.get("target") == state.get("_first_word", ""):  # nobody asked for it: other texts, another word
        state.pop("target", None)
    state["_first_word"] = first
    return st.text_input("Word", first, key="target", max_chars=100, width=150, bind="query-params",
                         placeholder="bank").strip()


@st.cache_data(max_entries=16, show_spinner="Looking for the word …")
def _in_corpus(source: str, word: str, most: int):
    from bertscope.analysis import contexts

    return contexts.in_corpus(source, word, most)


@st.cache_data(max_entries=16, show_spinner="Looking for words of several uses …")
def _offered(source: str) -> list[str]:
    from bertscope.analysis import contexts

    return contexts.offered_words(source)


@st.cache_data(max_entries=16, show_spinner=False)
def _offered_in(rows: tuple[str, ...]) -> list[str]:
    from bertscope.analysis import contexts

    return contexts.frequent_words(rows)


def context(text: str, start: int, end: int, around: int = 60) -> str:
    """The word in its context, for the mouse."""
    before = text[max(0, start - around):start]
    return (plotly(before) + f"<b>{plotly(text[start:end])}</b>"
            + plotly(text[end:end + around]))


# -- how far the uses are apart, in each layer ------------------------------------------------


def layer_by_layer(look: Look, found, spans, sides, keep, label: str | None, word: str) -> None:
    st.markdown("##### In which layer do its uses come apart?")
    left, right = frame.beside(2, "uses")
    with left:
        agreement(found, sides, keep, label)
    with right:
        similarity(look, found, word)
    if look.chosen.run is not None and len(look.chosen.run.checkpoints()) > 1 and label and \
            telling(found, label):
        measured.agreement_over_steps(look, found, spans, label, NEAREST)


def telling(found, label: str) -> bool:
    """Whether a label's values are few enough to be shared by neighbours."""
    values = found.table[label]
    return 2 <= values.nunique() <= 50 and not (
        values.dtype.kind == "f" and values.nunique() > 20)


def agreement(found, sides, keep, label: str | None) -> None:
    """The share of same labels among the nearest, layer by layer."""
    from bertscope.analysis.embeddings import label_agreement

    if label is None or not telling(found, label):
        st.caption("With a label that has several values (a column beside *text*), this shows how "
                   "well the uses are sorted by it.")
        return
    labels = found.table[label].astype(str).to_numpy()[keep]
    if len(labels) <= NEAREST:
        st.caption(f"There are too few uses to look at the {NEAREST} nearest of each.")
        return
    series, chance = [], 0.0
    for side in sides:
        layers = range(len(side["states"]))
        values = [label_agreement(side["states"][i][keep], labels, NEAREST) for i in layers]
        chance = values[0][1]
        series.append((side["choice"].label, list(layers), [v for v, _ in values],
                       theme.colour(side["meaning"]), "solid"))
    longest = max((s[1] for s in series), key=len)
    series.append(("chance", longest, [chance] * len(longest), theme.colour("baseline"), "dot"))
    figure = figures.lines(series, f"Same {shorten(label, 30)} among the {NEAREST} nearest",
                           "layer (0 = embeddings)", ".0%", 0, 1.03)
    frame.figure(figure, "same-label", "agreement")


def similarity(look: Look, found, word: str) -> None:
    """Self-similarity of the word beside random words, layer by layer."""
    try:
        tables = measured.tables(look, measured.sentences(found.rows, whole=True), word)
    except BertScopeError as error:
        st.caption(markdown(error))
        return
    if not tables:
        return
    with st.container(horizontal=True):
        values = st.segmented_control("Values", ["raw", "standardised"], default="raw", key="values",
                                      required=True, bind="query-params",
                                      label_visibility="collapsed") or "raw"
        frame.download_csv(measured.together(tables), f"{look.chosen.stem}-uses",
                           key="uses_csv")
    series = []
    for (choice, meaning), table in tables:
        own = table[table["values"] == values]
        name = f"{choice.label}: " if len(tables) > 1 else ""
        series += [(f"{name}uses of {shorten(word, 20)}", own.layer, own.self_similarity,
                    theme.colour(meaning), "solid"),
                   (f"{name}random words", own.layer, own.baseline,
                    theme.colour(meaning if len(tables) > 1 else "baseline"), "dot")]
    figure = figures.lines(series, f"Mean cosine, {values}", "layer (0 = embeddings)")
    frame.figure(figure, "self-similarity", "similarity")
