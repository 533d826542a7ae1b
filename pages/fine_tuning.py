"""Fine-tuning: teach a checkpoint a task, and look at what it has come to."""

import importlib

import streamlit as st

from bertscope.ui import frame, run_watch, sidebar
from bertscope.ui.fine_tuning import Look, asked, empty, keep_state, tuned_run
from bertscope.ui.text import markdown

#: What each view is called and its module in ``bertscope.ui.fine_tuning``; and of those that look at a
#: fine-tuned checkpoint what they do with it.
VIEWS = {"New": "new", "Watch": "watch", "How good": "quality", "Try it": "trial",
         "What pretraining is worth": "worth", "What changed inside": "inside"}
NEEDS = {"quality": "measures a fine-tuned checkpoint on its own validation part",
         "trial": "asks a fine-tuned checkpoint about a text of yours",
         "inside": "compares a fine-tuned checkpoint with the one it began with"}


def main() -> None:
    run_watch.confirm_deletion()
    keep_state()
    chosen = sidebar.chosen()
    turn_to(chosen)
    st.segmented_control("View", list(VIEWS), default=first_view(chosen), required=True, key="view",
                         bind="query-params", label_visibility="collapsed")
    name = view()
    if not chosen.name:
        frame.demo_card(link=True)
        st.stop()
    if name in NEEDS:
        if looked := look():
            module().show(looked)
    elif tuned_run(chosen) is not None:
        module().show(chosen, sidebar.compared())  # also before the first checkpoint
    else:
        module().show(*frame.checkpoints())


def look() -> Look | None:
    """The chosen checkpoint if it is fine-tuned, and the second one if it is so for the same task; None,
    with a sentence, where it is not."""
    chosen, other = frame.checkpoints()
    spec = asked.spec(chosen)
    if spec is None:
        empty.needs(chosen, NEEDS[view()])
        return None
    theirs = asked.spec(other)
    if other is not None and (theirs is None or (theirs.task, theirs.labels) != (spec.task, spec.labels)):
        if theirs is not None or view() != "inside":  # there the pretrained one is what is compared with
            st.warning(f"{markdown(other.label)} is not fine-tuned for the same task and labels, and is "
                       "left out here.", icon=":material/compare:")
        other = None
    return Look(chosen, other, spec)


def turn_to(chosen) -> None:
    """Show what was just started; and of a run that has just been chosen more than the form."""
    state, tuned = st.session_state, tuned_run(chosen) is not None
    opened, before = state.pop("_open_view", None), state.get("_view_tuned", tuned)
    state["_view_tuned"] = tuned
    if opened in VIEWS:
        state["view"] = opened
    elif tuned and not before and state.get("view") == "New":
        state["view"] = first_view(chosen)


def first_view(chosen) -> str:
    if tuned_run(chosen) is None:
        return "New"
    return "Watch" if chosen.active or chosen.path is None else "How good"


def view() -> str:
    """The chosen view's module; the first one's where the page did not get so far."""
    return VIEWS.get(st.session_state.get("view"), "new")


def module():
    return importlib.import_module(f"bertscope.ui.fine_tuning.{view()}")


with frame.page("Fine-tuning", "What is this model good for, once it is taught a task?"):
    main()
frame.explain(module().EXPLANATION)
