"""Files of examples that were uploaded: kept among the runs, where a resumed training finds them again.

``.uploads/<digest>/<name>`` stays as long as a run or a planned sweep names it; others go after a day, or
when there are too many of them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

from bertscope.errors import BertScopeError
from bertscope.finetuning.planned import FOLDER as SWEEPS
from bertscope.runs import runs_root

FOLDER = ".uploads"
#: Seconds that a file is kept which nothing was trained on, and bytes of all such files.
LONGEST, MOST_BYTES = 86_400.0, 200_000_000


def keep(raw: bytes, name: str, root: Path | None = None) -> Path:
    """Where an uploaded file is kept; the same content under the same name is kept once.

    Raises:
        BertScopeError: it cannot be written.
    """
    root = root or runs_root()
    plain = re.sub(r"[^\w.-]+", "-", Path(name.replace("\\", "/")).name).strip("-.")[-80:] or "file"
    place = root / FOLDER / hashlib.sha256(raw).hexdigest()[:16] / plain
    try:
        if place.is_file():
            os.utime(place)
            return place
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch = place.with_name(f".{os.getpid()}.partial")
        scratch.write_bytes(raw)
        os.replace(scratch, place)
    except OSError as error:
        raise BertScopeError(f"The file cannot be kept: {error.strerror}.") from None
    tidy(root, place.parent)
    return place


def tidy(root: Path, new: Path | None = None) -> None:
    """Remove what nothing was trained on and is old, or too much; ``new`` stays."""
    known = "".join(_named(root))
    unused = []
    for folder in (root / FOLDER).iterdir():
        with suppress(OSError):  # another visitor may remove it at the same time
            if folder != new and folder.name not in known:
                files = [file.stat() for file in folder.iterdir()]
                unused.append((max((f.st_mtime for f in files), default=0.0),
                               sum(f.st_size for f in files), folder))
    total = 0
    for used, size, folder in sorted(unused, reverse=True):
        total += size
        if total > MOST_BYTES or used < time.time() - LONGEST:
            shutil.rmtree(folder, ignore_errors=True)


def _named(root: Path):
    """The configurations of all runs and the plans of all sweeps, as they stand in their files."""
    for pattern in ("*/config.json", f"{SWEEPS}/*/plan.json"):
        for file in root.glob(pattern):
            with suppress(OSError):
                yield file.read_text("utf-8", "replace")
