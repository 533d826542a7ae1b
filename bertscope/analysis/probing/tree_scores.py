"""How well predicted distances and depths of words agree with a dependency tree.

As in the authors' code: UUAS counts edges over all sentences, punctuation is left out of both trees;
correlations take all words, average over those of sentences of one length, then over the lengths.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bertscope.analysis.probing import trees
from bertscope.analysis.probing.uncertainty import interval_of, resampled

#: Sentences of fewer or more words do not count for the correlations.
LENGTHS = range(5, 51)


@dataclass(frozen=True)
class Scored:
    """One sentence: its governors (-1 = root), the places ``scored`` (no punctuation) and ``kept``
    (all that have a vector), and what was predicted for those kept: squared distances
    [kept, kept] and depths [kept]."""

    heads: Sequence[int]
    scored: Sequence[int]
    kept: Sequence[int]
    distances: np.ndarray
    depths: np.ndarray


@dataclass(frozen=True)
class Scores:
    """``row``: uuas, low, high, sentences (that have an edge), spearman, root, root_low, root_high,
    depth_spearman. ``edges``: (sentence, first, second, whether the gold tree has it) of all that were
    predicted."""

    row: dict[str, float]
    edges: list[tuple[int, int, int, bool]]


def scores(sentences: Sequence[Scored], seed: int = 0) -> Scores:
    """All scores; NaN where no sentence can be scored."""
    edges, right, of = [], [], []
    for number, own in enumerate(sentences):
        predicted, gold = recovered(own), trees.edges(own.heads, own.scored)
        edges += [(number, *edge, edge in gold) for edge in sorted(predicted)]
        right += [edge in predicted for edge in gold]
        of += [number] * len(gold)
    roots = [(number, root_found(own)) for number, own in enumerate(sentences)
             if own.heads.index(-1) in own.kept]
    row = {**_share("uuas", "low", "high", right, of, seed), "sentences": len(set(of)),
           "spearman": distance_spearman(
               (trees.distances(own.heads)[np.ix_(own.kept, own.kept)], own.distances)
               for own in sentences),
           **_share("root", "root_low", "root_high", [found for _, found in roots],
                    [number for number, _ in roots], seed),
           "depth_spearman": depth_spearman(
               (np.array(trees.depths(own.heads))[own.kept], own.depths) for own in sentences)}
    return Scores(row, edges)


def recovered(own: Scored) -> set[tuple[int, int]]:
    """The minimum spanning tree over the words that are scored, by their places in the sentence."""
    inside = [own.kept.index(place) for place in own.scored]
    return {(own.kept[a], own.kept[b]) for a, b in trees.spanning_tree(own.distances, inside)}


def root_found(own: Scored) -> bool:
    """Whether the word of the smallest depth, punctuation excluded, is the root."""
    inside = [own.kept.index(place) for place in own.scored]
    return bool(inside) and own.kept[min(inside, key=lambda i: own.depths[i])] == own.heads.index(-1)


def chain(sentences: Iterable) -> dict[str, float]:
    """The same scores where each word hangs from its neighbour and the first one is the root."""
    flat = []
    for own in sentences:
        places = np.array(own.kept, dtype=float)
        flat.append(Scored(own.heads, own.scored, own.kept,
                           np.abs(np.subtract.outer(places, places)), places))
    row = scores(flat).row
    return {name: row[name] for name in ("uuas", "spearman", "root")}


def distance_spearman(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> float:
    """Spearman's rank correlation of each word's true and predicted distances to all words."""
    by_length = defaultdict(list)
    for gold, predicted in pairs:
        if len(gold) in LENGTHS:
            by_length[len(gold)] += spearman_rows(gold, predicted).tolist()
    return _mean_of_means(by_length)


def depth_spearman(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> float:
    """The same of the depths of a sentence's words."""
    by_length = defaultdict(list)
    for gold, predicted in pairs:
        if len(gold) in LENGTHS:
            by_length[len(gold)] += spearman_rows(gold[None], predicted[None]).tolist()
    return _mean_of_means(by_length)


def spearman_rows(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rank correlation of each row of two arrays [n, m], ties by their mean rank; 0 for a row that
    does not vary, which is no knowledge."""
    from scipy.stats import rankdata

    ranks = [rankdata(x, axis=1) for x in (a, b)]
    x, y = (rank - rank.mean(axis=1, keepdims=True) for rank in ranks)
    scale = np.sqrt((x ** 2).sum(1) * (y ** 2).sum(1))
    return np.divide((x * y).sum(1), scale, out=np.zeros(len(scale)), where=scale > 0)


def _mean_of_means(by_length: dict[int, list[float]]) -> float:
    return float(np.mean([np.mean(values) for values in by_length.values()])) if by_length else np.nan


def _share(name: str, low: str, high: str, right: Sequence[bool], of: Sequence[int], seed: int,
           ) -> dict[str, float]:
    if not right:
        return dict.fromkeys((name, low, high), np.nan)
    share, draws = resampled(np.array(right, float)[None, None], np.array(of), seed=seed)
    ends = interval_of(share, draws, len(set(of)))
    return {name: float(share[0]), low: float(ends[0][0]), high: float(ends[1][0])}
