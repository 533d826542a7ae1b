"""Attention weights: maps, statistics of heads on one input, word-level weights, parts of a map.

A row of a map is the piece that looks, a column the piece that is looked at; rows sum to 1.
Layers and heads are numbered from 1 wherever a person reads or writes them ("head 8-10").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.activations import LoadedModel

#: Weights of all heads that are computed at once, 4 bytes each: BERT-large at 512 pieces has 101 million.
MOST_WEIGHTS = 110_000_000
#: Which weights between the two texts of a pair are looked at: name -> (from, to), None for both.
DIRECTIONS = {"all": (None, None), "A to B": (0, 1), "B to A": (1, 0), "within A": (0, 0),
              "within B": (1, 1)}
_CLS = ("[CLS]", "<s>")
_SEP = ("[SEP]", "</s>")


@dataclass
class AttentionMaps:
    """Every head's weights for one input of T pieces."""

    tokens: list[str]
    weights: np.ndarray                          # float32 [L, A, T, T], rows sum to 1
    segments: list[int]                          # 0 or 1 for each piece
    word_ids: list[int | None] | None = None     # as in Encoded; None for special tokens
    truncated: bool = False

    @property
    def special(self) -> list[bool]:
        """Which pieces are [CLS], [SEP] and the like."""
        return [word is None for word in self.word_ids or [0] * len(self.tokens)]


def attention_maps(model: LoadedModel, text: str, pair: str | None = None) -> AttentionMaps:
    """The attention weights of all layers and heads.

    Raises:
        BertScopeError: a text is empty or enormous, the architecture has no such weights, or they are
            more than MOST_WEIGHTS.
    """
    from bertscope.analysis.activations import encode, run

    encoded = encode(model, text, pair)
    heads = model.num_layers * model.num_heads
    if heads * len(encoded) ** 2 > MOST_WEIGHTS:
        most = int((MOST_WEIGHTS / heads) ** 0.5)
        raise BertScopeError(f"{heads:,} heads on {len(encoded):,} word pieces are more weights than "
                             f"BertScope keeps at once: shorten the text to {most:,} pieces.")
    weights = run(model, encoded, attentions=True, heads=False).attentions
    return AttentionMaps(encoded.tokens, weights, encoded.segments, encoded.word_ids,
                         encoded.truncated)


# -- numbers ----------------------------------------------------------------------------------


def head_summary(maps: AttentionMaps) -> pd.DataFrame:
    """What each head does on this input, after Clark et al. 2019, sections 3.1 to 3.3.

    One row for each head: ``layer`` and ``head`` (from 1); ``entropy`` of its rows in bits, 0 to
    log2 T; ``distance``, the mean |i - j| in pieces under the weights; and the mean weight on
    ``cls``, ``sep``, the ``previous``, the same (``self``) and the ``next`` piece. Means are over
    all rows, those of [CLS] and [SEP] too; ``previous`` and ``next`` over the rows that have one.
    """
    import pandas as pd

    weights = maps.weights.astype(np.float64)
    layers, heads, length, _ = weights.shape
    place = np.arange(length)
    distance = np.abs(place[:, None] - place[None, :])
    with np.errstate(divide="ignore"):
        logs = np.where(weights > 0, np.log2(weights), 0.0)

    def on(names: tuple[str, ...]) -> np.ndarray:
        columns = [i for i, token in enumerate(maps.tokens) if token in names]
        return weights[..., columns].sum(-1).mean(-1)

    def beside(offset: int) -> np.ndarray:
        band = np.diagonal(weights, offset, axis1=-2, axis2=-1)
        return band.mean(-1) if band.shape[-1] else np.zeros((layers, heads))

    layer, head = np.meshgrid(np.arange(1, layers + 1), np.arange(1, heads + 1), indexing="ij")
    columns = {
        "layer": layer, "head": head,
        "entropy": np.abs((weights * logs).sum(-1).mean(-1)),  # abs: minus, and never -0.0
        "distance": (weights * distance).sum(-1).mean(-1),
        "cls": on(_CLS), "sep": on(_SEP),
        "previous": beside(-1), "self": beside(0), "next": beside(1),
    }
    return pd.DataFrame({name: values.ravel() for name, values in columns.items()})


def merge_pieces(weights: np.ndarray, word_ids: Sequence[int | None],
                 ) -> tuple[np.ndarray, list[list[int]]]:
    """Weights between words (Clark et al. 2019, section 4.1): rows still sum to 1.

    Attention *to* a word is the sum over its pieces, attention *from* it the mean. A special token
    (word id None) is a word of its own.

    Args:
        weights: [..., T, T].
        word_ids: [T]; the pieces of a word stand together.

    Returns:
        ``[..., W, W]``, and for each word its pieces' positions.
    """
    groups: list[list[int]] = []
    for position, word in enumerate(word_ids):
        if position and word is not None and word == word_ids[position - 1]:
            groups[-1].append(position)
        else:
            groups.append([position])
    starts = [group[0] for group in groups]
    summed = np.add.reduceat(weights, starts, axis=-1)
    sizes = np.array([len(group) for group in groups], weights.dtype)
    return np.add.reduceat(summed, starts, axis=-2) / sizes[:, None], groups


def by_words(maps: AttentionMaps) -> AttentionMaps:
    """The same maps with a row and a column for each word instead of each piece."""
    if maps.word_ids is None:
        raise ValueError("these maps do not know which pieces make up a word")
    weights, groups = merge_pieces(maps.weights, maps.word_ids)
    words = ["".join(maps.tokens[i].removeprefix("##") if n else maps.tokens[i]
                     for n, i in enumerate(group)) for group in groups]
    return AttentionMaps(words, weights, [maps.segments[g[0]] for g in groups],
                         [maps.word_ids[g[0]] for g in groups], maps.truncated)


def places(maps: AttentionMaps, direction: str = "all", hide_special: bool = False,
           start: int = 0, end: int | None = None) -> tuple[list[int], list[int]]:
    """The pieces that look and those that are looked at, for one of :data:`DIRECTIONS`.

    Args:
        hide_special: leave out [CLS], [SEP] and the like. The other weights stay as they are, so that
            rows no longer sum to 1.
        start, end: pieces from ``start`` to before ``end`` only.

    Raises:
        BertScopeError: nothing is left, or there is no such direction.
    """
    if direction not in DIRECTIONS:
        raise BertScopeError(f"A direction is one of {', '.join(DIRECTIONS)}; not {direction!r}.")
    shown = [i for i, special in enumerate(maps.special)
             if start <= i < (len(maps.tokens) if end is None else end)
             and not (special and hide_special)]
    rows, columns = ([i for i in shown if segment in (None, maps.segments[i])]
                     for segment in DIRECTIONS[direction])
    if not rows or not columns:
        raise BertScopeError(f"There are no weights to show ({direction}): the text has no such pieces.")
    return rows, columns


def part(maps: AttentionMaps, head: tuple[int, int], rows: Sequence[int], columns: Sequence[int],
         ) -> np.ndarray:
    """One head's weights (layer and head from 0) from some pieces to others: [len(rows), len(columns)].
    """
    return maps.weights[head[0], head[1]][np.ix_(rows, columns)]


def difference(maps: AttentionMaps, other: AttentionMaps) -> AttentionMaps:
    """``maps`` minus ``other``, weights from -1 to 1.

    Raises:
        BertScopeError: they have other pieces or other heads.
    """
    if maps.tokens != other.tokens or maps.weights.shape != other.weights.shape:
        raise BertScopeError("The two have other pieces or other heads, so there is no difference to "
                             "draw.")
    return replace(maps, weights=maps.weights - other.weights)


def share_of(values: np.ndarray, columns: Sequence[int]) -> float:
    """Which part of what is in a map (its size, without signs) goes to some pieces: 0 to 1.

    Args:
        values: [..., T, T]; columns: the pieces that are looked at.
    """
    size = np.abs(np.asarray(values, np.float64))
    return float(size[..., list(columns)].sum() / max(size.sum(), 1e-300))


def one_map(weights: np.ndarray, layer: int, head: int | None = None, total: bool = False) -> np.ndarray:
    """A head's map, or the mean (``total``: the sum) of a layer's: [L, A, T, T] to [T, T].

    Args:
        layer, head: from 1; no head stands for all of the layer.
    """
    of_layer = weights[layer - 1]
    if head is not None:
        return of_layer[head - 1]
    return of_layer.sum(0) if total else of_layer.mean(0)


def summed(weights: np.ndarray, places: Sequence[int], looked_at: bool = False) -> np.ndarray:
    """What several pieces of a map look at together, or (``looked_at``) how much each piece looks at
    them: [R, C] to float64 [C] or [R].

    Args:
        places: rows of the map; columns where ``looked_at``.
    """
    weights = np.asarray(weights, np.float64)
    return weights[:, list(places)].sum(1) if looked_at else weights[list(places)].sum(0)
