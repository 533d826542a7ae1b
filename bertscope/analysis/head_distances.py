"""How alike heads are: Jensen-Shannon divergence of their rows, and a map of it (Clark et al. 2019,
section 6, Figure 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bertscope.analysis.attention_sample import Text

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.activations import LoadedModel, Progress

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
    raise NotImplementedError


def head_map(divergence: np.ndarray, like: np.ndarray | None = None) -> HeadMap:
    """Classical multidimensional scaling of sqrt(divergence) (Torgerson 1952): closed form, the same
    every time. The square root of the divergence is a metric, of points in a Euclidean space even
    (Endres and Schindelin 2003; Fuglede and Topsoe 2004), so no distance is negative.

    Args:
        like: points [L * A, 2] of another checkpoint: the map is turned and mirrored, not stretched,
            to lie as near to them as it can (orthogonal Procrustes), so that it does not jump.
    """
    raise NotImplementedError


def changed_heads(model: LoadedModel, other: LoadedModel, texts: Sequence[Text],
                  progress: Progress | None = None) -> pd.DataFrame:
    """How much each head differs between two checkpoints: the mean divergence of its rows.

    Returns: ``layer``, ``head``, ``divergence`` (bits, over all rows of the sample), the head that
        changed most first.

    Raises:
        BertScopeError: the two have other layers or heads, or read the texts as other pieces.
    """
    raise NotImplementedError


def head_distances_cached(checkpoint: str | Path, texts: Sequence[Text], rows: int = ROWS,
                          seed: int = 0, progress: Progress | None = None,
                          open_model: Callable[[str | Path], LoadedModel] | None = None,
                          kept_only: bool = False) -> np.ndarray | None:
    """:func:`head_distances`, kept as ``head_statistics_cached`` keeps its table."""
    raise NotImplementedError


def changed_heads_cached(checkpoint: str | Path, other: str | Path, texts: Sequence[Text],
                         progress: Progress | None = None,
                         open_model: Callable[[str | Path], LoadedModel] | None = None,
                         kept_only: bool = False) -> pd.DataFrame | None:
    """:func:`changed_heads`, kept beside the first checkpoint."""
    raise NotImplementedError
