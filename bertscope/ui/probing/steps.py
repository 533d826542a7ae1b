"""One task over the training: layers × checkpoints, the onset, and the order of several tasks."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import compared, frame
from bertscope.ui.probing import exports, figures, results
from bertscope.ui.probing.layers import no_gain
from bertscope.ui.text import markdown

EXPLANATION = r"""
The same probe at many checkpoints of one run, each with its own standardisation and penalty, all
tested on the same items. Dots mark the best set of each checkpoint: layers not significantly below its
best one.

The **onset** of a task is the step at which half of its gain, from the first to the last checkpoint, is
reached for the first time (between two checkpoints by a straight line over $\log(\mathrm{step}+1)$).
Its interval reaches from the checkpoint before the rise to the one after it, over draws of the test
sentences; where the gain itself is not significant (corrected for the layers and tasks) there is no
onset. Tasks are ordered by the onset of the layer that the last checkpoint's *validation* accuracy
prefers, so the test part chooses nothing.

An onset is about this probe and so much training data; it is no finer than the checkpoints are dense.
Probing over the training: Saphra and Lopez 2019; Liu et al. 2021, *Probing across time*; knowledge need
not grow steadily: Chiang et al. 2020.
"""

COUNTS = {"6": 6, "12": 12, "24": 24}
#: Seconds between two looks whether a running training has saved a checkpoint.
EVERY = 3.0


def show(look) -> None:
    if not look.chosen.run:
        st.info("This checkpoint stands alone: there is no training to look back on. Choose a run in "
                "the sidebar.", icon=":material/timeline:")
        return
    others = [offer.name for offer in look.offers if offer.name != look.asked.task]
    if "order" in st.session_state:
        st.session_state["order"] = [name for name in st.session_state["order"] if name in others]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        count = st.segmented_control("Checkpoints, at most", list(COUNTS), default="6", required=True,
                                     key="probe_steps", bind="query-params") or "6"
        also = st.multiselect("Tasks beside it, for the order", others, key="order", format_func=look.title,
                              max_selections=8, width=420, bind="query-params")
        live = st.toggle("Probe each new checkpoint by itself", key="probe_live",
                         bind="query-params",
                         help="While the run is training: whenever it saves a checkpoint, it is probed "
                              "for these tasks without a click.")
    if live and look.chosen.active:
        watch(look.chosen.run)
    tasks = [look.asked.task, *also]
    result = results.over_steps(look, tasks, look.asked.alone(), COUNTS[count], True if live else None,
                                f"probes of {look.chosen.run.name} over its checkpoints")
    if result is None:
        st.caption("Done checkpoints are kept: it goes on where it stopped.")
        return
    if len(result.checkpoints) < 2:
        st.info("There is one checkpoint so far; a map over the training needs two.",
                icon=":material/hourglass_top:")
        return
    the_map(look, result)
    onsets(look, result)
    exports.show(look, result, f"{look.asked.task}-over-steps")


def watch(run) -> None:
    """Rerun the page when the run has saved another checkpoint."""
    seen = len(run.checkpoints())

    def look_again() -> None:
        if len(run.checkpoints()) != seen:
            st.rerun()
        st.caption(":material/radar: Waiting for the next checkpoint.")

    st.fragment(look_again, run_every=EVERY, key="probe_watch")()


def the_map(look, result) -> None:
    """Layers × steps of the chosen task, and of a second run under it on the same scale."""
    both = [(look.chosen, result)]
    if theirs := of_the_other(look):
        both.append((look.other, theirs))
    tables = [grid(found, look.asked.task) for _, found in both]
    span = (min(float(values.min()) for values, *_ in tables),
            max(float(values.max()) for values, *_ in tables))
    for number, ((choice, _), (values, layers, steps, best)) in enumerate(zip(both, tables)):
        marks = [(look.chosen.checkpoint.step, "main")] if not number else []
        if same_run(look) or number:
            marks.append((look.other.checkpoint.step, "other"))
        figure = figures.over_steps(values, layers, steps, f"{look.title(look.asked.task)}: accuracy "
                                    f"at the checkpoints of {choice.run.name}", marks, best, span)
        frame.figure(figure, f"{choice.run.name}-probe-over-steps", f"probe_map_{number}")
    st.caption("Dots: the best set of each checkpoint, layers not significantly below its best one.")


def same_run(look) -> bool:
    """Whether the second checkpoint is of the chosen one's run."""
    other = look.other
    return bool(other and other.run and other.checkpoint and other.run.path == look.chosen.run.path)


def of_the_other(look):
    """The study of the second checkpoint's run, if it is of another run."""
    from dataclasses import replace

    other = look.other
    if other is None or same_run(look):
        return None
    if not other.run or not other.checkpoint:
        st.caption("The second checkpoint stands alone and has no training to show.")
        return None
    turned = replace(look, chosen=other, other=None)
    with compared.aside(other):
        return results.over_steps(turned, [look.asked.task], look.asked.alone(),
                                  COUNTS[st.session_state.get("probe_steps") or "6"], None,
                                  f"probes of {other.run.name} over its checkpoints")


def grid(result, task: str):
    """(accuracy [layers, steps], layers, steps, best set of each step [layers, steps])."""
    table = result.summary
    table = table[(table.task == task) & ~table["mix"] & (table.weights == "trained")]
    values = table.pivot(index="layer", columns="step", values="accuracy").sort_index()
    best = table.pivot(index="layer", columns="step", values="best").loc[values.index, values.columns]
    return (values.to_numpy(float), [int(layer) for layer in values.index],
            [int(step) for step in values.columns], best.to_numpy(bool))


def onsets(look, result) -> None:
    """When each layer came to know the chosen task, and the order of all chosen tasks."""
    table = result.onsets
    if table.empty:
        return
    found = table[table.onset.notna()]
    own = found[found.task == look.asked.task].sort_values("layer")
    chosen = table[table.chosen].sort_values("onset", na_position="last")
    st.markdown("##### Onset: when it rises")
    first = chosen[chosen.task == look.asked.task].iloc[0]
    if first.onset != first.onset or first.onset is None:
        st.caption(f":material/info: {markdown(look.title(look.asked.task))} has no onset: from the first "
                   f"to the last checkpoint accuracy in layer {first.layer} changes by {no_gain(first)}.")
    else:
        st.markdown(f"{markdown(look.title(look.asked.task))}: half of the gain ({first.gain:+.1%} in layer "
                    f"{first.layer}) is there at **step {first.onset:,.0f}** "
                    f":gray[(95 % interval {first.low:,.0f} to {first.high:,.0f})]")
    left, right = frame.beside(2, "onsets")
    with left:
        if len(own):
            rows = [(f"layer {row.layer}", row.onset, row.low, row.high, "main")
                    for row in own.itertuples()]
            frame.figure(figures.onsets(rows, "onset, training step"),
                         f"{look.chosen.run.name}-onset-by-layer", "onset_layers")
    with right:
        several = chosen[chosen.onset.notna()]
        if len(chosen) > 1 and len(several):
            rows = [(look.title(row.task), row.onset, row.low, row.high, "main")
                    for row in several.itertuples()]
            frame.figure(figures.onsets(rows, "onset, training step"),
                         f"{look.chosen.run.name}-onsets", "onset_tasks")
        elif len(chosen) == 1:
            st.caption("Choose other tasks above to see in which order they were learnt.")
        if len(chosen) > 1 and (without := [look.title(task) for task in chosen[chosen.onset.isna()].task]):
            st.caption(":material/info: Without an onset, for there is no significant gain: "
                       + ", ".join(map(markdown, without)) + ".")
    frame.download_csv(table, f"{look.chosen.run.name}-onsets", "Onsets (CSV)", key="onsets_csv")
