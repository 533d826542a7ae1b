"""What a study found: task × layer × step × seed, and what may be said of it.

``scores`` has a row for each of these and for each mix of layers; the other tables are made of it and
of the answers to the test items, with intervals and corrected comparisons (``uncertainty``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from bertscope.analysis.probing.centre import expected_layer, onset
from bertscope.analysis.probing.items import Items
from bertscope.analysis.probing.metrics import interval
from bertscope.analysis.probing.protocol import Protocol
from bertscope.analysis.probing.uncertainty import (
    ALPHA, Compared, compare, holm, p_value, resample, resamples_for)
from bertscope.analysis.probing.unit import Unit
from bertscope.errors import BertScopeError

#: Columns of ``scores`` that are averaged over seeds as they are.
MEANS = ("macro_f1", "accuracy_new_types", "control_accuracy", "selectivity", "codelength",
         "compression", "control_codelength", "control_compression", "uniform_codelength",
         "frequency_codelength", "centre", "bits_from_uniform", "majority", "word_identity",
         "length_only")


@dataclass(frozen=True)
class Cell:
    """What is compared: a layer, or a mix up to it, of one checkpoint (or of random weights)."""

    checkpoint: str
    layer: int
    mix: bool = False

    @property
    def column(self) -> str:
        return f"{'mix' if self.mix else 'layer'}_{self.layer}"


@dataclass
class Result:
    """See the module. Filled by ``study``; everything else is computed when it is asked for."""

    protocol: Protocol
    seeds: tuple[int, ...]
    tasks: dict[str, Items]
    fingerprints: dict[str, str] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    request: dict | None = None                                 # what was asked, by ``Request``
    untrained: dict[str, str] = field(default_factory=dict)     # architecture -> name
    _scores: list[pd.DataFrame] = field(default_factory=list)
    _answers: dict[tuple[str, str, int], pd.DataFrame] = field(default_factory=dict)
    _subjects: dict[str, tuple[int | None, str, str]] = field(default_factory=dict)
    _drawn: dict = field(default_factory=dict)

    def add(self, checkpoint: str, step: int | None, weights: str, architecture: str,
            key: tuple[str, int], unit: Unit) -> None:
        """Put in one unit; ``key`` is its task and seed. Random weights are named by their number
        where there are several architectures."""
        if weights == "random":
            number = self.untrained.setdefault(
                architecture, checkpoint if not self.untrained else
                f"{checkpoint} ({len(self.untrained) + 1})")
            checkpoint = number
        task, seed = key
        self._subjects[checkpoint] = (step, weights, architecture)
        self._drawn.clear()
        self._scores.append(unit.scores.assign(checkpoint=checkpoint, step=step, weights=weights,
                                               task=task, seed=seed))
        self._answers[checkpoint, task, seed] = unit.answers

    # -- the numbers -------------------------------------------------------------------------

    @cached_property
    def scores(self) -> pd.DataFrame:
        """A row per task, checkpoint, seed and layer (``mix`` False) or mix of layers 0 to it."""
        first = ["task", "checkpoint", "step", "weights", "seed", "mix", "layer"]
        table = pd.concat(self._scores, ignore_index=True)
        table["step"] = table["step"].astype("Int64")
        return table[first + [column for column in table if column not in first]]

    @property
    def checkpoints(self) -> list[str]:
        """Names of the trained ones, in the order in which they were given."""
        return [name for name, (_, weights, _) in self._subjects.items() if weights == "trained"]

    def step(self, checkpoint: str) -> int | None:
        """The training step of a checkpoint; None if it is not of a run."""
        return self._subjects[checkpoint][0]

    @property
    def layers(self) -> list[int]:
        """The layers that were probed of the first checkpoint."""
        return self.layers_of(self.checkpoints[0])

    def layers_of(self, checkpoint: str) -> list[int]:
        """The layers that were probed of a checkpoint."""
        table = self.scores
        return sorted(set(table[(table["checkpoint"] == checkpoint) & ~table["mix"]]["layer"]))

    def random_for(self, checkpoint: str) -> str | None:
        """The name of the random weights of the same architecture, where they were probed."""
        return self.untrained.get(self._subjects[checkpoint][2])

    @cached_property
    def summary(self) -> pd.DataFrame:
        """A row per task, checkpoint and layer or mix: means over seeds, with what belongs to them.

        ``accuracy`` with ``low`` and ``high``, its 95 % interval over sentences and seeds; ``sd`` over
        seeds alone; ``best`` whether the layer is not significantly below the best of its checkpoint
        (Holm); ``below_best_p``; beside it ``majority``, ``word_identity``, ``length_only``,
        ``layer_0`` and ``random``, the same layer with random weights, with ``above_random`` and its
        interval, and p corrected over the layers.
        """
        rows = [row for task in self.tasks for name in self._subjects for mix in (False, True)
                for row in self._summary_of(task, name, mix)]
        return pd.DataFrame(rows)

    def _summary_of(self, task: str, checkpoint: str, mix: bool) -> Iterator[dict]:
        step, weights, _ = self._subjects[checkpoint]
        table = self._table(task, checkpoint, mix)
        if table.empty:
            return
        cells = [Cell(checkpoint, layer, mix) for layer in sorted(set(table["layer"]))]
        accuracy, draws = self.draws(task, cells)
        low, high = interval(draws)
        against = compare(accuracy, draws)
        bottom = self._layer_0(task, checkpoint)
        baseline = self._above_random(task, cells, accuracy, draws)
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
                   "seeds": len(self.seeds)}

    def _layer_0(self, task: str, checkpoint: str) -> float:
        if 0 not in self.layers_of(checkpoint):
            return float("nan")
        return float(self.draws(task, [Cell(checkpoint, 0)])[0][0])

    def _above_random(self, task: str, cells: list[Cell], accuracy, draws) -> dict[str, np.ndarray]:
        """Each cell beside the same one of random weights."""
        nothing = np.full(len(cells), np.nan)
        found = {name: nothing for name in ("random", "above_random", "above_random_low",
                                            "above_random_high", "above_random_p")}
        name = self.random_for(cells[0].checkpoint)
        if name is None or name == cells[0].checkpoint:
            return found
        others = [Cell(name, cell.layer, cell.mix) for cell in cells]
        random, theirs = self.draws(task, others)
        low, high = interval(draws - theirs)
        p = holm([p_value(d, drawn) for d, drawn in zip(accuracy - random, draws - theirs)])
        return {"random": random, "above_random": accuracy - random, "above_random_low": low,
                "above_random_high": high, "above_random_p": p}

    def _table(self, task: str, checkpoint: str, mix: bool) -> pd.DataFrame:
        table = self.scores
        return table[(table["task"] == task) & (table["checkpoint"] == checkpoint)
                     & (table["mix"] == mix)]

    # -- comparisons -------------------------------------------------------------------------

    def draws(self, task: str, cells: list[Cell]) -> tuple[np.ndarray, np.ndarray]:
        """Accuracy ``[cells]`` and resampled accuracies ``[cells, resamples]``, all on the same items.

        Checkpoints whose tokenizers leave out different words are compared on what they share.
        """
        key = (task, tuple(cells))
        if key not in self._drawn:
            correct, sentence = self.correct(task, cells)
            self._drawn[key] = (correct.mean((1, 2)), resample(correct, sentence, resamples_for(
                len({cell.layer for cell in self._cells(task)}))))
        return self._drawn[key]

    def correct(self, task: str, cells: list[Cell]) -> tuple[np.ndarray, np.ndarray]:
        """bool ``[cells, seeds, items]``: which test items each gets right; the sentence ``[items]``."""
        shared = self._shared(task)
        rows = []
        for cell in cells:
            rows.append([])
            for seed in self.seeds:
                answers = self.answers(task, cell.checkpoint, seed)
                if cell.column not in answers:
                    raise BertScopeError(f"{cell.checkpoint} has no result for {cell.column}.")
                if len(answers) > len(shared):
                    answers = answers[answers["item"].isin(shared)]
                rows[-1].append((answers[cell.column] == answers["gold"]).to_numpy())
        return np.array(rows), answers["sentence"].to_numpy()

    def _shared(self, task: str) -> pd.Index:
        """Test items that every checkpoint has a vector for."""
        shared = None
        for (_, of, _), answers in self._answers.items():
            if of == task:
                items = pd.Index(answers["item"])
                shared = items if shared is None or items.equals(shared) \
                    else shared.intersection(items)
        if shared is None or not len(shared):
            raise BertScopeError("These checkpoints have no test item in common.")
        return shared

    def _cells(self, task: str) -> list[Cell]:
        return [Cell(name, layer) for name in self._subjects
                for layer in sorted(set(self._table(task, name, False)["layer"]))]

    def between(self, task: str, first: Cell, second: Cell) -> dict:
        """The second cell against the first: difference, interval, p. One comparison, uncorrected."""
        accuracy, draws = self.draws(task, [first, second])
        found: Compared = compare(accuracy, draws, against=0)
        return {"difference": found.difference[1], "low": found.low[1], "high": found.high[1],
                "p": found.p[1]}

    def between_checkpoints(self, first: str, second: str) -> pd.DataFrame:
        """The second checkpoint against the first for each task and layer that both have; p corrected
        for all of them (Holm)."""
        rows = [{"task": task, "layer": layer,
                 **self.between(task, Cell(first, layer), Cell(second, layer))}
                for task in self.tasks
                for layer in sorted({*self.layers_of(first)} & {*self.layers_of(second)})]
        table = pd.DataFrame(rows)
        if len(table):
            table["p"] = holm(table["p"])
            table["significant"] = table["p"] < ALPHA
        return table

    # -- where and when ----------------------------------------------------------------------

    @cached_property
    def centres(self) -> pd.DataFrame:
        """A row per task and checkpoint with a mix: the expected layer with its interval (None where
        the gain over layer 0 is not significant), and the centre of gravity of the mix's shares."""
        rows = []
        for task in self.tasks:
            for name in self._subjects:
                table = self._table(task, name, True)
                if table.empty:
                    continue
                last = int(table["layer"].max())
                accuracy, draws = self.draws(task, [Cell(name, layer, True)
                                                    for layer in range(last + 1)])
                found, whole = expected_layer(accuracy, draws), table[table["layer"] == last]
                rows.append({"task": task, "checkpoint": name, "step": self.step(name),
                             "expected_layer": found.value, "low": found.low, "high": found.high,
                             "gain": found.gain, "p": found.p, "centre": whole["centre"].mean(),
                             "centre_sd": whole["centre"].std(ddof=1),
                             "bits_from_uniform": whole["bits_from_uniform"].mean()})
        return _numbers(pd.DataFrame(rows))

    @cached_property
    def onsets(self) -> pd.DataFrame:
        """A row per task and layer: the step at which half of its gain over the training is reached,
        with its interval (None where the gain is not significant), the earliest first.

        ``chosen`` marks the layer that the last checkpoint's *validation* accuracy prefers: the order
        in which tasks are learnt is read from these rows.
        """
        steps = sorted((self.step(name), name) for name in self.checkpoints
                       if self.step(name) is not None)
        rows = []
        for task in self.tasks if len(steps) > 1 else ():
            last = self._table(task, steps[-1][1], False)
            chosen = last.groupby("layer")["valid_accuracy"].mean().idxmax()
            for layer in self.layers_of(steps[-1][1]):
                accuracy, draws = self.draws(task, [Cell(name, layer) for _, name in steps])
                found = onset([step for step, _ in steps], accuracy, draws)
                rows.append({"task": task, "layer": layer, "onset": found.value, "low": found.low,
                             "high": found.high, "gain": found.gain, "p": found.p,
                             "chosen": layer == chosen})
        return _numbers(pd.DataFrame(rows)).sort_values("onset", kind="stable") if rows \
            else pd.DataFrame()

    # -- answers -----------------------------------------------------------------------------

    def answers(self, task: str, checkpoint: str, seed: int | None = None) -> pd.DataFrame:
        """A row per test item: ``item``, ``sentence``, ``type``, ``seen``, ``gold`` and what each
        layer said (``layer_0`` ..., ``mix_0`` ...; ``control_0`` ... whether it was right there).

        Raises:
            BertScopeError: there is no such result.
        """
        key = (checkpoint, task, self.seeds[0] if seed is None else seed)
        if key not in self._answers:
            raise BertScopeError(f"There is no result for {task} on {checkpoint}, seed {key[2]}.")
        return self._answers[key]

    def confusion(self, task: str, cell: Cell) -> pd.DataFrame:
        """How often each gold label (rows) was answered by each label (columns), over all seeds."""
        every = pd.concat([self.answers(task, cell.checkpoint, seed) for seed in self.seeds])
        return pd.crosstab(every["gold"], every[cell.column])

    def errors(self, task: str, cell: Cell, seed: int | None = None) -> pd.DataFrame:
        """Test items that a layer gets wrong: ``sentence`` (number), ``spans``, ``gold``,
        ``answered``. The text is ``tasks[task].sentences[sentence]``."""
        items, answers = self.tasks[task], self.answers(task, cell.checkpoint, seed)
        wrong = answers[answers["gold"] != answers[cell.column]]
        return pd.DataFrame({
            "item": wrong["item"], "sentence": wrong["sentence"],
            "spans": [items.spans[i].tolist() for i in wrong["item"]],
            "gold": wrong["gold"], "answered": wrong[cell.column]}).reset_index(drop=True)


def _numbers(table: pd.DataFrame) -> pd.DataFrame:
    """With nan where an estimate has no value."""
    columns = [name for name in ("expected_layer", "onset", "low", "high") if name in table]
    return table.assign(**{name: table[name].astype(float) for name in columns})
