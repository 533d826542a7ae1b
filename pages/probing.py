"""Probing: what does each layer know, and when in the training did it learn it?"""

import importlib

import streamlit as st

from bertscope.ui import frame, loaders, looking
from bertscope.ui.probing import Look, data, keep_state, settings
from bertscope.ui.probing.settings import HIDE, HOW, SIZE, TASK

#: What each view is called, its module in ``bertscope.ui.probing``, and the settings it is about.
VIEWS = {"Layers": ("layers", (TASK, SIZE, HIDE, HOW)),
         "Over training": ("steps", (TASK, SIZE, HIDE, HOW)), "Tasks": ("tasks", (SIZE, HOW)),
         "Errors": ("errors", (TASK, SIZE, HIDE, HOW)), "Trees": ("trees", ()),
         "Use": ("use", (TASK,))}


def main() -> None:
    chosen, other = frame.checkpoints()
    model = loaders.model(chosen)
    keep_state()
    source = data.choose()
    if source is None:
        return
    offers = data.offers(source)
    if not offers:
        st.warning("Nothing in this annotation has two labels or more to tell apart.",
                   icon=":material/rule:")
        return
    frame.try_this(*experiments([offer.name for offer in offers], bool(chosen.run)))
    st.segmented_control("View", list(VIEWS), default="Layers", required=True, key="view",
                         bind="query-params", label_visibility="collapsed")
    name, parts = view()
    asked = settings.ask(offers, parts)
    looking.what(chosen, model)
    module(name).show(Look(chosen, other, model, source, offers, asked))


def view() -> tuple[str, tuple[str, ...]]:
    """The chosen view and its settings; the first one where the page did not get so far."""
    return VIEWS.get(st.session_state.get("view"), VIEWS["Layers"])


def module(name: str):
    return importlib.import_module(f"bertscope.ui.probing.{name}")


def experiments(names: list[str], of_run: bool) -> list:
    """One-click questions that these data can answer."""
    number = next((n for n in ("feat:Number@NOUN", "feat:Number") if n in names), None)
    wanted = [("part of speech, the word hidden", "upos", {"hide_word": True, "view": "Layers"}),
              ("singular or plural: when was it learnt?", number, {"view": "Over training"}),
              ("which words are mistaken?", "upos", {"view": "Errors", "hide_word": False})]
    return [(label, lambda task=task, more=more: frame.set_state(task=task, **more))
            for label, task, more in wanted
            if task in names and (of_run or more["view"] != "Over training")]


with frame.page("Probing", "What does each layer know, and when in the training did it learn it?"):
    main()
frame.explain(module(view()[0]).EXPLANATION)
