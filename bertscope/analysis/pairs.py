"""Does text B follow text A? Many pairs at once (Devlin et al. 2019, section 3.1, task 2; for the
order of two texts Lan et al. 2019, section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from bertscope.analysis.activations import LoadedModel, Progress, encode, run_at
from bertscope.analysis.pair_head import pair_logits, probability, require_pair_head


@dataclass
class NextSentence:
    """The probability of the head's label 0: that B follows A rather than a random text (NSP), or
    rather than the other way round (SOP). ``logits`` are of labels 0 and 1."""

    p_next: float
    logits: tuple[float, float]
    truncated: bool


def next_sentence(model: LoadedModel, a: str, b: str) -> NextSentence:
    """The probability, by the checkpoint's head for pairs, that text ``b`` follows text ``a``.

    Raises:
        BertScopeError: the checkpoint has no such head, or a text is empty.
    """
    return next_sentences(model, [(a, b)])[0]


@torch.inference_mode()
def next_sentences(model: LoadedModel, pairs: Sequence[tuple[str, str]],
                   progress: Progress | None = None) -> list[NextSentence]:
    """The same for many pairs, in batches.

    Raises:
        BertScopeError: the checkpoint has no such head, or a text is empty.
    """
    require_pair_head(model)
    inputs = [encode(model, a, b) for a, b in pairs]
    answers: list[NextSentence | None] = [None] * len(inputs)
    for indices, states in run_at(model, inputs, [0] * len(inputs), progress):
        logits = pair_logits(model, states).cpu()
        for index, row, p in zip(indices, logits.tolist(), probability(logits).tolist(),
                                 strict=True):
            answers[index] = NextSentence(p, (row[0], row[1]), inputs[index].truncated)
    return answers
