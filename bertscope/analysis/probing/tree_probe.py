"""The linear maps of the structural probe (Hewitt and Manning 2019, sections 2 and 3).

A matrix B [rank, H] is learnt such that |B(h_i - h_j)|^2 is the number of edges between two words of
the dependency tree, another such that |B h_i|^2 is a word's depth.

Departures from the authors' code, none of which changes what can be expressed: vectors are divided by
one number per layer, B begins at the scale at which predictions have the right mean (their fixed
scale fails for vectors of other sizes), a batch holds sentences of like length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

#: Adam's first step size; divided by ten whenever an epoch brings nothing on the validation part.
RATE, DECAY, SMALLEST_RATE = 1e-3, 0.1, 1e-7
#: Sentences in a batch, and as many epochs without a better validation loss end the training.
BATCH, PATIENCE = 20, 5
#: A loss is better if it is lower by this.
BETTER = 1e-4
#: Few sentences are gone through more often than asked, until there are so many steps.
FEWEST_STEPS = 2000


@dataclass(frozen=True)
class Map:
    """``B`` float32 [rank, H], for vectors divided by ``scale``."""

    B: np.ndarray
    scale: float
    valid_loss: float
    epochs: int

    def distances(self, vectors: np.ndarray) -> np.ndarray:
        """Squared distances float64 [words, words] of vectors [words, H]."""
        projected = self._project(vectors)
        squares = (projected ** 2).sum(1)
        found = squares[:, None] + squares[None] - 2 * projected @ projected.T
        return np.maximum((found + found.T) / 2, 0.0)

    def depths(self, vectors: np.ndarray) -> np.ndarray:
        """Squared lengths float64 [words]."""
        return (self._project(vectors) ** 2).sum(1)

    def _project(self, vectors: np.ndarray) -> np.ndarray:
        return (vectors.astype(np.float64) / self.scale) @ self.B.T.astype(np.float64)


@dataclass(frozen=True)
class Example:
    """A sentence: ``vectors`` float [words, H] and what they should tell, ``targets`` int
    [words, words] (distances) or [words] (depths)."""

    vectors: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True)
class _Padded:
    vectors: torch.Tensor    # [B, T, H]
    targets: torch.Tensor    # [B, T, T] or [B, T]
    weights: torch.Tensor    # the same shape: 1 / (entries of the sentence * sentences), 0 = padding


def fit(train: Sequence[Example], valid: Sequence[Example], rank: int, epochs: int, seed: int = 0,
        check: Callable[[float], None] | None = None) -> Map:
    """Minimise the mean over sentences of the mean absolute error over their entries (equation 2:
    for distances 1/|s|^2 times the sum over pairs).

    The best epoch by the loss on the validation part is kept.

    Args:
        train, valid: one sentence or more of two words or more each.
        check: called before each epoch with the share of the epochs that are done; what it raises
            ends the work.
    """
    size = train[0].vectors.shape[1]
    everything = np.concatenate([example.vectors for example in train]).astype(np.float64)
    scale = float(np.sqrt(np.mean((everything - everything.mean(0)) ** 2))) or 1.0
    batches, held_out = _batches(train, scale), _batches(valid, scale)
    generator = torch.Generator().manual_seed(seed)
    B = torch.rand(min(rank, size), size, generator=generator) - 0.5
    B = (B * _first_scale(B, batches)).requires_grad_()
    optimiser = torch.optim.Adam([B], lr=RATE)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimiser, factor=DECAY, patience=0, threshold=BETTER, threshold_mode="abs")
    best, lowest, at, epoch = B.detach().clone(), _loss(B, held_out), 0, 0
    epochs = most_epochs(epochs, len(train))
    while epoch < epochs and epoch < at + PATIENCE and optimiser.param_groups[0]["lr"] > SMALLEST_RATE:
        if check:
            check(epoch / epochs)
        epoch += 1
        for place in torch.randperm(len(batches), generator=generator).tolist():
            optimiser.zero_grad()
            _error(B, batches[place]).backward()
            optimiser.step()
        loss = _loss(B, held_out)
        schedule.step(loss)
        if loss < lowest - BETTER:
            best, lowest, at = B.detach().clone(), loss, epoch
    return Map(best.numpy(), scale, lowest, at)


def most_epochs(asked: int, sentences: int) -> int:
    """Few sentences are gone through more often than asked."""
    return max(asked, -(-FEWEST_STEPS // -(-sentences // BATCH)))


def _batches(examples: Sequence[Example], scale: float) -> list[_Padded]:
    order = sorted(examples, key=lambda example: len(example.vectors))
    return [_padded(order[start:start + BATCH], scale) for start in range(0, len(order), BATCH)]


def _padded(examples: Sequence[Example], scale: float) -> _Padded:
    longest = max(len(example.vectors) for example in examples)
    vectors = np.zeros((len(examples), longest, examples[0].vectors.shape[1]), np.float32)
    shape = (len(examples), *[longest] * examples[0].targets.ndim)
    targets, weights = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for row, example in enumerate(examples):
        inside = (row, *map(slice, example.targets.shape))
        vectors[row, :len(example.vectors)] = example.vectors / scale
        targets[inside] = example.targets
        weights[inside] = 1 / (example.targets.size * len(examples))
    return _Padded(*map(torch.from_numpy, (vectors, targets, weights)))


def _predicted(B: torch.Tensor, batch: _Padded) -> torch.Tensor:
    projected = batch.vectors @ B.T
    squares = projected.square().sum(-1)
    if batch.targets.ndim == 2:
        return squares
    return squares[:, :, None] + squares[:, None] - 2 * projected @ projected.transpose(1, 2)


def _error(B: torch.Tensor, batch: _Padded) -> torch.Tensor:
    return ((_predicted(B, batch) - batch.targets).abs() * batch.weights).sum()


@torch.inference_mode()
def _loss(B: torch.Tensor, batches: Sequence[_Padded]) -> float:
    counts = [len(batch.vectors) for batch in batches]
    losses = [float(_error(B, batch)) * count for batch, count in zip(batches, counts, strict=True)]
    return sum(losses) / sum(counts)


def _first_scale(B: torch.Tensor, batches: Sequence[_Padded]) -> float:
    predicted = sum(float((_predicted(B, batch) * batch.weights).sum()) for batch in batches)
    wanted = sum(float((batch.targets * batch.weights).sum()) for batch in batches)
    return (wanted / predicted) ** 0.5 if predicted > 0 and wanted > 0 else 1.0
