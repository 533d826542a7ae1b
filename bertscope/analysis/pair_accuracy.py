"""How often the good sentence of a minimal pair is the likelier one: shares, intervals, comparisons.

A pair counts 1 where the good sentence has the higher score, and one half where both have the same,
as where every word that differs is unknown to the tokenizer. The published figures count those 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertscope.analysis.intervals import wilson

if TYPE_CHECKING:
    import pandas as pd


def accuracies(table: pd.DataFrame) -> pd.DataFrame:
    """The accuracy on each paradigm, in the order of the pairs.

    Args:
        table: of ``minimal_pairs.evaluate``.

    Returns: a row per paradigm: ``paradigm``, ``phenomenon``, ``pairs`` (that were compared),
        ``right`` (good > bad), ``ties``, ``left_out``, ``accuracy`` = (right + ties / 2) / pairs,
        ``low`` and ``high`` (Wilson's 95 % interval).
    """
    import pandas as pd

    rows = []
    for paradigm, group in table.groupby("paradigm", sort=False):
        scored = group[group["good"].notna()]
        right = int((scored["good"] > scored["bad"]).sum())
        ties = int((scored["good"] == scored["bad"]).sum())
        count, low_high = len(scored), wilson(right + ties / 2, len(scored))
        rows.append((paradigm, group["phenomenon"].iloc[0], count, right, ties,
                     len(group) - count, (right + ties / 2) / count if count else math.nan, *low_high))
    return pd.DataFrame(rows, columns=["paradigm", "phenomenon", "pairs", "right", "ties", "left_out",
                                       "accuracy", "low", "high"])


def mean_accuracy(found: pd.DataFrame) -> tuple[float, float, float]:
    """The mean over paradigms, each counting the same, with its 95 % interval.

    The interval combines the paradigms' own by the method of variance estimates recovery (Zou and
    Donner 2008): their distances from the accuracies, squared, weighted and added. NaN of none.
    """
    found = found[found["pairs"] > 0]
    if not len(found):
        return math.nan, math.nan, math.nan
    share = found["accuracy"].to_numpy()
    down = math.sqrt(((share - found["low"].to_numpy()) ** 2).sum()) / len(share)
    up = math.sqrt(((found["high"].to_numpy() - share) ** 2).sum()) / len(share)
    mean = float(share.mean())
    return mean, max(0.0, mean - down), min(1.0, mean + up)


def by_phenomenon(found: pd.DataFrame) -> pd.DataFrame:
    """:func:`mean_accuracy` of each phenomenon; a paradigm without one stands for itself.

    Returns: ``phenomenon``, ``paradigms``, ``pairs``, ``accuracy``, ``low``, ``high``.
    """
    import pandas as pd

    names = found["phenomenon"].where(found["phenomenon"] != "", found["paradigm"])
    rows = [(name, len(group), int(group["pairs"].sum()), *mean_accuracy(group))
            for name, group in found.groupby(names, sort=False)]
    return pd.DataFrame(rows, columns=["phenomenon", "paradigms", "pairs", "accuracy", "low", "high"])


@dataclass(frozen=True)
class Comparison:
    """Two models on the same pairs: how many only one of them has right, and what chance makes of it.

    ``p_value`` is that of McNemar's exact test (two-sided): the probability of so uneven a division,
    if both were equally good.
    """

    only_first: int
    only_second: int
    p_value: float


def compare(first: pd.DataFrame, second: pd.DataFrame) -> Comparison:
    """Of two tables of ``minimal_pairs.evaluate``; pairs that only one could score are left out."""
    from scipy.stats import binomtest

    key = ["paradigm", "sentence_good", "sentence_bad"]
    both = first.drop_duplicates(key).merge(second.drop_duplicates(key), on=key,
                                            suffixes=("_1", "_2"))
    both = both[both["good_1"].notna() & both["good_2"].notna()]
    one, two = (both[f"good_{n}"] > both[f"bad_{n}"] for n in (1, 2))
    a, b = int((one & ~two).sum()), int((two & ~one).sum())
    return Comparison(a, b, float(binomtest(a, a + b).pvalue) if a + b else 1.0)
