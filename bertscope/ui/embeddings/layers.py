"""What each layer does to the words, and which layers and checkpoints are alike."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import compared, frame, looking, theme
from bertscope.ui.embeddings import Look, figures, measured, results, sources
from bertscope.ui.text import markdown

#: The heat map's measures: (column, column to subtract, digits, lowest, highest).
MEASURES = {
    "self-similarity above the baseline": ("self_similarity", "baseline", ".2f"),
    "words like their sentence, above the baseline": ("in_sentences", "baseline", ".2f"),
    "anisotropy (the baseline)": ("baseline", None, ".2f"),
    "explained by one direction, above random words": ("explained", "explained_baseline", ".2f"),
    "dimensions in use": ("participation", None, ".1f"),
    "length of the vectors": ("norm", None, ".1f"),
}
EXPLANATION = r"""
Measured on the words of a sample of sentences (4,000 words at most, punctuation left out), with
$x$ the mean of a word's pieces in one layer.

*Self-similarity*: the mean cosine of the uses of a word in different sentences, for all words
found in at least 5. *Words like their sentence* (intra-sentence similarity): the mean cosine of a
word and the mean of its sentence's words. *Anisotropy*: the mean cosine of random words of
different sentences; it is the baseline of both, for where all vectors point the same way
everything is similar. *Explained by one direction* (maximum explainable variance): $\sigma_1^2 /
\sum_i \sigma_i^2$ of the singular values of a word's uses, how well one static vector could stand
for them; its baseline are as many random words. *Dimensions in use* (participation ratio): $(\sum
\lambda)^2 / \sum \lambda^2$ of the eigenvalues of the covariance of all words.

*Raw or standardised?* One or two dimensions of large values often make up most of every cosine
("rogue dimensions"). Standardising gives each dimension mean 0 and deviation 1 over these words
first. What is left then is not due to them.

*Which layers are alike?* Linear CKA compares the similarities between texts in one layer with
those in another, whatever the rotation and the scale,

$$
\mathrm{CKA} = \frac{\mathrm{HSIC}(XX^\top, YY^\top)}{\sqrt{\mathrm{HSIC}(XX^\top, XX^\top)\,
\mathrm{HSIC}(YY^\top, YY^\top)}}
$$

here with the unbiased estimate of HSIC, since the plain one is too high where texts are few; 1 is
the same up to rotation and scale, about 0 (or a little less) is nothing in common. Of each text
the mean of its pieces is taken, of 1,000 texts at most.

Ethayarajh 2019; Timkey and van Schijndel 2021; Kornblith et al. 2019; Song et al. 2012; Nguyen,
Raghu and Kornblith 2021.
"""


def show(look: Look) -> None:
    frame.try_this(
        ("without rogue dimensions", lambda: frame.set_state(values="standardised")),
        ("how many dimensions are in use", lambda: frame.set_state(measure="dimensions in use")))
    line = sources.row()
    found = sources.choose(look, line)
    if found is None:
        return
    looking.what(look.chosen, look.model)
    words = measured.sentences(found.rows)
    try:
        tables = measured.tables(look, words)
    except BertScopeError as error:
        frame.show_error(error)
        tables = []
    if tables:
        measures(look, words, tables)
    st.divider()
    alike(look, found.rows[:1000])


# -- what each layer does to the words --------------------------------------------------------


def measures(look: Look, words, tables) -> None:
    st.markdown("##### How alike are the words of a layer?")
    with sources.row():
        values = st.segmented_control("Values", ["raw", "standardised"], default="raw", key="values",
                                      required=True, bind="query-params") or "raw"
        frame.download_csv(measured.together(tables), f"{look.chosen.stem}-geometry",
                           key="geometry_csv")
    st.caption(f"{sum(map(len, words)):,} words and marks in {len(words):,} sentences.")
    left, middle, right = frame.beside(3, "geometry")
    with left:
        frame.figure(curves(tables, values, "Mean cosines", [
            ("uses of a word", "self_similarity", "solid"),
            ("word and sentence", "in_sentences", "dash"), ("random words", "baseline", "dot")]),
            "cosines", "geometry_cosines")
    with middle:
        frame.figure(curves(tables, values, "Explained by one direction", [
            ("uses of a word", "explained", "solid"),
            ("random words", "explained_baseline", "dot")]), "explained", "geometry_explained")
    with right:
        frame.figure(curves(tables, values, "Dimensions in use",
                            [("participation ratio", "participation", "solid")], ".1f"),
                     "participation", "geometry_participation")
    if values == "raw":
        rogue(look, tables[0])
    if look.chosen.run is not None and len(look.chosen.run.checkpoints()) > 1:
        over_steps(look, words, values)


def curves(tables, values: str, title: str, columns, tick: str = ".2f"):
    series = []
    for (choice, meaning), table in tables:
        own = table[table["values"] == values]
        name = f"{choice.label}: " if len(tables) > 1 else ""
        series += [(name + label, own.layer, own[column], theme.colour(
            "baseline" if dash == "dot" and len(tables) == 1 else meaning), dash)
            for label, column, dash in columns]
    return figures.lines(series, title, "layer", tick)


def rogue(look: Look, made) -> None:
    """Which dimensions decide the raw cosines of the last layer."""
    (choice, _), table = made
    last = table[table["values"] == "raw"].iloc[-1]
    if last["largest"]:
        st.caption(f":material/info: In layer {int(last['layer'])} of {markdown(choice.label)} these "
                   "dimensions have the largest shares of the mean cosine of random words: "
                   f"{last['largest']}. Of {look.model.hidden_size} dimensions each would have "
                   f"{1 / look.model.hidden_size:.1%} if all were alike.")


def over_steps(look: Look, words, values: str) -> None:
    """One measure at every layer and checkpoint."""
    measure = st.selectbox("Over the checkpoints", list(MEASURES), key="measure", width=380,
                           bind="query-params")
    made = measured.tables_over_steps(look.chosen, words)
    if made is None:
        return
    column, less, tick = MEASURES[measure]
    own = made[made["values"] == values].assign(
        value=lambda t: t[column] - (t[less] if less else 0.0))
    grid = own.pivot(index="layer", columns="step", values="value")
    low = min(0.0, float(grid.min().min())) if tick == ".2f" else 0.0
    figure = figures.heat(grid.to_numpy(), [f"{s:,}" for s in grid.columns],
                          [str(i) for i in grid.index], f"{measure}, {values}", "training step",
                          "layer", low, float(grid.max().max()) or 1.0, tick)
    frame.figure(figure, f"{look.chosen.run.name}-geometry-over-steps", "geometry_steps")
    frame.download_csv(made, f"{look.chosen.run.name}-geometry-over-steps", key="geometry_steps_csv")


# -- which layers, which checkpoints ----------------------------------------------------------


def alike(look: Look, rows: tuple[str, ...]) -> None:
    from bertscope.analysis.vectors import Place

    st.markdown("##### Which layers, and which checkpoints, are alike?")
    if len(rows) < 4:
        st.caption("This needs at least 4 texts.")
        return
    columns = frame.beside(2, "cka") if look.chosen.run else [st.container()]
    with columns[0]:
        between_layers(look, rows, Place("mean"))
    if look.chosen.run is not None and len(look.chosen.run.checkpoints()) > 1:
        with columns[1]:
            between_steps(look, rows, Place("mean"))


def between_layers(look: Look, rows, at) -> None:
    """Layers × layers of one checkpoint, or of two."""
    import numpy as np
    import pandas as pd

    from bertscope.analysis.cka import cka_grid

    mine = results.vectors(look.chosen, rows, at)
    theirs = mine
    if look.other:
        with compared.aside(look.other):
            theirs = results.vectors(look.other, rows, at, " by the second checkpoint")
    if mine is None or theirs is None:
        return
    keep = np.isfinite(mine[0, :, 0]) & np.isfinite(theirs[0, :, 0])
    left = [layer[keep] for layer in mine]
    right = left if theirs is mine else [layer[keep] for layer in theirs]
    grid = cka_grid(left, right)
    names = look.chosen.label, look.other.label if theirs is not mine else look.chosen.label
    figure = figures.heat(grid, [str(i) for i in range(len(right))],
                          [str(i) for i in range(len(left))], "CKA between layers",
                          f"layer of {names[1]}", f"layer of {names[0]}", 0.0, 1.0, square=True,
                          height=420)
    frame.figure(figure, f"{look.chosen.stem}-cka-layers", "cka_layers")
    frame.download_csv(pd.DataFrame(grid).rename_axis("layer").reset_index(),
                       f"{look.chosen.stem}-cka-layers", key="cka_layers_csv")


def between_steps(look: Look, rows, at) -> None:
    """Checkpoints × checkpoints at one layer."""
    import numpy as np
    import pandas as pd

    from bertscope.analysis.cka import cka_grid

    layer = sources.layer(look)
    found = measured.vectors_over_steps(look.chosen, rows, at, layer)
    if not found:
        return
    keep = np.isfinite([vectors[:, 0] for _, vectors in found]).all(axis=0)
    steps = [vectors[keep] for _, vectors in found]
    grid, names = cka_grid(steps, steps), [f"{step:,}" for step, _ in found]
    figure = figures.heat(grid, names, names, f"CKA between checkpoints, layer {layer}",
                          "training step", "training step", 0.0, 1.0, square=True, height=420)
    frame.figure(figure, f"{look.chosen.run.name}-cka-steps", "cka_steps")
    numbers = [step for step, _ in found]
    frame.download_csv(pd.DataFrame(grid, columns=numbers, index=numbers).rename_axis("step")
                       .reset_index(), f"{look.chosen.run.name}-cka-steps", key="cka_steps_csv")
