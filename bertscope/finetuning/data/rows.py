"""From a file of examples to rows: CSV, TSV, JSON, Parquet, CoNLL, SQuAD, RTE, rt-polarity.

A row is what the file says, before it is known which column is what; ``where`` names file and line.
"""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as xml
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bertscope.corpus.conllu import read_conllu
from bertscope.corpus.files import open_text, readable
from bertscope.errors import BertScopeError
from bertscope.finetuning.data.delimited import records

#: Rows of one file at most: they are kept in memory.
MOST_ROWS = 2_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """``values`` by column; None as ``values`` where the line itself is bad, and ``why`` then."""

    where: str
    values: dict | None
    why: str = ""


def read_rows(path: Path, header: bool = True) -> list[Row]:
    """All rows of a file, in its order.

    Raises:
        BertScopeError: it cannot be read, is not what its ending says, or has too many rows.
    """
    reader = READERS.get(path.suffix.lower(), _conll)
    rows = []
    with readable(path.name):
        for row in reader(path, header):
            rows.append(row)
            if len(rows) > MOST_ROWS:
                raise BertScopeError(f"{path.name} has more than {MOST_ROWS:,} rows, which is more "
                                     "than fine-tuning reads.")
    return rows


# -- tables -----------------------------------------------------------------------------------


def _csv(path: Path, header: bool) -> Iterator[Row]:
    yield from _table(path, header, delimiter=",")


def _tsv(path: Path, header: bool) -> Iterator[Row]:
    """Quotes within TSV are text, as in GLUE's files; a field that is quoted whole is unpacked."""
    yield from _table(path, header, delimiter="\t", quoting=csv.QUOTE_NONE)


def _table(path: Path, header: bool, **form) -> Iterator[Row]:
    with open_text(path, path.name) as handle:
        names = None
        for number, fields in records(handle, path.name, **form):
            where = f"{path.name}, line {number}"
            if fields is None:
                why = "the quote that opens here is not closed; one that is text has to be doubled."
                if names is None:
                    raise BertScopeError(f"{where}: {why}")
                yield Row(where, None, why)
                continue
            if not any(field.strip() for field in fields):
                continue
            if form.get("quoting") == csv.QUOTE_NONE:
                fields = [_unquoted(field) for field in fields]
            if names is None:
                names = [name.strip() for name in fields] if header else \
                    [str(number) for number in range(1, len(fields) + 1)]
                if len(set(names)) < len(names):
                    raise BertScopeError(f"{path.name} has two columns of the same name.")
                if header:
                    continue
            if len(fields) != len(names):
                yield Row(where, None, f"it has {len(fields)} columns where {len(names)} are expected.")
            else:
                yield Row(where, dict(zip(names, fields)))


def _unquoted(field: str) -> str:
    whole = len(field) > 1 and field[0] == field[-1] == '"'
    return field[1:-1].replace('""', '"') if whole else field


def _parquet(path: Path, header: bool) -> Iterator[Row]:
    import pyarrow
    import pyarrow.parquet

    try:
        number = 0
        with pyarrow.parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=1024):
                for record in batch.to_pylist():
                    number += 1
                    yield Row(f"{path.name}, row {number}", record)
    except pyarrow.ArrowException:
        raise BertScopeError(f"{path.name} is not a Parquet file, or it is damaged.") from None


# -- JSON -------------------------------------------------------------------------------------


def _json(path: Path, header: bool) -> Iterator[Row]:
    """SQuAD's layout, a list of objects, or an object a line."""
    with open_text(path, path.name) as handle:
        text = handle.read()
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        yield from _json_lines(path, header)
        return
    if isinstance(whole, dict) and isinstance(whole.get("data"), list):
        yield from _squad(whole["data"], path.name)
    elif isinstance(whole, list):
        for number, record in enumerate(whole, 1):
            yield _record(record, f"{path.name}, row {number}")
    else:
        yield _record(whole, f"{path.name}, line 1")


def _json_lines(path: Path, header: bool) -> Iterator[Row]:
    with open_text(path, path.name) as handle:
        for number, line in enumerate(handle, 1):
            if line.strip():
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    record = None
                yield _record(record, f"{path.name}, line {number}")


def _record(record, where: str) -> Row:
    if isinstance(record, dict):
        return Row(where, _whole(record))
    return Row(where, None, "it is not a JSON object.")


def _whole(value):
    """Without halves of surrogate pairs, which JSON can escape and no tokenizer or terminal takes."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return {_whole(k): _whole(v) for k, v in value.items()} if isinstance(value, dict) else value


def _squad(data: list, name: str) -> Iterator[Row]:
    """The layout of SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, 2018)."""
    try:
        for article in data:
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    answers = [] if asked.get("is_impossible") else asked["answers"]
                    yield Row(f"{name}, question {asked.get('id', '?')}",
                              {"question": asked["question"], "context": paragraph["context"],
                               "answers": answers, "id": str(asked.get("id", ""))})
    except KeyError as error:
        raise BertScopeError(f"{name} is not laid out like SQuAD: {error} is missing.") from None
    except (TypeError, AttributeError):
        raise BertScopeError(f"{name} is not laid out like SQuAD: articles with paragraphs, these "
                             "with questions.") from None


# -- words in columns -------------------------------------------------------------------------


def _conllu(path: Path, header: bool) -> Iterator[Row]:
    for number, sentence in enumerate(read_conllu(path), 1):
        words = sentence.words
        yield Row(f"{path.name}, sentence {sentence.metadata.get('sent_id') or number}",
                  {"words": [word.form for word in words],
                   **{name: [getattr(word, name) for word in words]
                      for name in ("upos", "xpos", "deprel")}})


def _conll(path: Path, header: bool) -> Iterator[Row]:
    """A word a line with its columns, a blank line between sentences; the first column is the
    word, columns are called by their numbers."""
    lines: list[list[str]] = []
    begun, why = 1, ""
    with open_text(path, path.name) as handle:
        for number, line in enumerate((*handle, ""), 1):
            if line.strip() and not line.startswith("-DOCSTART-"):
                fields = line.rstrip("\r\n").split("\t") if "\t" in line else line.split()
                begun = number if not lines else begun
                if len(fields) < 2 or (lines and len(fields) != len(lines[0])):
                    why = why or (f"line {number} has {len(fields)} columns where "
                                  f"{len(lines[0]) if lines else 'at least 2'} are expected.")
                lines.append([field.strip() for field in fields])
            elif lines:
                where = f"{path.name}, sentence at line {begun}"
                if why:
                    yield Row(where, None, why)
                else:
                    columns = [list(column) for column in zip(*lines)]
                    yield Row(where, {"words": columns[0],
                                      **{str(i): column for i, column in enumerate(columns[1:], 2)}})
                lines, why = [], ""


# -- two collections of their own form --------------------------------------------------------


def _rte(path: Path, header: bool) -> Iterator[Row]:
    """The PASCAL challenges: ``<pair value="TRUE">`` or ``entailment="YES"`` with ``<t>`` and ``<h>``.

    The file's own declaration says how its characters are encoded.
    """
    try:
        for _, pair in xml.iterparse(path):
            if pair.tag == "pair":
                answer = pair.get("entailment") or pair.get("value") or ""
                yes = {"YES": "entailment", "TRUE": "entailment", "NO": "no entailment",
                       "FALSE": "no entailment"}.get(answer.upper(), answer)
                yield Row(f"{path.name}, pair {pair.get('id', '?')}",
                          {"text": pair.findtext("t") or "", "hypothesis": pair.findtext("h") or "",
                           "label": yes})
                pair.clear()
    except xml.ParseError as error:
        raise BertScopeError(f"{path.name} is not well-formed XML: {error}.") from None


def _one_label(path: Path, header: bool) -> Iterator[Row]:
    """A text a line; the file's ending is the label of all of them (``rt-polarity.pos``)."""
    label = {".pos": "positive", ".neg": "negative"}[path.suffix.lower()]
    with open_text(path, path.name) as handle:
        for number, line in enumerate(handle, 1):
            if line.strip():
                yield Row(f"{path.name}, line {number}", {"text": line.strip(), "label": label})


#: The reader of each ending; other files are taken for CoNLL columns.
READERS: dict[str, Callable[[Path, bool], Iterator[Row]]] = {
    ".csv": _csv, ".tsv": _tsv, ".tab": _tsv, ".parquet": _parquet,
    ".json": _json, ".jsonl": _json_lines, ".ndjson": _json_lines,
    ".conllu": _conllu, ".conll": _conll, ".iob": _conll, ".iob2": _conll, ".bio": _conll,
    ".xml": _rte, ".pos": _one_label, ".neg": _one_label,
}
