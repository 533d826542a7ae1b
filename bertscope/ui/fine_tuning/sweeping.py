"""A sweep of one's own for *What pretraining is worth*: started, watched, cancelled, gone on with."""

from __future__ import annotations

import math

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import frame
from bertscope.ui.fine_tuning import TASKS, asked, tuned_run
from bertscope.ui.run_watch import duration
from bertscope.ui.selection import Choice, find_run
from bertscope.ui.text import markdown

#: What is asked for at first: a few minutes' work for a small model.
SIZES, SEEDS, EPOCHS, BATCH = "30, 100, 300", 3, 8.0, 16
MOST_SIZES, MOST_RATES, MOST_RUNS = 8, 8, 400
#: Seconds between two looks at how far it is.
EVERY = 2.0


def progress() -> None:
    """The sweep that is being trained, or one that was stopped; the page is drawn anew with each of its runs
    that is finished."""
    from bertscope.finetuning.planned import listed

    plans = listed()
    alive = next((plan for plan in plans if plan.alive()), None)
    shown = alive or next((plan for plan in plans if not complete(plan)), None)
    if shown is None:
        return
    st.fragment(_progress, run_every=EVERY if alive else None, key="worth_progress")(
        str(shown.path), alive is not None, done(shown))


def done(plan) -> int:
    """How many of its runs are finished; -1 where its plan cannot be read."""
    try:
        return plan.progress().done
    except BertScopeError:
        return -1


def complete(plan) -> bool:
    try:
        found = plan.progress()
        return found.done >= found.total
    except BertScopeError:
        return True  # its plan cannot be read: there is nothing to go on with


def _progress(path: str, was_alive: bool, was_done: int) -> None:
    from pathlib import Path

    from bertscope.finetuning.planned import Planned

    plan = Planned(Path(path))
    if not plan.path.is_dir():  # forgotten
        st.rerun()
    try:
        found = plan.progress()
    except BertScopeError as error:
        frame.show_error(error)
        return
    alive = plan.alive()
    if alive != was_alive or found.done != was_done:
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
                st.button("Forget it", key="worth_forget", icon=":material/delete:", on_click=_act,
                          args=(plan.forget,), help="The plan goes; the runs that it made stay.")
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
    columns = st.columns([3, 2, 2, 1, 1])
    task = columns[0].selectbox(
        "Task", options, options.index("as before" if own else "tokens"), key="ft.worth.task",
        format_func=lambda t: f"the examples of {tuned.name}" if t == "as before" else
        f"{t} · {TASKS[t][0]} (miniworld)")
    sizes = sizes_of(columns[1].text_input("Numbers of training examples", SIZES, key="ft.worth.sizes",
                                           max_chars=100, help="With commas between; *all* takes all."))
    rates = rates_of(columns[2].text_input("Learning rates", key="ft.worth.rates", max_chars=100,
                                           placeholder="the default", help="With commas between, as in "
                                           "3e-4, 1e-3: of several the one with the best mean over the "
                                           "seeds is drawn, for each start its own."))
    seeds = columns[3].number_input("Seeds", 1, 10, SEEDS, key="ft.worth.seeds")
    epochs = columns[4].number_input("Epochs", 0.1, 1000.0, EPOCHS, 1.0, key="ft.worth.epochs", format="%g")
    config = tuned.settings() if task == "as before" else FinetuneConfig().override({"data.task": task})
    config = config.override({"training.epochs": epochs, "training.batch_size": BATCH,
                              "data.most_train": None, "training.seed": 0})
    starts = milestones(base)
    wanted = Sweep(config.override({"start": starts[0]}), starts, sizes, rates, int(seeds))
    count = sum(1 for _ in wanted.cells())
    said = ", ".join("random weights" if s.startswith("random") else s for s in starts)
    st.caption(f"**{count:,} runs**: {markdown(said)}; each with {len(sizes)} "
               f"number{'s' * (len(sizes) != 1)} of examples"
               f"{f', {len(rates)} learning rates' if len(rates) > 1 else ''} and {int(seeds)} "
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
    chosen = f"--learning-rates {' '.join(f'{rate:g}' for rate in rates)} " if rates else ""
    if config.data.source == "miniworld":
        st.code(f"bertscope finetune miniworld --task {config.data.task} --from {base.name} --worth --curve "
                f"{numbers} {chosen}--seeds {int(seeds)} --epochs {epochs:g} --batch-size {BATCH}",
                language="bash", wrap_lines=True)


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


def rates_of(text: str) -> list[float]:
    """``"3e-4, 1e-3"`` -> ``[0.0003, 0.001]``; nothing for the default.

    Raises:
        BertScopeError: it is no list of learning rates, or a long one.
    """
    try:
        found = sorted({float(part) for part in text.replace(",", " ").split()})
    except ValueError:
        found = [math.nan]
    if not all(0 < rate <= 1 for rate in found):
        raise BertScopeError("Learning rates are numbers up to 1 with commas between, as in 3e-4, 1e-3.")
    if len(found) > MOST_RATES:
        raise BertScopeError(f"At most {MOST_RATES} learning rates are taken.")
    return found


def estimate(config) -> str:
    """How long finished runs of the same task took here, as a guess."""
    seconds = [run.status().get("seconds", 0.0) for run in asked.tuned_runs(40)
               if run.config_record().get("task") == config.data.task
               and run.status()["state"] == "finished" and run.settings().data.source == config.data.source]
    if not seconds:
        return ""
    return f"Runs of this task took {duration(sorted(seconds)[len(seconds) // 2])} here each, with their " \
           "own numbers of examples."
