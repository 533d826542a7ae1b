"""One task over the layers: the curve, its best set, and everything that it must be compared with."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import frame
from bertscope.ui.probing import exports, figures, results
from bertscope.ui.text import markdown

EXPLANATION = r"""
Every word becomes a vector from one layer, and a classifier learns the gold label from it: on
training sentences, with the strength of the penalty chosen on validation sentences, tested once on
others. Features are standardised on the training part alone; no sentence is in two parts.

**Intervals** are 95 % intervals from a bootstrap over test *sentences* (words of one sentence are not
independent) and seeds, widened as a t distribution over so many sentences asks (Hesterberg 2015). **The
shaded layers are the best set**: all that are not significantly below
the best one (paired bootstrap, corrected for their number after Holm 1979 and for the best one having
been chosen by looking, Hsu 1981). A peak of one layer that
others come near to says little.

Read a number only beside its baselines. *Majority*: always the most frequent label. *Word identity*:
no model at all, each word's most frequent label. *Random weights*: the same architecture untrained.
*Layer 0*: before any layer. *Selectivity*: accuracy minus that on a control task, where every word
type has a label drawn at random (Hewitt and Liang 2019): a probe that remembers words is good at both.
*Compression*: how many times shorter the labels can be told to somebody who has the vectors,
$n\log_2 K / L$, where $L$ is the online code of Voita and Titov (2020) in bits; 1 is nothing.

*Expected layer*, from probes on layers 0 to $\ell$ mixed by learnt weights (Tenney et al. 2019):
$\sum_\ell \ell\,\Delta_\ell \,/ \sum_\ell \Delta_\ell$ with
$\Delta_\ell = \mathrm{score}(0..\ell) - \mathrm{score}(0..\ell-1)$. It is not shown where the whole
gain is not significant. Layers are standardised before they are mixed; those that say the same share their
weights as chance has it.

What a probe finds is *in* the states; whether the model uses it is another question (the view *Use*).
Alain and Bengio 2016; Belinkov 2022.
"""

ACCURACY = "accuracy"
#: What can be drawn: name -> (column of the summary, format, the protocol's setting that it needs).
VALUES = {ACCURACY: ("accuracy", ".1%", ""), "macro F1": ("macro_f1", ".1%", ""),
          "new words": ("accuracy_new_types", ".1%", ""),
          "selectivity": ("selectivity", ".1%", "control"),
          "compression": ("compression", ".2f", "codelength")}


def show(look) -> None:
    result = results.study(look, [look.chosen], [look.asked.task], look.asked,
                           f"probes of {look.chosen.label}")
    if result is None:
        return
    both = results.beside(look, [look.asked.task], look.asked) or result
    headline(look, result)
    draw(look, both)
    sizes(look, result)
    if len(both.checkpoints) > 1:
        change(look, both)
    mixed(look, both)
    numbers(both)
    exports.show(look, both)


def own(result, checkpoint: str):
    """The summary's rows of a checkpoint's single layers."""
    table = result.summary
    return table[(table.checkpoint == checkpoint) & ~table["mix"]]


def headline(look, result) -> None:
    """The best set in words, and the highest accuracy beside what it has to beat."""
    table = own(result, look.chosen.label)
    best = table.loc[table.accuracy.idxmax()]
    hidden = ", the word hidden" if look.asked.protocol.hide else ""
    layers = table.layer[table.best].tolist()
    verb = "are" if len(layers) > 1 else "is"
    chance = f"95 % interval {best.low:.1%} to {best.high:.1%}" if best.low == best.low else \
        "too few test sentences for an interval"
    st.markdown(f"##### {markdown(look.title(look.asked.task))}{hidden}: {said(layers)} {verb} best, "
                f"{best.accuracy:.1%} :gray[({chance})]")
    beside = [f"{name} {value:.1%}" for name, value in references(table)]
    if best["random"] == best["random"]:
        beside.append(f"random weights {best['random']:.1%}")
    st.caption("Beside it: " + " · ".join(beside))
    expected(result, look.chosen.label)


def expected(result, checkpoint: str) -> None:
    """The expected layer in words, or why there is none."""
    if not len(result.centres):
        return
    row = result.centres[result.centres.checkpoint == checkpoint].iloc[0]
    if row.expected_layer != row.expected_layer or row.expected_layer is None:
        st.caption(":material/info: No expected layer: from layer 0 to all layers together accuracy changes "
                   f"by {no_gain(row)}.")
        return
    st.caption(f":material/vertical_align_center: Expected layer {row.expected_layer:.2f} (95 % "
               f"interval {row.low:.2f} to {row.high:.2f}); centre of gravity of the mix "
               f"{row.centre:.2f}. Together the layers gain {row.gain:+.1%} over layer 0.")


def no_gain(row) -> str:
    """A change that is no significant gain, with the p that says so; a loss needs none."""
    chance = f" (p = {row.p:.2f})" if row.gain > 0 else ""
    return f"{row.gain:+.1%}, no significant gain{chance}"


def references(table) -> list[tuple[str, float]]:
    """``[(name, value)]`` of the baselines that are one number."""
    first = table.iloc[0]
    named = (("layer 0", "layer_0"), ("word identity", "word_identity"),
             ("length alone", "length_only"), ("majority", "majority"))
    return [(name, float(first[column])) for name, column in named
            if column in table and first[column] == first[column]]


def said(layers: list[int]) -> str:
    """``layer 3``, ``layers 2 to 4``, ``layers 1 and 3``, ``layers 1, 3 and 4``."""
    if len(layers) == 1:
        return f"layer {layers[0]}"
    if len(layers) > 2 and layers == list(range(layers[0], layers[-1] + 1)):
        return f"layers {layers[0]} to {layers[-1]}"
    return "layers " + ", ".join(map(str, layers[:-1])) + f" and {layers[-1]}"


def draw(look, both) -> None:
    """The curves of one or two checkpoints and of random weights, on one scale."""
    offered = [name for name, (column, _, needs) in VALUES.items()
               if column in both.summary and (not needs or getattr(look.asked.protocol, needs))]
    if st.session_state.get("probe_value") not in (None, *offered):
        del st.session_state["probe_value"]
    with st.container(horizontal=True, vertical_alignment="center"):
        value = st.segmented_control("Drawn", offered, default=ACCURACY, required=True,
                                     key="probe_value", bind="query-params",
                                     label_visibility="collapsed") or ACCURACY
        whole = st.toggle("From 0 to 100 %", key="whole_scale", bind="query-params")
    column, form, _ = VALUES[value]
    curves = []
    names = {choice.label: meaning for choice, meaning in look.sides}
    random = both.random_for(look.chosen.label)
    for name, meaning, dash in [*((n, names[n], "solid") for n in both.checkpoints),
                                *([(random, "baseline", "dot")] if random else [])]:
        table = own(both, name)
        if table[column].notna().any():
            curves.append((name, meaning, dash, with_interval(table, column)))
    table = own(both, look.chosen.label)
    lines = {ACCURACY: references(table), "compression": [("nothing found", 1.0)],
             "selectivity": [("what is remembered of words alone", 0.0)]}.get(value, [])
    if not curves:
        st.info("There is nothing to draw: all test words also occur in training.",
                icon=":material/info:")
        return
    figure = figures.layers(curves, lines, f"{value} on test items", whole,
                            table.layer[table.best].tolist(), form)
    name = f"{look.chosen.stem}-probe-{look.asked.task}".replace(":", "-")
    frame.figure(figure, name, "probe_curve")
    frame.download_figure(figure, name, "probe_html")


def with_interval(table, column: str):
    """layer, value, low, high; only accuracy has an interval over sentences and seeds."""
    import numpy as np

    known = column == "accuracy"
    return table.assign(value=table[column], low=table.low if known else np.nan,
                        high=table.high if known else np.nan)


def sizes(look, result) -> None:
    """How much was learnt from and tested on, and what was left out."""
    from bertscope.analysis.probing.uncertainty import few

    first = result.scores.iloc[0]
    unit = {"word": "words", "pair": "pairs", "sentence": "sentences"}[
        result.tasks[look.asked.task].kind]
    rough = few(result.sentences_tested(look.asked.task))
    parts = [f"{int(first[f'items_{part}']):,} {name}" for part, name in
             (("train", "training"), ("validation", "validation"), ("test", "test"))]
    seeds = f", {len(result.seeds)} seeds" if len(result.seeds) > 1 else ""
    left = f" {int(first.without_vector):,} {unit} that the model cannot read are left out." \
        if first.without_vector else ""
    cut = f" {int(first.sentences_cut):,} sentences are longer than the model reads." \
        if first.sentences_cut else ""
    st.caption(f"{parts[0]}, {parts[1]} and {parts[2]} {unit}, {int(first.classes):,} "
               f"labels{seeds}. {rough} {markdown(look.source.note)}{left}{cut}")


def change(look, both) -> None:
    """The second checkpoint against the first, layer by layer."""
    table = both.between_checkpoints(look.other.label, look.chosen.label)
    theirs = own(both, look.other.label)
    better = table.layer[table.significant & (table.difference > 0)].tolist()
    worse = table.layer[table.significant & (table.difference < 0)].tolist()
    parts = [f"significantly better in {said(better)}"] if better else []
    parts += [f"significantly worse in {said(worse)}"] if worse else []
    st.caption(f":material/compare_arrows: **{markdown(look.chosen.label)} against "
               f"{markdown(look.other.label)}**, on the same items: "
               + (" and ".join(parts) or "no layer differs significantly")
               + " (paired bootstrap, corrected after Holm). Best there: "
               + said(theirs.layer[theirs.best].tolist()) + ".")


def mixed(look, both) -> None:
    """The learnt weights of the layers, and what each adds, of one or two checkpoints."""
    if not len(both.mixes):
        return
    st.markdown("##### All layers mixed: what is each one's part?")
    curves = [(choice.label, meaning, both.mixes[both.mixes.checkpoint == choice.label])
              for choice, meaning in look.sides if choice.label in both.checkpoints]
    name = f"{look.chosen.stem}-mix-{look.asked.task}".replace(":", "-")
    frame.figure(figures.mix(curves), name, "mix")
    frame.download_csv(both.mixes, name, "Mix (CSV)", key="mix_csv")


def numbers(both) -> None:
    """Every number beside its baselines."""
    columns = [c for c in ("checkpoint", "mix", "layer", "accuracy", "low", "high", "best",
                           "majority", "word_identity", "length_only", "layer_0", "random",
                           "above_random_p", "control_accuracy", "selectivity", "codelength",
                           "compression", "macro_f1", "accuracy_new_types", "sd")
               if c in both.summary and both.summary[c].notna().any()]
    with st.expander("The numbers", icon=":material/table:"):
        st.dataframe(both.summary[columns], hide_index=True, width="stretch", column_config={
            c: st.column_config.NumberColumn(c.replace("_", " "), format="%.3f") for c in columns
            if c not in ("checkpoint", "mix", "layer", "best")})
