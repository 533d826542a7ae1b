"""Data sets of the Hugging Face hub by name, where the package ``datasets`` is installed."""

from __future__ import annotations

from importlib.util import find_spec

from bertscope.errors import BertScopeError
from bertscope.finetuning.data.parts import part_of
from bertscope.finetuning.data.rows import MOST_ROWS, Row


def hub_rows(name: str) -> dict[str, list[Row]]:
    """Rows by part of ``NAME``, ``OWNER/NAME`` or ``OWNER/NAME/SUBSET``; class numbers become names.

    Raises:
        BertScopeError: the package is missing, the data set cannot be fetched, or its splits are none
            of train, validation and test.
    """
    if not name.strip("/ "):
        raise BertScopeError("hf: needs the name of a data set behind it, as in hf:nyu-mll/glue/rte.")
    if not find_spec("datasets"):
        raise BertScopeError("Data sets of the Hugging Face hub need the package datasets: "
                             "pip install datasets. Files are read without it.")
    import datasets

    *whole, last = name.split("/")
    path, subset = ("/".join(whole), last) if len(whole) == 2 else (name, None)
    try:
        loaded = datasets.load_dataset(path, subset)
    except Exception as error:  # networks, names, formats
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise BertScopeError(f"The data set {name!r} cannot be fetched: {reason}") from error
    rows: dict[str, list[Row]] = {}
    for split, table in loaded.items():
        part = part_of(split)
        if part and part not in rows:
            if len(table) > MOST_ROWS:
                raise BertScopeError(f"{name}, {split} has more than {MOST_ROWS:,} rows.")
            rows[part] = [Row(f"{name}, {split} row {number}", _named(record, table.features))
                          for number, record in enumerate(table, 1)]
    if not rows:
        raise BertScopeError(f"The data set {name!r} has no split called train, validation or test; it has "
                             f"{', '.join(map(str, loaded))}.")
    return rows


def _named(record: dict, features) -> dict:
    """Numbers of classes as their names; -1, which stands for an unknown label, as None."""
    named = {}
    for column, value in record.items():
        kind = features[column]
        kind, many = getattr(kind, "feature", kind), isinstance(value, list)
        if hasattr(kind, "int2str"):
            names = [kind.int2str(v) if v is not None and v >= 0 else None
                     for v in (value if many else [value])]
            value = names if many else names[0]
        named[column] = value
    return named
