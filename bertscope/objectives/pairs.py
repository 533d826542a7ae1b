"""Sentence pairs: next-sentence prediction and sentence-order prediction.

Source: Devlin et al. 2019, appendix A.2, and its ``create_pretraining_data.py``
(``create_instances_from_document``); for the order Lan et al. 2019 (ALBERT), section 3.1. Two
departures, both so that exactly half of the pairs are random, are marked below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertscope.errors import BertScopeError
from bertscope.objectives.plan import Plan


@dataclass(frozen=True)
class Pairs:
    """One epoch's pairs as half-open spans of the token store, all int64 of shape [N].

    ``[CLS] ids[a_start:a_end] [SEP] ids[b_start:b_end] [SEP]``. ``label`` is 1 where B was drawn
    from another document (NSP) or where A and B were swapped (SOP), 0 where B follows A.
    """

    a_start: np.ndarray
    a_end: np.ndarray
    b_start: np.ndarray
    b_end: np.ndarray
    label: np.ndarray

    def __len__(self) -> int:
        return len(self.label)

    @property
    def lengths(self) -> np.ndarray:
        """Pieces of each example with its three special ones, int64 [N]."""
        return (self.a_end - self.a_start) + (self.b_end - self.b_start) + 3

    def plan(self) -> Plan:
        spans = np.stack([self.a_start, self.a_end, self.b_start, self.b_end], axis=1)
        return Plan(spans.reshape(-1, 2), np.arange(0, 2 * len(spans) + 1, 2), self.label)


def plan_pairs(sentence_offsets: np.ndarray, document_offsets: np.ndarray, documents: np.ndarray,
               max_length: int, short_seq_prob: float, rng: np.random.Generator,
               scheme: str = "nsp") -> Pairs:
    """Cut ``documents`` into sentence pairs, half of them random (``nsp``) or swapped (``sop``).

    Each document is walked once. Sentences are gathered until they reach the target length (the
    longest that fits, or with probability ``short_seq_prob`` a shorter one drawn per document);
    the gathered chunk is split at a random sentence into A and B. For a random pair, B comes from
    another document and the sentences it replaces are put back. A swapped pair has the later
    segment first; never a random one, which would betray itself by its topic. A pair that is too
    long loses single pieces from the longer side, front or back at random.

    Args:
        sentence_offsets: int64 [sentences + 1], first piece of each sentence.
        document_offsets: int64 [documents + 1], first sentence of each document.
        documents: int64, the documents to draw from; both A and B come from these alone.
        max_length: longest example in pieces, the three special ones included.

    Raises:
        BertScopeError: fewer than two documents, or no document with two sentences.
    """
    if scheme == "nsp" and len(documents) < 2:
        raise BertScopeError(
            "Next-sentence pairs need at least two documents to train on: a random second "
            "segment has to come from another one.")
    room = max_length - 3
    chunks = [chunk for document in rng.permutation(documents)
              for chunk in _walk(int(document), sentence_offsets, document_offsets, room,
                                 short_seq_prob, 0.5 if scheme == "nsp" else 0.0, rng)]
    if not chunks:
        raise BertScopeError(
            "No document has two sentences, so there is no next sentence to predict.")
    document, first, split, stop, target, is_random = (np.array(c) for c in zip(*chunks))
    is_random = is_random.astype(bool)
    a_start, a_end = sentence_offsets[first], sentence_offsets[split]
    b_start, b_end = sentence_offsets[split].copy(), sentence_offsets[stop].copy()
    label = is_random.astype(np.int64)
    if is_random.any():
        b_start[is_random], b_end[is_random] = _random_segments(
            document[is_random], target[is_random] - (a_end - a_start)[is_random],
            sentence_offsets, document_offsets, documents, rng)
    spans = _truncate(a_start, a_end, b_start, b_end, room, rng)
    if scheme == "sop":
        swapped = rng.random(len(label)) < 0.5
        label = swapped.astype(np.int64)
        spans = [np.where(swapped, later, sooner)
                 for sooner, later in zip(spans, spans[2:] + spans[:2])]
    return Pairs(*spans, label)


def _walk(document, sentence_offsets, document_offsets, room, short_seq_prob, random_prob, rng):
    """Yield (document, first, split, stop, target, is_random) in sentence numbers."""
    first, end = int(document_offsets[document]), int(document_offsets[document + 1])
    starts = sentence_offsets[first: end + 1].tolist()
    target = room
    if rng.random() < short_seq_prob:
        target = int(rng.integers(2, room + 1))
    begin = 0
    count = end - first
    # One sentence left over has no next sentence. The original pairs it with a random segment,
    # which makes more than half of all pairs random; we leave it to serve as somebody's B.
    while begin < count - 1:
        # At least two sentences, where the original makes a random pair of a lone long one.
        stop = begin + 2
        while stop < count and starts[stop] - starts[begin] < target:
            stop += 1
        split = int(rng.integers(begin + 1, stop))
        is_random = rng.random() < random_prob
        yield document, first + begin, first + split, first + stop, target, is_random
        begin = split if is_random else stop


def _random_segments(document, wanted, sentence_offsets, document_offsets, documents, rng):
    """For each pair, a run of sentences of another document, at least ``wanted`` pieces long
    where that document has so many."""
    # A draw among the other documents: skip over one's own place in the list.
    place = np.searchsorted(documents, document)
    other = rng.integers(0, len(documents) - 1, size=len(document))
    other = documents[other + (other >= place)]
    first, end = document_offsets[other], document_offsets[other + 1]
    start = rng.integers(first, end)
    begin = sentence_offsets[start]
    stop = np.searchsorted(sentence_offsets, begin + np.maximum(wanted, 1), side="left")
    return begin, sentence_offsets[np.clip(stop, start + 1, end)]


def _truncate(a_start, a_end, b_start, b_end, room, rng):
    """``truncate_seq_pair`` in closed form: always from the longer side (from B where equal)."""
    a, b = a_end - a_start, b_end - b_start
    excess = np.maximum(a + b - room, 0)
    level = np.minimum(excess, np.abs(a - b))  # until both are equally long
    rest = excess - level  # then in turn, B first
    from_a = np.where(a > b, level, 0) + rest // 2
    from_b = np.where(a > b, 0, level) + (rest + 1) // 2
    front_a, front_b = rng.binomial(from_a, 0.5), rng.binomial(from_b, 0.5)
    return (a_start + front_a, a_end - (from_a - front_a),
            b_start + front_b, b_end - (from_b - front_b))
