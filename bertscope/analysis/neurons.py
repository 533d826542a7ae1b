"""Queries and keys: what an attention weight is made of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from bertscope.analysis.activations import Encoded, LoadedModel

#: What the projections are called in BERT, RoBERTa, ELECTRA and ALBERT, and in DistilBERT.
_QUERY, _KEY = re.compile(r"(^|\.)(query|q_lin)$"), re.compile(r"(^|\.)(key|k_lin)$")


@dataclass(frozen=True)
class Neurons:
    """Of one input, per layer, head and piece, float32: ``queries`` and ``keys`` [L, A, T, d], and the
    ``weights`` [L, A, T, T], which are softmax(q k / sqrt(d)) (Vaswani et al. 2017, equation 1)."""

    encoded: Encoded
    queries: np.ndarray
    keys: np.ndarray
    weights: np.ndarray


def queries_and_keys(model: LoadedModel, text: str, pair: str | None = None) -> Neurons:
    """Run the model on a text, and each layer's projections once more on what the layer was given.

    Raises:
        BertScopeError: a text is empty, or the weights are not made of queries and keys alone (as in
            DeBERTa, whose distances have a part of their own).
    """
    from bertscope.analysis.activations import encode, run

    encoded = encode(model, text, pair)
    found = run(model, encoded, attentions=True, heads=False)
    queries, keys = (_project(model, found.hidden_states, name) for name in (_QUERY, _KEY))
    _check(model, queries, keys, found.attentions)
    return Neurons(encoded, queries, keys, found.attentions)


def _project(model: LoadedModel, hidden_states: np.ndarray, name: re.Pattern) -> np.ndarray:
    """float32 [L, A, T, d]. ALBERT's layers share a few modules, in order."""
    import torch

    modules = [m for path, m in model.model.base_model.named_modules() if name.search(path)]
    if not modules:
        raise _not_of_these(model)
    layers = []
    for number, states in enumerate(hidden_states[:-1]):
        module = modules[number * len(modules) // model.num_layers]
        with torch.inference_mode():
            projected = module(torch.from_numpy(states).to(model.device)).cpu().numpy()
        layers.append(projected.reshape(len(states), model.num_heads, -1).swapaxes(0, 1))
    return np.stack(layers)


def _check(model: LoadedModel, q: np.ndarray, k: np.ndarray, weights: np.ndarray) -> None:
    """The weights must come of these queries and keys; where there is none (a causal model's right
    side), of the others."""
    scores = q.astype(np.float64) @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    scores = np.where(weights > 0, scores, -np.inf)
    expected = np.exp(scores - scores.max(-1, keepdims=True))
    expected /= expected.sum(-1, keepdims=True)
    if np.abs(expected - weights).max() > 1e-3:
        raise _not_of_these(model)


def _not_of_these(model: LoadedModel) -> BertScopeError:
    return BertScopeError(f"The weights of a {model.family} model are not made of a query and a key "
                          "alone, so there is no neuron view of them.")
