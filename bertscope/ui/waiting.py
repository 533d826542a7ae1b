"""What takes a while: a bar from the first second on, and a way to cancel."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import loaders
from bertscope.ui.text import markdown

Progress = Callable[[str, float | None], None]
#: Seconds without a bar: most answers are there before one could read it.
PATIENCE = 1.0


def kept(key: tuple, compute: Callable[[Progress], object], name: str):
    """``compute(progress)``, kept for all visitors under ``key``; None while it is cancelled.

    A click on *Cancel* (as any click) ends the running script where it next draws; the answer is
    then not computed again by itself, but on a button.

    Args:
        key: everything the answer depends on, hashable.
        name: what is computed, plain words; different for each call on a page.
    """
    found = loaders.recent(key)
    if found is not None:
        return found
    cancelled = st.session_state.setdefault("_cancelled", set())
    place = st.empty()
    if key in cancelled and not place.button(f"Compute {markdown(name)}", icon=":material/play_arrow:",
                                             key=f"compute_{name}"):
        return None
    cancelled.discard(key)
    begun, bar = time.monotonic(), None

    def progress(message: str, share: float | None) -> None:
        nonlocal bar
        if bar is None and time.monotonic() - begun < PATIENCE:
            return
        if bar is None:
            with place.container(horizontal=True, vertical_alignment="center"):
                bar = st.progress(0.0)
                st.button("Cancel", icon=":material/close:", key=f"cancel_{name}",
                          on_click=cancelled.add, args=(key,))
        bar.progress(min(max(share or 0.0, 0.0), 1.0), text=markdown(f"{name}: {message}"))

    try:
        found = loaders.keep(key, lambda: compute(progress))
    except BertScopeError:
        place.empty()
        raise
    place.empty()
    return found
