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

from bertscope.objectives.keys import CHOICE, FATE, REPLACEMENT, RUN

UNITS = ("piece", "word", "ngram", "span")
MASK, RANDOM, KEEP = 0, 1, 2
NGRAM = np.array([1, 1 / 2, 1 / 3]) / (1 + 1 / 2 + 1 / 3)
SPAN_P, SPAN_LONGEST = 0.2, 10


@dataclass(frozen=True)
class Masked:
    """B rows after masking, all int64.

    ``input_ids`` [B, T] is what the model sees. ``positions`` [B, P] are the places to predict,
    ascending, ``labels`` [B, P] what stood there, ``fate`` [B, P] what was done with each (0 [MASK],
    1 random, 2 unchanged), ``first`` [B, P] the first place of the run (a word, an n-gram, a span)
    that each was chosen with. Rows with fewer than P are filled up with place 0; label, fate and
    first are -100 there.
    """

    input_ids: np.ndarray
    positions: np.ndarray
    labels: np.ndarray
    fate: np.ndarray
    first: np.ndarray


def predictions_per_row(length: int, rate: float) -> int:
    """Pieces to predict in a row of ``length`` pieces, special ones counted: at least one, or none
    at rate 0 (a causal model reads the text as it is).

    Fixed by the length, so that full rows have one shape (the original draws as many; a coin
    per piece, as in today's collators, would leave some rows with none).
    """
    return max(1, round(length * rate)) if rate else 0


def mask_rows(input_ids: np.ndarray, words: np.ndarray, lengths: np.ndarray,
              ordinary_ids: np.ndarray, mask_id: int, objective, draw) -> Masked:
    """Choose pieces of each row and corrupt them.

    Args:
        input_ids: int64 [B, T].
        words: int64 [B, T], the number of the word that each piece belongs to, ascending; below 0
            for pieces that are never chosen (special ones, padding).
        lengths: int64 [B], pieces that are not padding.
        ordinary_ids: int64, the pieces that a random replacement is drawn from.
        objective: ``mask_rate``, ``mask_share``, ``random_share``, ``mask_unit``.
        draw: ``draw(stream)`` gives a number in [0, 1) for each place, [B, T].
    """
    wanted = np.array([predictions_per_row(int(n), objective.mask_rate) for n in lengths])
    counts = np.minimum(wanted, (words >= 0).sum(1))
    if objective.mask_unit == "piece":
        chosen = _pieces(words, counts, draw(CHOICE))
        first = np.broadcast_to(np.arange(words.shape[1]), words.shape)
    else:
        chosen, first = _words(words, counts, objective.mask_unit, draw)
    # The chosen places, ascending, to the left; the rest of a row is filler.
    most = max(int(chosen.sum(1).max(initial=0)), 1)
    positions = np.argsort(~chosen, axis=1, kind="stable")[:, :most]
    real = np.take_along_axis(chosen, positions, 1)
    positions = np.where(real, positions, 0)
    labels = np.where(real, np.take_along_axis(input_ids, positions, 1), -100)

    first = np.take_along_axis(first, positions, 1)
    decided_at = first if objective.mask_unit == "span" else positions
    number = np.take_along_axis(draw(FATE), decided_at, 1)
    fate = np.where(number < objective.mask_share, MASK, np.where(
        number < objective.mask_share + objective.random_share, RANDOM, KEEP))
    other = np.take_along_axis(draw(REPLACEMENT), positions, 1)
    random = ordinary_ids[(other * len(ordinary_ids)).astype(np.int64)]
    rows = np.broadcast_to(np.arange(len(input_ids))[:, None], positions.shape)
    shown = input_ids.copy()
    for kind, value in ((MASK, np.full_like(random, mask_id)), (RANDOM, random)):
        here = real & (fate == kind)
        shown[rows[here], positions[here]] = value[here]
    return Masked(shown, positions, labels, np.where(real, fate, -100), np.where(real, first, -100))


def _pieces(words: np.ndarray, counts: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """The ``counts`` smallest draws of each row among its candidates, bool [B, T]: any subset of
    that size is as likely as any other."""
    draw = np.where(words >= 0, draw, 2.0)
    rank = np.argsort(np.argsort(draw, axis=1), axis=1)
    return rank < counts[:, None]


def _words(words, counts, unit, draw) -> tuple[np.ndarray, np.ndarray]:
    """Runs of whole words: which places are chosen, bool [B, T], and the first place of each place's
    run, int64 [B, T]."""
    order, lengths = draw(CHOICE), run_lengths(draw(RUN), unit)
    chosen = np.zeros(words.shape, dtype=bool)
    first = np.tile(np.arange(words.shape[1]), (len(words), 1))
    for row, count in enumerate(counts.tolist()):
        for start, stop in choose_runs(words[row], count, order[row], lengths[row]):
            chosen[row, start:stop] = True
            first[row, start:stop] = start
    return chosen, first


def run_lengths(draw: np.ndarray, unit: str) -> np.ndarray:
    """How many words a run has that begins at each place, from numbers in [0, 1)."""
    if unit == "ngram":
        return 1 + np.searchsorted(np.cumsum(NGRAM)[:-1], draw, "right")
    if unit == "span":  # the inverse of the geometric distribution function
        return np.clip(np.ceil(np.log1p(-draw) / np.log1p(-SPAN_P)), 1, SPAN_LONGEST).astype(int)
    return np.ones(draw.shape, dtype=int)


def choose_runs(words: np.ndarray, count: int, order: np.ndarray, lengths: np.ndarray,
                ) -> list[tuple[int, int]]:
    """Runs of whole words of one row with at most ``count`` pieces together, but at least one word.

    Words are tried in the order of their first piece's draw, each as the first of a run; a run
    that is too long, reaches a special piece or meets one chosen before is shortened word by word,
    and given up at none.
    """
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(words)) + 1, [len(words)]])
    inside = words[bounds[:-1]] >= 0
    starts, stops = bounds[:-1][inside].tolist(), bounds[1:][inside].tolist()
    if not starts or not count:
        return []
    taken, runs, left = set(), [], count
    for first in np.argsort(order[starts]).tolist():
        last = _last_word(first, int(lengths[starts[first]]), left, starts, stops, taken)
        if last is None:
            continue
        taken.update(range(first, last + 1))
        runs.append((starts[first], stops[last]))
        left -= stops[last] - starts[first]
        if left <= 0:
            break
    if not runs:  # every word is longer than all there is to choose
        shortest = min(range(len(starts)), key=lambda k: stops[k] - starts[k])
        runs.append((starts[shortest], stops[shortest]))
    return runs


def _last_word(first: int, length: int, left: int, starts: list[int], stops: list[int],
               taken: set[int]) -> int | None:
    """The last word of the longest run from ``first`` on that may be taken."""
    found = None
    for word in range(first, min(first + length, len(starts))):
        adjacent = word == first or starts[word] == stops[word - 1]
        if not adjacent or stops[word] - starts[first] > left or word in taken:
            break
        found = word
    return found
