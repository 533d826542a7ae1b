"""How often a model had seen each word piece by a step, and how often it had to predict it.

Counted over the very examples that it was fed (``feeding``), before masking: a piece that is hidden
by [MASK] counts as seen in its text. What is counted at a checkpoint is kept beside the run, so a
later step begins there. A run that was fed more than can be counted in some seconds gets an
estimate, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertscope.analysis.cache import cached_frame, kept_frame
from bertscope.analysis.feeding import Feed, Progress, Stretch, open_feed
from bertscope.errors import BertScopeError
from bertscope.runs import Run

#: Pieces that are counted exactly, in about half a minute: on one core 2 to 5 million a second, and
#: half a million where whole words are chosen.
MOST_COUNTED = {"piece": 60_000_000, "word": 15_000_000, "ngram": 15_000_000, "span": 15_000_000}
#: Counts are kept at so many checkpoints of a run at most.
MOST_MARKS = 32
#: Pieces, padding included, that are made at a time.
BLOCK = 400_000
#: Pieces of the corpus that an estimate looks at.
SAMPLE = 1 << 25


@dataclass(frozen=True)
class Exposure:
    """By ``step``, for each piece asked for: int64 arrays of one length.

    ``seen``: its occurrences in the examples' texts. ``target``: how often it was to be predicted.
    ``exact`` is False for an estimate from the corpus's frequencies.
    """

    step: int
    seen: np.ndarray
    target: np.ndarray
    exact: bool

    def of(self, piece_ids: Sequence[int]) -> Exposure:
        """Of some pieces only; a number beyond the vocabulary was never seen."""
        ids = np.asarray(piece_ids, dtype=np.int64).reshape(-1)
        known = (ids >= 0) & (ids < len(self.seen))
        at = np.where(known, ids, 0)
        return Exposure(self.step, np.where(known, self.seen[at], 0),
                        np.where(known, self.target[at], 0), self.exact)


def seen_by(run: Run, piece_ids: Sequence[int], step: int, progress: Progress | None = None,
            ) -> Exposure:
    """How often a run had seen some pieces by a step: arrays of ``len(piece_ids)``.

    Raises:
        BertScopeError: the run's corpus is no longer there.
    """
    return exposure(open_feed(run), step, progress).of(piece_ids)


def exposure(feed: Feed, step: int, progress: Progress | None = None) -> Exposure:
    """The same for the whole vocabulary.

    Raises:
        BertScopeError: the step is below 0.
    """
    if step < 0:
        raise BertScopeError("A run's steps count from 0.")
    if not countable(feed, step):
        return _estimate(feed, step)
    below = [mark for mark in marks(feed.run) if mark <= step]
    at, counts = 0, np.zeros((2, len(feed.tokenizer)), np.int64)
    for mark in reversed(below):  # the last that is known already
        kept = kept_frame(feed.run.analysis_path, "exposure", _key(feed, mark))
        if kept is not None and len(kept) == counts.shape[1]:
            at, counts = mark, kept[["seen", "target"]].to_numpy().T.copy()
            break
    for mark in [m for m in below if m > at] + [step]:
        counts += _counted(feed, at, mark, step, progress)
        at = mark
        if mark in below:
            _keep(feed, mark, counts)
    return Exposure(step, counts[0], counts[1], True)


def over_steps(feed: Feed, piece_ids: Sequence[int], until: int, progress: Progress | None = None,
               ) -> list[Exposure]:
    """How the counts of some pieces grew: at the checkpoints where they are kept, and at ``until``."""
    steps = sorted({0, *(mark for mark in marks(feed.run) if mark <= until), until})
    if countable(feed, until):
        exposure(feed, until, progress)
    return [exposure(feed, step).of(piece_ids) for step in steps]


def marks(run: Run) -> list[int]:
    """The steps of checkpoints at which counts are kept. More are saved as the run goes on: then
    every second one is left out, so that those kept before stay among them."""
    steps = [checkpoint.step for checkpoint in run.checkpoints() if checkpoint.step]
    stride = 1
    while len(steps) > MOST_MARKS * stride:
        stride *= 2
    return steps[stride - 1:: stride]


def countable(feed: Feed, step: int) -> bool:
    """Whether exact counting takes less than about half a minute."""
    planned = len(feed.store.ids)  # an epoch's plan looks at the whole corpus
    return step == 0 or fed_pieces(feed, step) + planned <= \
        MOST_COUNTED[feed.config.objective.mask_unit]


def fed_pieces(feed: Feed, step: int) -> int:
    """Pieces fed by a step, special ones included: from the log, else from the settings."""
    lines = [line for line in feed.run.metrics() if isinstance(line.get("tokens"), int)
             and 0 < line["step"]]
    near = min(lines, key=lambda line: abs(line["step"] - step), default=None)
    if near:
        return round(near["tokens"] / near["step"] * step)
    training = feed.config.training
    each = training.batch_tokens or training.batch_size * feed.config.objective.max_length
    return each * feed.parts * step


def _key(feed: Feed, step: int) -> dict:
    """Everything that decides what was fed by a step."""
    config, training = feed.config, feed.config.training
    return {"step": step, "corpus": feed.store.path.parent.name, "causal": feed.causal,
            "held_out": config.corpus.held_out, "objective": vars(config.objective),
            "processes": feed.processes, "training": [
                training.seed, training.batch_size, training.batch_tokens, training.accumulation,
                training.short_length, training.short_length and round(
                    training.short_share * training.steps)]}


def _keep(feed: Feed, step: int, counts: np.ndarray) -> None:
    import pandas as pd

    cached_frame(feed.run.analysis_path, "exposure", _key(feed, step),
                 lambda: pd.DataFrame({"seen": counts[0], "target": counts[1]}))


def _counted(feed: Feed, after: int, until: int, last: int, progress: Progress | None) -> np.ndarray:
    """Seen and target in the steps ``after + 1`` to ``until``, int64 [2, V]."""
    counts = np.zeros((2, len(feed.tokenizer)), np.int64)
    done = after
    for stretch in feed.stretches(after, until):
        order = feed.order(stretch.phase, stretch.epoch)[stretch.first: stretch.end]
        width = feed.stages[stretch.phase].examples.objective.max_length
        size = max(1, BLOCK // (width * max(map(len, order))))
        for start in range(0, len(order), size):
            block = order[start: start + size]
            counts += _count(feed, stretch, np.concatenate(block))
            done += len(block)
            if progress:
                progress(f"counting, step {done:,} of {last:,}", done / last)
    return counts


def _count(feed: Feed, stretch: Stretch, indices: np.ndarray) -> np.ndarray:
    examples, epoch = feed.stages[stretch.phase].examples, stretch.epoch
    rows = examples.rows(epoch, indices)
    masked = examples.masked(epoch, indices, rows)
    text = rows.source >= 0
    asked = masked.input_ids[text] if feed.causal else masked.labels[masked.labels >= 0]
    return np.stack([np.bincount(ids, minlength=len(feed.tokenizer))
                     for ids in (rows.input_ids[text], asked)])


def _estimate(feed: Feed, step: int) -> Exposure:
    """The corpus's frequencies times the pieces fed: every text is read equally often."""
    ids = feed.store.ids
    parts = max(1, -(-len(ids) // SAMPLE))  # evenly from all over the corpus
    length = min(len(ids), SAMPLE // parts)
    starts = np.linspace(0, len(ids) - length, parts).astype(np.int64)
    counts = sum(np.bincount(ids[start: start + length], minlength=len(feed.tokenizer))
                 for start in starts.tolist())
    objective = feed.config.objective
    paired = objective.pairs in ("nsp", "sop")
    text = fed_pieces(feed, step) * (1 - (3 if paired else 2) / objective.max_length)
    seen = counts / counts.sum() * text
    share = 1.0 if feed.causal else objective.mask_rate
    return Exposure(step, np.rint(seen).astype(np.int64), np.rint(seen * share).astype(np.int64),
                    False)
