"""Which of two sentences does the model find likelier, and where? The scores of many pairs, kept.

Minimal pairs are those of Warstadt et al. 2020; Salazar et al. 2020 scored masked models on them.
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
