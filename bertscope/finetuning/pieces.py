"""Texts and words in the pieces of a checkpoint's tokenizer, laid out as its model reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertscope.analysis.encoding import CHARACTERS_PER_PIECE, TextEncoder
from bertscope.errors import BertScopeError


@dataclass(frozen=True, slots=True)
class Pieces:
    """``ids`` of a text without special pieces, the characters [T, 2] and the word [T] of each."""

    ids: np.ndarray
    offsets: np.ndarray
    words: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)


class Cutter:
    """Cuts texts into pieces, and puts them together with [CLS] and [SEP].

    Args:
        encoder: the checkpoint's; in a text only ``[MASK]`` has a meaning.
        unknown: the id that stands for a text or a word without any piece.
        most: pieces at most, special ones included.
    """

    def __init__(self, encoder: TextEncoder, unknown: int, most: int | None = None):
        self.encoder, self.unknown = encoder, unknown
        self.most = min(most or encoder.max_length, encoder.max_length)

    def room(self, paired: bool) -> int:
        """Pieces of text that fit."""
        room = self.most - sum(isinstance(p, int) for p in self.encoder.layout(paired))
        if room < 2:
            raise BertScopeError("This model reads too few pieces at once for this task.")
        return room

    def texts(self, texts: Sequence[str], whole: bool = False) -> list[Pieces]:
        """Of a text that cannot be read whole only the beginning is looked at, unless ``whole``."""
        longest = None if whole else CHARACTERS_PER_PIECE * self.most
        return self._cut([self.encoder.clean(t)[:longest] for t in texts], False)

    def words(self, sentences: Sequence[Sequence[str]]) -> list[Pieces]:
        """``Pieces.words`` counts the words given; each has a piece at least."""
        cleaned = [[self.encoder.clean(w)[:CHARACTERS_PER_PIECE * 4] for w in words]
                   for words in sentences]
        return [self._complete(pieces, len(words))
                for pieces, words in zip(self._cut(cleaned, True), cleaned, strict=True)]

    def _cut(self, inputs: list, split: bool) -> list[Pieces]:
        found = []
        for read in self.encoder.backend.encode_batch(inputs, is_pretokenized=split,
                                                      add_special_tokens=False):
            ids = np.array(self.encoder.ordinary(read.ids), np.int64)
            if len(ids) and ids.max() >= self.encoder.vocab_size:
                raise BertScopeError("This checkpoint's tokenizer belongs to another model: it has "
                                     "pieces that the model does not know.")
            if not len(ids) and not split:
                found.append(Pieces(np.array([self.unknown]), np.zeros((1, 2), np.int64),
                                    np.zeros(1, np.int64)))
                continue
            found.append(Pieces(ids, np.array(read.offsets, np.int64).reshape(-1, 2),
                                np.array(read.word_ids, np.int64)))
        return found

    def _complete(self, pieces: Pieces, count: int) -> Pieces:
        """A word of characters that the tokenizer drops becomes unknown."""
        missing = np.setdiff1d(np.arange(count), pieces.words)
        if not len(missing):
            return pieces
        words = np.concatenate([pieces.words, missing])
        ranked = np.argsort(words, kind="stable")
        return Pieces(np.concatenate([pieces.ids, np.full(len(missing), self.unknown)])[ranked],
                      np.concatenate([pieces.offsets, np.zeros((len(missing), 2), np.int64)])[ranked],
                      words[ranked])

    def join(self, first: np.ndarray, second: np.ndarray | None = None,
             ) -> tuple[np.ndarray, np.ndarray, tuple[int, int | None]]:
        """``input_ids``, ``token_type_ids`` and where each text begins."""
        ids, types, begins, segment = [], [], {}, 0
        for part in self.encoder.layout(second is not None):
            if isinstance(part, int):
                own = [part]
            else:
                own = first if part == "A" else second
                segment = int(part == "B")
                begins[part] = sum(map(len, ids))
            ids.append(own)
            types.append([segment if self.encoder.has_segments else 0] * len(own))
        return (np.concatenate(ids).astype(np.int64), np.concatenate(types).astype(np.int64),
                (begins["A"], begins.get("B")))

    def pair(self, first: Pieces, second: Pieces) -> tuple[np.ndarray, np.ndarray]:
        """Two texts; the longer one is shortened first, as transformers' ``longest_first`` does."""
        room = self.room(True)
        a, b = len(first), len(second)
        if a + b > room:
            short = min(a, b, room // 2)
            a, b = (short, room - short) if a <= b else (room - short, short)
        return self.join(first.ids[:a], second.ids[:b])[:2]
