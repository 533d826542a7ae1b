"""How alike heads are: Jensen-Shannon divergence of their rows, and a map of it (Clark et al. 2019,
section 6, Figure 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bertscope.analysis.attention_sample import (Text, attention_batches, encode_texts, texts_digest)
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from bertscope.analysis.activations import LoadedModel, Progress

#: Raise it when the numbers change.
VERSION = 1
#: Rows of each text that all pairs of heads are compared on.
ROWS = 8


@dataclass(frozen=True)
class HeadMap:
    """Heads as points: ``points`` float64 [L * A, 2], head 1-1 first, then 1-2; ``shown`` is the
    share of the squared distances that the two axes keep, 0 to 1."""

    points: np.ndarray
    shown: float


def head_distances(model: LoadedModel, texts: Sequence[Text], rows: int = ROWS, seed: int = 0,
                   progress: Progress | None = None) -> np.ndarray:
    """Mean Jensen-Shannon divergence between all heads, in bits (0 equal, 1 nothing in common).

    JS(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2, over the same rows of both heads; ``rows`` of each
    text, drawn at random but the same for equal texts and seed.

    Returns: float64 [L * A, L * A], symmetric, zeros on the diagonal; heads as in :class:`HeadMap`.

    Raises:
        BertScopeError: as ``head_statistics``.
    """
    inputs = encode_texts(model, texts)
    size = model.num_layers * model.num_heads
    total, seen = np.zeros((size, size)), 0
    for batch in attention_batches(model, inputs, progress):
        for index, weights in batch:
            length = len(inputs[index])
            rng = np.random.default_rng([seed, index])
            chosen = np.sort(rng.permutation(length)[:rows])
            total += _between_all(weights.flatten(0, 1)[:, chosen].double())
            seen += len(chosen)
    return total / seen


def head_map(divergence: np.ndarray, like: np.ndarray | None = None) -> HeadMap:
    """Classical multidimensional scaling of sqrt(divergence) (Torgerson 1952): closed form, the same
    every time. The square root of the divergence is a metric, of points in a Euclidean space even
    (Endres and Schindelin 2003; Fuglede and Topsoe 2004), so no distance is negative.

    Args:
        like: points [L * A, 2] of another checkpoint: the map is turned and mirrored, not stretched,
            to lie as near to them as it can (orthogonal Procrustes), so that it does not jump.
    """
    squared = np.asarray(divergence, np.float64)
    size = len(squared)
    centre = np.eye(size) - 1 / size
    values, vectors = np.linalg.eigh(-centre @ squared @ centre / 2)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    points = np.zeros((size, 2))
    points[:, :size] = (vectors * np.sqrt(values))[:, :2]
    points *= np.where(points[np.abs(points).argmax(0), [0, 1]] < 0, -1, 1)
    if like is not None:
        left, _, right = np.linalg.svd(points.T @ (like - like.mean(0)))
        points = points @ (left @ right)
    return HeadMap(points, float(values[:2].sum() / values.sum()) if values.any() else 1.0)


def changed_heads(model: LoadedModel, other: LoadedModel, texts: Sequence[Text],
                  progress: Progress | None = None) -> pd.DataFrame:
    """How much each head differs between two checkpoints: the mean divergence of its rows.

    Returns: ``layer``, ``head``, ``divergence`` (bits, over all rows of the sample), the head that
        changed most first.

    Raises:
        BertScopeError: the two have other layers or heads, or read the texts as other pieces.
    """
    import pandas as pd

    shape = model.num_layers, model.num_heads
    if shape != (other.num_layers, other.num_heads):
        raise BertScopeError(
            f"One checkpoint has {shape[0]} layers with {shape[1]} heads each, the other "
            f"{other.num_layers} with {other.num_heads}: their heads cannot be told to be the same.")
    inputs, others = encode_texts(model, texts), encode_texts(other, texts)
    if any(a.tokens != b.tokens for a, b in zip(inputs, others, strict=True)):
        raise BertScopeError("The two checkpoints cut the texts into different pieces, so the rows "
                             "of their heads are of different things.")
    total, rows = np.zeros(shape), 0
    for one, two in zip(attention_batches(model, inputs, progress),
                        attention_batches(other, others), strict=True):
        for (index, weights), (_, changed) in zip(one, two, strict=True):
            total += _divergence(weights.double(), changed.double()).sum(-1).numpy()
            rows += len(inputs[index])
    layer, head = np.meshgrid(np.arange(1, shape[0] + 1), np.arange(1, shape[1] + 1), indexing="ij")
    table = pd.DataFrame({"layer": layer.ravel(), "head": head.ravel(),
                          "divergence": (total / rows).ravel()})
    return table.sort_values("divergence", ascending=False, kind="stable", ignore_index=True)


def head_distances_cached(checkpoint: str | Path, texts: Sequence[Text], rows: int = ROWS,
                          seed: int = 0, progress: Progress | None = None,
                          open_model: Callable[[str | Path], LoadedModel] | None = None,
                          kept_only: bool = False) -> np.ndarray | None:
    """:func:`head_distances`, kept as ``head_statistics_cached`` keeps its table."""
    import pandas as pd

    from bertscope.analysis.kept import kept

    key = {"version": VERSION, "texts": texts_digest(texts), "rows": rows, "seed": seed}
    table = kept(checkpoint, "headdistances", key, lambda model: pd.DataFrame(
        head_distances(model, texts, rows, seed, progress)).rename(columns=str), open_model,
        kept_only)
    return None if table is None else table.to_numpy()


def changed_heads_cached(checkpoint: str | Path, other: str | Path, texts: Sequence[Text],
                         progress: Progress | None = None,
                         open_model: Callable[[str | Path], LoadedModel] | None = None,
                         kept_only: bool = False) -> pd.DataFrame | None:
    """:func:`changed_heads`, kept beside the first checkpoint."""
    from bertscope.analysis.kept import kept
    from bertscope.analysis.loading import load, weights_fingerprint

    key = {"version": VERSION, "texts": texts_digest(texts), "other": weights_fingerprint(other)}
    return kept(checkpoint, "changedheads", key, lambda model: changed_heads(
        model, (open_model or load)(other), texts, progress), open_model, kept_only)


# -- inside -----------------------------------------------------------------------------------


def _bits(p: torch.Tensor) -> torch.Tensor:
    """The entropy of distributions, [..., T] to [...]."""
    import torch

    return -torch.xlogy(p, p).sum(-1) / np.log(2)


def _divergence(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Jensen-Shannon, bits: [..., T] twice to [...]; rounding may not make it negative."""
    return (_bits((p + q) / 2) - (_bits(p) + _bits(q)) / 2).clamp(min=0)


def _between_all(rows: torch.Tensor) -> np.ndarray:
    """Summed over the rows, between all heads: [N, R, T] to float64 [N, N]."""
    size = len(rows)
    found, own = np.zeros((size, size)), _bits(rows)
    for i in range(size - 1):  # one head against all later ones: memory stays small
        mixed = _bits((rows[i] + rows[i + 1:]) / 2) - (own[i] + own[i + 1:]) / 2
        found[i, i + 1:] = mixed.clamp(min=0).sum(-1).numpy()
    return found + found.T
