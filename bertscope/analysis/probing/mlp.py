"""A probe with one hidden layer, for what is there but not linearly so.

Words -> H' rectified units -> labels (the MLP-1 of Hewitt and Liang 2019). It learns a control task
far better than a linear probe does: read its accuracy beside its selectivity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bertscope.analysis.probing.classifier import Scaler

HIDDEN = 100
#: Adam's, items a step at most, passes over the training part at most, and passes without a better
#: validation loss after which the training of all ends.
RATE, BATCH, EPOCHS, PATIENCE = 1e-3, 128, 40, 4
#: Steps a pass at least: of few items a step takes fewer.
STEPS = 16
#: Shares by which all weights shrink, per unit of the learning rate: chosen on validation.
DECAYS = (0.0, 1.0, 10.0)


@dataclass(frozen=True)
class FittedMLP:
    """The network that was best on the validation part; ``C`` is 1 / its decay."""

    scaler: Scaler
    layers: tuple[np.ndarray, ...]   # float32 [H+1, H'], [H'+1, classes]; biases in the last rows
    classes: np.ndarray              # int [classes], the label number of each output
    decay: float
    valid_accuracy: float
    iterations: int                  # passes until the best one
    converged: bool                  # ended since validation got no better

    @property
    def C(self) -> float:
        return 1 / self.decay if self.decay else float("inf")

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Label numbers ``[words]`` of raw features ``[words, H]``."""
        first, second = self.layers
        hidden = np.maximum(self.scaler.transform(features) @ first[:-1] + first[-1], 0)
        return self.classes[(hidden @ second[:-1] + second[-1]).argmax(axis=1)]


def fit(train: np.ndarray, train_labels: np.ndarray, valid: np.ndarray, valid_labels: np.ndarray,
        decays: Sequence[float] = DECAYS, seed: int = 0, check: Callable[[], None] | None = None,
        ) -> FittedMLP:
    """Train one network per decay, keep the one with the lowest validation loss.

    The networks see the same batches and begin with the same weights, which ``seed`` decides.
    Each is taken as it was after the pass that was best on the validation part.

    Args:
        train, valid: features ``[words, H]``.
        train_labels, valid_labels: int ``[words]``. Validation labels that training lacks are left
            out of the choice and count as wrong.
        check: called before each pass; what it raises ends the work.
    """
    scaler = Scaler.fit(train)
    classes, y = np.unique(train_labels, return_inverse=True)
    known = np.isin(valid_labels, classes)
    valid_y = np.searchsorted(classes, valid_labels[known])
    held_out = scaler.transform(valid)[known]
    networks = _Networks(train.shape[1], len(classes), decays, seed)
    epochs = networks.train(scaler.transform(train), y, held_out, valid_y, seed, check)
    best = int(np.argmin(networks.best_loss))
    scores = networks.scores(networks.tensor(held_out), networks.best)[best]
    right = float((scores.argmax(-1).cpu().numpy() == valid_y).sum())
    return FittedMLP(scaler, tuple(w[best].cpu().numpy() for w in networks.best), classes,
                     float(decays[best]), right / max(1, len(valid_labels)),
                     int(networks.best_epoch[best]), epochs < EPOCHS)


class _Networks:
    """D networks that differ in their decay, trained together."""

    def __init__(self, size: int, classes: int, decays: Sequence[float], seed: int):
        generator = torch.Generator().manual_seed(seed)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        shapes = ((size, HIDDEN), (HIDDEN, classes))
        made = [torch.cat([torch.randn(shape, generator=generator) * (2 / shape[0]) ** 0.5,
                           torch.zeros(1, shape[1])]) for shape in shapes]
        self.weights = [w.repeat(len(decays), 1, 1).to(self.device).requires_grad_() for w in made]
        self.decays = torch.tensor(decays, device=self.device)[:, None, None]
        self.best = [w.detach().clone() for w in self.weights]
        self.best_loss = np.full(len(decays), np.inf)
        self.best_epoch = np.zeros(len(decays), int)

    def tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def scores(self, x: torch.Tensor, weights) -> torch.Tensor:
        """[D, n, K] for x [n, H]."""
        for place, w in enumerate(weights):
            x = torch.baddbmm(w[:, -1:], x.expand(len(w), *x.shape[-2:]), w[:, :-1])
            x = x.relu() if place + 1 < len(weights) else x
        return x

    def train(self, x, y, held_out, valid_y, seed: int, check) -> int:
        """Train until no network gets better; returns the passes made."""
        x, y, held_out, valid_y = map(self.tensor, (x, y, held_out, valid_y))
        optimiser = torch.optim.Adam(self.weights, lr=RATE)
        order = torch.Generator().manual_seed(seed)
        size = max(1, min(BATCH, len(y) // STEPS))
        for epoch in range(1, EPOCHS + 1):
            if check:
                check()
            for batch in torch.randperm(len(y), generator=order).to(self.device).split(size):
                self._step(optimiser, x[batch], y[batch])
            self._keep_best(epoch, held_out, valid_y)
            if epoch - self.best_epoch.max() >= PATIENCE:
                return epoch
        return EPOCHS

    def _step(self, optimiser, x: torch.Tensor, y: torch.Tensor) -> None:
        with torch.enable_grad():
            scores = self.scores(x, self.weights)
            loss = torch.nn.functional.cross_entropy(
                scores.flatten(0, 1), y.repeat(len(scores)), reduction="sum") / len(y)
        for w, gradient in zip(self.weights, torch.autograd.grad(loss, self.weights), strict=True):
            w.grad = gradient
        with torch.no_grad():
            for w in self.weights:
                w[:, :-1] *= 1 - RATE * self.decays
        optimiser.step()

    def _keep_best(self, epoch: int, held_out: torch.Tensor, valid_y: torch.Tensor) -> None:
        with torch.no_grad():
            scores = self.scores(held_out, self.weights).log_softmax(-1)
        index = valid_y.expand(len(scores), -1)[..., None]
        losses = -scores.gather(2, index).mean((1, 2)).cpu().numpy() if len(valid_y) else \
            np.full(len(scores), -float(epoch))
        for number in np.flatnonzero(losses < self.best_loss):
            self.best_loss[number], self.best_epoch[number] = losses[number], epoch
            for best, w in zip(self.best, self.weights, strict=True):
                best[number] = w[number].detach()


class MLPCoder:
    """Codes labels with networks, one for each decay; the last tenth of what is known stops them.

    Labels that were not sent yet must stay possible: a probability p is sent as
    (t p + 1) / (t + K) after t items, Laplace's rule with the network in place of the frequencies.
    """

    def __init__(self, features: np.ndarray, labels: np.ndarray, classes: int,
                 decays: Sequence[float] = DECAYS, seed: int = 0,
                 check: Callable[[], None] | None = None):
        self._x, self._y, self._classes = features, np.asarray(labels, np.int64), classes
        self._decays, self._seed, self._check = decays, seed, check

    def __call__(self, known: int, end: int) -> np.ndarray:
        """Bits of the labels ``known`` to ``end`` under each decay, float64 [D]."""
        fitted = known - known // 10
        networks = _Networks(self._x.shape[1], self._classes, self._decays, self._seed)
        networks.train(self._x[:fitted], self._y[:fitted], self._x[fitted:known],
                       self._y[fitted:known], self._seed, self._check)
        with torch.no_grad():
            scores = networks.scores(networks.tensor(self._x[known:end]), networks.best)
            p = scores.softmax(-1).double().cpu().numpy()
        chosen = np.take_along_axis(p, self._y[None, known:end, None], axis=2)[..., 0]
        return -np.log2((known * chosen + 1) / (known + self._classes)).sum(axis=1)
