"""A linear probe: multinomial logistic regression on standardised features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bertscope.analysis.probing.softmax import Softmax, log_probabilities

#: Inverse strengths of the L2 penalty that are tried: the loss is summed over words, as in
#: scikit-learn, so that C = 1 means the same for any number of words.
STRENGTHS = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0)
#: The search ends after so many strengths in a row that were no better.
PATIENCE = 2
#: The strength is chosen by fits to so many words at most; the chosen one is fitted to all.
PATH_ITEMS = 20_000


@dataclass(frozen=True)
class Scaler:
    """Shift and scale to mean 0 and variance 1, learnt from training features alone."""

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, features: np.ndarray) -> Scaler:
        """From features ``[words, H]``. A feature that never varies is only shifted."""
        mean = features.mean(axis=0, dtype=np.float64)
        scale = features.std(axis=0, dtype=np.float64)
        varies = scale > 1e-7 * np.maximum(np.abs(mean), 1.0)
        return cls(mean, np.where(varies, scale, 1.0))

    def transform(self, features: np.ndarray) -> np.ndarray:
        """float32 ``[words, H]``."""
        moved = np.subtract(features, self.mean.astype(np.float32), dtype=np.float32)
        moved /= self.scale.astype(np.float32)
        return moved


@dataclass(frozen=True)
class Fitted:
    """The classifier that was best on the validation part."""

    scaler: Scaler
    weights: np.ndarray      # float32 [classes, H]
    intercept: np.ndarray    # float32 [classes]
    classes: np.ndarray      # int [classes], the label number of each row
    C: float
    valid_accuracy: float
    iterations: int
    converged: bool

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Label numbers ``[words]`` of raw features ``[words, H]``."""
        scores = self.scaler.transform(features) @ self.weights.T + self.intercept
        return self.classes[scores.argmax(axis=1)]


def fit(train: np.ndarray, train_labels: np.ndarray, valid: np.ndarray, valid_labels: np.ndarray,
        strengths: Sequence[float] = STRENGTHS, check: Callable[[], None] | None = None) -> Fitted:
    """:func:`fit_many` for one layer."""
    return fit_many([train], train_labels, [valid], valid_labels, strengths, check)[0]


def fit_many(train: Sequence[np.ndarray], train_labels: np.ndarray, valid: Sequence[np.ndarray],
             valid_labels: np.ndarray, strengths: Sequence[float] = STRENGTHS,
             check: Callable[[], None] | None = None) -> list[Fitted]:
    """For each layer fit one classifier per strength, keep the one with the best validation accuracy.

    Minimises C * sum of cross-entropies + |W|^2 / 2 by L-BFGS, each fit starting from the one
    before, the strongest penalty first. Of equally good ones the first is kept; after two in a row
    that were no better, or one that did not converge, the search ends. There is no test part here on
    purpose. The problem is convex and starts from zero, so there is no seed.

    Args:
        train, valid: features ``[words, H]`` of each layer, of the same words.
        train_labels, valid_labels: int ``[words]``; two classes or more in training. Validation
            labels that training lacks count as wrong.
        check: called before each step; what it raises ends the work.
    """
    scalers = [Scaler.fit(x) for x in train]
    classes, y = np.unique(train_labels, return_inverse=True)
    x, y = _on_device(train, scalers), _tensor(y)
    held_out, right = _on_device(valid, scalers), _tensor(np.searchsorted(classes, valid_labels))
    right[_tensor(~np.isin(valid_labels, classes))] = -1
    sample = _sample(len(y), PATH_ITEMS if len(strengths) > 1 else len(y))
    problem = Softmax(x[:, sample], y[sample], len(classes))
    best = _path(problem, held_out, right, sorted(strengths), check)
    if len(sample) < len(y):
        best = _refit(Softmax(x, y, len(classes)), best, held_out, right, check)
    weights = best.at.cpu().numpy()
    return [Fitted(scaler, w[:, :-1].copy(), w[:, -1].copy(), classes, float(c), float(score), int(n),
                   bool(ended))
            for scaler, w, c, score, n, ended in zip(
                scalers, weights, best.strength, best.score, best.iterations, best.converged,
                strict=True)]


@dataclass
class _Best:
    """Of P layers, the strength that was best so far and its classifier."""

    at: torch.Tensor          # [P, K, H+1]
    score: torch.Tensor       # [P]
    strength: torch.Tensor    # [P]
    iterations: torch.Tensor
    converged: torch.Tensor


def _path(problem: Softmax, held_out, right, strengths: Sequence[float], check) -> _Best:
    at, best = problem.zeros(), None
    worse = torch.zeros(len(at), dtype=torch.int64, device=at.device)
    for strength in strengths:
        found = problem.fit(at, strength, check)
        at, score = found.at, _accuracy(found.at, held_out, right)
        chosen = torch.full_like(score, strength)
        new = _Best(at, score, chosen, found.iterations, found.converged)
        if best is None:
            best = new
        else:
            better = (score > best.score) & (worse < PATIENCE)
            worse = torch.where(better, 0, worse + 1)
            best = _Best(*(torch.where(better.reshape(-1, *[1] * (a.ndim - 1)), a, b)
                           for a, b in zip(vars(new).values(), vars(best).values())))
        worse = torch.where(found.converged, worse, PATIENCE)  # a weaker penalty needs more steps
        if (worse >= PATIENCE).all():
            break
    return best


def _refit(problem: Softmax, best: _Best, held_out, right, check) -> _Best:
    found = problem.fit(best.at, best.strength, check)
    return _Best(found.at, _accuracy(found.at, held_out, right), best.strength,
                 found.iterations, found.converged)


def _accuracy(at: torch.Tensor, held_out: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return (log_probabilities(held_out, at).argmax(1) == right).double().mean(1)


def _sample(count: int, most: int) -> torch.Tensor | slice:
    """``most`` places in random order, the same for the same count; all where they are no more."""
    if count <= most:
        return torch.arange(count)
    return torch.from_numpy(np.random.default_rng(0).permutation(count)[:most])


def _on_device(features: Sequence[np.ndarray], scalers: Sequence[Scaler]) -> torch.Tensor:
    """float32 [P, words, H], standardised."""
    made = [scaler.transform(x) for scaler, x in zip(scalers, features, strict=True)]
    return _tensor(made[0][None] if len(made) == 1 else np.stack(made))


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(
        "cuda" if torch.cuda.is_available() else "cpu")
