"""Which pieces of the sentence are masked: in the session, and in the address as ``&mask=3,5``."""

from __future__ import annotations

import streamlit as st

from bertscope.ui.components import tokens

PARAMETER = "mask"
MAX_MASKS = 40


def places(encoded, about: tuple[int, int] | None = None) -> list[int]:
    """The masked places of an encoded text; ``about`` is the word that it is an example for.

    They belong to one text: another text begins with its own [MASK] pieces, or with the word that
    its experiment is about, or with one piece masked, so that there is something to see. At the
    first visit the address decides.
    """
    state = st.session_state
    pieces, text = encoded.tokens, encoded.text
    fixed = typed(encoded)
    kept, word = state.get("_masks"), state.pop("_mask_word", None)
    if word is not None:
        chosen = covering(encoded, *word)
    elif kept is not None and kept[0] == text:
        chosen = kept[1]
    else:
        asked = _parse(st.query_params.get(PARAMETER, "")) if kept is None else []
        chosen = asked or fixed or (covering(encoded, *about) if about else _default(encoded))
    free = {i for i in range(len(pieces)) if not encoded.special[i]}
    chosen = sorted(free & (set(chosen) | set(fixed)))[:MAX_MASKS]
    state["_masks"] = (text, chosen)
    _write(",".join(map(str, chosen)))
    return chosen


def typed(encoded) -> list[int]:
    """Places of [MASK] in the text itself."""
    return [i for i, piece in enumerate(encoded.tokens) if piece in ("[MASK]", "<mask>")]


def covering(encoded, start: int, end: int) -> list[int]:
    """Places of the pieces with a character in ``text[start:end]``."""
    return [i for i, (a, b) in enumerate(encoded.offsets)
            if not encoded.special[i] and a < end and b > start]


def transfer(encoded, masked: list[int], other) -> list[int]:
    """The places in another tokenizer's pieces of the same text."""
    if encoded.tokens == other.tokens:
        return [i for i in masked if i < len(other)]
    return sorted({j for i in masked for j in covering(other, *encoded.offsets[i])})


def take_click(key: str, encoded, before: list[int], whole: bool) -> None:
    """The token bar's callback; with ``whole``, a click takes all the pieces of its word along."""
    now = tokens.clicked(key)
    st.session_state["_masks"] = (encoded.text,
                                  whole_words(encoded, before, now) if whole else now)


def whole_words(encoded, before: list[int], now: list[int]) -> list[int]:
    """The places ``now``, with what changed since ``before`` done to whole words."""
    added, removed = set(now) - set(before), set(before) - set(now)

    def words(places: set[int]) -> set[int]:
        ids = {encoded.word_ids[i] for i in places if 0 <= i < len(encoded)} - {None}
        return {i for i, word in enumerate(encoded.word_ids) if word in ids}

    return sorted((set(now) | words(added)) - words(removed))


def choose(text: str, chosen: list[int]) -> None:
    """A button's callback: exactly these places of the text that is there."""
    st.session_state["_masks"] = (text, chosen)


def use(text: str, word: tuple[int, int]) -> None:
    """An experiment's callback: this text, with ``text[word[0]:word[1]]`` masked."""
    st.session_state["text"] = text
    st.session_state["_mask_word"] = word


def _write(value: str) -> None:
    if value and st.query_params.get(PARAMETER) != value:
        st.query_params[PARAMETER] = value
    elif not value and PARAMETER in st.query_params:
        del st.query_params[PARAMETER]


def _default(encoded) -> list[int]:
    """The longest whole word of the later half: often a noun or a verb."""
    pieces = encoded.tokens
    words = [i for i, piece in enumerate(pieces)
             if not encoded.special[i] and piece.isalpha()
             and not (i + 1 < len(pieces) and pieces[i + 1].startswith("##"))]
    later = [i for i in words if i >= len(pieces) // 2] or words
    return [max(later, key=lambda i: len(pieces[i]))] if later else []


def _parse(text: str) -> list[int]:
    return [int(part) for part in text[:400].split(",") if part.isascii() and part.isdigit()
            and len(part) < 6]
