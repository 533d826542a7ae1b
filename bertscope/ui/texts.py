"""Sentences to begin with, fitting what a checkpoint was trained on."""

from __future__ import annotations

from urllib.parse import quote

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui.selection import Choice
from bertscope.ui.text import MAX_TEXT

#: Longest text of the one-sentence pages; a BERT takes 512 pieces at most.
MAX_SENTENCE = 3000
#: A text that is longer than this in the address is left out of it: servers refuse long addresses.
MOST_IN_ADDRESS = 9000


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


def area(place, label: str, key: str, default: str, height: int, **more) -> str:
    """A field for a text that stands in the address as ``&key=``.

    Streamlit's own ``bind`` does not write what a callback puts into a field that is not drawn yet,
    and would write a text of any length. The field takes more than a page does, so that a long text
    gets a sentence and is not cut without a word.
    """
    state = st.session_state
    # put anew each time: another page's field of this key is another widget for Streamlit
    state[key] = state[key] if key in state else st.query_params.get(key, default)
    text = place.text_area(label, key=key, height=height, **{"max_chars": MAX_TEXT, **more})
    fits = len(quote(text)) <= MOST_IN_ADDRESS
    if text != default and fits and st.query_params.get(key) != text:
        st.query_params[key] = text
    elif (text == default or not fits) and key in st.query_params:
        del st.query_params[key]
    if not fits:
        place.caption(":material/link_off: This text is too long for the address: a link to this "
                      "page will not bring it along.")
    return text
