"""A vector for each of many texts from every layer: in batches, cancelled when one likes, kept.

All layers come out of one pass over the texts, so they are kept together: moving along the layers
costs nothing more. What is kept is found again by the weights, the texts and the place that is
looked at, whatever the checkpoint's folder is called.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from bertscope.analysis.activations import Encoded, LoadedModel, Progress, load, run_batches
from bertscope.analysis.array_cache import cached_array, kept_array
from bertscope.analysis.cache import analysis_folder
from bertscope.analysis.loading import weights_fingerprint
from bertscope.corpus.words import without_spaces
from bertscope.errors import BertScopeError

#: Raise it when the same texts and weights give other vectors.
VERSION = 1
#: Texts that are in pieces at the same time; bounds the memory, with a batch of activations.
CHUNK = 1000
Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Place:
    """Which pieces of a text its vector is the mean of.

    ``how``: ``"cls"``, the first piece; ``"mean"``, all word pieces without [CLS] and [SEP];
    ``"word"``, the first occurrence of ``word``, whole and in any case; ``"piece"``, the word piece
    number ``piece`` (from 1; -1 is the last).

    Raises:
        BertScopeError: another way, no word, or no place.
    """

    how: str = "cls"
    word: str = ""
    piece: int = 1

    def __post_init__(self):
        if self.how not in ("cls", "mean", "word", "piece"):
            raise BertScopeError(f"A text's vector is that of 'cls', 'mean', 'word' or 'piece', not "
                                 f"{self.how!r}.")
        if self.how == "word" and not self.word.strip():
            raise BertScopeError("Say which word's vectors are wanted.")
        if self.how == "piece" and self.piece == 0:
            raise BertScopeError("Pieces are counted from 1, or from the end: -1 is the last.")

    def pieces(self, encoded: Encoded) -> np.ndarray:
        """int64: the pieces' places in the encoded text, none where the text has no such piece."""
        if self.how == "cls":
            return np.array([0])
        if self.how == "word":
            span = find_word(encoded.text, self.word)
            return covering(encoded, *span) if span else np.array([], np.int64)
        words = np.flatnonzero(~encoded.special)
        if self.how == "mean":
            return words
        at = self.piece - 1 if self.piece > 0 else self.piece
        return words[[at]] if -len(words) <= at < len(words) else words[:0]

    @property
    def key(self) -> list:
        """JSON values that tell this place from others."""
        return [self.how, *{"word": [self.word.strip().casefold()], "piece": [self.piece]
                            }.get(self.how, [])]


def find_word(text: str, word: str) -> tuple[int, int] | None:
    """The first place of a word in a text, as characters; None where it is not."""
    return next(find_words(text, word), None)


def find_words(text: str, word: str) -> Iterator[tuple[int, int]]:
    """Every place of a word in a text, whole and in any case. Chinese has no spaces: any place."""
    edge = "" if without_spaces(word) else r"(?<!\w){}(?!\w)"
    pattern = (edge or "{}").format(re.escape(word.strip()))
    return (match.span() for match in re.finditer(pattern, text, re.IGNORECASE)
            if match.end() > match.start())


def covering(encoded: Encoded, start: int, end: int) -> np.ndarray:
    """int64: the places of the pieces with a character in ``text[start:end]``."""
    return np.array([i for i, (a, b) in enumerate(encoded.offsets)
                     if not encoded.special[i] and a < end and b > start], np.int64)


def text_vectors(checkpoint: str | Path, texts: Sequence[str], place: Place | Spans,
                 progress: Progress | None = None,
                 open_model: Callable[[str | Path], LoadedModel] | None = None) -> np.ndarray:
    """float32 [L+1, N, H], read-only: the vectors of N texts from each layer, from the disk if they
    are kept there. A text without the place, or that cannot be read, has NaN.

    Args:
        checkpoint: a directory or a hub name.
        place: one for all texts, or for each text its own ``(start, end)`` in characters.
        progress: is told after every batch; what it raises cancels the work.
        open_model: opens the checkpoint, ``load`` by default; called only if it is needed.

    Raises:
        BertScopeError: there is no such checkpoint, no text has the place, or the weights give
            values that are not finite.
    """
    folder, key = _where(checkpoint, texts, place)

    def begin():
        model = (open_model or load)(checkpoint)
        shape = (model.num_layers + 1, len(texts), model.hidden_size)
        return shape, lambda array: _fill(model, texts, place, array, progress)

    return cached_array(folder, "vectors", key, begin)


def kept_vectors(checkpoint: str | Path, texts: Sequence[str], place: Place | Spans,
                 ) -> np.ndarray | None:
    """What :func:`text_vectors` has kept; None where it would have to compute.

    Raises:
        BertScopeError: there is no such checkpoint.
    """
    folder, key = _where(checkpoint, texts, place)
    return kept_array(folder, "vectors", key)


def digest(texts: Sequence[str]) -> str:
    """SHA-256 of texts in their order."""
    state = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()


def count_cut(model: LoadedModel, texts: Sequence[str]) -> int:
    """How many texts are longer than the model reads at once."""
    backend, cut = model.text_encoder.backend, 0
    room = model.max_length - len(backend.encode("a").ids) + len(
        backend.encode("a", add_special_tokens=False).ids)
    for start in range(0, len(texts), CHUNK):
        clean = [model.text_encoder.clean(t)[:32 * room] for t in texts[start:start + CHUNK]]
        cut += sum(len(e.ids) > room
                   for e in backend.encode_batch_fast(clean, add_special_tokens=False))
    return cut


# -- inside -----------------------------------------------------------------------------------


def _where(checkpoint, texts, place) -> tuple[Path, dict]:
    at = place.key if isinstance(place, Place) else [list(map(int, span)) for span in place]
    return analysis_folder(checkpoint), {"version": VERSION, "texts": digest(texts), "place": at,
                                         "checkpoint": weights_fingerprint(checkpoint)}


def _fill(model: LoadedModel, texts: Sequence[str], place, array: np.ndarray,
          progress: Progress | None) -> None:
    """Write the vectors, a chunk of texts at a time and the longest of a chunk first."""
    array[:] = np.nan
    any_place = False
    for start in range(0, len(texts), CHUNK):
        end = min(start + CHUNK, len(texts))
        rows, inputs, pieces = _read(model, texts, place, range(start, end))
        any_place |= bool(rows)
        done = 0
        for indices, batch in run_batches(model, inputs):
            found = _means(batch.hidden_states, [pieces[i] for i in indices])
            if not np.isfinite(found).all():
                raise BertScopeError("The weights of this checkpoint give values that are not "
                                     "finite: its training has diverged.")
            array[:, [rows[i] for i in indices]] = found
            done += len(indices)
            if progress:
                at = start + done
                progress(f"{at:,} of {len(texts):,} texts", at / len(texts))
    if texts and not any_place:
        raise BertScopeError("None of these texts has that place.")


def _read(model: LoadedModel, texts, place, numbers: range):
    """Row numbers, encoded texts and places of those texts that have the place."""
    rows, inputs, pieces = [], [], []
    for number in numbers:
        try:
            encoded = model.text_encoder.encode(texts[number])
        except BertScopeError:
            continue  # empty, or nothing that this model can read
        chosen = place.pieces(encoded) if isinstance(place, Place) \
            else covering(encoded, *place[number])
        if len(chosen):
            rows.append(number)
            inputs.append(encoded)
            pieces.append(chosen)
    return rows, inputs, pieces


def _means(hidden_states, pieces: list[np.ndarray]) -> np.ndarray:
    """float32 [L+1, B, H]: the mean of the chosen pieces of each of B inputs."""
    first = hidden_states[0]
    weights = torch.zeros(first.shape[:2], dtype=torch.float32)
    for row, chosen in enumerate(pieces):
        weights[row, torch.from_numpy(chosen)] = 1 / len(chosen)
    weights = weights.to(first.device)
    return torch.stack([torch.einsum("bt,bth->bh", weights, layer.float())
                        for layer in hidden_states]).cpu().numpy()
