"""From rows to examples: which column is what, and which rows cannot be used."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field

from bertscope.errors import BertScopeError
from bertscope.finetuning.config import DataConfig
from bertscope.finetuning.data.examples import Answer, Labelled, Question, Tagged
from bertscope.finetuning.data.rows import Row

#: What columns are usually called, the likeliest first.
PAIRS = (("sentence1", "sentence2"), ("premise", "hypothesis"), ("text", "hypothesis"),
         ("question1", "question2"), ("question", "sentence"), ("text_a", "text_b"),
         ("text1", "text2"), ("query", "passage"), ("query", "document"), ("text", "text2"))
TEXTS = ("sentence", "text", "review", "content", "title", "headline", "question", "tweet")
LABELS = ("label", "labels", "class", "category", "sentiment", "target", "score", "gold_label",
          "rating", "stars", "similarity", "y")
WORDS = ("words", "tokens", "form")
TAGS = ("ner_tags", "tags", "upos", "pos_tags", "labels", "label")
ANSWERS = ("answers", "answer", "answer_text")


@dataclass(frozen=True)
class Columns:
    """Which column is what; ``pair`` and ``label`` are None where there is none."""

    task: str
    text: str
    pair: str | None
    label: str | None

    def __str__(self) -> str:
        parts = {"tokens": ("words", "", "tags"), "question": ("question", "paragraph", "answers")
                 }.get(self.task, ("text", "second text", "label"))
        said = [f"{what} from column {name}" for what, name in
                zip(parts, (self.text, self.pair, self.label)) if name]
        return f"Task {self.task}: {', '.join(said)}."


@dataclass
class Bad:
    """Rows that cannot be used, as sentences that name file and line."""

    found: list[str] = field(default_factory=list)

    def add(self, where: str, why: str) -> None:
        self.found.append(f"{where}: {why}")

    def settle(self, skip: bool) -> list[str]:
        """A note on what is left out.

        Raises:
            BertScopeError: there are such rows, and they are not to be skipped.
        """
        if not self.found:
            return []
        more = f" (and {len(self.found) - 1:,} more such rows)" if len(self.found) > 1 else ""
        if not skip:
            raise BertScopeError(f"{self.found[0]}{more} Mend it, or leave such rows out "
                                 "(data.skip_bad, --skip-bad).")
        return [f"Left out as unusable: {len(self.found):,} rows. The first: {self.found[0]}"]


def guess(rows: list[Row], config: DataConfig, name: str) -> Columns:
    """The columns that the settings name, the others by what they are usually called.

    Raises:
        BertScopeError: a named column is missing, or none is like what is needed.
    """
    first = next((row.values for row in rows if row.values), None)
    if first is None:
        why = f" The first: {rows[0].where}: {rows[0].why}" if rows else ""
        raise BertScopeError(f"{name} has no row that can be read.{why}")
    known = {column.lower(): column for column in first}
    for what in (config.text, config.pair, config.label):
        if what is not None and what not in first:
            raise BertScopeError(f"{name} has no column {what!r}; it has {', '.join(first)}.")

    def some(names) -> str | None:
        return next((known[n] for n in names if n in known), None)

    task = config.task
    if task == "auto":
        task = _task(config, first, some)
    if task == "tokens":
        text = config.text or some(WORDS)
        rest = [c for c in first if c != text and isinstance(first[c], (list, tuple))]
        label = config.label or some(TAGS) or (rest[-1] if rest else None)
        return _complete(Columns(task, text, None, label), name, first)
    if task == "question":
        return _complete(Columns(task, config.text or some(("question",)),
                                 config.pair or some(("context", "paragraph", "passage")),
                                 config.label or some(ANSWERS)), name, first)
    text, pair = config.text, config.pair
    if task == "pair":
        both = next(((known[a], known[b]) for a, b in PAIRS if a in known and b in known), (None,) * 2)
        text, pair = text or both[0], pair or both[1]
    text = text or some(TEXTS) or _longest(rows, first)
    label = config.label or some(n for n in LABELS if known.get(n) not in (text, pair)) \
        or _fewest(rows, [c for c in first if c not in (text, pair)])
    return _complete(Columns(task, text, pair, label), name, first)


def _task(config: DataConfig, first: dict, some) -> str:
    if isinstance(first.get(config.text or some(WORDS)), (list, tuple)):
        return "tokens"
    if some(("context", "paragraph")) and some(("question",)) and some(ANSWERS):
        return "question"
    known = {column.lower() for column in first}
    paired = any(a in known and b in known for a, b in PAIRS)
    return "pair" if config.pair or (paired and not config.text) else "sentence"


def _complete(found: Columns, name: str, first: dict) -> Columns:
    needed = {"data.text": found.text, "data.label": found.label}
    if found.task in ("pair", "question"):
        needed["data.pair"] = found.pair
    for setting, column in needed.items():
        if column is None:
            raise BertScopeError(f"{name}: no column looks like what task {found.task} needs for "
                                 f"{setting}; it has {', '.join(map(str, first))}. Name it.")
    return found


def _longest(rows: list[Row], first: dict) -> str | None:
    """The column of strings that is longest."""
    sizes = {column: sum(len(str(row.values.get(column) or "")) for row in rows[:200] if row.values)
             for column, value in first.items() if isinstance(value, str)}
    return max(sizes, key=sizes.get, default=None)


def _fewest(rows: list[Row], columns: list[str]) -> str | None:
    """The column with the fewest different values, more than one."""
    kinds = {column: len({str(row.values.get(column)) for row in rows[:2000] if row.values})
             for column in columns}
    return min((c for c in kinds if kinds[c] > 1), key=kinds.get, default=None)


# -- one row ----------------------------------------------------------------------------------


def examples(rows: list[Row], columns: Columns, bad: Bad, name: str) -> list:
    """The examples of one file; what cannot be used goes to ``bad``.

    Raises:
        BertScopeError: the file lacks a column.
    """
    make = {"tokens": _tagged, "question": _question}.get(columns.task, _labelled)
    found = []
    for row in rows:
        if row.values is None:
            bad.add(row.where, row.why)
            continue
        for column in (columns.text, columns.pair, columns.label):
            if column is not None and column not in row.values:
                if row is rows[0]:
                    raise BertScopeError(f"{name} has no column {column!r}; it has "
                                         f"{', '.join(map(str, row.values))}.")
                bad.add(row.where, f"{column!r} is missing.")
                break
        else:
            made = make(row, columns)
            if isinstance(made, str):
                bad.add(row.where, made)
            else:
                found.append(made)
    return found


def _labelled(row: Row, columns: Columns) -> Labelled | str:
    text, label = row.values[columns.text], row.values[columns.label]
    second = row.values[columns.pair] if columns.pair else None
    for column, value in ((columns.text, text), (columns.pair, second)):
        if column and (not isinstance(value, str) or not value.strip()):
            return f"the {column} is empty." if value in (None, "") or isinstance(value, str) else \
                f"the {column} is not text."
    if isinstance(label, float) and math.isnan(label) or label is None or not str(label).strip():
        return f"the {columns.label} is missing."
    if isinstance(label, (list, dict)):
        return f"the {columns.label} is not one label."
    return Labelled(text.strip(), str(label).strip(), second.strip() if columns.pair else None,
                    row.where)


def _tagged(row: Row, columns: Columns) -> Tagged | str:
    words, tags = (_items(row.values[c]) for c in (columns.text, columns.label))
    if not words:
        return "it has no words."
    if len(words) != len(tags):
        return f"it has {len(words)} words but {len(tags)} tags."
    if any(not word.strip() for word in words):
        return f"word {next(i for i, w in enumerate(words, 1) if not w.strip())} is empty."
    if any(not tag for tag in tags):
        return f"word {tags.index('') + 1} ({words[tags.index('')]!r}) has no tag."
    return Tagged(words, tags, row.where)


def _items(value) -> tuple[str, ...]:
    """A list, or a string with spaces between."""
    if isinstance(value, str):
        value = value.split()
    elif not isinstance(value, (list, tuple)):
        value = ()
    return tuple("" if item is None else str(item) for item in value)


def _question(row: Row, columns: Columns) -> Question | str:
    question, context = row.values[columns.text], row.values[columns.pair]
    for column, value in ((columns.text, question), (columns.pair, context)):
        if not isinstance(value, str) or not value.strip():
            return f"the {column} is empty."
    answers = _answers(row.values[columns.label], row.values.get("answer_start"))
    if answers is None:
        return f"the {columns.label} are not answers with their places."
    for answer in answers:
        if context[answer.start:answer.start + len(answer.text)] != answer.text:
            return f"its answer {_short(answer.text)!r} does not stand at character {answer.start}."
    return Question(question, context, answers, str(row.values.get("id") or row.where), row.where,
                    context)


def _answers(value, start=None) -> tuple[Answer, ...] | None:
    """SQuAD's list of objects, the data sets library's object of lists, or text and place.

    Answers of no characters are none: SQuAD 2.0 has them where there is no answer.
    """
    if isinstance(value, str) and value[:1] in "[{":
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, dict) and isinstance(value.get("text"), (list, tuple)):
        starts = value.get("answer_start", [])
        if not isinstance(starts, (list, tuple)):
            return None
        value = [{"text": t, "answer_start": s}
                 for t, s in zip(value["text"], starts, strict=False)]
    elif value in (None, ""):
        value = []
    elif isinstance(value, (str, dict)):
        value = [value if isinstance(value, dict) else {"text": value, "answer_start": start}]
    try:
        made = [Answer(str(a["text"]), int(a["answer_start"])) for a in value]
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    if any(answer.start < 0 for answer in made):
        return None
    return tuple(dict.fromkeys(a for a in made if a.text))


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def number(label: str) -> float | None:
    """A label as a finite number; None where it is none."""
    try:
        value = float(label)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def as_numbers(found: list[Labelled], wish: str) -> bool:
    """Whether the labels are numbers to be predicted rather than names of classes."""
    values = [number(example.label) for example in found]
    if wish != "auto" or None in values:
        return wish == "numbers"
    return any(value % 1 for value in values) or len(Counter(values)) > 100
