"""Intervals of shares."""

from __future__ import annotations

import math
from statistics import NormalDist


def wilson(count: float, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of a binomial share (Wilson 1927): the shares that a score test does not reject.

    ``(p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)`` with p = count / of; (0, 1) of nothing.
    """
    if not of:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p, spread = count / of, 1 + z * z / of
    middle = (p + z * z / (2 * of)) / spread
    half = z / spread * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)
