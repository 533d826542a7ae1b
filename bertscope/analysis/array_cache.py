"""Large arrays of numbers, kept on disk beside the run they belong to and read as a memory map.

As ``cache`` keeps tables, this keeps arrays: found again by a key of everything that decides them,
written aside and renamed, never pickled. A folder keeps ``MOST_BYTES`` at most; what was not looked
at for the longest time goes first.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bertscope import runs

#: Bytes of arrays in one folder.
MOST_BYTES = 4 << 30
_log = logging.getLogger(__name__)
Fill = Callable[[np.ndarray], None]


def cached_array(folder: Path, kind: str, key: dict,
                 begin: Callable[[], tuple[tuple[int, ...], Fill]]) -> np.ndarray:
    """The float32 array kept for ``key``, or a new one, filled and then kept; read-only.

    What ``begin`` or its function raises, a cancellation too, passes through, and nothing is kept.
    Where the folder cannot be written the array is in memory only, which is logged.

    Args:
        kind: what it is, a plain word; part of the file's name.
        key: JSON values; the order of its entries does not matter.
        begin: gives the shape, and a function that writes every value of an array of that shape.
    """
    path = _path(folder, kind, key)
    found = kept_array(folder, kind, key)
    if found is not None:
        return found
    shape, fill = begin()
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    try:
        array = _new(scratch, shape)
    except (OSError, ValueError) as error:  # ValueError: nothing of nothing cannot be mapped
        _log.warning("An array cannot be kept in %s: %s", folder, error)
        array = np.zeros(shape, np.float32)
        fill(array)
        return array
    try:
        fill(array)
        array.flush()
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
    _make_room(path, kind)
    return kept_array(folder, kind, key)


def kept_array(folder: Path, kind: str, key: dict) -> np.ndarray | None:
    """The array kept for ``key``, as a read-only memory map; None where there is none."""
    path = _path(folder, kind, key)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        os.utime(path)
        return array
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError) as error:
        _log.warning("%s is damaged and will be computed again: %s", path, error)
        return None


def _path(folder: Path, kind: str, key: dict) -> Path:
    if not kind.isidentifier():
        raise ValueError(f"kind must be a plain word, not {kind!r}")
    canonical = json.dumps(key, sort_keys=True, separators=(",", ":")).encode()
    return Path(folder) / f"{kind}-{hashlib.sha256(canonical).hexdigest()}.npy"


def _new(path: Path, shape: tuple[int, ...]) -> np.memmap:
    """An array in a new file. The folder is made, but never that of a deleted run again."""
    if path.parent.parent == runs.runs_root():
        path.parent.parent.mkdir(parents=True, exist_ok=True)
    path.parent.mkdir(exist_ok=True)
    _sweep(path.parent)
    array = np.lib.format.open_memmap(path, "w+", np.float32, shape)
    try:
        with open(path, "r+b") as handle:  # a full disk is an error now, and no crash later
            os.posix_fallocate(handle.fileno(), 0, array.offset + array.nbytes)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return array


def _sweep(folder: Path, seconds: float = 6 * 3600) -> None:
    """Remove what a process that was killed left half written."""
    for path in folder.glob(".*.npy.*.partial"):
        if _written(path) < time.time() - seconds:
            path.unlink(missing_ok=True)


def _make_room(new: Path, kind: str) -> None:
    files = sorted((p for p in new.parent.glob(f"{kind}-*.npy") if p != new), key=_written)
    room = MOST_BYTES - _size(new) - sum(map(_size, files))
    for path in files:
        if room >= 0:
            return
        room += _size(path)
        path.unlink(missing_ok=True)  # whoever has it open keeps it


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
