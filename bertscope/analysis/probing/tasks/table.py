"""Anybody's question: a table of texts and labels, as CSV or JSON lines.

Columns, in any order and any case: ``text`` (or ``sentence``), or ``words`` (a list, or separated by
spaces); ``label``; for a question about words ``start`` and ``end`` (characters of the text from 0,
the end exclusive; of ``words`` their places), for one about pairs ``start2`` and ``end2`` too.
Optional: ``split`` (or ``part``: train, dev, test), ``document``, ``type`` (a word that stands for
the text). Other columns are passed over. In a TSV quotation marks are ordinary characters.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterator
from pathlib import Path

from bertscope.analysis.probing.parts import NAMES
from bertscope.analysis.probing.tasks.records import Record
from bertscope.errors import BertScopeError

JSON_FILES, TABLE_FILES = (".jsonl", ".ndjson"), (".csv", ".tsv", ".jsonl", ".ndjson")
#: Rows, characters of a line, of a text and of a label, and words of a text, at most.
MOST_ROWS, LONGEST_LINE, LONGEST_TEXT, LONGEST_LABEL, MOST_WORDS = (
    200_000, 100_000, 20_000, 200, 5000)
#: Other names of columns.
ALIASES = {"sentence": "text", "part": "split", "doc": "document", "tokens": "words"}


def read_table(path: Path, part: str = "") -> list[Record]:
    """The rows of a CSV, TSV or JSON lines file.

    Args:
        part: of rows that do not say theirs.

    Raises:
        BertScopeError: the file cannot be read, or a line is not as it should be (it is named).
    """
    rows = _json(path) if path.suffix.lower() in JSON_FILES else _csv(path)
    records = []
    for number, row in rows:
        if len(records) == MOST_ROWS:
            raise BertScopeError(f"{path}, line {number}: the table has more than {MOST_ROWS:,} rows.")
        records.append(_record(row, f"{path}, line {number}", part))
    return records


def lines(path: Path) -> Iterator[str]:
    """The lines of a text file in UTF-8, their ends kept.

    Raises:
        BertScopeError: the file cannot be read, is not text in UTF-8, or a line is too long.
    """
    number = 0
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise BertScopeError(f"{path}, line {number}: the line has more than "
                                         f"{LONGEST_LINE:,} characters.")
                yield line
    except UnicodeDecodeError:
        raise BertScopeError(f"{path}, line {_no_text(path)}: this is not text in UTF-8.") from None
    except OSError as error:
        raise BertScopeError(f"{path} cannot be read: {error.strerror}.") from None


def _no_text(path: Path) -> int:
    """The line with the first byte that is not UTF-8."""
    decoder, number = codecs.getincrementaldecoder("utf-8")(), 1
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            try:
                number += decoder.decode(block).count("\n")
            except UnicodeDecodeError as error:
                return number + error.object[:error.start].count(b"\n")
    return number  # the file ends within a character


def _csv(path: Path) -> Iterator[tuple[int, dict]]:
    source = lines(path)
    first = next(source, "")
    tab = path.suffix.lower() == ".tsv"
    mark = "\t" if tab else max(",;\t", key=first.count)
    reader = csv.reader(_again(first, source), delimiter=mark, strict=True,
                        quoting=csv.QUOTE_NONE if tab else csv.QUOTE_MINIMAL)
    try:
        header = [ALIASES.get(name.strip().lower(), name.strip().lower())
                  for name in next(reader, [])]
        if "label" not in header or not {"text", "words"} & set(header):
            raise BertScopeError(f"{path}, line 1: the first line should name the columns, among "
                                 "them text and label.")
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise BertScopeError(f"{path}, line {reader.line_num}: {len(row)} fields, but the "
                                     f"first line names {len(header)} columns.")
            yield reader.line_num, dict(zip(header, row))
    except csv.Error as error:
        raise BertScopeError(f"{path}, line {reader.line_num}: this is not CSV ({error}).") from None


def _again(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _json(path: Path) -> Iterator[tuple[int, dict]]:
    for number, line in enumerate(lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise BertScopeError(f"{path}, line {number}: this is not a JSON object.")
        yield number, {ALIASES.get(str(key).lower(), str(key).lower()): value
                       for key, value in row.items()}


def _record(row: dict, where: str, part: str) -> Record:
    words = _words(row.get("words"), where)
    text = "" if words else _string(row, "text", where, LONGEST_TEXT)
    if not words and not text.strip():
        raise BertScopeError(f"{where}: the text is empty.")
    label = _string(row, "label", where, LONGEST_LABEL).strip()
    if not label:
        raise BertScopeError(f"{where}: there is no label.")
    named = _string(row, "split", where, LONGEST_LABEL).strip().lower()
    if named and named not in NAMES:
        raise BertScopeError(f"{where}: the split is one of train, dev and test, not {named[:40]!r}.")
    spans = tuple(span for start, end in (("start", "end"), ("start2", "end2"))
                  if (span := _span(row.get(start), row.get(end), where)) is not None)
    if len(spans) == 1 and _span(row.get("start"), row.get("end"), where) is None:
        raise BertScopeError(f"{where}: start2 and end2 need start and end.")
    return Record(where, label, text, words, spans, NAMES[named] if named else part,
                  _string(row, "document", where, LONGEST_LABEL).strip(),
                  _string(row, "type", where, LONGEST_LABEL).strip())


def _string(row: dict, key: str, where: str, most: int) -> str:
    value = row.get(key)
    if isinstance(value, bool):
        value = str(value).lower()
    elif isinstance(value, (int, float)):
        value = str(value)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BertScopeError(f"{where}: {key} should be text.")
    if len(value) > most:
        raise BertScopeError(f"{where}: {key} has {len(value):,} characters; at most {most:,} are "
                             "read.")
    return value.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _words(value, where: str) -> tuple[str, ...]:
    found = value.split() if isinstance(value, str) else value
    if not found:
        return ()
    if not isinstance(found, list) or not all(isinstance(word, str) and word.strip()
                                              for word in found):
        raise BertScopeError(f"{where}: words should be a list of texts, none of them empty.")
    if len(found) > MOST_WORDS or sum(map(len, found)) > LONGEST_TEXT:
        raise BertScopeError(f"{where}: at most {MOST_WORDS:,} words of {LONGEST_TEXT:,} characters "
                             "are read.")
    return tuple(word.encode("utf-8", "replace").decode("utf-8") for word in found)


def _span(start, end, where: str) -> tuple[int, int] | None:
    edges = [None if isinstance(value, str) and not value.strip() else value
             for value in (start, end)]
    if edges == [None, None]:
        return None
    try:
        found = tuple(int(value) for value in edges if not isinstance(value, bool))
        if len(found) != 2 or any(isinstance(value, float) and value != int(value)
                                  for value in edges):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise BertScopeError(f"{where}: start and end should be whole numbers.") from None
    if not 0 <= found[0] < found[1] <= LONGEST_TEXT:
        raise BertScopeError(f"{where}: {found[0]} to {found[1]} is no span of a text.")
    return found
