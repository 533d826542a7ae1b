"""SentEval's own files (Conneau et al. 2018): a line is part, label, text, separated by tabs.

The parts are ``tr``, ``va`` and ``te``; the text is the last field, its words separated by spaces.
Other fields between label and text are passed over, as in SentEval's reader.
"""

from __future__ import annotations

from pathlib import Path

from bertscope.analysis.probing.parts import NAMES
from bertscope.analysis.probing.tasks.records import Record
from bertscope.analysis.probing.tasks.table import LONGEST_LABEL, LONGEST_TEXT, MOST_ROWS, lines
from bertscope.errors import BertScopeError

MARKS = ("tr", "va", "te")


def is_senteval(path: Path) -> bool:
    """Whether the first line looks like one of SentEval's.

    Raises:
        BertScopeError: the file cannot be read, or is not text.
    """
    return next(lines(path), "").partition("\t")[0] in MARKS


def read_senteval(path: Path) -> list[Record]:
    """The rows of a file.

    Raises:
        BertScopeError: the file cannot be read, or a line is not as it should be (it is named).
    """
    records = []
    for number, line in enumerate(lines(path), 1):
        where, fields = f"{path}, line {number}", line.rstrip("\r\n").split("\t")
        if len(records) == MOST_ROWS:
            raise BertScopeError(f"{where}: the file has more than {MOST_ROWS:,} lines.")
        if len(fields) < 3 or fields[0] not in MARKS:
            raise BertScopeError(f"{where}: a line is tr, va or te, then a label, then the text, "
                                 "separated by tabs.")
        label, words = fields[1].strip(), tuple(fields[-1].replace("\0", "").split())
        if not label or not words or len(label) > LONGEST_LABEL or len(fields[-1]) > LONGEST_TEXT:
            raise BertScopeError(f"{where}: the label or the text is empty or too long.")
        records.append(Record(where, label, words=words, part=NAMES[fields[0]]))
    return records
