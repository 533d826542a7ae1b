"""Training, validation and test parts that share nothing.

Words of one sentence, and sentences of one document, resemble each other: a split by word or by
sentence would let the probe see its test data's neighbours. So whole documents are dealt out; where
there are too few of them, blocks of consecutive sentences.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from bertscope.corpus.conllu import Sentence
from bertscope.errors import BertScopeError

#: Share of the sentences in the validation part and in the test part.
SHARE = 0.1
#: How many blocks of consecutive sentences stand in for documents.
BLOCKS = 40


class Split(NamedTuple):
    """Three lists of sentences; iterates as ``train, valid, test``."""

    train: list[Sentence]
    valid: list[Sentence]
    test: list[Sentence]


def split_by_document(sentences: Sequence[Sentence], seed: int = 0) -> Split:
    """Deal out whole documents: about 80 % for training, 10 % each for validation and test.

    Fewer than three documents, or such uneven ones that a part would stay empty, are cut into
    blocks of consecutive sentences first. A sentence that is also, word for word, in the test part
    is left out of the other two, and one of the validation part out of training.

    Raises:
        BertScopeError: there are fewer than three different sentences.
    """
    groups: dict[str, list[Sentence]] = {}
    for sentence in sentences:
        groups.setdefault(sentence.document, []).append(sentence)
    # Sentences without a document's name are no document together.
    dealt = None if "" in groups else _deal(list(groups.values()), 3, seed)
    train, valid, test = dealt or _deal(_blocks(sentences), 3, seed) or _refuse()
    valid = _without(valid, test)
    train = _without(_without(train, test), valid)
    return Split(train, valid, test) if train and valid else _refuse()


def split_in_two(sentences: Sequence[Sentence], seed: int = 0) -> tuple[list, list]:
    """As :func:`split_by_document`, into training (90 %) and validation (10 %) parts."""
    groups: dict[str, list[Sentence]] = {}
    for sentence in sentences:
        groups.setdefault(sentence.document, []).append(sentence)
    dealt = None if "" in groups else _deal(list(groups.values()), 2, seed)
    train, valid = dealt or _deal(_blocks(sentences), 2, seed) or _refuse()
    train = _without(train, valid)
    return (train, valid) if train else _refuse()


def _refuse():
    raise BertScopeError("There are too few different sentences to split them into training, "
                         "validation and test parts.")


def _blocks(sentences: Sequence[Sentence]) -> list[list[Sentence]]:
    """At most ``BLOCKS`` runs of consecutive sentences, of equal length but for the last."""
    size = -(-len(sentences) // BLOCKS) or 1
    return [list(sentences[start:start + size]) for start in range(0, len(sentences), size)]


def _deal(groups: list[list[Sentence]], parts: int, seed: int) -> list[list[Sentence]] | None:
    """Groups in random order fill test, then validation, then training; None if one stays empty.

    A group that is far larger than the part to fill goes to training.
    """
    target = SHARE * sum(map(len, groups))
    order = random.Random(seed).sample(groups, len(groups))
    dealt: list[list[Sentence]] = [[] for _ in range(parts)]
    for group in order:
        small = len(group) <= max(2 * target, 1)
        open_parts = [part for part in reversed(range(1, parts)) if len(dealt[part]) < target]
        dealt[open_parts[0] if open_parts and small else 0] += group
    return dealt if all(dealt) else None


def _without(sentences: list[Sentence], others: list[Sentence]) -> list[Sentence]:
    seen = {forms(sentence) for sentence in others}
    return [sentence for sentence in sentences if forms(sentence) not in seen]


def forms(sentence: Sentence) -> tuple[str, ...]:
    """The words of a sentence: what makes two sentences the same."""
    return tuple(word.form for word in sentence.words)


def sample_sentences(counts: Sequence[int], most: int, seed: int) -> list[int]:
    """Sentences in random order until their labelled words would exceed ``most``.

    A larger ``most`` continues the same order, so the smaller sample is part of the larger one.

    Args:
        counts: labelled words of each sentence; sentences without any are never taken.
    Returns: indices in ascending order; at least one where any sentence has a labelled word.
    """
    order = [index for index, count in enumerate(counts) if count]
    random.Random(seed).shuffle(order)
    taken, words = [], 0
    for index in order:
        if taken and words + counts[index] > most:
            break
        taken.append(index)
        words += counts[index]
    return sorted(taken)
