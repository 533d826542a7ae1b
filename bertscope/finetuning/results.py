"""What a fine-tuned run has come to: its best checkpoint, and once its test part."""

from __future__ import annotations

import math
import shutil
import time

import pandas as pd

from bertscope.errors import BertScopeError
from bertscope.finetuning.data import Dataset, read
from bertscope.runs import Checkpoint, Run


def metric_of(run: Run) -> str:
    """The metric by which the run's checkpoints are judged."""
    return str(run.config_record().get("metric", "accuracy"))


def data_of(run: Run) -> Dataset:
    """The examples that the run was trained on, read again.

    Raises:
        BertScopeError: they cannot be read, or are others by now.
    """
    settings = run.settings()
    data = read(settings.data, settings.training.seed)
    known = run.config_record().get("data", {}).get("fingerprint")
    if known not in (None, data.fingerprint):
        raise BertScopeError(f"The examples of {data.name} are no longer those that run "
                             f"{run.name!r} was trained on.")
    return data


def labelled_texts(run: Run, most: int) -> pd.DataFrame:
    """The texts of a run about single sentences, those that it was not trained on first, the test part
    not at all: ``text``, ``label``, ``part``.

    Raises:
        BertScopeError: as ``data_of``, or the task is another one.
    """
    data = data_of(run)
    if data.task != "sentence":
        raise BertScopeError(f"Run {run.name!r} is not about single sentences.")
    rows = [(e.text, e.label, part) for part in ("valid", "train") for e in getattr(data, part)]
    return pd.DataFrame(rows[:most], columns=["text", "label", "part"])


def best(run: Run) -> tuple[Checkpoint, dict]:
    """The checkpoint with the best validation metric, the earliest of equals, and its numbers.

    Raises:
        BertScopeError: there is none yet.
    """
    saved, key = {c.step: c for c in run.checkpoints()}, f"eval_{metric_of(run)}"
    measured = [line for line in run.metrics()
                if line["step"] in saved and isinstance(line.get(key), (int, float))]
    if not measured:
        raise BertScopeError(f"Run {run.name!r} has no measured checkpoint yet.")
    line = max(measured, key=lambda line: (line[key] if math.isfinite(line[key]) else -math.inf,
                                           -line["step"]))
    return saved[line["step"]], line


def test(run: Run) -> dict:
    """The test part's metrics by the best checkpoint: measured once, then read.

    Raises:
        BertScopeError: the run has not ended, there is no test part, or it cannot be read.
    """
    if (known := run.test_result()) is not None:
        return known
    if run.status()["state"] != "finished":
        raise BertScopeError(f"Run {run.name!r} is not finished: the test part is looked at once, at "
                             "the end.")
    from bertscope.finetuning.outcome import outcome
    from bertscope.finetuning.predict import open_finetuned

    data = data_of(run)
    if not data.test:
        raise BertScopeError(f"{data.name} has no test part.")
    checkpoint, _ = best(run)
    result = {"step": checkpoint.step, "examples": len(data.test), "at": time.time(),
              **outcome(open_finetuned(checkpoint.path), data, "test").metrics}
    run.write_test_result(result)
    return result


def prune(run: Run) -> None:
    """Of a finished run keep the first, the best and the last checkpoint: a sweep has many runs."""
    saved = run.checkpoints()
    kept = {best(run)[0].step, saved[0].step, saved[-1].step}
    for checkpoint in saved:
        if checkpoint.step not in kept:
            shutil.rmtree(checkpoint.path, ignore_errors=True)
    shutil.rmtree(run.state_path, ignore_errors=True)
