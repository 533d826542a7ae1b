"""Topic or coherence: pairs of four kinds, drawn from documents that a model has not read.

That next-sentence prediction can be solved by topic alone is said of it since Lan et al. 2019
(ALBERT, section 3.1): a sentence of another document gives itself away by its subject. A model that
has learnt how texts go on should tell the next sentence also from one of the same document, and
from the sentence before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertscope.errors import BertScopeError

#: The kinds of pairs, in the order of the columns of scores.
KINDS = ("next", "same", "other", "swapped")
#: Raise it when the same documents would give other pairs.
VERSION = 1
#: A place where no pair can be found by so many draws (a document that repeats itself) is left out.
TRIES = 20

Document = Sequence[str]


@dataclass(frozen=True)
class Anchor:
    """One place in a document and its four pairs: ``pairs[kind]`` is (A, B).

    ``next``     A is ``sentences`` sentences of the document, B as many that follow
    ``same``     the same A; B is a run of the same document that shares no sentence with the two
    ``other``    the same A; B is a run of another document
    ``swapped``  the true pair the other way round

    B of ``same`` and ``other`` never spells the same as the true B or as A, and each text has a
    letter or a digit.
    """

    document: int
    place: int
    pairs: dict[str, tuple[str, str]]


def draw(documents: Sequence[Document], count: int, seed: int = 0, sentences: int = 1,
         ) -> list[Anchor]:
    """At most ``count`` anchors, spread evenly over the documents: every document gives one before
    any gives a second.

    The same documents, seed and sentences give the same anchors, and a larger count begins with the
    smaller one's.

    Args:
        sentences: how many make up A, and how many B.

    Raises:
        BertScopeError: fewer than two documents are long enough.
    """
    usable = [d for d, document in enumerate(documents) if len(document) >= 3 * sentences]
    if len(usable) < 2:
        raise BertScopeError(f"Fewer than two documents have {3 * sentences} sentences or more, "
                             "which pairs of every kind need.")
    rngs = {d: np.random.default_rng([seed, sentences, d]) for d in usable}
    places = {d: rngs[d].permutation(len(documents[d]) - 2 * sentences + 1) for d in usable}
    order = np.random.default_rng([seed, sentences]).permutation(usable).tolist()
    found: list[Anchor] = []
    for turn in range(max(map(len, places.values()))):
        for d in order:
            if len(found) == count:
                return found
            if turn < len(places[d]):
                anchor = _anchor(documents, d, int(places[d][turn]), sentences, order, rngs[d])
                found += [anchor] if anchor else []
    if len({anchor.document for anchor in found}) < 2:
        raise BertScopeError("These documents repeat themselves too much: no pairs of every kind "
                             "can be found in two of them.")
    return found


def _anchor(documents, d: int, place: int, sentences: int, usable: list[int],
            rng: np.random.Generator) -> Anchor | None:
    def text(document: Document, start: int) -> str:
        return " ".join(document[i] for i in range(start, start + sentences))

    def readable(words: str) -> bool:
        return any(map(str.isalnum, words))

    own = documents[d]
    a, b = text(own, place), text(own, place + sentences)
    if a == b or not readable(a) or not readable(b):
        return None
    # Runs of the same document that end before A, or begin after the true B.
    before = max(0, place - sentences + 1)
    after = range(place + 2 * sentences, len(own) - sentences + 1)
    free = before + len(after)

    def same() -> str:
        number = int(rng.integers(free))
        return text(own, number if number < before else after[number - before])

    place_of_own = usable.index(d)

    def other() -> str:
        number = int(rng.integers(len(usable) - 1))
        foreign = documents[usable[number + (number >= place_of_own)]]
        return text(foreign, int(rng.integers(len(foreign) - sentences + 1)))

    def unlike(propose) -> str | None:
        proposals = (propose() for _ in range(TRIES))
        return next((p for p in proposals if p not in (a, b) and readable(p)), None)

    within, without = unlike(same) if free else None, unlike(other)
    if within is None or without is None:
        return None
    return Anchor(d, place, {"next": (a, b), "same": (a, within), "other": (a, without),
                             "swapped": (b, a)})


def as_read(model, anchors: Sequence[Anchor], progress=None) -> tuple[list[Anchor], int]:
    """The anchors with their texts cut to what the model reads at once, and how many of them were
    longer. What is nearest to the seam is kept: the end of A and the beginning of B.

    A pair is swapped after it was cut, as in training: both orders hold the same words.
    """
    made, longer = [], 0
    for number, anchor in enumerate(anchors):
        if progress and number % 50 == 0:
            progress(f"{number:,} of {len(anchors):,} places", number / len(anchors))
        pairs = {kind: model.text_encoder.nearest(*anchor.pairs[kind]) for kind in KINDS[:3]}
        longer += any(pairs[kind] != anchor.pairs[kind] for kind in pairs)
        pairs["swapped"] = pairs["next"][::-1]
        made.append(replace(anchor, pairs=pairs))
    return made, longer


def pairs_of(anchors: Sequence[Anchor], kinds: Sequence[str] = KINDS) -> list[tuple[str, str]]:
    """All pairs, anchor by anchor, each in the order of ``kinds``."""
    return [anchor.pairs[kind] for anchor in anchors for kind in kinds]


def model_scores(model, anchors: Sequence[Anchor], progress=None) -> np.ndarray:
    """The probability of the true order, ``next_sentences``, of every pair: float64 [N, 4], a row
    for each anchor, columns as in ``KINDS``.

    Raises:
        BertScopeError: the checkpoint has no head for pairs.
    """
    from bertscope.analysis.pairs import next_sentences

    answers = next_sentences(model, pairs_of(anchors), progress)
    return np.array([a.p_next for a in answers], float).reshape(-1, len(KINDS))
