"""A model and a text in, arrays and tables out. Nothing here knows of a page.

The names below are imported when they are first used: ``import bertscope.analysis`` is free, torch
is loaded by what needs it.
"""

from __future__ import annotations

import importlib

_WHERE = {
    "activations": ("Activations", "Encoded", "LoadedModel", "encode", "load", "pool", "run",
                    "run_batches", "word_states"),
    "attention": ("AttentionMaps", "attention_maps", "by_words", "head_summary", "merge_pieces"),
    "bertviz_views": ("bertviz_page", "neuron_page"),
    "embeddings": ("Projection", "anisotropy", "neighbours", "project"),
    "pairs": ("NextSentence", "next_sentence", "next_sentences"),
    "predictions": ("Candidate", "MaskPrediction", "log_probabilities", "predict"),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str):
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
