"""Masked language modelling: which pieces are predicted, and what is shown in their place.

Source: Devlin et al. 2019, section 3.1 (15 %; 80 % [MASK], 10 % random, 10 % unchanged) and
``create_masked_lm_predictions``. Random pieces are drawn from ordinary pieces only, where the
original draws from the whole vocabulary, [PAD] and unused ones included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MASK, RANDOM, KEEP = 0, 1, 2


@dataclass(frozen=True)
class MaskedRow:
    """One row after masking.

    ``input_ids`` is the row as the model sees it [T]; ``positions`` are the places to predict,
    ascending [n]; ``labels`` the pieces that stood there [n]; ``fate`` what was done with each
    (0 [MASK], 1 random, 2 unchanged) [n]. All int64.
    """

    input_ids: np.ndarray
    positions: np.ndarray
    labels: np.ndarray
    fate: np.ndarray


def predictions_per_row(length: int, rate: float) -> int:
    """Pieces to predict in a row of ``length`` pieces, special ones counted, at least one.

    Fixed by the length, so that full rows have one shape (the original draws as many; a coin
    per piece, as in today's collators, would leave some rows with none).
    """
    return max(1, round(length * rate))


def mask_row(input_ids: np.ndarray, candidates: np.ndarray, ordinary_ids: np.ndarray,
             mask_id: int, rate: float, mask_share: float, random_share: float,
             rng: np.random.Generator) -> MaskedRow:
    """Choose pieces of one unpadded row and corrupt them.

    Args:
        input_ids: int64 [T].
        candidates: int64, the places that may be chosen (no special pieces).
        ordinary_ids: int64, the pieces that a random replacement is drawn from.
        rate: share of the T pieces to choose.
        mask_share, random_share: what becomes of a chosen piece; the rest stays as it is.
    """
    count = min(predictions_per_row(len(input_ids), rate), len(candidates))
    positions = np.sort(rng.choice(candidates, size=count, replace=False))
    labels = input_ids[positions]
    draw = rng.random(count)
    fate = np.where(draw < mask_share, MASK, np.where(draw < mask_share + random_share, RANDOM, KEEP))
    shown = input_ids.copy()
    shown[positions[fate == MASK]] = mask_id
    replaced = positions[fate == RANDOM]
    shown[replaced] = rng.choice(ordinary_ids, size=len(replaced))
    return MaskedRow(shown, positions, labels, fate)
