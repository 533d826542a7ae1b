"""The same architecture with random weights: how much is in the words and positions alone."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import torch

from bertscope.analysis.activations import LoadedModel

#: Entries of a configuration that say nothing about the weights.
_NAMES = ("_name_or_path", "architectures", "transformers_version", "dtype", "torch_dtype")


def with_random_weights(model: LoadedModel, seed: int = 0) -> LoadedModel:
    """A copy of ``model`` freshly initialised, as its architecture is before training.

    transformers' own initialisation is used (for BERT: normal with standard deviation
    ``initializer_range``). PyTorch's global random state is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = type(model.model)(model.model.config)
    fresh = fresh.to(device=model.device, dtype=torch.float32).eval().requires_grad_(False)
    return dataclasses.replace(model, model=fresh, fingerprint=f"{architecture(model)}-{seed}")


def architecture(model: LoadedModel) -> str:
    """A digest of configuration and vocabulary: equal for all checkpoints of one training."""
    config = {k: v for k, v in model.model.config.to_dict().items() if k not in _NAMES}
    said = json.dumps([type(model.model).__name__, config], sort_keys=True, default=str)
    vocabulary = model.text_encoder.backend.to_str()
    return "random-" + hashlib.sha256((said + vocabulary).encode("utf-8", "replace")
                                      ).hexdigest()[:32]
