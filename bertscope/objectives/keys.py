"""Random numbers keyed by what they are for, never by what was drawn before.

An example is a pure function of (seed, epoch, index). That is what makes masks static or dynamic
by one number, resuming exact, and the result independent of workers and of their order
(fairseq's ``MaskTokensDataset`` has the idea; its key is folded to a million states, ours is not).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

#: One stream per purpose, so that no two purposes ever share their numbers.
PLAN, ORDER, CHOICE, RUN, FATE, REPLACEMENT = range(6)

#: No row is longer than this: place p of example i is number ``i * LONGEST_ROW + p``.
LONGEST_ROW = 1 << 20


def generator(seed: int, epoch: int, stream: int) -> np.random.Generator:
    """A generator for one purpose in one epoch."""
    return np.random.Generator(np.random.Philox(_key(seed, epoch, stream)))


def uniforms(seed: int, epoch: int, stream: int, indices: np.ndarray, width: int) -> np.ndarray:
    """A number in [0, 1) for each place of each example, float64 [len(indices), width].

    Example i's numbers are the same in whatever batch it stands. They are SplitMix64's sequence
    (Steele, Lea & Flood 2014, figure 17), entered at any place since its state only counts.
    """
    numbers = indices.astype(np.uint64)[:, None] * np.uint64(LONGEST_ROW) + np.arange(
        1, width + 1, dtype=np.uint64)
    z = np.uint64(_key(seed, epoch, stream)) + numbers * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@lru_cache(maxsize=256)
def _key(seed: int, epoch: int, stream: int) -> int:
    return int(np.random.SeedSequence([seed, epoch, stream]).generate_state(1, np.uint64)[0])
