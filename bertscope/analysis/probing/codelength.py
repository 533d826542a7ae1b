"""Minimum description length by the online code (Voita and Titov 2020, section 2.2).

Somebody who sees the vectors but not the labels is sent the labels in blocks. The first block is sent
uniformly; each next one with the probabilities of a probe trained on all that were sent before. The
total, in bits, says how much of the labels the vectors do not explain, and how hard it was to find
that out. Everything here is in bits, the probes' losses too (the reference code adds nats to them).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bertscope.analysis.probing.classifier import STRENGTHS
from bertscope.analysis.probing.softmax import Softmax, log_probabilities

#: Shares of the items after which a new probe is trained; the last block ends with all of them.
FRACTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)

#: Known items up to which all strengths are fitted together; of more, some would wait for others.
TOGETHER = 1000

#: From the items that are known and the place where the next block ends to the bits of that block
#: under each of S settings, float64 [S].
Coder = Callable[[int, int], np.ndarray]


@dataclass(frozen=True)
class Codelength:
    """How many bits the labels of n items take.

    ``blocks`` has, for each block, where it ends and its bits. ``setting`` is the coder's setting
    that was best overall, which is told in log2 S bits before anything else.
    """

    bits: float
    items: int
    classes: int
    entropy: float                        # of the labels' frequencies, in bits
    setting: int
    blocks: tuple[tuple[int, float], ...]

    @property
    def uniform(self) -> float:
        """n log2 K: with no probe at all."""
        return self.items * np.log2(self.classes)

    @property
    def compression(self) -> float:
        """How many times shorter than the uniform code; 1 = nothing was found."""
        return self.uniform / self.bits

    @property
    def compression_by_frequency(self) -> float:
        """How many times shorter than a code that knows the labels' frequencies, n H(y). The
        uniform code flatters tasks whose labels are of unequal frequency."""
        return self.items * self.entropy / self.bits


def boundaries(items: int, fractions: Sequence[float] = FRACTIONS) -> list[int]:
    """Where blocks end, ascending and different, the last at ``items``."""
    return sorted({min(items, max(1, round(items * f))) for f in fractions} | {items})


def online_code(labels: np.ndarray, classes: int, coder: Coder,
                fractions: Sequence[float] = FRACTIONS) -> Codelength:
    """The online code of ``labels`` int [n] in their order, 0 to K-1.

    The first block takes log2 K bits an item. Of the coder's S settings the best over all blocks
    counts, with log2 S bits to say which: what was chosen by looking has to be sent.
    """
    ends = boundaries(len(labels), fractions)
    first = ends[0] * np.log2(classes)
    blocks = [np.asarray(coder(start, end), np.float64) for start, end in zip(ends, ends[1:])]
    sums = np.sum(blocks, axis=0) if blocks else np.zeros(1)
    best = int(np.argmin(sums))
    share = np.bincount(labels) / len(labels)
    share = share[share > 0]
    return Codelength(
        float(first + sums[best] + np.log2(len(sums))), len(labels), classes,
        float(-(share * np.log2(share)).sum()), best,
        ((ends[0], float(first)), *((end, float(b[best])) for end, b in zip(ends[1:], blocks))))


class LinearCoder:
    """Codes with logistic regressions, one for each strength, each from where it ended before.

    Labels that were not sent yet must stay possible: each label is added once, at the mean of all
    vectors (Laplace's rule).

    Args:
        features: float32 [n, H], standardised; known to both sides.
        labels: int [n], 0 to K-1.
        classes: K.
    """

    def __init__(self, features: np.ndarray, labels: np.ndarray, classes: int,
                 strengths: Sequence[float] = STRENGTHS, check: Callable[[], None] | None = None):
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._x = torch.from_numpy(features).to(device)
        self._y = torch.from_numpy(np.asarray(labels, np.int64)).to(device)
        self._classes, self._check = classes, check
        self.strengths = torch.tensor(sorted(strengths), device=device)
        self._at = self._x.new_zeros(len(strengths), classes, features.shape[1] + 1)

    def __call__(self, known: int, end: int) -> np.ndarray:
        """Bits of the labels ``known`` to ``end`` under each strength."""
        every = torch.arange(self._classes, device=self._y.device)
        x = torch.cat([self._x[:known], self._x.new_zeros(self._classes, self._x.shape[1])])[None]
        problem = Softmax(x, torch.cat([self._y[:known], every]), self._classes)
        size = len(self.strengths) if known <= TOGETHER else 1
        for start in range(0, len(self.strengths), size):
            some = slice(start, start + size)
            self._at[some] = problem.fit(self._at[some], self.strengths[some], self._check).at
        scores = log_probabilities(self._x[known:end].expand(len(self._at), -1, -1), self._at)
        right = self._y[known:end].expand(len(self._at), 1, -1)
        nats = -scores.gather(1, right).sum((1, 2), dtype=torch.float64)
        return (nats / np.log(2)).cpu().numpy()
