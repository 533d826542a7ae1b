"""Tables on a checkpoint that are found again by what is in its weights, without opening it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.loading import LoadedModel


def kept(checkpoint: str | Path, kind: str, key: dict,
         compute: Callable[[LoadedModel], pd.DataFrame],
         open_model: Callable[[str | Path], LoadedModel] | None = None, kept_only: bool = False,
         ) -> pd.DataFrame | None:
    """The table kept for the weights and ``key``, or ``compute(model)``, which is then kept.

    Args:
        checkpoint: a directory or a hub name.
        key: JSON values of everything else that decides the table.
        open_model: opens the checkpoint, ``loading.load`` by default; called only if it is needed.
        kept_only: None instead of computing.

    Raises:
        BertScopeError: there is no such checkpoint, or what ``compute`` raises.
    """
    from bertscope.analysis.cache import analysis_folder, cached_frame, kept_frame
    from bertscope.analysis.loading import load, weights_fingerprint

    folder = analysis_folder(checkpoint)
    key = {**key, "checkpoint": weights_fingerprint(checkpoint)}
    if kept_only:
        return kept_frame(folder, kind, key)
    return cached_frame(folder, kind, key, lambda: compute((open_model or load)(checkpoint)))
