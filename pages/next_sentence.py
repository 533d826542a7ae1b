"""Next sentence: does the model think that text B follows text A, and what did it learn to see?"""

import importlib

import streamlit as st

from bertscope.ui import frame
from bertscope.ui.next_sentence import keep_state, open_both

#: What each view is called, and its module in ``bertscope.ui.next_sentence``.
VIEWS = {"One pair": "pair", "Topic or coherence?": "coherence", "A document": "document"}


def main() -> None:
    look = open_both(*frame.checkpoints())  # before any text is asked for
    keep_state()
    st.segmented_control("View", list(VIEWS), default=list(VIEWS)[0], required=True, key="view",
                         bind="query-params", label_visibility="collapsed")
    view().show(look)


def view():
    """The module of the chosen view; of the first one where the page did not get so far."""
    name = VIEWS.get(st.session_state.get("view"), "pair")
    return importlib.import_module(f"bertscope.ui.next_sentence.{name}")


with frame.page("Next sentence", "Does the model think that the second text follows the first?"):
    main()
frame.explain(view().EXPLANATION)
