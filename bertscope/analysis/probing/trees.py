"""Depths, distances and edges of dependency trees, from the column HEAD."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertscope.corpus.conllu import Sentence

#: Matrices of distances grow with the square: sentences of more words have none.
LONGEST = 512


def heads(sentence: Sentence) -> list[int] | None:
    """Each word's governor by its place from 0, -1 for the root; None where HEAD gives no tree.

    A tree has one root, a governor for every other word, and no circle.
    """
    found = [word.head - 1 if word.head >= 0 else len(sentence.words) for word in sentence.words]
    return found if depths(found) is not None else None


def depths(heads: Sequence[int]) -> list[int] | None:
    """Edges from the root to each word; None where the governors are no tree with one root."""
    count = len(heads)
    if sum(head == -1 for head in heads) != 1 or not all(-1 <= head < count for head in heads):
        return None
    found = [0 if head == -1 else -1 for head in heads]
    for start in range(count):
        path, place = [], start
        while found[place] < 0:
            if len(path) > count:
                return None
            path.append(place)
            place = heads[place]
        for step, passed in enumerate(reversed(path), 1):
            found[passed] = found[place] + step
    return found


def distances(heads: Sequence[int]) -> np.ndarray:
    """Edges on the path between any two words of a tree: int64 [words, words].

    Raises:
        ValueError: the governors are no tree.
    """
    depth = depths(heads)
    if depth is None:
        raise ValueError("not a tree")
    found = np.zeros((len(heads), len(heads)), np.int64)
    done: list[int] = []
    for word in sorted(range(len(heads)), key=lambda place: depth[place]):
        if done:  # everything so far is reached through the governor
            found[word, done] = found[done, word] = found[heads[word], done] + 1
        done.append(word)
    return found


def edges(heads: Sequence[int], kept: Sequence[int]) -> set[tuple[int, int]]:
    """The tree's edges ``(smaller, larger place)`` between the words ``kept``.

    A word whose governor is not kept hangs from the nearest one above it that is; where there is
    none above it, it has no edge.
    """
    inside, found = set(kept), set()
    for word in kept:
        above = heads[word]
        while above != -1 and above not in inside:
            above = heads[above]
        if above != -1:
            found.add((min(word, above), max(word, above)))
    return found


def spanning_tree(distance: np.ndarray, kept: Sequence[int]) -> set[tuple[int, int]]:
    """The minimum spanning tree over the words ``kept`` (Prim 1957): its edges by their places.

    Args:
        distance: float [words, words], symmetric. Of equal distances the first pair is taken.
    """
    places = np.asarray(kept)
    if len(places) < 2:
        return set()
    own = distance[np.ix_(places, places)]
    nearest, source = own[0].copy(), np.zeros(len(places), np.int64)
    outside = np.ones(len(places), bool)
    outside[0] = False
    found = set()
    while outside.any():
        new = int(np.where(outside, nearest, np.inf).argmin())
        a, b = int(places[source[new]]), int(places[new])
        found.add((min(a, b), max(a, b)))
        outside[new] = False
        closer = outside & (own[new] < nearest)
        nearest[closer], source[closer] = own[new][closer], new
    return found
