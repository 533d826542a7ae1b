"""Sweeps found among the runs: finished runs that differ only in what a sweep varies."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bertscope.errors import BertScopeError
from bertscope.finetuning.config import FinetuneConfig
from bertscope.finetuning.sweep import Cell
from bertscope.runs import STEP, Run, list_runs


@dataclass(frozen=True)
class Begun:
    """Where a run began: ``family`` is the pretraining run or checkpoint, ``start`` the point of it,
    the same for the same checkpoint however it was named; ``step`` is -1 for random weights, infinite
    for a checkpoint of no run."""

    family: str
    start: str
    step: float

    @property
    def title(self) -> str:
        """In a legend."""
        if self.step < 0:
            return "random weights"
        return f"step {int(self.step):,}" if math.isfinite(self.step) else self.start


@dataclass(frozen=True)
class Gathered:
    """``made`` as ``sweep.train_all`` returns it; ``begun`` says of its starts where they are."""

    config: FinetuneConfig
    family: str
    made: dict[Cell, Run]
    begun: dict[str, Begun]

    @property
    def starts(self) -> list[Begun]:
        """From the least pretrained to the most."""
        return sorted(self.begun.values(), key=lambda begun: (begun.step, begun.start))

    @property
    def created(self) -> float:
        """When its newest run was made."""
        return max(run.created for run in self.made.values())


def begun(run: Run) -> Begun:
    """Where a fine-tuned run began, from its record."""
    record = run.config_record().get("start", {})
    name, path = str(record.get("name", "random")), record.get("path")
    if name.partition(":")[0] == "random":
        family = name.partition(":")[2]
        family = family.rpartition("@")[0] if "@" in family else family
        return Begun(family, f"random:{family}" if family else "random", -1.0)
    step = STEP.fullmatch(Path(str(path)).name)
    if step is None:
        return Begun(name, name, math.inf)
    family = name.rpartition("@")[0] if "@" in name else name
    return Begun(family, f"{family}@{int(step[1])}", float(int(step[1])))


def gather(runs: Iterable[Run] | None = None) -> list[Gathered]:
    """Sweeps with several starts among the runs, the newest first; runs that cannot be read are left
    out."""
    groups: dict[str, Gathered] = {}
    for run in list_runs() if runs is None else runs:
        with suppress(BertScopeError, KeyError, TypeError):
            if run.kind != "finetuning" or run.status()["state"] != "finished" or not run.checkpoints() \
                    or not run.config_record()["data"]["train"]:
                continue
            config, own = run.settings(), begun(run)
            common = config.override({"start": own.family or "random", "data.most_train": None,
                                      "training.learning_rate": None, "training.seed": 0})
            key = json.dumps([own.family, common.to_dict(), run.config_record()["data"].get("name")],
                             sort_keys=True)
            group = groups.setdefault(key, Gathered(common, own.family, {}, {}))
            group.begun.setdefault(own.start, own)
            group.made.setdefault(Cell(own.start, config.data.most_train, config.training.learning_rate,
                                       config.training.seed), run)
    found = [group for group in groups.values() if len(group.begun) > 1]
    return sorted(found, key=lambda group: -group.created)
