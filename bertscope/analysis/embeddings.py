"""Vectors of many texts: drawn in two or three dimensions, and compared in all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertscope.errors import BertScopeError

METHODS = ("pca", "tsne")
#: To which PCA reduces before t-SNE (van der Maaten and Hinton 2008, section 4.2, used 30).
BEFORE_TSNE = 50


@dataclass
class Projection:
    """Points for a map, and how far the map can be trusted."""

    coordinates: np.ndarray         # float64 [N, dimensions]
    explained: list[float] | None   # PCA: share of the variance along each axis
    trustworthiness: float          # 0 ... 1; 1 = neighbours on the map are neighbours


def project(vectors: np.ndarray, method: str = "pca", dimensions: int = 2, seed: int = 0,
            ) -> Projection:
    """Project N vectors to ``dimensions`` axes.

    ``"pca"`` is exact and linear (full singular value decomposition of the centred vectors).
    ``"tsne"`` keeps neighbourhoods, not distances or densities (van der Maaten and Hinton 2008);
    its perplexity is 30, or a third of N - 1 where that is less. ``seed`` matters to t-SNE only.

    Trustworthiness (Venna and Kaski 2001) looks at the 5 nearest neighbours, or fewer where there
    are few points.

    Args:
        vectors: [N, H], N >= 3.

    Raises:
        BertScopeError: too few vectors, values that are not finite, all vectors the same, another
            method, or more dimensions than there are.
    """
    vectors = _checked(vectors, least=3)
    if method not in METHODS:
        raise BertScopeError(f"Vectors are projected by 'pca' or 'tsne', not {method!r}.")
    if not 1 <= dimensions <= min(3, *vectors.shape):
        raise BertScopeError(f"{vectors.shape[0]} vectors of {vectors.shape[1]} numbers cannot be "
                             f"drawn in {dimensions} dimensions.")
    if not np.ptp(vectors, axis=0).any():
        raise BertScopeError("All of these texts have the same vector: there is nothing to spread "
                             "out.")
    coordinates, explained = _pca(vectors, dimensions) if method == "pca" \
        else (_tsne(vectors, dimensions, seed), None)
    return Projection(coordinates, explained, _trustworthiness(vectors, coordinates))


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
    unit = _unit(vectors)
    cosines = unit @ unit[index]
    order = [int(i) for i in np.argsort(-cosines, kind="stable") if i != index]
    return [(i, float(cosines[i])) for i in order[:max(0, k)]]


def anisotropy(vectors: np.ndarray, pairs: int = 1000, seed: int = 0) -> float:
    """Mean cosine of random pairs of different vectors (Ethayarajh 2019, section 3.4).

    0 where directions are spread evenly; near 1 where all vectors point the same way, so that a
    high cosine alone says nothing. All pairs are taken where there are no more than ``pairs``.

    Raises:
        BertScopeError: fewer than two vectors, or values that are not finite.
    """
    unit = _unit(_checked(vectors, least=2))
    count = len(unit)
    if count * (count - 1) // 2 <= pairs:
        first, second = np.triu_indices(count, k=1)
    else:
        random = np.random.default_rng(seed)
        first = random.integers(count, size=pairs)
        second = (first + random.integers(1, count, size=pairs)) % count
    return float((unit[first] * unit[second]).sum(axis=1).mean())


def _checked(vectors: np.ndarray, least: int) -> np.ndarray:
    vectors = np.asarray(vectors, np.float64)
    if vectors.ndim != 2 or len(vectors) < least:
        count = len(vectors) if vectors.ndim == 2 else 0
        raise BertScopeError(f"This needs at least {least} texts; there are {count}.")
    if not np.isfinite(vectors).all():
        raise BertScopeError("Some vectors have values that are not finite: the training of this "
                             "checkpoint has diverged.")
    return vectors


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1; a zero vector stays zero and is similar to nothing."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms == 0, 1, norms)


def _pca(vectors: np.ndarray, dimensions: int) -> tuple[np.ndarray, list[float]]:
    from sklearn.decomposition import PCA

    pca = PCA(dimensions, svd_solver="full")
    coordinates = pca.fit_transform(vectors)
    return coordinates, [float(share) for share in pca.explained_variance_ratio_]


def _tsne(vectors: np.ndarray, dimensions: int, seed: int) -> np.ndarray:
    from sklearn.manifold import TSNE

    if min(vectors.shape) > BEFORE_TSNE:
        vectors = _pca(vectors, BEFORE_TSNE)[0]
    perplexity = min(30.0, (len(vectors) - 1) / 3)
    tsne = TSNE(dimensions, perplexity=perplexity, init="pca", random_state=seed)
    return tsne.fit_transform(vectors.astype(np.float32)).astype(np.float64)


def _trustworthiness(vectors: np.ndarray, coordinates: np.ndarray) -> float:
    from sklearn.manifold import trustworthiness

    k = min(5, (len(vectors) - 1) // 2)
    return float(trustworthiness(vectors, coordinates, n_neighbors=k))
