"""Sentences to begin with, fitting what a checkpoint was trained on."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui.selection import Choice

#: Longest text of the one-sentence pages; a BERT takes 512 pieces at most.
MAX_SENTENCE = 3000


def corpus_of(choice: Choice) -> str | None:
    """The source that the run was trained on; None for checkpoints of others."""
    if choice.run is None:
        return None
    try:
        return choice.run.config().corpus.source
    except BertScopeError:
        return None


@st.cache_data(max_entries=16, show_spinner=False)
def _fills(source: str, run_path: str | None):
    from pathlib import Path

    from bertscope.analysis import gallery
    from bertscope.runs import Run

    return gallery.fills(source, 6, Run(Path(run_path)) if run_path else None)


def fills(choice: Choice) -> list:
    """``gallery.Fill``s of the corpus that the checkpoint was trained on."""
    return _fills(corpus_of(choice) or "", str(choice.run.path) if choice.run else None)


@st.cache_data(max_entries=16, show_spinner=False)
def _pairs(source: str, run_path: str | None):
    from pathlib import Path

    from bertscope.analysis import gallery
    from bertscope.runs import Run

    return gallery.pairs(source, 6, Run(Path(run_path)) if run_path else None)


def pairs(choice: Choice) -> list:
    """``gallery.Pair``s, true ones and false ones by turns."""
    return _pairs(corpus_of(choice) or "", str(choice.run.path) if choice.run else None)


@st.cache_data(max_entries=16, show_spinner=False)
def _passages(source: str, run_path: str | None):
    from pathlib import Path

    from bertscope.analysis import gallery
    from bertscope.runs import Run

    return gallery.passages(source, Run(Path(run_path)) if run_path else None)


def passages(choice: Choice) -> list[str]:
    """Two passages of some sentences, of two documents."""
    return _passages(corpus_of(choice) or "", str(choice.run.path) if choice.run else None)


@st.cache_data(max_entries=16, show_spinner=False)
def _readings(source: str, run_path: str | None):
    from pathlib import Path

    from bertscope.analysis import gallery
    from bertscope.runs import Run

    return gallery.readings(source, Run(Path(run_path)) if run_path else None)


def readings(choice: Choice) -> list[str]:
    """Two stretches of two documents, a sentence a line."""
    return _readings(corpus_of(choice) or "", str(choice.run.path) if choice.run else None)
