"""Texts that a user pastes or uploads: bounded, decoded, made into a table."""

from __future__ import annotations

import csv
import io
import json

from bertscope.errors import BertScopeError

MAX_TEXTS, MAX_CHARACTERS, MAX_BYTES = 10_000, 2000, 8_000_000
#: One character of so many may be none of UTF-8's; a Latin-1 text has fewer, a picture has more.
MOST_STRANGE = 4


def table_of_texts(raw: str):
    """One text a line; or CSV, commas or tabs, whose first line names the columns, one of them
    ``text``; or JSON lines, each an object with ``text``.

    Returns: a DataFrame with ``text`` and the file's other columns; numbers are numbers.

    Raises:
        BertScopeError: nothing is in it, or more than the page takes.
    """
    import pandas as pd

    raw = raw.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", " ").lstrip("\ufeff")
    first = raw.split("\n", 1)[0]
    comma = "\t" if "\t" in first else ","
    try:
        header = [name.strip() for name in next(csv.reader(io.StringIO(first), delimiter=comma), [])]
    except csv.Error:  # a line of more than 131,072 characters names no columns
        header = []
    if first.lstrip().startswith("{"):
        table = _json_lines(raw)
    elif "text" in header and len(header) > 1:
        table = _csv(raw, header, comma)
    else:
        lines = [line.strip() for line in raw.split("\n") if line.strip()]
        table = pd.DataFrame({"text": lines[1:] if lines[:1] == ["text"] else lines})
    if table.empty:
        raise BertScopeError("There is no text yet: give one text a line, or a CSV file with a "
                             "column called text.")
    if len(table) > MAX_TEXTS:
        raise BertScopeError(f"There are {len(table):,} texts; at most {MAX_TEXTS:,} are drawn.")
    table["text"] = table["text"].str[:MAX_CHARACTERS]
    return table


def _json_lines(raw: str):
    """Objects with ``text``; of their other values those that are one word or number."""
    import pandas as pd

    rows = []
    for number, line in enumerate(raw.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise BertScopeError(f"Line {number:,} is no JSON object.") from None
        if not isinstance(row, dict) or not isinstance(row.get("text"), str):
            raise BertScopeError(f"Line {number:,} has no text: each line has to be an object with "
                                 "\"text\".")
        if row["text"].strip():
            rows.append({str(key)[:100]: value for key, value in row.items()
                         if isinstance(value, (str, int, float))})
    return pd.DataFrame(rows, columns=list(dict.fromkeys(k for row in rows for k in row)))


def _csv(raw: str, header: list[str], comma: str):
    import pandas as pd

    if len(set(header)) < len(header):
        raise BertScopeError("Two columns of the CSV file have the same name.")
    try:
        table = pd.read_csv(io.StringIO(raw), sep=comma, skipinitialspace=True, dtype={"text": str},
                            encoding_errors="replace")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise BertScopeError(f"The CSV file cannot be read: {error}.") from None
    table.columns = header
    return table[table["text"].fillna("").str.strip() != ""].reset_index(drop=True)


def decode(data: bytes) -> str:
    """UTF-8, with what is not UTF-8 replaced.

    Raises:
        BertScopeError: the file is too large, or is no text.
    """
    if len(data) > MAX_BYTES:
        raise BertScopeError(f"The file has {len(data) / 1e6:.1f} MB; at most "
                             f"{MAX_BYTES / 1e6:.0f} MB are taken.")
    text = data.decode("utf-8", "replace")
    if "\x00" in text or text.count("\ufffd") > len(text) / MOST_STRANGE:
        raise BertScopeError("This file is no text in UTF-8: save it as UTF-8 first.")
    return text
