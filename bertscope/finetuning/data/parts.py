"""Which examples are for training, validation and the test: as given, else by a seed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bertscope.corpus.files import readable
from bertscope.errors import BertScopeError
from bertscope.finetuning.data.examples import Example, Labelled
from bertscope.finetuning.data.rows import READERS

PARTS = ("train", "valid", "test")
_NAMES = {"train": re.compile("train"), "test": re.compile("test"),
          "valid": re.compile("dev|valid|(?<![a-z])val(?![a-z])")}


def find_parts(path: Path) -> dict[str, list[Path]]:
    """The files of each part of a folder by their names; of a single file only ``train``.

    Raises:
        BertScopeError: there is nothing, or several files whose names tell no part.
    """
    with readable(path):
        if path.is_file():
            return {"train": [path]}
        if not path.is_dir():
            raise BertScopeError(f"{path} does not exist.")
        files = sorted(f for f in path.iterdir() if f.is_file() and not f.name.startswith("."))
    named: dict[str, list[Path]] = {}
    for file in files:
        part = part_of(file.stem if file.suffix.lower() in READERS else file.name)
        if part and (file.suffix.lower() in READERS or _conll_like(file)):
            named.setdefault(part, []).append(file)
    if named:
        return named
    known = [f for f in files if f.suffix.lower() in READERS]
    if {f.suffix.lower() for f in known} == {".pos", ".neg"} or len(known) == 1:
        return {"train": known}
    raise BertScopeError(
        f"{path} has no file whose name tells its part: call them train, dev and test, or name one "
        "file." if known else
        f"{path} has no file of examples in it; files that are read end in {', '.join(READERS)}.")


def part_of(name: str) -> str | None:
    """``train``, ``valid`` or ``test``, if the name says so."""
    return next((part for part, known in _NAMES.items() if known.search(name.lower())), None)


def _conll_like(file: Path) -> bool:
    return file.suffix.lower() not in (".md", ".pdf", ".gz", ".zip", ".py", ".html")


def groups(examples: Sequence[Example]) -> list[str]:
    """What may not be divided: a group, else all that reads the same."""
    return [example.group or example.key for example in examples]


def divide(examples: list[Example], share: float, seed: int) -> tuple[list[Example], list[Example]]:
    """(the rest, about ``share`` of the examples), by label; groups stay whole, order is kept."""
    strata: dict[str, dict[str, None]] = defaultdict(dict)
    names, at_home = groups(examples), {}
    for name, example in zip(names, examples):
        stratum = at_home.setdefault(name, _stratum(example))
        strata[stratum][name] = None
    taken: set[str] = set()
    rng = np.random.default_rng([seed, 1])
    for stratum in sorted(strata):
        members = list(strata[stratum])
        order = rng.permutation(len(members))
        taken.update(members[i] for i in order[:round(share * len(members))])
    if not taken and len(set(names)) > 1:  # a tiny collection: one is better than none
        taken = {names[int(rng.integers(len(names)))]}
    rest = [e for name, e in zip(names, examples) if name not in taken]
    return rest, [e for name, e in zip(names, examples) if name in taken]


def draw(examples: list[Example], most: int | None, seed: int) -> list[Example]:
    """At most so many, by label in proportion; a smaller number is part of a larger one's."""
    if most is None or most >= len(examples):
        return list(examples)
    strata: dict[str, list[int]] = defaultdict(list)
    for place, example in enumerate(examples):
        strata[_stratum(example)].append(place)
    rng = np.random.default_rng([seed, 2])
    place_of = np.empty(len(examples))
    for stratum in sorted(strata):
        members = rng.permutation(strata[stratum])
        place_of[members] = (np.arange(len(members)) + rng.random()) / len(members)
    return [examples[i] for i in np.sort(np.argsort(place_of, kind="stable")[:most])]


def _stratum(example: Example) -> str:
    return example.label if isinstance(example, Labelled) and isinstance(example.label, str) else ""


def shared(parts: dict[str, list[Example]]) -> list[str]:
    """A note for each part with examples that also stand in an earlier one."""
    seen: dict[str, str] = {}
    notes = []
    for part in PARTS:
        own = parts.get(part, [])
        twice = [e for e in own if seen.get(e.key, part) != part]
        for example in own:
            seen.setdefault(example.key, part)
        if twice:
            notes.append(f"Of the {len(own):,} {part} examples {len(twice):,} also stand in another "
                         f"part. The first: {twice[0].where}.")
    return notes
