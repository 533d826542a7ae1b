"""A number on each head's output: 1 leaves the head as it is, 0 turns it off (Michel et al. 2019,
equation 1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch

from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from bertscope.analysis.activations import LoadedModel

#: Families whose output projections we know.
FAMILIES = ("bert", "roberta", "electra", "albert", "distilbert", "deberta-v2")


def require_gates(model: LoadedModel) -> None:
    """Raise the sentence for an architecture whose heads cannot be turned off here."""
    raise NotImplementedError


def with_gates(model: LoadedModel, gates: torch.Tensor) -> LoadedModel:
    """The same weights in a private copy of the modules, each head's output times its gate.

    ``model`` and other threads that use it notice nothing, and no memory is copied. The gate stands
    before the output projection, whose bias stays. ALBERT's layers share their weights; each pass
    has its own gates.

    Args:
        gates: float [L, A], or [B, L, A] with gates of its own for each row of a batch.

    Raises:
        BertScopeError: as :func:`require_gates`.
    """
    raise NotImplementedError


def without_heads(model: LoadedModel, off: Iterable[tuple[int, int]]) -> LoadedModel:
    """The model with heads turned off; everything that takes a model takes it.

    Its fingerprint says which, so that results on it are kept apart. ``model`` itself, if none is.

    Args:
        off: (layer, head) from 1; head 0 stands for all heads of the layer. The feed-forward block
            and the residual path of the layer stay.

    Raises:
        BertScopeError: no such layer or head, or as :func:`require_gates`.
    """
    raise NotImplementedError
