"""Make a fine-tuning run; the trainer's loop trains it as any other."""

from __future__ import annotations

import re
from pathlib import Path

from bertscope import runs
from bertscope.finetuning.config import FinetuneConfig


def create(config: FinetuneConfig, name: str | None = None, root: Path | None = None) -> runs.Run:
    """A new run, in state ``preparing``; ``bertscope.training.loop.train`` or
    ``bertscope.launch.start`` does the rest.

    Raises:
        BertScopeError: the name is taken, or there is no checkpoint to begin with.
    """
    from bertscope.finetuning.start import origin

    root = root or runs.runs_root()
    found = origin(config.start, root)
    pretraining = found.pop("pretraining", None)
    return runs.create_run(name or runs.free_name(stem(config), root), config, root,
                           kind="finetuning", pretraining=pretraining,
                           start={"name": config.start, **found})


def stem(config: FinetuneConfig) -> str:
    """``books-400-rte``: what a run is called after."""
    begun = re.sub(r"[:@]", "-", Path(config.start).name if "/" in config.start else config.start)
    data = Path(config.data.source.rstrip("/")).stem
    task = f"-{config.data.task}" if config.data.source == "miniworld" else ""
    return runs.free_stem(f"{begun}-{data}{task}")
