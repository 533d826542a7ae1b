"""The pretraining loss, with the last layer and the MLM logits at the masked places only.

``BertForPreTraining`` computes both for every place, of which the loss uses 15 %. With a small
encoder the vocabulary is most of the work, so gathering first is worth several times the speed;
the original code gathers before its head too (``get_masked_lm_output``).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from bertscope.models.encoder import hidden_states_at
from bertscope.models.vocabulary_loss import vocabulary_loss


@dataclass
class PretrainingOutput:
    """Sums, not means, so that they add up exactly over micro-batches and processes.

    ``mlm_loss`` and ``nsp_loss`` are summed negative log likelihoods in nats; ``mlm_correct`` and
    ``nsp_correct`` count right answers. All are scalars on the model's device.
    """

    mlm_loss: torch.Tensor
    mlm_correct: torch.Tensor
    nsp_loss: torch.Tensor
    nsp_correct: torch.Tensor


class PretrainingLoss(nn.Module):
    """Wraps a ``BertForPreTraining``; its weights stay the wrapped model's own.

    ``forward`` takes ``input_ids``, ``token_type_ids`` [B, T], ``attention_mask`` [B, T] or None,
    ``masked_lm_positions`` [B, P] and ``masked_lm_labels`` [B, P], rows filled up with -100, and
    ``next_sentence_label`` [B] (1 = random), all int64.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids, token_type_ids, attention_mask, masked_lm_positions,
                masked_lm_labels, next_sentence_label) -> PretrainingOutput:
        bert, heads = self.model.bert, self.model.cls
        places = nn.functional.pad(masked_lm_positions, (1, 0))  # [CLS] first
        hidden = hidden_states_at(bert, input_ids, token_type_ids, attention_mask, places)
        decoder = heads.predictions.decoder
        mlm_loss, mlm_correct = vocabulary_loss(
            heads.predictions.transform(hidden[:, 1:].flatten(0, 1)), decoder.weight, decoder.bias,
            masked_lm_labels.flatten())
        nsp_logits = heads.seq_relationship(bert.pooler(hidden)).float()
        return PretrainingOutput(
            mlm_loss, mlm_correct,
            cross_entropy(nsp_logits, next_sentence_label, reduction="sum"),
            (nsp_logits.detach().argmax(-1) == next_sentence_label).sum(),
        )
