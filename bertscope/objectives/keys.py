"""Random numbers keyed by what they are for, never by what was drawn before.

An example is a pure function of (seed, epoch, index). That is what makes masks static or dynamic
by one number, resuming exact, and the result independent of workers and of their order
(fairseq's ``MaskTokensDataset`` has the idea; its key is folded to a million states, ours is not).
"""

from __future__ import annotations

import numpy as np

#: One stream per purpose, so that no two purposes ever share their numbers.
PLAN, ORDER, MASKS = range(3)


def generator(seed: int, epoch: int, stream: int, index: int = 0) -> np.random.Generator:
    """A generator for one purpose in one epoch, e.g. the masks of example ``index``."""
    key = np.random.SeedSequence([seed, epoch, stream, index])
    return np.random.Generator(np.random.Philox(key))
