"""bertviz's three views (Vig 2019) as pages that need no network and take no orders from a token.

bertviz loads its scripts from outside, puts all its data into the page twice, and does not escape tokens.
Here its scripts are part of the page, data are there once and rounded, and only the layers and heads that
were asked for are given to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from bertscope.analysis.activations import LoadedModel
    from bertscope.analysis.attention import AttentionMaps

#: Word pieces that bertviz draws in a second or three; it slows down with their square.
MOST_TOKENS = {"head": 64, "model": 32, "neuron": 64}
_MARK = "TOK{:05d}KOT"


def bertviz_page(maps: AttentionMaps, view: str = "head", layers: Sequence[int] | None = None,
                 heads: Sequence[int] | None = None, decimals: int = 3) -> str:
    """bertviz's head view or model view (Vig 2019) as one HTML page that needs no network.

    Its scripts are part of the page, tokens are text whatever they contain, the background is
    white. The page's security policy forbids every request. Pairs can be filtered by the direction
    between the two texts.

    Args:
        view: ``"head"`` (lines between the pieces, heads by colour) or ``"model"`` (all heads).
        layers, heads: those that are in the page, numbered from 1; all by default.
        decimals: of the weights.

    Raises:
        BertScopeError: more pieces than the view can draw, another view, or no such layer or head.
    """
    if view not in ("head", "model"):
        raise BertScopeError(f"bertviz has a 'head' and a 'model' view here, not {view!r}.")
    _bounded(view, len(maps.tokens))
    layers, heads = _chosen("layer", layers, maps.weights.shape[0]), \
        _chosen("head", heads, maps.weights.shape[1])
    html = _drop_second_copy(_bertviz(
        replace(maps, weights=maps.weights[np.ix_(layers, heads)]), view, decimals))
    html = _renumber(html, layers, heads if view == "model" else None)
    return _page(html, maps.tokens)


def neuron_page(model: LoadedModel, text: str, pair: str | None = None,
                layers: Sequence[int] | None = None, heads: Sequence[int] | None = None,
                decimals: int = 3) -> str:
    """bertviz's neuron view as such a page: how a weight comes of a query and a key.

    bertviz brings models of its own from 2019 for this; here it is given our model's queries, keys and
    weights. Arguments as in :func:`bertviz_page`.

    Raises:
        BertScopeError: as there, or the model's weights are not made of a query and a key alone.
    """
    from bertviz import neuron_view

    from bertscope.analysis.neurons import queries_and_keys

    found = queries_and_keys(model, text, pair)
    encoded = found.encoded
    _bounded("neuron", len(encoded))
    layers, heads = _chosen("layer", layers, model.num_layers), _chosen("head", heads, model.num_heads)
    chosen = np.ix_(layers, heads)
    standin = _StandIn(encoded, [
        {"attn": a, "queries": q, "keys": k} for a, q, k in zip(*(
            [_rounded(layer, decimals) for layer in values[chosen]]
            for values in (found.weights, found.queries, found.keys)), strict=True)])
    html = neuron_view.show(standin, "bert", standin, "a", "b" if 1 in encoded.segments else None,
                            display_mode="light", html_action="return").data
    for numbers in (layers, heads):  # the two lists, layers first, count from 0
        html = html.replace('($("<option />").val(i).text(i))',
                            f'($("<option />").val(i).text({json.dumps([n + 1 for n in numbers])}[i]))',
                            1)
    return _page(_drop_second_copy(_same_name(html)), encoded.tokens)


class _StandIn:
    """What bertviz's neuron view asks of a model and of a tokenizer, with the answers prepared.

    Pieces are marks, to be replaced by the real ones when the page is safe to hold them."""

    def __init__(self, encoded, layers: list[dict]):
        marks = [_MARK.format(i) for i in range(len(encoded))]
        second = encoded.segments.index(1) if 1 in encoded.segments else len(marks)
        self.cls_token, self.sep_token = marks[0], marks[-1]  # every [SEP] reads the same
        self._pieces = {"a": marks[1:second - 1], "b": marks[second:-1]}
        self._layers = layers

    def tokenize(self, which: str) -> list[str]:
        return self._pieces[which]

    def convert_tokens_to_ids(self, tokens: list[str]) -> list[int]:
        return [0] * len(tokens)

    def eval(self) -> None:
        pass

    def __call__(self, ids, token_type_ids=None) -> tuple:
        return (self._layers,)


def _bounded(view: str, pieces: int) -> None:
    if pieces > MOST_TOKENS[view]:
        raise BertScopeError(f"The {view} view can draw {MOST_TOKENS[view]} word pieces and this "
                             f"input has {pieces}: shorten the text or use the maps.")


def _chosen(what: str, wanted: Sequence[int] | None, count: int) -> list[int]:
    """Numbers from 1 to indices from 0."""
    for number in wanted or ():
        if not 1 <= number <= count:
            raise BertScopeError(f"There is no {what} {number}: they are numbered 1 to {count}.")
    return [number - 1 for number in wanted] if wanted else list(range(count))


def _rounded(values: np.ndarray, decimals: int):
    """A batch of one, as doubles: a float32 prints .031 as 0.03099999949."""
    import torch

    return torch.from_numpy(np.round(values.astype(np.float64), decimals))[None]


def _bertviz(maps: AttentionMaps, view: str, decimals: int) -> str:
    from bertviz import head_view, model_view

    attention = [_rounded(layer, decimals) for layer in maps.weights]
    marks = [_MARK.format(i) for i in range(len(maps.tokens))]
    common = {"sentence_b_start": maps.segments.index(1) if 1 in maps.segments else None,
              "html_action": "return"}
    html = head_view(attention, marks, **common) if view == "head" else \
        model_view(attention, marks, display_mode="light", **common)
    return _same_name(html.data)


def _same_name(html: str) -> str:
    """Same input, same page: a page that is equal isn't drawn again."""
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


def _page(body: str, tokens: list[str]) -> str:
    return _PAGE.format(style=_STYLE, scripts=_scripts(), body=_fill_in_tokens(body, tokens))


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
