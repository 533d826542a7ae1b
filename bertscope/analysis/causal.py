"""The head of a causal model: the next piece from those to its left."""

from __future__ import annotations

import numpy as np
import torch
from transformers import BertLMHeadModel

from bertscope.analysis.activations import Encoded, LoadedModel
from bertscope.errors import BertScopeError


def require_next_token_head(model: LoadedModel) -> None:
    """Raise the sentence for a checkpoint that does not read from left to right."""
    if not isinstance(model.model, BertLMHeadModel) or not model.model.config.is_decoder:
        raise BertScopeError("This is no causal model: it has no head for the next piece.")


@torch.inference_mode()
def next_token_logits(model: LoadedModel, encoded: Encoded) -> np.ndarray:
    """A causal model's logits: row t is about piece t + 1, given pieces 0 to t.

    Returns:
        float32 [T, V].

    Raises:
        BertScopeError: the checkpoint is not causal, or its weights are not finite.
    """
    require_next_token_head(model)
    inputs = {name: torch.from_numpy(getattr(encoded, name))[None].to(model.device)
              for name in ("input_ids", "token_type_ids", "attention_mask")}
    logits = model.model(**inputs, use_cache=False).logits[0].float().cpu().numpy()
    if not np.isfinite(logits).all():
        raise BertScopeError("The weights of this checkpoint give values that are not finite: its "
                             "training has diverged.")
    return logits
