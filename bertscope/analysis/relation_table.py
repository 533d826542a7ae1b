"""The best head of each relation, chosen on one part of a treebank and reported on another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.head_relations import RelationCounts

#: A smaller number of arcs says nothing of a head.
FEWEST = 20


def accuracies(counts: RelationCounts, relation: str, direction: str | None = None) -> pd.DataFrame:
    """One relation in every head: layer, head, accuracy, direction (the better one, if none is
    given)."""
    found = counts.heads[counts.heads["relation"] == relation]
    if direction is not None:
        found = found[found["direction"] == direction]
    best = found.sort_values("right", ascending=False, kind="stable").groupby(
        ["layer", "head"], as_index=False).first()
    return best.assign(accuracy=best["right"] / best["arcs"])[
        ["layer", "head", "accuracy", "direction"]]


def best_heads(chosen: RelationCounts, reported: RelationCounts, fewest: int = FEWEST,
               ) -> pd.DataFrame:
    """The table of Clark et al. (2019, Table 1): the best head of each relation.

    Head, direction and offset are chosen on ``chosen`` and their accuracy is that on ``reported``:
    the best of hundreds on the data it was chosen by would be flattered.

    Args:
        fewest: arcs that a relation needs in both.

    Returns: a row per relation: ``relation``, ``arcs`` (reported), ``layer``, ``head``,
        ``direction``, ``accuracy``, ``low``, ``high`` (Wilson's 95 % interval, which takes arcs as
        independent), ``accuracy_chosen``, ``offset``, ``offset_accuracy``, ``beats`` (whether
        ``low`` is above the offset's accuracy).
    """
    import pandas as pd

    from bertscope.analysis.intervals import wilson

    head_key, offset_key = ["relation", "direction", "layer", "head"], ["relation", "offset"]
    heads = _best(chosen.heads, "relation").merge(reported.heads, on=head_key,
                                                  suffixes=("_chosen", ""))
    offsets = _best(chosen.offsets, "relation").merge(reported.offsets, on=offset_key,
                                                      suffixes=("_chosen", ""))
    table = heads.merge(offsets[[*offset_key, "right"]], on="relation", suffixes=("", "_offset"))
    table = table[table[["arcs", "arcs_chosen"]].min(axis=1) >= fewest].reset_index(drop=True)
    intervals = [wilson(right, arcs) for right, arcs in zip(table["right"], table["arcs"])]
    low, high = zip(*intervals, strict=True) if intervals else ((), ())
    found = pd.DataFrame({
        "relation": table["relation"], "arcs": table["arcs"], "layer": table["layer"],
        "head": table["head"], "direction": table["direction"],
        "accuracy": table["right"] / table["arcs"], "low": low, "high": high,
        "accuracy_chosen": table["right_chosen"] / table["arcs_chosen"],
        "offset": table["offset"], "offset_accuracy": table["right_offset"] / table["arcs"]})
    return found.assign(beats=found["low"] > found["offset_accuracy"])


def _best(table: pd.DataFrame, by: str) -> pd.DataFrame:
    """The row with most right guesses of each relation, the first of several, in their order."""
    return table.loc[table.groupby(by, sort=False)["right"].idxmax()]
