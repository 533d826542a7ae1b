"""What each head does over a sample of texts, after Clark et al. 2019, section 3, and Kovaleva et al.
2019, section 4.2. Weights are summed up batch by batch and never kept."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bertscope.analysis.attention_sample import (Text, attention_batches, encode_texts, texts_digest)

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from bertscope.analysis.activations import Encoded, LoadedModel, Progress

#: Raise it when the numbers change.
VERSION = 1
#: The numbers of a head and what they mean, in the order of the columns.
STATISTICS = {
    "cls": "mean weight on [CLS]",
    "sep": "mean weight on the [SEP]s",
    "punctuation": "mean weight on pieces of nothing but punctuation",
    "previous": "mean weight on the piece before, over the pieces that have one",
    "self": "mean weight on the piece itself",
    "next": "mean weight on the piece after, over the pieces that have one",
    "same_segment": "of pairs: mean weight of a word piece on word pieces of its own text",
    "other_segment": "of pairs: mean weight of a word piece on word pieces of the other text",
    "entropy": "mean entropy of a row in bits: 0 looks at one piece, log2 T at all alike",
    "distance": "mean distance |i - j| in pieces under the weights",
}
PATTERNS = ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")
#: Thresholds of :func:`patterns`, as shares of what is beyond an even spread of attention.
DOMINANT, PRESENT = 0.5, 0.2
_REGIONS = ("vertical", "diagonal", "either", "block")
_WEIGHTED = tuple(name for name in STATISTICS if name != "entropy") + _REGIONS
#: What stands for a space or a continued word in the pieces of some tokenizers.
_MARKS = "Ġ▁"


def head_statistics(model: LoadedModel, texts: Sequence[Text], progress: Progress | None = None,
                    ) -> pd.DataFrame:
    """The :data:`STATISTICS` of every head over a sample.

    A row of weights counts once, whichever text it is from; rows of [CLS] and [SEP] count too,
    except for the two that speak of segments.

    Returns: a row per head: ``layer``, ``head`` (from 1), the statistics (NaN where the sample has
        nothing to tell, such as ``other_segment`` without pairs), then ``vertical``, ``diagonal``,
        ``either``, ``block`` (see :func:`patterns`), ``pattern``, and ``rows``, how many were seen.

    Raises:
        BertScopeError: no text, or the architecture has no attention weights.
    """
    inputs = encode_texts(model, texts)
    shape = model.num_layers, model.num_heads
    sums, even, counts = np.zeros((*shape, len(_WEIGHTED))), np.zeros(len(_WEIGHTED)), \
        np.zeros(len(_WEIGHTED))
    bits, rows = np.zeros(shape), 0
    for batch in attention_batches(model, inputs, progress):
        for index, weights in batch:
            masks, seen = _masks(inputs[index], model)
            sums += _under(weights, masks)
            even += masks.reshape(len(masks), -1).sum(1) / len(inputs[index])
            counts += seen
            bits += _entropy(weights)
            rows += len(inputs[index])
    return _table(sums, even, counts, bits, rows)


def patterns(table: pd.DataFrame) -> pd.Series:
    """The class of each head by :data:`PATTERNS` from the columns vertical, diagonal, either, block.

    Kovaleva et al. classed maps with a network trained on 400 hand-labelled ones; here are rules in
    its place. Each column is the share s of attention in a region beyond an even spread:
    s = (m - u) / (1 - u), with m the mean mass in it and u that of a head that attends evenly; at
    least 0. Regions: ``vertical`` the columns of special and punctuation pieces, ``diagonal``
    |i - j| <= 1, ``either`` both together, ``block`` the row's own segment (pairs only).

    ``either`` >= DOMINANT: vertical, diagonal, or both where both >= PRESENT; else ``block`` >=
    DOMINANT: block; else heterogeneous.
    """
    import pandas as pd

    vertical, diagonal = table["vertical"], table["diagonal"]
    names = np.select(
        [(table["either"] >= DOMINANT) & (np.minimum(vertical, diagonal) >= PRESENT),
         (table["either"] >= DOMINANT) & (vertical >= diagonal),
         table["either"] >= DOMINANT,
         table["block"] >= DOMINANT],
        ["vertical+diagonal", "vertical", "diagonal", "block"], "heterogeneous")
    return pd.Series(names, table.index, name="pattern")


def head_statistics_cached(checkpoint: str | Path, texts: Sequence[Text],
                           progress: Progress | None = None,
                           open_model: Callable[[str | Path], LoadedModel] | None = None,
                           kept_only: bool = False) -> pd.DataFrame | None:
    """:func:`head_statistics`, kept beside the checkpoint by what is in its weights and the texts.

    Args:
        open_model: opens a checkpoint, ``loading.load`` by default; called only if nothing is kept.
        kept_only: None instead of computing.
    """
    from bertscope.analysis.kept import kept

    return kept(checkpoint, "headstatistics", {"version": VERSION, "texts": texts_digest(texts)},
                lambda model: head_statistics(model, texts, progress), open_model, kept_only)


def is_punctuation(token: str) -> bool:
    """Whether a piece has nothing but punctuation (Unicode category P) in it, a mark of its place
    in the word aside."""
    text = token.removeprefix("##").strip(_MARKS)
    return bool(text) and all(unicodedata.category(c).startswith("P") for c in text)


# -- inside -----------------------------------------------------------------------------------


def _masks(encoded: Encoded, model: LoadedModel) -> tuple[np.ndarray, np.ndarray]:
    """What each number weighs the weights with, float32 [K, T, T] in the order of ``_WEIGHTED``, and
    how many rows it is the mean of, int64 [K]."""
    length = len(encoded)
    place = np.arange(length)
    offset = place[None, :] - place[:, None]                      # j - i
    special = np.asarray(encoded.special, bool)
    ids = np.asarray(encoded.input_ids)
    cls = special & (ids == model.tokenizer.cls_token_id)
    sep = special & (ids == model.tokenizer.sep_token_id)
    stops = ~special & np.array([is_punctuation(token) for token in encoded.tokens])
    vertical = np.broadcast_to(special | stops, (length, length))
    diagonal = np.abs(offset) <= 1
    segment = np.asarray(encoded.segments)
    own = segment[:, None] == segment[None, :]
    pair = 1 in encoded.segments
    words = ~special[:, None] & ~special[None, :]
    columns = {
        "cls": np.broadcast_to(cls, (length, length)), "sep": np.broadcast_to(sep, (length, length)),
        "punctuation": np.broadcast_to(stops, (length, length)),
        "previous": offset == -1, "self": offset == 0, "next": offset == 1,
        "same_segment": words & own & pair, "other_segment": words & ~own & pair,
        "distance": np.abs(offset), "vertical": vertical, "diagonal": diagonal,
        "either": vertical | diagonal, "block": own & pair,
    }
    rows = {"previous": length - 1, "next": length - 1, "block": length * pair}
    rows["same_segment"] = rows["other_segment"] = int((~special).sum()) * pair
    return (np.stack([columns[name] for name in _WEIGHTED]).astype(np.float32),
            np.array([rows.get(name, length) for name in _WEIGHTED]))


def _under(weights: torch.Tensor, masks: np.ndarray) -> np.ndarray:
    """The sums of the weights under each mask: [L, A, T, T] and [K, T, T] to float64 [L, A, K]."""
    import torch

    flat = torch.from_numpy(masks).flatten(1)
    return (weights.flatten(2) @ flat.T).double().numpy()


def _entropy(weights: torch.Tensor) -> np.ndarray:
    """Summed over the rows, bits, float64 [L, A]."""
    import torch

    return -torch.xlogy(weights, weights).sum((-2, -1)).double().numpy() / np.log(2)


def _table(sums, even, counts, bits, rows) -> pd.DataFrame:
    import pandas as pd

    with np.errstate(invalid="ignore"):
        means, even = sums / counts, even / counts
    layers, heads = bits.shape
    layer, head = np.meshgrid(np.arange(1, layers + 1), np.arange(1, heads + 1), indexing="ij")
    found = {name: means[..., k] for k, name in enumerate(_WEIGHTED)}
    found["entropy"] = np.maximum(bits / rows, 0.0)
    for k, name in enumerate(_WEIGHTED):
        if name in _REGIONS:  # a region that is the whole map tells nothing
            beyond = (means[..., k] - even[k]) / (1 - even[k]) if even[k] < 1 else np.nan
            found[name] = np.maximum(np.broadcast_to(beyond, bits.shape), 0.0)
    columns = {"layer": layer, "head": head, **{name: found[name] for name in STATISTICS},
               **{name: found[name] for name in _REGIONS}}
    table = pd.DataFrame({name: values.ravel() for name, values in columns.items()})
    return table.assign(pattern=patterns(table), rows=rows)
