"""Which of two sentences does the model find likelier, and where? Over many pairs: how often the
right one? (Warstadt et al. 2020; with masked models Salazar et al. 2020, section 4.3.)

A pair counts 1 where the good sentence has the higher score, and one half where both have the same,
as where every word that differs is unknown to the tokenizer. The published figures count those 0.
Sentences are compared by their whole score, not by its mean over pieces: so a longer one is at a
disadvantage, and a model that knows nothing is not at 50 % on every paradigm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bertscope.corpus.pairs import Pair, PairSet, digest
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.activations import LoadedModel, Progress
    from bertscope.analysis.scoring import Score

#: Raise it when the scores of a pair change.
VERSION = 1
#: Pairs that are scored and kept together: what a cancelled computation loses at most.
BLOCK = 100
_Z = 1.959963984540054  # of 95 %


# -- one pair ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A stretch of two sentences: one piece that both have, or what stands in its place.

    ``bits`` is how much likelier the first sentence is here; the parts of a pair sum to the whole
    difference. ``first`` and ``second`` are positions in the two inputs, maybe none.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    texts: tuple[str, str]
    bits: float

    @property
    def same(self) -> bool:
        return self.texts[0] == self.texts[1]


def parts(first: Score, second: Score) -> list[Part]:
    """Two scored sentences side by side, in their order."""
    tokens = [[s.encoded.tokens[place] for place in s.places] for s in (first, second)]
    found = []
    for kind, a, b, c, d in SequenceMatcher(None, *tokens, autojunk=False).get_opcodes():
        steps = [(a + i, a + i + 1, c + i, c + i + 1) for i in range(b - a)] if kind == "equal" \
            else [(a, b, c, d)]
        for a, b, c, d in steps:
            bits = float(second.bits[c:d].sum() - first.bits[a:b].sum())
            found.append(Part(tuple(first.places[a:b].tolist()), tuple(second.places[c:d].tolist()),
                              (" ".join(tokens[0][a:b]), " ".join(tokens[1][c:d])), bits))
    return found


def decisive(found: Sequence[Part]) -> Part | None:
    """The part that did most for the sentence that won; None where neither did."""
    margin = sum(part.bits for part in found)
    return max(found, key=lambda part: part.bits * math.copysign(1, margin)) if margin else None


# -- many pairs -------------------------------------------------------------------------------


def score_pairs(model: LoadedModel, pairs: Sequence[Pair], variant: str = "original",
                progress: Progress | None = None) -> pd.DataFrame:
    """The scores of both sentences of each pair.

    Returns: a row per pair: ``good``, ``bad`` (float64, natural logarithms), ``good_pieces``,
        ``bad_pieces``, and ``left_out``: why there are NaNs instead, where a sentence cannot be
        scored as a whole (``scoring.readable``), else empty.

    Raises:
        BertScopeError: no MLM head, another variant, or weights that are not finite.
    """
    import pandas as pd

    from bertscope.analysis.scoring import readable, score_encoded

    inputs, owners, reasons = [], [], [""] * len(pairs)
    for number, pair in enumerate(pairs):
        try:
            inputs += [readable(model, pair.good), readable(model, pair.bad)]
            owners.append(number)
        except BertScopeError as error:
            reasons[number] = str(error)
    scores = score_encoded(model, inputs, variant, progress)
    values, pieces = np.full((len(pairs), 2), np.nan), np.zeros((len(pairs), 2), np.int64)
    for owner, good, bad in zip(owners, scores[::2], scores[1::2], strict=True):
        values[owner] = good.pll, bad.pll
        pieces[owner] = len(good.places), len(bad.places)
    return pd.DataFrame({"good": values[:, 0], "bad": values[:, 1],
                         "good_pieces": pieces[:, 0], "bad_pieces": pieces[:, 1],
                         "left_out": reasons})


def evaluate(model: LoadedModel, pairs: PairSet, variant: str = "original",
             folder: Path | None = None, progress: Progress | None = None, kept_only: bool = False,
             ) -> pd.DataFrame:
    """The scores of a set of pairs, block by block; what is in ``folder`` already is not computed.

    Args:
        folder: where results are kept (``cache.analysis_folder``), by what is in the checkpoint's
            weights and in the pairs; None keeps nothing.
        progress: what it raises ends the computation; blocks that are done are kept.
        kept_only: compute nothing, leave out what is not kept.

    Returns: :func:`score_pairs` with the pairs' own columns ``paradigm``, ``phenomenon``,
        ``sentence_good``, ``sentence_bad``.

    Raises:
        BertScopeError: as :func:`score_pairs`.
    """
    import pandas as pd

    from bertscope.analysis.mlm_head import require_mlm_head

    require_mlm_head(model)
    tables, done = [], 0
    for block in blocks(pairs):
        def told(message: str, share: float | None) -> None:
            if progress:
                progress(f"{block[0].paradigm}: {message}",
                         (done + len(block) * (share or 0.0)) / len(pairs))

        table = _block(model, block, variant, folder, told, kept_only)
        done += len(block)
        if table is not None:
            tables.append(table.assign(
                paradigm=[pair.paradigm for pair in block], phenomenon=[p.phenomenon for p in block],
                sentence_good=[p.good for p in block], sentence_bad=[p.bad for p in block]))
        if progress:
            progress(f"{block[0].paradigm}", done / len(pairs))
    columns = ["good", "bad", "good_pieces", "bad_pieces", "left_out", "paradigm", "phenomenon",
               "sentence_good", "sentence_bad"]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def blocks(pairs: PairSet) -> Iterator[list[Pair]]:
    """At most ``BLOCK`` pairs of one paradigm at a time: the first ones of each paradigm, then the next.

    So what is done early is of all paradigms.
    """
    groups: dict[str, list[Pair]] = {}
    for pair in pairs.pairs:
        groups.setdefault(pair.paradigm, []).append(pair)
    longest = max(map(len, groups.values()), default=0)
    for start in range(0, longest, BLOCK):
        for group in groups.values():
            if start < len(group):
                yield group[start:start + BLOCK]


def _block(model, block, variant, folder, progress, kept_only):
    from bertscope.analysis.cache import cached_frame

    if folder is None:
        return None if kept_only else score_pairs(model, block, variant, progress)

    def compute():
        if kept_only:
            raise LookupError
        return score_pairs(model, block, variant, progress)

    key = {"version": VERSION, "checkpoint": model.fingerprint, "variant": variant,
           "pairs": digest(block)}
    try:
        return cached_frame(folder, "pairs", key, compute)
    except LookupError:
        return None


# -- accuracy ---------------------------------------------------------------------------------


def wilson(right: float, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927); (0, 1) of nothing."""
    if not of:
        return 0.0, 1.0
    share, square = right / of, _Z ** 2
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = _Z / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of ** 2))
    return max(0.0, middle - half), min(1.0, middle + half)


def accuracies(table: pd.DataFrame) -> pd.DataFrame:
    """The accuracy on each paradigm, in the order of the pairs.

    Args:
        table: of :func:`evaluate`.

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
    """Of two tables of :func:`evaluate`; pairs that only one could score are left out."""
    from scipy.stats import binomtest

    key = ["paradigm", "sentence_good", "sentence_bad"]
    both = first.drop_duplicates(key).merge(second.drop_duplicates(key), on=key,
                                            suffixes=("_1", "_2"))
    both = both[both["good_1"].notna() & both["good_2"].notna()]
    one, two = (both[f"good_{n}"] > both[f"bad_{n}"] for n in (1, 2))
    a, b = int((one & ~two).sum()), int((two & ~one).sum())
    return Comparison(a, b, float(binomtest(a, a + b).pvalue) if a + b else 1.0)
