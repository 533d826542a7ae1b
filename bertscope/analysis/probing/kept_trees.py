"""The structural probe and the amnesic control, found again by weights, data and settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bertscope.analysis.cache import analysis_folder
from bertscope.analysis.kept import kept

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.loading import LoadedModel
    from bertscope.analysis.probing.amnesic import AmnesicConfig
    from bertscope.analysis.probing.gold import Gold
    from bertscope.analysis.probing.items import Items
    from bertscope.analysis.probing.structural import Progress, StructuralConfig

OpenModel = Callable[[str | Path], "LoadedModel"]
#: The columns of an edge, of which a layer's row has none.
EDGE = ("sentence", "first", "second", "gold")


def structural_kept(checkpoint: str | Path, gold: Gold, config: StructuralConfig,
                    random: bool = False, progress: Progress | None = None,
                    open_model: OpenModel | None = None, kept_only: bool = False,
                    ) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """``structural_probe`` of all layers of a checkpoint: ``(layers, edges)``.

    ``layers`` has the columns of ``StructuralResult.layers`` and, the same in every row, those of
    ``baselines``: ``chain_uuas``, ``chain_spearman``, ``chain_root``. ``edges`` speak of the sentences
    ``structural.chosen(gold, config)["test"]``.

    Args:
        random: of the same architecture with random weights.
        open_model, kept_only: as ``kept.kept``.

    Raises:
        BertScopeError: as ``structural_probe``, or there is no such checkpoint.
    """
    import pandas as pd

    from bertscope.analysis.probing.structural import VERSION, structural_probe

    def compute(model: LoadedModel) -> pd.DataFrame:
        from bertscope.analysis.probing.features import Store
        from bertscope.analysis.probing.untrained import with_random_weights

        model = with_random_weights(model, config.seed) if random else model
        store = Store(analysis_folder(checkpoint) / "features", model)
        found = structural_probe(store, gold, config, progress=progress)
        chain = {f"chain_{name}": value for name, value in found.baselines.items()}
        return pd.concat([found.layers.assign(**chain, sentence=-1, first=-1, second=-1, gold=False),
                          found.edges], ignore_index=True)

    key = {"version": VERSION, "data": gold.fingerprint, "random": random, **asdict(config)}
    table = kept(checkpoint, "structural", key, compute, open_model, kept_only)
    if table is None:
        return None
    of_layers = table["sentence"] < 0
    layers = table[of_layers].drop(columns=list(EDGE)).astype({"epochs": int, "sentences": int})
    return layers, table.loc[~of_layers, ["layer", *EDGE]].reset_index(drop=True)


def amnesic_kept(checkpoint: str | Path, items: Items, config: AmnesicConfig,
                 progress: Progress | None = None, open_model: OpenModel | None = None,
                 kept_only: bool = False) -> pd.DataFrame | None:
    """``AmnesicResult.table`` of all layers, with the columns of ``summary`` (but for ``rank``) in the
    rows where the task was removed, ``low`` and ``high`` as ``excess_low`` and ``excess_high``.

    Args:
        open_model, kept_only: as ``kept.kept``.

    Raises:
        BertScopeError: as ``amnesic``, or there is no such checkpoint.
    """
    from bertscope.analysis.probing.amnesic import VERSION, amnesic

    def compute(model: LoadedModel) -> pd.DataFrame:
        found = amnesic(model, items, config, progress=progress)
        summary = found.summary.drop(columns="rank").rename(
            columns={"low": "excess_low", "high": "excess_high"}).assign(removed="task")
        return found.table.merge(summary, on=["layer", "removed"], how="left")

    key = {"version": VERSION, "items": items.fingerprint, **asdict(config)}
    return kept(checkpoint, "amnesic", key, compute, open_model, kept_only)
