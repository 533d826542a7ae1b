"""Make a fine-tuning run; the trainer's loop trains it as any other."""

from __future__ import annotations

import re
from pathlib import Path

from bertscope import runs
from bertscope.errors import BertScopeError
from bertscope.finetuning.config import FinetuneConfig


def create(config: FinetuneConfig, name: str | None = None, root: Path | None = None) -> runs.Run:
    """A new run, in state ``preparing``; ``bertscope.training.loop.train`` or
    ``bertscope.launch.start`` does the rest.

    Raises:
        BertScopeError: the name is taken, or there is no checkpoint to begin with.
    """
    from bertscope.finetuning.start import origin

    config, root = config.settled(), root or runs.runs_root()
    found = origin(config.start, root)
    pretraining = found.pop("pretraining", None)
    return runs.create_run(name or runs.free_name(stem(config), root), config, root,
                           kind="finetuning", pretraining=pretraining,
                           start={"name": config.start, **found})


def train_new(run: runs.Run) -> None:
    """Train a run that was just made. One that is refused before its first checkpoint is removed:
    there is nothing in it to look at or to go on with.

    Raises:
        BertScopeError: its examples or its checkpoint cannot be used, or training failed.
    """
    from bertscope.training.loop import train

    try:
        train(run)
    except BertScopeError:
        if run.status()["state"] == "failed" and not run.checkpoints():
            run.delete()
        raise


def stem(config: FinetuneConfig) -> str:
    """``books-400-rte``: what a run is called after."""
    begun = re.sub(r"[:@]", "-", Path(config.start).name if "/" in config.start else config.start)
    data = Path(config.data.title).stem
    task = f"-{config.data.task}" if config.data.source == "miniworld" else ""
    return runs.free_stem(f"{begun}-{data}{task}")
