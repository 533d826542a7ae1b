"""Results of analyses, kept as Parquet files beside the run they belong to.

A result is found again by its key: a dictionary of everything that decides it (checkpoint, input,
parameters). The file's name holds a digest of the key, its metadata the key itself, so that a page
can list what was computed for other checkpoints. A file that is damaged or of another key is
computed again. The folder is a cache: deleting it loses time and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bertscope import runs

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow

_KEY = b"bertscope.key"
_log = logging.getLogger(__name__)


def analysis_folder(checkpoint: str | Path) -> Path:
    """Where results on a checkpoint are kept: the run's ``analysis`` folder if it is of a run.

    For checkpoints of others (a directory anywhere, a hub name) it is ``.analysis`` among the runs.
    The folder itself is made when the first result is kept.
    """
    path = Path(checkpoint).absolute()
    run = runs.Run(path.parent.parent)
    if runs.STEP.fullmatch(path.name) and path.parent == run.checkpoints_path and run.exists():
        return run.analysis_path
    return runs.runs_root() / ".analysis"


def cached_frame(folder: Path, kind: str, key: dict, compute: Callable[[], pd.DataFrame],
                 ) -> pd.DataFrame:
    """The table kept for ``key``, or ``compute()``, which is then kept.

    What ``compute`` raises passes through and nothing is kept. A folder that cannot be written, or
    a run that was deleted meanwhile, costs the keeping only, and is logged.

    Args:
        kind: what the result is, for example ``"probe"``; part of the file's name.
        key: JSON values; the order of its entries does not matter.
    """
    kept = kept_frame(folder, kind, key)
    if kept is not None:
        return kept
    table = _table(compute(), key)
    _write(_path(folder, kind, key), table)
    return table.to_pandas()


def kept_frame(folder: Path, kind: str, key: dict) -> pd.DataFrame | None:
    """The table kept for ``key``, None where there is none."""
    kept = _read(_path(folder, kind, key))
    return kept[1] if kept is not None and kept[0] == _plain(key) else None


def list_cached(folder: Path, kind: str) -> list[tuple[dict, pd.DataFrame]]:
    """Every readable result of a kind with its key, the oldest first."""
    files = sorted(Path(folder).glob(f"{kind}-*.parquet"), key=_written)
    found = (_read(path) for path in files)
    return [kept for kept in found if kept is not None]


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # removed between the look and the question
        return 0.0


def _path(folder: Path, kind: str, key: dict) -> Path:
    if not kind.isidentifier():
        raise ValueError(f"kind must be a plain word, not {kind!r}")
    return Path(folder) / f"{kind}-{hashlib.sha256(_canonical(key)).hexdigest()[:32]}.parquet"


def _canonical(key: dict) -> bytes:
    return json.dumps(key, sort_keys=True, separators=(",", ":")).encode()


def _plain(key: dict) -> dict:
    """The key as it is read back: tuples become lists."""
    return json.loads(_canonical(key))


def _table(frame: pd.DataFrame, key: dict) -> pyarrow.Table:
    import pyarrow

    table = pyarrow.Table.from_pandas(frame)
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: _canonical(key)})


def _read(path: Path) -> tuple[dict, pd.DataFrame] | None:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True).read()
        return json.loads((table.schema.metadata or {})[_KEY]), table.to_pandas()
    except FileNotFoundError:
        return None
    except (OSError, pyarrow.ArrowException, ValueError, KeyError) as error:
        _log.warning("%s is damaged and will be computed again: %s", path, error)
        return None


def _write(path: Path, table: pyarrow.Table) -> None:
    """Written aside and renamed, so that a reader never sees half of a file."""
    import pyarrow.parquet

    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    try:
        _make(path.parent)
        try:
            with open(scratch, "wb") as handle:
                pyarrow.parquet.write_table(table, handle, write_page_checksum=True)
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(scratch, path)
        finally:
            scratch.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("A result cannot be kept in %s: %s", path.parent, error)


def _make(folder: Path) -> None:
    """Make the folder, but never a run's folder again that was deleted under the page."""
    if folder.parent == runs.runs_root():
        folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True)
