"""Which software computed a result."""

from __future__ import annotations

import importlib.metadata

import bertscope


def versions() -> dict[str, str]:
    """Of what computed the numbers."""
    names = ("numpy", "torch", "transformers", "tokenizers", "safetensors")
    return {"bertscope": bertscope.__version__,
            **{name: importlib.metadata.version(name) for name in names}}
