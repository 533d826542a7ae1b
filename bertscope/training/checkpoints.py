"""What a run leaves on disk: standard checkpoints, and the state that resuming needs.

Nothing is pickled: tensors are safetensors, the rest is JSON.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers.utils import logging as transformers_logging

from bertscope.errors import BertScopeError
from bertscope.runs import Checkpoint, Run


transformers_logging.disable_progress_bar()  # a bar per saved file would drown our own


@dataclass
class Position:
    """Where a run stands: in its steps, its data and its time."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # the next batch of the epoch
    tokens: int = 0
    seconds: float = 0.0


def save_checkpoint(run: Run, step: int, model, tokenizer, metrics: dict) -> None:
    """A directory that ``from_pretrained`` opens, with the step's metrics beside the weights."""
    with run.new_checkpoint(step) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        (folder / "metrics.json").write_text(json.dumps({"step": step, **metrics}), "utf-8")


def save_state(run: Run, position: Position, model, optimizer) -> None:
    """The optimiser's moments, the random state and the position; weights are the checkpoint's."""
    names = {id(p): n for n, p in model.named_parameters()}
    tensors = {"random.cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            tensors[f"{names[id(parameter)]}|{key}"] = value.detach().cpu().contiguous().clone()
    with run.new_state(position.step) as folder:
        save_file(tensors, folder / "optimizer.safetensors")
        (folder / "position.json").write_text(json.dumps(asdict(position)), "utf-8")


def load_state(run: Run, state: Checkpoint, model, optimizer) -> Position:
    """Put weights, moments and random state back; returns where to go on.

    Raises:
        BertScopeError: a file of the state or of its checkpoint is missing or damaged.
    """
    folder = run.checkpoints_path / state.path.name
    try:
        weights = load_file(folder / "model.safetensors")
        tensors = load_file(state.path / "optimizer.safetensors")
        position = Position(**json.loads((state.path / "position.json").read_text("utf-8")))
        missing, unexpected = model.load_state_dict(weights, strict=False)
        if unexpected or set(missing) - set(model.all_tied_weights_keys):
            raise ValueError("other weights than this model's")
        _load_optimizer(tensors, model, optimizer)
    except Exception as error:
        raise BertScopeError(
            f"Run {run.name!r} cannot be resumed from step {state.step}: a saved file is missing "
            f"or damaged ({type(error).__name__}).") from error
    torch.set_rng_state(tensors["random.cpu"])
    if torch.cuda.is_available() and "random.cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random.cuda"])
    return position


def _load_optimizer(tensors: dict[str, torch.Tensor], model, optimizer) -> None:
    for name, parameter in model.named_parameters():
        keys = [k for k in tensors if k.startswith(f"{name}|")]
        if keys:
            optimizer.state[parameter] = {
                k.split("|")[1]: tensors[k].to(parameter.device) for k in keys}
