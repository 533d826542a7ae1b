"""How the vectors of words lie in a layer: how alike, how much by context, along how many axes.

The measures are Ethayarajh's (2019), each beside its baseline, and again with every dimension
standardised, because a few dimensions of large values decide raw cosines (Timkey and van Schijndel
2021). His released code draws pairs with replacement and computes the explained variance of centred
vectors; here pairs are of different occurrences, and the explained variance is the paper's formula.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertscope.analysis.embeddings import unit_length
from bertscope.errors import BertScopeError

#: Words in at least so many contexts count (Ethayarajh 2019, section 3.4).
CONTEXTS = 5
PAIRS = 1000


@dataclass(frozen=True)
class Occurrences:
    """The words of a sample of sentences, N in all.

    ``sentence``: int64 [N], the sentence of each; ``words``: what each is, as text.
    """

    sentence: np.ndarray
    words: Sequence[str]

    def repeated(self, contexts: int = CONTEXTS) -> dict[str, np.ndarray]:
        """Words found in at least ``contexts`` sentences: their places, the first in each sentence,
        so that no two are of one context."""
        places: dict[str, dict[int, int]] = defaultdict(dict)
        for place, (word, sentence) in enumerate(zip(self.words, self.sentence.tolist())):
            places[word.casefold()].setdefault(sentence, place)
        return {word: np.array(list(found.values())) for word, found in places.items()
                if len(found) >= contexts}


def mean_cosine(vectors: np.ndarray) -> float:
    r"""The mean cosine of all pairs of different vectors [N, H], N >= 2: the self-similarity of a
    word if these are its occurrences (Ethayarajh 2019, definition 1).

    For unit vectors u it is :math:`(|\sum_i u_i|^2 - \sum_i |u_i|^2) / (N (N - 1))`.
    """
    return float(contributions(vectors).sum())


def contributions(vectors: np.ndarray) -> np.ndarray:
    """What each dimension adds to the mean cosine of all pairs, float64 [H]; the sum is that mean
    (Timkey and van Schijndel 2021, section 3)."""
    unit = unit_length(np.asarray(vectors, np.float64))
    count = len(unit)
    return (unit.sum(0) ** 2 - (unit ** 2).sum(0)) / (count * (count - 1))


def random_pairs(vectors: np.ndarray, sentence: np.ndarray, pairs: int = PAIRS, seed: int = 0,
                 ) -> float:
    """The mean cosine of random words of different sentences: first two sentences are drawn, then a
    word of each, so that long sentences do not count more (Ethayarajh 2019, section 4.1)."""
    unit = unit_length(np.asarray(vectors, np.float64))
    first, second = _drawn_pairs(sentence, pairs, np.random.default_rng(seed))
    return float((unit[first] * unit[second]).sum(1).mean())


def within_sentences(vectors: np.ndarray, sentence: np.ndarray) -> float:
    """The mean over sentences of the mean cosine between a word and its sentence's mean vector:
    intra-sentence similarity (Ethayarajh 2019, definition 2)."""
    vectors = np.asarray(vectors, np.float64)
    _, which, count = np.unique(sentence, return_inverse=True, return_counts=True)
    means = np.zeros((len(count), vectors.shape[1]))
    np.add.at(means, which, vectors)
    cosines = (unit_length(vectors) * unit_length(means)[which]).sum(1)
    return float((np.bincount(which, cosines) / count).mean())


def explained_by_one(vectors: np.ndarray) -> float:
    r"""Maximum explainable variance (Ethayarajh 2019, definition 3): the share
    :math:`\sigma_1^2 / \sum_i \sigma_i^2` of the singular values of the vectors [N, H], not
    centred. How well one static vector could stand for all of them; 0 where all are zero."""
    vectors = np.asarray(vectors, np.float64)
    squares = np.linalg.eigvalsh(_smaller_gram(vectors))
    return float(squares[-1] / squares.sum()) if squares.sum() > 0 else 0.0


def participation_ratio(vectors: np.ndarray) -> float:
    r"""How many directions the variance is spread over: :math:`(\sum \lambda)^2 / \sum \lambda^2`
    of the eigenvalues of the covariance. 1 = a line, H = a ball; 0 where nothing varies.
    """
    gram = _smaller_gram(np.asarray(vectors, np.float64) - np.mean(vectors, 0, dtype=np.float64))
    squares = float((gram ** 2).sum())
    return float(np.trace(gram)) ** 2 / squares if squares > 0 else 0.0


def standardised(vectors: np.ndarray) -> np.ndarray:
    """Each dimension with mean 0 and standard deviation 1 over these vectors; float64 [N, H]. A
    dimension that does not vary becomes 0."""
    vectors = np.asarray(vectors, np.float64)
    deviation = vectors.std(0)
    return (vectors - vectors.mean(0)) / np.where(deviation > 1e-12, deviation, np.inf)


@dataclass(frozen=True)
class Layer:
    """One layer's measures. ``baseline`` is the mean cosine of random pairs (the anisotropy);
    ``explained_baseline`` is the explained variance of as many random words as the words have
    occurrences, since few vectors are always near to a line."""

    baseline: float
    self_similarity: float
    in_sentences: float
    explained: float
    explained_baseline: float
    participation: float
    norm: float
    largest: tuple[tuple[int, float], ...]   # (dimension, its share of the random pairs' cosine)


def measure(vectors: np.ndarray, occurrences: Occurrences, seed: int = 0,
            only: str | None = None) -> Layer:
    """All measures of one layer.

    Args:
        vectors: [N, H], as they are or ``standardised``.
        only: self-similarity and explained variance of this word; of all repeated words by default.

    Raises:
        BertScopeError: there are fewer than two sentences, or no word is repeated often enough.
    """
    vectors = np.asarray(vectors, np.float64)
    if len(np.unique(occurrences.sentence)) < 2:
        raise BertScopeError("This needs words of at least two sentences.")
    repeated = occurrences.repeated()
    if only is not None:
        repeated = {w: p for w, p in repeated.items() if w == only.casefold()}
    if not repeated:
        raise BertScopeError(
            f"The word “{only}” is in fewer than {CONTEXTS} of these texts." if only else
            f"No word is found in {CONTEXTS} different sentences: give more text.")
    random = np.random.default_rng(seed)
    one_each = _one_each(occurrences.sentence, random)
    samples = [random.choice(one_each, min(len(places), len(one_each)), replace=False)
               for places in repeated.values()]
    parts = contributions(vectors[one_each])
    order = np.argsort(-np.abs(parts))[:3]
    total = parts.sum()
    return Layer(
        baseline=random_pairs(vectors, occurrences.sentence, seed=seed),
        self_similarity=float(np.mean([mean_cosine(vectors[p]) for p in repeated.values()])),
        in_sentences=within_sentences(vectors, occurrences.sentence),
        explained=float(np.mean([explained_by_one(vectors[p]) for p in repeated.values()])),
        explained_baseline=float(np.mean([explained_by_one(vectors[p]) for p in samples])),
        participation=participation_ratio(vectors),
        norm=float(np.linalg.norm(vectors, axis=1).mean()),
        largest=tuple((int(i), float(parts[i] / total) if abs(total) > 1e-9 else 0.0)
                      for i in order))


def _smaller_gram(vectors: np.ndarray) -> np.ndarray:
    """X Xᵀ or Xᵀ X, the smaller: their eigenvalues other than 0 are the same."""
    return vectors @ vectors.T if len(vectors) <= vectors.shape[1] else vectors.T @ vectors


def _one_each(sentence: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A random word of each sentence: their places."""
    order = random.permutation(len(sentence))
    return order[np.unique(sentence[order], return_index=True)[1]]


def _drawn_pairs(sentence: np.ndarray, pairs: int, random) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(sentence, kind="stable")
    _, starts, counts = np.unique(sentence[order], return_index=True, return_counts=True)
    first = random.integers(len(counts), size=pairs)
    second = (first + random.integers(1, len(counts), size=pairs)) % len(counts)
    return tuple(order[starts[chosen] + random.integers(counts[chosen])]
                 for chosen in (first, second))
