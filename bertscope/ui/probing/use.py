"""Does the model use what a probe finds? Take it out of the states and watch the model's own loss."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import compared, frame, loaders, waiting
from bertscope.ui.probing import data, exports, figures, results
from bertscope.ui.probing.layers import said
from bertscope.ui.text import markdown

EXPLANATION = r"""
What a layer says *linearly* of the task is removed from its states, the model goes on from there, and
its guesses of masked pieces are compared with those of the untouched model, and with those after as many
directions drawn at random were removed.

*LEACE* (Belrose et al. 2023) removes it in closed form with the least change; *INLP* (Ravfogel et al.
2020) trains probe after probe and projects each one's directions away. Afterwards a new linear probe does
no better than the majority (the column *probe*): what other probes could find may still be there.

The figure shows the loss that removing the task costs **more than removing as much at random**, in
nats per masked piece of a labelled word, with its 95 % interval (paired bootstrap over sentences, layer by
layer). At or below 0: the probe can read it, but the model does not need it for its guesses. Above 0: it is
used, or something that goes along with it.

Elazar et al. 2021, *Amnesic probing*.
"""

METHODS = {"LEACE": "leace", "INLP": "inlp"}
SIZES = {"300": (300, 100, 200), "1,000": (1000, 200, 300)}


def show(look) -> None:
    from bertscope.analysis.probing.amnesic import AmnesicConfig
    from bertscope.analysis.probing.structure_methods import of_amnesic

    items = data.items(look.source, look.asked.task, look.asked.apart)
    if items.kind != "word":
        st.info("What is removed is what the states of single words say: choose a task about words.",
                icon=":material/rule:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        method = st.segmented_control("Removed by", list(METHODS), default="LEACE", required=True,
                                      key="erase_method", bind="query-params") or "LEACE"
        size = st.segmented_control("Training sentences", list(SIZES), default="300", required=True,
                                    key="erase_size", bind="query-params") or "300"
    config = AmnesicConfig(METHODS[method], **dict(zip(("max_train", "max_valid", "max_test"), SIZES[size])))
    found = compared.each(look.sides, lambda choice, _: removed(look, choice, items, config))
    if not found:
        st.caption("The model reads the test sentences anew for each layer and each control: a minute or "
                   "more.")
        return
    excess(look, found)
    st.caption(f"Learnt from up to {config.max_train:,} training and {config.max_valid:,} validation "
               f"sentences, each masked {config.rounds} times; measured on "
               f"{int(found[0][2].sentences.max()):,} test sentences and against {config.controls} random "
               f"removals; seed {config.seed}. {markdown(look.source.note)}")
    numbers(look, found)
    exports.paragraph(of_amnesic([choice.label for choice, *_ in found], items, config))


def removed(look, choice, items, config):
    """``kept_trees.amnesic_kept`` of a checkpoint; None while it waits or is cancelled."""
    from bertscope.analysis.probing.kept_trees import amnesic_kept

    def ask(told=None, kept_only: bool = False):
        return amnesic_kept(choice.path, items, config, told, results.opener(look), kept_only)

    table = ask(kept_only=True)
    if table is not None:
        return table
    wanted = ("amnesic", choice.path, loaders.stamp(choice.path), items.task, items.fingerprint, config)
    results.waits(wanted)
    return waiting.kept(wanted, lambda told: ask(results.seldom(told)),
                        f"the loss of {choice.label} without the task")


def excess(look, found) -> None:
    """What removing the task costs more than removing at random, over the layers."""
    from bertscope.analysis.probing.uncertainty import few

    tables = [(choice, meaning, by_layer(table)) for choice, meaning, table in found]
    own = tables[0][2]
    needed = [int(layer) for layer in own.layer[own.low > 0]]
    task = markdown(look.title(look.asked.task))
    if own.low.isna().all():
        st.markdown(f"##### {task}: what removing it costs, beyond as much removed at random")
    elif needed:
        st.markdown(f"##### {task}: removing it costs more than chance in {said(needed)}")
    else:
        st.markdown(f"##### {task}: in no layer does removing it cost more than removing as much at random")
    drawn = [(choice.label, meaning, "solid", table) for choice, meaning, table in tables]
    figure = figures.layers(drawn, [("as at random", 0.0)], "loss beyond random removal, nats",
                            form=".3f")
    frame.figure(figure, f"{look.chosen.stem}-amnesic", "amnesic_curve")
    if note := few(int(own.sentences.min())):
        st.caption(note)


def by_layer(table):
    """layer, value, low, high: what removing the task costs beyond chance."""
    rows = table[table.removed == "task"]
    return rows.assign(value=rows.excess, low=rows.excess_low, high=rows.excess_high)


def numbers(look, found) -> None:
    """All rows, and the downloads."""
    import pandas as pd

    table = pd.concat([own.assign(checkpoint=choice.label) for choice, _, own in found],
                      ignore_index=True)
    shown = [c for c in ("checkpoint", "layer", "removed", "rank", "variance", "probe", "majority", "mlm",
                         "change", "low", "high", "accuracy", "excess", "excess_low", "excess_high")
             if c in table]
    with st.expander("The numbers", icon=":material/table:"):
        st.dataframe(table[shown], hide_index=True, width="stretch", column_config={
            c: st.column_config.NumberColumn(format="%.4f") for c in shown
            if c not in ("checkpoint", "layer", "removed", "rank")})
    name = f"{look.chosen.stem}-amnesic-{look.asked.task}".replace(":", "-")
    with st.container(horizontal=True):
        exports.tables(table, name, "amnesic")
