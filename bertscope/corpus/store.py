"""The token store: a corpus as one long memory-mapped array of piece ids.

A directory::

    ids.bin         uint16 or uint32 [tokens]
    sentences.bin   int64 [sentences + 1], offsets into ids
    documents.bin   int64 [documents + 1], offsets into sentences
    meta.jsonl      one object a document, and meta.bin, int64 [documents + 1], its byte offsets
    words.bin       uint8 [tokens], 1 where a word begins; only where a text is written without
                    spaces (Chinese), so that a segmenter had to say
    oracle/         what the generator of a corpus knows about each token, where it says so
    meta.json       the counts, written last

It holds no special pieces: examples add ``[CLS]`` and ``[SEP]``. Text that spells such a piece
(``[MASK]``) is text here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from bertscope.corpus.conllu import Word
from bertscope.corpus.document import Document
from bertscope.corpus.words import continuing, segmented, without_spaces
from bertscope.errors import BertScopeError

FORMAT = 1
#: Characters of whole documents that are encoded together; bounds the memory of building.
BATCH_CHARACTERS = 400_000
#: Sentences per call of the tokenizer, which encodes them in parallel.
BATCH_SENTENCES = 2048
#: A word's choice is ``document * CHOICES + choice``.
CHOICES = 1 << 20


@dataclass(frozen=True)
class Oracle:
    """What a generator knows about each token; a word's first piece carries it.

    ``choice``: int64 [tokens], ``document * 2**20 + choice`` for words made by one draw of the
    generator (words that share it were decided together), -1 for every other token.
    ``oracle``: float32 [tokens], the probability of the likeliest word given all other words, and
    ``alone``: float32 [tokens], given that all words of the same choice are hidden too; 1 for
    every other token.
    """

    choice: np.ndarray
    oracle: np.ndarray
    alone: np.ndarray


_ORACLE_TYPES = {"choice": np.int64, "oracle": np.float32, "alone": np.float32}


class TokenStore:
    """A read-only, memory-mapped corpus. Cheap to open, to pickle and to share by forking.

    Attributes:
        ids: uint16 or uint32 [tokens].
        sentence_offsets: int64 [sentences + 1]; sentence ``s`` is ``ids[o[s]:o[s + 1]]``.
        document_offsets: int64 [documents + 1]; document ``d`` is sentences ``o[d]`` to ``o[d+1]``.
        word_starts: uint8 [tokens], or None where "##" tells what continues a word.
        oracle: per-token knowledge of the corpus's generator, or None.
        notices: sentences about the corpus that its reader should know.

    Raises:
        BertScopeError: the directory is no whole token store.
    """

    def __init__(self, path: Path):
        self.path = Path(path)
        try:
            counts = json.loads((self.path / "meta.json").read_text("utf-8"))
            if counts["format"] != FORMAT:
                raise ValueError
            tokens, sentences = int(counts["tokens"]), int(counts["sentences"])
            documents = int(counts["documents"])
            self.notices: list[str] = list(counts["notices"])
            self.vocab_size: int = int(counts["vocab_size"])
            self.ids = self._map("ids.bin", np.dtype(counts["dtype"]), tokens)
            self.sentence_offsets = self._map("sentences.bin", np.int64, sentences + 1)
            self.document_offsets = self._map("documents.bin", np.int64, documents + 1)
            self._meta_offsets = self._map("meta.bin", np.int64, documents + 1)
            self.word_starts = self._map("words.bin", np.uint8, tokens) \
                if counts.get("words") else None
            self.oracle = Oracle(**{name: self._map(f"oracle/{name}.bin", kind, tokens)
                                    for name, kind in _ORACLE_TYPES.items()}
                                 ) if counts["oracle"] else None
        except (OSError, ValueError, KeyError, TypeError):
            raise BertScopeError(f"The token store {self.path} is incomplete.") from None

    def _map(self, name: str, kind, length: int) -> np.ndarray:
        path = self.path / name
        if path.stat().st_size != length * np.dtype(kind).itemsize:
            raise ValueError(name)
        return np.asarray(np.memmap(path, kind, "r", shape=(length,)))

    def __reduce__(self):
        return TokenStore, (self.path,)

    @property
    def documents(self) -> int:
        return len(self.document_offsets) - 1

    @property
    def sentences(self) -> int:
        return len(self.sentence_offsets) - 1

    @property
    def tokens(self) -> int:
        return len(self.ids)

    def document_meta(self, index: int) -> dict[str, str | int | float]:
        """What the source said about document ``index``."""
        start, end = self._meta_offsets[index], self._meta_offsets[index + 1]
        with open(self.path / "meta.jsonl", "rb") as handle:
            handle.seek(int(start))
            return json.loads(handle.read(int(end - start)))

    def document_ids(self, index: int) -> list[np.ndarray]:
        """The sentences of document ``index``, each an array of piece ids."""
        offsets = self.sentence_offsets[self.document_offsets[index]:
                                        self.document_offsets[index + 1] + 1]
        return [self.ids[start:end] for start, end in zip(offsets, offsets[1:])]


def build_store(docs: Iterable[Document], tokenizer, path: Path,
                progress: Callable[[str, float | None], None] | None = None,
                notices: Iterable[str] = ()) -> TokenStore:
    """Encode documents, which may be a generator, into a new store at ``path``.

    Sentences without a piece are left out, and so are documents without a sentence. Memory is
    bounded by a batch of documents. ``notices`` is read at the end.

    Raises:
        BertScopeError: no document has a sentence.
    """
    encode = _encoder(tokenizer)
    with _Writer(Path(path), continuing(tokenizer)) as writer:
        for batch in _batches(docs):
            sentences = [sentence for document in batch for sentence in document.sentences]
            offsets = any(map(_has_oracle, batch)) or any(map(without_spaces, sentences))
            encoded = (pieces for start in range(0, len(sentences), BATCH_SENTENCES)
                       for pieces in encode(sentences[start:start + BATCH_SENTENCES], offsets))
            for document in batch:
                writer.add(document, list(islice(encoded, len(document.sentences))))
            if progress:
                progress(f"{writer.documents:,} documents, {writer.tokens:,} tokens", None)
        if not writer.documents:
            raise BertScopeError("There is no text in this corpus.")
        writer.finish(notices)
    return TokenStore(path)


def split_documents(n_documents: int, held_out: float, seed: int = 0,
                    ) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out documents, drawn at random: two sorted int64 arrays of indices.

    The held-out share is rounded, at least one document and never all.

    Raises:
        BertScopeError: there are fewer than two documents.
    """
    if n_documents < 2:
        raise BertScopeError(SINGLE_DOCUMENT)
    held = min(max(round(n_documents * held_out), 1), n_documents - 1)
    order = np.random.default_rng(seed).permutation(n_documents)
    return np.sort(order[held:]), np.sort(order[:held])


SINGLE_DOCUMENT = (
    "This corpus is a single document; BERT needs at least two, to draw random next sentences and "
    "to keep some text for evaluation: put a blank line between documents, or give a folder.")


def _batches(docs: Iterable[Document]) -> Iterator[list[Document]]:
    batch, size = [], 0
    for document in docs:
        batch.append(document)
        size += sum(map(len, document.sentences))
        if size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


#: A sentence's piece ids, and each piece's (start, end) in its characters where asked for.
_Pieces = tuple[list[int], list[tuple[int, int]]]


def _encoder(tokenizer) -> Callable[[list[str], bool], Iterator[_Pieces]]:
    """Sentences to pieces, in parallel: whole however long, a literal ``[MASK]`` is text."""
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())  # a copy to be changed
    backend.encode_special_tokens = True
    backend.no_truncation()
    backend.no_padding()

    def encode(sentences: list[str], offsets: bool) -> Iterator[_Pieces]:
        if offsets:
            for encoding in backend.encode_batch(sentences, add_special_tokens=False):
                yield encoding.ids, encoding.offsets
        else:
            for encoding in backend.encode_batch_fast(sentences, add_special_tokens=False):
                yield encoding.ids, []

    return encode


class _Writer:
    """Appends to the files of a store."""

    def __init__(self, path: Path, continues: np.ndarray):
        path.mkdir(parents=True, exist_ok=True)
        self.path, self.continues, self.vocab_size = path, continues, len(continues)
        vocab_size = self.vocab_size
        self.kind = np.uint16 if vocab_size <= 1 << 16 else np.uint32
        self.tokens = self.sentences = self.documents = self.meta_bytes = 0
        self.files = ExitStack()
        self.ids, self.sentence_ends, self.document_ends, self.meta, self.meta_ends = (
            self._open(name) for name in
            ("ids.bin", "sentences.bin", "documents.bin", "meta.jsonl", "meta.bin"))
        self.oracle: dict | None = None
        self.words = None
        for ends in (self.sentence_ends, self.document_ends, self.meta_ends):
            ends.write(np.int64(0).tobytes())

    def _open(self, name: str):
        return self.files.enter_context(open(self.path / name, "wb"))

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *error) -> None:
        self.files.close()

    def add(self, document: Document, encoded: list[_Pieces]) -> None:
        kept = [place for place, (ids, _) in enumerate(encoded) if ids]
        if not kept:
            return
        lengths = [len(encoded[place][0]) for place in kept]
        self.sentence_ends.write((self.tokens + np.cumsum(lengths, dtype=np.int64)).tobytes())
        for place in kept:
            self.ids.write(np.array(encoded[place][0], self.kind).tobytes())
        if self.words is not None or any(without_spaces(document.sentences[p]) for p in kept):
            self._add_words([(document.sentences[place], *encoded[place]) for place in kept])
        if self.oracle is not None or _has_oracle(document):
            self._add_oracle(document, [(place, *encoded[place]) for place in kept])
        self.tokens += sum(lengths)
        self.sentences += len(kept)
        self.documents += 1
        self.meta_bytes += self.meta.write(json.dumps(document.meta).encode() + b"\n")
        self.meta_ends.write(np.int64(self.meta_bytes).tobytes())
        self.document_ends.write(np.int64(self.sentences).tobytes())

    def _add_words(self, encoded: list) -> None:
        if self.words is None:  # all before was written with spaces
            self.words = self._open("words.bin")
            self.ids.flush()
            before = np.fromfile(self.path / "ids.bin", self.kind, self.tokens)
            self.words.write((~self.continues[before]).astype(np.uint8).tobytes())
        for text, ids, offsets in encoded:
            starts = ~self.continues[ids]
            if without_spaces(text):
                starts = segmented(text, offsets)
            self.words.write(starts.astype(np.uint8).tobytes())

    def _add_oracle(self, document: Document, encoded: list) -> None:
        if self.oracle is None:
            (self.path / "oracle").mkdir(exist_ok=True)
            self.oracle = {name: self._open(f"oracle/{name}.bin") for name in _ORACLE_TYPES}
            self._write_oracle(*_nothing_known(self.tokens))
        for place, ids, offsets in encoded:
            columns = _nothing_known(len(ids))
            words = document.gold[place].words if document.gold else []
            for word, piece in _first_pieces(words, document.sentences[place], offsets):
                _tell(columns, piece, word, self.documents)
            self._write_oracle(*columns)

    def _write_oracle(self, *columns: np.ndarray) -> None:
        for name, column in zip(_ORACLE_TYPES, columns):
            self.oracle[name].write(column.tobytes())

    def finish(self, notices: Iterable[str]) -> None:
        self.files.close()
        (self.path / "meta.json").write_text(json.dumps({
            "format": FORMAT, "dtype": np.dtype(self.kind).name, "vocab_size": self.vocab_size,
            "tokens": self.tokens, "sentences": self.sentences, "documents": self.documents,
            "words": self.words is not None, "oracle": self.oracle is not None, "notices": list(notices)}), "utf-8")


def _has_oracle(document: Document) -> bool:
    return any("Oracle" in word.misc for sentence in document.gold or () for word in sentence.words)


def _nothing_known(tokens: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.full(tokens, -1, np.int64), np.ones(tokens, np.float32), np.ones(tokens, np.float32)


def _tell(columns: tuple[np.ndarray, ...], place: int, word: Word, document: int) -> None:
    choice, oracle, alone = columns
    try:
        made = int(word.misc["Choice"])
        oracle[place] = float(word.misc["Oracle"])
        alone[place] = float(word.misc.get("Alone", 1.0))
    except (KeyError, ValueError):
        return  # a stranger's annotation under the same name
    choice[place] = document * CHOICES + made


def _first_pieces(words: list[Word], text: str, offsets: list[tuple[int, int]],
                  ) -> Iterator[tuple[Word, int]]:
    """Each word with its first piece: the first that begins within the word's characters.

    A word that is not in the text, or shares its first piece with the word before, has none.
    """
    end = piece = 0
    for word in words:
        start = text.find(word.form, end)
        if start < 0:
            continue
        end = start + len(word.form)
        while piece < len(offsets) and offsets[piece][0] < start:
            piece += 1
        if piece < len(offsets) and offsets[piece][0] < end:
            yield word, piece
            piece += 1
