"""What each head does over a sample of texts, after Clark et al. 2019, section 3, and Kovaleva et al.
2019, section 4.2. Weights are summed up batch by batch and never kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bertscope.analysis.attention_sample import Text

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.activations import LoadedModel, Progress

VERSION = 1
#: The numbers of a head and what they mean, in the order of the columns.
STATISTICS = {
    "cls": "mean weight on [CLS]",
    "sep": "mean weight on the [SEP]s",
    "punctuation": "mean weight on pieces of nothing but punctuation",
    "previous": "mean weight on the piece before, over the pieces that have one",
    "self": "mean weight on the piece itself",
    "next": "mean weight on the piece after, over the pieces that have one",
    "same_segment": "of pairs: mean weight of a word piece on word pieces of its own text",
    "other_segment": "of pairs: mean weight of a word piece on word pieces of the other text",
    "entropy": "mean entropy of a row in bits: 0 looks at one piece, log2 T at all alike",
    "distance": "mean distance |i - j| in pieces under the weights",
}
PATTERNS = ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")
#: Thresholds of :func:`patterns`, as shares of what is beyond an even spread of attention.
DOMINANT, PRESENT = 0.5, 0.2


def head_statistics(model: LoadedModel, texts: Sequence[Text], progress: Progress | None = None,
                    ) -> pd.DataFrame:
    """The :data:`STATISTICS` of every head over a sample.

    A row of weights counts once, whichever text it is from; rows of [CLS] and [SEP] count too,
    except for the two that speak of segments.

    Returns: a row per head: ``layer``, ``head`` (from 1), the statistics (NaN where the sample has
        nothing to tell, such as ``other_segment`` without pairs), then ``vertical``, ``diagonal``,
        ``either``, ``block`` (see :func:`patterns`), ``pattern``, and ``rows``, how many were seen.

    Raises:
        BertScopeError: no text, or the architecture has no attention weights.
    """
    raise NotImplementedError


def patterns(table: pd.DataFrame) -> pd.Series:
    """The class of each head by :data:`PATTERNS` from the columns vertical, diagonal, either, block.

    Kovaleva et al. classed maps with a network trained on 400 hand-labelled ones; here are rules in
    its place. Each column is the share s of attention in a region beyond an even spread:
    s = (m - u) / (1 - u), with m the mean mass in it and u that of a head that attends evenly; at
    least 0. Regions: ``vertical`` the columns of special and punctuation pieces, ``diagonal``
    |i - j| <= 1, ``either`` both together, ``block`` the row's own segment (pairs only).

    ``either`` >= DOMINANT: vertical, diagonal, or both where both >= PRESENT; else ``block`` >=
    DOMINANT: block; else heterogeneous.
    """
    raise NotImplementedError


def head_statistics_cached(checkpoint: str | Path, texts: Sequence[Text],
                           progress: Progress | None = None,
                           open_model: Callable[[str | Path], LoadedModel] | None = None,
                           kept_only: bool = False) -> pd.DataFrame | None:
    """:func:`head_statistics`, kept beside the checkpoint by what is in its weights and the texts.

    Args:
        open_model: opens a checkpoint, ``loading.load`` by default; called only if nothing is kept.
        kept_only: None instead of computing.
    """
    raise NotImplementedError
