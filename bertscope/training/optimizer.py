"""AdamW as BERT uses it: no weight decay on biases and normalisation."""

from __future__ import annotations

import torch
from torch import nn

from bertscope.config import TrainingConfig


def decayed(name: str) -> bool:
    """The original's rule: everything decays, the embeddings too, but biases and LayerNorm.

    RoBERTa calls it ``layer_norm``, ALBERT ``full_layer_layer_norm``.
    """
    return not (name.endswith("bias") or "layernorm" in name.lower().replace("_", ""))


def build_optimizer(model: nn.Module, training: TrainingConfig) -> torch.optim.AdamW:
    """Each parameter once (tied ones too), in two groups, with and without decay.

    AdamW with bias correction (the original has none), epsilon 1e-6.
    """
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    groups = [
        {"params": [p for n, p in named if decayed(n)], "weight_decay": training.weight_decay},
        {"params": [p for n, p in named if not decayed(n)], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=training.learning_rate, betas=(training.beta1, training.beta2),
                             eps=1e-6, fused=True)
