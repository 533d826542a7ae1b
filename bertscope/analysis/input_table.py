"""The three tables that BERT's input is added up from: of pieces, of segments, of positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertscope.analysis.activations import LoadedModel
from bertscope.analysis.embeddings import unit_length
from bertscope.errors import BertScopeError


@dataclass(frozen=True)
class Tables:
    """float32; None where the model has no such table.

    ``pieces`` [V, E], ``segments`` [2, E], ``positions`` [P, E]: rows that can be used, the first
    is the first piece's place. ``names``: the pieces, V strings.
    """

    pieces: np.ndarray
    segments: np.ndarray | None
    positions: np.ndarray | None
    names: list[str]


def tables(model: LoadedModel) -> Tables:
    """The input tables of a model.

    Raises:
        BertScopeError: its family has no table of pieces where BERT has it, or it has diverged.
    """
    layer = getattr(model.model.base_model, "embeddings", None)
    words = getattr(layer, "word_embeddings", None)
    if words is None:
        raise BertScopeError(f"A {model.family} model has no table of pieces that BertScope knows.")
    names = model.tokenizer.convert_ids_to_tokens(list(range(min(len(words.weight),
                                                                 len(model.tokenizer)))))
    positions = _weight(layer, "position_embeddings")
    padding = getattr(getattr(layer, "position_embeddings", None), "padding_idx", None)
    if positions is not None and padding is not None:
        positions = positions[padding + 1:]  # RoBERTa counts from there
    found = Tables(_weight(layer, "word_embeddings")[:len(names)],
                   _weight(layer, "token_type_embeddings"), positions, names)
    if not np.isfinite(found.pieces).all():
        raise BertScopeError("Some vectors have values that are not finite: the training of this "
                             "checkpoint has diverged.")
    return found


def piece_number(model: LoadedModel, text: str) -> int:
    """The vocabulary's number of what was typed: a piece by its own name (``##ing``), else the
    first piece of the text.

    Raises:
        BertScopeError: nothing was typed, or the vocabulary has nothing for it.
    """
    text = text.strip()
    vocabulary = model.tokenizer.get_vocab()
    if text in vocabulary:
        return vocabulary[text]
    encoded = model.text_encoder.encode(text)
    pieces = encoded.input_ids[~encoded.special]
    number = int(pieces[0])
    if number == model.tokenizer.unk_token_id:
        raise BertScopeError(f"The vocabulary has no piece for “{text}”.")
    return number


def nearest_pieces(table: Tables, number: int, count: int = 12) -> list[tuple[int, float]]:
    """The pieces whose input vectors have the highest cosine with piece ``number``'s, without it.
    """
    unit = unit_length(table.pieces.astype(np.float32))
    cosines = unit @ unit[number]
    cosines[number] = -np.inf
    order = np.argsort(-cosines, kind="stable")[:min(count, len(cosines) - 1)]
    return [(int(i), float(cosines[i])) for i in order]


def cosines_with(table: Tables, number: int, others: list[int]) -> np.ndarray:
    """Cosines of a piece's input vector with those of other pieces, float32 [others]."""
    unit = unit_length(table.pieces[[number, *others]].astype(np.float64))
    return (unit[1:] @ unit[0]).astype(np.float32)


def position_similarity(table: Tables, most: int = 512) -> np.ndarray | None:
    """Cosine of every position with every other, float32 [P, P]; None without positions."""
    if table.positions is None:
        return None
    unit = unit_length(table.positions[:most].astype(np.float64))
    return (unit @ unit.T).astype(np.float32)


def by_distance(similarity: np.ndarray) -> np.ndarray:
    """The mean similarity of positions 0, 1, 2 ... apart, float64 [P]."""
    return np.array([np.diagonal(similarity, k).mean() for k in range(len(similarity))])


def norms(table: Tables) -> np.ndarray:
    """The Euclidean length of every piece's vector, float32 [V]."""
    return np.linalg.norm(table.pieces, axis=1)


def _weight(layer, name: str) -> np.ndarray | None:
    table = getattr(layer, name, None)
    return None if table is None else table.weight.detach().float().cpu().numpy()
