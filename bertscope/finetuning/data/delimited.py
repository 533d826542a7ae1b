"""The records of CSV and TSV files, each with the line where it begins; a quote that is left open is found."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from bertscope.errors import BertScopeError

#: Characters of one field at most.
LONGEST_FIELD = 10_000_000


def records(lines: Iterable[str], name: str, **form) -> Iterator[tuple[int, list[str] | None]]:
    """(number of its first line, fields) of each record.

    A quote that is not closed would take all that follows into its field. There the fields are None, the
    number is that of the line where it opens, and reading goes on behind that line.

    Args:
        name: what the file is called in an error.
        form: as ``csv.reader`` takes it.

    Raises:
        BertScopeError: a field is too long.
    """
    csv.field_size_limit(LONGEST_FIELD)
    source, number = _Lines(iter(lines)), 1
    try:
        for fields in csv.reader(source, **form):
            taken, ended = source.since()
            if ended or (len(taken) > 1 and _strange(taken, form)):
                opens = _opens(taken)
                source.give_back(taken[opens + 1:])
                yield number + opens, None
                number += opens + 1
            else:
                yield number, fields
                number += len(taken)
    except csv.Error as error:
        raise BertScopeError(f"{name}, line {number}: {error}.") from None


class _Lines:
    """Lines of which some can be given back."""

    def __init__(self, lines: Iterator[str]):
        self.lines, self.back, self.taken, self.ended = lines, [], [], False

    def __iter__(self):
        return self

    def __next__(self) -> str:
        line = self.back.pop() if self.back else next(self.lines, None)
        if line is None:
            self.ended = True
            raise StopIteration
        self.taken.append(line)
        return line.replace("\0", "")

    def since(self) -> tuple[list[str], bool]:
        """The lines that were taken since the last call, and whether there were too few."""
        found = self.taken, self.ended
        self.taken, self.ended = [], False
        return found

    def give_back(self, lines: list[str]) -> None:
        self.back += reversed(lines)


def _strange(taken: list[str], form: dict) -> bool:
    """Whether a record of several lines has something between a closing quote and the separator: that
    quote was then another field's, and opened it."""
    try:
        list(csv.reader(taken, strict=True, **form))
    except csv.Error:
        return True
    return False


def _opens(taken: list[str]) -> int:
    """The last of the lines that begins outside of quotes and ends inside."""
    inside, found = False, 0
    for place, line in enumerate(taken):
        before, inside = inside, inside ^ (line.count('"') % 2 == 1)
        found = place if inside and not before else found
    return found
