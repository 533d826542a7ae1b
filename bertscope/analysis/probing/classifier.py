"""A linear probe: multinomial logistic regression on standardised features."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

#: Inverse strengths of the L2 penalty that are tried: the loss is summed over words, as in
#: scikit-learn, so that C = 1 means the same for any number of words.
STRENGTHS = (1e-3, 0.01, 0.1, 1.0, 10.0)
#: The search ends after so many strengths in a row that were no better.
PATIENCE = 2
#: L-BFGS ends when no component of the mean gradient exceeds this, or after so many iterations.
TOLERANCE = 1e-4
ITERATIONS = 500


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
        return ((features - self.mean) / self.scale).astype(np.float32)


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
    """Fit one classifier per strength, keep the one with the best validation accuracy.

    Minimises C * sum of cross-entropies + |W|^2 / 2 by L-BFGS (scikit-learn), each fit starting
    from the one before, the strongest penalty first. Of equally good ones the first is kept; after
    two in a row that were no better, or one that did not converge, the search ends. There is no
    test part here on purpose. The problem is convex and starts from zero, so there is no seed.

    Args:
        train, valid: features ``[words, H]``.
        train_labels, valid_labels: int ``[words]``; two classes or more in training. Validation
            labels that training lacks count as wrong.
        check: called before each fit; what it raises ends the work.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    scaler = Scaler.fit(train)
    train, valid = scaler.transform(train), scaler.transform(valid)
    model = LogisticRegression(max_iter=ITERATIONS, tol=TOLERANCE, warm_start=True)
    best, worse = None, 0
    for strength in sorted(strengths):
        if check:
            check()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # reported in the result instead
            model.set_params(C=strength).fit(train, train_labels)
        iterations = int(model.n_iter_.max())
        score = float(np.mean(model.predict(valid) == valid_labels))
        worse += 1
        if best is None or score > best.valid_accuracy:
            weights, intercept = _rows(model.coef_, model.intercept_)
            best = Fitted(scaler, weights, intercept, model.classes_.copy(), strength, score,
                          iterations, iterations < ITERATIONS)
            worse = 0
        if worse == PATIENCE or iterations >= ITERATIONS:
            break  # a weaker penalty needs more iterations still
    return best


def _rows(weights: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One row per class; of two classes scikit-learn keeps the second one's row only."""
    if len(weights) > 1:
        return weights.copy(), intercept.copy()
    return np.concatenate([-weights, weights]) / 2, np.concatenate([-intercept, intercept]) / 2
