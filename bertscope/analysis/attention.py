"""Attention weights: maps, statistics of heads, word-level weights, and bertviz without a network.

A row of a map is the piece that looks, a column the piece that is looked at; rows sum to 1.
Layers and heads are numbered from 1 wherever a person reads or writes them ("head 8-10").
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.activations import LoadedModel

#: Word pieces that bertviz draws in a second or three; it slows down with their square.
MOST_TOKENS = {"head": 64, "model": 32}
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


def attention_maps(model: LoadedModel, text: str, pair: str | None = None) -> AttentionMaps:
    """The attention weights of all layers and heads.

    Raises:
        BertScopeError: a text is empty or enormous, or the architecture has no such weights.
    """
    from bertscope.analysis.activations import encode, run

    encoded = encode(model, text, pair)
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


def quantised_grid(maps: AttentionMaps) -> bytes:
    """``round(255 * sqrt(weight))`` as uint8, [L, A, T, T] in row-major order.

    The square root spends the levels on small weights, of which there are most; a tooltip squares
    ``value / 255`` again and is off by 0.004 at most.
    """
    return np.rint(255 * np.sqrt(np.clip(maps.weights, 0, 1))).astype(np.uint8).tobytes()


# -- bertviz ----------------------------------------------------------------------------------


def bertviz_page(maps: AttentionMaps, view: str = "head", layers: Sequence[int] | None = None,
                 heads: Sequence[int] | None = None) -> str:
    """bertviz's head view or model view (Vig 2019) as one HTML page that needs no network.

    Its scripts are part of the page, tokens are text whatever they contain, the background is
    white. The page's security policy forbids every request. Weights are rounded to 3 decimals.
    Pairs can be filtered by the direction between the two texts.

    Args:
        view: ``"head"`` (lines between the pieces, heads by colour) or ``"model"`` (all heads).
        layers: the layers that are shown, numbered from 1; all by default.
        heads: the heads that are shown (model view) or selected at first (head view), from 1.

    Raises:
        BertScopeError: more pieces than the view can draw, another view, or no such layer or head.
    """
    if view not in MOST_TOKENS:
        raise BertScopeError(f"bertviz has a 'head' and a 'model' view here, not {view!r}.")
    if len(maps.tokens) > MOST_TOKENS[view]:
        raise BertScopeError(f"The {view} view can draw {MOST_TOKENS[view]} word pieces and this "
                             f"input has {len(maps.tokens)}: shorten the text or use the maps.")
    shown_layers = _chosen("layer", layers, maps.weights.shape[0])
    shown_heads = _chosen("head", heads, maps.weights.shape[1])
    html = _bertviz(maps, view, shown_layers, shown_heads if heads else None)
    html = _drop_second_copy(html)
    html = _renumber(html, shown_layers, shown_heads if view == "model" else None)
    html = _fill_in_tokens(html, maps.tokens)
    return _PAGE.format(style=_STYLE, scripts=_scripts(), body=html)


def _chosen(what: str, wanted: Sequence[int] | None, count: int) -> list[int]:
    """Numbers from 1 to indices from 0."""
    for number in wanted or ():
        if not 1 <= number <= count:
            raise BertScopeError(f"There is no {what} {number}: they are numbered 1 to {count}.")
    return [number - 1 for number in wanted] if wanted else list(range(count))


def _bertviz(maps: AttentionMaps, view: str, layers: list[int], heads: list[int] | None) -> str:
    import torch
    from bertviz import head_view, model_view

    # Rounded as doubles: a float32 prints .031 as 0.03099999949.
    attention = [torch.from_numpy(np.round(w.astype(np.float64), 3))[None] for w in maps.weights]
    second = maps.segments.index(1) if 1 in maps.segments else None
    marks = [f"TOK{i:05d}KOT" for i in range(len(maps.tokens))]
    common = {"sentence_b_start": second, "include_layers": layers, "html_action": "return"}
    if view == "head":
        html = head_view(attention, marks, heads=heads, **common).data
    else:
        html = model_view(attention, marks, include_heads=heads, display_mode="light",
                          **common).data
    # Same input, same page: a page that is equal isn't drawn again.
    return re.sub(r"bertviz-[0-9a-f]{32}", "bertviz", html)


def _drop_second_copy(html: str) -> str:
    """bertviz puts all data into a comment once more, and loads its scripts from outside."""
    html = re.sub(r"// HACK: .*? is a template marker", "// template marker", html)
    html = re.sub(r'<script src="https?://[^"]*"></script>', "", html)
    return re.sub(r"require\.config\(\{.*?\}\s*\}\);", "", html, count=1, flags=re.DOTALL)


def _renumber(html: str, layers: list[int], heads: list[int] | None) -> str:
    """Labels from 1: bertviz uses these lists for its labels and colours only."""
    for key, indices in (("include_layers", layers), ("include_heads", heads)):
        if indices is not None:
            html = re.sub(rf'"{key}": \[[\d, ]*\]',
                          f'"{key}": {json.dumps([i + 1 for i in indices])}', html, count=1)
    return html


def _fill_in_tokens(html: str, tokens: list[str]) -> str:
    """Tokens as JSON in which no character can end the script or the string."""
    def literal(token: str) -> str:
        token = token.replace("Ġ", " ").replace("▁", " ")  # as bertviz's prettify_tokens does
        text = json.dumps(token)  # ASCII, so line separators are escaped too
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

    return re.sub(r'"TOK(\d{5})KOT"', lambda match: literal(tokens[int(match[1])]), html)


@cache
def _scripts() -> str:
    assets = Path(__file__).parent / "assets"
    sources = [(assets / name).read_text("utf-8")
               for name in ("jquery-3.7.1.min.js", "d3-5.16.0.min.js")]
    sources.append("window.requirejs = (names, f) => f(window.jQuery, window.d3);")
    return "\n".join(f"<script>{source}</script>" for source in sources)


_STYLE = "body { margin: 8px; background: white; color: black; font-family: sans-serif; }"
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<title>Attention</title>
<style>{style}</style>
{scripts}
</head>
<body>
{body}
</body>
</html>
"""
