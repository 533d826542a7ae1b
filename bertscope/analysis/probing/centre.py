"""Where in the model a task is solved, and when in training it was learnt: one number, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertscope.analysis.probing.metrics import interval
from bertscope.analysis.probing.uncertainty import ALPHA, holm, p_value

#: The onset is where this share of the whole gain is reached.
REACHED = 0.5
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; all None where the gain that it is of is not significant."""

    value: float | None
    low: float | None
    high: float | None
    gain: float
    p: float          # that there is no gain

    @classmethod
    def of(cls, value: float, draws: np.ndarray, gain: float, p: float) -> Estimate:
        draws = draws[np.isfinite(draws)]
        if p >= ALPHA or gain <= 0 or not len(draws) or not np.isfinite(value):
            return cls(None, None, None, gain, p)
        low, high = interval(draws)
        return cls(float(value), float(low), float(high), gain, p)

    @staticmethod
    def together(found: Sequence[Estimate]) -> list[Estimate]:
        """Several answers to one question: p corrected for their number (Holm), and hidden what is
        not significant then."""
        p = holm([own.p for own in found])
        return [replace(own, p=float(at)) if at < ALPHA else Estimate(None, None, None, own.gain, float(at))
                for own, at in zip(found, p, strict=True)]


def expected_layer(scores: Sequence[float], draws: np.ndarray) -> Estimate:
    """The layer at which a task is solved on average, from *cumulative* scores.

    With Delta_l = score(layers 0 to l) - score(layers 0 to l-1), it is
    sum of l Delta_l / sum of Delta_l over l = 1 ... L (Tenney et al. 2019b, section 3.2). Where the
    whole gain is not significantly above 0 it means nothing, and there is none.

    Args:
        scores: float ``[L+1]``, accuracy of the mix of layers 0 to l.
        draws: float ``[L+1, resamples]``, see ``uncertainty.resample``.
    """
    scores = np.asarray(scores, float)
    gain, gains = float(scores[-1] - scores[0]), draws[-1] - draws[0]
    return Estimate.of(_expected(scores[:, None])[0], _expected(draws), gain, p_value(gain, gains))


def _expected(scores: np.ndarray) -> np.ndarray:
    """``[L+1, n]`` -> ``[n]``; nan without a gain."""
    deltas = np.diff(scores, axis=0)
    whole = deltas.sum(axis=0)
    layers = np.arange(1, len(scores))
    return np.divide(layers @ deltas, whole, out=np.full(len(whole), np.nan), where=whole > 0)


def onset(steps: Sequence[int], scores: Sequence[float], draws: np.ndarray) -> Estimate:
    """The step at which a task rises: where half of the gain from the first to the last checkpoint
    is reached for the first time, linear in log(step + 1) between checkpoints.

    The straight line is a guess: what is known is that the rise lies between two checkpoints. So the
    interval reaches from the one before to the one after it, over all draws.

    Args:
        steps: ascending.
        scores: float ``[steps]``.
        draws: float ``[steps, resamples]``, see ``uncertainty.resample``.
    """
    if len(steps) < 2:
        return Estimate(None, None, None, 0.0, 1.0)
    scores = np.asarray(scores, float)
    gain, gains = float(scores[-1] - scores[0]), draws[-1] - draws[0]
    before, found, after = _crossing(np.asarray(steps, float), np.column_stack([scores, draws]))
    said = Estimate.of(found[0], found[1:], gain, p_value(gain, gains))
    if said.value is None:
        return said
    known = np.isfinite(found[1:])
    tail = (1 - CONFIDENCE) / 2
    return replace(said, low=float(np.quantile(before[1:][known], tail, method="lower")),
                   high=float(np.quantile(after[1:][known], 1 - tail, method="higher")))


def _crossing(steps: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``[steps, n]`` -> the step ``[n]`` at which each column first reaches its goal, nan where it
    does not gain, between the checkpoint before and the one after."""
    goal = scores[0] + REACHED * (scores[-1] - scores[0])
    there = scores >= goal
    there[0] = False
    place = there.argmax(axis=0)
    column = np.arange(scores.shape[1])
    before, after = scores[place - 1, column], scores[place, column]
    rise = after - before
    share = np.divide(goal - before, rise, out=np.ones_like(rise), where=rise > 0).clip(0, 1)
    at = np.log1p(steps)
    found = np.expm1(at[place - 1] + share * (at[place] - at[place - 1]))
    return steps[place - 1], np.where(scores[-1] > scores[0], found, np.nan), steps[place]
