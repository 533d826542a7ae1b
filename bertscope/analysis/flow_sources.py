"""Where what is in one piece came from: by raw weights, rollout and what is carried, and by kind of source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertscope.analysis.attention_flow import (attention_gradients, attention_gradients_of_pair, norm_weighted,
                                               rollout)
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from bertscope.analysis.activations import Encoded, LoadedModel

RAW, ROLLOUT, CARRIED = "raw weights", "rollout", "what is carried"
ITSELF, SAME, OTHER = "itself", "other pieces", "pieces of the other text"


def sources(model: LoadedModel, encoded: Encoded, piece: int, layer: int) -> dict[str, np.ndarray]:
    """The share that each input piece has in one piece after a layer, float64 [T], by each account.

    Raw weights (mean over heads) and what is carried are those of the layer alone, rollout is of all layers
    up to it (see ``attention_flow``). Each sums to 1; what is carried is missing where the architecture's
    projections are not known.

    Args:
        layer: from 1.

    Raises:
        BertScopeError: the architecture has no attention weights to show.
    """
    from bertscope.analysis.activations import run

    found = {}
    try:
        carried = norm_weighted(model, encoded)
        weights, sizes = carried.weights, carried.layers[layer - 1, piece].astype(float)
        found[CARRIED] = sizes / max(sizes.sum(), 1e-12)
    except BertScopeError:
        weights = run(model, encoded, attentions=True, heads=False).attentions
    return {RAW: weights[layer - 1, :, piece].astype(float).mean(0),
            ROLLOUT: rollout(weights[:layer])[-1, piece], **found}


def gradient_sources(model: LoadedModel, encoded: Encoded, layer: int, place: int | None, target: int | None,
                     ) -> np.ndarray:
    """Attention times gradient of a layer, summed over its heads and over the pieces that look: what the
    weights on each piece speak for the answer, in bits, float64 [T].

    Args:
        place, target: the masked place and the piece's number in the vocabulary; both None for a pair's answer.

    Raises:
        BertScopeError: as ``attention_flow.attention_gradients``.
    """
    found = attention_gradients_of_pair(model, encoded) if place is None else \
        attention_gradients(model, encoded, [place], place, target)
    return found.product[layer - 1].astype(float).sum((0, 1))


def kinds(encoded: Encoded, piece: int | None = None) -> dict[str, list[int]]:
    """The positions of each kind of source: special pieces by their name, the piece itself, others.

    Every position is in one of them; kinds without a position are left out.
    """
    groups: dict[str, list[int]] = {}
    for place, token in enumerate(encoded.tokens):
        if place == piece:
            name = ITSELF
        elif encoded.special[place]:
            name = token
        elif piece is not None and encoded.segments[place] != encoded.segments[piece]:
            name = OTHER
        else:
            name = SAME
        groups.setdefault(name, []).append(place)
    return groups


def by_kind(values: Sequence[float], groups: dict[str, list[int]]) -> dict[str, float]:
    """``values`` [T] summed over the positions of each kind."""
    return {name: float(np.asarray(values)[places].sum()) for name, places in groups.items()}
