"""One optimiser step, and what is kept of a batch at which the numbers went wrong."""

from __future__ import annotations

from contextlib import nullcontext, suppress

import numpy as np
import torch
from accelerate import Accelerator
from safetensors.numpy import save_file

from bertscope.errors import BertScopeError
from bertscope.runs import Run


def update(accelerator: Accelerator, loss_module, optimizer, micro_batches: list,
           weights: dict[str, float], clip: float, total=lambda sums: sums,
           keep_bad=lambda batch: None) -> tuple[list[dict], torch.Tensor]:
    """One optimiser step; returns what was measured, and the gradient's norm before clipping.

    Each objective's summed loss is divided by how much the whole update predicts, over
    micro-batches and processes: a mean of means would weigh short rows more.

    Raises:
        BertScopeError: a loss is no longer a number; ``keep_bad`` was given the batch.
    """
    counts = total(torch.tensor([[batch.count(name) for name in weights]
                                 for batch in micro_batches], dtype=torch.float64).sum(0)).tolist()
    scales = {name: weight / max(count, 1) for (name, weight), count in zip(weights.items(), counts)}
    outputs = []
    for batch in micro_batches:
        last = batch is micro_batches[-1]
        with nullcontext() if last else accelerator.no_sync(loss_module):
            measured = loss_module(**batch_tensors(batch, accelerator.device))
            loss = sum(scales[name] * part.loss for name, part in measured.items())
            if not torch.isfinite(loss):
                raise BertScopeError(_diverged(keep_bad(batch)))
            accelerator.backward(loss * accelerator.num_processes)  # DDP takes the mean of these
        outputs.append(measured)
    norm = accelerator.clip_grad_norm_(loss_module.parameters(), clip or float("inf"))
    optimizer.step()
    optimizer.zero_grad()
    return outputs, norm


def batch_tensors(batch, device) -> dict:
    """A batch's ``inputs`` as the keyword arguments of a loss module, on the device."""
    return {name: None if array is None else torch.from_numpy(array).to(device, non_blocking=True)
            for name, array in batch.inputs.items()}


def keep_bad_batch(run: Run, step: int):
    """A function that saves the batch at which the loss failed, and says where."""
    def keep(batch) -> tuple[int, str]:
        name = f"failed-step-{step:08d}.safetensors"
        arrays = {key: np.ascontiguousarray(value) for key, value in vars(batch).items()
                  if value is not None}
        with suppress(OSError):
            save_file(arrays, run.path / name)
        return step, name

    return keep


def _diverged(kept: tuple[int, str] | None) -> str:
    at, where = (f" at step {kept[0]}", f" Its batch is kept in {kept[1]}.") if kept else ("", "")
    return (f"The loss is no longer a number{at}: the learning rate is probably too high. The "
            f"checkpoints before it are whole.{where}")
