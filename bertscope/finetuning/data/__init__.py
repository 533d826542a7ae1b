"""Examples from files, folders, the Hugging Face hub or miniworld, checked and in three parts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from bertscope.corpus.files import readable
from bertscope.errors import BertScopeError
from bertscope.finetuning.config import DataConfig
from bertscope.finetuning.data.columns import Bad, as_numbers, examples, guess, number
from bertscope.finetuning.data.examples import Answer, Dataset, Labelled, Question, Tagged
from bertscope.finetuning.data.parts import PARTS, divide, draw, find_parts, shared
from bertscope.finetuning.data.rows import Row, read_rows
from bertscope.finetuning.metrics import how_judged

#: More labels are none: a column of texts or numbers was taken for them.
MOST_LABELS = 1000

__all__ = ["Answer", "Dataset", "Labelled", "Question", "Tagged", "read"]


def read(config: DataConfig, seed: int = 0) -> Dataset:
    """The examples that the settings name.

    Args:
        seed: decides which are drawn where ``most_train`` is given.

    Raises:
        BertScopeError: they cannot be read, or some cannot be used and are not to be skipped; the
            sentence names file and line.
    """
    notes: list[str] = []
    if config.source == "miniworld":
        from bertscope.finetuning.data.miniworld import make

        task = "sentence" if config.task == "auto" else config.task
        name, found = f"miniworld, {task}", make(task)
    else:
        name, (task, found) = config.title, _from_files(config, notes)
    notes += _divide(found, config)
    numbers, labels = False, ()
    if task in ("sentence", "pair"):
        numbers = as_numbers(found["train"], config.labels)
        if numbers:
            notes += _numbers(found, config.skip_bad)
        else:
            labels = _sorted({e.label for e in found["train"]})
    elif task == "tokens":
        labels = _sorted({tag for e in found["train"] for tag in e.tags})
        notes.append(how_judged(labels))
    if len(labels) > MOST_LABELS:
        raise BertScopeError(f"{name} has {len(labels):,} different labels, such as {labels[0]!r} and "
                             f"{labels[1]!r}: name the column of the label (data.label, --label).")
    if labels:
        notes += _known_labels(found, labels, config.skip_bad)
        if len(labels) < 2:
            raise BertScopeError(f"All training examples of {name} have the label {labels[0]!r}: "
                                 "there is nothing to tell apart.")
    for part in ("train", "valid"):
        if not found[part]:
            raise BertScopeError(f"{name} has no examples for the {part} part.")
    notes += shared(found)
    found["train"] = draw(found["train"], config.most_train, seed)
    found["valid"] = draw(found["valid"], config.most_valid, config.split_seed)
    found["test"] = draw(found["test"], config.most_test, config.split_seed)
    return Dataset(name, task, found["train"], found["valid"], found["test"], labels, tuple(notes))


# -- files ------------------------------------------------------------------------------------


def _from_files(config: DataConfig, notes: list[str]) -> tuple[str, dict[str, list]]:
    rows = _rows(config)
    if "train" not in rows:
        if "valid" not in rows:
            raise BertScopeError(f"{config.title} has a test part only: there is nothing to train "
                                 "on.")
        rows["train"] = rows.pop("valid")
        notes.append("There is no train part: dev is for training, as in RTE's challenges.")
    columns = guess(rows["train"], config, config.title)
    notes.append(str(columns))
    if rows.get("test") and columns.task != "question" and all(
            row.values and row.values.get(columns.label, "?") in (None, "") for row in rows["test"]):
        del rows["test"]
        notes.append("The test part has no labels, and is left out.")
    bad, found = Bad(), {}
    for part in PARTS:
        if part in rows:
            found[part] = examples(rows[part], columns, bad, f"The {part} part of {config.title}")
    notes += bad.settle(config.skip_bad)
    return columns.task, found


def _rows(config: DataConfig) -> dict[str, list[Row]]:
    if config.source.startswith("hf:"):
        from bertscope.finetuning.data.hub import hub_rows

        rows = hub_rows(config.source.removeprefix("hf:"))
    else:
        rows = {part: [row for file in files for row in read_rows(file, config.header)]
                for part, files in find_parts(_path(config.source)).items()}
    for part in ("valid", "test"):
        if (own := getattr(config, part)) is not None:
            path = _path(own)
            with readable(own):
                there = path.is_file()
            if not there:
                raise BertScopeError(f"The file of the {part} part, {own}, does not exist.")
            rows[part] = read_rows(path, config.header)
    return rows


def _path(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:  # ~nobody
        raise BertScopeError(f"{name} does not exist.") from None


# -- parts ------------------------------------------------------------------------------------


def _divide(found: dict[str, list], config: DataConfig) -> list[str]:
    """Make the parts that are missing."""
    notes, only = [], set(found) == {"train"}
    if only and config.test_share:
        found["train"], found["test"] = divide(found["train"], config.test_share, config.split_seed)
        notes.append(f"The test part is {config.test_share:.0%} of the training part, by seed "
                     f"{config.split_seed}.")
    if "valid" not in found:
        found["train"], found["valid"] = divide(found["train"], config.valid_share,
                                                config.split_seed)
        notes.append(f"The validation part is {config.valid_share:.0%} of the training part, by "
                     f"seed {config.split_seed}.")
    if not found.setdefault("test", []):
        notes.append("There is no test part.")
    return notes


def _known_labels(found: dict[str, list], labels: tuple[str, ...], skip: bool) -> list[str]:
    """Drop, or refuse, what has a label that the training part has not."""
    bad, known = Bad(), set(labels)
    for part in ("valid", "test"):
        kept = []
        for example in found[part]:
            tags = (example.label,) if isinstance(example, Labelled) else example.tags
            strange = next((tag for tag in tags if tag not in known), None)
            if strange is None:
                kept.append(example)
            else:
                bad.add(example.where, f"the label {strange!r} does not occur in the training part.")
        found[part] = kept
    return bad.settle(skip)


def _sorted(labels: set[str]) -> tuple[str, ...]:
    """By number where all are numbers."""
    if all(re.fullmatch(r"-?\d{1,100}", label) for label in labels):
        return tuple(sorted(labels, key=int))
    return tuple(sorted(labels))


def _numbers(found: dict[str, list], skip: bool) -> list[str]:
    """Turn the labels into numbers; drop, or refuse, what has none."""
    bad = Bad()
    for part, own in found.items():
        found[part] = kept = []
        for example in own:
            if (value := number(example.label)) is None:
                bad.add(example.where, f"the label {example.label!r} is not a number.")
            else:
                kept.append(replace(example, label=value))
    return bad.settle(skip)
