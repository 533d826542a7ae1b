"""What the scores of the four kinds of pairs say, with intervals, in numbers and in one sentence.

Pairs of one document are not independent, so all intervals are from a bootstrap over documents
(Efron and Tibshirani 1993, section 13.3): 95 %, percentiles, 1,000 resamples with a fixed seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertscope.analysis.coherence import KINDS
from bertscope.analysis.intervals import wilson

RESAMPLES = 1000
LEVEL = (2.5, 97.5)


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float

    def above(self, bound: float) -> bool:
        return self.low > bound

    def below(self, bound: float) -> bool:
        return self.high < bound


@dataclass(frozen=True)
class Summary:
    """For each kind: ``mean`` score, ``says_next`` (share of scores above one half), ``right``
    (share of right answers: yes to ``next``, no to the others), and ``auc``, the probability that
    a true pair's score is above one of that kind (ties count half; absent for ``next``)."""

    anchors: int
    documents: int
    mean: dict[str, Estimate]
    says_next: dict[str, Estimate]
    right: dict[str, Estimate]
    auc: dict[str, Estimate]

    def frame(self):
        """A row for each kind, for a table or a file."""
        import pandas as pd

        rows = []
        for kind in KINDS:
            row: dict[str, object] = {"kind": kind, "pairs": self.anchors,
                                      "documents": self.documents}
            for name in ("mean", "says_next", "right", "auc"):
                found = getattr(self, name).get(kind, Estimate(*[float("nan")] * 3))
                row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
            rows.append(row)
        return pd.DataFrame(rows)


def summarise(scores: np.ndarray, documents: np.ndarray) -> Summary:
    """Means, shares and areas under the ROC curve, with intervals.

    Args:
        scores: [N, 4], a row for each anchor, columns as in ``KINDS``.
        documents: int [N], the document of each anchor.
    """
    groups, sizes, resampled = _groups(documents)
    weights = np.vstack([np.ones(len(sizes)), resampled])

    def share(values: np.ndarray) -> Estimate:
        sums = np.bincount(groups, values, len(sizes))
        found = _estimate((weights @ sums) / (weights @ sizes))
        # Where all documents agree, resampling them shows no doubt: Wilson's interval for as many
        # documents (1927) does.
        if found.value not in (0.0, 1.0):
            return found
        return Estimate(found.value, *wilson(found.value * len(sizes), len(sizes)))

    def mean(values: np.ndarray) -> Estimate:
        sums = np.bincount(groups, values, len(sizes))
        return _estimate((weights @ sums) / (weights @ sizes))

    yes = {kind: (scores[:, k] > 0.5).astype(float) for k, kind in enumerate(KINDS)}
    return Summary(
        len(scores), len(sizes),
        {kind: mean(scores[:, k]) for k, kind in enumerate(KINDS)},
        {kind: share(yes[kind]) for kind in KINDS},
        {kind: share(yes[kind] if kind == "next" else 1 - yes[kind]) for kind in KINDS},
        {kind: _estimate(_aucs(scores[:, 0], scores[:, k], groups, sizes, weights))
         for k, kind in enumerate(KINDS) if k})


def difference(scores: np.ndarray, others: np.ndarray, documents: np.ndarray,
               ) -> dict[str, Estimate]:
    """How much larger the AUC of ``scores`` is than that of ``others`` on the same pairs, for each
    kind; both from the same resampled documents."""
    groups, sizes, resampled = _groups(documents)
    weights = np.vstack([np.ones(len(sizes)), resampled])
    return {kind: _estimate(_aucs(scores[:, 0], scores[:, k], groups, sizes, weights)
                            - _aucs(others[:, 0], others[:, k], groups, sizes, weights))
            for k, kind in enumerate(KINDS) if k}


def _groups(documents: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The number of each anchor's document from 0 on, [N]; anchors of each document, [D]; how often
    each document was drawn in each resample, [RESAMPLES, D]."""
    _, groups, sizes = np.unique(documents, return_inverse=True, return_counts=True)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), size=RESAMPLES)
    return groups, sizes.astype(float), drawn.astype(float)


def _aucs(true: np.ndarray, false: np.ndarray, groups, sizes, weights) -> np.ndarray:
    """The AUC under each row of document weights, [R].

    With the wins of each document's true pairs over each document's false ones it is a quadratic
    form in the weights.
    """
    wins = (true[:, None] > false).astype(float) + 0.5 * (true[:, None] == false)
    member = (groups == np.arange(len(sizes))[:, None]).astype(float)
    between = member @ wins @ member.T
    return ((weights @ between) * weights).sum(1) / (weights @ sizes) ** 2


def _estimate(values: np.ndarray) -> Estimate:
    """The first value, with the percentiles of the others."""
    low, high = np.percentile(values[1:], LEVEL)
    return Estimate(float(values[0]), float(low), float(high))
