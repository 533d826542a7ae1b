"""The birth of a head: its statistics and its relations over a run's checkpoints.

How much each head changed between two checkpoints is ``head_distances.changed_heads``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bertscope.analysis.attention_sample import Text
from bertscope.analysis.head_relations import relation_counts_cached
from bertscope.analysis.head_statistics import STATISTICS, head_statistics_cached
from bertscope.analysis.relation_table import FEWEST
from bertscope.corpus.conllu import Sentence
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.activations import LoadedModel, Progress
    from bertscope.runs import Checkpoint

_ARC = ["relation", "direction", "layer", "head"]


def statistics_over_time(checkpoints: Sequence[Checkpoint], texts: Sequence[Text],
                         progress: Progress | None = None,
                         open_model: Callable[[str | Path], LoadedModel] | None = None,
                         kept_only: bool = False) -> pd.DataFrame:
    """``head_statistics_cached`` of every checkpoint that can be read, with a column ``step`` in front.

    Args:
        progress: what it raises ends the work; the checkpoints that are done are kept.
        open_model: opens a checkpoint, ``loading.load`` by default.
        kept_only: leave out the checkpoints for which nothing is kept.
    """
    return _stacked(checkpoints, progress, lambda checkpoint, told: head_statistics_cached(
        checkpoint.path, texts, told, open_model, kept_only))


def relations_over_time(checkpoints: Sequence[Checkpoint], sentences: Sequence[Sentence],
                        subtypes: bool = False, progress: Progress | None = None,
                        open_model: Callable[[str | Path], LoadedModel] | None = None,
                        kept_only: bool = False) -> pd.DataFrame:
    """Every head on every relation at every checkpoint.

    Args:
        progress, open_model, kept_only: as :func:`statistics_over_time`.

    Returns: step, relation, direction, layer, head, accuracy, arcs, offset_accuracy (of the fixed
        offset that is best for the relation on these sentences).
    """
    def ask(checkpoint: Checkpoint, told: Progress) -> pd.DataFrame | None:
        counts = relation_counts_cached(checkpoint.path, sentences, subtypes, told, open_model,
                                        kept_only)
        if counts is None:
            return None
        best = counts.offsets.groupby("relation")["right"].max()
        table = counts.heads.assign(accuracy=counts.heads["right"] / counts.heads["arcs"])
        table["offset_accuracy"] = table["relation"].map(best) / table["arcs"]
        return table[[*_ARC, "accuracy", "arcs", "offset_accuracy"]]

    return _stacked(checkpoints, progress, ask)


def best_relation(over_time: pd.DataFrame, layer: int, head: int, fewest: int = FEWEST,
                  ) -> pd.DataFrame:
    """One head: at each step the relation in which it is furthest above the best fixed offset.

    Args:
        over_time: of :func:`relations_over_time`.
        fewest: arcs that a relation needs; all relations together are not one.

    Returns: step, relation, direction, accuracy, offset_accuracy, margin (accuracy - offset's).
    """
    from bertscope.analysis.head_relations import ALL

    found = over_time[(over_time["layer"] == layer) & (over_time["head"] == head)
                      & (over_time["arcs"] >= fewest) & (over_time["relation"] != ALL)]
    found = found.assign(margin=found["accuracy"] - found["offset_accuracy"])
    best = found.loc[found.groupby("step")["margin"].idxmax()]
    return best[["step", "relation", "direction", "accuracy", "offset_accuracy", "margin"]
                ].reset_index(drop=True)


def best_head(over_time: pd.DataFrame, relation: str) -> pd.DataFrame:
    """One relation: at each step the head that is best at it. That it is the best of many flatters
    it: random weights have a best head too, the first step shows how good.

    Returns: step, layer, head, direction, accuracy, offset_accuracy.
    """
    found = over_time[over_time["relation"] == relation]
    best = found.loc[found.groupby("step")["accuracy"].idxmax()]
    return best[["step", "layer", "head", "direction", "accuracy", "offset_accuracy"]
                ].reset_index(drop=True)


def largest_jumps(over_time: pd.DataFrame, statistics: Sequence[str] | None = None) -> pd.DataFrame:
    """Where each head's statistic changes most from one checkpoint to the next.

    Args:
        over_time: of :func:`statistics_over_time`.
        statistics: some of its columns, all of :data:`STATISTICS` by default.

    Returns: layer, head, statistic, before (step), after (step), change (signed), share (of the
        statistic's range over all heads and steps), the largest share first.
    """
    import pandas as pd

    tables = []
    for name in statistics or STATISTICS:
        values = over_time[name]
        extent = values.max() - values.min()
        if extent > 0:  # neither all NaN nor all the same
            found = _jumps(over_time, ["layer", "head"], name)
            tables.append(found.assign(statistic=name, share=found["change"].abs() / extent))
    columns = ["layer", "head", "statistic", "before", "after", "change", "share"]
    if not tables:
        return pd.DataFrame(columns=columns)
    return pd.concat(tables).sort_values("share", ascending=False, kind="stable",
                                         ignore_index=True)[columns]


def largest_relation_jumps(over_time: pd.DataFrame, fewest: int = FEWEST) -> pd.DataFrame:
    """Where each head's accuracy on each relation rises or falls most between two checkpoints.

    Args:
        over_time: of :func:`relations_over_time`.

    Returns: relation, direction, layer, head, before, after (steps), change, the largest first.
    """
    found = _jumps(over_time[over_time["arcs"] >= fewest], _ARC, "accuracy")
    order = found["change"].abs().sort_values(ascending=False, kind="stable").index
    return found.loc[order].reset_index(drop=True)


# -- inside -----------------------------------------------------------------------------------


def _stacked(checkpoints: Sequence[Checkpoint], progress: Progress | None,
             ask: Callable[[Checkpoint, Progress], pd.DataFrame | None]) -> pd.DataFrame:
    """The tables of all checkpoints that have one, a column ``step`` in front. One that cannot be read
    is left out.

    Raises:
        BertScopeError: none of them can be read.
    """
    import pandas as pd

    tables, damaged = [], None
    for number, checkpoint in enumerate(checkpoints):
        def told(message: str, share: float | None, number=number, step=checkpoint.step) -> None:
            if progress:
                progress(f"step {step:,}: {message}", (number + (share or 0)) / len(checkpoints))

        told("opening", 0.0)
        try:
            table = ask(checkpoint, told)
        except BertScopeError as error:
            table, damaged = None, error
        if table is not None:
            table = table.reset_index(drop=True)
            table.insert(0, "step", checkpoint.step)
            tables.append(table)
    if damaged and not tables:
        raise damaged
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"step": []})


def _jumps(over_time: pd.DataFrame, by: list[str], column: str) -> pd.DataFrame:
    """The largest absolute change of a column between neighbouring steps, of each group that has
    two steps: ``by``, before, after, change; the earliest of equal ones."""
    ordered = over_time.sort_values("step", kind="stable")
    groups = ordered.groupby(by, sort=False)
    change, before = groups[column].diff(), groups["step"].shift()
    moves = ordered[by].assign(before=before, after=ordered["step"], change=change).dropna()
    moves = moves.assign(before=moves["before"].astype("int64"), size=moves["change"].abs())
    largest = moves.loc[moves.groupby(by, sort=False)["size"].idxmax()]
    return largest.drop(columns="size").reset_index(drop=True)
