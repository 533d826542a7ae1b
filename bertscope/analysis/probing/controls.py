"""Control tasks: labels that say nothing but which word it is (Hewitt and Liang 2019, section 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def control_labels(types: Sequence[str], labels: Sequence[int], train: Sequence[int] | np.ndarray,
                   seed: int) -> np.ndarray:
    """Each word type gets one label by lot, from the distribution of the training labels.

    Every item of a type has that label, in all parts. A probe can only be right by having memorised
    the type, so *selectivity*, the accuracy on the task minus that on its control, tells what was
    there to be read from what the probe itself could learn. Types are told apart as written.

    Args:
        types: word type of each item, of all parts.
        labels: label number of each item.
        train: places of the training items.
    Returns: int64 [items], label numbers.
    """
    pool = np.asarray(labels, np.int64)[np.asarray(train)]
    names = sorted(set(types))
    drawn = np.random.default_rng(seed).choice(pool, len(names))
    label = dict(zip(names, drawn.tolist(), strict=True))
    return np.array([label[name] for name in types], np.int64)
