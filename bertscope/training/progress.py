"""Where a run stands, and how it tells: its position, its sums, its clock and its status."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from bertscope.runs import Run


@dataclass
class Position:
    """Where a run stands: in its steps, its data, its sums and its time. Saved with every state."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # the next batch of the epoch
    tokens: int = 0
    seconds: float = 0.0
    best: float | None = None  # the lowest held-out loss
    waited: int = 0  # evaluations since then
    window: dict[str, float] = field(default_factory=dict)  # sums since the last logged line


class Clock:
    """Seconds of training, those before a resume included."""

    def __init__(self, before: float):
        self.start = time.monotonic() - before

    def seconds(self) -> float:
        return time.monotonic() - self.start


class Window:
    """Sums since the last logged line, kept on the device: reading them each step would stall.

    They are part of the position: a run that is killed and resumed within a window writes the same
    line as one that never stopped.
    """

    def __init__(self, weights: dict[str, float], sums: dict[str, float]):
        self.weights, self.sums = weights, dict(sums)
        self.tokens, self.since, self.rate = 0, time.monotonic(), 0.0

    def add(self, measured: dict, batch) -> None:
        """``measured``: what the loss module answered for ``batch``."""
        for name, (loss, correct) in measured.items():
            sums = {"loss": loss.detach().double(), "count": batch.count(name)}
            if correct is not None:
                sums["correct"] = correct.double()
            for what, value in sums.items():
                self.sums[f"{name}.{what}"] = self.sums.get(f"{name}.{what}", 0.0) + value
        self.tokens += batch.tokens

    def state(self, total) -> dict[str, float]:
        """The sums of all processes, for the position."""
        keys = sorted(self.sums)
        values = torch.tensor([float(self.sums[key]) for key in keys], dtype=torch.float64)
        return dict(zip(keys, total(values).tolist())) if keys else {}

    @contextmanager
    def paused(self):
        """Time spent on evaluation and saving is not training speed."""
        start = time.monotonic()
        yield
        self.since += time.monotonic() - start

    def line(self, total) -> dict[str, float]:
        """Means over the window and over all processes; begins a new window.

        ``total`` adds a float64 tensor up over the processes.
        """
        keys = sorted(self.sums)
        values = torch.tensor([*(float(self.sums[k]) for k in keys), float(self.tokens)],
                              dtype=torch.float64)
        *values, tokens = total(values).tolist()
        now = time.monotonic()
        self.rate = tokens / max(now - self.since, 1e-9)
        self.sums, self.tokens, self.since = {}, 0, now
        return means(dict(zip(keys, values)), self.weights)


def means(sums: dict[str, float], weights: dict[str, float]) -> dict[str, float]:
    """``loss`` (weighted), and for each objective ``<name>_loss`` (nats) and ``<name>_accuracy``."""
    line = {"loss": 0.0}
    for name, weight in weights.items():
        count = max(sums.get(f"{name}.count", 0.0), 1.0)
        line[f"{name}_loss"] = sums.get(f"{name}.loss", 0.0) / count
        if f"{name}.correct" in sums:  # a number that is predicted is never just right
            line[f"{name}_accuracy"] = sums[f"{name}.correct"] / count
        line["loss"] += weight * line[f"{name}_loss"]
    if "rtd" in weights:  # what calling every piece original would reach: the wrong guesses are few
        wrong = sums.get("mlm.count", 0.0) - sums.get("mlm.correct", 0.0)
        line["rtd_majority"] = 1.0 - wrong / max(sums.get("rtd.count", 0.0), 1.0)
    return line


class StatusWriter:
    """Keeps ``status.json`` fresh, at most twice a second.

    The time left is told after ten seconds: the first step is far slower than all others, and would have a
    training of minutes take hours."""

    settled = 10.0  # seconds

    def __init__(self, run: Run, enabled: bool):
        self.run, self.enabled, self.last = run, enabled, 0.0

    def _due(self) -> bool:
        now = time.monotonic()
        if not self.enabled or now - self.last < 0.5:
            return False
        self.last = now
        return True

    def preparing(self, message: str, fraction: float | None) -> None:
        if self._due():
            self.run.write_status(state="preparing", message=message, fraction=fraction)

    def training(self, step: int, total: int, done: float, seconds: float, rate: float) -> None:
        if self._due():
            self.run.write_status(
                state="training", step=step, total=total, message="", fraction=min(done, 1.0),
                seconds=seconds, tokens_per_second=rate,
                eta_seconds=seconds * (1 - done) / done if done > 0 and seconds >= self.settled else None)
