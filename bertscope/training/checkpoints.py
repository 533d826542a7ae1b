"""What a run leaves on disk: standard checkpoints, and the state that resuming needs.

Nothing is pickled: tensors are safetensors, the rest is JSON. Every folder is sealed with the
digests of its files. Random numbers are not saved: they are keyed by seed, step and process.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from transformers.utils import logging as transformers_logging

from bertscope.durable import damage, seal
from bertscope.errors import BertScopeError
from bertscope.models.build import parts
from bertscope.runs import Checkpoint, Run
from bertscope.training.progress import Position
from bertscope.training.work import Work

transformers_logging.disable_progress_bar()  # a bar per saved file would drown our own


def save(run: Run, position: Position, work: Work, optimizer, metrics: dict) -> None:
    """A checkpoint that ``from_pretrained`` opens, and the state to go on from it.

    Raises:
        BertScopeError: the disk took it not; every earlier checkpoint is whole.
    """
    with _disk_named(position.step):
        with run.new_checkpoint(position.step) as folder:
            work.save(folder)
            (folder / "metrics.json").write_text(
                json.dumps({"step": position.step, **metrics}), "utf-8")
            seal(folder)
        with run.new_state(position.step) as folder:
            save_file(_moments(work.model, optimizer), folder / "optimizer.safetensors")
            (folder / "position.json").write_text(json.dumps(asdict(position)), "utf-8")
            seal(folder)


@contextmanager
def _disk_named(step: int):
    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = os.strerror(error.errno) if getattr(error, "errno", None) else str(error)
        raise BertScopeError(f"Step {step} could not be saved ({reason}); the checkpoints before "
                             "it are whole, and the run can be resumed from the last one.") from error


def load(run: Run, state: Checkpoint, work: Work, optimizer) -> Position:
    """Put weights and moments back; returns where to go on.

    Raises:
        BertScopeError: a file of the state or of its checkpoint is missing or damaged. The
            sentence names it, and the state before it where that one is whole.
    """
    folder = run.checkpoints_path / state.path.name
    try:
        _require_whole(state.path)
        _require_whole(folder)
        position = Position(**json.loads((state.path / "position.json").read_text("utf-8")))
        work.load(folder)
        _put_moments(load_file(state.path / "optimizer.safetensors"), work.model, optimizer)
    except Exception as error:
        raise BertScopeError(f"Run {run.name!r} cannot be resumed from step {state.step}: a saved "
                             f"file is missing or damaged ({error}). {_way_out(run, state)}"
                             ) from error
    return position


def load_weights(model: nn.Module, folder: Path) -> None:
    """The weights of a checkpoint folder into a model of its shape.

    Raises:
        ValueError: they are of another model.
    """
    for name, part in parts(model).items():
        missing, unexpected = part.load_state_dict(load_file(folder / name / "model.safetensors"),
                                                   strict=False)
        if unexpected or set(missing) - set(part.all_tied_weights_keys):
            raise ValueError("other weights than this model's")


def _require_whole(folder: Path) -> None:
    if file := damage(folder):
        raise ValueError(f"{folder.parent.name}/{folder.name}/{file}")


def _way_out(run: Run, state: Checkpoint) -> str:
    for before in reversed(run.states()):
        weights = run.checkpoints_path / before.path.name
        if before.step < state.step and weights.is_dir() and not damage(before.path) \
                and not damage(weights):
            return (f"Step {before.step} is whole: bertscope train --resume {run.name} "
                    f"--from-step {before.step}")
    return "No earlier state of it is whole; a new run can begin with --init-from a checkpoint."


def _moments(model: nn.Module, optimizer) -> dict:
    names = {id(p): n for n, p in model.named_parameters()}
    return {f"{names[id(parameter)]}|{key}": value.detach().cpu().contiguous().clone()
            for parameter, state in optimizer.state.items() for key, value in state.items()}


def _put_moments(tensors: dict, model: nn.Module, optimizer) -> None:
    for name, parameter in model.named_parameters():
        keys = [k for k in tensors if k.startswith(f"{name}|")]
        if keys:
            optimizer.state[parameter] = {
                k.split("|")[1]: tensors[k].to(parameter.device) for k in keys}
