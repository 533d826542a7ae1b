"""What a run was fed: the real examples of any step, made again from (seed, epoch, index).

Nothing of this was stored. The trainer's batches are a pure function of the configuration, the
corpus and the position, so the trainer's own functions make them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from bertscope.analysis import prepared
from bertscope.analysis.inputs import Made, made
from bertscope.config import RunConfig
from bertscope.corpus.store import TokenStore, split_documents
from bertscope.errors import BertScopeError
from bertscope.objectives import Examples
from bertscope.objectives.examples import STATIC_COPIES
from bertscope.runs import Run
from bertscope.training.data import Phase, phases

Progress = Callable[[str, float | None], None]


@dataclass(frozen=True)
class Stretch:
    """Batches ``first`` to ``end`` (half-open) of one epoch of one phase, all from 0."""

    phase: int
    epoch: int
    first: int
    end: int


@dataclass
class Feed:
    """A run's examples, opened for reading. Batches that were counted are remembered."""

    run: Run
    config: RunConfig
    tokenizer: object
    store: TokenStore
    documents: np.ndarray      # those trained on, ascending int64
    stages: list[Phase]
    processes: int
    _sizes: dict[tuple[int, int], int] = field(default_factory=dict, repr=False)

    @property
    def parts(self) -> int:
        """Micro-batches of one step, over all processes."""
        return self.config.training.accumulation * self.processes

    @property
    def causal(self) -> bool:
        return self.config.recipe == "causal"

    def order(self, phase: int, epoch: int) -> list[np.ndarray]:
        """The batches of an epoch, as the trainer orders them."""
        training = self.config.training
        return self.stages[phase].examples.order(epoch, training.batch_size, training.batch_tokens,
                                                 self.parts)

    def size(self, phase: int, epoch: int) -> int:
        """Batches in an epoch."""
        static = self.config.objective.masking == "static"
        key = phase, epoch % STATIC_COPIES if static else epoch
        if key not in self._sizes:
            self._sizes[key] = len(self.order(phase, epoch))
        return self._sizes[key]

    def stretches(self, after: int, until: int, progress: Progress | None = None,
                  ) -> Iterator[Stretch]:
        """The batches of the steps ``after + 1`` to ``until``, epoch by epoch."""
        begin = 0
        for number, phase in enumerate(self.stages):
            end, epoch, at = min(phase.end, until), 0, begin
            while at < end and end > after:
                if progress:
                    progress(f"epoch {epoch:,}", at / until)
                size = self.size(number, epoch)
                first, last = max(after - at, 0), min(end - at, size)
                if first < last:
                    yield Stretch(number, epoch, int(first), int(last))
                at, epoch = at + size, epoch + 1
            begin = max(begin, phase.end)


@dataclass(frozen=True)
class Fed:
    """The examples of one step.

    ``step`` counts updates from 1: what led from checkpoint ``step - 1`` to checkpoint ``step``.
    ``part`` is the micro-batch (over all processes) that each example was in, from 0.
    """

    step: int
    epoch: int
    batch: int                 # of the epoch, from 0
    batches: int               # in the epoch
    phase: int
    source: Examples
    indices: np.ndarray        # int64 [B]
    part: np.ndarray           # int64 [B]
    rows: list[Made]


def open_feed(run: Run) -> Feed:
    """A run's corpus, tokenizer and examples, as its trainer opened them.

    Raises:
        BertScopeError: the corpus is not prepared yet, is no longer there (``errors.CorpusGone``), or
            is another one.
    """
    config = run.config()
    if run.kind == "finetuning":
        raise BertScopeError(f"Run {run.name!r} was fine-tuned: it was fed examples of its task, not "
                             "masked text. Look at the run it began with.")
    corpus = prepared.of_run(run)
    tokenizer, store = corpus.tokenizer, corpus.store
    documents, _ = split_documents(store.documents, config.corpus.held_out)
    processes = run.config_record().get("processes")
    return Feed(run, config, tokenizer, store, documents, phases(config, store, documents, tokenizer),
                processes if isinstance(processes, int) and processes > 0 else 1)


def steps_done(run: Run) -> int:
    """The last step that the run is known to have made."""
    saved, lines = run.checkpoints(), run.metrics()
    return max([c.step for c in saved[-1:]] + [line["step"] for line in lines[-1:]], default=0)


def fed(feed: Feed, step: int, progress: Progress | None = None) -> Fed:
    """The examples of one step.

    Args:
        progress: told of each epoch that has to be planned to find the step.

    Raises:
        BertScopeError: the step is none.
    """
    if step < 1:
        raise BertScopeError("The first examples are those of step 1: step 0 is the model before any "
                             "training.")
    stretch = next(feed.stretches(step - 1, step, progress))
    order = feed.order(stretch.phase, stretch.epoch)
    indices = order[stretch.first]
    source = feed.stages[stretch.phase].examples
    part = np.repeat(np.arange(feed.parts), len(indices) // feed.parts)
    return Fed(step, stretch.epoch, stretch.first, len(order), stretch.phase, source, indices, part,
               made(source, stretch.epoch, indices))
