"""From weights to what flows: rollout, maximum flow, weights by the size of what they carry, weights
by their gradient. None of them is an explanation; each corrects one thing that raw weights hide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bertscope.analysis.activations import Encoded, LoadedModel


def rollout(weights: np.ndarray, residual: float = 0.5) -> np.ndarray:
    """How much of each input piece is in each piece of each layer (Abnar and Zuidema 2020, eq. 1).

    R_l = ((1 - residual) mean_h A_l + residual I) R_(l-1), R_0 = I.

    Args:
        weights: float [L, A, T, T], rows sum to 1.
        residual: the share that stays, 0.5 in the paper.

    Returns: float64 [L, T, T]; the last one is for the output. Rows sum to 1.
    """
    raise NotImplementedError


def attention_flow(weights: np.ndarray, piece: int, residual: float = 0.5, layer: int | None = None,
                   ) -> np.ndarray:
    """The maximum flow from one piece of a layer's output to each input piece, the edges' capacities
    being the weights as in :func:`rollout` (Abnar and Zuidema 2020, section 3).

    Returns: float64 [T]. Unlike rollout's, they need not sum to 1.
    """
    raise NotImplementedError


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
    raise NotImplementedError


@dataclass(frozen=True)
class Gradients:
    """``product[l, h, i, j]`` = alpha_ij dy/dalpha_ij float32 [L, A, T, T]: to first order, what y
    would lose without that weight. ``gradient`` alone, ``weights`` alone, and the value ``y``."""

    product: np.ndarray
    gradient: np.ndarray
    weights: np.ndarray
    y: float


def attention_gradients(model: LoadedModel, encoded: Encoded, masked: Sequence[int], place: int,
                        target: int) -> Gradients:
    """Attention times gradient for one masked prediction: y = log2 P(target at ``place``), bits.

    Args:
        masked: positions to hide, ``place`` among them.
        target: the piece's number in the vocabulary.

    Raises:
        BertScopeError: no MLM head, or no such weights.
    """
    raise NotImplementedError


def attention_gradients_of_pair(model: LoadedModel, encoded: Encoded) -> Gradients:
    """The same for a pair: y = logit(yes) - logit(no) in bits (log odds base 2).

    Raises:
        BertScopeError: no head for pairs.
    """
    raise NotImplementedError
