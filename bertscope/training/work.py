"""What a run trains, as the loop sees it: pretraining is one ``Work``, fine-tuning the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import torch
from torch import nn

from bertscope.config import TrainingConfig
from bertscope.training.progress import Position

Progress = Callable[[str, float | None], None]
Total = Callable[[torch.Tensor], torch.Tensor]


class Work(Protocol):
    """Data, model and loss of a run, and what is measured and saved of it."""

    training: TrainingConfig     # the loop's settings
    weights: dict[str, float]    # each objective's weight in the loss
    model: nn.Module             # names the parameters
    loss_module: nn.Module       # a batch's ``inputs`` -> {objective: Measured}
    stalled: str                 # what is said of a run that patience ended

    def optimizer(self) -> torch.optim.Optimizer:
        """A group's ``scale``, if it has one, multiplies its learning rate."""

    def batches(self, position: Position, rank: int, processes: int, ahead: bool,
                ) -> Iterator[tuple[int, int, list]]:
        """(epoch, number, micro-batches of this process), for ever, from ``position`` on."""

    def starts_over(self, step: int) -> bool:
        """Whether epochs are counted anew after this step."""

    def evaluate(self, tensors: Callable, total: Total, rank: int, processes: int) -> dict:
        """Held-out numbers, ``eval_loss`` among them; empty where nothing is held out.

        ``tensors`` turns a batch into the loss module's arguments, ``total`` adds a float64 tensor
        up over the processes.
        """

    def judged(self, measured: dict) -> float:
        """The number of an evaluation that patience watches; lower is better."""

    def save(self, folder: Path) -> None:
        """Write the checkpoint, which ``from_pretrained`` opens."""

    def load(self, folder: Path) -> None:
        """Put a checkpoint's weights back.

        Raises:
            ValueError: they are of another model.
        """

    def facts(self) -> dict:
        """What the run's record says beside its settings, when training begins."""
