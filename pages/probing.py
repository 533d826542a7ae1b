"""Probing: what can be read off each layer by a linear classifier?"""

from dataclasses import replace

import streamlit as st

from bertscope.analysis import timeline
from bertscope.errors import BertScopeError
from bertscope.ui import charts, frame, loaders, probes, theme
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown

SOURCES = ("miniworld", "CoNLL-U on this machine", "upload")
MORE_CHECKPOINTS = 7
EXPLANATION = r"""
Every word becomes the mean of its pieces' states in one layer, and multinomial logistic
regression learns the gold label from it: on training sentences, with the strength of the penalty
chosen on validation sentences, tested once on others. The parts share no document. Features are
standardised. The bars are 95 % intervals from a bootstrap over test sentences.

Read a number only beside its baselines. *Majority*: always the most frequent label. *Most
frequent label of each word*: no model at all, a dictionary. With the word hidden (masked when it
is read) the states can only tell what the context says, and the dictionary has an unfair
advantage. *Random weights*: the same architecture untrained, so what words and positions alone
give away. What a probe finds is *in* the states; whether the model uses it is another question.

Alain and Bengio 2016; Hewitt and Liang 2019 (the protocol); Belinkov 2022 (what probes do not
show); layers and tasks: Tenney et al. 2019.
"""


def main() -> None:
    chosen, other = frame.checkpoints()
    model = loaders.model(chosen)
    found = source()
    if found is None:
        return
    data, tasks = found
    if not tasks:
        st.warning("Nothing in this annotation has two labels or more to tell apart.",
                   icon=":material/rule:")
        return
    names = [task.name for task in tasks]
    frame.try_this(*experiments(names))
    asked = ask(tasks, names)
    table = result(chosen, data, asked, easy(model, chosen))
    if table is None:
        return
    theirs = result(other, data, replace(asked, random_init=False), True) if other else None
    show(chosen, other, table, theirs, data)
    if chosen.run:
        show_learning(chosen, data, asked)


def source():
    """(gold, tasks), or None while a file is still missing."""
    where = st.segmented_control("Gold annotation", SOURCES, default=SOURCES[0], key="gold_from",
                                 required=True, label_visibility="collapsed",
                                 bind="query-params") or SOURCES[0]
    if where == SOURCES[0]:
        return probes.gold("miniworld", 0.0)
    if where == SOURCES[1]:
        path = st.text_input("A CoNLL-U file, or a folder with train, dev and test", key="gold",
                             bind="query-params", max_chars=1000,
                             placeholder="ud_english_ewt/ or my.conllu").strip()
        if not path:
            st.info("Give a path. Universal Dependencies treebanks are in this format.",
                    icon=":material/folder_open:")
            return None
        return probes.gold(path, probes.stamp(path))
    file = st.file_uploader("A CoNLL-U file", ["conllu"], key="gold_file", max_upload_size=8)
    if file is None:
        return None
    return probes.uploaded(file.name, file.getvalue())


def experiments(names: list[str]) -> list:
    number = next((n for n in ("feat:Number@NOUN", "feat:Number") if n in names), None)
    wanted = [("part of speech", "upos", False), ("part of speech, the word hidden", "upos", True)]
    if number:
        wanted.append(("singular or plural", number, False))
    return [(label, lambda task=task, hide=hide: frame.set_state(task=task, hide_word=hide))
            for label, task, hide in wanted if task in names]


def ask(tasks, names: list[str]):
    """Task and size."""
    titles = {task.name: f"{task.title} · {task.classes} labels" for task in tasks}
    if st.session_state.get("task") not in (None, *names):
        del st.session_state["task"]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        task = st.selectbox("Task", names, format_func=titles.get, key="task", width=420)
        size = st.segmented_control("Training words", list(probes.SIZES), default="2,000",
                                    key="probe_size", required=True)
        masked = st.toggle("Hide the word", key="hide_word", bind="query-params",
                           help="Each probed word is masked when its vector is read: what does the "
                                "context alone tell about it?")
    return probes.config(task, size or "2,000", masked, random_init=True)


def easy(model, choice: Choice) -> bool:
    """Whether it is quick enough to do unasked, and nothing is training beside it."""
    return model.hidden_size * (model.num_layers + 1) <= probes.EASY and not choice.active


def result(choice: Choice, data, asked, unasked: bool):
    """The table, from the cache or computed now; None while it waits for a click."""
    try:
        table = probes.kept(choice, data, asked)
    except BertScopeError as error:
        st.warning(f"{markdown(choice.label)}: {markdown(error)}", icon=":material/compare:")
        return None
    if table is not None:
        return table
    name = f"{choice.label}|{data.name}|{asked}"
    stopped = st.session_state.setdefault("_probes_stopped", set())
    place = st.empty()
    with place.container():
        clicked = st.button(f"Probe {markdown(choice.label)}", type="primary",
                            icon=":material/play_arrow:", key=f"probe_{choice.label}",
                            help="Takes seconds for a tiny model, minutes for a base one.") \
            if not unasked or name in stopped else True
    if not clicked:
        return None
    stopped.discard(name)
    with place.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, text="starting")
        # Any click interrupts a running script; this one says that it shall not begin again.
        st.button("Cancel", icon=":material/close:", key=f"cancel_{choice.label}",
                  on_click=stopped.add, args=(name,))
    table = probes.compute(choice, data, asked, lambda message, share: bar.progress(
        min(max(share or 0.0, 0.0), 1.0), text=f"{choice.label}: {message}"))
    place.empty()
    return table


def show(chosen, other, table, theirs, data) -> None:
    """The curve over layers with everything that it must be compared to."""
    import pandas as pd

    trained, untrained = (table[table.weights == w] for w in ("trained", "random"))
    curves = [(chosen.label, "main", "solid", trained)]
    if theirs is not None:
        curves.append((other.label, "other", "solid", theirs[theirs.weights == "trained"]))
    if len(untrained):
        curves.append(("random weights", "baseline", "dot", untrained))
    first = table.iloc[0]
    references = [("most frequent label of each word", float(first.type_baseline)),
                  ("majority", float(first.majority))]
    best = trained.loc[trained.accuracy.idxmax()]
    hidden = ", the word hidden" if st.session_state.get("hide_word") else ""
    st.markdown(f"##### {markdown(first.title)}{hidden}: best from layer {int(best.layer)}, "
                f"{best.accuracy:.1%} :gray[(95 % interval {best.low:.1%} to {best.high:.1%})]")
    chart = charts.layers(curves, references, "accuracy on test words",
                          st.session_state.get("whole_scale", False))
    frame.figure(chart, f"{chosen.stem}-probe-{first.task}", "probe_curve")
    st.toggle("Show from 0 to 100 %", key="whole_scale")
    st.caption(f"{first.n_train:,} training, {first.n_valid:,} validation and {first.n_test:,} "
               f"test words, {first.n_labels} labels. {markdown(data.note)}")
    parts = [table.assign(checkpoint=chosen.label)]
    if theirs is not None:
        parts.append(theirs.assign(checkpoint=other.label))
    everything = pd.concat(parts, ignore_index=True)
    with st.expander("The numbers", icon=":material/table:"):
        st.dataframe(everything[["checkpoint", "weights", "layer", "accuracy", "low", "high",
                                 "macro_f1", "C"]], hide_index=True, width="stretch",
                     column_config={c: st.column_config.NumberColumn(format="%.3f")
                                    for c in ("accuracy", "low", "high", "macro_f1")})
    with st.container(horizontal=True):
        frame.download_csv(everything, f"{chosen.stem}-probe-{first.task}".replace(":", "-"),
                           key="probe_csv")
        frame.download_figure(chart, f"{chosen.stem}-probe", "probe_html")


def show_learning(chosen: Choice, data, asked) -> None:
    """The same task at the run's other checkpoints: what is there, and a button for more."""
    saved = timeline.sample(chosen.run.checkpoints(), MORE_CHECKPOINTS, (chosen.checkpoint.step,))
    alone = replace(asked, random_init=False)
    st.divider()
    known = probes.over_checkpoints(chosen, data, asked)
    have = set(known["step"]) if len(known) else {chosen.checkpoint.step}
    missing = [c for c in saved if c.step not in have]
    place = st.empty()
    if missing and place.button(f"Probe {len(missing)} more of its checkpoints",
                                icon=":material/timeline:", key="probe_more",
                                help="Shows when each layer learnt this. Click anywhere to cancel; "
                                     "what is done is kept."):
        bar = place.progress(0.0)
        for number, checkpoint in enumerate(missing):
            choice = Choice(chosen.name, chosen.run, checkpoint)
            probes.compute(choice, data, alone, lambda text, share: bar.progress(
                min((number + (share or 0.0)) / len(missing), 1.0),
                text=f"step {checkpoint.step:,}: {text}"))
        place.empty()
        known = probes.over_checkpoints(chosen, data, asked)
    if not len(known):
        return
    known = known.assign(series="layer " + known.layer.astype(str)).sort_values(["layer", "step"])
    order = list(dict.fromkeys(known.series))
    whole = st.session_state.get("whole_scale", False)
    st.altair_chart(charts.over_steps(
        known[["step", "accuracy", "series"]], "accuracy", "series", order,
        "Accuracy over the training", [(chosen.checkpoint.step, "main")],
        (float(known.majority.iloc[0]), "majority"), full=whole, near=not whole,
        colours=theme.categories(len(order))), key="probe_learning", width="stretch")
    frame.download_csv(known, f"{chosen.run.name}-probe-over-steps")


with frame.page("Probing", "What does each layer know about words, part of speech and number above "
                           "all?"):
    main()
frame.explain(EXPLANATION)
