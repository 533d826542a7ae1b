"""Features of a task's items from every layer; the encoder runs once for each sentence.

What a checkpoint gives for a sentence is kept on disk (``shards``), whatever the task: other tasks,
sizes and seeds over the same sentences read it from there.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from bertscope.analysis.activations import LoadedModel, Progress
from bertscope.analysis.probing import shards
from bertscope.analysis.probing.items import Items
from bertscope.analysis.probing.reading import (
    OWN, SENTENCE_POOLING, WORD_POOLING, Text, read, rows_of)
from bertscope.errors import BertScopeError

#: Raise it when the same texts and weights give other vectors.
VERSION = 1
#: Bytes of one shard; what an interruption costs at most.
SHARD_BYTES = 48 << 20
_log = logging.getLogger(__name__)


class Store:
    """Vectors of sentences by one checkpoint, on disk; made when they are asked for.

    Args:
        folder: where shards are kept, bounded by ``most`` bytes for all checkpoints in it. One that
            cannot be written is replaced by a temporary one.
        model: the checkpoint.
        pooling: of a word's pieces.
    """

    def __init__(self, folder: Path, model: LoadedModel, pooling: str = "mean",
                 most: int = shards.MOST_BYTES):
        if pooling not in WORD_POOLING:
            raise BertScopeError(f"Pieces are pooled by {_listed(WORD_POOLING)}, not {pooling!r}.")
        self.model, self.pooling, self.most = model, pooling, most
        self.layers, self.size = model.num_layers + 1, model.hidden_size
        self._temporary = None
        self.folder = self._writable(Path(folder))
        key = f"{VERSION}|{model.fingerprint}|{pooling}"
        self.key = hashlib.sha256(key.encode()).hexdigest()[:24]
        self._places = shards.places(self.folder, self.key)

    def _writable(self, folder: Path) -> Path:
        try:
            shards.make_folder(folder)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError as error:
            _log.warning("Vectors cannot be kept in %s: %s", folder, error)
            self._temporary = tempfile.TemporaryDirectory(prefix="bertscope-")
            return Path(self._temporary.name)

    def fill(self, texts: Sequence[Text], progress: Progress | None = None) -> None:
        """Run the encoder over those sentences that are not kept yet.

        Raises:
            BertScopeError: they would take more room than the folder may, or the model cannot read.
        """
        missing = {d: t for d, t in zip(map(digest, texts), texts, strict=True)
                   if d not in self._places}
        if not missing:
            return
        used = {self._places[d].shard for d in map(digest, texts) if d in self._places}
        wanted = sum(map(rows_of, missing.values())) * self._row_bytes
        if not shards.make_room(self.folder, wanted, used, self.most):
            raise BertScopeError(
                f"The vectors of these {len(texts):,} sentences take {wanted / 2**30:.1f} GiB, more "
                f"than the {self.most / 2**30:.1f} GiB that are set aside; probe fewer items.")
        done = 0
        for chunk in _chunks(missing, SHARD_BYTES // self._row_bytes):
            def told(message: str, share: float | None, done=done, size=len(chunk)) -> None:
                if progress:
                    at = done + size * (share or 0.0)
                    progress(f"reading sentences, {at:,.0f} of {len(missing):,}", at / len(missing))

            self._add(chunk, told)
            done += len(chunk)

    @property
    def _row_bytes(self) -> int:
        return self.layers * self.size * 2

    def _add(self, chunk: dict[str, Text], progress: Progress) -> None:
        states, cut = read(self.model, list(chunk.values()), self.pooling, progress)
        index, start = [], 0
        for (name, text), was_cut in zip(chunk.items(), cut, strict=True):
            index.append((name, start, rows_of(text) - OWN, was_cut))
            start += rows_of(text)
        try:
            path = shards.write(self.folder, self.key, states, index)
        except OSError as error:
            raise BertScopeError(f"The vectors cannot be kept in {self.folder}: "
                                 f"{error.strerror}.") from None
        self._places |= {name: shards.Place(path, start, words, was_cut)
                         for name, start, words, was_cut in index}

    def place(self, text: Text) -> shards.Place:
        """Where a sentence is kept; ``fill`` comes first."""
        return self._places[digest(text)]


class Features:
    """Vectors of one task's items: ``matrix(layer)`` float32 [n, H], or [n, 2H] for pairs.

    Args:
        items: of which ``keep`` says afterwards which have a vector.
        store: filled with the items' sentences (that is done here, with ``progress``).
        pooling: of a sentence's pieces, for items that are sentences.
    """

    def __init__(self, items: Items, store: Store, pooling: str = "mean",
                 progress: Progress | None = None):
        if pooling not in SENTENCE_POOLING:
            raise BertScopeError(f"Sentences are pooled by {_listed(SENTENCE_POOLING)}, "
                                 f"not {pooling!r}.")
        self.store, self.layers = store, store.layers
        used = sorted(set(items.sentence.tolist()))
        store.fill([items.sentences[i] for i in used], progress)
        found = {i: store.place(items.sentences[i]) for i in used}
        self._shards = sorted({place.shard for place in found.values()})
        number = {path: i for i, path in enumerate(self._shards)}
        spans = items.spans if items.kind != "sentence" else \
            np.zeros((len(items), 1, 2), np.int64) + [[0, 1]]
        first = OWN if items.kind != "sentence" else SENTENCE_POOLING.index(pooling)
        starts = np.array([found[i].start for i in items.sentence.tolist()], np.int64) + first
        self._spans = spans + starts[:, None, None]              # rows in the item's shard
        self._shard = np.array([number[found[i].shard] for i in items.sentence.tolist()], np.int64)
        self._joint = store.pooling
        self.cut = sum(place.cut for place in found.values())    # sentences that are not read whole
        #: bool [n]: items whose words all have a vector
        self.readable = np.isfinite(self.matrix(0)).all(1)

    def matrix(self, layer: int, places: np.ndarray | None = None) -> np.ndarray:
        """float32 [items, H or 2H] of some items (of all by default) from one layer."""
        places = np.arange(len(self._shard)) if places is None else np.asarray(places)
        spans = self._spans[places]
        made = np.empty((*spans.shape[:2], self.store.size), np.float32)
        for number, path in enumerate(self._shards):
            here = np.flatnonzero(self._shard[places] == number)
            if len(here):
                made[here] = self._of_spans(path, layer, spans[here])
        return made.reshape(len(places), -1)

    def _of_spans(self, path: Path, layer: int, spans: np.ndarray) -> np.ndarray:
        """float32 [n, spans, H]: of several words their mean, or the first or last one."""
        starts, ends = spans[..., 0], spans[..., 1]
        if self._joint != "mean" or (ends - starts == 1).all():
            rows = ends - 1 if self._joint == "last" else starts
            return shards.read(path, layer, rows.ravel()).reshape(*rows.shape, -1)
        lengths = (ends - starts).ravel()
        owner = np.repeat(np.arange(len(lengths)), lengths)
        inside = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        vectors = shards.read(path, layer, starts.ravel()[owner] + inside).astype(np.float32)
        made = np.add.reduceat(vectors, np.cumsum(lengths) - lengths) / lengths[:, None]
        return made.reshape(*starts.shape, -1)


def digest(text: Text) -> str:
    """32 hex digits that tell a sentence from every other."""
    said = json.dumps(text if isinstance(text, str) else list(text))
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:32]


def _chunks(texts: dict[str, Text], rows: int) -> Iterator[dict[str, Text]]:
    """Runs of sentences with about so many rows, at least one sentence each."""
    chunk: dict[str, Text] = {}
    held = 0
    for name, text in texts.items():
        if chunk and held + rows_of(text) > rows:
            yield chunk
            chunk, held = {}, 0
        chunk[name] = text
        held += rows_of(text)
    yield chunk


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:-1])) + f" or {names[-1]!r}"
