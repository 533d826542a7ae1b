"""The batches of a run, in order, from any position on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from bertscope.config import RunConfig
from bertscope.objectives import Batch, Examples
from bertscope.training.progress import Position


@dataclass(frozen=True)
class Phase:
    """A part of the training with examples of one length, up to the step ``end``."""

    examples: Examples
    end: float


def phases(config: RunConfig, store, documents, tokenizer) -> list[Phase]:
    """One phase, or two where short examples come first (Devlin et al. 2019, appendix A.2)."""
    training, objective = config.training, config.objective

    def examples(objective) -> Examples:
        return Examples(store, documents, tokenizer, objective, training.seed)

    whole = Phase(examples(objective), float("inf"))
    if training.short_length is None:
        return [whole]
    short = examples(replace(objective, max_length=training.short_length))
    return [Phase(short, round(training.short_share * training.steps)), whole]


def batches(stages: list[Phase], position: Position, config: RunConfig, rank: int, processes: int,
            ahead: bool = False) -> Iterator[tuple[int, int, list[Batch]]]:
    """Yield (epoch, number, micro-batches of this process), for ever, from ``position`` on.

    With ``ahead`` the next update's batches are made while the device computes the present one; a
    CPU has no time to spare for that, and two threads would only wait for each other. A new phase
    begins with its epoch 0.
    """
    training = config.training

    def produce():
        step, epoch, first = position.step, position.epoch, position.batch
        for phase in stages:
            if step >= phase.end:
                continue
            while step < phase.end:
                order = phase.examples.order(epoch, training.batch_size, training.batch_tokens,
                                             training.accumulation * processes)
                for number in range(first, len(order)):
                    mine = order[number].reshape(training.accumulation, processes, -1)[:, rank]
                    yield epoch, number, [phase.examples.batch(epoch, rows) for rows in mine]
                    step += 1
                    if step >= phase.end:
                        break
                epoch, first = epoch + 1, 0
            epoch = 0

    return read_ahead(produce()) if ahead else produce()


def read_ahead(produced: Iterator) -> Iterator:
    """The same, each made in a thread while the one before is being used. For endless iterators."""
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(next, produced)
        while True:
            ready = pending.result()
            pending = pool.submit(next, produced)
            yield ready
