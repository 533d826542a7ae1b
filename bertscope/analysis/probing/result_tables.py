"""What is said of a result, in tables: means with intervals, expected layers, onsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bertscope.analysis.probing.cell import Cell
from bertscope.analysis.probing.centre import Estimate, expected_layer, onset
from bertscope.analysis.probing.metrics import interval
from bertscope.analysis.probing.uncertainty import compare, holm, interval_of, p_value

if TYPE_CHECKING:
    from bertscope.analysis.probing.measured import Measured

#: Columns of ``scores`` that are averaged over seeds as they are.
MEANS = ("macro_f1", "accuracy_new_types", "control_accuracy", "selectivity", "codelength",
         "compression", "control_codelength", "control_compression", "uniform_codelength",
         "frequency_codelength", "centre", "bits_from_uniform", "majority", "word_identity",
         "length_only")


def summary(result: Measured) -> pd.DataFrame:
    """A row per task, checkpoint and layer or mix: means over seeds, with what belongs to them.

    ``accuracy`` with ``low`` and ``high``, its 95 % interval over sentences and seeds (nan of too few
    sentences, of which nothing is significant either, see ``uncertainty.FEWEST``); ``sd`` over
    seeds alone; ``best`` whether the layer is not significantly below the best of its checkpoint
    (Holm); ``below_best_p``; beside it ``majority``, ``word_identity``, ``length_only``,
    ``layer_0`` and ``random``, the same layer with random weights, with ``above_random`` and its
    interval, and p corrected over the layers.
    """
    rows = [row for task in result.tasks for name in result.subjects for mix in (False, True)
            for row in _summary_of(result, task, name, mix)]
    return pd.DataFrame(rows)


def _summary_of(result: Measured, task: str, checkpoint: str, mix: bool) -> Iterator[dict]:
    step, weights = result.step(checkpoint), result.weights(checkpoint)
    table = result.table(task, checkpoint, mix)
    if table.empty:
        return
    cells = [Cell(checkpoint, layer, mix) for layer in sorted(set(table["layer"]))]
    accuracy, draws = result.draws(task, cells)
    low, high = interval_of(accuracy, draws, result.sentences_tested(task))
    against = compare(accuracy, draws)
    bottom = _layer_0(result, task, checkpoint)
    baseline = _above_random(result, task, cells, accuracy, draws)
    means = table.groupby("layer").mean(numeric_only=True)
    spread = table.groupby("layer")["accuracy"].std(ddof=1)
    for place, cell in enumerate(cells):
        yield {"task": task, "checkpoint": checkpoint, "step": step, "weights": weights,
               "mix": mix, "layer": cell.layer, "accuracy": accuracy[place], "low": low[place],
               "high": high[place], "sd": spread[cell.layer],
               "best": bool(against.as_good[place]), "below_best_p": against.p[place],
               "layer_0": bottom,
               **{name: values[place] for name, values in baseline.items()},
               **{name: means.loc[cell.layer, name] for name in MEANS if name in means},
               "seeds": len(result.seeds)}


def _layer_0(result: Measured, task: str, checkpoint: str) -> float:
    if 0 not in result.layers_of(checkpoint):
        return float("nan")
    return float(result.draws(task, [Cell(checkpoint, 0)])[0][0])


def _above_random(result: Measured, task: str, cells: list[Cell], accuracy, draws) -> dict[str, np.ndarray]:
    """Each cell beside the same one of random weights."""
    nothing = np.full(len(cells), np.nan)
    found = {name: nothing for name in ("random", "above_random", "above_random_low",
                                        "above_random_high", "above_random_p")}
    name = result.random_for(cells[0].checkpoint)
    if name is None or name == cells[0].checkpoint:
        return found
    others = [Cell(name, cell.layer, cell.mix) for cell in cells]
    random, theirs = result.draws(task, others)
    low, high = interval(draws - theirs)
    p = holm([p_value(d, drawn) for d, drawn in zip(accuracy - random, draws - theirs)])
    return {"random": random, "above_random": accuracy - random, "above_random_low": low,
            "above_random_high": high, "above_random_p": p}


def centres(result: Measured) -> pd.DataFrame:
    """A row per task and checkpoint with a mix: the expected layer with its interval (nan where
    the gain over layer 0 is not significant, p corrected over the rows), and the centre of gravity
    of the mix's shares."""
    rows, found = [], []
    for task, name, whole, accuracy, draws in _mixed(result):
        found.append(expected_layer(accuracy, draws))
        rows.append({"task": task, "checkpoint": name, "step": result.step(name),
                     "centre": whole["centre"].mean(), "centre_sd": whole["centre"].std(ddof=1),
                     "bits_from_uniform": whole["bits_from_uniform"].mean()})
    return _estimates(rows, "expected_layer", found)


def mixes(result: Measured) -> pd.DataFrame:
    """A row per task, checkpoint and layer, where there is a mix: the layer's ``weight`` in the mix of
    all layers (they add up to 1; mean over seeds) and its differential score, what the mix of layers 0
    to it gains over that of layers 0 to the one below (``gain``, with a 95 % interval; nan for layer 0).
    """
    rows = []
    for task, name, whole, accuracy, draws in _mixed(result):
        lows, highs = interval(np.diff(draws, axis=0))
        gains = np.column_stack([np.diff(accuracy), lows, highs])
        for layer, (gain, low, high) in enumerate([[np.nan] * 3, *gains]):
            rows.append({"task": task, "checkpoint": name, "step": result.step(name), "layer": layer,
                         "weight": whole[f"share_{layer}"].mean(), "gain": gain, "gain_low": low,
                         "gain_high": high})
    return pd.DataFrame(rows)


def _mixed(result: Measured) -> Iterator[tuple]:
    """Each task and checkpoint with a mix: (task, checkpoint, scores of the mix of all layers, accuracy
    [L + 1] and draws [L + 1, draws] of the mixes of layers 0 to 0, 1 ... L)."""
    for task in result.tasks:
        for name in result.subjects:
            table = result.table(task, name, True)
            if table.empty:
                continue
            last = int(table["layer"].max())
            accuracy, draws = result.draws(task, [Cell(name, layer, True) for layer in range(last + 1)])
            yield task, name, table[table["layer"] == last], accuracy, draws


def onsets(result: Measured) -> pd.DataFrame:
    """A row per task and layer: the step at which half of its gain over the training is reached,
    with its interval (nan where the gain is not significant, p corrected over the rows), the
    earliest first.

    ``chosen`` marks the layer that the last checkpoint's *validation* accuracy prefers: the order
    in which tasks are learnt is read from these rows.
    """
    steps = sorted((result.step(name), name) for name in result.checkpoints
                   if result.step(name) is not None)
    rows, found = [], []
    for task in result.tasks if len(steps) > 1 else ():
        last = result.table(task, steps[-1][1], False)
        chosen = last.groupby("layer")["valid_accuracy"].mean().idxmax()
        for layer in result.layers_of(steps[-1][1]):
            accuracy, draws = result.draws(task, [Cell(name, layer) for _, name in steps])
            found.append(onset([step for step, _ in steps], accuracy, draws))
            rows.append({"task": task, "layer": layer, "chosen": layer == chosen})
    return _estimates(rows, "onset", found).sort_values("onset", kind="stable") if rows \
        else pd.DataFrame()


def _estimates(rows: list[dict], name: str, found: list[Estimate]) -> pd.DataFrame:
    """``rows`` with what was estimated for each, p corrected over all of them; nan where an estimate
    has no value."""
    columns = [{name: own.value, "low": own.low, "high": own.high, "gain": own.gain, "p": own.p}
               for own in Estimate.together(found)]
    table = pd.DataFrame([row | own for row, own in zip(rows, columns, strict=True)])
    return table.assign(**{column: table[column].astype(float) for column in (name, "low", "high")}) \
        if rows else table
