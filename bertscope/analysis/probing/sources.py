"""Where questions come from: one way to open treebanks, tables and SentEval's files.

    source = open_source("en_ewt/")            # or miniworld, reviews.csv, bigram_shift.txt
    [task.name for task in source.offers()]
    source.items("upos")
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bertscope.analysis.probing import tasks
from bertscope.analysis.probing.gold import COLUMN_FILES, TREEBANK, Gold, data
from bertscope.analysis.probing.items import PARTS, Items
from bertscope.analysis.probing.parts import in_folder, place, siblings
from bertscope.analysis.probing.tasks.records import Record, table_items
from bertscope.analysis.probing.tasks.senteval import is_senteval, read_senteval
from bertscope.analysis.probing.tasks.table import TABLE_FILES, read_table
from bertscope.errors import BertScopeError


@dataclass(frozen=True)
class Source:
    """Annotated sentences (``gold``), which serve many tasks, or a ``table``, which is one."""

    name: str
    note: str
    gold: Gold | None = None
    table: Items | None = None

    @property
    def fingerprint(self) -> str:
        """24 hex digits over all that is in it."""
        return (self.gold or self.table).fingerprint

    def offers(self, seed: int = 0) -> list[tasks.TaskInfo]:
        """The tasks that can be probed."""
        if self.gold:
            return tasks.offers(self.gold, seed)
        table = self.table
        return [tasks.TaskInfo(table.task, table.title, len(table.classes), len(table), table.kind)]

    def items(self, task: str | None = None, seed: int = 0, apart: bool = False) -> Items:
        """The items of a task; of a table the only one, whatever it is called.

        Args:
            seed, apart: as ``tasks.items``.

        Raises:
            BertScopeError: there is no such task, or the data do not serve it.
        """
        if self.gold:
            return tasks.items(self.gold, task or "upos", seed, apart)
        if task not in (None, "", self.table.task):
            raise BertScopeError(f"The table {self.name} has one task, called {self.table.task}; "
                                 f"there is none called {task!r}.")
        return tasks.types_apart(self.table, seed) if apart else self.table


def open_source(source: str | Path, seed: int = 0, unique: bool = False) -> Source:
    """Open ``miniworld``, a treebank, columns with entity tags, a table or a file of SentEval.

    Parts are as ``gold.data`` finds them: by files called train, dev and test, by what the rows of a
    table say, else by dealing out documents.

    Args:
        seed: of the split, where one has to be made.
        unique: leave a sentence that is in several parts out of the earlier ones. By default it
            stays, as in published splits, and the provenance says how many there are.

    Raises:
        BertScopeError: nothing usable is there, or a line of it is malformed.
    """
    path = place(source)
    if str(source) != "miniworld" and not _treebank(path):
        return _table(path, seed, unique)
    gold = data(source, seed)
    gold = gold.without_duplicates() if unique else gold
    return Source(gold.name, gold.note, gold=gold)


def _treebank(path: Path) -> bool:
    if path.is_dir():
        return bool(in_folder(path, (TREEBANK, *COLUMN_FILES))[1]) \
            or not in_folder(path, TABLE_FILES)[1]
    return not path.is_file() or path.suffix.lower() not in (*TABLE_FILES, ".txt")


def _table(path: Path, seed: int, unique: bool) -> Source:
    if path.is_dir():
        files, every = in_folder(path, TABLE_FILES)
        if not files:
            if len(every) > 1:
                raise BertScopeError(f"The folder {path} has several tables; name one of them.")
            return _table(every[0], seed, unique)
        name = path.resolve().name
    else:
        files, name = siblings(path), path.stem
        files = files if len(files) > 1 else {}
    records = [record for part in PARTS if part in files for record in _rows(files[part], part)] \
        if files else _rows(path)
    note = ", ".join(files[part].name for part in PARTS if part in files) or path.name
    items = table_items(records, name, seed, unique, files=note)
    return Source(name, f"{note}: {items.provenance['split']}.", table=items)


def _rows(path: Path, part: str = "") -> list[Record]:
    if path.suffix.lower() in (".txt", ".tsv") and is_senteval(path):
        return read_senteval(path)
    if path.suffix.lower() == ".txt":
        raise BertScopeError(f"{path}, line 1: a text file should be SentEval's: tr, va or te, then a "
                             "label, then the text, separated by tabs.")
    return read_table(path, part)
