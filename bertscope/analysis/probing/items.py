"""What a probe is trained and tested on: labelled words, sentences or pairs of spans.

``Items`` is all that the engine knows of a task; where it comes from (CoNLL-U, SentEval, a table) is
said in its ``provenance`` and nowhere else.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from bertscope.errors import BertScopeError

PARTS = ("train", "validation", "test")
#: How many spans an item of each kind has.
SPANS = {"word": 1, "sentence": 0, "pair": 2}


@dataclass(frozen=True)
class Items:
    """One task: n items of m sentences. Columns are of length n; an item's place is its identity.

    Attributes:
        task: short name, as typed on the command line (``upos``); part of every cache's key.
        title: the task for people (``Part of speech (UPOS)``).
        kind: ``"word"`` (one span of words, mostly one word), ``"pair"`` (two spans), ``"sentence"``.
        sentences: m lists of words, or for the kind ``"sentence"`` also m raw texts.
        sentence: int64 [n], which sentence an item is of.
        spans: int64 [n, 0 | 1 | 2, 2], places of words, the end exclusive.
        labels: n names, none of them empty.
        parts: n of ``PARTS``. No sentence is in two parts.
        types: the word type of each item, as written: what word identity and control tasks go by.
            For a pair the two joined by a space, for a sentence that of a word which stands for it
            (its main verb); ``""`` for all where nothing can stand for it.
        documents: n ids, ``""`` where unknown.
        provenance: JSON values: ``source``, ``version``, ``split``, ``license`` and the like.

    Raises:
        BertScopeError: the columns do not fit together, or a sentence is in two parts.
    """

    task: str
    title: str
    kind: str
    sentences: Sequence[Sequence[str]] | Sequence[str]
    sentence: np.ndarray
    spans: np.ndarray
    labels: Sequence[str]
    parts: Sequence[str]
    types: Sequence[str] = ()
    documents: Sequence[str] = ()
    provenance: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in SPANS:
            raise BertScopeError(f"Items are words, sentences or pairs, not {self.kind!r}.")
        count = len(self.labels)
        for name in ("types", "documents"):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, [""] * count)
        object.__setattr__(self, "sentence", np.asarray(self.sentence, np.int64))
        spans = np.asarray(self.spans, np.int64).reshape(count, SPANS[self.kind], 2)
        object.__setattr__(self, "spans", spans)
        if any(len(column) != count for column in (self.sentence, self.parts, self.types,
                                                   self.documents)):
            raise BertScopeError(f"The task {self.task} has columns of unequal length.")
        if count:
            self._check(spans)

    def _check(self, spans: np.ndarray) -> None:
        if not 0 <= self.sentence.min() <= self.sentence.max() < len(self.sentences):
            raise BertScopeError(f"The task {self.task} names a sentence that is not there.")
        if unknown := set(self.parts) - set(PARTS):
            raise BertScopeError(f"A part is called {min(unknown)!r}; there are {', '.join(PARTS)}.")
        if not all(self.labels):
            raise BertScopeError(f"The task {self.task} has an item without a label.")
        if self.kind != "sentence":
            lengths = np.array([len(words) for words in self.sentences])[self.sentence]
            if (spans[..., 0] < 0).any() or (spans[..., 0] >= spans[..., 1]).any() \
                    or (spans[..., 1] > lengths[:, None]).any():
                raise BertScopeError(f"The task {self.task} has a span that is not in its sentence.")
        of = dict(zip(self.sentence.tolist(), self.parts, strict=True))
        if any(of[s] != part for s, part in zip(self.sentence.tolist(), self.parts, strict=True)):
            raise BertScopeError(f"The task {self.task} has a sentence in two parts.")

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def where(self) -> dict[str, np.ndarray]:
        """The places of the items of each part, in order: ``{part: int64 [items]}``."""
        parts = np.array(self.parts, dtype=object)
        return {part: np.flatnonzero(parts == part) for part in PARTS}

    @property
    def sizes(self) -> dict[str, dict[str, int]]:
        """``{part: {"items": ..., "sentences": ...}}``."""
        return {part: {"items": len(places), "sentences": len(np.unique(self.sentence[places]))}
                for part, places in self.where.items()}

    @cached_property
    def classes(self) -> list[str]:
        """Labels of the training part, in the order of the alphabet."""
        return sorted({self.labels[i] for i in self.where["train"]})

    def label_counts(self, part: str) -> Counter:
        """How often each label occurs in a part."""
        return Counter(self.labels[i] for i in self.where[part])

    @cached_property
    def fingerprint(self) -> str:
        """24 hex digits over all that decides a result: texts, spans, labels, parts and types."""
        digest = hashlib.sha256(self.kind.encode())
        for column in (list(map(_text, self.sentences)), self.labels, self.parts, self.types):
            digest.update(json.dumps(list(column)).encode("utf-8", "replace"))
        digest.update(self.sentence.tobytes() + self.spans.tobytes())
        return digest.hexdigest()[:24]

    def select(self, places: Sequence[int] | np.ndarray | Callable[[int], bool]) -> Items:
        """The items at some places, or those that a function of the place chooses."""
        chosen = [i for i in range(len(self)) if places(i)] if callable(places) else list(places)
        columns = {name: [getattr(self, name)[i] for i in chosen]
                   for name in ("labels", "parts", "types", "documents")}
        return replace(self, sentence=self.sentence[chosen], spans=self.spans[chosen], **columns)


def _text(sentence: Sequence[str] | str) -> str | list[str]:
    return sentence if isinstance(sentence, str) else list(sentence)
