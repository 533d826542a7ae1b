"""Documents that a checkpoint was not trained on, and others to train baselines on.

A run's are those that its trainer held out: the same split of the same token store. For checkpoints
of others a corpus is named, and divided here; whether they have read it nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bertscope.analysis import prepared
from bertscope.corpus.sources import documents, source_fingerprint
from bertscope.corpus.store import TokenStore, split_documents
from bertscope.errors import BertScopeError
from bertscope.runs import Run

#: Documents of each part at most, and how many of a named corpus are read.
MOST = {"train": 400, "valid": 100, "test": 400}
READ, READ_PYDOCS = 1000, 400
#: What stands for a word that the run's vocabulary does not have; no vocabulary has it.
UNKNOWN = "☐"

Progress = Callable[[str, float | None], None]


@dataclass(frozen=True)
class Parts:
    """Three sets of documents, each a sequence of sentences; no document is in two.

    ``name`` says whose they are, ``key`` changes when they do (for caches). ``run`` is the name of the
    run that is known not to have been trained on ``test``, empty where nobody knows.
    """

    name: str
    key: str
    train: list[Sequence[str]]
    valid: list[Sequence[str]]
    test: list[Sequence[str]]
    run: str = ""


class StoredDocument(Sequence):
    """A document of a token store, its sentences decoded when they are looked at.

    They read as the run's vocabulary does: lower-cased where it is, and give the same pieces again.
    """

    def __init__(self, store: TokenStore, tokenizer, index: int):
        self._store, self._tokenizer = store, tokenizer
        self._first, self._end = map(int, store.document_offsets[index:index + 2])

    def __len__(self) -> int:
        return self._end - self._first

    def __getitem__(self, place: int) -> str:
        if not 0 <= place < len(self):
            raise IndexError(place)
        start, end = self._store.sentence_offsets[self._first + place:][:2]
        text = self._tokenizer.decode(self._store.ids[start:end].tolist())
        return text.replace(self._tokenizer.unk_token or UNKNOWN, UNKNOWN)


def of_run(run: Run, seed: int = 0) -> Parts:
    """``test`` is what the run's trainer held out, the others are from what it trained on.

    Raises:
        BertScopeError: the run's prepared corpus is no longer here (``errors.CorpusGone``), or holds
            too few documents.
    """
    corpus = prepared.of_run(run)
    store, tokenizer = corpus.store, corpus.tokenizer
    share = run.config().corpus.held_out
    seen, held_out = split_documents(store.documents, share)
    order = np.random.default_rng(seed).permutation(seen)
    valid = max(1, len(order) // 5)
    chosen = {"valid": order[:valid], "train": order[valid:],
              "test": np.random.default_rng(seed).permutation(held_out)}
    parts = {name: [StoredDocument(store, tokenizer, int(i)) for i in np.sort(indices[:MOST[name]])]
             for name, indices in chosen.items()}
    return Parts(f"documents that {run.name} was not trained on",
                 f"{corpus.fingerprint}/{share}/{seed}", **_enough(parts), run=run.name)


def of_corpus(source: str, seed: int = 0, progress: Progress | None = None) -> Parts:
    """Documents of a corpus by name or path, divided at random: two fifths are ``test``.

    Of miniworld they are documents that no run is trained on.

    Raises:
        BertScopeError: there is no such corpus, or it holds too few documents.
    """
    if source == "miniworld":
        from bertscope.analysis.gallery import MINIWORLD_SEED
        from bertscope.corpus.miniworld import generate

        found = [made.texts for made in generate(READ, MINIWORLD_SEED)]
        key = f"miniworld/{MINIWORLD_SEED}"
    else:
        limit = READ_PYDOCS if source == "pydocs" else READ
        found = [document.sentences for document in documents(source, limit, progress)]
        key = source_fingerprint(source, limit)
    order = np.random.default_rng(seed).permutation(len(found))
    test, valid = 2 * len(order) // 5, max(1, len(order) // 8)
    chosen = {"test": order[:test], "valid": order[test:test + valid],
              "train": order[test + valid:]}
    parts = {name: [found[i] for i in np.sort(indices[:MOST[name]])]
             for name, indices in chosen.items()}
    return Parts(f"documents of {source}", f"{key}/{seed}", **_enough(parts))


def _enough(parts: dict[str, list]) -> dict[str, list]:
    if len(parts["test"]) < 2:
        raise BertScopeError("At least two documents are needed that were not trained on: a "
                             "sentence of another document must come from another one.")
    return parts
