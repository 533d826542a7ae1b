"""The head that judges two texts: from a state of [CLS] to "B follows A", step by step.

BERT calls it ``seq_relationship`` (Devlin et al. 2019, section 3.1), ALBERT ``sop_classifier``
(Lan et al. 2019, section 3.1). Both are a linear layer on the pooler, and in both label 0 is the
pair as the text has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from bertscope import runs
from bertscope.analysis.activations import LoadedModel, encode, run
from bertscope.errors import BertScopeError

#: Why other families cannot be asked.
_OTHER_OBJECTIVE = {
    "albert": "ALBERT models learn the order of two segments instead, and the head for that is "
              "missing too",
    "electra": "ELECTRA models learn to find replaced pieces instead",
    "roberta": "RoBERTa models are trained without sentence pairs",
}


@dataclass(frozen=True)
class Question:
    """What a pair head was taught to answer: ``yes`` is its label 0, ``no`` its label 1."""

    name: str
    yes: str
    no: str


NSP = Question("nsp", "B follows A", "B is from elsewhere")
SOP = Question("sop", "A and B are in order", "A and B are swapped")


@dataclass(frozen=True)
class Route:
    """How one pair's answer comes about; float32, H numbers in a vector.

    ``steps[l]`` is P(yes) by the head from layer l's [CLS], the last of which is the answer.
    ``votes[i] = pooled[i] * (W[0, i] - W[1, i])``: with ``bias = b[0] - b[1]`` they add up to
    ``logits[0] - logits[1]``. ``error`` is the largest difference to the logits that transformers'
    own class gives for the same input.
    """

    cls: np.ndarray          # [H], the last layer's state of [CLS]
    pooled: np.ndarray       # [H], tanh(W_p cls + b_p)
    votes: np.ndarray        # [H]
    bias: float
    logits: np.ndarray       # [2]: yes, no
    layers: np.ndarray       # [L + 1]: P(yes) from each layer's [CLS]
    truncated: bool
    error: float

    @property
    def p_yes(self) -> float:
        return float(self.layers[-1])


def require_pair_head(model: LoadedModel) -> None:
    """Raise the sentence for a checkpoint that has not learnt to judge pairs."""
    if not (model.has_nsp_head or model.has_sop_head):
        why = _OTHER_OBJECTIVE.get(model.family, "it cannot say whether one text follows another")
        raise BertScopeError(f"This checkpoint has no NSP head: {why}.")
    labels = _classifier(model).out_features
    if labels != 2:
        raise BertScopeError(f"This checkpoint's pair head has {labels} labels: it was trained for "
                             "another task.")


def question(model: LoadedModel) -> Question:
    """What the head of a checkpoint answers. A BERT of a run may have learnt either question in
    the same head: the run's configuration tells.

    Raises:
        BertScopeError: the checkpoint has no head for pairs.
    """
    require_pair_head(model)
    if model.has_sop_head:
        return SOP
    folder = Path(model.path).absolute()
    try:
        taught = runs.Run(folder.parent.parent).config().objective.pairs \
            if runs.STEP.fullmatch(folder.name) else "nsp"
    except BertScopeError:  # no run of ours
        return NSP
    return SOP if taught == "sop" else NSP


def pooled(model: LoadedModel, states: torch.Tensor) -> torch.Tensor:
    """The pooler on states of [CLS], [..., H] to [..., H]."""
    pooler = model.model.base_model.pooler
    if isinstance(pooler, nn.Linear):  # ALBERT
        return model.model.base_model.pooler_activation(pooler(states))
    return pooler.activation(pooler.dense(states))


def pair_logits(model: LoadedModel, states: torch.Tensor) -> torch.Tensor:
    """Logits (yes, no) for states of [CLS], whichever layer they are from: [..., H] to [..., 2].

    Raises:
        BertScopeError: the checkpoint has no head for pairs, or the values are not finite.
    """
    require_pair_head(model)
    logits = _classifier(model)(pooled(model, states)).float()
    if not torch.isfinite(logits).all():
        raise BertScopeError("The weights of this checkpoint give values that are not finite: its "
                             "training has diverged.")
    return logits


@torch.inference_mode()
def route(model: LoadedModel, a: str, b: str) -> Route:
    """The way from [CLS] to the answer for one pair of texts.

    Raises:
        BertScopeError: the checkpoint has no head for pairs, or a text is empty.
    """
    require_pair_head(model)
    encoded = encode(model, a, b)
    states = torch.from_numpy(run(model, encoded, heads=False).hidden_states[:, 0])
    states = states.to(model.device)
    logits = pair_logits(model, states)
    classifier, vector = _classifier(model), pooled(model, states[-1])
    weights, bias = classifier.weight, classifier.bias
    return Route(
        cls=states[-1].cpu().numpy(),
        pooled=vector.cpu().numpy(),
        votes=(vector * (weights[0] - weights[1])).cpu().numpy(),
        bias=float(bias[0] - bias[1]),
        logits=logits[-1].cpu().numpy(),
        layers=probability(logits).cpu().numpy(),
        truncated=encoded.truncated,
        error=float((logits[-1] - _own_logits(model, encoded)).abs().max()),
    )


def probability(logits: torch.Tensor) -> torch.Tensor:
    """P(yes) from (yes, no): [..., 2] to [...]."""
    return (logits[..., 0] - logits[..., 1]).double().sigmoid().float()


def _own_logits(model: LoadedModel, encoded) -> torch.Tensor:
    """What transformers' own class answers, [2]."""
    inputs = {name: torch.from_numpy(getattr(encoded, name))[None].to(model.device)
              for name in ("input_ids", "token_type_ids", "attention_mask")}
    output = model.model(**inputs)
    return (output.sop_logits if model.has_sop_head else output.seq_relationship_logits)[0].float()


def _classifier(model: LoadedModel) -> nn.Linear:
    if model.has_sop_head:
        return model.model.sop_classifier.classifier  # its dropout does nothing here
    return model.model.cls.seq_relationship
