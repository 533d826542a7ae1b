"""A label, or a number, for a text or a pair of texts, read off [CLS]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from bertscope.finetuning import metrics
from bertscope.finetuning.batches import Feature
from bertscope.finetuning.data.examples import Labelled
from bertscope.finetuning.pieces import Cutter
from bertscope.finetuning.tasks.spec import TaskSpec
from bertscope.models.heads import Measured


class LabelTask:
    """``logits`` are [B, C], or [B, 1] where a number is predicted."""

    def __init__(self, spec: TaskSpec, cutter: Cutter):
        self.spec, self.cutter = spec, cutter
        self.metric = "pearson" if spec.numbers else "accuracy"

    def features(self, examples: Sequence[Labelled]) -> list[Feature]:
        """One for each example; an unknown label becomes -100."""
        firsts = self.cutter.texts([e.text for e in examples])
        seconds = self.cutter.texts([e.pair or "" for e in examples]) \
            if self.spec.task == "pair" else [None] * len(examples)
        made, room = [], self.cutter.room(False)
        for number, (example, a, b) in enumerate(zip(examples, firsts, seconds, strict=True)):
            ids, types = self.cutter.pair(a, b) if b is not None else \
                self.cutter.join(a.ids[:room])[:2]
            made.append(Feature(ids, types, self._label(example.label), number))
        return made

    def _label(self, label: str | float) -> np.ndarray:
        if self.spec.numbers:
            return np.array(label, np.float32)
        return np.array(self.spec.labels.index(label) if label in self.spec.labels else -100)

    def loss(self, logits: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor | None,
             weight: torch.Tensor | None) -> Measured:
        """Summed cross-entropy in nats, or squared error."""
        if self.spec.numbers:
            return Measured((logits[:, 0].float() - labels).square().sum(), None)
        return Measured(cross_entropy(logits.float(), labels, weight, reduction="sum"),
                        (logits.detach().argmax(-1) == labels).sum())

    def answers(self, examples: Sequence[Labelled], features: Sequence[Feature],
                logits: Sequence[np.ndarray]) -> np.ndarray:
        """Probabilities float64 [N, C], or numbers [N]."""
        stacked = np.stack(logits).astype(np.float64)
        return stacked[:, 0] if self.spec.numbers else softmax(stacked)

    def metrics(self, examples: Sequence[Labelled], answers: np.ndarray) -> dict[str, float]:
        if self.spec.numbers:
            return metrics.of_numbers([e.label for e in examples], answers)
        gold = [self.spec.labels.index(e.label) for e in examples]
        return metrics.of_labels(gold, answers.argmax(1), len(self.spec.labels))

    def frequencies(self, examples: Sequence[Labelled]) -> np.ndarray:
        """How often each label is right, int64 [C]."""
        gold = [self.spec.labels.index(e.label) for e in examples]
        return np.bincount(gold, minlength=len(self.spec.labels))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Over the last axis, float64."""
    shifted = np.exp(logits - logits.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)
