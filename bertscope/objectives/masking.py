"""Masked language modelling: which pieces are predicted, and what is shown in their place.

Source: Devlin et al. 2019, section 3.1 (15 %; 80 % [MASK], 10 % random, 10 % unchanged) and
``create_masked_lm_predictions``. Random pieces are drawn from ordinary pieces only, where the
original draws from the whole vocabulary, [PAD] and unused ones included.

The unit is a word ``piece``; a whole ``word`` (the original's later models); an ``ngram`` of one
to three words, n with probability proportional to 1/n (Lan et al. 2019, ALBERT, section 4.1); or a
``span`` of words, its length geometric with p = .2 and at most 10 (Joshi et al. 2020, SpanBERT,
section 3.1). What is shown is decided for each piece, in a ``span`` for all its pieces at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

UNITS = ("piece", "word", "ngram", "span")
MASK, RANDOM, KEEP = 0, 1, 2
NGRAM = np.array([1, 1 / 2, 1 / 3]) / (1 + 1 / 2 + 1 / 3)
SPAN_P, SPAN_LONGEST = 0.2, 10


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


def mask_row(input_ids: np.ndarray, words: np.ndarray, ordinary_ids: np.ndarray, mask_id: int,
             rate: float, mask_share: float, random_share: float, rng: np.random.Generator,
             unit: str = "piece") -> MaskedRow:
    """Choose pieces of one unpadded row and corrupt them.

    Args:
        input_ids: int64 [T].
        words: int64 [T], the number of the word that each piece belongs to, ascending; below 0
            for pieces that are never chosen (special ones).
        ordinary_ids: int64, the pieces that a random replacement is drawn from.
        rate: share of the T pieces to choose.
        mask_share, random_share: what becomes of a chosen piece; the rest stays as it is.
        unit: one of ``UNITS``.
    """
    candidates = np.flatnonzero(words >= 0)
    count = min(predictions_per_row(len(input_ids), rate), len(candidates))
    if unit == "piece":
        positions = np.sort(rng.choice(candidates, size=count, replace=False))
    else:
        positions, spans = choose_words(words, count, unit, rng)
    labels = input_ids[positions]
    draw = rng.random(len(positions))
    if unit == "span":
        draw = draw[spans]  # the first draws decide, one a span
    fate = np.where(draw < mask_share, MASK, np.where(draw < mask_share + random_share, RANDOM, KEEP))
    shown = input_ids.copy()
    shown[positions[fate == MASK]] = mask_id
    replaced = positions[fate == RANDOM]
    shown[replaced] = rng.choice(ordinary_ids, size=len(replaced))
    return MaskedRow(shown, positions, labels, fate)


def choose_words(words: np.ndarray, count: int, unit: str, rng: np.random.Generator,
                 ) -> tuple[np.ndarray, np.ndarray]:
    """Whole words with at most ``count`` pieces together, but at least one word.

    Words are tried in random order, each as the first of a run; a run that is too long, reaches a
    special piece or meets one chosen before is shortened word by word, and given up at none.

    Returns:
        ``positions`` int64 [n], ascending, and ``spans`` int64 [n], the run that each belongs to,
        numbered from 0 in the order of choice.
    """
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(words)) + 1, [len(words)]])
    inside = words[bounds[:-1]] >= 0
    starts, stops = bounds[:-1][inside].tolist(), bounds[1:][inside].tolist()
    run_of = np.full(len(words), -1)
    if not starts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    lengths = _run_lengths(len(starts), unit, rng)
    left, runs = count, 0
    for first in rng.permutation(len(starts)).tolist():
        last = _last_word(first, lengths[first], left, starts, stops, run_of)
        if last is None:
            continue
        run_of[starts[first]: stops[last]] = runs
        left -= stops[last] - starts[first]
        runs += 1
        if left <= 0:
            break
    if not runs and count:  # every word is longer than all there is to choose
        shortest = min(range(len(starts)), key=lambda k: stops[k] - starts[k])
        run_of[starts[shortest]: stops[shortest]] = 0
    positions = np.flatnonzero(run_of >= 0)
    return positions, run_of[positions]


def _run_lengths(words: int, unit: str, rng: np.random.Generator) -> list[int]:
    if unit == "ngram":
        return (rng.choice(len(NGRAM), size=words, p=NGRAM) + 1).tolist()
    if unit == "span":
        return np.minimum(rng.geometric(SPAN_P, size=words), SPAN_LONGEST).tolist()
    return [1] * words


def _last_word(first: int, length: int, left: int, starts: list[int], stops: list[int],
               run_of: np.ndarray) -> int | None:
    """The last word of the longest run from ``first`` on that may be taken."""
    found, begin = None, starts[first]
    for word in range(first, min(first + length, len(starts))):
        adjacent = word == first or starts[word] == stops[word - 1]
        if not adjacent or stops[word] - begin > left or run_of[starts[word]] >= 0:
            break
        found = word
    return found
