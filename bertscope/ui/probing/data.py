"""Which annotated data are probed: miniworld's own, a file or folder on this machine, an upload."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import streamlit as st

from bertscope.errors import BertScopeError

MINIWORLD, HERE, UPLOAD = "miniworld", "on this machine", "upload"
SOURCES = (MINIWORLD, HERE, UPLOAD)
#: Endings of the files that ``open_source`` reads.
ENDINGS = ("conllu", "conll", "iob", "iob2", "bio", "csv", "tsv", "jsonl", "ndjson", "txt")
MOST_MEGABYTES = 16


@st.cache_resource(max_entries=4, show_spinner="Reading the annotation …")
def opened(source: str, stamp: float):
    """``sources.open_source``, read again when a file has changed.

    Raises:
        BertScopeError: nothing usable is there.
    """
    from bertscope.analysis.probing.sources import open_source

    return open_source(source)


@st.cache_resource(max_entries=3, show_spinner="Reading the file …")
def uploaded(name: str, data: bytes):
    """The same of an uploaded file, which is split by document where it does not say its parts."""
    import tempfile

    from bertscope.analysis.probing.sources import open_source

    plain = Path(name.replace("\\", "/")).name
    stem = re.sub(r"[^\w .-]", "_", Path(plain).stem)[:60]  # a table's question is called after it
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{stem}{Path(plain).suffix.lower()}"
        path.write_bytes(data)
        try:
            found = open_source(path)
        except BertScopeError as error:  # names the line; the folder is no user's business
            raise BertScopeError(str(error).replace(str(path), plain)) from None
    return replace(found, name=plain[:100], note=found.note.replace(path.name, plain[:100]))


@st.cache_resource(max_entries=8, show_spinner="Looking what can be asked …")
def _offers(fingerprint: str, _source):
    return _source.offers()


def offers(source) -> list:
    """The tasks that a source can serve."""
    return _offers(source.fingerprint, source)


@st.cache_resource(max_entries=24, show_spinner="Preparing the task …")
def _items(fingerprint: str, task: str, apart: bool, _source):
    return _source.items(task, apart=apart)


def items(source, task: str, apart: bool = False):
    """The labelled items of a task, kept between reruns.

    Raises:
        BertScopeError: the data do not serve it.
    """
    return _items(source.fingerprint, task, apart, source)


def stamp(source: str) -> float:
    """When a file or its siblings, or any in a folder, were last changed; 0 where there is none."""
    from bertscope.analysis.probing.parts import siblings

    try:
        path = Path(source).expanduser()
        inside = siblings(path).values() if path.is_file() else \
            (file for ending in ENDINGS for file in path.glob(f"*.{ending}"))
        return max([path.stat().st_mtime, *(file.stat().st_mtime for file in inside)])
    except (OSError, RuntimeError, ValueError):
        return 0.0


def named() -> str:
    """What ``open_source`` would be asked for the chosen data; of an upload the file's name."""
    where = st.session_state.get("gold_from") or MINIWORLD
    if where == HERE:
        return (st.session_state.get("gold") or "").strip()
    file = st.session_state.get("gold_file") if where == UPLOAD else None
    return file.name if file is not None else MINIWORLD


def choose():
    """The source; None, with a sentence, while a file is missing."""
    where = st.segmented_control("Annotated sentences", SOURCES, default=MINIWORLD, required=True,
                                 key="gold_from", bind="query-params") or MINIWORLD
    if where == MINIWORLD:
        return opened(MINIWORLD, 0.0)
    if where == HERE:
        path = st.text_input("A treebank, a table, a SentEval file, or a folder of them", key="gold",
                             bind="query-params", max_chars=1000,
                             placeholder="ud_english_ewt/, reviews.csv, bigram_shift.txt").strip()
        if path:
            return opened(path, stamp(path))
        st.info("**Your own question:** give the path of a CoNLL-U file or folder (every Universal "
                "Dependencies treebank is one), of a table (CSV or JSON lines with the columns "
                "*text* and *label*, for words also *start* and *end*), or of a SentEval file.",
                icon=":material/folder_open:")
        return None
    file = st.file_uploader("A treebank (CoNLL-U), a table (CSV, TSV, JSON lines) or a SentEval file",
                            list(ENDINGS), key="gold_file", max_upload_size=MOST_MEGABYTES)
    return uploaded(file.name, file.getvalue()) if file is not None else None
