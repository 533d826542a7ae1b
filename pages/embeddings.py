"""Embeddings: which texts, words and pieces are alike for the model, and how did they move?"""

import importlib

import streamlit as st

from bertscope.ui import frame, loaders
from bertscope.ui.embeddings import Look, keep_state

#: What each view is called, and its module in ``bertscope.ui.embeddings``.
VIEWS = {"Map": "map", "Movement": "movement", "One word": "word", "Layers": "layers",
         "Input tables": "tables"}


def main() -> None:
    chosen, other = frame.checkpoints()
    look = Look(chosen, other, loaders.model(chosen))
    keep_state()
    st.segmented_control("View", list(VIEWS), default="Map", required=True, key="view",
                         bind="query-params", label_visibility="collapsed")
    view().show(look)


def view():
    """The module of the chosen view; of the first one where the page did not get so far."""
    name = VIEWS.get(st.session_state.get("view"), "map")
    return importlib.import_module(f"bertscope.ui.embeddings.{name}")


with frame.page("Embeddings", "Which texts are alike for this model, and how does it sort them?"):
    main()
frame.explain(view().EXPLANATION)
