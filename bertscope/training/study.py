"""Recipes and their options side by side: same text, same budget of pieces, several seeds."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd

from bertscope import runs
from bertscope.config import RECIPES, RunConfig
from bertscope.errors import BertScopeError
from bertscope.presets import defaults

#: What is compared: a recipe, and what is changed in it.
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    **{recipe: (recipe, {}) for recipe in RECIPES},
    "bert, sop": ("bert", {"objective.pairs": "sop"}),
    "bert, no pairs": ("bert", {"objective.pairs": "doc_sentences"}),
    "bert, static": ("bert", {"objective.masking": "static"}),
    "bert, whole words": ("bert", {"objective.mask_unit": "word"}),
}


@dataclass
class Study:
    """Configurations of a comparison; ``configs`` yields each variant with each seed.

    ``batch_tokens`` pieces an update for all, so that pairs and packed text see as many.
    """

    source: str
    steps: int
    seeds: int = 3
    batch_tokens: int = 2048
    names: list[str] = field(default_factory=lambda: list(VARIANTS))
    changes: dict[str, object] = field(default_factory=dict)

    def __post_init__(self):
        unknown = [name for name in self.names if name not in VARIANTS]
        if unknown:
            raise BertScopeError(f"There is no variant {unknown[0]!r}; choose from "
                                 f"{'; '.join(VARIANTS)}.")

    def config(self, name: str, seed: int) -> RunConfig:
        recipe, options = VARIANTS[name]
        return RunConfig().override({
            **defaults(recipe, self.source), "corpus.source": self.source, **options,
            "training.steps": self.steps, "training.seed": seed,
            "training.batch_tokens": self.batch_tokens,
            "training.evaluate_every": self.steps, "training.checkpoint_every": self.steps,
            **self.changes})

    def configs(self):
        for seed in range(self.seeds):
            for name in self.names:
                yield name, seed, self.config(name, seed)


def train_all(study: Study, said: Callable[[str], None] = print) -> dict[tuple[str, int], runs.Run]:
    """Train what isn't trained yet; a study that was interrupted goes on where it stood."""
    from bertscope.training.loop import train

    made = {}
    for name, seed, config in study.configs():
        run = _run(study, name, seed, config)
        if run.status()["state"] != "finished":
            said(f"{name}, seed {seed}: {run.name}")
            train(run)
            if run.status()["state"] == "stopped":
                raise BertScopeError("The study was stopped; the same command goes on with it.")
        made[name, seed] = run
    return made


def _run(study: Study, name: str, seed: int, config: RunConfig) -> runs.Run:
    """The run of this configuration, made where it is missing."""
    stem = f"study-{runs.free_stem(study.source)}-{runs.free_stem(name)}-{study.steps}-{seed}"
    run = runs.Run(runs.runs_root() / stem)
    if not run.exists():
        return runs.create_run(stem, config)
    if run.config() != config:
        raise BertScopeError(f"Run {stem!r} has another configuration; remove it or choose other "
                             "steps.")
    return run


def results(made: dict[tuple[str, int], runs.Run], probe: Callable[[runs.Run], float] | None = None,
            ) -> pd.DataFrame:
    """One row a run: ``variant``, ``seed``, its held-out numbers, ``tokens``, ``seconds`` and, with
    ``probe``, ``probe``."""
    rows = []
    for (name, seed), run in made.items():
        lines = run.metrics()
        last = next(line for line in reversed(lines) if "eval_loss" in line)
        row = {"variant": name, "seed": seed,
               **{key.removeprefix("eval_"): value for key, value in last.items()
                  if key.startswith("eval_")},
               "tokens": max(line.get("tokens", 0) for line in lines),
               "seconds": run.status().get("seconds", 0.0),
               "parameters": run.config_record()["parameters"]}
        if probe:
            row["probe"] = probe(run)
        rows.append(row)
    return pd.DataFrame(rows)


#: Columns of the table, in their order: title, key, form.
COLUMNS = (("MLM accuracy", "mlm_accuracy", "{:.3f}"), ("MLM loss", "mlm_loss", "{:.2f}"),
           ("next word", "clm_accuracy", "{:.3f}"), ("NSP", "nsp_accuracy", "{:.3f}"),
           ("SOP", "sop_accuracy", "{:.3f}"), ("RTD", "rtd_accuracy", "{:.3f}"),
           ("probe", "probe", "{:.3f}"), ("seconds", "seconds", "{:.0f}"))


def table(frame: pd.DataFrame) -> str:
    """Mean and sample standard deviation over the seeds of each variant, as Markdown."""
    shown = [column for column in COLUMNS if column[1] in frame and frame[column[1]].notna().any()]
    lines = ["| variant | parameters | " + " | ".join(title for title, _, _ in shown) + " |",
             "|---|---:|" + "---:|" * len(shown)]
    for name, group in frame.groupby("variant", sort=False):
        cells = [_spread(group[key].dropna().tolist(), form) for _, key, form in shown]
        lines.append(f"| {name} | {int(group['parameters'].iloc[0]):,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _spread(values: list[float], form: str) -> str:
    if not values:
        return ""
    mean = form.format(statistics.fmean(values))
    return f"{mean} ± {form.format(statistics.stdev(values))}" if len(values) > 1 else mean
