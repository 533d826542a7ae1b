"""Files of minimal pairs: two sentences, one of them wrong (BLiMP's JSON lines, CSV, TSV).

    {"sentence_good": "...", "sentence_bad": "...", "UID": "paradigm", "linguistics_term": "..."}

as in BLiMP (Warstadt et al. 2020), or columns ``good, bad[, paradigm[, phenomenon]]`` with or without a
first line that names them. A first line of names that are not known here is told by its words, and what was
made of it is said. What is no pair is refused with the number of its line.
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
_NAMES = {"good": ("sentence_good", "good", "grammatical", "good_sentence", "correct", "acceptable"),
          "bad": ("sentence_bad", "bad", "ungrammatical", "bad_sentence", "incorrect", "unacceptable"),
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
    """Pairs in the order of their files; ``name`` says where they are from, ``notes`` what had to be
    guessed of them, in sentences."""

    name: str
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...] = ()

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


def read_pairs(path: str | Path, names: bool | None = None) -> PairSet:
    """The pairs of a file, or of all files in a folder; ``miniworld`` are the built-in ones.

    Args:
        names: as in :func:`parse_pairs`.

    Raises:
        BertScopeError: there is no such thing, it is too large, or a line is no pair (which, and
            why).
    """
    found: list[Pair] = []
    notes: list[str] = []
    try:
        place = Path(path).expanduser()
        if str(path) == "miniworld" and not place.exists():
            return built_in()
        for file in _files(place):
            with open(file, "rb") as handle:
                data = handle.read(MOST_BYTES + 1)
            read = parse_pairs(file.name, data, names)
            found += read.pairs
            notes += read.notes
            if len(found) > MOST_PAIRS:
                raise BertScopeError(f"{path} has more than the {MOST_PAIRS:,} pairs that are read.")
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in the path, a home of nobody
        raise BertScopeError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}."
                             ) from None
    return PairSet(place.name, tuple(found), tuple(notes))


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


def parse_pairs(name: str, data: bytes, names: bool | None = None) -> PairSet:
    """The pairs of one file's bytes; ``name`` tells the format by its end, JSON lines by default.

    A pair without a paradigm of its own is of the paradigm that the file is called.

    Args:
        names: whether the first line of a table, where it is none of the known names, names the columns
            (True) or is a pair (False); None goes by its words.

    Raises:
        BertScopeError: the file is too large, or a line is no pair (which, and why).
    """
    if len(data) > MOST_BYTES:
        raise BertScopeError(f"{name} is larger than the {MOST_BYTES / 1e6:.0f} MB that are read.")
    path = Path(name)
    notes: list[str] = []
    rows = _table(name, data, "\t" if path.suffix.lower() == ".tsv" else ",", names, notes) \
        if path.suffix.lower() in (".csv", ".tsv") else _objects(name, data)
    pairs = []
    for line, row in rows:
        pairs.append(_pair(f"{name}, line {line:,}", row, path.stem))
        if len(pairs) > MOST_PAIRS:
            raise BertScopeError(f"{name} has more than the {MOST_PAIRS:,} pairs that are read.")
    if not pairs:
        raise BertScopeError(f"{name} is empty: there is no pair of sentences in it.")
    return PairSet(path.name, tuple(pairs), tuple(notes))


def _pair(where: str, row: dict, stem: str) -> Pair:
    """A row as a pair, with everything that could be wrong with it named."""
    known = {_plain(str(key)): value for key, value in row.items()}

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


def _table(name: str, data: bytes, comma: str, named: bool | None, notes: list[str],
           ) -> Iterator[tuple[int, dict]]:
    rows = [(line, _cells(f"{name}, line {line:,}", text, comma)) for line, text in _lines(name, data)]
    names = ["good", "bad", "paradigm", "phenomenon"]
    first = rows[0][1] if rows else []
    if any(_plain(cell) in _NAMES["good"] for cell in first):
        names, rows = first, rows[1:]
    elif rows:
        heading = _looks_like_names([cells for _, cells in rows]) if named is None else named
        said = ", ".join(f"“{cell.strip()[:60]}”" for cell in first[:2])
        notes.append(f"{name}: the first line, {said}, is taken for "
                     + ("the names of the columns" if heading else "a pair, as no names of columns are known "
                        "in it") + "; the first column is the good sentence, the second the bad one.")
        rows = rows[heading:]
    for line, cells in rows:
        if len(cells) < 2:
            raise BertScopeError(f"{name}, line {line:,}: two columns are expected, the good "
                                 f"sentence and the bad one, with a "
                                 f"{'tab' if comma == chr(9) else 'comma'} between them.")
        yield line, dict(zip(names, cells))


def _cells(where: str, text: str, comma: str) -> list[str]:
    try:  # one line is one pair: a quoted line break is refused with it
        return text.split("\t") if comma == "\t" else next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        raise BertScopeError(f"{where}: {error}.") from None


def _plain(cell: str) -> str:
    """A column's name as :data:`_NAMES` has it."""
    return "_".join(cell.lower().replace("-", " ").split())


def _looks_like_names(rows: list[list[str]]) -> bool:
    """Whether the first row's two cells share no word, end like no sentence and are shorter than every
    sentence below: the two sentences of a minimal pair are nearly the same."""
    if len(rows[0]) < 2:
        return False
    (good, bad), *others = ([cell.split() for cell in row[:2]] for row in rows if len(row) > 1)
    return (bool(others) and bool(good) and bool(bad) and not {*good} & {*bad}
            and not any(words[-1][-1] in ".!?。" for words in (good, bad))
            and max(len(good), len(bad)) < min(len(words) for row in others for words in row))
