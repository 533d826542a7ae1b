"""The pretraining loss, with MLM logits at the masked places only.

``BertForPreTraining`` computes logits for every place, of which the loss uses 15 %. With a small
encoder the vocabulary is most of the work, so gathering first is worth several times the speed;
the original code does so too (``get_masked_lm_output``).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy


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
    ``masked_index`` [M] into the flattened [B * T], ``masked_labels`` [M] and
    ``next_sentence_label`` [B] (1 = random), all int64.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids, token_type_ids, attention_mask, masked_index, masked_labels,
                next_sentence_label) -> PretrainingOutput:
        encoded = self.model.bert(input_ids=input_ids, token_type_ids=token_type_ids,
                                  attention_mask=attention_mask)
        hidden = encoded.last_hidden_state.flatten(0, 1).index_select(0, masked_index)
        mlm_logits = self.model.cls.predictions(hidden).float()
        nsp_logits = self.model.cls.seq_relationship(encoded.pooler_output).float()
        return PretrainingOutput(
            cross_entropy(mlm_logits, masked_labels, reduction="sum"),
            (mlm_logits.detach().argmax(-1) == masked_labels).sum(),
            cross_entropy(nsp_logits, next_sentence_label, reduction="sum"),
            (nsp_logits.detach().argmax(-1) == next_sentence_label).sum(),
        )
