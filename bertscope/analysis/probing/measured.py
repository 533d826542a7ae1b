"""What was measured: task × layer × step × seed, the answers to the test items, and comparisons of them.

``scores`` has a row for each of these and for each mix of layers. Intervals and corrected comparisons
(``uncertainty``) are made of the answers; the tables of a ``result.Result`` are made of both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from bertscope.analysis.probing.cell import Cell
from bertscope.analysis.probing.items import Items
from bertscope.analysis.probing.protocol import Protocol
from bertscope.analysis.probing.uncertainty import (
    ALPHA, Compared, compare, holm, resampled, resamples_for)
from bertscope.analysis.probing.unit import Unit
from bertscope.errors import BertScopeError


@dataclass
class Measured:
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

    @property
    def subjects(self) -> list[str]:
        """The checkpoints and the random weights."""
        return list(self._subjects)

    def weights(self, checkpoint: str) -> str:
        """``"trained"`` or ``"random"``."""
        return self._subjects[checkpoint][1]

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

    def table(self, task: str, checkpoint: str, mix: bool) -> pd.DataFrame:
        """The rows of ``scores`` of one task and checkpoint."""
        every = self.scores
        return every[(every["task"] == task) & (every["checkpoint"] == checkpoint)
                     & (every["mix"] == mix)]

    # -- comparisons -------------------------------------------------------------------------

    def draws(self, task: str, cells: list[Cell]) -> tuple[np.ndarray, np.ndarray]:
        """Accuracy ``[cells]`` and resampled accuracies ``[cells, resamples]``, all on the same items.

        Checkpoints whose tokenizers leave out different words are compared on what they share.
        Of few sentences the resampled ones are farther apart, of fewer than ``uncertainty.FEWEST`` nan.
        """
        key = (task, tuple(cells))
        if key not in self._drawn:
            self._drawn[key] = resampled(*self.correct(task, cells), resamples_for(
                len({cell.layer for cell in self._cells(task)})))
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

    def sentences_tested(self, task: str) -> int:
        """How many sentences the test items are of that every checkpoint has a vector for."""
        answers = next(found for (_, of, _), found in self._answers.items() if of == task)
        return answers[answers["item"].isin(self._shared(task))]["sentence"].nunique()

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
                for layer in sorted(set(self.table(task, name, False)["layer"]))]

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
