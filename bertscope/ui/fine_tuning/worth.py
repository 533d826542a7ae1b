"""What pretraining is worth: the same task from random weights and from several checkpoints."""

from __future__ import annotations

import streamlit as st

from bertscope import runs
from bertscope.errors import BertScopeError
from bertscope.ui import frame, theme
from bertscope.ui.fine_tuning import TASKS, asked, figures, tuned_run
from bertscope.ui.fine_tuning.quality import metric_title, value_of
from bertscope.ui.probing.figures import intervals
from bertscope.ui.run_watch import duration
from bertscope.ui.selection import Choice, find_run
from bertscope.ui.text import markdown, shorten

EXPLANATION = r"""
The same task, the same examples, the same head: only where the training begins differs. *Random weights*
are drawn anew with each seed, as the pretraining itself began; the others are an early, a middle and the
last checkpoint of one pretraining run. Every point is the mean of the best validation metric over the
seeds; the bar is its 95 % interval by Student's $t$ with $n - 1$ degrees of freedom,

$$
\bar x \pm t_{0.975,\,n-1}\, \frac{s}{\sqrt n}.
$$

Fewer examples are always part of more, and the seed decides which. Where several learning rates were
tried, the one with the best mean is shown, for each start its own. Hao et al. 2019 and Warstadt et al.
2020 (*Learning which features matter*) draw such curves; Dodge et al. 2020 on seeds.
"""

SIZES, SEEDS, EPOCHS, BATCH = "30, 100, 300", 3, 8.0, 16
MOST_SIZES, MOST_RUNS = 8, 400
EVERY = 2.0


def show(main: Choice, other: Choice | None) -> None:
    found = gathered()
    family = family_of(main)
    progress(family)
    own = [group for group in found if group.family == family]
    if own or found:
        drawn(own + [group for group in found if group not in own])
    else:
        st.info("There is no sweep yet: it fine-tunes random weights, an early, a middle and the last "
                "checkpoint on more and more examples, and draws a line for each.",
                icon=":material/ssid_chart:")
    form(main, family, bool(found))


def gathered() -> list:
    from bertscope.finetuning.gathered import gather

    with st.spinner("Looking for sweeps among the runs …"):
        return gather()


def family_of(main: Choice) -> str:
    """The pretraining run that the chosen checkpoint is of, or began with."""
    if (run := tuned_run(main)) is not None:
        from bertscope.finetuning.gathered import begun

        return begun(run).family
    return main.name


# -- the picture --------------------------------------------------------------------------------


def drawn(groups: list) -> None:
    from bertscope.finetuning import sweep

    titles = {str(number): named(group) for number, group in enumerate(groups)}
    if st.session_state.get("worth_which") not in (None, *titles):
        del st.session_state["worth_which"]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        which = st.selectbox("Sweep", list(titles), format_func=titles.get, key="worth_which", width=520)
        log = st.toggle("Logarithmic", True, key="worth_log", bind="query-params",
                        help="Of the numbers of examples: twice as many are always as far to the right.")
    group = groups[int(which or 0)]
    table = sweep.frame(group.made)
    means = sweep.summary(table)
    chosen = means[means["chosen"]]
    curves = [(begun.title, colour(begun, group.starts),
               chosen[chosen["start"] == begun.start].sort_values("examples")) for begun in group.starts]
    metric = str(table["metric"].iloc[0])
    st.markdown(headline(group, chosen, metric))
    seeds = int(chosen["seeds"].max())
    if table["examples"].nunique() > 1:
        figure = figures.worth(curves, metric_title(metric), bool(log), references(group, metric))
    else:  # one number of examples is no curve
        rows = [(begun.title, *own.iloc[0][["mean", "low", "high"]], "main" if begun.step >= 0 else "baseline")
                for begun, (_, _, own) in zip(group.starts, curves)]
        figure = intervals(rows, metric_title(metric), form=".1%", height=140 + 44 * len(rows))
        figure.update_xaxes(tickformat=".0%")
        figure.update_yaxes(autorange=False, range=[len(rows) - 0.5, -0.5])
    frame.figure(figure, f"{group.family}-worth", "worth")
    st.caption(f"Mean and 95 % interval over {seeds} seed{'s' * (seeds != 1)}, of the best validation "
               "metric. " + ("One seed has no interval." if seeds == 1 else ""))
    with st.expander("The numbers", icon=":material/table:"):
        shown = means.drop(columns=["chosen"]) if means["chosen"].all() else means
        st.dataframe(shown, hide_index=True, width="stretch", column_config={
            name: st.column_config.NumberColumn(format="%.3f") for name in ("mean", "sd", "low", "high")})
    with st.container(horizontal=True):
        frame.download_csv(means, f"{group.family}-worth", "Means (CSV)", key="worth_means")
        frame.download_csv(table, f"{group.family}-worth-runs", "Runs (CSV)", key="worth_runs")


def named(group) -> str:
    data = group.config.data
    task = f", {data.task}" if data.source == "miniworld" else ""
    return f"{shorten(group.family or 'random', 40)} on {shorten(data.source, 40)}{task} " \
           f"({len(group.made)} runs)"


def colour(begun, starts: list) -> str:
    """Grey for random weights, then darker and darker."""
    if begun.step < 0:
        return theme.colour("baseline")
    trained = [s for s in starts if s.step >= 0]
    place = trained.index(begun) / max(1, len(trained) - 1) if len(trained) > 1 else 1.0
    return theme.shade(theme.sequential(), 0.4 + 0.5 * place)


def headline(group, chosen, metric: str) -> str:
    """The last checkpoint against random weights, where they differ most."""
    random, last = group.starts[0], group.starts[-1]
    both = {begun.start: chosen[chosen["start"] == begun.start].set_index("examples") for begun in (random, last)}
    shared = both[random.start].index.intersection(both[last.start].index)
    if random.step >= 0 or not len(shared):
        return f"##### {metric_title(metric)} by number of training examples"
    a, b = (both[begun.start].loc[shared, "mean"] for begun in (last, random))
    at = (a - b).abs().idxmax()
    return (f"##### With {int(at):,} examples: {metric_title(metric)} {value_of(metric, a[at])} with "
            f"pretraining, {value_of(metric, b[at])} without")


def references(group, metric: str) -> list[tuple[str, float]]:
    run = next(iter(group.made.values()))
    for name, value in run.config_record().get("baselines", {}).items():
        if name.endswith(f"_majority_{metric}"):
            return [(f"commonest answer {value_of(metric, value)}", float(value))]
    return []


# -- a sweep of one's own -----------------------------------------------------------------------


def progress(family: str) -> None:
    """The sweep that is being trained, or one that was stopped."""
    from bertscope.finetuning.planned import listed

    plans = listed()
    alive = next((plan for plan in plans if plan.alive()), None)
    shown = alive or next((plan for plan in plans if not complete(plan)), None)
    if shown is None:
        return
    st.fragment(_progress, run_every=EVERY if alive else None, key="worth_progress")(
        str(shown.path), alive is not None)


def complete(plan) -> bool:
    try:
        found = plan.progress()
        return found.done >= found.total
    except BertScopeError:
        return True  # its plan cannot be read: there is nothing to go on with


def _progress(path: str, was_alive: bool) -> None:
    from pathlib import Path

    from bertscope.finetuning.planned import Planned

    plan = Planned(Path(path))
    try:
        found = plan.progress()
    except BertScopeError as error:
        frame.show_error(error)
        return
    alive = plan.alive()
    if alive != was_alive:
        st.rerun()
    with st.container(border=True, key="worth_running"):
        now = f" · {found.now.name}" if found.now is not None and alive else ""
        st.progress(found.share, text=markdown(f"{found.done:,} of {found.total:,} runs finished{now}"))
        with st.container(horizontal=True, vertical_alignment="center"):
            if alive and plan.folder.stop_asked():
                st.caption(":material/hourglass_top: Finishing a step …")
            elif alive:
                st.button("Cancel", key="worth_stop", icon=":material/close:", on_click=_act,
                          args=(plan.stop,), help="It ends after a step, and can be gone on with.")
            else:
                st.button("Go on", key="worth_resume", icon=":material/play_arrow:", type="primary",
                          on_click=_act, args=(plan.start,))
                if plan.said():
                    st.caption(markdown(plan.said()))
        with st.expander("Log", icon=":material/terminal:"):
            st.code(plan.folder.log_tail() or "nothing yet", language=None, height=200)
    if error := st.session_state.pop("_worth_error", None):
        st.error(markdown(error), icon=":material/error:")


def _act(what) -> None:
    try:
        what()
    except BertScopeError as error:
        st.session_state["_worth_error"] = str(error)


def form(main: Choice, family: str, any_yet: bool) -> None:
    base = find_run(family)
    if base is None or base.kind != "pretraining":
        st.caption(":material/info: A sweep begins with a pretraining run of ours; choose one in the "
                   "sidebar to start one.")
        return
    with st.expander("A sweep of your own" if any_yet else "The first sweep", icon=":material/tune:",
                     expanded=not any_yet):
        try:
            _form(main, base)
        except BertScopeError as error:
            frame.show_error(error)


def _form(main: Choice, base) -> None:
    from bertscope.finetuning import planned
    from bertscope.finetuning.config import FinetuneConfig
    from bertscope.finetuning.sweep import Sweep, milestones

    tuned = tuned_run(main)
    options = list(TASKS)
    own = tuned is not None and tuned.settings().data.source != "miniworld"
    if own:
        options.insert(0, "as before")
    columns = st.columns([3, 3, 1, 1])
    task = columns[0].selectbox(
        "Task", options, options.index("as before" if own else "tokens"), key="ft.worth.task",
        format_func=lambda t: f"the examples of {tuned.name}" if t == "as before" else
        f"{t} · {TASKS[t][0]} (miniworld)")
    sizes = sizes_of(columns[1].text_input("Numbers of training examples", SIZES, key="ft.worth.sizes",
                                           max_chars=100, help="With commas between; *all* takes all."))
    seeds = columns[2].number_input("Seeds", 1, 10, SEEDS, key="ft.worth.seeds")
    epochs = columns[3].number_input("Epochs", 0.1, 1000.0, EPOCHS, 1.0, key="ft.worth.epochs", format="%g")
    config = tuned.settings() if task == "as before" else FinetuneConfig().override({"data.task": task})
    config = config.override({"training.epochs": epochs, "training.batch_size": BATCH,
                              "data.most_train": None, "training.seed": 0})
    starts = milestones(base)
    wanted = Sweep(config.override({"start": starts[0]}), starts, sizes, (), int(seeds))
    count = len(starts) * len(sizes) * int(seeds)
    said = ", ".join("random weights" if s.startswith("random") else s for s in starts)
    st.caption(f"**{count:,} runs**: {markdown(said)}; each with {len(sizes)} "
               f"number{'s' * (len(sizes) != 1)} of examples and {int(seeds)} "
               f"seed{'s' * (int(seeds) != 1)}. {markdown(estimate(config))}")
    if count > MOST_RUNS:
        raise BertScopeError(f"That is {count:,} runs; from here at most {MOST_RUNS:,} are started.")
    busy = any(plan.alive() for plan in planned.listed())
    if st.button("Start the sweep", type="primary", icon=":material/play_arrow:", key="worth_start",
                 disabled=busy, help="A sweep is being trained already." if busy else
                 "In a process of its own: it goes on when this page is closed."):
        with st.spinner("Starting …"):
            planned.plan(wanted).start()
        st.rerun()
    numbers = " ".join("all" if n is None else str(n) for n in sizes)
    if config.data.source == "miniworld":
        st.code(f"bertscope finetune miniworld --task {config.data.task} --from {base.name} --worth --curve "
                f"{numbers} --seeds {int(seeds)} --epochs {epochs:g} --batch-size {BATCH}", language="bash",
                wrap_lines=True)


def sizes_of(text: str) -> list[int | None]:
    """``"30, 100, all"`` -> ``[30, 100, None]``.

    Raises:
        BertScopeError: it is no list of numbers, or a long one.
    """
    parts = [part for part in text.replace(",", " ").split() if part]
    if not parts or any(part != "all" and not (part.isascii() and part.isdigit() and 0 < int(part) < 10**8)
                        for part in parts):
        raise BertScopeError("Numbers of training examples are whole numbers with commas between, or all.")
    found = list(dict.fromkeys(None if part == "all" else int(part) for part in parts))
    if len(found) > MOST_SIZES:
        raise BertScopeError(f"At most {MOST_SIZES} numbers of examples are taken.")
    return sorted(found, key=lambda n: (n is None, n or 0))


def estimate(config) -> str:
    """How long finished runs of the same task took here, as a guess."""
    seconds = [run.status().get("seconds", 0.0) for run in asked.tuned_runs()
               if run.config_record().get("task") == config.data.task
               and run.status()["state"] == "finished" and run.settings().data.source == config.data.source]
    if not seconds:
        return ""
    return f"Runs of this task took {duration(sorted(seconds)[len(seconds) // 2])} here each, with their own " \
           "numbers of examples."
