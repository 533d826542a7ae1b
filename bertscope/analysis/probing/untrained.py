"""The same architecture with random weights: how much is in the words and positions alone."""

from __future__ import annotations

import dataclasses

import torch

from bertscope.analysis.activations import LoadedModel


def with_random_weights(model: LoadedModel, seed: int = 0) -> LoadedModel:
    """A copy of ``model`` freshly initialised, as its architecture is before training.

    transformers' own initialisation is used (for BERT: normal with standard deviation
    ``initializer_range``). PyTorch's global random state is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = type(model.model)(model.model.config)
    fresh = fresh.to(device=model.device, dtype=torch.float32).eval().requires_grad_(False)
    return dataclasses.replace(model, model=fresh, fingerprint=f"random-{seed}")
