"""Multinomial logistic regression as a problem for L-BFGS, for one layer or several together."""

from __future__ import annotations

from collections.abc import Callable

import torch

from bertscope.analysis.probing.lbfgs import Minimum, minimise

#: L-BFGS ends when no component of the mean gradient exceeds this, or after so many iterations.
TOLERANCE = 3e-4
ITERATIONS = 500
#: Rows whose scores are held at once.
ROWS = 4096
#: Rows that the covariance of the features is estimated from: it only guides the steps.
GUIDE_ROWS = 20_000
#: p (1 - p) of a fitted probe, as a share of that of the labels' frequencies; it only guides too.
CONFIDENT = 0.1


class Softmax:
    """P regressions of the same labels on P sets of standardised features, or on one set.

    Minimises sum of cross-entropies * C + |W|^2 / 2, the intercept without penalty, as scikit-learn
    does; divided by C n, so that gradients are means. Of two classes scikit-learn keeps one row of
    weights for both, which makes its penalty twice that of two rows; so it is here.

    Steps are preconditioned by the Hessian's upper bound (Böhning 1992) in its eigenvectors: about a
    third of the evaluations.

    Args:
        features: float32 [P or 1, n, H], mean 0 and variance 1.
        labels: int64 [n], 0 to K-1.
        classes: K.
    """

    def __init__(self, features: torch.Tensor, labels: torch.Tensor, classes: int):
        self.x, self.y, self.classes = features, labels, classes
        some = features[:, :GUIDE_ROWS]
        covariance = some.mT @ some / some.shape[1]
        self._values, self._vectors = torch.linalg.eigh(covariance)
        share = torch.bincount(labels, minlength=classes).clamp(min=0.5) / len(labels)
        self._curvature = CONFIDENT * share * (1 - share).clamp(min=1e-3)

    def zeros(self) -> torch.Tensor:
        """float32 [P, K, H+1]: weights, and the intercept as the last column."""
        problems, _, size = self.x.shape
        return self.x.new_zeros(problems, self.classes, size + 1)

    def fit(self, start: torch.Tensor, strength: float | torch.Tensor,
            check: Callable[[], None] | None = None) -> Minimum:
        """From ``start`` [P, K, H+1] to the minimum for one C, or for one of each problem [P]."""
        strength = torch.as_tensor(strength, dtype=torch.float32, device=self.x.device)
        penalty = ((2 if self.classes == 2 else 1) / (strength * len(self.y))).expand(len(start))
        wide = penalty[:, None, None]
        curvature = self._curvature[:, None]
        scale = 1 / (self._values.clamp(min=0)[:, None] * curvature + wide)

        def precondition(gradient: torch.Tensor) -> torch.Tensor:
            weights = (gradient[..., :-1] @ self._vectors * scale) @ self._vectors.mT
            return torch.cat([weights, gradient[..., -1:] / curvature], dim=2)

        def objective(weights: torch.Tensor):
            value, gradient = self._loss(weights)
            gradient[..., :-1] += wide * weights[..., :-1]
            return value + (penalty * weights[..., :-1].square().sum((1, 2)) / 2).double(), gradient

        return minimise(objective, start, TOLERANCE, ITERATIONS, precondition, check)

    def _loss(self, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean cross-entropy float64 [P] in nats, and its gradient [P, K, H+1]."""
        total = weights.new_zeros(len(weights), dtype=torch.float64)
        gradient = torch.zeros_like(weights)
        for start in range(0, len(self.y), ROWS):
            x = self.x[:, start:start + ROWS].expand(len(weights), -1, -1)
            y = self.y[start:start + ROWS]
            scores = log_probabilities(x, weights)
            chosen = y.expand(len(x), 1, -1)
            total -= scores.gather(1, chosen).sum((1, 2), dtype=torch.float64)
            error = scores.exp_()
            error.scatter_add_(1, chosen, error.new_full((1, 1, 1), -1.0).expand_as(chosen))
            gradient[..., :-1] += error @ x
            gradient[..., -1] += error.sum(2)
        return total / len(self.y), gradient / len(self.y)


def log_probabilities(features: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Natural logarithms [P, K, n] for standardised features [P, n, H] and weights [P, K, H+1].

    Classes come first since matrix products with few columns are slow.
    """
    return torch.baddbmm(weights[..., -1:], weights[..., :-1], features.mT).log_softmax(1)
