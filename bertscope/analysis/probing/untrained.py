"""The same architecture with random weights: how much is in the words and positions alone."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import torch

from bertscope.analysis.activations import LoadedModel

#: Entries of a configuration that say nothing about the weights.
_NAMES = ("_name_or_path", "architectures", "transformers_version", "dtype", "torch_dtype")
_TOKENIZER = ("tokenizer.json", "vocab.txt", "tokenizer_config.json")


def with_random_weights(model: LoadedModel, seed: int = 0) -> LoadedModel:
    """A copy of ``model`` freshly initialised, as its architecture is before training.

    transformers' own initialisation is used (for BERT: normal with standard deviation
    ``initializer_range``). PyTorch's global random state is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = type(model.model)(model.model.config)
    fresh = fresh.to(device=model.device, dtype=torch.float32).eval().requires_grad_(False)
    return dataclasses.replace(model, model=fresh, fingerprint=f"{architecture(model.path)}-{seed}")


def architecture(checkpoint: str | Path) -> str:
    """A digest of a checkpoint's configuration and vocabulary, equal for all of one training: what
    random weights depend on. Of a hub's model it is one of the name."""
    folder = Path(checkpoint)
    digest = hashlib.sha256(b"" if folder.is_dir() else str(checkpoint).encode())
    if (folder / "config.json").is_file():
        config = json.loads((folder / "config.json").read_text("utf-8"))
        kept = {key: value for key, value in config.items() if key not in _NAMES}
        digest.update(json.dumps(kept, sort_keys=True).encode())
    for name in _TOKENIZER:
        if (folder / name).is_file():
            digest.update(name.encode() + (folder / name).read_bytes())
    return "random-" + digest.hexdigest()[:32]
