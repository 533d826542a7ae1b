"""Does a head matter? What becomes of predictions and losses when heads are turned off (Michel et al.
2019; Voita et al. 2019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bertscope.analysis.attention_sample import Text

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.activations import Encoded, LoadedModel, Progress
    from bertscope.analysis.inputs import Made

VERSION = 1
MASK_RATE = 0.15


@dataclass(frozen=True)
class Loss:
    """``mlm`` in nats per masked piece and the share ``accuracy`` of them guessed right, over
    ``places``; of pairs with a head for them ``nsp`` (nats) and ``nsp_accuracy``, else None."""

    mlm: float | None
    accuracy: float | None
    places: int
    nsp: float | None = None
    nsp_accuracy: float | None = None


def masked_sample(model: LoadedModel, texts: Sequence[Text], labels: Sequence[int] | None = None,
                  seed: int = 0) -> list[Made]:
    """The texts with 15 % of their word pieces (at least one) hidden behind [MASK].

    Args:
        labels: of pairs, 0 = B follows A (or: in order), 1 = it does not.
    """
    raise NotImplementedError


def held_out_loss(model: LoadedModel, rows: Sequence[Made], progress: Progress | None = None) -> Loss:
    """The losses that training would have on ``rows``; for the model of ``without_heads`` too.

    Raises:
        BertScopeError: no head for masked pieces or pairs.
    """
    raise NotImplementedError


def effect_of_each_head(model: LoadedModel, encoded: Encoded, masked: Sequence[int],
                        progress: Progress | None = None) -> pd.DataFrame:
    """One masked prediction with each head off in its turn, all in a few batches.

    Returns: a row per head and one per layer (``head`` 0: all of its heads): ``layer``, ``head``,
        ``surprisal`` (change of -log2 P(original), bits, mean over ``masked``; positive: it got
        worse; NaN where the text itself said [MASK]), ``divergence`` (KL(as it is || without), bits,
        mean over ``masked``).

    Raises:
        BertScopeError: no MLM head, or heads cannot be turned off.
    """
    raise NotImplementedError


def effect_of_each_head_on_pair(model: LoadedModel, a: str, b: str,
                                progress: Progress | None = None) -> pd.DataFrame:
    """The same for a pair: ``layer``, ``head``, ``p_yes`` without it, ``change`` of P(yes)."""
    raise NotImplementedError


def prune_curve(model: LoadedModel, rows: Sequence[Made], order: Sequence[tuple[int, int]],
                steps: int = 10, progress: Progress | None = None) -> pd.DataFrame:
    """The losses while more and more heads are turned off, in ``order``, in about ``steps`` steps.

    Returns: ``off`` (how many heads, from 0 to all in ``order``), ``share`` (of the model's heads),
        ``mlm``, ``accuracy``, ``nsp``, ``nsp_accuracy`` (NaN where there is none).
    """
    raise NotImplementedError


def head_importance(model: LoadedModel, rows: Sequence[Made], progress: Progress | None = None,
                    ) -> pd.DataFrame:
    """Importance of each head by the gradient of the MLM loss (Michel et al. 2019, section 4.1).

    I_h = E_x |dL(x) / dxi_h| at xi = 1, which is E_x |Att_h . dL/dAtt_h|; L(x) is the mean loss over
    the masked pieces of example x.

    Returns: ``layer``, ``head``, ``importance`` (nats), ``normalised`` (by the l2 norm of the
        layer), ``slope`` (mean of dL/dxi_h with its sign: minus the slope is what turning the head
        off would cost, to first order).
    """
    raise NotImplementedError


def head_importance_cached(checkpoint: str | Path, texts: Sequence[Text], seed: int = 0,
                           progress: Progress | None = None,
                           open_model: Callable[[str | Path], LoadedModel] | None = None,
                           kept_only: bool = False) -> pd.DataFrame | None:
    """:func:`head_importance` on :func:`masked_sample`, kept beside the checkpoint."""
    raise NotImplementedError


def prune_curve_cached(checkpoint: str | Path, texts: Sequence[Text],
                       order: Sequence[tuple[int, int]], steps: int = 10, seed: int = 0,
                       labels: Sequence[int] | None = None, progress: Progress | None = None,
                       open_model: Callable[[str | Path], LoadedModel] | None = None,
                       kept_only: bool = False) -> pd.DataFrame | None:
    """:func:`prune_curve` on :func:`masked_sample`, kept beside the checkpoint."""
    raise NotImplementedError
