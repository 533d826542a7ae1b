"""AdamW for fine-tuning: the layers further down may learn more slowly."""

from __future__ import annotations

import torch
from torch import nn

from bertscope.config import TrainingConfig
from bertscope.finetuning.heads import depth
from bertscope.training.optimizer import decayed


def build_optimizer(model: nn.Module, training: TrainingConfig, layer_decay: float,
                    ) -> torch.optim.AdamW:
    """Groups by depth and by weight decay, the head first; frozen parameters are in none.

    A group's ``scale`` is ``layer_decay`` to the power of its distance from the head (Howard & Ruder
    2018, section 3.2: discriminative fine-tuning); the loop multiplies the learning rate by it.
    """
    layers = model.config.num_hidden_layers
    groups: dict[tuple[int, bool], list] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            distance = layers + 1 - depth(name, layers) if layer_decay < 1.0 else 0
            groups.setdefault((distance, not decayed(name)), []).append(parameter)
    return torch.optim.AdamW(
        [{"params": groups[key], "scale": layer_decay ** key[0],
          "weight_decay": 0.0 if key[1] else training.weight_decay} for key in sorted(groups)],
        lr=training.learning_rate, betas=(training.beta1, training.beta2), eps=1e-6, fused=True)
