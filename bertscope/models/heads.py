"""The losses, each computed only where it looks.

transformers' own classes compute the vocabulary's logits for every place, of which masked language
modelling uses 15 %. With a small encoder the vocabulary is most of the work, so gathering first is
worth several times the speed; the original code gathers too (``get_masked_lm_output``).

Every module here takes a batch's tensors and answers ``{objective: Measured}``, sums rather than
means, so that they add up exactly over micro-batches and processes.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, pad

from bertscope.models.build import Electra
from bertscope.models.encoder import hidden_states_at
from bertscope.models.vocabulary_loss import vocabulary_loss


class Measured(NamedTuple):
    """``loss``: summed negative log likelihood in nats; ``correct``: right answers. Scalars."""

    loss: torch.Tensor
    correct: torch.Tensor


def build_loss(config, model: nn.Module) -> nn.Module:
    """The loss module of a recipe around its model; the weights stay the model's own."""
    if config.recipe == "electra":
        return ReplacedTokenLoss(model)
    if config.recipe == "causal":
        return NextTokenLoss(model, config.training.label_smoothing)
    return MaskedLoss(model, config.objective.pairs, config.training.label_smoothing)


class MaskedLoss(nn.Module):
    """Masked language modelling (``mlm``), and ``nsp`` or ``sop`` where the model has that head.

    ``forward`` takes ``input_ids``, ``token_type_ids`` [B, T], ``attention_mask`` [B, T] or None,
    ``masked_lm_positions`` [B, P] and ``masked_lm_labels`` [B, P], rows filled up with -100, and
    ``pair_label`` [B] or None, all int64.
    """

    def __init__(self, model: nn.Module, pairs: str = "nsp", label_smoothing: float = 0.0):
        super().__init__()
        self.model, self.pairs, self.label_smoothing = model, pairs, label_smoothing

    def forward(self, input_ids, token_type_ids, attention_mask, masked_lm_positions,
                masked_lm_labels, pair_label=None) -> dict[str, Measured]:
        places = pad(masked_lm_positions, (1, 0))  # [CLS] first
        hidden = hidden_states_at(self.model.base_model, input_ids, token_type_ids,
                                  attention_mask, places)
        smoothing = self.label_smoothing if self.training else 0.0
        measured = {"mlm": _vocabulary(self.model, hidden[:, 1:], masked_lm_labels, smoothing)}
        if pair_label is not None:
            measured[self.pairs] = _answers(_pair_logits(self.model, hidden), pair_label)
        return measured


class NextTokenLoss(nn.Module):
    """Each piece predicted from those left of it (``clm``); takes what :class:`MaskedLoss` does."""

    def __init__(self, model: nn.Module, label_smoothing: float = 0.0):
        super().__init__()
        self.model, self.label_smoothing = model, label_smoothing

    def forward(self, input_ids, token_type_ids, attention_mask, masked_lm_positions,
                masked_lm_labels, pair_label=None) -> dict[str, Measured]:
        labels = input_ids[:, 1:]
        if attention_mask is not None:
            labels = labels.masked_fill(attention_mask[:, 1:] == 0, -100)
        hidden = self.model.base_model(input_ids=input_ids, token_type_ids=token_type_ids,
                                       attention_mask=attention_mask).last_hidden_state
        smoothing = self.label_smoothing if self.training else 0.0
        return {"clm": _vocabulary(self.model, hidden[:, :-1], labels, smoothing)}


class ReplacedTokenLoss(nn.Module):
    """ELECTRA: the generator fills the masks (``mlm``), the discriminator finds what it put there
    (``rtd``; over all pieces, special ones included). Takes what :class:`MaskedLoss` does.

    Clark et al. 2020, section 3.1: the fillings are sampled from the generator's softmax, without
    gradient; a piece that was guessed right counts as original.
    """

    def __init__(self, model: Electra):
        super().__init__()
        self.model = model

    def forward(self, input_ids, token_type_ids, attention_mask, masked_lm_positions,
                masked_lm_labels, pair_label=None) -> dict[str, Measured]:
        generator, discriminator = self.model.generator, self.model.discriminator
        hidden = transform(generator, hidden_states_at(
            generator.electra, input_ids, token_type_ids, attention_mask, masked_lm_positions))
        head = decoder(generator)
        loss, correct = vocabulary_loss(hidden.flatten(0, 1), head.weight, head.bias,
                                        masked_lm_labels.flatten())
        original, corrupted = self.fill(hidden, head, input_ids, masked_lm_positions,
                                        masked_lm_labels)
        logits = discriminator(input_ids=corrupted, token_type_ids=token_type_ids,
                               attention_mask=attention_mask).logits.float()
        replaced = corrupted != original
        kept = torch.ones_like(replaced) if attention_mask is None else attention_mask == 1
        losses = binary_cross_entropy_with_logits(logits, replaced.float(), reduction="none")
        return {"mlm": Measured(loss, correct),
                "rtd": Measured((losses * kept).sum(), (((logits > 0) == replaced) & kept).sum())}

    @staticmethod
    @torch.no_grad()
    def fill(hidden, head, input_ids, positions, labels) -> tuple[torch.Tensor, torch.Tensor]:
        """The unmasked text, and the text with a sample at each masked place, both [B, T]."""
        logits = head(hidden).float()
        noise = -torch.empty_like(logits).exponential_().log()  # Gumbel: its argmax is a sample
        sampled = (logits + noise).argmax(-1)
        kept = labels >= 0
        # A row's filler points to [CLS]; there its own id is written back.
        first = input_ids[:, :1].expand_as(labels)
        original = input_ids.scatter(1, positions, torch.where(kept, labels, first))
        return original, original.scatter(1, positions, torch.where(kept, sampled, first))


# -- where the families keep their heads --------------------------------------------------------


def transform(model: nn.Module, hidden: torch.Tensor) -> torch.Tensor:
    """The MLM head up to its decoder: [..., hidden_size] -> [..., embedding size]."""
    if hasattr(model, "cls"):  # BERT
        return model.cls.predictions.transform(hidden)
    if hasattr(model, "generator_predictions"):  # ELECTRA
        return model.generator_predictions(hidden)
    if hasattr(model, "lm_predictions"):  # DeBERTa
        head = model.lm_predictions.lm_head
        return head.LayerNorm(head.transform_act_fn(head.dense(hidden)))
    if hasattr(model, "lm_head"):  # RoBERTa
        head = model.lm_head
        return head.layer_norm(nn.functional.gelu(head.dense(hidden)))
    head = model.predictions  # ALBERT
    return head.LayerNorm(head.activation(head.dense(hidden)))


class _Tied(NamedTuple):
    weight: torch.Tensor
    bias: torch.Tensor


def decoder(model: nn.Module) -> nn.Module | _Tied:
    """The last step of the MLM head: ``weight`` [vocabulary, embedding size] and ``bias``."""
    if hasattr(model, "lm_predictions"):
        return _Tied(model.get_input_embeddings().weight, model.lm_predictions.lm_head.bias)
    return model.get_output_embeddings()


def _vocabulary(model, hidden, labels, smoothing) -> Measured:
    head = decoder(model)
    return Measured(*vocabulary_loss(transform(model, hidden.flatten(0, 1)), head.weight,
                                     head.bias, labels.flatten(), smoothing))


def _pair_logits(model: nn.Module, hidden: torch.Tensor) -> torch.Tensor:
    if hasattr(model, "sop_classifier"):
        body = model.albert
        return model.sop_classifier(body.pooler_activation(body.pooler(hidden[:, 0]))).float()
    return model.cls.seq_relationship(model.bert.pooler(hidden)).float()


def _answers(logits: torch.Tensor, labels: torch.Tensor) -> Measured:
    return Measured(cross_entropy(logits, labels, reduction="sum"),
                    (logits.detach().argmax(-1) == labels).sum())
