"""Which dependency relation does a head follow? (Clark et al. 2019, section 4.2, Table 1)"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bertscope.corpus.conllu import Sentence

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.activations import LoadedModel, Progress

VERSION = 1
#: Every word's guess is the word so many places to the right (negative: left).
OFFSETS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
#: The dependent's strongest weight is on its head; or: of all words the head looks at it most.
DIRECTIONS = ("dependent→head", "head→dependent")
#: Stands for all relations together.
ALL = "all"
#: Relations that are not scored: the root has no head, and of punctuation it is a convention.
LEFT_OUT = ("root", "punct")


@dataclass(frozen=True)
class RelationCounts:
    """How many arcs each head, and each fixed offset, gets right.

    ``heads``: relation, direction, layer, head (from 1), right, arcs. ``offsets``: relation, offset,
    right, arcs. Relations begin with ``all``, then the most frequent first. ``sentences`` that were
    read, and ``lost``, the arcs that were not: their words were cut off, or have no piece.
    """

    heads: pd.DataFrame
    offsets: pd.DataFrame
    sentences: int
    lost: int


def relation_counts(model: LoadedModel, sentences: Sequence[Sentence], subtypes: bool = False,
                    progress: Progress | None = None) -> RelationCounts:
    """Score every head on every relation, in both directions.

    Between words: the sum over the pieces looked at, the mean over those that look; [CLS], [SEP] and
    a word's weight on itself are left out, the largest of the rest is the guess. For
    head→dependent the matrix is turned over first, as Clark et al. do: of all words, which one looks
    at the dependent most? So both directions guess the head of the same dependents.

    Args:
        subtypes: keep ``nsubj:pass`` apart from ``nsubj``.

    Raises:
        BertScopeError: no sentence has an arc, or the architecture has no attention weights.
    """
    raise NotImplementedError


def offset_counts(sentences: Sequence[Sentence], subtypes: bool = False) -> pd.DataFrame:
    """``RelationCounts.offsets`` over all arcs of the sentences; no model."""
    raise NotImplementedError


def accuracies(counts: RelationCounts, relation: str, direction: str | None = None) -> pd.DataFrame:
    """One relation in every head: layer, head, accuracy, direction (the better one, if none is
    given)."""
    raise NotImplementedError


def best_heads(chosen: RelationCounts, reported: RelationCounts, fewest: int = 20) -> pd.DataFrame:
    """The table of Clark et al.: the best head of each relation.

    Head, direction and offset are chosen on ``chosen`` and their accuracy is that on ``reported``:
    the best of hundreds on the data it was chosen by would be flattered.

    Args:
        fewest: arcs that a relation needs in both.

    Returns: a row per relation: ``relation``, ``arcs`` (reported), ``layer``, ``head``,
        ``direction``, ``accuracy``, ``low``, ``high`` (Wilson's 95 % interval, which takes arcs as
        independent), ``accuracy_chosen``, ``offset``, ``offset_accuracy``, ``beats`` (whether
        ``low`` is above the offset's accuracy).
    """
    raise NotImplementedError


def relation_counts_cached(checkpoint: str | Path, sentences: Sequence[Sentence],
                           subtypes: bool = False, progress: Progress | None = None,
                           open_model: Callable[[str | Path], LoadedModel] | None = None,
                           kept_only: bool = False) -> RelationCounts | None:
    """:func:`relation_counts`, kept by what is in the checkpoint's weights and the sentences."""
    raise NotImplementedError
