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

    Where there are fewer than three documents, or such uneven ones that a part would have less than
    2.5 %, blocks of consecutive sentences take their place. A sentence that is also, word for word,
    in the test part is left out of the other two, and one of the validation part out of training.

    Raises:
        BertScopeError: there are too few different sentences.
    """
    train, valid, test = _split(sentences, 3, seed)
    valid = _without(valid, test)
    train = _without(_without(train, test), valid)
    return Split(train, valid, test) if train and valid else _refuse()


def split_in_two(sentences: Sequence[Sentence], seed: int = 0) -> tuple[list, list]:
    """As :func:`split_by_document`, into training (90 %) and validation (10 %) parts."""
    train, valid = _split(sentences, 2, seed)
    train = _without(train, valid)
    return (train, valid) if train else _refuse()


def _split(sentences: Sequence[Sentence], parts: int, seed: int) -> list[list[Sentence]]:
    groups: dict[str, list[Sentence]] = {}
    for sentence in sentences:
        groups.setdefault(sentence.document, []).append(sentence)
    documents = list(groups.values()) if "" not in groups else []  # no names, no documents
    shuffled = random.Random(seed).sample(documents, len(documents))
    blocks = _blocks(sentences)
    return (_deal(shuffled, parts)
            or _deal(sorted(shuffled, key=len), parts, largest=1.0)  # a few large documents
            or _deal(random.Random(seed).sample(blocks, len(blocks)), parts, largest=1.0)
            or _refuse())


def _refuse():
    raise BertScopeError("There are too few different sentences to split them into training, "
                         "validation and test parts.")


def _blocks(sentences: Sequence[Sentence]) -> list[list[Sentence]]:
    """At most ``BLOCKS`` runs of consecutive sentences, of equal length but for the last."""
    size = -(-len(sentences) // BLOCKS) or 1
    return [list(sentences[start:start + size]) for start in range(0, len(sentences), size)]


def _deal(groups: list[list[Sentence]], parts: int, largest: float = 2 * SHARE,
          ) -> list[list[Sentence]] | None:
    """Groups, in their order, fill test, then validation, then training (which is returned first).

    A group with more than the share ``largest`` of the sentences goes to training. None if a part
    stays nearly empty.
    """
    total = sum(map(len, groups))
    dealt: list[list[Sentence]] = [[] for _ in range(parts)]
    for group in groups:
        lacking = [part for part in range(1, parts) if len(dealt[part]) < SHARE * total]
        dealt[lacking[-1] if lacking and len(group) <= largest * total else 0] += group
    return dealt if all(part and len(part) >= SHARE / 4 * total for part in dealt) else None


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
