"""Documents from the user's own files: text, JSON lines, CoNLL-U, Parquet, or a folder of them.

Everything streams: no file, line or document has to fit in memory (JSON records and CoNLL-U
documents excepted, which are refused above a stated size or are small by nature).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from bertscope.corpus.conllu import read_conllu
from bertscope.corpus.document import LONGEST, Collector, Document
from bertscope.errors import BertScopeError

#: Characters of a line read at once; a longer line comes in several pieces.
LINE = 1 << 17
#: Longest JSON record in characters.
RECORD = 1 << 26
#: Bytes looked at to tell text from something else.
SAMPLE = 1 << 16
#: Longest text kept of one meta field.
META = 1000
#: What separates a file's progress reports, in bytes.
REPORT_EVERY = 1 << 18


class Meter:
    """Turns positions in single files into the share of all bytes read."""

    def __init__(self, files: Iterable[Path], progress: Callable[[str, float | None], None] | None):
        self.total = sum(file.stat().st_size for file in files) or 1
        self.progress = progress or (lambda message, fraction: None)
        self.done = self.size = self.last = 0
        self.name, self.meta = "", {}

    def begin(self, name: str, size: int, meta: dict) -> None:
        """A new file; its documents begin with ``meta``."""
        self.done += self.size
        self.name, self.size, self.meta, self.last = name, size, meta, 0
        self.at(0)

    def at(self, position: int) -> None:
        if position == 0 or position - self.last >= REPORT_EVERY:
            self.last = position
            self.progress(f"reading {self.name}", min(1.0, (self.done + position) / self.total))

    def notice(self, sentence: str) -> None:
        """Something worth knowing afterwards: reported without a fraction."""
        self.progress(sentence, None)


def find_files(path: Path) -> list[Path]:
    """The file itself, or a folder's files with a known ending, sorted; links are followed once.

    Names that begin with a dot are passed over.

    Raises:
        BertScopeError: nothing is there, it cannot be read, or the folder has no text in it.
    """
    with readable(path):
        if path.is_file():
            return [path]
        if not path.is_dir():
            kind = "is neither a file nor a folder" if path.exists() else "does not exist"
            raise BertScopeError(f"{path} {kind}.")
        found = sorted(_walk(path))
    if not found:
        raise BertScopeError(f"The folder {path} has no text in it; files that are read end in "
                             f"{', '.join(READERS)}.")
    return found


def _walk(folder: Path) -> Iterator[Path]:
    def fail(error: OSError):
        raise error

    seen = set()
    for place, folders, files in os.walk(folder, onerror=fail, followlinks=True):
        status = os.stat(place)
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()  # a link back into what was walked already
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            file = Path(place, name)
            if not name.startswith(".") and file.suffix.lower() in READERS and file.is_file():
                yield file


def read_path(path: Path, progress=None) -> Iterator[Document]:
    """The documents of a file or of a folder's files, one file after the other.

    Of a folder's files, ``meta["path"]`` is the name relative to the folder.

    Raises:
        BertScopeError: a file cannot be read or is not what its ending says.
    """
    files = find_files(path)
    with readable(path):
        meter = Meter(files, progress)
    for file in files:
        relative = file.name if file == path else file.relative_to(path).as_posix()
        name = os.fsencode(relative).decode("utf-8", "replace")
        reader = READERS.get(file.suffix.lower(), _text)
        with readable(name):
            size = file.stat().st_size
            meter.begin(name, size, {"path": name} if file != path else {})
            if size:
                yield from reader(file, name, meter)


@contextmanager
def readable(name: str | Path):
    """Turns the system's refusal into a sentence."""
    try:
        yield
    except OSError as error:
        raise BertScopeError(f"{name} cannot be read: {error.strerror or error}.") from None


# -- text -------------------------------------------------------------------------------------


def _text(path: Path, name: str, meter: Meter) -> Iterator[Document]:
    """One paragraph or sentence a line, a blank line between documents."""
    collector = Collector(meter.meta)
    for line in _lines(path, name, meter):
        yield from collector.add(line) if line.strip() else collector.end()
    yield from collector.end()
    if collector.cut:
        meter.notice(f"{name} has a document of more than {LONGEST:,} characters, which was cut "
                     "into several.")


def _lines(path: Path, name: str, meter: Meter) -> Iterator[str]:
    """Lines without their ends (LF, CRLF or CR); one of more than ``LINE`` characters in pieces.

    NUL and stray byte-order marks are removed, what is not UTF-8 becomes U+FFFD and is counted.
    """
    replaced, rest = 0, ""
    with open_text(path, name) as handle:
        while piece := handle.readline(LINE):
            meter.at(handle.buffer.tell())
            replaced += piece.count("\ufffd")
            line, rest = rest + piece.replace("\0", "").replace("\ufeff", ""), ""
            if len(piece) == LINE and not piece.endswith("\n"):  # the line goes on: cut at a space
                line, space, rest = line.rpartition(" ")
                if not space or len(rest) > LINE // 2:
                    line, rest = line + space + rest, ""
            yield line.rstrip("\n")
    if rest:
        yield rest
    if replaced:
        meter.notice(f"{name} is not all valid UTF-8; characters replaced: {replaced:,}.")


def open_text(path: Path, name: str):
    """Open as UTF-8, or as UTF-16 where the file begins with its mark.

    Raises:
        BertScopeError: it does not look like text.
    """
    with open(path, "rb") as handle:
        sample = handle.read(SAMPLE)
    wide = sample.startswith((b"\xff\xfe", b"\xfe\xff"))
    if not wide and _looks_binary(sample):
        raise BertScopeError(f"{name} is not a text file in UTF-8.")
    return open(path, encoding="utf-16" if wide else "utf-8-sig", errors="replace")


def _looks_binary(sample: bytes) -> bool:
    """Many control characters, or many bytes that are not UTF-8; a few may be damage."""
    control = len(sample.translate(None, bytes(range(32, 256)) + b"\0\t\n\v\f\r"))
    strange = sample.decode("utf-8", "replace").count("\ufffd")
    return max(control / 0.1, sample.count(0) / 0.3, strange / 0.2) > len(sample)


# -- JSON lines -------------------------------------------------------------------------------


def _json_lines(path: Path, name: str, meter: Meter) -> Iterator[Document]:
    """One object a line: ``text`` (else the first string) is the text, other scalars are meta."""
    with open_text(path, name) as handle:
        number = 0
        while line := handle.readline(RECORD):
            number += 1
            meter.at(handle.buffer.tell())
            if len(line) == RECORD and not line.endswith("\n"):
                raise BertScopeError(f"Line {number} of {name} is longer than {RECORD >> 20} "
                                     "million characters.")
            if line.strip():
                yield from _record_document(_parse(line, number, name), f"Line {number} of {name}",
                                            meter.meta)


def _parse(line: str, number: int, name: str) -> dict:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if isinstance(record, str):
        record = {"text": record}
    if not isinstance(record, dict):
        array = " (an array: write one object a line instead)" if line.lstrip()[:1] == "[" else ""
        raise BertScopeError(f"Line {number} of {name} is not a JSON object{array}.")
    return record


def _record_document(record: dict, where: str, meta: dict) -> Iterator[Document]:
    strings = [key for key, value in record.items() if isinstance(value, str)]
    key = "text" if "text" in strings else next(iter(strings), None)
    if key is None:
        raise BertScopeError(f"{where} has no field with text.")
    collector = Collector({**meta, **_scalars(record, without=key)})
    for paragraph in record[key].splitlines():
        yield from collector.add(paragraph.replace("\0", ""))
    yield from collector.end()


def _scalars(record: dict, without: str) -> dict[str, str | int | float]:
    """Strings (shortened), numbers and truth values (as ``true``/``false``) of a record."""
    kept: dict[str, str | int | float] = {}
    for key, value in record.items():
        if key == without or (isinstance(value, float) and not math.isfinite(value)):
            continue
        if isinstance(value, bool):
            kept[str(key)] = str(value).lower()
        elif isinstance(value, str):
            kept[str(key)] = value[:META].encode("utf-8", "replace").decode("utf-8")
        elif isinstance(value, (int, float)):
            kept[str(key)] = value
    return kept


# -- annotated and columnar -------------------------------------------------------------------


def _conllu(path: Path, name: str, meter: Meter) -> Iterator[Document]:
    """``# newdoc`` begins a document; without any the file is one. Sentences stay as they are."""
    for document, sentences in groupby(read_conllu(path), key=lambda sentence: sentence.document):
        gold = list(sentences)
        meta = {**meter.meta, **({"document": document} if document else {})}
        yield Document([sentence.text for sentence in gold], meta, gold)


def _parquet(path: Path, name: str, meter: Meter) -> Iterator[Document]:
    """A row is a document: column ``text`` (else the first of strings), other scalars are meta."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            columns = _readable_columns(table.schema_arrow)
            if columns is None:
                raise BertScopeError(f"{name} has no column with text.")
            rows, size, done = max(1, table.metadata.num_rows), path.stat().st_size, 0
            for batch in table.iter_batches(batch_size=256, columns=columns):
                for record in batch.to_pylist():
                    if record[columns[0]] is not None:
                        yield from _record_document(record, name, meter.meta)
                done += batch.num_rows
                meter.at(size * done // rows)
    except pyarrow.ArrowException:
        raise BertScopeError(f"{name} is not a Parquet file, or it is damaged.") from None


def _readable_columns(schema) -> list[str] | None:
    """Text column first, then other columns of scalars; None without a column of strings."""
    import pyarrow.types as kinds

    def textual(kind) -> bool:
        return kinds.is_string(kind) or kinds.is_large_string(kind)

    strings = [field.name for field in schema if textual(field.type)]
    if not strings:
        return None
    text = "text" if "text" in strings else strings[0]
    scalar = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, textual)
    return [text] + [field.name for field in schema
                     if field.name != text and any(test(field.type) for test in scalar)]


#: The reader of each ending; a single file with another one is read as text.
READERS = {
    ".txt": _text, ".text": _text, ".md": _text,
    ".jsonl": _json_lines, ".ndjson": _json_lines, ".json": _json_lines,
    ".conllu": _conllu, ".parquet": _parquet,
}
