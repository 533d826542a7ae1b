"""How a fine-tuned checkpoint does on a part of its data: metrics, errors, confusion, calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bertscope.finetuning.data import Dataset
from bertscope.finetuning.metrics import answer_f1, exact_match
from bertscope.finetuning.predict import Finetuned, answers


@dataclass(frozen=True)
class Outcome:
    """``table`` has a row for each example (for tokens: each word), in their order.

    Its columns are ``where``, what was read (``text``, ``pair`` | ``word``, ``sentence`` |
    ``question``), ``gold``, ``predicted``, ``right``, ``probability`` (of the prediction); for
    labels ``gold_probability``, for questions ``exact_match`` and ``f1``, for numbers ``error``
    instead of the last four.
    """

    metrics: dict[str, float]
    table: pd.DataFrame
    labels: tuple[str, ...]

    @property
    def errors(self) -> pd.DataFrame:
        """What went wrong, the surest mistakes (the largest errors) first."""
        if "error" in self.table:
            return self.table.sort_values("error", key=abs, ascending=False, kind="stable")
        wrong = self.table[~self.table["right"]]
        return wrong.sort_values("probability", ascending=False, kind="stable")


def outcome(model: Finetuned, data: Dataset, part: str = "valid",
            progress: Callable[[float], None] | None = None) -> Outcome:
    """Let the checkpoint answer all examples of a part of the data (``train``, ``valid``, ``test``)."""
    examples = getattr(data, part)
    found = answers(model, examples, progress)
    make = {"tokens": _words, "question": _questions}.get(model.spec.task, _labels)
    return Outcome(model.task.metrics(examples, found), make(model, examples, found),
                   model.spec.labels)


def _labels(model: Finetuned, examples: Sequence, found: np.ndarray) -> pd.DataFrame:
    table = pd.DataFrame({"where": [e.where for e in examples], "text": [e.text for e in examples]})
    if model.spec.task == "pair":
        table["pair"] = [e.pair for e in examples]
    table["gold"] = [e.label for e in examples]
    if model.spec.numbers:
        return table.assign(predicted=found, error=found - table["gold"].astype(float))
    labels, best = np.array(model.spec.labels, dtype=object), found.argmax(1)
    gold = np.array([model.spec.labels.index(e.label) for e in examples])
    rows = np.arange(len(examples))
    return table.assign(predicted=labels[best], right=best == gold,
                        probability=found[rows, best], gold_probability=found[rows, gold])


def _words(model: Finetuned, examples: Sequence, found: Sequence[np.ndarray]) -> pd.DataFrame:
    rows = []
    for example, chances in zip(examples, found, strict=True):
        sentence = " ".join(example.words)
        for word, gold, own in zip(example.words, example.tags, chances, strict=True):
            best = int(own.argmax())
            rows.append((example.where, word, sentence, gold, model.spec.labels[best],
                         model.spec.labels[best] == gold, float(own[best])))
    return pd.DataFrame(rows, columns=["where", "word", "sentence", "gold", "predicted", "right",
                                       "probability"])


def _questions(model: Finetuned, examples: Sequence, found: Sequence) -> pd.DataFrame:
    rows = []
    for example, span in zip(examples, found, strict=True):
        gold = [a.text for a in example.answers]
        exact = exact_match(span.text, gold)
        rows.append((example.where, example.question, " | ".join(gold), span.text, exact == 1.0,
                     span.probability, exact, answer_f1(span.text, gold)))
    return pd.DataFrame(rows, columns=["where", "question", "gold", "predicted", "right",
                                       "probability", "exact_match", "f1"])


def confusion(found: Outcome) -> pd.DataFrame:
    """How often each label (rows) was called which (columns): int64 [C, C]."""
    labels = list(found.labels)
    counts = pd.crosstab(found.table["gold"], found.table["predicted"])
    return counts.reindex(index=labels, columns=labels, fill_value=0)


# -- calibration ------------------------------------------------------------------------------

BINS = 15


def reliability(probability: np.ndarray, right: np.ndarray, bins: int = BINS) -> pd.DataFrame:
    """Predictions by how sure they are: ``low``, ``high``, ``count``, mean ``confidence`` and
    ``accuracy`` of each bin, NaN where it is empty.

    Bins are of equal width, (low, high], as in Guo et al. 2017, section 2.
    """
    probability, right = np.asarray(probability, float), np.asarray(right, float)
    edges = np.linspace(0.0, 1.0, bins + 1)
    which = np.clip(np.digitize(probability, edges, right=True) - 1, 0, bins - 1)
    count = np.bincount(which, minlength=bins)
    with np.errstate(invalid="ignore"):
        return pd.DataFrame({
            "low": edges[:-1], "high": edges[1:], "count": count,
            "confidence": np.bincount(which, probability, bins) / count,
            "accuracy": np.bincount(which, right, bins) / count})


def calibration_error(probability: np.ndarray, right: np.ndarray, bins: int = BINS) -> float:
    """The expected calibration error: the mean distance of accuracy from confidence over the bins,
    each weighed by its predictions (Guo et al. 2017, equation 3)."""
    table = reliability(probability, right, bins).dropna()
    return float((table["count"] * (table["accuracy"] - table["confidence"]).abs()).sum()
                 / table["count"].sum())
