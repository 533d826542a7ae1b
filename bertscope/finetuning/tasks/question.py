"""The part of a paragraph that answers a question: its first and its last piece.

Devlin et al. 2019, sections 4.2 and 4.3. A long paragraph is read in overlapping windows; a window
that does not hold the whole answer has [CLS] as its answer, and so has a question without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from bertscope.finetuning import metrics
from bertscope.finetuning.batches import Feature
from bertscope.finetuning.data.examples import Question
from bertscope.finetuning.pieces import Cutter, Pieces
from bertscope.finetuning.tasks.labels import softmax
from bertscope.finetuning.tasks.spec import TaskSpec
from bertscope.models.heads import Measured

#: Spans of a question that its probabilities are over, as in the original's n-best list.
BEST = 20


@dataclass(frozen=True, slots=True)
class Span:
    """``context[start:end]``; ``""`` at (0, 0) for no answer. ``probability`` is among the best
    ``BEST`` spans (and no answer), ``score`` the sum of the two logits."""

    text: str
    start: int
    end: int
    score: float
    probability: float


class QuestionTask:
    """``logits`` are [B, T, 2]: of the first and of the last piece of the answer."""

    metric = "f1"

    def __init__(self, spec: TaskSpec, cutter: Cutter):
        self.spec, self.cutter = spec, cutter

    def features(self, examples: Sequence[Question]) -> list[Feature]:
        """One for each window of a paragraph."""
        room = self.cutter.room(True)
        questions = self.cutter.texts([e.question for e in examples])
        different = list(dict.fromkeys(e.context for e in examples))
        contexts = dict(zip(different, self.cutter.texts(different, whole=True), strict=True))
        made = []
        for number, (example, question) in enumerate(zip(examples, questions, strict=True)):
            asked = question.ids[:room // 2]
            pieces = contexts[example.context]
            answer = span_of(pieces, example) if example.answers else None
            for start, end in windows(len(pieces), room - len(asked), self.spec.stride):
                ids, types, (_, begin) = self.cutter.join(asked, pieces.ids[start:end])
                places = np.full((len(ids), 2), -1)
                places[begin:begin + end - start] = pieces.offsets[start:end]
                inside = answer is not None and start <= answer[0] and answer[1] < end
                label = np.array(answer) - start + begin if inside else np.zeros(2, np.int64)
                made.append(Feature(ids, types, label, number, places))
        return made

    def loss(self, logits: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor | None,
             weight: torch.Tensor | None) -> Measured:
        """Half of the summed cross-entropies of both ends, in nats; right where both are."""
        logits = logits.float()
        if mask is not None:
            logits = logits.masked_fill(mask[:, :, None] == 0, -1e4)
        loss = cross_entropy(logits.transpose(1, 2).flatten(0, 1), labels.flatten(), reduction="sum")
        return Measured(loss / 2, (logits.detach().argmax(1) == labels).all(1).sum())

    def answers(self, examples: Sequence[Question], features: Sequence[Feature],
                logits: Sequence[np.ndarray]) -> list[Span]:
        """The best answer to each question over all its windows."""
        return [spans[0] for spans in self.ranked(examples, features, logits)]

    def ranked(self, examples: Sequence[Question], features: Sequence[Feature],
               logits: Sequence[np.ndarray]) -> list[list[Span]]:
        """The best answers to each question, the one that is given first."""
        found: list[list[tuple[float, int, int]]] = [[] for _ in examples]
        null = np.full(len(examples), np.inf)
        for feature, own in zip(features, logits, strict=True):
            own = own[:len(feature)].astype(np.float64)
            null[feature.example] = min(null[feature.example], own[0].sum())
            found[feature.example] += best_spans(own, feature.places, self.spec.longest_answer)
        return [self._rank(e.context, spans, n) for e, spans, n in
                zip(examples, found, null, strict=True)]

    def _rank(self, context: str, spans: list[tuple[float, int, int]], null: float) -> list[Span]:
        best: dict[tuple[int, int], float] = {}
        for score, start, end in sorted(spans, reverse=True):
            best.setdefault((start, end), score)
        kept = [(score, *place) for place, score in list(best.items())[:BEST]]
        if self.spec.unanswered or not kept:
            ahead = not kept or null - kept[0][0] > self.spec.no_answer_margin
            kept.insert(0 if ahead else 1, (null, 0, 0))
        chances = softmax(np.array([score for score, _, _ in kept]))
        return [Span(context[start:end], start, end, float(score), float(chance))
                for (score, start, end), chance in zip(kept, chances)]

    def metrics(self, examples: Sequence[Question], answers: Sequence[Span]) -> dict[str, float]:
        return metrics.of_answers([span.text for span in answers],
                                  [[a.text for a in e.answers] for e in examples])


def windows(length: int, size: int, stride: int | None) -> Iterator[tuple[int, int]]:
    """Ranges of at most ``size`` pieces, each ``stride`` after the last, until the end is reached.

    Without a stride, half the size.
    """
    stride = min(stride or max(1, size // 2), size)
    start = 0
    while True:
        end = min(start + size, length)
        yield start, end
        if end == length:
            return
        start += stride


def span_of(pieces: Pieces, example: Question) -> tuple[int, int] | None:
    """The first and the last piece of the first answer; None where it has no piece."""
    answer = example.answers[0]
    covered = (pieces.offsets[:, 1] > answer.start) \
        & (pieces.offsets[:, 0] < answer.start + len(answer.text))
    places = np.flatnonzero(covered)
    return (int(places[0]), int(places[-1])) if len(places) else None


def best_spans(logits: np.ndarray, places: np.ndarray, longest: int,
               ) -> list[tuple[float, int, int]]:
    """(score, first character, end) of the best valid spans of a window, at most ``BEST``.

    Valid is a span within the paragraph that does not end before it begins and has at most
    ``longest`` pieces.

    Args:
        logits: float64 [T, 2].
        places: characters of the paragraph [T, 2], -1 elsewhere.
    """
    inside = np.flatnonzero(places[:, 0] >= 0)
    if not len(inside):
        return []
    scores = logits[inside, 0][:, None] + logits[inside, 1][None, :]
    length = np.arange(len(inside))[None, :] - np.arange(len(inside))[:, None]
    scores[(length < 0) | (length >= longest)] = -np.inf
    flat = scores.ravel()
    top = np.argpartition(-flat, min(BEST, flat.size) - 1)[:BEST]
    return [(float(flat[i]), int(places[inside[i // len(inside)], 0]),
             int(places[inside[i % len(inside)], 1])) for i in top if np.isfinite(flat[i])]
