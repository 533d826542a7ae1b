"""What an epoch consists of, before any masking: which pieces of the store make which example."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Plan:
    """N examples, each ``[CLS] span [SEP]`` with a further ``span [SEP]`` for every other span.

    ``spans`` int64 [S, 2] are half-open runs of the token store; example i has the spans
    ``offsets[i]`` to ``offsets[i + 1]`` (int64 [N + 1]). ``label`` int64 [N] is the answer of the
    pair objective, or None where examples are no pairs: then all ``token_type_ids`` are 0, as in
    RoBERTa; in a pair the second span's are 1.
    """

    spans: np.ndarray
    offsets: np.ndarray
    label: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> np.ndarray:
        """Pieces of each example, special ones included, int64 [N]."""
        sizes = self.spans[:, 1] - self.spans[:, 0] + 1  # with its [SEP]
        return np.add.reduceat(sizes, self.offsets[:-1]) + 1 if len(self) else np.zeros(0, np.int64)

    def of(self, index: int) -> np.ndarray:
        """The spans of one example, int64 [n, 2]."""
        return self.spans[self.offsets[index]: self.offsets[index + 1]]
