"""Watching a run: how it stands, its curves, its log; stop, resume, delete."""

from __future__ import annotations

import json
import math
import time

import streamlit as st

from bertscope import launch
from bertscope.errors import BertScopeError
from bertscope.runs import ACTIVE, Run
from bertscope.ui import curves, loaders
from bertscope.ui.frame import download, download_csv, show_error
from bertscope.ui.selection import find_run
from bertscope.ui.text import markdown

STATUS_SECONDS, CURVES_SECONDS = 1.0, 2.0
_COLOURS = {"training": "blue", "preparing": "orange", "stopping": "orange", "finished": "green",
            "stopped": "gray", "failed": "red", "interrupted": "red"}


def watch(run: Run, other: Run | None) -> None:
    """The whole view of one run. It refreshes itself while the run is active, and only then."""
    active = run.status()["state"] in ACTIVE
    st.fragment(_head, run_every=STATUS_SECONDS if active else None, key="train_head")(
        run.name, active)
    with st.container(horizontal=True, vertical_alignment="center"):
        axis = st.segmented_control("Axis", list(curves.AXES), default="steps", key="axis",
                                    bind="query-params", required=True,
                                    label_visibility="collapsed") or "steps"
        log = st.toggle("Logarithmic", key="log", bind="query-params",
                        help="Stretch the beginning, where most is learnt.")
        pause = st.toggle("Pause to zoom", key="pause", disabled=not active,
                          help="A refresh would undo your zoom; paused, the charts stand still.")
    moving = active and not pause
    st.fragment(_curves, run_every=CURVES_SECONDS if moving else None, key="train_curves")(
        run.name, other.name if other and other.name != run.name else None, axis, log, not moving)
    _details(run)


# -- how it stands, and what can be done ------------------------------------------------------


def _head(name: str, was_active: bool) -> None:
    run = find_run(name)
    if run is None:
        return  # the sidebar notices, as it notices the end of the training
    status = run.status()
    active = status["state"] in ACTIVE
    opening = st.session_state.pop("_delete_clicked", False)
    if (active and not was_active) or opening:
        st.rerun()  # of the whole page: it shall refresh from now on, or a dialog opens
    left, right = st.columns([3, 2], vertical_alignment="center")
    with left:
        st.markdown(f"#### {markdown(name)} :{_COLOURS.get(status['state'], 'gray')}-badge"
                    f"[{markdown(status['state'])}]")
    with right, st.container(horizontal=True, horizontal_alignment="right"):
        _buttons(run, status, active)
    fraction = status.get("fraction")
    if fraction is None:
        fraction = status["step"] / status["total"] if status["total"] else 0.0
    if status["state"] == "finished":
        fraction = 1.0
    st.progress(min(max(float(fraction), 0.0), 1.0), text=_progress_text(status))
    if status["state"] == "failed":
        st.error(markdown(status["message"] or "It failed; the log below says why."),
                 icon=":material/error:")
    elif status["state"] == "interrupted":
        st.warning("The training process ended without a word (killed, or the machine restarted). "
                   "Everything up to its last checkpoint is safe; *Resume* goes on from there.",
                   icon=":material/power_off:")
    _numbers(run)


def _progress_text(status: dict) -> str:
    """Step, rate and time left, as far as they are known."""
    if status["state"] == "preparing":
        return markdown(status["message"] or "starting")
    parts = [f"step {status['step']:,} of {status['total']:,}" if status["total"] else
             f"step {status['step']:,}"]
    if status.get("tokens_per_second"):
        parts.append(f"{status['tokens_per_second']:,.0f} tokens/s")
    if status.get("seconds"):
        parts.append(duration(status["seconds"]) + (" in all" if status["state"] == "finished" else " so far"))
    if status["state"] in ACTIVE and status.get("eta_seconds"):
        parts.append(f"{duration(status['eta_seconds'])} left")
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """``75`` -> ``1 min 15 s``."""
    seconds = int(seconds) if math.isfinite(seconds) else 0
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def _buttons(run: Run, status: dict, active: bool) -> None:
    if active and run.stop_asked():
        st.button("Kill now", icon=":material/bolt:", key="kill", on_click=_act,
                  args=(launch.stop, run, True),
                  help="It is finishing its step and saving. Killing ends it at once; it can be "
                       "resumed from its last checkpoint.")
    elif active:
        st.button("Stop", icon=":material/stop:", key="stop", on_click=_act,
                  args=(_stop, run),
                  help="Finish the step, save, and end. It can be resumed.")
    else:
        if status["state"] != "finished":
            st.button("Resume", icon=":material/play_arrow:", type="primary", key="resume",
                      on_click=_act, args=(_resume, run))
        st.button("Delete", icon=":material/delete:", key="delete", on_click=_ask_to_delete,
                  args=(run.name,))
    if error := st.session_state.pop("_run_error", None):
        st.error(markdown(error))


def _resume(run: Run) -> None:
    _wait_for_the_end(run)
    launch.start(run)


def _wait_for_the_end(run: Run, seconds: float = 10.0) -> None:
    """A process that says it has ended may need a moment more to go."""
    deadline = time.monotonic() + seconds
    while run.alive() and time.monotonic() < deadline:
        time.sleep(0.05)


def _stop(run: Run) -> None:
    launch.stop(run)
    run.ask_to_stop()  # also while the process is still starting and holds no lock


def _act(what, *arguments) -> None:
    try:
        what(*arguments)
    except BertScopeError as error:
        st.session_state["_run_error"] = str(error)


def _ask_to_delete(name: str) -> None:
    st.session_state.update(_delete=name, _delete_clicked=True)


def confirm_deletion() -> None:
    """The dialog that *Delete* asked for; called by the page, outside of any fragment."""
    if name := st.session_state.get("_delete"):
        _dialog(name)


def _close() -> None:
    st.session_state.pop("_delete", None)


@st.dialog("Delete this run?", icon=":material/delete:", on_dismiss=_close)
def _dialog(name: str) -> None:
    run = find_run(name)
    if run is None:
        _close()
        st.rerun()
    st.markdown(f"**{markdown(name)}** with its {len(run.checkpoints())} checkpoints, metrics and "
                "cached results will be removed. This cannot be undone.")
    with st.container(horizontal=True):
        if st.button("Delete it", type="primary", key="delete_yes"):
            try:
                _wait_for_the_end(run)
                run.delete()
            except BertScopeError as error:
                show_error(error)
                return
            _close()
            st.session_state["_forget_run"] = True
            st.rerun()
        if st.button("Keep it", key="delete_no"):
            _close()
            st.rerun()


def forget_deleted_run() -> None:
    """Let the sidebar choose another run after a deletion; called before it is drawn."""
    if st.session_state.pop("_forget_run", False):
        st.session_state.update(run=None, step=None, follow=True, _touched=True)


def _numbers(run: Run) -> None:
    """The newest held-out results, with what they began at."""
    lines = [line for line in loaders.metrics(run) if "eval_loss" in line]
    if not lines:
        return
    first, last = lines[0], lines[-1]
    row = st.container(horizontal=True)
    for label, key, form, inverse in (
            ("Masked words right", "eval_mlm_accuracy", "{:.1%}", False),
            ("Next sentences right", "eval_nsp_accuracy", "{:.1%}", False),
            ("Sentences in order", "eval_sop_accuracy", "{:.1%}", False),
            ("Original or replaced, judged right", "eval_rtd_accuracy", "{:.1%}", False),
            ("Next words right", "eval_clm_accuracy", "{:.1%}", False),
            ("Perplexity", "eval_mlm_perplexity", "{:,.1f}", True),
            ("Perplexity", "eval_clm_perplexity", "{:,.1f}", True),
            ("Masked-word loss", "eval_mlm_loss", "{:.3f}", True),
            *((title, f"eval_{name}", "{:.3f}" if "correlation" in title else "{:.1%}", False)
              for name, title in curves.TASK_METRICS.items())):
        if not isinstance(last.get(key), (int, float)):
            continue
        change = last[key] - first.get(key, last[key])
        row.metric(label, form.format(last[key]),
                   delta=("+" if change > 0 else "") + form.format(change)
                   if len(lines) > 1 else None, width=190,
                   delta_color="inverse" if inverse else "normal",
                   help=f"On held-out texts, at step {last['step']:,}; the change is "
                        f"since step {first['step']:,}." + _beside(key, last))


def _beside(key: str, line: dict) -> str:
    if key == "eval_rtd_accuracy" and "eval_rtd_majority" in line:
        return (f" Over all pieces: calling every one original would be right for "
                f"{line['eval_rtd_majority']:.1%}.")
    return ""


# -- the curves -------------------------------------------------------------------------------


def _curves(name: str, other: str | None, axis: str, log: bool, zoom: bool) -> None:
    run = find_run(name)
    if run is None:
        return
    tables = {name: curves.frame(loaders.metrics(run))}
    second = find_run(other) if other else None
    if second:
        tables[other] = curves.frame(loaders.metrics(second))
    if all(table.empty for table in tables.values()):
        st.caption("The curves begin with the first logged steps.")
        return
    baselines = baselines_of(run)
    for row in curves.panels({column for table in tables.values() for column in table}):
        _row(row, tables, baselines, axis, log, zoom)
    with st.expander("Learning rate, gradient norm, speed", icon=":material/speed:"):
        _row(curves.OPTIMISER, tables, baselines, axis, log, zoom)
    legend = "Thin: training batches. Thick with points: held out. Dashed: references."
    if second:
        legend += (f" Blue: {markdown(name)}, with its references. "
                   f"Orange: {markdown(other)}.")
    st.caption(legend)


def _row(panels, tables, baselines, axis, log, zoom) -> None:
    for column, panel in zip(st.columns(len(panels)), panels):
        column.altair_chart(curves.chart(panel, tables, baselines, axis, log, zoom),
                            key=f"curve_{panel.train or panel.held_out}", width="stretch")


def baselines_of(run: Run) -> dict:
    """What accuracy and loss are to be compared with, from the run's record."""
    try:
        known = run.config_record().get("baselines")
    except BertScopeError:
        known = None
    known = dict(known) if isinstance(known, dict) else {}
    for pair in ("nsp", "sop"):
        known |= {f"{pair}_chance": 0.5, f"{pair}_chance_loss": math.log(2)}
    return known


# -- details ----------------------------------------------------------------------------------


def _details(run: Run) -> None:
    with st.expander("Log", icon=":material/terminal:"):
        st.fragment(_log, key="train_log")(run.name)
    with st.expander("Configuration", icon=":material/settings:"):
        _configuration(run)
    lines = loaders.metrics(run)
    if lines:
        # As of the click: this part of the page is not drawn anew while the run trains.
        download_csv(lambda: curves.frame(loaders.metrics(run) or lines), f"{run.name}-metrics",
                     "Metrics (CSV)")


def _log(name: str) -> None:
    run = find_run(name)
    st.button("Read again", icon=":material/refresh:", key="log_again", type="tertiary")
    st.code((run.log_tail() if run else "") or "nothing yet", language=None, height=260)


def _configuration(run: Run) -> None:
    try:
        record = run.config_record()
    except BertScopeError as error:
        show_error(error)
        return
    facts = {k: v for k, v in record.items() if k not in ("config", "created")}
    rows = _flat(record.get("config", {})) + _flat(facts)
    st.dataframe({"setting": [k for k, _ in rows], "value": [str(v) for _, v in rows]},
                 hide_index=True, width="stretch", height=320)
    download("config.json", lambda: json.dumps(record, indent=2), f"{run.name}-config.json", "config_json")


def _flat(values, path: str = "") -> list[tuple[str, object]]:
    """``{"a": {"b": 1}}`` -> ``[("a.b", 1)]``."""
    if not isinstance(values, dict):
        return [(path, values)]
    return [row for key, value in values.items()
            for row in _flat(value, f"{path}.{key}" if path else str(key))]
