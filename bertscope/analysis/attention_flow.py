"""From weights to what flows: rollout, maximum flow, weights by the size of what they carry, weights
by their gradient. None of them is an explanation; each corrects one thing that raw weights hide."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import torch
    from torch import nn

    from bertscope.analysis.activations import Encoded, LoadedModel

#: Pieces for which maximum flow is computed: its time grows with more than their third power.
MOST_FLOW_PIECES = 64
#: Capacities are whole numbers of this part of the weight 1.
_UNITS = 1_000_000


def rollout(weights: np.ndarray, residual: float = 0.5) -> np.ndarray:
    """How much of each input piece is in each piece of each layer (Abnar and Zuidema 2020, eq. 1).

    R_l = ((1 - residual) mean_h A_l + residual I) R_(l-1), R_0 = I.

    Args:
        weights: float [L, A, T, T], rows sum to 1.
        residual: the share that stays, 0.5 in the paper.

    Returns: float64 [L, T, T]; the last one is for the output. Rows sum to 1.
    """
    found, before = [], np.eye(weights.shape[-1])
    for layer in _with_residual(weights, residual):
        before = layer @ before
        found.append(before)
    return np.stack(found)


def attention_flow(weights: np.ndarray, piece: int, residual: float = 0.5, layer: int | None = None,
                   ) -> np.ndarray:
    """The maximum flow from one piece of a layer's output to each input piece, the edges' capacities
    being the weights as in :func:`rollout` (Abnar and Zuidema 2020, section 3).

    Args:
        layer: 1 to L, the last by default.

    Returns: float64 [T], right to about 1e-5. Unlike rollout's, they need not sum to 1.

    Raises:
        BertScopeError: more than :data:`MOST_FLOW_PIECES` pieces.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    size = weights.shape[-1]
    if size > MOST_FLOW_PIECES:
        raise BertScopeError(f"Attention flow is computed for {MOST_FLOW_PIECES} pieces at most, and "
                             f"this input has {size}: shorten it, or use rollout.")
    layers = _with_residual(weights, residual)[:layer]
    depth = len(layers)
    rows, columns, capacities = [], [], []
    for number, capacity in enumerate(layers):
        i, j = np.nonzero(units := np.rint(capacity * _UNITS).astype(np.int32))
        rows.append((number + 1) * size + i)
        columns.append(number * size + j)
        capacities.append(units[i, j])
    graph = csr_array((np.concatenate(capacities), (np.concatenate(rows), np.concatenate(columns))),
                      shape=((depth + 1) * size,) * 2)
    return np.array([maximum_flow(graph, depth * size + piece, target).flow_value
                     for target in range(size)]) / _UNITS


def _with_residual(weights: np.ndarray, residual: float) -> np.ndarray:
    """[L, A, T, T] to float64 [L, T, T]: the mean over heads, with what stays."""
    mean = weights.astype(np.float64).mean(1)
    return (1 - residual) * mean + residual * np.eye(mean.shape[-1])


# -- by the size of what is carried -----------------------------------------------------------


@dataclass(frozen=True)
class NormWeighted:
    """What is carried, rather than how much it is looked at; L layers, A heads, T pieces.

    ``heads[l, h, i, j]`` = ||alpha_ij f_h(x_j)||, ``layers[l, i, j]`` = ||sum_h alpha_ij f_h(x_j)||;
    ``values[l, h, j]`` = ||f_h(x_j)||; ``weights`` the raw alpha. ``error`` is the largest difference
    between sum_j sum_h alpha f + b_O and what the layer's own output projection gave.
    """

    heads: np.ndarray       # float32 [L, A, T, T]
    layers: np.ndarray      # float32 [L, T, T]
    values: np.ndarray      # float32 [L, A, T]
    weights: np.ndarray     # float32 [L, A, T, T]
    error: float


def norm_weighted(model: LoadedModel, encoded: Encoded) -> NormWeighted:
    """Weights times the size of the vectors that they carry (Kobayashi et al. 2020, equations 3-5):
    f_h(x) = (x W_V + b_V) W_O, head h's slice.

    Raises:
        BertScopeError: the architecture's projections are not known here.
    """
    import torch

    from bertscope.analysis.activations import run
    from bertscope.analysis.head_gates import (output_projections, private_copy, require_gates,
                                               value_projections)

    require_gates(model)
    private = private_copy(model.model)
    outputs = [getattr(*place) for place in output_projections(private)]
    values, given = ([] for _ in range(2))
    for place in value_projections(private):
        getattr(*place).register_forward_hook(lambda _, __, out: values.append(out[0]))
    for projection in outputs:
        projection.register_forward_hook(lambda _, __, out: given.append(out[0]))
    seen = dataclasses.replace(model, model=private)
    weights = run(seen, encoded, attentions=True, heads=False).attentions
    with torch.inference_mode():
        layers = [_carried(torch.from_numpy(w).double(), v.double().cpu(), projection, out)
                  for w, v, projection, out in zip(weights, values, outputs, given, strict=True)]
    heads, together, sizes, errors = zip(*layers, strict=True)
    return NormWeighted(np.stack(heads), np.stack(together), np.stack(sizes), weights, max(errors))


def _carried(alpha: torch.Tensor, value: torch.Tensor, projection: nn.Module, given: torch.Tensor,
             ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """One layer: alpha [A, T, T] and value [T, A * size] to the norms of heads, of all, of values,
    and the error."""
    import torch

    heads = len(alpha)
    matrix = projection.weight.double().cpu().unflatten(1, (heads, -1))             # [H, A, size]
    f = torch.einsum("tas,has->ath", value.unflatten(1, (heads, -1)), matrix)
    # ||sum_h a_h f_h||^2 from the products of the f_h: no vector for each pair of pieces is kept.
    products = torch.einsum("ath,bth->tab", f, f)
    squared = torch.einsum("aij,bij,jab->ij", alpha, alpha, products)
    whole = torch.einsum("aij,ajh->ih", alpha, f) + projection.bias.double().cpu()
    sizes = f.norm(dim=-1)
    return ((alpha * sizes[:, None]).float().numpy(), squared.clamp(min=0).sqrt().float().numpy(),
            sizes.float().numpy(), (whole - given.double().cpu()).abs().max().item())


# -- by the gradient --------------------------------------------------------------------------


@dataclass(frozen=True)
class Gradients:
    """``product[l, h, i, j]`` = alpha_ij dy/dalpha_ij float32 [L, A, T, T]: to first order, what y
    would lose without that weight. Over all i and j they sum to dy/dxi_h, the slope by which head
    h's importance is measured. ``gradient`` and ``weights`` alone, and the value ``y``."""

    product: np.ndarray
    gradient: np.ndarray
    weights: np.ndarray
    y: float


def attention_gradients(model: LoadedModel, encoded: Encoded, masked: Sequence[int], place: int,
                        target: int) -> Gradients:
    """Attention times gradient for one masked prediction: y = log2 P(target at ``place``), bits.

    The product is that of Chefer et al. 2021 (equation 5) and Barkan et al. 2021, here with its
    sign.

    Args:
        masked: positions to hide, ``place`` among them.
        target: the piece's number in the vocabulary.

    Raises:
        BertScopeError: no MLM head, or no such weights.
    """
    from bertscope.analysis.mlm_head import mlm_logits, require_mlm_head
    from bertscope.analysis.predictions import hide

    require_mlm_head(model)
    return _gradients(model, hide(model, encoded, {*masked, place}), lambda states: mlm_logits(
        model, states[[place]]).log_softmax(-1)[0, target] / np.log(2))


def attention_gradients_of_pair(model: LoadedModel, encoded: Encoded) -> Gradients:
    """The same for a pair: y = logit(yes) - logit(no) in bits (log odds base 2).

    Raises:
        BertScopeError: no head for pairs.
    """
    from bertscope.analysis.pair_head import pair_logits, require_pair_head

    require_pair_head(model)

    def odds(states: torch.Tensor) -> torch.Tensor:
        yes, no = pair_logits(model, states[0])
        return (yes - no) / np.log(2)

    return _gradients(model, encoded, odds)


def _gradients(model: LoadedModel, encoded: Encoded, y: Callable[[torch.Tensor], torch.Tensor],
               ) -> Gradients:
    """Of ``y``, a function of the last states [T, H]. The embeddings start the graph: the weights
    of the model get no gradient."""
    import torch

    from bertscope.analysis.attention_sample import attentions_of
    from bertscope.analysis.head_gates import private_copy

    base = private_copy(model.model).base_model
    if not hasattr(base, "embeddings"):
        raise BertScopeError("BertScope does not know where the embeddings of this architecture "
                             f"({model.family}) are, so there is no gradient to show.")
    base.embeddings.register_forward_hook(lambda _, __, out: out.detach().requires_grad_(True))
    with torch.enable_grad():
        output, weights = attentions_of(model, base, [encoded])
        value = y(output.last_hidden_state[0])
        gradients = torch.autograd.grad(value, weights)
    alpha, slope = (torch.stack([w[0] for w in found]).detach().float().cpu().numpy()
                    for found in (weights, gradients))
    return Gradients(alpha * slope, slope, alpha, value.item())
