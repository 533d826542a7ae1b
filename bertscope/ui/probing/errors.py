"""What a layer gets wrong: which label is taken for which, and the sentences with the word marked."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import frame
from bertscope.ui.components.marked import Marked, marked
from bertscope.ui.probing import figures, results
from bertscope.ui.text import markdown, shorten

EXPLANATION = r"""
The answers of one layer's probe to the test items, which it has not seen. In the matrix a row is a gold
label, a column what was answered, and the colour the share of the row, so that rare labels are seen as
well as frequent ones. Counts are over all seeds; sentences are those of the first seed.

A word that several layers get wrong in the same way is often ambiguous, or wrong in the annotation:
treebanks have errors of their own, and 100 % is not the ceiling.
"""

#: Labels in the matrix, the most often mistaken; and sentences on the page.
MOST_LABELS, MOST_SHOWN = 24, 15


def show(look) -> None:
    task = look.asked.task
    result = results.study(look, [look.chosen], [task], look.asked, f"probes of {look.chosen.label}")
    if result is None:
        return
    both = results.beside(look, [task], look.asked) or result
    layer = which_layer(both, look)
    wrong = both.errors(task, cell(look.chosen.label, layer))
    tested = len(both.answers(task, look.chosen.label))
    st.markdown(f"##### Layer {layer} gets {len(wrong):,} of {tested:,} test items wrong "
                f":gray[({1 - len(wrong) / tested:.1%} right, {markdown(look.title(task))})]")
    matrices(look, both, task, layer)
    if len(wrong):
        sentences(look, both, task, layer, wrong)
    else:
        st.success("There is nothing that this layer gets wrong.", icon=":material/check:")


def cell(checkpoint: str, layer: int):
    from bertscope.analysis.probing.cell import Cell

    return Cell(checkpoint, layer)


def which_layer(both, look) -> int:
    """The layer's slider; the best one by default."""
    layers = sorted(set.intersection(*(set(both.layers_of(name)) for name in both.checkpoints)))
    own = both.summary[(both.summary.checkpoint == look.chosen.label) & ~both.summary["mix"]]
    best = int(own.loc[own.accuracy.idxmax()].layer)
    if st.session_state.get("probe_layer") not in (None, *layers):
        del st.session_state["probe_layer"]
    if len(layers) == 1:
        return layers[0]
    return int(st.select_slider("Layer", layers, value=best if best in layers else layers[-1],
                                key="probe_layer", width=280, bind="query-params"))


def matrices(look, both, task: str, layer: int) -> None:
    """The confusions of one or two checkpoints, the same labels in both."""
    import numpy as np

    tables = [both.confusion(task, cell(name, layer)) for name in both.checkpoints]
    labels = sorted(set().union(*(set(t.index) | set(t.columns) for t in tables)))
    squares = [t.reindex(index=labels, columns=labels, fill_value=0).to_numpy() for t in tables]
    missed = sum(s.sum(0) + s.sum(1) - 2 * np.diag(s) for s in squares)
    kept = sorted(np.argsort(-missed, kind="stable")[:MOST_LABELS])
    for column, name, square in zip(frame.beside(len(squares), "confusion"), both.checkpoints,
                                    squares):
        with column:
            figure = figures.confusion(square[np.ix_(kept, kept)],
                                       [shorten(labels[i], 24) for i in kept],
                                       name if len(squares) > 1 else "")
            frame.figure(figure, f"{look.chosen.stem}-confusion-layer-{layer}", f"confusion_{name}")
    if len(kept) < len(labels):
        st.caption(f"The {MOST_LABELS} labels that are mistaken most often, of {len(labels):,}.")
    whole = tables[0].stack().rename("count").reset_index()
    frame.download_csv(whole, f"{look.chosen.stem}-confusion-layer-{layer}", "Confusions (CSV)",
                       key="confusion_csv")


def sentences(look, both, task: str, layer: int, wrong) -> None:
    """The sentences, filtered by what was taken for what."""
    counts = wrong.groupby(["gold", "answered"]).size().sort_values(ascending=False)
    every = "all"
    named = {every: f"all · {len(wrong):,}", **{
        f"{gold} → {answered}": f"{shorten(gold, 30)} taken for {shorten(answered, 30)} · {n:,}"
        for (gold, answered), n in counts.items()}}
    if st.session_state.get("wrong_label") not in (None, *named):
        del st.session_state["wrong_label"]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.selectbox("Mistakes", list(named), format_func=named.get, key="wrong_label",
                            width=380, bind="query-params") or every
        pages = -(-len(picked := wrong if kind == every else wrong[
            (wrong.gold + " → " + wrong.answered) == kind]) // MOST_SHOWN)
        page = st.number_input(f"Page of {pages:,}", 1, pages, 1, key="wrong_page", width=130) \
            if pages > 1 else 1
    start = (int(page) - 1) * MOST_SHOWN
    rows = [one(both, look, task, layer, row) for row in
            picked.iloc[start:start + MOST_SHOWN].itertuples()]
    marked(rows, "wrong_sentences")
    frame.download_csv(listed(both, task, wrong), f"{look.chosen.stem}-errors-layer-{layer}",
                       "Mistakes (CSV)", key="errors_csv")


def one(both, look, task: str, layer: int, row) -> Marked:
    """A sentence with its word marked, and which layers know better."""
    text = both.tasks[task].sentences[row.sentence]
    words = [text] if isinstance(text, str) else list(text)
    places = [place for start, end in row.spans for place in range(start, end)]
    notes = [right_layers(both.answers(task, look.chosen.label), row.item)]
    for name in both.checkpoints[1:]:
        theirs = both.answers(task, name)
        theirs = theirs[theirs["item"] == row.item]
        if len(theirs):
            notes.append(f"{name}: {theirs[f'layer_{layer}'].iloc[0]}")
    return Marked(words, places, f"{row.gold} → {row.answered}", " · ".join(notes))


def right_layers(answers, item: int) -> str:
    """Which layers get an item right."""
    row = answers[answers["item"] == item].iloc[0]
    right = [name.removeprefix("layer_") for name in answers
             if name.startswith("layer_") and row[name] == row.gold]
    return f"right in layer {', '.join(right)}" if right else "wrong in every layer"


def listed(both, task: str, wrong):
    """The mistakes with their texts."""
    texts = both.tasks[task].sentences
    joined = [text if isinstance(text, str) else " ".join(text)
              for text in (texts[i] for i in wrong.sentence)]
    return wrong.assign(text=joined, spans=wrong.spans.astype(str))
