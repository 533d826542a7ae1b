"""Texts that a user pastes or uploads: bounded, decoded, made into a table."""

from __future__ import annotations

import csv
import io

from bertscope.errors import BertScopeError

MAX_TEXTS, MAX_CHARACTERS, MAX_BYTES = 2000, 2000, 4_000_000


def table_of_texts(raw: str):
    """One text a line, or CSV whose first line names the columns, one of them ``text``.

    Returns: a DataFrame with ``text`` and the CSV's other columns; numbers are numbers.

    Raises:
        BertScopeError: nothing is in it, or more than the page takes.
    """
    import pandas as pd

    raw = raw.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", " ").lstrip("\ufeff")
    header = [name.strip() for name in next(csv.reader(io.StringIO(raw.split("\n", 1)[0])), [])]
    if "text" in header and len(header) > 1:
        table = _csv(raw, header)
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


def _csv(raw: str, header: list[str]):
    import pandas as pd

    if len(set(header)) < len(header):
        raise BertScopeError("Two columns of the CSV file have the same name.")
    try:
        table = pd.read_csv(io.StringIO(raw), skipinitialspace=True, dtype={"text": str},
                            encoding_errors="replace")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise BertScopeError(f"The CSV file cannot be read: {error}.") from None
    table.columns = header
    return table[table["text"].fillna("").str.strip() != ""].reset_index(drop=True)


def decode(data: bytes) -> str:
    """UTF-8, with what is not UTF-8 replaced.

    Raises:
        BertScopeError: the file is too large.
    """
    if len(data) > MAX_BYTES:
        raise BertScopeError(f"The file has {len(data) / 1e6:.1f} MB; at most "
                             f"{MAX_BYTES / 1e6:.0f} MB are taken.")
    return data.decode("utf-8", "replace")
