"""What is computed of the text that the page is about, kept between reruns within a bound of memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import streamlit as st

from bertscope.ui import compared, loaders
from bertscope.ui.attention import Look
from bertscope.ui.selection import Choice

#: Bytes of arrays that are kept for all visitors; the newest are kept whatever their size.
MOST_BYTES = 400_000_000


@st.cache_resource(show_spinner=False)
def _kept() -> OrderedDict:
    return OrderedDict()


def kept(key: tuple, compute: Callable[[], object]):
    """``compute()``, or what it gave for the same key not long ago: an object with arrays in it."""
    results = _kept()
    found = results.pop(key, None)
    if found is None:
        found = compute()
    results[key] = found
    while len(results) > 1 and sum(_bytes(found) for found in list(results.values())) > MOST_BYTES:
        results.popitem(last=False)
    return found


def _bytes(found) -> int:
    return sum(getattr(value, "nbytes", 0) for value in vars(found).values())


def maps(choice: Choice, text: str, pair: str | None, words: bool = False):
    """``AttentionMaps`` of a text (or a pair) by a checkpoint; of whole words where ``words``.

    Raises:
        BertScopeError: the checkpoint or its weights cannot be shown.
    """
    from bertscope.analysis.attention import attention_maps, by_words

    return kept(("maps", choice.path, loaders.stamp(choice.path), text, pair, words),
                lambda: by_words(maps(choice, text, pair)) if words else
                attention_maps(loaders.model(choice), text, pair))


def both(look: Look, words: bool = False) -> tuple:
    """The maps of the checkpoint and of the second one (None, with a sentence, where it has none)."""
    ours = maps(look.chosen, look.text, look.pair, words)
    if look.other is None:
        return ours, None
    with compared.aside(look.other):
        return ours, maps(look.other, look.text, look.pair, words)
    return ours, None
