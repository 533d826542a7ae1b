"""Which file is which part: train, validation or test, by what the files are called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bertscope.errors import BertScopeError

_PART = re.compile(r"(?<![A-Za-z])(train|dev|valid|validation|test)(?![A-Za-z])", re.IGNORECASE)
#: What parts are called in file names and in tables -> what they are called here.
NAMES = {"train": "train", "training": "train", "tr": "train", "dev": "validation",
         "valid": "validation", "validation": "validation", "val": "validation",
         "va": "validation", "test": "test", "te": "test"}


def place(source: str | Path) -> Path:
    """The path that somebody named, ``~`` expanded.

    Raises:
        BertScopeError: no file system has such a name.
    """
    try:
        path = Path(source).expanduser()
        path.is_dir()
    except (OSError, RuntimeError, ValueError):
        raise BertScopeError(f"{str(source)[:200]!r} cannot be read: it is no usable path.") from None
    return path


def role(path: Path) -> str | None:
    """``train``, ``validation`` or ``test``, where the file's name says so once."""
    found = _PART.findall(path.stem)
    return NAMES[found[0].lower()] if len(found) == 1 else None


def siblings(path: Path) -> dict[str, Path]:
    """The files beside ``path`` whose names differ from its name in the part only, itself among
    them; nothing where its own name says no part."""
    if role(path) is None:
        return {}
    pattern = _PART.sub("*", path.stem)
    try:
        files = sorted(path.parent.iterdir())
    except OSError:  # a file may be readable in a folder that cannot be listed
        return {}
    return {role(file): file for file in files
            if file.suffix == path.suffix and role(file)
            and _PART.sub("*", file.stem) == pattern and file.is_file()}


def in_folder(path: Path, suffixes: Sequence[str]) -> tuple[dict[str, Path], list[Path]]:
    """``({part: file}, all files)`` with one of the endings; the parts only where there are two or
    more and each file is one of them.

    Raises:
        BertScopeError: the folder cannot be read, or has several files for one part.
    """
    try:
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in suffixes
                       and not file.name.startswith("."))
    except OSError as error:
        raise BertScopeError(f"{path} cannot be read: {error.strerror}.") from None
    roles = [(role(file), file) for file in files]
    parts = {name: file for name, file in roles if name}
    if len(parts) < sum(1 for name, _ in roles if name):
        raise BertScopeError(f"The folder {path} has several files for one part (train, dev, "
                             "test); name one of the files instead.")
    return (parts if len(parts) > 1 else {}), files
