"""Why both sides matter: one place predicted from its left, its right, and both (Devlin et al.
2019, section 1: a model that reads one way only is limited by that)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertscope.analysis.activations import Encoded, LoadedModel
from bertscope.analysis.causal import next_token_logits, require_next_token_head
from bertscope.analysis.mlm_head import log_probabilities_at
from bertscope.analysis.predictions import hide
from bertscope.errors import BertScopeError

SIDES = ("left", "right", "both")


@dataclass(frozen=True)
class OneSide:
    """What the model read, and what it expects: natural logarithms over the vocabulary."""

    tokens: list[str]    # the pieces read, the place being ``[MASK]`` in ``tokens[place]``
    place: int           # len(tokens) for a causal model: the piece that would come next
    log_p: np.ndarray    # float64 [V]


def sides(model: LoadedModel, encoded: Encoded, masked: Sequence[int], place: int,
          cut: bool = True) -> dict[str, OneSide]:
    """Ask for one place with the context left of it, right of it, and on both sides.

    The other context is taken away from the text, not hidden from attention: nothing of it is left
    in any state. ``cut`` ends (or begins) the sentence at the place, as if more had not been
    written; otherwise each piece of
    the other side becomes ``[MASK]``, so that the model still sees how many there are.

    Args:
        masked: the positions that are hidden, ``place`` among them.

    Raises:
        BertScopeError: the checkpoint has no MLM head, or a position is not that of a word piece.
    """
    hidden = hide(model, encoded, {*masked, place})
    inputs = [_without(model, hidden, place, side, cut) for side in SIDES]
    where = [int(np.flatnonzero(kept == place)[0]) for _, kept in inputs]
    answers: list[np.ndarray] = [np.empty(0)] * len(SIDES)
    asked = [shown for shown, _ in inputs]
    for index, found in log_probabilities_at(model, asked, [[i] for i in where]):
        answers[index] = found[0].astype(np.float64)
    return {side: OneSide(_tokens(model, shown), at, log_p) for side, shown, at, log_p
            in zip(SIDES, asked, where, answers, strict=True)}


def left_to_right(causal: LoadedModel, model: LoadedModel, encoded: Encoded,
                  masked: Sequence[int], place: int) -> OneSide:
    """What a causal model expects where ``model``'s piece ``place`` begins.

    It reads the same text up to there, in its own pieces. What is masked further left is ``[MASK]``
    for it too.

    Args:
        model, encoded, masked, place: the other model and its input, as in :func:`sides`.

    Raises:
        BertScopeError: the checkpoint is not causal, or its tokenizer has no piece that begins
            there.
    """
    require_next_token_head(causal)
    names = (model.text_encoder.mask_token, causal.text_encoder.mask_token)
    text, at = _with_mask(encoded, *names)
    own = causal.text_encoder.encode(text)
    piece = text[slice(*at[place])]
    begins = at[place][1] - len(piece.lstrip())  # SentencePiece counts the space before to a piece
    start = next((i for i in range(len(own)) if not own.special[i] and own.offsets[i][1] > begins),
                 None)
    if start is None:
        raise BertScopeError(f"The causal model reads {causal.max_length} pieces at most, and this "
                             "place is beyond them.")
    if own.offsets[start][0] < begins:
        raise BertScopeError("The causal model's tokenizer cuts this word into other pieces, so it "
                             "has no piece that begins here.")
    left = [at[i] for i in masked if i < place]
    read = _take(own, np.arange(start))
    read = hide(causal, read, [i for i, (a, b) in enumerate(read.offsets) if not read.special[i]
                               and any(a < end and b > begin for begin, end in left)])
    logits = next_token_logits(causal, read)[-1].astype(np.float64)
    log_p = logits - logits.max()
    return OneSide(_tokens(causal, read), start, log_p - np.log(np.exp(log_p).sum()))


def piece_id(model: LoadedModel, token: str) -> int | None:
    """The number of a piece in a model's vocabulary, None where it is not in it."""
    index = model.tokenizer.convert_tokens_to_ids(token)
    if index is None or model.tokenizer.convert_ids_to_tokens(index) != token:
        return None
    return index


def same_vocabulary(a: LoadedModel, b: LoadedModel) -> bool:
    """Whether two models' pieces have the same names and numbers."""
    return a.tokenizer.get_vocab() == b.tokenizer.get_vocab()


def _without(model: LoadedModel, hidden: Encoded, place: int, side: str, cut: bool,
             ) -> tuple[Encoded, np.ndarray]:
    """The input with one side taken away, and which positions of the whole it still has."""
    positions = np.arange(len(hidden))
    if side == "both":
        return hidden, positions
    other = (positions > place if side == "left" else positions < place) & ~hidden.special
    if cut:
        kept = positions[~other]
        return _take(hidden, kept), kept
    return hide(model, hidden, positions[other].tolist()), positions


def _with_mask(encoded: Encoded, old: str | None, new: str | None,
               ) -> tuple[str, list[tuple[int, int]]]:
    """The text with another model's mask token where it was typed, and the offsets in it."""
    text = encoded.text
    if None in (old, new) or old == new:
        return text, encoded.offsets
    return text.replace(old, new), [(len(text[:a].replace(old, new)),
                                     len(text[:b].replace(old, new))) for a, b in encoded.offsets]


def _take(encoded: Encoded, kept: np.ndarray) -> Encoded:
    """The same input with some of its pieces only."""
    arrays = ("input_ids", "token_type_ids", "attention_mask", "special")
    lists = ("tokens", "word_ids", "segments", "offsets")
    return dataclasses.replace(
        encoded, **{name: getattr(encoded, name)[kept] for name in arrays},
        **{name: [getattr(encoded, name)[i] for i in kept] for name in lists})


def _tokens(model: LoadedModel, shown: Encoded) -> list[str]:
    """The pieces as the model read them."""
    return [token or f"[{i}]" for token, i in
            zip(model.tokenizer.convert_ids_to_tokens(shown.input_ids.tolist()), shown.input_ids)]
