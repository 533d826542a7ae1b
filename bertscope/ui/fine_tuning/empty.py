"""What a view says while there is no fine-tuned checkpoint to look at, and what to do about it."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import sidebar
from bertscope.ui.fine_tuning import asked, starting, tuned_run
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown, shorten

#: Fine-tuned runs that are offered by a button.
MOST_OFFERED = 4


def first_time(main: Choice) -> None:
    """The built-in example by one click, as long as nothing is fine-tuned."""
    if asked.tuned_runs(1) or main.path is None:
        return
    with st.container(border=True):
        st.markdown("##### No model is fine-tuned here yet")
        st.markdown("The built-in example teaches this checkpoint to say of each word of a sentence who or "
                    "what it speaks of: a hero, a place, a tool. It takes less than a minute for a small "
                    "model.")
        _example_button(main)


def needs(main: Choice, what: str) -> None:
    """One sentence on what a view is for, then a fine-tuned checkpoint by one click.

    Args:
        what: what the view needs to do, as the end of "This view ...".
    """
    about = f"{markdown(main.label)} is not fine-tuned: " if main.name else ""
    st.info(f"{about}this view {what}.", icon=":material/school:")
    found = asked.tuned_runs(MOST_OFFERED)
    if found:
        st.markdown("**Fine-tuned here**")
        with st.container(horizontal=True):
            for number, run in enumerate(found):
                st.button(markdown(shorten(run.name, 50)), key=f"tuned_{number}", on_click=sidebar.choose,
                          args=(run.name,), icon=":material/school:")
    else:
        _example_button(main)


def _example_button(main: Choice) -> None:
    if main.path is None:
        return
    if st.button("Fine-tune on the built-in example", type="primary", icon=":material/play_arrow:",
                 key="ft_example"):
        from bertscope import runs
        from bertscope.finetuning.config import FinetuneConfig
        from bertscope.finetuning.launch import stem

        try:
            begun = starting.named(main) if tuned_run(main) is None else \
                next(iter(starting.starts(main, None)))
            config = FinetuneConfig().override({"start": begun, "data.task": "tokens"})
            starting.start(config, runs.free_name(stem(config)))
        except BertScopeError as error:
            from bertscope.ui.frame import show_error

            show_error(error)
