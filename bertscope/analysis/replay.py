"""One masked place over a run's checkpoints: who led, when a word was learnt, what changed most.

Input everywhere: ``answers``, a list of (step, p) in the order of the steps, p float [V] the
distribution at the place by that checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

Answers = Sequence[tuple[int, np.ndarray]]


def rank(p: np.ndarray, index: int) -> int:
    """The place of piece ``index`` among all, from 1; equal probabilities share the best rank."""
    return 1 + int((p > p[index]).sum())


def leaders(answers: Answers, k: int = 5) -> pd.DataFrame:
    """The k most probable pieces at each step: columns step, rank (from 1), id, probability."""
    rows = []
    for step, p in answers:
        k = min(k, len(p))
        best = np.argpartition(-p, k - 1)[:k]
        best = best[np.lexsort((best, -p[best]))]
        rows += [(step, number, int(index), float(p[index]))
                 for number, index in enumerate(best, start=1)]
    return pd.DataFrame(rows, columns=["step", "rank", "id", "probability"])


def followed(answers: Answers, words: Mapping[int, str]) -> pd.DataFrame:
    """Chosen pieces over the steps: columns step, piece, probability, rank."""
    return pd.DataFrame([(step, word, float(p[index]), rank(p, index))
                         for step, p in answers for index, word in words.items()],
                        columns=["step", "piece", "probability", "rank"])


def learnt_at(answers: Answers, index: int) -> int | None:
    """The first step from which the piece leads at every later one; None if it does not lead now."""
    since = None
    for step, p in answers:
        if rank(p, index) > 1:
            since = None
        elif since is None:
            since = step
    return since


def most_changed(before: np.ndarray, after: np.ndarray, k: int = 10) -> pd.DataFrame:
    """The k pieces whose probability differs most, the largest difference first.

    Columns: id, before, after, change (after - before), rank_before, rank_after. Half the sum of all
    absolute changes is the total variation distance of the two distributions.
    """
    change = after.astype(np.float64) - before
    best = np.lexsort((np.arange(len(change)), -np.abs(change)))[:k]
    return pd.DataFrame({
        "id": best, "before": before[best], "after": after[best], "change": change[best],
        "rank_before": [rank(before, i) for i in best],
        "rank_after": [rank(after, i) for i in best]})


def total_variation(before: np.ndarray, after: np.ndarray) -> float:
    """How far apart two distributions are, 0 (equal) to 1: half the sum of absolute differences."""
    return float(np.abs(after.astype(np.float64) - before).sum() / 2)
