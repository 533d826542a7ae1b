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
    height, width = weights.shape[-2:]
    if (rows, columns) == (height, width):
        return np.asarray(weights, np.float32)
    small = pooled(pooled(np.asarray(weights, np.float32), rows, -2), columns, -1)
    return small * np.float32(rows / height)


def pooled(values: np.ndarray, pixels: int, axis: int) -> np.ndarray:
    """Sums over equal parts of an axis, a value that two parts share divided between them.

    No matrix product: its threads would wait for each other on a machine that is training.
    """
    edges = np.linspace(0, values.shape[axis], pixels + 1)
    first = np.minimum(edges.astype(int), values.shape[axis] - 1)
    of_part_before = (edges - first).astype(values.dtype)  # of the value that the edge is in
    sums = np.add.reduceat(values, first[:-1], axis)
    cut = np.take(values, first, axis) * of_part_before.reshape(-1, *[1] * (-1 - axis))
    cut_before, cut_after = (np.take(cut, part, axis) for part in
                             (np.arange(pixels), np.arange(1, pixels + 1)))
    cut_after[(..., -1, *[slice(None)] * (-1 - axis))] = 0  # nothing is beyond the last one
    return sums - cut_before + cut_after


def quantise(weights: np.ndarray, signed: bool = False) -> np.ndarray:
    """Bytes of the square root, which spends the 256 levels where most weights are: uint8.

    ``(level / 255) ** 2`` is the weight again, off by 0.004 at most; ``signed`` (weights from -1 to 1)
    has 0 at 127.5 and is off by 0.008.
    """
    root = np.sign(weights) * np.sqrt(np.abs(np.clip(weights, -1, 1)))
    scaled = 127.5 * (1 + root) if signed else 255 * root
    return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)
