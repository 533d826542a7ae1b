"""Pictures of attention: no more pixels than a screen shows, a byte for each."""

from __future__ import annotations

from math import isqrt

import numpy as np

#: Bytes that the small maps of one model may have together: a picture that opens at once.
BUDGET = 800_000
#: Pixels of a small map's side, at most: no screen shows it larger.
LARGEST = 230


def side(length: int, maps: int, budget: int = BUDGET) -> int:
    """Pixels of each of ``maps`` small maps' sides: a pixel per piece, or as many as the budget has."""
    return max(1, min(length, LARGEST, isqrt(budget // maps)))


def thumbnails(weights: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Maps with fewer pixels, exactly averaged: float32 [..., rows, columns].

    A pixel stands for an equal part of the pieces, fractions of a piece included: it is the mean over
    the pieces that look of the sum over those looked at. That is what Clark et al. 2019 (section 4.1)
    do with the pieces of a word; rows sum to what they did, and a uniform head stays uniform.

    Args:
        weights: float [..., T, U]; ``rows`` <= T and ``columns`` <= U.
    """
    *_, height, width = weights.shape
    if (rows, columns) == (height, width):
        return np.asarray(weights, np.float32)
    looking = shares(height, rows)
    looking /= looking.sum(1, keepdims=True)
    return np.matmul(np.matmul(looking.astype(np.float32), weights),
                     shares(width, columns).T.astype(np.float32))


def shares(pieces: int, pixels: int) -> np.ndarray:
    """How much of each piece is in each pixel: float64 [pixels, pieces], columns sum to 1."""
    edges = np.linspace(0, pieces, pixels + 1)
    places = np.arange(pieces)
    overlap = np.minimum(edges[1:, None], places + 1) - np.maximum(edges[:-1, None], places)
    return np.clip(overlap, 0, 1)


def quantise(weights: np.ndarray, signed: bool = False) -> np.ndarray:
    """Bytes of the square root, which spends the 256 levels where most weights are: uint8.

    ``(level / 255) ** 2`` is the weight again, off by 0.004 at most; ``signed`` (weights from -1 to 1)
    has 0 at 127.5 and is off by 0.008.
    """
    root = np.sign(weights) * np.sqrt(np.abs(np.clip(weights, -1, 1)))
    scaled = 127.5 * (1 + root) if signed else 255 * root
    return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)
