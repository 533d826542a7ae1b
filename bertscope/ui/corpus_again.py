"""A run whose prepared corpus is gone: it can be prepared again, by one click."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui.text import markdown


def offer(run) -> None:
    """The button, and then the work with its bar; any click ends it, and leaves nothing behind."""
    place = st.empty()
    with place.container(horizontal=True, vertical_alignment="center"):
        st.caption("It is a cache beside the runs, and can be made once more from the run's configuration.")
        if not st.button("Prepare it again", icon=":material/refresh:", key="prepare_again"):
            return
    place.empty()
    with place.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, text="starting")
        st.button("Cancel", icon=":material/close:", key="prepare_again_cancel")
    from bertscope.analysis import prepared

    try:
        prepared.again(run, lambda message, share: bar.progress(share or 0.0, text=markdown(message)))
    except BertScopeError as error:
        place.warning(markdown(error), icon=":material/folder_off:")
        return
    st.rerun()
