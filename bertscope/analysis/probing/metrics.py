"""Accuracy, macro-F1 and the interval that belongs to them."""

from __future__ import annotations

import numpy as np


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
