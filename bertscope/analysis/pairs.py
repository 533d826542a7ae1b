"""Next-sentence prediction (Devlin et al. 2019, section 3.1, task 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertscope.analysis.activations import LoadedModel, Progress, encode, run_batches
from bertscope.errors import BertScopeError

#: Why other families cannot be asked.
_OTHER_OBJECTIVE = {
    "albert": "ALBERT models learn the order of two segments instead",
    "electra": "ELECTRA models learn to find replaced pieces instead",
    "roberta": "RoBERTa models are trained without sentence pairs",
}


@dataclass
class NextSentence:
    """Whether B follows A: ``logits`` are (follows, random), as in the original labels 0 and 1."""

    p_next: float
    logits: tuple[float, float]
    truncated: bool


def next_sentence(model: LoadedModel, a: str, b: str) -> NextSentence:
    """The probability, by the NSP head, that text ``b`` follows text ``a``.

    Raises:
        BertScopeError: the checkpoint has no NSP head, or a text is empty.
    """
    return next_sentences(model, [(a, b)])[0]


def next_sentences(model: LoadedModel, pairs: Sequence[tuple[str, str]],
                   progress: Progress | None = None) -> list[NextSentence]:
    """The same for many pairs, in batches.

    Raises:
        BertScopeError: the checkpoint has no NSP head, or a text is empty.
    """
    require_nsp_head(model)
    inputs = [encode(model, a, b) for a, b in pairs]
    answers: list[NextSentence | None] = [None] * len(inputs)
    for indices, batch in run_batches(model, inputs, heads=True, progress=progress):
        for index, logits in zip(indices, batch.nsp_logits.double().cpu().numpy(), strict=True):
            if not np.isfinite(logits).all():
                raise BertScopeError("The weights of this checkpoint give values that are not "
                                     "finite: its training has diverged.")
            follows, random = map(float, logits)
            answers[index] = NextSentence(float(1 / (1 + np.exp(random - follows))),
                                          (follows, random), inputs[index].truncated)
    return answers


def require_nsp_head(model: LoadedModel) -> None:
    """Raise the sentence for a checkpoint that was not trained on next sentences."""
    if not model.has_nsp_head:
        why = _OTHER_OBJECTIVE.get(model.family, "it cannot say whether one text follows another")
        raise BertScopeError(f"This checkpoint has no NSP head: {why}.")
