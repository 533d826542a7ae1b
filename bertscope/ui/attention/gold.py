"""Sentences with gold dependencies: miniworld's own, a CoNLL-U file on this machine, or an uploaded one."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui.probing import data as sources
from bertscope.ui.text import markdown

SOURCES = ("miniworld", "CoNLL-U on this machine", "upload")
SIZES = {"200": 200, "1,000": 1000, "5,000": 5000}


def ask(default: str = "200"):
    """(sentences to choose by, sentences to report on), None while a file is missing."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        where = st.segmented_control("Gold annotation", SOURCES, default=SOURCES[0], key="gold_from",
                                     required=True, bind="query-params") or SOURCES[0]
        size = st.segmented_control("Sentences of each part, at most", list(SIZES), default=default,
                                    required=True, key="gold_size", bind="query-params")
    data = read(where)
    if data is None:
        return None
    most = SIZES[size or default]
    st.caption(f"{markdown(data.name)}: heads are chosen on {min(most, len(data.valid)):,} sentences and "
               f"reported on {min(most, len(data.test)):,} others. {markdown(data.note)}")
    return data.valid[:most], data.test[:most]


def read(where: str):
    """``probing.data`` of the source; None, with a sentence, while there is none."""
    if where == SOURCES[0]:
        return sources.opened("miniworld", 0.0).gold
    if where == SOURCES[1]:
        path = st.text_input("A CoNLL-U file, or a folder with train, dev and test", key="gold",
                             bind="query-params", max_chars=1000,
                             placeholder="ud_english_ewt/ or my.conllu").strip()
        if path:
            return _gold(sources.opened(path, sources.stamp(path)))
        st.info("Give a path. Universal Dependencies treebanks are in this format.",
                icon=":material/folder_open:")
        return None
    file = st.file_uploader("A CoNLL-U file", ["conllu"], key="gold_file", max_upload_size=8)
    return _gold(sources.uploaded(file.name, file.getvalue())) if file is not None else None


def _gold(source):
    """The sentences of a source; a table has none with dependencies."""
    if source.gold is None:
        raise BertScopeError(f"{source.name} is a table; give a CoNLL-U file.")
    return source.gold
