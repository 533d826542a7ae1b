"""L-BFGS for several independent problems at once.

The problems of one batch (the layers of a model, say) share every call of the objective, which is
what saves time where each is small; their steps, histories and ends are their own. Nocedal and
Wright 2006, algorithms 7.4 (two loops) and 3.1 (backtracking).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

#: Pairs of steps and changes of the gradient that are remembered.
MEMORY = 10
#: A step must give this share of the decrease that the slope promises (Armijo), up to rounding.
ENOUGH = 1e-4
ROUNDING = 1e-7
#: Halvings of a step; after so many a problem rests where it is.
HALVINGS = 20

Objective = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
Precondition = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Minimum:
    """Of P problems: where each ended, after how many steps, and whether its gradient vanished."""

    at: torch.Tensor             # [P, ...]
    iterations: torch.Tensor     # int64 [P]
    converged: torch.Tensor      # bool [P]


def minimise(objective: Objective, start: torch.Tensor, tolerance: float, iterations: int,
             precondition: Precondition | None = None,
             check: Callable[[], None] | None = None) -> Minimum:
    """Minimise P smooth functions from ``start`` [P, ...].

    Args:
        objective: from points [P, ...] to values float64 [P] and gradients [P, ...].
        tolerance: a problem ends when no component of its gradient is larger.
        precondition: multiplies gradients [P, ...] by an approximate inverse Hessian, symmetric and
            positive definite; the first step is then of length one.
        check: called before each step; what it raises ends the work.
    """
    apply = precondition or (lambda gradient: gradient)
    point = start
    value, gradient = objective(point)
    pairs: list[_Pair] = []
    taken = torch.zeros(len(start), dtype=torch.int64, device=start.device)
    stuck = torch.zeros(len(start), dtype=torch.bool, device=start.device)
    for _ in range(iterations):
        running = ~stuck & (_largest(gradient) > tolerance)
        if not running.any():
            break
        if check:
            check()
        direction = -_two_loops(gradient, pairs, apply)
        direction = torch.where(_wide(running, direction), direction, 0.0)
        first = 1.0 if pairs or precondition else (1 / _norm(gradient)).clamp(max=1.0)
        moved, new_value, new_gradient, failed = _search(
            objective, point, value, gradient, direction, first)
        stuck |= failed & running
        taken += running & ~failed
        pairs.append(_Pair.of(moved - point, new_gradient - gradient))
        del pairs[:-MEMORY]
        point, value, gradient = moved, new_value, new_gradient
    return Minimum(point, taken, _largest(gradient) <= tolerance)


@dataclass(frozen=True)
class _Pair:
    """A step and the change of the gradient that it made. Without curvature (a problem that rests)
    it counts for nothing: its weight is 0."""

    step: torch.Tensor
    change: torch.Tensor
    product: torch.Tensor    # [P]
    weight: torch.Tensor     # [P, 1, ...], 1 / product

    @classmethod
    def of(cls, step: torch.Tensor, change: torch.Tensor) -> _Pair:
        product = _dot(step, change)
        weight = torch.where(product > 0, 1 / product.clamp(min=1e-30), 0.0)
        return cls(step, change, product, _wide(weight, step))


def _two_loops(gradient: torch.Tensor, pairs: list[_Pair], apply: Precondition) -> torch.Tensor:
    """The approximate inverse Hessian times the gradient."""
    q, factors = gradient.clone(), []
    for pair in reversed(pairs):
        factors.append(pair.weight * _wide(_dot(pair.step, q), q))
        q -= factors[-1] * pair.change
    q = apply(q)
    if pairs:
        last = pairs[-1]
        curved = _dot(last.change, apply(last.change))
        scale = torch.where((last.product > 0) & (curved > 0),
                            last.product / curved.clamp(min=1e-30), 1.0)
        q *= _wide(scale, q)
    for pair, factor in zip(pairs, reversed(factors), strict=True):
        q += (factor - pair.weight * _wide(_dot(pair.change, q), q)) * pair.step
    return q


def _search(objective, point, value, gradient, direction, first):
    """Halve each problem's step until it decreases its function enough."""
    slope = _dot(direction, gradient).double()
    length = torch.ones_like(slope) * first
    allowed = ROUNDING * value.abs()
    for _ in range(HALVINGS):
        moved = point + _wide(length.to(point.dtype), direction) * direction
        new_value, new_gradient = objective(moved)
        short = new_value <= value + ENOUGH * length * slope + allowed
        if short.all():
            break
        length = torch.where(short, length, length / 2)
    failed = ~short
    keep = _wide(failed, point)
    return (torch.where(keep, point, moved), torch.where(failed, value, new_value),
            torch.where(keep, gradient, new_gradient), failed)


def _dot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a * b).flatten(1).sum(1)


def _norm(a: torch.Tensor) -> torch.Tensor:
    return a.flatten(1).norm(dim=1).clamp(min=1e-30)


def _largest(a: torch.Tensor) -> torch.Tensor:
    return a.flatten(1).abs().amax(1)


def _wide(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """[P] -> [P, 1, ...]."""
    return values.reshape(-1, *[1] * (like.ndim - 1))
