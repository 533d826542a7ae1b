"""A tag for each word, read off its first piece; the other pieces have no label.

Devlin et al. 2019, section 5.3. A sentence that is too long is read in stretches of whole words, so
that every word gets a tag.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from bertscope.finetuning import metrics
from bertscope.finetuning.batches import NO_LABEL, Feature
from bertscope.finetuning.data.examples import Tagged
from bertscope.finetuning.pieces import Cutter
from bertscope.finetuning.tasks.labels import softmax
from bertscope.finetuning.tasks.spec import TaskSpec
from bertscope.models.heads import Measured


class TokensTask:
    """``logits`` are [B, T, C]."""

    def __init__(self, spec: TaskSpec, cutter: Cutter):
        self.spec, self.cutter = spec, cutter
        self.entities = metrics.marks_entities(spec.labels)
        self.metric = "f1" if self.entities else "accuracy"

    def features(self, examples: Sequence[Tagged]) -> list[Feature]:
        """One for each stretch of a sentence."""
        index = {tag: number for number, tag in enumerate(self.spec.labels)}
        made = []
        for number, (example, pieces) in enumerate(
                zip(examples, self.cutter.words([e.words for e in examples]), strict=True)):
            tags = np.array([index.get(tag, NO_LABEL) for tag in example.tags])
            for start, end in stretches(pieces.words, self.cutter.room(False)):
                ids, types, (begin, _) = self.cutter.join(pieces.ids[start:end])
                places = np.full(len(ids), -1)
                places[begin:begin + end - start] = first_pieces(pieces.words[start:end])
                made.append(Feature(ids, types, np.where(places >= 0, tags[places], NO_LABEL),
                                    number, places))
        return made

    def loss(self, logits: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor | None,
             weight: torch.Tensor | None) -> Measured:
        """Summed cross-entropy over words in nats."""
        loss = cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), weight,
                             ignore_index=NO_LABEL, reduction="sum")
        return Measured(loss, (logits.detach().argmax(-1) == labels).sum())

    def answers(self, examples: Sequence[Tagged], features: Sequence[Feature],
                logits: Sequence[np.ndarray]) -> list[np.ndarray]:
        """For each sentence the probabilities of its words' tags, float64 [W, C]."""
        found = [np.empty((len(e.words), len(self.spec.labels))) for e in examples]
        for feature, own in zip(features, logits, strict=True):
            first = feature.places >= 0
            found[feature.example][feature.places[first]] = softmax(
                own[:len(feature)][first].astype(np.float64))
        return found

    def tags(self, answers: Sequence[np.ndarray]) -> list[list[str]]:
        """The likeliest tag of each word."""
        return [[self.spec.labels[i] for i in own.argmax(1)] for own in answers]

    def metrics(self, examples: Sequence[Tagged], answers: Sequence[np.ndarray]) -> dict[str, float]:
        return metrics.of_tags([e.tags for e in examples], self.tags(answers), self.entities)

    def frequencies(self, examples: Sequence[Tagged]) -> np.ndarray:
        """How often each tag is right, int64 [C]."""
        index = {tag: number for number, tag in enumerate(self.spec.labels)}
        return np.bincount([index[tag] for e in examples for tag in e.tags],
                           minlength=len(self.spec.labels))


def first_pieces(words: np.ndarray) -> np.ndarray:
    """The word at each word's first piece, -1 at its others: int64 [T]."""
    begins = np.ones(len(words), dtype=bool)
    begins[1:] = words[1:] != words[:-1]
    return np.where(begins, words, -1)


def stretches(words: np.ndarray, room: int) -> Iterator[tuple[int, int]]:
    """Ranges of pieces of at most ``room``, cut between words; of a longer word only its first
    pieces are read."""
    start = 0
    while start < len(words):
        end = min(start + room, len(words))
        if end < len(words) and words[end] == words[end - 1]:
            begin = int(np.searchsorted(words, words[end]))
            end = begin if begin > start else end
        yield start, end
        # What is left of a word that was cut is passed over.
        cut = end < len(words) and words[end] == words[end - 1]
        start = int(np.searchsorted(words, words[end - 1], "right")) if cut else end
