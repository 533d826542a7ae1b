"""Vectors of many sentences on disk: files of a bounded size, each with its own index.

A shard holds some hundred sentences: ``states`` float16 [L+1, rows, H], layer after layer, so that
one layer is read without the others. A sentence has three rows for itself ([CLS], mean, maximum)
and one for each of its words. A shard is written aside and renamed: work that was interrupted goes
on after the last whole shard. Whatever was not used for the longest time makes room for new ones.
"""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from bertscope import runs
from bertscope.errors import BertScopeError

#: Bytes of shards in one folder.
MOST_BYTES = 6 << 30
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Place:
    """Where a sentence's rows are, and how many of its words there are."""

    shard: Path
    start: int
    words: int
    cut: bool     # the model could not read all of it


def places(folder: Path, key: str) -> dict[str, Place]:
    """The sentences that are kept under a key, by their digest; shards are marked as used."""
    found: dict[str, Place] = {}
    for path in sorted(folder.glob(f"{key}-*.safetensors")):
        try:
            with safe_open(path, framework="numpy") as opened:
                index = json.loads(opened.metadata()["index"])
            os.utime(path)
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            _log.warning("%s is damaged and will be computed again: %s", path, error)
            continue
        for digest, start, words, cut in index:
            found[digest] = Place(path, start, words, bool(cut))
    return found


def read(path: Path, layer: int, rows: np.ndarray) -> np.ndarray:
    """float16 [rows, H] of one layer. Rows may be in any order.

    Raises:
        BertScopeError: the shard has been removed, by another process or a person, or is not as it
            was written; it is removed then.
    """
    try:
        with safe_open(path, framework="numpy") as opened:
            states = opened.get_slice("states")[layer]
            sums = json.loads((opened.metadata() or {}).get("checksums", "[]"))
    except (OSError, SafetensorError, ValueError):
        raise BertScopeError(f"Vectors in {path.parent} were removed while they were in use; "
                             "begin again.") from None
    if sums and sums[layer] != _checksum(states):
        path.unlink(missing_ok=True)
        raise BertScopeError(f"Vectors in {path.parent} were damaged on the disk and have been "
                             "removed; begin again.")
    return states[rows]


def _checksum(states: np.ndarray) -> int:
    """CRC-32 of a layer: a flipped bit would be a wrong number that nobody sees."""
    return zlib.crc32(np.ascontiguousarray(states))


def write(folder: Path, key: str, states: np.ndarray, index: list[tuple[str, int, int, bool]],
          ) -> Path:
    """Keep ``states`` [L+1, rows, H] of the sentences in ``index`` (digest, start, words, cut).

    Raises:
        OSError: the folder cannot be written.
    """
    path = folder / f"{key}-{uuid.uuid4().hex}.safetensors"
    scratch = path.with_name(f".{path.name}.partial")
    try:
        states = np.ascontiguousarray(states, np.float16)
        save_file({"states": states}, scratch, {
            "index": json.dumps(index), "checksums": json.dumps([_checksum(own) for own in states])})
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
    return path


def make_folder(folder: Path) -> None:
    """Make a folder in a run's ``analysis``, but never that of a run which was deleted meanwhile.

    Raises:
        OSError: it cannot be made.
    """
    if folder.parent.parent == runs.runs_root():
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.mkdir(exist_ok=True)
    folder.mkdir(exist_ok=True)


def make_room(folder: Path, wanted: int, kept: set[Path], most: int = MOST_BYTES) -> bool:
    """Remove shards that were not used for the longest time until ``wanted`` more bytes fit.

    Args:
        kept: shards that are in use and stay.
    Returns: whether they fit.
    """
    _sweep(folder)
    files = sorted(((p, _stat(p)) for p in folder.glob("*.safetensors")), key=lambda f: f[1][1])
    room = most - sum(size for _, (size, _) in files)
    for path, (size, _) in files:
        if room >= wanted:
            break
        if path not in kept:
            path.unlink(missing_ok=True)
            room += size
    return room >= wanted


def _sweep(folder: Path, seconds: float = 6 * 3600) -> None:
    """Remove what a process that was killed left half written."""
    for path in folder.glob(".*.partial"):
        if _stat(path)[1] < time.time() - seconds:
            path.unlink(missing_ok=True)


def _stat(path: Path) -> tuple[int, float]:
    try:
        found = path.stat()
        return found.st_size, found.st_mtime
    except OSError:
        return 0, 0.0
