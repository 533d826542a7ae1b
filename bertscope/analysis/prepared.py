"""The prepared corpus of a run: where its trainer left it, or made again from the run's configuration.

It is a cache beside the runs (``.corpora``), which may be deleted, or stay behind where a run is copied.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from bertscope.corpus import prepare
from bertscope.corpus.prepare import Prepared, fingerprint
from bertscope.corpus.store import TokenStore
from bertscope.corpus.tokenizer import open_tokenizer
from bertscope.errors import BertScopeError, CorpusGone
from bertscope.runs import Run

_FINGERPRINT = re.compile(r"[0-9a-f]{8,64}")


def of_run(run: Run) -> Prepared:
    """What the run was trained on.

    Raises:
        CorpusGone: it is no longer there.
        BertScopeError: it was never there, or another one is in its place.
    """
    known = _recorded(run)
    name = known["fingerprint"]
    for home in (run.path.parent / ".corpora" / name, Path(str(known.get("path", "")))):
        try:
            found = Prepared(home, open_tokenizer(home / "tokenizer"), TokenStore(home / "store"), name)
        except BertScopeError:
            continue
        if any(known.get(count, here) != here for count, here in (
                ("tokens", found.store.tokens), ("documents", found.store.documents))):
            raise BertScopeError(f"The corpus in {home} is not the one that run {run.name!r} was "
                                 "trained on.")
        return found
    raise CorpusGone(run)


def again(run: Run, progress: Callable[[str, float | None], None] | None = None) -> Prepared:
    """Prepare the run's corpus once more, beside the run.

    Args:
        progress: as ``corpus.prepare``'s; what it raises ends the work, and leaves nothing behind.

    Raises:
        BertScopeError: its source is not here, or is not what it was.
    """
    config = run.config().read_corpus
    if fingerprint(config) != _recorded(run)["fingerprint"]:
        raise BertScopeError(f"The corpus of run {run.name!r} cannot be made again: {config.source} is not "
                             "what it was then (its files were changed, or a package has another version).")
    return prepare(config, run.path.parent, progress)


def _recorded(run: Run) -> dict:
    known = run.config_record().get("corpus")
    if not isinstance(known, dict) or not _FINGERPRINT.fullmatch(str(known.get("fingerprint"))):
        raise BertScopeError(f"Run {run.name!r} has not prepared its corpus yet, so there is nothing "
                             "that it was fed.")
    return known
