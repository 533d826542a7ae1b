"""Several tasks side by side: in which layers is each solved?"""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import frame
from bertscope.ui.probing import exports, figures, results
from bertscope.ui.probing.layers import said
from bertscope.ui.text import markdown

EXPLANATION = r"""
For each task a probe reads layers 0 to $\ell$ together, mixed by learnt weights
$s = \mathrm{softmax}(a)$, for each $\ell$. With
$\Delta_\ell = \mathrm{score}(0..\ell) - \mathrm{score}(0..\ell-1)$ the **expected layer** is
$\sum_\ell \ell\,\Delta_\ell \,/ \sum_\ell \Delta_\ell$: where, on average, the task's information comes in.
It is left out where the whole gain over layer 0 is not significant, for then it divides noise by noise.
The **centre of gravity** $\sum_\ell \ell\, s_\ell$ says where the mix of all layers looks. Layers are
standardised before they are mixed, for one of large norm would draw it (Fayyaz et al. 2021); layers that say
the same share the weights as chance has it, so read it beside the expected layer.

Tenney, Das and Pavlick 2019, *BERT rediscovers the classical NLP pipeline*, section 3. That the tasks
stand in a pipeline does not follow from such a figure: Niu et al. 2022.
"""

FEWEST = 2


def show(look) -> None:
    names = [offer.name for offer in look.offers]
    default = [name for name in ("upos", "deprel", "feat:Number@NOUN", "sent:depth", "pair:coref")
               if name in names] or names[:4]
    if "tasks" not in st.session_state:
        st.session_state["tasks"] = default
    st.session_state["tasks"] = [name for name in st.session_state["tasks"] if name in names]
    chosen = st.multiselect("Tasks", names, key="tasks", format_func=look.title, max_selections=12,
                            bind="query-params")
    if len(chosen) < FEWEST:
        st.info("Choose two tasks or more to set them side by side.", icon=":material/checklist:")
        return
    protocol = replace(look.asked.protocol, mix=True, hide=False, control=False, codelength=False)
    asked = replace(look.asked, protocol=protocol)
    usable = [name for name in chosen if served(look, name, asked)]
    if not usable:
        return
    result = results.study(look, [look.chosen], usable, asked,
                           f"probes of {look.chosen.label} for {len(usable)} tasks", unasked=False)
    if result is None:
        st.caption("For each task as many probes as there are layers, and mixes of them.")
        return
    both = results.beside(look, usable, asked, f" for {len(usable)} tasks") or result
    centres(look, both, usable)
    table(look, both, usable)
    exports.show(look, both, "tasks")


def served(look, name: str, asked) -> bool:
    """Whether the data serve a task; a sentence where they do not."""
    from bertscope.ui.probing import data

    try:
        data.items(look.source, name, asked.apart)
    except BertScopeError as error:
        st.warning(f"{markdown(look.title(name))}: {markdown(error)}", icon=":material/rule:")
        return False
    return True


def centres(look, both, tasks: list[str]) -> None:
    """The expected layers with their intervals, the lowest on top, and the mixes' centres of gravity."""
    meaning = {choice.label: colour for choice, colour in look.sides}
    found = both.centres[both.centres.checkpoint.isin(meaning)]
    found = found.assign(place=found.expected_layer.fillna(look.model.num_layers + 1)).sort_values(
        ["place", "centre"])
    rows = [(look.title(row.task), row.expected_layer, row.low, row.high, meaning[row.checkpoint])
            for row in found.itertuples()]
    before = {name: f"{name}: " if len(meaning) > 1 else "" for name in meaning}
    named = {colour: (f"{before[name]}expected layer", f"{before[name]}centre of gravity")
             for name, colour in meaning.items()}
    marks = [(look.title(row.task), row.centre, meaning[row.checkpoint]) for row in found.itertuples()]
    figure = figures.intervals(rows, "layer (0 = embeddings)", range_=(-0.2, look.model.num_layers + 0.2),
                               beside=marks, called=named)
    figure.update_xaxes(dtick=1)
    frame.figure(figure, f"{look.chosen.stem}-expected-layers", "centres")
    without = found[found.expected_layer.isna() & (found.checkpoint == look.chosen.label)]
    if len(without):
        st.caption(":material/info: Without an expected layer, for there is no significant gain over "
                   "layer 0: " + ", ".join(f"{markdown(look.title(row.task))} ({row.gain:+.1%})"
                                               for row in without.itertuples()) + ".")


def table(look, both, tasks: list[str]) -> None:
    """Each task's best set beside its baselines."""
    import pandas as pd

    rows = []
    for checkpoint in both.checkpoints:
        for task in tasks:
            own = both.summary[(both.summary.task == task) & (both.summary.checkpoint == checkpoint)
                               & ~both.summary["mix"]]
            centre = both.centres[(both.centres.task == task)
                                  & (both.centres.checkpoint == checkpoint)].iloc[0]
            top = own.loc[own.accuracy.idxmax()]
            rows.append({"checkpoint": checkpoint, "task": look.title(task),
                         "best set": said(own.layer[own.best].tolist()), "accuracy": top.accuracy,
                         "low": top.low, "high": top.high, "expected layer": centre.expected_layer,
                         "centre of gravity": centre.centre, "layer 0": top.layer_0,
                         "random weights": top["random"], "word identity": top.word_identity,
                         "majority": top.majority})
    one = pd.DataFrame(rows).drop(columns=[] if len(both.checkpoints) > 1 else "checkpoint")
    st.dataframe(one, hide_index=True, width="stretch", column_config={
        name: st.column_config.NumberColumn(format="%.3f") for name in rows[0]
        if name not in ("checkpoint", "task", "best set")})
