"""Documents on which heads and pairs are tried: held out by the run, of a built-in corpus, or one's own."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import streamlit as st

from bertscope.corpus.sources import BUILT_IN
from bertscope.errors import BertScopeError, CorpusGone
from bertscope.ui import frame, texts, waiting
from bertscope.ui.selection import Choice

HELD_OUT, UPLOAD = "held out by the run", "a file that I upload"
#: For checkpoints of others: real prose with its order kept.
INSTEAD = "sotu"
ENDINGS = ("txt", "jsonl", "conllu", "parquet")
MOST_MEGABYTES = 64


def ask(choice: Choice) -> str:
    """The select box: a built-in corpus, a path that was typed, :data:`UPLOAD`, or :data:`HELD_OUT`."""
    first = [HELD_OUT] if choice.run else [INSTEAD]
    options = list(dict.fromkeys([*first, *BUILT_IN, UPLOAD]))
    if not choice.run and st.session_state.get("docs") == HELD_OUT:
        del st.session_state["docs"]
    found = st.selectbox(
        "Documents", options, key="docs", bind="query-params", accept_new_options=True, width=250,
        help="Those that the run was not trained on; a built-in corpus; a file of your own; or type the "
             "path of a file or folder of text.")
    return (found or first[0]).strip()


def asked(choice: Choice) -> str:
    """What :func:`ask` was told on another view; an uploaded file stays behind there."""
    found = st.session_state.get("docs")
    return found if found not in (None, "", UPLOAD, HELD_OUT) else HELD_OUT if choice.run else INSTEAD


def parts(choice: Choice, source: str):
    """``held_out.Parts`` of what was asked for; None while a file is missing or after *Cancel*.

    Where the run's own corpus is gone, it is offered to make it again, and others are read meanwhile.

    Raises:
        BertScopeError: there are no such documents, or too few.
    """
    from bertscope.analysis import held_out
    from bertscope.corpus.sources import source_fingerprint

    if source == UPLOAD:
        return _uploaded()
    run = choice.run
    if source == HELD_OUT:
        try:
            return waiting.kept(("documents", str(run.path), run.created),
                                lambda progress: held_out.of_run(run), "the documents")
        except CorpusGone as gone:
            frame.show_error(gone)
            own = texts.corpus_of(choice)  # in the words that the run knows
            source = own if own in BUILT_IN else INSTEAD
            st.caption(f":material/info: Until then, other documents of {source} are read.")
    return waiting.kept(("documents", source_fingerprint(source), source),
                        lambda progress: held_out.of_corpus(source, progress=progress), "the documents")


def _uploaded():
    """The documents of an uploaded file, which is not kept."""
    file = st.file_uploader("Text (a blank line between documents), JSON lines with \"text\", CoNLL-U or "
                            "Parquet", ENDINGS, key="docs_file", max_upload_size=MOST_MEGABYTES)
    if file is None:
        st.info("Upload a file with several documents.", icon=":material/upload_file:")
        return None
    data = file.getvalue()
    digest = hashlib.sha256(data).hexdigest()[:24]
    return waiting.kept(("documents", file.name, digest),
                        lambda progress: _read(file.name, data, digest, progress), "the documents")


def _read(name: str, data: bytes, digest: str, progress):
    import tempfile

    from bertscope.analysis import held_out

    plain = Path(name.replace("\\", "/")).name[:100]
    with tempfile.TemporaryDirectory(prefix="bertscope-") as folder:
        path = Path(folder) / f"uploaded{Path(plain).suffix.lower()}"
        path.write_bytes(data)
        try:
            found = held_out.of_corpus(str(path), progress=progress)
        except BertScopeError as error:  # the folder is no user's business
            raise BertScopeError(str(error).replace(str(path), plain).replace(path.name, plain)) from None
    return replace(found, name=f"documents of {plain}", key=digest)
