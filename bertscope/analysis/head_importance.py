"""How much the loss hangs on each head, by its gradient (Michel et al. 2019, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bertscope.analysis.attention_sample import Text, texts_digest
from bertscope.analysis.head_ablation import masked_sample, prune_curve
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.activations import LoadedModel, Progress
    from bertscope.analysis.inputs import Made

#: Raise it when the numbers change.
VERSION = 1
#: Pieces whose gradients are computed at once: what bounds memory.
GRADIENT_PIECES = 1024


def head_importance(model: LoadedModel, rows: Sequence[Made], progress: Progress | None = None,
                    ) -> pd.DataFrame:
    """Importance of each head by the gradient of the MLM loss (Michel et al. 2019, section 4.1).

    I_h = E_x |dL(x) / dxi_h| at xi = 1, which is E_x |Att_h . dL/dAtt_h|; L(x) is the mean loss over
    the masked pieces of example x. Examples without one are left out.

    Args:
        rows: of ``head_ablation.masked_sample``.

    Returns: ``layer``, ``head``, ``importance`` (nats), ``normalised`` (by the l2 norm of the
        layer; 0 where the whole layer has none), ``slope`` (mean of dL/dxi_h with its sign: minus
        the slope is what turning the head off would cost, to first order).

    Raises:
        BertScopeError: no MLM head, nothing masked, or heads cannot be turned off.
    """
    import pandas as pd

    rows = [row for row in rows if len(row.chosen)]
    if not rows:
        raise BertScopeError("Nothing is masked in these texts, so there is no loss to measure.")
    shape = model.num_layers, model.num_heads
    absolute, signed = np.zeros(shape), np.zeros(shape)
    longest = max(map(len, rows))
    size = max(1, GRADIENT_PIECES // longest)
    for start in range(0, len(rows), size):
        slopes = gate_gradients(model, rows[start:start + size])
        absolute += np.abs(slopes).sum(0)
        signed += slopes.sum(0)
        done = min(start + size, len(rows))
        if progress:
            progress(f"{done:,} of {len(rows):,} examples", done / len(rows))
    importance = absolute / len(rows)
    norm = np.sqrt((importance ** 2).sum(1, keepdims=True))
    layer, head = np.meshgrid(np.arange(1, shape[0] + 1), np.arange(1, shape[1] + 1), indexing="ij")
    return pd.DataFrame({
        "layer": layer.ravel(), "head": head.ravel(), "importance": importance.ravel(),
        "normalised": np.divide(importance, norm, out=np.zeros(shape), where=norm > 0).ravel(),
        "slope": (signed / len(rows)).ravel()})


def gate_gradients(model: LoadedModel, rows: Sequence[Made]) -> np.ndarray:
    """dL(x) / dxi of one batch of examples, float64 [B, L, A]."""
    import torch

    from bertscope.analysis.head_gates import with_gates
    from bertscope.analysis.mlm_head import mlm_logits, require_mlm_head
    from bertscope.analysis.place_losses import padded_inputs

    require_mlm_head(model)
    with torch.enable_grad():
        gates = torch.ones(len(rows), model.num_layers, model.num_heads, device=model.device,
                           requires_grad=True)
        gated = with_gates(model, gates)
        hidden = gated.model.base_model(**padded_inputs(gated, rows)).last_hidden_state
        owner = np.concatenate([[number] * len(row.chosen) for number, row in enumerate(rows)])
        places = np.concatenate([row.chosen for row in rows])
        labels = torch.from_numpy(np.concatenate([row.ids[row.chosen] for row in rows]))
        log_p = mlm_logits(gated, hidden[owner, places]).log_softmax(-1)
        loss = -log_p.gather(1, labels[:, None].to(log_p.device))[:, 0]
        share = torch.tensor([1 / len(rows[number].chosen) for number in owner.tolist()])
        (gradient,) = torch.autograd.grad((loss * share.to(loss.device)).sum(), gates)
    if not torch.isfinite(gradient).all():
        raise BertScopeError("The weights of this checkpoint give values that are not finite: its "
                             "training has diverged.")
    return gradient.double().cpu().numpy()


def least_first(importance: pd.DataFrame, by: str = "importance") -> list[tuple[int, int]]:
    """(layer, head) of all heads, the least important first: an order to prune by."""
    ordered = importance.sort_values(by, kind="stable")
    return list(zip(ordered["layer"].tolist(), ordered["head"].tolist(), strict=True))


def head_importance_cached(checkpoint: str | Path, texts: Sequence[Text], seed: int = 0,
                           progress: Progress | None = None,
                           open_model: Callable[[str | Path], LoadedModel] | None = None,
                           kept_only: bool = False) -> pd.DataFrame | None:
    """:func:`head_importance` on ``masked_sample``, kept by what is in the weights and texts.

    Args:
        open_model, kept_only: as ``head_statistics_cached``.
    """
    from bertscope.analysis.kept import kept

    key = {"version": VERSION, "texts": texts_digest(texts), "seed": seed}
    return kept(checkpoint, "headimportance", key, lambda model: head_importance(
        model, masked_sample(model, texts, seed=seed), progress), open_model, kept_only)


def prune_curve_cached(checkpoint: str | Path, texts: Sequence[Text],
                       order: Sequence[tuple[int, int]], steps: int = 10, seed: int = 0,
                       labels: Sequence[int] | None = None, progress: Progress | None = None,
                       open_model: Callable[[str | Path], LoadedModel] | None = None,
                       kept_only: bool = False) -> pd.DataFrame | None:
    """``prune_curve`` on ``masked_sample``, kept likewise."""
    from bertscope.analysis.kept import kept

    key = {"version": VERSION, "texts": texts_digest(texts), "seed": seed, "steps": steps,
           "order": [list(map(int, head)) for head in order],
           "labels": None if labels is None else list(map(int, labels))}
    return kept(checkpoint, "prunecurve", key, lambda model: prune_curve(
        model, masked_sample(model, texts, labels, seed), order, steps, progress), open_model,
        kept_only)
