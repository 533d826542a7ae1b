"""Many runs of one task: learning rates, seeds, starting points, numbers of training examples.

A learning rate is chosen by its mean over the seeds on the validation part. The test part is looked
at once, at the end, with what was chosen.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from bertscope import runs
from bertscope.errors import BertScopeError
from bertscope.finetuning import results
from bertscope.finetuning.config import FinetuneConfig
from bertscope.finetuning.launch import create, stem, train_new


class Cell(NamedTuple):
    """One run's place in a sweep; ``examples`` None trains on all."""

    start: str
    examples: int | None
    learning_rate: float | None
    seed: int


@dataclass
class Sweep:
    """Every start with every number of examples, learning rate and seed."""

    config: FinetuneConfig
    starts: Sequence[str] = ()
    examples: Sequence[int | None] = ()
    learning_rates: Sequence[float] = ()
    seeds: int = 3

    def __post_init__(self):
        self.config = self.config.settled()  # the same sweep from every folder

    def cells(self) -> Iterator[Cell]:
        for start in self.starts or [self.config.start]:
            for examples in self.examples or [self.config.data.most_train]:
                for rate in self.learning_rates or [self.config.training.learning_rate]:
                    for seed in range(self.seeds):
                        yield Cell(start, examples, rate, seed)

    def config_of(self, cell: Cell) -> FinetuneConfig:
        return self.config.override({
            "start": cell.start, "data.most_train": cell.examples,
            "training.learning_rate": cell.learning_rate, "training.seed": cell.seed})


def name_of(cell: Cell, config: FinetuneConfig) -> str:
    """The same for the same settings: a sweep that is begun again finds its runs."""
    digest = hashlib.sha256(json.dumps(config.to_dict(), sort_keys=True).encode()).hexdigest()[:8]
    size = f"-{cell.examples}" if cell.examples else ""
    rate = f"-{cell.learning_rate:g}" if cell.learning_rate else ""
    return f"{stem(config)[:36].rstrip('-._')}{size}{rate}-{cell.seed}-{digest}"[-64:].lstrip("-._")


def train_all(sweep: Sweep, said: Callable[[str], None] = print) -> dict[Cell, runs.Run]:
    """Train what isn't trained yet, seed after seed, so that after the first one there is something to
    compare; of each run the first, best and last checkpoint are kept.

    Raises:
        BertScopeError: a run cannot be trained, or was stopped: the same sweep then goes on with it.
    """
    made = {}
    for cell in sorted(sweep.cells(), key=lambda cell: cell.seed):
        config = sweep.config_of(cell)
        run = runs.Run(runs.runs_root() / name_of(cell, config))
        if not run.exists() or (not run.checkpoints() and run.status()["state"] == "failed"):
            run = create(config, run.name)
        if run.status()["state"] != "finished":
            said(f"{cell.start}, {cell.examples or 'all'} examples, learning rate "
                 f"{cell.learning_rate or 'default'}, seed {cell.seed}: {run.name}")
            train_new(run)
            if run.status()["state"] == "stopped":
                raise BertScopeError("The sweep was stopped; the same command goes on with it.")
            results.prune(run)
        made[cell] = run
    return {cell: made[cell] for cell in sweep.cells()}


def frame(made: dict[Cell, runs.Run]) -> pd.DataFrame:
    """One row a run: ``start``, ``examples``, ``learning_rate``, ``seed``, ``metric``, ``value``
    (its best on the validation part), ``step``, ``seconds``, ``run``, all its metrics there."""
    rows = []
    for cell, run in made.items():
        record = run.config_record()
        checkpoint, line = results.best(run)
        rows.append({
            "start": cell.start, "examples": record["data"]["train"],
            "learning_rate": record["learning_rate"], "seed": cell.seed,
            "metric": record["metric"], "value": line[f"eval_{record['metric']}"],
            "step": checkpoint.step, "seconds": run.status().get("seconds", 0.0), "run": run.name,
            **{k.removeprefix("eval_"): v for k, v in line.items()
               if k.startswith("eval_") and isinstance(v, float)}})
    return pd.DataFrame(rows)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Each start, number of examples and learning rate: ``mean``, ``sd``, ``seeds``, and the 95 %
    interval of the mean by Student's t, ``low`` and ``high``; ``chosen`` is the learning rate with
    the highest mean."""
    rows = []
    for key, own in table.groupby(["start", "examples", "learning_rate"], sort=False):
        low, high = interval(own["value"].tolist())
        rows.append({**dict(zip(("start", "examples", "learning_rate"), key)),
                     "metric": own["metric"].iloc[0], "mean": own["value"].mean(),
                     "sd": own["value"].std(), "low": low, "high": high, "seeds": len(own),
                     "seconds": own["seconds"].mean()})
    made = pd.DataFrame(rows)
    top = made.groupby(["start", "examples"], sort=False)["mean"].idxmax()
    return made.assign(chosen=made.index.isin(top))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a mean; (mean, mean) of a single value."""
    from scipy.stats import t

    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, mean
    half = t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
    return mean - half, mean + half


def test_chosen(made: dict[Cell, runs.Run], table: pd.DataFrame) -> pd.DataFrame:
    """The test part, once, by the best checkpoint of each run with a chosen learning rate.

    Returns:
        ``start``, ``examples``, ``seed``, ``run`` and the test part's metrics.
    """
    chosen = summary(table)
    chosen = set(map(tuple, chosen[chosen["chosen"]][["start", "examples", "learning_rate"]]
                     .itertuples(index=False)))
    by_name = {run.name: run for run in made.values()}
    rows = []
    for row in table.itertuples():
        if (row.start, row.examples, row.learning_rate) in chosen:
            found = results.test(by_name[row.run])
            rows.append({"start": row.start, "examples": row.examples, "seed": row.seed,
                         "run": row.run, **{k: v for k, v in found.items()
                                            if k not in ("step", "examples", "at")}})
    return pd.DataFrame(rows)


def markdown(table: pd.DataFrame) -> str:
    """The summary as a Markdown table, chosen learning rates in bold."""
    lines = ["| start | training examples | learning rate | validation | seeds |",
             "|---|---:|---:|---:|---:|"]
    for row in summary(table).itertuples():
        value = f"{row.mean:.3f}" + (f" ± {row.sd:.3f}" if row.seeds > 1 else "")
        value = f"**{value}**" if row.chosen else value
        lines.append(f"| {row.start} | {row.examples:,} | {row.learning_rate:g} | {row.metric} {value} "
                     f"| {row.seeds} |")
    return "\n".join(lines)


def milestones(run: runs.Run) -> list[str]:
    """Starting points that tell what pretraining is worth: random weights, an early, a middle and
    the last checkpoint of a run.

    Raises:
        BertScopeError: it has fewer than two checkpoints.
    """
    steps = [checkpoint.step for checkpoint in run.checkpoints()]
    if len(steps) < 2:
        raise BertScopeError(f"Run {run.name!r} has fewer than two checkpoints.")
    last = steps[-1]
    nearest = [min(steps, key=lambda step: abs(step - wanted)) for wanted in (last / 16, last / 2)]
    chosen = [step for step in dict.fromkeys([*nearest, last]) if step > 0]
    return [f"random:{run.name}", *(f"{run.name}@{step}" for step in chosen)]
