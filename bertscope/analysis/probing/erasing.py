"""Removing what a linear probe can read: LEACE (Belrose et al. 2023) and INLP (Ravfogel et al. 2020)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bertscope.errors import BertScopeError

METHODS = ("leace", "inlp")
#: INLP ends when a probe is at most this much better than the majority on the validation part, after
#: so many probes, or when it has removed this share of all directions.
GAIN, PROBES, MOST_REMOVED = 0.01, 30, 0.5
#: The strength of INLP's probes (their loss is summed over items, see ``classifier``).
STRENGTH = 0.1
#: Directions with less variance than this share of the largest are taken for empty.
EMPTY = 1e-6


@dataclass(frozen=True)
class Eraser:
    """``x - (x - mean) @ removed.T``: a projection along ``rank`` directions.

    ``removed`` float64 [H, H], ``mean`` float64 [H]. ``metric`` [H, H] is what makes the directions
    orthogonal: the whitening of LEACE, or the identity.
    """

    removed: np.ndarray
    mean: np.ndarray
    rank: int
    metric: np.ndarray

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """float32 [..., H]."""
        vectors = np.asarray(vectors, np.float64)
        return (vectors - (vectors - self.mean) @ self.removed.T).astype(np.float32)

    def at_random(self, seed: int) -> Eraser:
        """The control: as many directions of the same space, drawn at random, about the same mean."""
        inverse = np.linalg.pinv(self.metric, hermitian=True)
        space = np.linalg.matrix_rank(self.metric, hermitian=True)
        values, vectors = np.linalg.eigh(self.metric)
        basis = vectors[:, np.argsort(-np.abs(values))[:space]]
        drawn = np.random.default_rng(seed).normal(size=(space, min(self.rank, space)))
        directions = basis @ np.linalg.qr(drawn)[0]
        return Eraser(inverse @ directions @ directions.T @ self.metric, self.mean, self.rank,
                      self.metric)

    def variance(self, vectors: np.ndarray) -> float:
        """The share of the variance of vectors [n, H] that is removed."""
        centred = np.asarray(vectors, np.float64) - np.mean(vectors, axis=0, dtype=np.float64)
        lost = centred @ self.removed.T
        return float((lost ** 2).sum() / max((centred ** 2).sum(), 1e-30))


def leace(vectors: np.ndarray, labels: np.ndarray) -> Eraser:
    """The least change after which no linear classifier does better than a constant answer.

    r(x) = x - W+ P W (x - E[x]), W = cov(x)^(-1/2), P the orthogonal projection onto the columns of
    W cov(x, z), z the labels as 0/1 vectors (their section 4). The rank is at most the number of labels
    less one.

    Args:
        vectors: float [n, H]. labels: int [n].

    Raises:
        BertScopeError: there are not two labels.
    """
    x = np.asarray(vectors, np.float64)
    z = (labels[:, None] == np.unique(labels)).astype(np.float64)
    if z.shape[1] < 2:
        raise BertScopeError("There is one label only; nothing tells it from others.")
    mean = x.mean(0)
    x, z = x - mean, z - z.mean(0)
    values, basis = np.linalg.eigh(x.T @ x / len(x))
    kept = values > EMPTY * values.max()
    whiten = (basis[:, kept] / np.sqrt(values[kept])) @ basis[:, kept].T
    unwhiten = (basis[:, kept] * np.sqrt(values[kept])) @ basis[:, kept].T
    columns, sizes, _ = np.linalg.svd(whiten @ (x.T @ z / len(x)), full_matrices=False)
    columns = columns[:, sizes > EMPTY * max(sizes.max(), EMPTY)]
    removed = unwhiten @ columns @ columns.T @ whiten
    return Eraser(removed, mean, columns.shape[1], whiten)


def inlp(vectors: np.ndarray, labels: np.ndarray, valid: np.ndarray, valid_labels: np.ndarray,
         check: Callable[[], None] | None = None) -> Eraser:
    """Iterative null-space projection: train a linear probe, remove the directions of its weights,
    train the next one on what is left, until a probe is at the majority.

    Args:
        check: called before each probe; what it raises ends the work.

    Raises:
        BertScopeError: there are not two labels.
    """
    from bertscope.analysis.probing import classifier

    names, counts = np.unique(labels, return_counts=True)
    if len(names) < 2:
        raise BertScopeError("There is one label only; nothing tells it from others.")
    size = vectors.shape[1]
    mean = np.mean(vectors, axis=0, dtype=np.float64)
    majority = float(np.mean(valid_labels == names[counts.argmax()]))
    found = np.zeros((size, 0))
    for _ in range(PROBES):
        if check:
            check()
        left, held_out = (_without(x, found) for x in (vectors, valid))
        fitted = classifier.fit(left, labels, held_out, valid_labels, strengths=[STRENGTH])
        if fitted.valid_accuracy <= majority + GAIN or found.shape[1] >= MOST_REMOVED * size:
            break
        weights = fitted.weights / fitted.scaler.scale
        weights = weights - (weights @ found) @ found.T
        _, sizes, rows = np.linalg.svd(weights - weights.mean(0), full_matrices=False)
        new = rows[sizes > 1e-4 * sizes.max()].T
        found = np.linalg.qr(np.concatenate([found, new], 1))[0]
    return Eraser(found @ found.T, mean, found.shape[1], np.eye(size))


def _without(vectors: np.ndarray, directions: np.ndarray) -> np.ndarray:
    return (vectors - (vectors @ directions) @ directions.T).astype(np.float32)
