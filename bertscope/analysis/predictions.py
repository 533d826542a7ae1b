"""What the model puts in a masked place (Devlin et al. 2019, section 3.1, task 1)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bertscope.analysis.activations import Encoded, LoadedModel
from bertscope.analysis.mlm_head import log_probabilities_at, require_mlm_head
from bertscope.errors import BertScopeError


@dataclass
class Candidate:
    """A word piece of the vocabulary and its probability."""

    token: str
    id: int
    probability: float


@dataclass
class MaskPrediction:
    """The model's answer for one masked place.

    ``rank_of_original`` counts from 1; equal probabilities share the best rank. It and
    ``surprisal_bits`` (minus log2 of the original's probability) are None where the text itself
    said ``[MASK]``. ``entropy_bits`` is that of the whole distribution over V pieces, in
    0 ... log2 V.
    """

    position: int
    original: str
    candidates: list[Candidate]
    rank_of_original: int | None
    surprisal_bits: float | None
    entropy_bits: float


@dataclass
class Typed:
    """A word that was typed as a candidate. ``id`` is None where it is not one piece of the
    vocabulary; ``pieces`` are then what it would be cut into, empty where nothing is left of it,
    ``unknown`` whether a part of it is [UNK].
    """

    word: str
    id: int | None
    token: str
    pieces: list[str]
    unknown: bool


def typed_candidates(model: LoadedModel, encoded: Encoded, position: int, words: Sequence[str],
                     ) -> list[Typed]:
    """The pieces that words would be in the place of a masked piece.

    Each word is put into the text there and the whole read again, so that the tokenizer sees the
    space (or none) before it: GPT-2's pieces, RoBERTa's too, differ by that. A word that becomes
    several pieces, or [UNK], has no single probability here and is never stood for by a part.
    """
    start, end = encoded.offsets[position]
    text = encoded.pair if encoded.segments[position] else encoded.text
    if text[start:start + 1] == " ":  # SentencePiece counts the space to its piece
        start += 1
    return [_typed(model, text, start, end, word) for word in words]


def _typed(model: LoadedModel, text: str, start: int, end: int, word: str) -> Typed:
    near = max(0, start - 200)  # far text changes no piece and may be more than is read
    read = model.text_encoder.encode(text[near:start] + word + text[end:end + 200])
    stop = start - near + len(word)
    places = [i for i, (a, b) in enumerate(read.offsets)
              if not read.special[i] and b > start - near and a < stop]
    pieces = [read.tokens[i] for i in places]
    unknown = model.tokenizer.unk_token in pieces
    one = len(places) == 1 and read.offsets[places[0]][1] == stop and not unknown \
        and pieces[0] != model.tokenizer.mask_token
    return Typed(word, int(read.input_ids[places[0]]) if one else None, pieces[0] if one else word,
                 pieces, unknown)


def predict(model: LoadedModel, encoded: Encoded, masked: Sequence[int], k: int = 10,
            ) -> list[MaskPrediction]:
    """Mask the pieces at the positions ``masked``, all at once, and ask the MLM head for each.

    Probabilities are the softmax over the whole vocabulary, special tokens included.

    Args:
        masked: positions in ``encoded``; a piece that is ``[MASK]`` already may be among them.
        k: candidates for each place, the most probable first.

    Raises:
        BertScopeError: the checkpoint has no MLM head, or a position is not that of a word piece.
    """
    log_p = log_probabilities(model, encoded, masked)
    return [_prediction(model, encoded, position, row, k)
            for position, row in zip(masked, log_p, strict=True)]


def log_probabilities(model: LoadedModel, encoded: Encoded, masked: Sequence[int]) -> np.ndarray:
    """The whole distributions behind :func:`predict`: float64 [M, V], natural logarithms.

    Raises:
        BertScopeError: as :func:`predict`.
    """
    require_mlm_head(model)
    if not len(masked):
        return np.zeros((0, model.model.config.vocab_size))
    hidden = hide(model, encoded, masked)
    return next(log_probabilities_at(model, [hidden], [list(masked)]))[1].astype(np.float64)


def rate(log_p: np.ndarray, ids: Iterable[int]) -> list[tuple[int, float, int]]:
    """(id, probability, rank) of some pieces in a distribution [V], the most probable first."""
    rated = [(int(i), float(np.exp(log_p[i])), 1 + int((log_p > log_p[i]).sum())) for i in ids]
    return sorted(rated, key=lambda row: (-row[1], row[0]))


def hide(model: LoadedModel, encoded: Encoded, masked: Sequence[int]) -> Encoded:
    """The same input with [MASK] at the positions ``masked``.

    Raises:
        BertScopeError: a position is not that of a word piece.
    """
    ids = encoded.input_ids.copy()
    for position in masked:
        if not 0 <= position < len(encoded) or encoded.special[position]:
            raise BertScopeError(f"Position {position} cannot be masked: it is not a word piece.")
        ids[position] = model.tokenizer.mask_token_id
    return dataclasses.replace(encoded, input_ids=ids)


def _prediction(model: LoadedModel, encoded: Encoded, position: int, log_p: np.ndarray, k: int,
                ) -> MaskPrediction:
    best = np.argsort(-log_p, kind="stable")[:max(1, k)]
    original = int(encoded.input_ids[position])
    known = original != model.tokenizer.mask_token_id
    return MaskPrediction(
        position=int(position),
        original=encoded.tokens[position],
        candidates=[Candidate(_token(model, int(i)), int(i), float(np.exp(log_p[i])))
                    for i in best],
        rank_of_original=1 + int((log_p > log_p[original]).sum()) if known else None,
        surprisal_bits=float(-log_p[original] / np.log(2)) if known else None,
        entropy_bits=float(-(np.exp(log_p) * log_p).sum() / np.log(2)),
    )


def _token(model: LoadedModel, index: int) -> str:
    """A model's table may have more rows than its tokenizer has pieces."""
    return model.tokenizer.convert_ids_to_tokens(index) or f"[{index}]"
