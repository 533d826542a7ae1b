"""The sidebar: which run, which checkpoint, compared with which. All of it is in the address.

Streamlit's own binding drops an invalid value without a word; a link to a deleted run must say
so, and a choice of *the newest* must stay a moving one, so the address is read and written here.
"""

from __future__ import annotations

import time

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from bertscope.runs import ACTIVE, list_runs
from bertscope.ui.selection import MAX_NAME, Choice, find_run, nearest, parse_spec, parse_step
from bertscope.ui.text import markdown, shorten

PARAMETERS = ("run", "step", "follow", "vs")
WIDGETS = ("run", "step", "follow", "vs_on", "vs_run", "vs_step")
REFRESH_SECONDS = 2.0
LAG_SECONDS = 2.0  # for so long after the sidebar has moved on, a click may still bring the step before


def render() -> None:
    """Draw the sidebar; :func:`chosen` and :func:`compared` then tell what it points at."""
    state = st.session_state
    for key in WIDGETS:  # Streamlit forgets a widget that one run of the script does not draw
        if key in state:
            state[key] = state[key]
    _read_address()
    names = [run.name for run in list_runs()]
    with st.sidebar:
        main = _pick("", "Run", names)
        other = None
        if names or main.name:
            st.toggle("Compare with another", key="vs_on", on_change=_begin_comparing)
            if state.get("vs_on"):
                other = _pick("vs_", "Second run", names)
        for notice in state["_notices"]:
            st.warning(notice, icon=":material/link_off:")
    state["_main"], state["_other"] = main, other
    _write_address(main, other)


def chosen() -> Choice:
    return st.session_state["_main"]


def compared() -> Choice | None:
    """The second checkpoint, if one is wanted and it has something to load."""
    other = st.session_state["_other"]
    return other if other and other.path else None


def choose(run: str) -> None:
    """Point the sidebar at a run and follow it; for callbacks, which run before the widgets."""
    st.session_state.update(run=run, follow=True, _touched=True)


def go_to(step: int) -> None:
    """Point the sidebar at another checkpoint of its run; for callbacks."""
    st.session_state.update(step=step, follow=False, _touched=True)


# -- one picker: a run or a path, a step, follow ----------------------------------------------


def _pick(prefix: str, label: str, names: list[str]) -> Choice:
    """Widgets for one checkpoint; ``prefix`` keeps the second one's keys apart."""
    state = st.session_state
    key = prefix + "run"
    if not state.get(key):
        state[key] = names[0] if names else None
    shown = names if state[key] in (None, *names) else [*names, state[key]]
    st.selectbox(
        label, shown, key=key, accept_new_options=True, on_change=_run_changed, args=(prefix,),
        placeholder="no run yet" if not names else "choose",
        help="A run, or type the path of any BERT-family checkpoint directory, or a name on the "
             "Hugging Face hub.")
    name = (state[key] or "").strip()[:MAX_NAME]
    run = find_run(name)
    if run is None:
        return Choice(name)
    saved = run.checkpoints()
    if not saved:
        if not prefix:
            _status(run.name)
        return Choice(name, run)
    steps = [c.step for c in saved]
    step = _step(prefix, run.name, steps)
    if not prefix:
        _status(run.name)
    return Choice(name, run, saved[steps.index(step)])


def _step(prefix: str, name: str, steps: list[int]) -> int:
    state, key = st.session_state, prefix + "step"
    follow = prefix + "follow"
    if state.get(follow):
        if state.get(key) not in (None, steps[-1]):
            state["_moved"] = state[key], steps[-1], time.monotonic()
        state[key] = steps[-1]
    wanted = state.get(key)
    if wanted not in steps:
        state[key] = steps[-1] if wanted is None else nearest(steps, wanted)
        if wanted is not None:
            state["_notices"].append(
                f"Run {markdown(name)} has no checkpoint at step {wanted:,}; "
                f"this is step {state[key]:,}, the nearest.")
    st.select_slider("Checkpoint (training step)" if not prefix else "Second checkpoint",
                     steps, key=key, format_func=lambda step: f"{step:,}",
                     on_change=_step_changed, args=(prefix,))
    if not prefix:
        st.toggle("Follow the newest", key=follow, on_change=_touch,
                  help="Move on to each new checkpoint as the training saves it.")
    return state[key]


def _touch() -> None:
    st.session_state["_touched"] = True


def _run_changed(prefix: str) -> None:
    """Another run: begin at its newest checkpoint."""
    _touch()
    st.session_state.pop(prefix + "step", None)
    st.session_state[prefix + "follow"] = not prefix


def _step_changed(prefix: str) -> None:
    if _late(prefix):
        return
    _touch()
    st.session_state[prefix + "follow"] = False


def _late(prefix: str) -> bool:
    """Whether the browser only lags behind: with its request came the step of before the sidebar moved on.
    A fragment was drawn anew (whoever moves the slider has the whole page drawn), or something else was
    clicked just as a checkpoint appeared."""
    context = get_script_run_ctx()
    if context is not None and context.fragment_ids_this_run:
        return True
    state = st.session_state
    before, after, when = state.get("_moved", (None, None, 0.0))
    if prefix or state["step"] != before or time.monotonic() - when > LAG_SECONDS:
        return False
    state["step"] = after
    return True


def _begin_comparing() -> None:
    """The most telling comparison is with the same run before it had learnt anything."""
    _touch()
    state = st.session_state
    if state["vs_on"] and not state.get("vs_run"):
        state["vs_run"] = state.get("run")
        run = find_run(state["vs_run"] or "")
        saved = run.checkpoints() if run else []
        state["vs_step"] = saved[0].step if saved else None


# -- how the run stands -----------------------------------------------------------------------


def _status(name: str) -> None:
    run = find_run(name)
    active = bool(run) and run.status()["state"] in ACTIVE
    st.fragment(_status_line, run_every=REFRESH_SECONDS if active else None, key="status")(
        name, active, len(run.checkpoints()) if run else 0)


def _status_line(name: str, was_active: bool, seen: int) -> None:
    """A line and a bar; asks for a rerun of the page when there is news for it."""
    run = find_run(name)
    if run is None:
        if was_active:
            st.rerun()
        return
    status = run.status()
    active = status["state"] in ACTIVE
    if status["state"] == "training":
        step, total = status["step"], max(status["total"], 1)
        fraction = status.get("fraction") or step / total
        st.progress(min(max(fraction, 0.0), 1.0), text=f"training · step {step:,}")
    elif active:
        st.progress(min(max(status.get("fraction") or 0.0, 0.0), 1.0),
                    text=markdown(shorten(f"{status['state']} · {status['message']}", 60)))
    else:
        st.caption(f"{status['state']} · step {status['step']:,}")
    news = len(run.checkpoints()) != seen and (st.session_state.get("follow") or not seen)
    if was_active and (not active or news):
        st.rerun()


# -- the address ------------------------------------------------------------------------------


def _read_address() -> None:
    """Take over the address at the first visit, and when the browser went back to another one."""
    state = st.session_state
    address = {key: st.query_params[key] for key in PARAMETERS if key in st.query_params}
    touched = state.pop("_touched", False)
    if touched:
        state["_notices"] = []  # kept until the user chooses something
    if "_written" in state and (touched or not address or address == state["_written"]):
        return
    first = "_written" not in state
    state["_notices"] = []
    if first or "run" in address:
        state["run"] = address.get("run", "")[:MAX_NAME] or None
    step = parse_step(address.get("step"))
    state["step"] = step
    state["follow"] = address.get("follow") == "1" or step is None
    if "step" in address and step is None:
        state["_notices"].append(
            f"The address asks for step {markdown(shorten(address['step'], 40))}, "
            "which is no step; this is the newest.")
    state["vs_on"] = "vs" in address
    if "vs" in address:
        state["vs_run"], state["vs_step"] = parse_spec(address["vs"])


def _write_address(main: Choice, other: Choice | None) -> None:
    state = st.session_state
    address = {}
    if main.name:
        address["run"] = main.name
    if main.checkpoint:
        if state.get("follow"):
            address["follow"] = "1"
        else:
            address["step"] = str(main.checkpoint.step)
    if other and other.name:
        address["vs"] = other.name + (f"@{other.checkpoint.step}" if other.checkpoint else "")
    for key in PARAMETERS:
        if key in address and st.query_params.get(key) != address[key]:
            st.query_params[key] = address[key]
        elif key not in address and key in st.query_params:
            del st.query_params[key]
    state["_written"] = address
