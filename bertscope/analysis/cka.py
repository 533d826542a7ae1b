r"""Are two layers, or two checkpoints, the same up to a rotation? Centred kernel alignment.

.. math:: \mathrm{CKA}(X, Y) = \frac{\mathrm{HSIC}(XX^T, YY^T)}
    {\sqrt{\mathrm{HSIC}(XX^T, XX^T)\ \mathrm{HSIC}(YY^T, YY^T)}}

with the linear kernel (Kornblith et al. 2019). With few texts and many dimensions the plain estimate
is too high, whatever the vectors; the debiased one takes the unbiased estimate of HSIC (Song et al.
2012, equation 5), as Nguyen, Raghu and Kornblith (2021) do. It is about 0 for vectors that have
nothing to do with each other, and may be a little below.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertscope.errors import BertScopeError

#: Texts at most: a layer is compared by its N × N similarities.
MOST_TEXTS = 1000


def cka(first: np.ndarray, second: np.ndarray, debiased: bool = True) -> float:
    """Linear CKA of two sets of vectors [N, H] and [N, H'] of the same N texts.

    NaN where one of them does not vary at all.

    Raises:
        BertScopeError: see :func:`cka_grid`.
    """
    return float(cka_grid([first], [second], debiased)[0, 0])


def cka_grid(rows: Sequence[np.ndarray], columns: Sequence[np.ndarray], debiased: bool = True,
             ) -> np.ndarray:
    """CKA of each of ``rows`` with each of ``columns``, float64 [rows, columns].

    Args:
        rows, columns: arrays [N, any width] of the same N texts, in the same order.

    Raises:
        BertScopeError: they are of different texts, of fewer than four, or of more than
            ``MOST_TEXTS``.
    """
    sizes = {len(x) for x in (*rows, *columns)}
    if len(sizes) != 1:
        raise BertScopeError("Layers are compared by their vectors of the same texts.")
    if not 4 <= min(sizes) <= MOST_TEXTS:
        raise BertScopeError(f"Layers are compared by 4 to {MOST_TEXTS:,} texts.")
    prepare = _debiased_gram if debiased else _centred_gram
    left = np.stack([prepare(x).ravel() for x in rows])
    same = len(rows) == len(columns) and all(a is b for a, b in zip(rows, columns))
    right = left if same else np.stack([prepare(x).ravel() for x in columns])
    norms = [np.sqrt((m ** 2).sum(1)) for m in (left, right)]
    with np.errstate(invalid="ignore", divide="ignore"):
        return (left / norms[0][:, None]) @ (right / norms[1][:, None]).T


def _centred_gram(vectors: np.ndarray) -> np.ndarray:
    """H K H, so that the product of two of them sums to HSIC times (N - 1)²."""
    centred = _spread(vectors)
    return centred @ centred.T


def _debiased_gram(vectors: np.ndarray) -> np.ndarray:
    """The U-centred Gram matrix (Székely and Rizzo 2014, definition 2): the product of two of them
    sums to N (N - 3) times the unbiased HSIC of Song et al., and the diagonal is 0."""
    centred = _spread(vectors)  # U-centring does not see a shift; numbers stay small
    gram = centred @ centred.T
    np.fill_diagonal(gram, 0)
    count = len(gram)
    means = gram.sum(0) / (count - 2)
    gram = gram - means[:, None] - means + means.sum() / (count - 1)
    np.fill_diagonal(gram, 0)
    return gram


def _spread(vectors: np.ndarray) -> np.ndarray:
    """Centred; exactly zero where nothing varies but by rounding."""
    vectors = np.asarray(vectors, np.float64)
    centred = vectors - vectors.mean(0)
    return centred if np.abs(centred).max() > 1e-6 * max(1.0, np.abs(vectors).max()) \
        else np.zeros_like(centred)
