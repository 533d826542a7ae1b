"""Maps of the same texts at several steps or layers, laid so that points keep their place.

Two ways, both linear. *Turned*: each step is drawn in its own best plane, which is then rotated or
mirrored onto its neighbour's (orthogonal Procrustes: Schönemann 1966). Distances on a map are not
touched, but the planes differ, so each step leaves out other directions. *One plane*: the plane in
which all steps together vary most. Nothing is turned, what moves has moved, but it holds less of
the variance of each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertscope.errors import BertScopeError


@dataclass(frozen=True)
class Path:
    """N texts at S steps.

    Attributes:
        coordinates: float64 [S, N, d].
        kept: the share of each step's variance that its map holds; None for t-SNE and UMAP.
        trust: each map's trustworthiness, 0 to 1.
        jumps: how far points go from step to step, of the maps as they came and as they are laid:
            two root mean squares; equal where nothing is turned.
    """

    coordinates: np.ndarray
    kept: tuple[float, ...] | None
    trust: tuple[float, ...]
    jumps: tuple[float, float]


def rotation(points: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The orthogonal matrix R [d, d] (a rotation, perhaps with a reflection) for which the centred
    ``points`` times R come closest to the centred ``target``, by the sum of squares.

    R = U Vᵀ, where U S Vᵀ is the singular value decomposition of pointsᵀ · target.
    """
    points, target = points - points.mean(0), target - target.mean(0)
    u, _, vt = np.linalg.svd(points.T @ target)
    return u @ vt


def turned(points: np.ndarray, target: np.ndarray) -> np.ndarray:
    """``points`` [N, d], centred and turned onto ``target``; their distances stay."""
    return (points - points.mean(0)) @ rotation(points, target)


def chained(maps: Sequence[np.ndarray], reference: int) -> np.ndarray:
    """Turn each map onto its neighbour, from the reference outwards: float64 [S, N, d]."""
    laid = [np.asarray(m, np.float64) - np.mean(m, axis=0) for m in maps]
    for place in outwards(len(laid), reference):
        if place != reference:
            near = place - 1 if place > reference else place + 1
            laid[place] = turned(laid[place], laid[near])
    return np.stack(laid)


def outwards(count: int, reference: int) -> list[int]:
    """The reference, then those after it in order, then those before it, backwards.

    Raises:
        BertScopeError: there is no such place.
    """
    if not 0 <= reference < count:
        raise BertScopeError(f"There is no map {reference}: there are {count}.")
    return [*range(reference, count), *range(reference - 1, -1, -1)]


def one_plane(steps: Sequence[np.ndarray], dimensions: int = 2) -> tuple[np.ndarray, list[float]]:
    """All steps on the axes along which they vary most, taken together.

    Each step is centred, so that its mean does not move; the axes are the leading eigenvectors of
    the mean of the steps' covariances.

    Args:
        steps: S times [N, H].

    Returns:
        float64 [S, N, d], and the share of each step's variance on these axes (0 where a step has
        none).
    """
    covariance, total = 0.0, []
    for step in steps:
        centred = np.asarray(step, np.float64) - np.mean(step, axis=0, dtype=np.float64)
        covariance = covariance + centred.T @ centred
        total.append(float((centred ** 2).sum()))
    axes = np.linalg.eigh(covariance)[1][:, ::-1][:, :dimensions]
    axes = axes * np.where(np.abs(axes).max(0) == axes.max(0), 1, -1)  # the largest is positive
    laid = np.stack([(np.asarray(step, np.float64) - np.mean(step, axis=0, dtype=np.float64)) @ axes
                     for step in steps])
    return laid, [float((plane ** 2).sum() / whole) if whole else 0.0
                  for plane, whole in zip(laid, total)]


def same_size(maps: np.ndarray) -> np.ndarray:
    """Every map [S, N, d] with the same root mean square distance from its middle, that of the
    largest; a map whose points all coincide stays as it is."""
    centred = maps - maps.mean(1, keepdims=True)
    sizes = np.sqrt((centred ** 2).sum(2).mean(1))
    factors = np.where(sizes > 1e-9 * sizes.max(), sizes.max() / np.where(sizes > 0, sizes, 1), 1)
    return centred * factors[:, None, None]


def jump(maps: np.ndarray) -> float:
    """The root mean square distance that a point goes from a map to the next; 0 for one map."""
    if len(maps) < 2:
        return 0.0
    centred = maps - maps.mean(1, keepdims=True)
    return float(np.sqrt((np.diff(centred, axis=0) ** 2).sum(2).mean()))
