"""A probe of all layers at once: their weighted mean, the weights learnt (Tenney et al. 2019).

h = gamma * sum over layers of softmax(s)_l h_l, and logistic regression on h. The *centre of gravity*
of the weights, sum of l softmax(s)_l, is between 0 and L. Layers are standardised first: where their
norms differ, the weights would say more about the norms (Fayyaz et al. 2021). For the same reason gamma
is not learnt but always such that h has variance 1: a mean of several layers has less than one of them,
and the penalty would prefer single layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bertscope.analysis.probing.classifier import PATIENCE, STRENGTHS, Scaler
from bertscope.analysis.probing.lbfgs import minimise
from bertscope.analysis.probing.softmax import CONFIDENT, ITERATIONS, ROWS, TOLERANCE


@dataclass(frozen=True)
class FittedMix:
    """The mix that was best on the validation part."""

    scalers: tuple[Scaler, ...]
    share: np.ndarray        # float32 [layers], softmax(s)
    gamma: float
    weights: np.ndarray      # float32 [classes, H+1], the intercept last
    classes: np.ndarray
    C: float
    valid_accuracy: float
    iterations: int
    converged: bool

    def predict(self, layers: Sequence[np.ndarray]) -> np.ndarray:
        """Label numbers ``[words]`` of raw features ``[words, H]`` of each layer."""
        mixed = self.gamma * sum(
            share * scaler.transform(x)
            for share, scaler, x in zip(self.share, self.scalers, layers, strict=True))
        return self.classes[(mixed @ self.weights[:, :-1].T + self.weights[:, -1]).argmax(axis=1)]

    @property
    def centre(self) -> float:
        """Centre of gravity of the layers' shares, 0 to L."""
        return float(self.share @ np.arange(len(self.share)))

    @property
    def from_uniform(self) -> float:
        """KL divergence of the shares from equal ones, in bits; 0 = no layer is preferred."""
        return float(sum(s * np.log2(s * len(self.share)) for s in self.share if s > 0))


def fit(train: Sequence[np.ndarray], train_labels: np.ndarray, valid: Sequence[np.ndarray],
        valid_labels: np.ndarray, strengths: Sequence[float] = STRENGTHS,
        check: Callable[[], None] | None = None) -> FittedMix:
    """Learn shares and regression together, once for each strength; the best on validation stays.

    Args:
        train, valid: for each layer features ``[words, H]``.
        train_labels, valid_labels: int ``[words]``, as for ``classifier.fit``.
    """
    classes, y = np.unique(train_labels, return_inverse=True)
    scalers = tuple(Scaler.fit(x) for x in train)
    problem = _Mix(_stack(train, scalers), torch.from_numpy(y), len(classes))
    held_out = _stack(valid, scalers)
    at, best, worse = problem.start(), None, 0
    for strength in sorted(strengths):
        at[:, :len(train)] = 0  # from equal shares each time: a share near 0 hardly moves again
        found = problem.fit(at, strength, check)
        at = found.at.clone()
        share, weights = problem.parts(found.at[0])
        gamma = problem.gamma(share)
        mixed = torch.einsum("l,lnh->nh", gamma * share, held_out.float())
        predicted = (mixed @ weights[:, :-1].T + weights[:, -1]).argmax(1).cpu().numpy()
        score = float(np.mean(classes[predicted] == valid_labels))
        worse += 1
        if best is None or score > best.valid_accuracy:
            best, worse = FittedMix(scalers, share.cpu().numpy(), float(gamma),
                                    weights.cpu().numpy(), classes, strength, score,
                                    int(found.iterations[0]), bool(found.converged[0])), 0
        if worse == PATIENCE or not found.converged[0]:
            break
    return best


class _Mix:
    """The objective over [s, W] as one vector; ``x`` is half precision [layers, n, H]."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor, classes: int):
        self.x, self.y, self.classes = x, y.to(x.device), classes
        equal = x[:, :ROWS].float().mean(0)
        self._values, self._vectors = torch.linalg.eigh(equal.T @ equal / len(equal))
        share = torch.bincount(self.y, minlength=classes) / len(y)
        self._curvature = CONFIDENT * (share * (1 - share)).clamp(min=1e-3)[:, None]
        flat = x[:, :ROWS].float().flatten(1)
        self._alike = flat @ flat.T / flat.shape[1]

    def gamma(self, share: torch.Tensor) -> torch.Tensor:
        """What makes the variance of the mix 1."""
        return (share @ self._alike @ share).clamp(min=1e-6) ** -0.5

    def start(self) -> torch.Tensor:
        return torch.zeros(1, len(self.x) + self.classes * (self.x.shape[2] + 1),
                           device=self.x.device)

    def parts(self, vector: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """softmax(s) [layers] and W [K, H+1]."""
        s, weights = vector[:len(self.x)], vector[len(self.x):]
        return s.softmax(0), weights.reshape(self.classes, -1)

    def fit(self, start: torch.Tensor, strength: float, check):
        penalty = (2 if self.classes == 2 else 1) / (strength * len(self.y))
        scale = 1 / (self._values.clamp(min=0) * self._curvature + penalty)

        def precondition(gradient: torch.Tensor) -> torch.Tensor:
            s, weights = gradient[0, :len(self.x)], self.parts(gradient[0])[1]
            inner = (weights[:, :-1] @ self._vectors * scale) @ self._vectors.T
            weights = torch.cat([inner, weights[:, -1:] / self._curvature], dim=1)
            return torch.cat([s, weights.flatten()])[None]

        return minimise(lambda v: self._loss(v[0], penalty), start, TOLERANCE, ITERATIONS,
                        precondition, check)

    def _loss(self, vector: torch.Tensor, penalty: float):
        share, weights = self.parts(vector)
        inner, gamma = weights[:, :-1], self.gamma(share)
        total = vector.new_zeros((), dtype=torch.float64)
        by_share, gradient = torch.zeros_like(share), torch.zeros_like(weights)
        for start in range(0, len(self.y), ROWS):
            x, y = self.x[:, start:start + ROWS].float(), self.y[None, start:start + ROWS]
            mixed = (gamma * share @ x.flatten(1)).reshape(x.shape[1:])
            scores = torch.addmm(weights[:, -1:], inner, mixed.T).log_softmax(0)
            total -= scores.gather(0, y).sum(dtype=torch.float64)
            error = scores.exp_()
            error.scatter_add_(0, y, error.new_full((1, 1), -1.0).expand_as(y))
            gradient[:, :-1] += error @ mixed
            gradient[:, -1] += error.sum(1)
            by_share += x.flatten(1) @ (error.T @ inner).flatten()
        count = len(self.y)
        gradient /= count
        gradient[:, :-1] += penalty * inner
        # Through gamma, which depends on the shares, and through the softmax.
        by_share = gamma * (by_share - (share @ by_share) * gamma ** 2 * (self._alike @ share))
        by_share = share * (by_share - share @ by_share) / count
        value = total / count + (penalty * inner.square().sum() / 2).double()
        return value[None], torch.cat([by_share, gradient.flatten()])[None]


def _stack(layers: Sequence[np.ndarray], scalers: Sequence[Scaler]) -> torch.Tensor:
    """Half precision [layers, n, H], standardised."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.stack([torch.from_numpy(s.transform(x)).half() for s, x in
                        zip(scalers, layers, strict=True)]).to(device)
