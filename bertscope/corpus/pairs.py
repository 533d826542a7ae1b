"""Files of minimal pairs: two sentences, one of them wrong (BLiMP's JSON lines, CSV, TSV).

    {"sentence_good": "...", "sentence_bad": "...", "UID": "paradigm", "linguistics_term": "..."}

as in BLiMP (Warstadt et al. 2020), or columns ``good, bad[, paradigm[, phenomenon]]`` with or without a
first line that names them. What is no pair is refused with the number of its line.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bertscope.errors import BertScopeError

SUFFIXES = (".jsonl", ".csv", ".tsv")
#: BLiMP whole is 67,000 pairs in 31 MB.
MOST_BYTES, MOST_FILES, MOST_PAIRS = 64_000_000, 200, 200_000
MOST_CHARACTERS, MOST_NAME = 1000, 100
#: What a column or an entry may be called.
_NAMES = {"good": ("sentence_good", "good", "grammatical"),
          "bad": ("sentence_bad", "bad", "ungrammatical"),
          "paradigm": ("uid", "paradigm"), "phenomenon": ("linguistics_term", "phenomenon")}


@dataclass(frozen=True)
class Pair:
    """``paradigm`` is the kind of contrast, ``phenomenon`` the group of paradigms that it is of."""

    good: str
    bad: str
    paradigm: str
    phenomenon: str = ""


@dataclass(frozen=True)
class PairSet:
    """Pairs in the order of their files; ``name`` says where they are from."""

    name: str
    pairs: tuple[Pair, ...]

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """How many pairs each paradigm has."""
        return dict(Counter(pair.paradigm for pair in self.pairs))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the pairs, whatever they came from."""
        return digest(self.pairs)

    def first(self, most: int | None) -> PairSet:
        """The first pairs of each paradigm."""
        if most is None or all(size <= most for size in self.sizes.values()):
            return self
        seen: Counter[str] = Counter()
        kept = []
        for pair in self.pairs:
            seen[pair.paradigm] += 1
            if seen[pair.paradigm] <= most:
                kept.append(pair)
        return replace(self, pairs=tuple(kept))


def digest(pairs: Sequence[Pair]) -> str:
    """SHA-256 of what is in the pairs, hexadecimal."""
    found = hashlib.sha256()
    for pair in pairs:
        found.update(json.dumps([pair.good, pair.bad, pair.paradigm, pair.phenomenon]).encode())
    return found.hexdigest()


def built_in(per_paradigm: int = 200) -> PairSet:
    """The pairs that come with BertScope: those of miniworld's grammar."""
    from bertscope.corpus.miniworld.contrasts import contrasts

    return PairSet("miniworld's grammar", tuple(
        Pair(c.good, c.bad, c.paradigm, c.phenomenon) for c in contrasts(per_paradigm)))


def read_pairs(path: str | Path) -> PairSet:
    """The pairs of a file, or of all files in a folder; ``miniworld`` are the built-in ones.

    Raises:
        BertScopeError: there is no such thing, it is too large, or a line is no pair (which, and
            why).
    """
    found: list[Pair] = []
    try:
        place = Path(path).expanduser()
        if str(path) == "miniworld" and not place.exists():
            return built_in()
        for file in _files(place):
            with open(file, "rb") as handle:
                data = handle.read(MOST_BYTES + 1)
            found += parse_pairs(file.name, data).pairs
            if len(found) > MOST_PAIRS:
                raise BertScopeError(f"{path} has more than the {MOST_PAIRS:,} pairs that are read.")
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in the path, a home of nobody
        raise BertScopeError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}."
                             ) from None
    return PairSet(place.name, tuple(found))


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise BertScopeError(f"There is no file or folder of pairs called {str(place)!r}.")
    files = sorted(f for f in place.iterdir() if f.suffix.lower() in SUFFIXES and f.is_file())
    if not files:
        raise BertScopeError(f"{place} has no file of pairs: they end in {', '.join(SUFFIXES)}.")
    if len(files) > MOST_FILES:
        raise BertScopeError(f"{place} has {len(files):,} files of pairs; at most {MOST_FILES} are "
                             "read.")
    return files


def parse_pairs(name: str, data: bytes) -> PairSet:
    """The pairs of one file's bytes; ``name`` tells the format by its end, JSON lines by default.

    A pair without a paradigm of its own is of the paradigm that the file is called.

    Raises:
        BertScopeError: the file is too large, or a line is no pair (which, and why).
    """
    if len(data) > MOST_BYTES:
        raise BertScopeError(f"{name} is larger than the {MOST_BYTES / 1e6:.0f} MB that are read.")
    path = Path(name)
    rows = _table(name, data, "\t" if path.suffix.lower() == ".tsv" else ",") \
        if path.suffix.lower() in (".csv", ".tsv") else _objects(name, data)
    pairs = []
    for line, row in rows:
        pairs.append(_pair(f"{name}, line {line:,}", row, path.stem))
        if len(pairs) > MOST_PAIRS:
            raise BertScopeError(f"{name} has more than the {MOST_PAIRS:,} pairs that are read.")
    if not pairs:
        raise BertScopeError(f"{name} is empty: there is no pair of sentences in it.")
    return PairSet(path.name, tuple(pairs))


def _pair(where: str, row: dict, stem: str) -> Pair:
    """A row as a pair, with everything that could be wrong with it named."""
    known = {str(key).strip().lower(): value for key, value in row.items()}

    def text(field: str, most: int) -> str:
        value = next((known[n] for n in _NAMES[field] if known.get(n) is not None), "")
        if not isinstance(value, str):
            raise BertScopeError(f"{where}: {field} is no text.")
        value = " ".join(value.encode("utf-8", "replace").decode().split())
        if len(value) > most:
            raise BertScopeError(f"{where}: {field} has {len(value):,} characters; at most "
                                 f"{most:,} are taken.")
        return value

    good, bad = text("good", MOST_CHARACTERS), text("bad", MOST_CHARACTERS)
    for field, value in (("good", good), ("bad", bad)):
        if not value:
            raise BertScopeError(f"{where}: there is no {field} sentence "
                                 f"({' or '.join(_NAMES[field][:2])}).")
        if "[MASK]" in value:
            raise BertScopeError(f"{where}: the {field} sentence says [MASK]; a sentence with a gap "
                                 "has no score.")
    return Pair(good, bad, text("paradigm", MOST_NAME) or stem[:MOST_NAME],
                text("phenomenon", MOST_NAME))


def _lines(name: str, data: bytes) -> Iterator[tuple[int, str]]:
    for line, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise BertScopeError(f"{name}, line {line:,}: this is not UTF-8 text.") from None
        if text.strip():
            yield line, text


def _objects(name: str, data: bytes) -> Iterator[tuple[int, dict]]:
    for line, text in _lines(name, data):
        try:
            row = json.loads(text)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise BertScopeError(f"{name}, line {line:,}: this is no JSON object; one pair a line is "
                                 "expected, with sentence_good and sentence_bad.")
        yield line, row


def _table(name: str, data: bytes, comma: str) -> Iterator[tuple[int, dict]]:
    names = ["good", "bad", "paradigm", "phenomenon"]
    for number, (line, text) in enumerate(_lines(name, data)):
        try:  # one line is one pair: a quoted line break is refused with it
            cells = text.split("\t") if comma == "\t" else next(csv.reader([text], strict=True), [])
        except csv.Error as error:
            raise BertScopeError(f"{name}, line {line:,}: {error}.") from None
        lower = [cell.strip().lower() for cell in cells]
        if number == 0 and any(cell in _NAMES["good"] for cell in lower):
            names = lower
            continue
        if len(cells) < 2:
            raise BertScopeError(f"{name}, line {line:,}: two columns are expected, the good "
                                 f"sentence and the bad one, with a "
                                 f"{'tab' if comma == chr(9) else 'comma'} between them.")
        yield line, dict(zip(names, cells))
