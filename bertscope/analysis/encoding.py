"""Text to word pieces, for reading by a person's model: any text is a valid input.

Differs from calling a transformers tokenizer in three points. Only ``[MASK]`` has a meaning when
it is typed; ``[SEP]``, ``[CLS]`` and the like stay ordinary text. Work is bounded however long the
text is. Nothing shared is changed by a call, so that many threads may use one tokenizer
(transformers keeps truncation and padding as state of the tokenizer).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from tokenizers import Tokenizer

from bertscope.errors import BertScopeError

#: Longer texts are refused; shorter ones are cut to what the model can read.
MOST_CHARACTERS = 2_000_000
#: Characters that are looked at for each piece that fits: English has about 5 a piece.
CHARACTERS_PER_PIECE = 32
MASK = "[MASK]"


@dataclass
class Encoded:
    """One input of the encoder; T pieces, special tokens included.

    ``word_ids`` counts words (as the tokenizer's pre-tokenizer splits them) through the whole
    input: the second text goes on where the first ends; None for special tokens. ``offsets`` are
    character ranges in ``text`` (segment 0) or ``pair`` (segment 1), (0, 0) for special tokens.
    """

    input_ids: np.ndarray         # int64 [T]
    token_type_ids: np.ndarray    # int64 [T]; zeros for models without segment embeddings
    attention_mask: np.ndarray    # int64 [T], ones
    tokens: list[str]
    word_ids: list[int | None]
    special: np.ndarray           # bool [T]: [CLS], [SEP]; not [MASK]
    segments: list[int]           # 0 = first text with its [CLS] and [SEP], 1 = second
    offsets: list[tuple[int, int]]
    text: str
    pair: str | None = None
    truncated: bool = False

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass
class _Pieces:
    ids: list[int]
    words: list[int]
    offsets: list[tuple[int, int]]
    cut: bool = False   # the text was longer than what was looked at

    def first(self, count: int) -> _Pieces:
        return _Pieces(self.ids[:count], self.words[:count], self.offsets[:count])


class TextEncoder:
    """A private, never changing copy of a tokenizer.

    Args:
        tokenizer: a fast tokenizer of transformers.
        max_length: pieces at most, special tokens included.
        has_segments: whether the model embeds ``token_type_ids``.
        vocab_size: rows of the model's embedding table.
    """

    def __init__(self, tokenizer, max_length: int, has_segments: bool, vocab_size: int):
        self.max_length = max_length
        self.has_segments = has_segments
        self.vocab_size = vocab_size
        self.mask_token: str | None = tokenizer.mask_token
        self._unknown = tokenizer.unk_token_id
        keep = {tokenizer.mask_token_id, tokenizer.unk_token_id}
        self._reserved = set(tokenizer.all_special_ids) - keep
        self._backend = _without_special_tokens_in_text(tokenizer)

    @property
    def backend(self) -> Tokenizer:
        """The copy itself, in whose texts only the mask token has a meaning. Never change it."""
        return self._backend

    def encode(self, text: str, pair: str | None = None) -> Encoded:
        """See :func:`bertscope.analysis.activations.encode`."""
        texts = [self.clean(t) for t in ([text] if pair is None else [text, pair])]
        pieces = [self._pieces(t) for t in texts]
        for t, p in zip(texts, pieces, strict=True):
            if not p.ids:
                raise BertScopeError("The text is empty: type at least one word." if not t.strip()
                                     else "The text has no character that this model can read.")
        layout = self._single if pair is None else self._pair
        room = self.max_length - sum(isinstance(part, int) for part in layout)
        kept = [p.first(n) for p, n in zip(pieces, _shares([len(p.ids) for p in pieces], room),
                                           strict=True)]
        truncated = any(p.cut or len(k.ids) < len(p.ids) for k, p in zip(kept, pieces, strict=True))
        return self._assemble(layout, kept, texts, truncated)

    def nearest(self, text: str, pair: str) -> tuple[str, str]:
        """The end of the first text and the beginning of the second, in whole words, as much as
        the model reads at once. (``encode`` keeps the beginning of both.)

        Raises:
            BertScopeError: as ``encode``.
        """
        if not (read := self.encode(text, pair)).truncated:
            return text, pair
        kept = [int((~read.special & (np.array(read.segments) == segment)).sum())
                for segment in (0, 1)]
        text, pair = self.clean(text), self.clean(pair)
        end = text[-CHARACTERS_PER_PIECE * self.max_length:]
        before, after = self._pieces(end), self._pieces(pair)
        first = _next_word(before.words, len(before.words) - kept[0])
        last = _next_word(after.words[::-1], len(after.words) - kept[1])
        return (end[before.offsets[first][0]:],
                pair[:after.offsets[len(after.words) - 1 - last][1]])

    def clean(self, text: str) -> str:
        """The text as it is read: valid Unicode, the model's own mask token."""
        if len(text) > MOST_CHARACTERS:
            raise BertScopeError(f"The text has {len(text):,} characters; BertScope reads at most "
                                 f"{MOST_CHARACTERS:,} at once.")
        text = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates become "?"
        if self.mask_token not in (None, MASK):
            text = text.replace(MASK, self.mask_token)
        return text

    def _pieces(self, text: str) -> _Pieces:
        most = CHARACTERS_PER_PIECE * self.max_length
        read = self._backend.encode(text[:most], add_special_tokens=False)
        ids = self.ordinary(read.ids)
        if ids and max(ids) >= self.vocab_size:
            raise BertScopeError(
                f"The tokenizer has pieces that the model does not know (number {max(ids)} of "
                f"{self.vocab_size}): this checkpoint's tokenizer belongs to another model.")
        return _Pieces(ids, read.word_ids, read.offsets, cut=len(text) > most)

    def ordinary(self, ids: list[int]) -> list[int]:
        """A text's ids. A vocabulary may hold "[SEP]" as a word; it still isn't the separator."""
        return [self._unknown if i in self._reserved and self._unknown is not None else i
                for i in ids]

    def layout(self, paired: bool) -> list[int | str]:
        """What stands around one text or two: ``[id of [CLS], "A", id of [SEP], "B", ...]``."""
        return self._pair if paired else self._single

    @cached_property
    def _single(self) -> list[int | str]:
        return _layout(self._backend, None)

    @cached_property
    def _pair(self) -> list[int | str]:
        return _layout(self._backend, "a")

    def _assemble(self, layout, kept: list[_Pieces], texts: list[str], truncated: bool) -> Encoded:
        ids: list[int] = []
        words: list[int | None] = []
        offsets: list[tuple[int, int]] = []
        segments: list[int] = []
        second = layout.index("B") if "B" in layout else len(layout)
        for place, part in enumerate(layout):
            if isinstance(part, int):
                ids.append(part)
                words.append(None)
                offsets.append((0, 0))
            else:
                pieces = kept["AB".index(part)]
                start = 0 if part == "A" else 1 + max(w for w in words if w is not None)
                ids += pieces.ids
                words += [start + w for w in pieces.words]
                offsets += pieces.offsets
            segments += [int(place >= second)] * (len(ids) - len(segments))
        return Encoded(
            input_ids=np.array(ids, np.int64),
            token_type_ids=np.array(segments if self.has_segments else [0] * len(ids), np.int64),
            attention_mask=np.ones(len(ids), np.int64),
            tokens=[self._backend.id_to_token(i) for i in ids],
            word_ids=words,
            special=np.array([w is None for w in words]),
            segments=segments,
            offsets=offsets,
            text=texts[0],
            pair=texts[1] if len(texts) > 1 else None,
            truncated=truncated,
        )


def _without_special_tokens_in_text(tokenizer) -> Tokenizer:
    """A copy in which only the mask token is recognised inside of text."""
    data = json.loads(tokenizer.backend_tokenizer.to_str())
    data["truncation"] = data["padding"] = None
    for added in data["added_tokens"]:
        if added["content"] == tokenizer.mask_token:
            added["special"] = False
    backend = Tokenizer.from_str(json.dumps(data))
    backend.encode_special_tokens = True  # "special tokens are text": they're not looked for
    return backend


def _layout(backend: Tokenizer, pair: str | None) -> list[int | str]:
    """What the tokenizer puts around texts: ``[id of [CLS], "A", id of [SEP], "B", ...]``."""
    read = backend.encode("a", pair, add_special_tokens=True)
    layout: list[int | str] = []
    for piece, sequence, special in zip(read.ids, read.sequence_ids, read.special_tokens_mask,
                                        strict=True):
        part = piece if special or sequence is None else "AB"[sequence]
        if isinstance(part, int) or part not in layout:
            layout.append(part)
    return layout


def _next_word(words: list[int], place: int) -> int:
    """The first place from ``place`` on where a word begins; ``place`` itself where none does."""
    return next((i for i in range(place, len(words)) if i == 0 or words[i] != words[i - 1]), place)


def _shares(lengths: list[int], room: int) -> list[int]:
    """How many pieces of each text are kept: the longer one is shortened first."""
    if room < len(lengths):
        raise BertScopeError("This model reads too few pieces at once for this input.")
    if sum(lengths) <= room:
        return lengths
    if len(lengths) == 1:
        return [room]
    short = min(min(lengths), room // 2)
    return [short, room - short] if lengths[0] <= lengths[1] else [room - short, short]
