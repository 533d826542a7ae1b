"""Vectors of many texts: drawn in two or three dimensions, and compared in all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertscope.analysis import layouts
from bertscope.analysis.principal import principal
from bertscope.errors import BertScopeError

METHODS = ("pca", "tsne", "umap")
#: Neighbours that trustworthiness looks at, and points for which it does so; more are sampled.
NEIGHBOURS, SAMPLE = 5, 2000
#: Rows of distances that are in memory at the same time.
BLOCK = 500


@dataclass
class Projection:
    """Points for a map, and how far the map can be trusted."""

    coordinates: np.ndarray         # float64 [N, dimensions]
    explained: list[float] | None   # PCA: share of the variance along each axis
    trustworthiness: float          # 0 ... 1; 1 = neighbours on the map are neighbours


def project(vectors: np.ndarray, method: str = "pca", dimensions: int = 2, seed: int = 0,
            start: np.ndarray | None = None, progress: layouts.Progress | None = None,
            ) -> Projection:
    """Project N vectors to ``dimensions`` axes.

    ``"pca"`` is exact and linear. ``"tsne"`` and ``"umap"`` keep neighbourhoods, not distances or
    densities; ``seed``, ``start`` and ``progress`` matter to them only (see ``layouts``).

    Args:
        vectors: [N, H], N >= 3.

    Raises:
        BertScopeError: too few vectors, values that are not finite, all vectors the same, another
            method, or more dimensions than there are.
    """
    vectors = _checked(vectors, least=3)
    if method not in METHODS:
        raise BertScopeError(f"Vectors are projected by 'pca', 'tsne' or 'umap', not {method!r}.")
    if not 1 <= dimensions <= min(3, *vectors.shape):
        raise BertScopeError(f"{vectors.shape[0]} vectors of {vectors.shape[1]} numbers cannot be "
                             f"drawn in {dimensions} dimensions.")
    if not varies(vectors):
        raise BertScopeError("All of these texts have the same vector: there is nothing to spread "
                             "out.")
    coordinates, explained = principal(vectors, dimensions) if method == "pca" \
        else (layouts.layout(vectors, method, dimensions, seed, start, progress), None)
    return Projection(coordinates, explained, trustworthiness(vectors, coordinates))


def varies(vectors: np.ndarray) -> bool:
    """Whether vectors [N, H] differ by more than rounding."""
    return bool(np.ptp(vectors, axis=0).max(initial=0) > 1e-6 * np.abs(vectors).max(initial=0))


def neighbours(vectors: np.ndarray, index: int, k: int = 10) -> list[tuple[int, float]]:
    """The ``k`` vectors most similar to vector ``index`` by cosine, in the original space.

    Args:
        vectors: [N, H].

    Returns:
        ``[(index, cosine), ...]``, the most similar first, without ``index`` itself.

    Raises:
        BertScopeError: values that are not finite, or no such index.
    """
    vectors = _checked(vectors, least=1)
    if not 0 <= index < len(vectors):
        raise BertScopeError(f"There is no vector {index}: there are {len(vectors)}.")
    unit = unit_length(vectors)
    cosines = unit @ unit[index]
    order = [int(i) for i in np.argsort(-cosines, kind="stable") if i != index]
    return [(i, float(cosines[i])) for i in order[:max(0, k)]]


def nearest_on_map(coordinates: np.ndarray, index: int, k: int = 10) -> list[int]:
    """The ``k`` points nearest to point ``index`` on a map [N, d], by Euclidean distance."""
    away = ((coordinates - coordinates[index]) ** 2).sum(1)
    away[index] = -1
    return [int(i) for i in np.argsort(away, kind="stable")[1:k + 1]]


def label_agreement(vectors: np.ndarray, labels: np.ndarray, k: int = 5) -> tuple[float, float]:
    """Of the ``k`` nearest by cosine, how many have the vector's own label: the mean share, and
    what it would be if the labels were dealt out at random.

    Args:
        vectors: [N, H], N > k.
        labels: [N].

    Raises:
        BertScopeError: too few vectors, or values that are not finite.
    """
    unit = unit_length(_checked(vectors, least=k + 1))
    _, codes = np.unique(np.asarray(labels).astype(str), return_inverse=True)
    right = 0
    for start in range(0, len(unit), BLOCK):
        cosines = unit[start:start + BLOCK] @ unit.T
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = -np.inf
        near = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        right += int((codes[near] == codes[start + rows, None]).sum())
    counts = np.bincount(codes)
    chance = float((counts * (counts - 1)).sum() / (len(codes) * (len(codes) - 1)))
    return right / (k * len(unit)), chance


def anisotropy(vectors: np.ndarray, pairs: int = 1000, seed: int = 0) -> float:
    """Mean cosine of random pairs of different vectors (Ethayarajh 2019, section 3.4).

    0 where directions are spread evenly; near 1 where all vectors point the same way, so that a
    high cosine alone says nothing. All pairs are taken where there are no more than ``pairs``.

    Raises:
        BertScopeError: fewer than two vectors, or values that are not finite.
    """
    unit = unit_length(_checked(vectors, least=2))
    count = len(unit)
    if count * (count - 1) // 2 <= pairs:
        first, second = np.triu_indices(count, k=1)
    else:
        random = np.random.default_rng(seed)
        first = random.integers(count, size=pairs)
        second = (first + random.integers(1, count, size=pairs)) % count
    return float((unit[first] * unit[second]).sum(axis=1).mean())


def trustworthiness(vectors: np.ndarray, coordinates: np.ndarray, k: int = NEIGHBOURS,
                    sample: int = SAMPLE) -> float:
    r"""How far the neighbours on a map are neighbours in all dimensions (Venna and Kaski 2001).

    .. math:: T = 1 - \frac{2}{nk(2n - 3k - 1)} \sum_i \sum_{j \in N_k(i)} \max(0, r(i, j) - k)

    where N_k(i) are the k nearest of i on the map, and r(i, j) is the rank of j among the nearest
    of i in all dimensions, both by Euclidean distance. k is less where there are few points. Of
    more than ``sample`` points, so many are drawn for i (always the same); j is any of all n.
    """
    count = len(vectors)
    k = min(k, (count - 1) // 2)
    chosen = np.arange(count)
    if count > sample:
        chosen = np.sort(np.random.default_rng(0).choice(count, sample, replace=False))
    vectors = np.asarray(vectors, np.float64) - np.mean(vectors, axis=0, dtype=np.float64)
    norms = (vectors ** 2).sum(1)
    beyond = 0
    for start in range(0, len(chosen), BLOCK):
        rows = chosen[start:start + BLOCK]
        here = np.arange(len(rows))
        away = norms[rows, None] + norms - 2 * vectors[rows] @ vectors.T
        on_map = ((coordinates[rows, None] - coordinates[None]) ** 2).sum(2)
        on_map[here, rows] = np.inf
        near = np.argpartition(on_map, k - 1, axis=1)[:, :k]
        away[here, rows] = np.inf  # a point is no neighbour of its own
        for column in near.T:
            rank = 1 + (away < away[here, column][:, None]).sum(1)
            beyond += int(np.maximum(rank - k, 0).sum())
    return float(1 - 2 * beyond / (len(chosen) * k * (2 * count - 3 * k - 1)))


def unit_length(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1; a zero vector stays zero and is similar to nothing."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms == 0, 1, norms)


def _checked(vectors: np.ndarray, least: int) -> np.ndarray:
    vectors = np.asarray(vectors, np.float64)
    if vectors.ndim != 2 or len(vectors) < least:
        count = len(vectors) if vectors.ndim == 2 else 0
        raise BertScopeError(f"This needs at least {least} texts; there are {count}.")
    if not np.isfinite(vectors).all():
        raise BertScopeError("Some vectors have values that are not finite: the training of this "
                             "checkpoint has diverged.")
    return vectors
