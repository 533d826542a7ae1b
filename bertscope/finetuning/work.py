"""Fine-tuning as the loop's work: examples of a task, a head on an encoder, the task's metrics."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from accelerate import PartialState
from torch import nn

from bertscope.errors import BertScopeError
from bertscope.finetuning import baselines
from bertscope.finetuning.batches import Feature, TaskBatch, by_length, collate, order
from bertscope.finetuning.config import FinetuneConfig, default_learning_rate
from bertscope.finetuning.data import Dataset, read
from bertscope.finetuning.heads import freeze, load_model_weights, logits_of, save_model
from bertscope.finetuning.optimizer import build_optimizer
from bertscope.finetuning.pieces import Cutter
from bertscope.finetuning.start import begin
from bertscope.finetuning.tasks import TaskSpec, build_task
from bertscope.models.heads import Measured
from bertscope.runs import Run
from bertscope.training.data import read_ahead
from bertscope.training.progress import Position
from bertscope.training.work import Progress, Total

#: Rows of a batch where nothing is learnt.
MEASURE = 64


class Finetuning:
    """See :class:`bertscope.training.work.Work`."""

    def __init__(self, run: Run, progress: Progress):
        self.config = config = run.settings()
        progress("reading the examples", 0.0)
        self.data = read(config.data, config.training.seed)
        _require_same(run, self.data)
        self.spec = spec_of(config, self.data)
        progress("opening the checkpoint", 0.3)
        path = run.config_record().get("start", {}).get("path")
        state = run.latest_state()
        with tempfile.TemporaryDirectory(prefix="bertscope-") as scratch:
            if state and path is None:  # its vocabulary was made for it, and is kept with it
                path = str(run.checkpoints_path / state.path.name)
            self.started = begin(config, path, self.data, self.spec, Path(scratch))
        self.model, self.tokenizer = self.started.model, self.started.loaded.tokenizer
        freeze(self.model, config.head)
        if config.training.gradient_checkpointing:
            getattr(self.model, "encoder", self.model).activation_checkpointing_enable()
        progress("cutting the examples into pieces", 0.6)
        self.task = build_task(self.spec, Cutter(self.started.loaded.text_encoder,
                                                 self.tokenizer.unk_token_id, self.spec.max_length))
        self.features = self.task.features(self.data.train)
        self.valid_features = self.task.features(self.data.valid)
        self.lengths = np.array([len(feature) for feature in self.features])
        size = config.training.batch_size * config.training.accumulation \
            * PartialState().num_processes
        self.training = config.training.for_loop(
            -(-len(self.features) // size),
            default_learning_rate(self.model.config.hidden_size))
        self.weights = {self.spec.task: 1.0}
        self.stalled = f"the validation part's {self.task.metric} no longer rose"
        self.loss_module = TaskLoss(self.model, self.task, self._class_weights())

    def _class_weights(self) -> torch.Tensor | None:
        """N / (C n_c): a class as often as the mean weighs 1."""
        if self.config.head.class_weights == "none" or not self.spec.labels:
            return None
        counts = self.task.frequencies(self.data.train)
        return torch.tensor(counts.sum() / (len(counts) * np.maximum(counts, 1)),
                            dtype=torch.float32)

    def optimizer(self) -> torch.optim.Optimizer:
        return build_optimizer(self.model, self.training, self.config.head.layer_decay)

    def batches(self, position: Position, rank: int, processes: int, ahead: bool):
        produced = self._batches(position, rank, processes)
        return read_ahead(produced) if ahead else produced

    def _batches(self, position: Position, rank: int, processes: int,
                 ) -> Iterator[tuple[int, int, list[TaskBatch]]]:
        """Every example once an epoch, whatever the batches."""
        training, epoch, first = self.config.training, position.epoch, position.batch
        while True:
            updates = order(self.lengths, training.batch_size, training.accumulation * processes,
                            (training.seed, epoch))
            for number in range(first, len(updates)):
                mine = updates[number][rank * training.accumulation:][:training.accumulation]
                yield epoch, number, [self._batch(rows) for rows in mine]
            epoch, first = epoch + 1, 0

    def _batch(self, rows: np.ndarray) -> TaskBatch:
        return collate(self.spec.task, [self.features[i] for i in rows], self.tokenizer.pad_token_id)

    def starts_over(self, step: int) -> bool:
        return False

    def evaluate(self, tensors: Callable, total: Total, rank: int, processes: int) -> dict:
        """Every process on all examples: F1 is no sum over shares."""
        self.loss_module.eval()
        logits, sums = measure(self.loss_module, self.valid_features, tensors,
                               self.tokenizer.pad_token_id)
        self.loss_module.train()
        answers = self.task.answers(self.data.valid, self.valid_features, logits)
        loss = sums["loss"] / max(1, sums["count"])
        return {"eval_loss": loss, f"eval_{self.spec.task}_loss": loss,
                **{f"eval_{name}": value for name, value in
                   self.task.metrics(self.data.valid, answers).items()}}

    def judged(self, measured: dict) -> float:
        return -measured[f"eval_{self.task.metric}"]

    def save(self, folder: Path) -> None:
        save_model(self.model, folder)
        self.tokenizer.save_pretrained(folder)
        self.spec.write(folder)

    def load(self, folder: Path) -> None:
        load_model_weights(self.model, folder)

    def facts(self) -> dict:
        data = self.data
        return {
            "task": self.spec.task, "metric": self.task.metric, "labels": list(self.spec.labels),
            "steps": self.training.steps, "learning_rate": self.training.learning_rate,
            "trained_parameters": sum(p.numel() for p in self.model.parameters() if p.requires_grad),
            "encoder": self.started.facts,
            "baselines": baselines.simplest(data, self.task),
            "data": {"name": data.name, "fingerprint": data.fingerprint, "train": len(data.train),
                     "valid": len(data.valid), "test": len(data.test),
                     "train_inputs": len(self.features), "notes": list(data.notes)},
        }


class TaskLoss(nn.Module):
    """The task's loss around its model; ``forward`` takes a ``TaskBatch``'s ``inputs``."""

    def __init__(self, model: nn.Module, task, weight: torch.Tensor | None = None):
        super().__init__()
        self.model, self.task = model, task
        self.register_buffer("weight", weight, persistent=False)
        self.logits = None  # of the last call outside of training

    def forward(self, input_ids, token_type_ids, attention_mask, labels) -> dict[str, Measured]:
        logits = logits_of(self.model, self.task.spec, input_ids, token_type_ids, attention_mask)
        self.logits = None if self.training else logits
        return {self.task.spec.task: self.task.loss(logits, labels, attention_mask, self.weight)}


@torch.no_grad()
def measure(loss_module: TaskLoss, features: Sequence[Feature], tensors: Callable, pad_id: int,
            ) -> tuple[list[np.ndarray], dict[str, float]]:
    """Logits of each feature (those of pieces padded to the batch), and the summed loss and count."""
    task = loss_module.task.spec.task
    found: list = [None] * len(features)
    sums = {"loss": 0.0, "count": 0}
    for rows in by_length(features, MEASURE):
        batch = collate(task, [features[i] for i in rows], pad_id)
        measured = loss_module(**tensors(batch))[task]
        sums["loss"] += float(measured.loss)
        sums["count"] += batch.count(task)
        for row, own in zip(rows, loss_module.logits.float().cpu().numpy()):
            found[row] = own
    return found, sums


def spec_of(config: FinetuneConfig, data: Dataset) -> TaskSpec:
    """What is kept of the task beside the weights."""
    head = config.head
    return TaskSpec(
        data.task, data.labels, head.layer, head.max_length, head.stride, head.longest_answer,
        data.task == "question" and any(not e.answers for e in data.train), head.no_answer_margin)


def _require_same(run: Run, data: Dataset) -> None:
    known = run.config_record().get("data", {}).get("fingerprint")
    if run.states() and known not in (None, data.fingerprint):
        raise BertScopeError(f"Run {run.name!r} cannot be resumed: the examples of {data.name} are "
                             "no longer those it was begun with.")
