"""How far fine-tuning moved the weights, layer by layer."""

from __future__ import annotations

import math

import pandas as pd

from bertscope.analysis.loading import LoadedModel
from bertscope.errors import BertScopeError
from bertscope.finetuning.heads import depth


def weight_distance(before: LoadedModel, after: LoadedModel) -> pd.DataFrame:
    r"""Relative distance of the encoder's weights before and after, one row a layer.

    ``layer`` is 0 for the embeddings, 1 ... L for the layers, ``distance`` is

    .. math:: \lVert W_\text{after} - W_\text{before} \rVert_F / \lVert W_\text{before} \rVert_F

    over all weights, biases and normalisations of the layer together, ``moved`` the numerator, ``norm``
    the denominator; 0 / 0 is 0. Layers that fine-tuning cut off, and the pooler, are left out.

    Raises:
        BertScopeError: the two are of different shapes.
    """
    own, theirs = (model.model.base_model.state_dict() for model in (before, after))
    sums: dict[int, list[float]] = {}
    for name, tensor in theirs.items():
        layer = depth("." + name, after.num_layers)
        if layer > after.num_layers or not tensor.is_floating_point():
            continue
        if name not in own or own[name].shape != tensor.shape:
            raise BertScopeError(f"{after.path} did not begin with {before.path}: {name} has another shape.")
        old, new = own[name].double().cpu(), tensor.double().cpu()
        found = sums.setdefault(layer, [0.0, 0.0])
        found[0] += float((new - old).square().sum())
        found[1] += float(old.square().sum())
    rows = []
    for layer, (moved, norm) in sorted(sums.items()):
        moved, norm = math.sqrt(moved), math.sqrt(norm)
        rows.append({"layer": layer, "distance": moved / norm if norm else 0.0 if not moved else math.inf,
                     "moved": moved, "norm": norm})
    return pd.DataFrame(rows)
