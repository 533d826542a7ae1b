"""How BERT's input is made, on a text that somebody typed: by the trainer's own functions.

Sentences are split, cut into word pieces, put together into pairs or packed, and masked by what the
trainer calls (``corpus.sentences``, ``corpus.store``, ``objectives``); here a typed text is only
given the form that they read. No torch, and of a checkpoint nothing but its tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bertscope.config import PAIRS, ObjectiveConfig, RunConfig
from bertscope.corpus.document import Document
from bertscope.corpus.sentences import split_sentences
from bertscope.corpus.store import build_store
from bertscope.errors import BertScopeError
from bertscope.objectives import Examples, Plan, plan_pairs
from bertscope.objectives.keys import PLAN, generator

#: Beside the trainer's schemes: two texts as they stand, A then B.
TYPED = "typed"
SCHEMES = (*PAIRS, TYPED)
NOT_CHOSEN = -1


@dataclass(frozen=True)
class TextStore:
    """A token store in memory; what ``Examples`` reads of one on disk.

    Attributes:
        ids, sentence_offsets, document_offsets, word_starts: as in ``corpus.store.TokenStore``.
        documents: the sentences of each document as text, those that have a piece.
        numbers: which of the typed texts each document is, from 0.
    """

    ids: np.ndarray
    sentence_offsets: np.ndarray
    document_offsets: np.ndarray
    word_starts: np.ndarray | None
    documents: list[list[str]]
    numbers: list[int]


@dataclass(frozen=True)
class Made:
    """One example before and after masking; T pieces with the special ones, arrays int64 [T].

    Attributes:
        ids: the pieces of the text. ``shown``: what the model sees in their places.
        token_type_ids: the segment of each, 0 or 1.
        words: the number of each piece's word, -1 for special pieces, which are never chosen.
        source: each piece's place in the token store, -1 for special pieces.
        fate: ``masking.MASK``, ``RANDOM`` or ``KEEP`` where a piece was chosen, else -1.
        first: the first place of the word, n-gram or span that a piece was chosen with, else -1.
        label: of the pair, 1 = random or swapped; None where the example is no pair.
    """

    ids: np.ndarray
    shown: np.ndarray
    token_type_ids: np.ndarray
    words: np.ndarray
    source: np.ndarray
    fate: np.ndarray
    first: np.ndarray
    label: int | None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def chosen(self) -> np.ndarray:
        """The places to be predicted, ascending, int64 [P]."""
        return np.flatnonzero(self.fate != NOT_CHOSEN)


@dataclass(frozen=True)
class Span:
    """A run of text in an example: whole sentences ``first`` to ``last`` (numbered through the
    store) of one document, less the pieces cut off at its front and back."""

    document: int
    first: int
    last: int
    cut_front: int
    cut_back: int


def read_texts(model, texts: Sequence[str]) -> TextStore:
    """Each text as a document of a token store, a line as a paragraph.

    A typed ``[MASK]`` is the mask piece; every other special piece that is spelled out is text, as
    in a corpus (where ``[MASK]`` is text too).

    Args:
        model: a ``LoadedModel``; its tokenizer is used.

    Raises:
        BertScopeError: none of the texts has a character that can be read.
    """
    backend = model.text_encoder.backend
    documents, numbers = [], []
    for number, text in enumerate(texts):
        lines = model.text_encoder.clean(text).splitlines()
        sentences = [s for line in lines for s in split_sentences(line)
                     if backend.encode(s, add_special_tokens=False).ids]
        if sentences:
            documents.append(sentences)
            numbers.append(number)
    if not documents:
        raise BertScopeError("There is no text that this model can read: type at least one word.")
    reader = _Reader(model.tokenizer, backend)
    with TemporaryDirectory(prefix="bertscope-") as folder:
        store = build_store(map(Document, documents), reader, Path(folder) / "store")
        kept = {name: None if getattr(store, name) is None else np.array(getattr(store, name))
                for name in ("ids", "sentence_offsets", "document_offsets", "word_starts")}
    if kept["ids"].max() >= model.text_encoder.vocab_size:
        raise BertScopeError("The tokenizer has pieces that the model does not know: this "
                             "checkpoint's tokenizer belongs to another model.")
    return TextStore(**kept, documents=documents, numbers=numbers)


class _Reader:
    """The tokenizer as a token store asks for it, with the mask piece known in text."""

    def __init__(self, tokenizer, backend):
        self.backend_tokenizer, self.get_vocab, self._size = \
            backend, tokenizer.get_vocab, len(tokenizer)

    def __len__(self) -> int:
        return self._size


def objective(scheme: str, **settings) -> ObjectiveConfig:
    """The trainer's settings of an example, checked as the trainer checks them.

    Args:
        scheme: one of ``SCHEMES``.
        settings: fields of ``ObjectiveConfig``.

    Raises:
        BertScopeError: a value is out of range, the shares add up to more than 1, or nothing is
            masked in a pair.
    """
    pairs = "sop" if scheme == TYPED else scheme
    unmasked = settings.get("mask_rate") == 0 and pairs not in ("nsp", "sop")
    return RunConfig().override({"recipe": "causal" if unmasked else "bert",
                                 "objective.pairs": pairs} | {
        f"objective.{name}": value for name, value in settings.items()}).objective


def examples(store, tokenizer, objective: ObjectiveConfig, scheme: str, seed: int) -> Examples:
    """The trainer's examples of a store's documents.

    Args:
        store: a :class:`TextStore` or a ``TokenStore``.
        scheme: ``objective.pairs``, or ``"typed"``: the first two documents as they are.
    """
    documents = np.arange(len(store.document_offsets) - 1)
    kind = AsTyped if scheme == TYPED else Examples
    return kind(store, documents, tokenizer, objective, seed)


class AsTyped(Examples):
    """One example in every epoch: the first document as A and the second, if there is one, as B,
    cut to the length as the trainer cuts pairs."""

    def plan(self, epoch: int) -> Plan:
        ends = self.store.sentence_offsets[self.store.document_offsets]
        if len(ends) == 2:
            stop = min(int(ends[1]), self.objective.max_length - 2)
            return Plan(np.array([[0, stop]]), np.array([0, 1]))
        # Two "sentences" of one document, a text each; in the order in which they were typed.
        plan = plan_pairs(ends[:3], np.array([0, 2]), np.array([0]), self.objective.max_length, 0.0,
                          generator(self.seed, epoch, PLAN), "sop").plan()
        return Plan(plan.spans[np.argsort(plan.spans[:, 0])], plan.offsets, np.zeros(1, np.int64))


def made(source: Examples, epoch: int, indices: Sequence[int]) -> list[Made]:
    """The examples ``indices`` of an epoch, as they would be trained on."""
    indices = np.asarray(indices, dtype=np.int64)
    if not len(indices):
        return []
    rows = source.rows(epoch, indices)
    masked, words = source.masked(epoch, indices, rows), source.words(rows)
    label = source.plan(epoch).label
    fate, first = (np.full(rows.input_ids.shape, NOT_CHOSEN) for _ in range(2))
    real = np.nonzero(masked.labels >= 0)
    places = real[0], masked.positions[real]
    fate[places], first[places] = masked.fate[real], masked.first[real]
    columns = (rows.input_ids, masked.input_ids, rows.token_type_ids, words, rows.source, fate, first)
    return [Made(*(column[row, :length] for column in columns),
                 None if label is None else int(label[index]))
            for row, (index, length) in enumerate(zip(indices, rows.lengths.tolist()))]


def spans(source: Examples, epoch: int, index: int) -> list[Span]:
    """Where an example's text comes from, and what was cut off to make it fit."""
    store, found = source.store, []
    for start, end in source.plan(epoch).of(index).tolist():
        first = int(np.searchsorted(store.sentence_offsets, start, "right")) - 1
        last = int(np.searchsorted(store.sentence_offsets, end, "left")) - 1
        document = int(np.searchsorted(store.document_offsets, first, "right")) - 1
        found.append(Span(document, first, last, start - int(store.sentence_offsets[first]),
                          int(store.sentence_offsets[last + 1]) - end))
    return found


def pieces(tokenizer, ids: Sequence[int]) -> list[str]:
    """The names of pieces; a number that the tokenizer does not know as ``[number]``."""
    names = tokenizer.convert_ids_to_tokens([int(i) for i in ids])
    return [name or f"[{int(i)}]" for name, i in zip(names, ids)]
