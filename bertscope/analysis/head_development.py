"""The birth of a head: its statistics and its best relation over a run's checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bertscope.analysis.attention_sample import Text
from bertscope.corpus.conllu import Sentence

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.activations import LoadedModel, Progress
    from bertscope.runs import Checkpoint


def statistics_over_time(checkpoints: Sequence[Checkpoint], texts: Sequence[Text],
                         progress: Progress | None = None,
                         open_model: Callable[[str | Path], LoadedModel] | None = None,
                         kept_only: bool = False) -> pd.DataFrame:
    """``head_statistics_cached`` of every checkpoint, with a column ``step`` in front.

    Args:
        kept_only: leave out the checkpoints for which nothing is kept.
    """
    raise NotImplementedError


def relations_over_time(checkpoints: Sequence[Checkpoint], sentences: Sequence[Sentence],
                        subtypes: bool = False, progress: Progress | None = None,
                        open_model: Callable[[str | Path], LoadedModel] | None = None,
                        kept_only: bool = False) -> pd.DataFrame:
    """Every head on every relation at every checkpoint: step, relation, direction, layer, head,
    accuracy, arcs, offset_accuracy (of the best fixed offset)."""
    raise NotImplementedError


def best_relation(over_time: pd.DataFrame, layer: int, head: int, fewest: int = 20) -> pd.DataFrame:
    """One head: at each step the relation in which it is furthest above the best fixed offset.

    Returns: step, relation, direction, accuracy, offset_accuracy, margin (accuracy - offset's).
    """
    raise NotImplementedError


def largest_jumps(over_time: pd.DataFrame, statistics: Sequence[str] | None = None) -> pd.DataFrame:
    """Where each head's statistic changes most from one checkpoint to the next.

    Args:
        over_time: of :func:`statistics_over_time`.

    Returns: layer, head, statistic, before (step), after (step), change (signed), share (of the
        statistic's range over all heads and steps), the largest share first.
    """
    raise NotImplementedError
