"""Files and folders of which a reader never sees half, and whose damage is found."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

SEAL = "checksums.json"


def seal(folder: Path) -> None:
    """Write down each file's SHA-256, so that damage is found."""
    digests = {str(path.relative_to(folder)): _sha256(path)
               for path in sorted(folder.rglob("*")) if path.is_file()}
    (folder / SEAL).write_text(json.dumps(digests, indent=0), "utf-8")


def damage(folder: Path) -> str | None:
    """The first file of a sealed folder that is missing or changed; None where all is well.

    A folder of another program has no seal, and nothing is known of it.
    """
    try:
        digests = json.loads((folder / SEAL).read_text("utf-8"))
    except OSError:
        return None
    except ValueError:
        return SEAL
    for name, digest in digests.items():
        path = folder / name
        if not path.is_file() or _sha256(path) != digest:
            return name
    return None


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@contextmanager
def published(target: Path):
    """Build a folder aside and rename it into place: a reader never sees half of one."""
    scratch = target.with_name(f".{target.name}.{os.getpid()}.partial")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        yield scratch
        for path in scratch.rglob("*"):
            if path.is_file():
                _sync(path)
        if target.exists():
            shutil.rmtree(target)
        os.replace(scratch, target)
        _sync(target.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_atomically(path: Path, text: str) -> None:
    """Replace a file so that a reader sees the old or the new one, never a mixture."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.partial")
    scratch.write_text(text, "utf-8")
    os.replace(scratch, path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
