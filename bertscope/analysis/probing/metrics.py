"""Accuracy, macro-F1 and the interval that belongs to them."""

from __future__ import annotations

import numpy as np

RESAMPLES = 1000


def accuracy(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Share of equal entries of two arrays ``[words]``."""
    return float(np.mean(gold == predicted))


def macro_f1(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Mean over labels of F1 = 2 TP / (2 TP + FP + FN), each label counting the same.

    The labels are those that occur in the gold or among the predictions, as in scikit-learn.

    Args:
        gold, predicted: int arrays ``[words]`` of non-negative label numbers.
    """
    size = int(max(gold.max(), predicted.max())) + 1
    right = np.bincount(gold[gold == predicted], minlength=size)
    total = np.bincount(gold, minlength=size) + np.bincount(predicted, minlength=size)
    present = total > 0
    return float(np.mean(2 * right[present] / total[present]))


def bootstrap(correct: np.ndarray, sentence: np.ndarray, seed: int = 0,
              resamples: int = RESAMPLES) -> np.ndarray:
    """Accuracies of ``resamples`` test sets made by drawing *sentences* with replacement.

    Words of one sentence are not independent, so sentences are the unit (Efron and Tibshirani 1993,
    chapter 8). The same seed and sentences give the same draws: two arrays of accuracies can be
    compared pairwise.

    Args:
        correct: bool ``[..., words]``; leading axes are, for example, layers.
        sentence: int ``[words]``, which sentence each word is of.
    Returns: float64 ``[..., resamples]``.
    """
    _, unit = np.unique(sentence, return_inverse=True)
    count = int(unit.max()) + 1
    words = np.bincount(unit, minlength=count)
    flat = np.reshape(correct, (-1, len(unit)))
    right = np.stack([np.bincount(unit, weights=row, minlength=count) for row in flat])
    draws = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), resamples)
    accuracies = (right @ draws.T) / (draws @ words)
    return accuracies.reshape(*np.shape(correct)[:-1], resamples)


def interval(accuracies: np.ndarray, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Percentile interval of the last axis: ``(low, high)``."""
    tail = (1 - confidence) / 2
    return np.quantile(accuracies, tail, axis=-1), np.quantile(accuracies, 1 - tail, axis=-1)


def scores(gold: np.ndarray, predicted: np.ndarray, seen: np.ndarray) -> dict[str, float]:
    """Accuracy, macro-F1, and accuracy on items of word types that training lacks.

    Args:
        gold, predicted: int ``[items]``.
        seen: bool ``[items]``, whether the item's type is among the training items.
    """
    new = accuracy(gold[~seen], predicted[~seen]) if (~seen).any() else float("nan")
    return {"accuracy": accuracy(gold, predicted), "macro_f1": macro_f1(gold, predicted),
            "accuracy_new_types": new, "new_types": int((~seen).sum())}
