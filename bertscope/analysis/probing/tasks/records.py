"""From the rows of a table to ``Items``: words out of characters, parts, sentences that occur twice."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertscope.analysis.probing.items import PARTS, Items
from bertscope.analysis.probing.tasks.common import check_labels
from bertscope.errors import BertScopeError

KINDS = ("sentence", "word", "pair")
#: Share of the texts in the validation part and in the test part, where no part is given.
SHARE = 0.1

_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Record:
    """One row. ``spans`` are characters of ``text``, or places of ``words`` where those are given;
    ``where`` names the file and the line."""

    where: str
    label: str
    text: str = ""
    words: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    part: str = ""
    document: str = ""
    type: str = ""


def table_items(records: Sequence[Record], task: str, seed: int = 0, unique: bool = False,
                **provenance) -> Items:
    """The rows as one task; its kind is that of the first row.

    Rows of the same text are items of one sentence. Where no row names its part, whole documents
    (else texts) are dealt out, 10 % each to validation and test, and a text that is then in several
    parts stays in the last one only. Where rows do name their parts, such texts stay everywhere, and
    the provenance says how many there are: ``sentences_in_two_parts``.

    Args:
        unique: leave texts of a later part out of the earlier ones in any case.

    Raises:
        BertScopeError: no row, rows of several kinds, too many labels, or a part is missing.
    """
    if not records:
        raise BertScopeError(f"There is no row in {task}.")
    kind = KINDS[len(records[0].spans)]
    for record in records:
        if len(record.spans) != len(records[0].spans):
            raise BertScopeError(f"{record.where}: every row should have as many spans as the first "
                                 f"one ({len(records[0].spans)}), not {len(record.spans)}.")
        if bool(record.part) != bool(records[0].part):
            raise BertScopeError(f"{record.where}: either every row names its part, or none does.")
    check_labels(Counter(record.label for record in records), task)
    parts, split = _parts(records, seed)
    keys = [(part, record.words or record.text)
            for part, record in zip(parts, records, strict=True)]
    shared = _shared(keys)
    unique = unique or parts != [record.part for record in records]
    kept = [place for place, (part, text) in enumerate(keys)
            if not unique or part == shared.get(text, part)]
    found = _items([records[i] for i in kept], [keys[i] for i in kept], kind, task)
    notes = {"rows_left_out" if unique else "sentences_in_two_parts":
             len(records) - len(kept) if unique else len(shared)} if shared else {}
    found = replace(found, provenance={"source": task, "split": split, **notes, **provenance})
    lacking = [part for part, places in found.where.items() if not len(places)]
    if lacking:
        raise BertScopeError(f"{task} has no row in its {lacking[0]} part.")
    if len(found.classes) < 2:
        raise BertScopeError(f"All training rows of {task} have the same label; there is nothing to "
                             "learn.")
    return found


def _parts(records: Sequence[Record], seed: int) -> tuple[list[str], str]:
    """A part for each row, and how it was found, in words."""
    given = [record.part for record in records]
    present = [part for part in PARTS if part in given]
    if len(present) == len(PARTS):
        return given, "parts as they are given"
    everything = list(range(len(records)))
    if len(present) < 2:
        parts = _dealt(records, everything, ("test", "validation"), seed)
        return [parts[place] for place in everything], (
            f"whole documents (else texts) dealt out 80:10:10 with seed {seed}")
    first, last = present
    rest = [place for place in everything if given[place] == first]
    parts = _dealt(records, rest, ("validation",), seed)
    return [parts.get(place, "test") for place in everything], (
        f"{last} is the test part, {first} is dealt out 90:10 with seed {seed}")


def _dealt(records: Sequence[Record], places: Sequence[int], parts: Sequence[str], seed: int,
           ) -> dict[int, str]:
    """The rows at ``places``: 10 % to each of ``parts``, the others to training.

    Rows of a document (else: of a text) stay together. A document that would be more than 20 % goes
    to training, unless there are no others.
    """
    groups: dict[object, list[int]] = defaultdict(list)
    for place in places:
        record = records[place]
        groups[record.document or (record.words or record.text,)].append(place)
    order = list(groups.values())
    random.Random(seed).shuffle(order)
    wanted = SHARE * len(places)
    order.sort(key=lambda group: len(group) > 2 * wanted)
    found = dict.fromkeys(places, "train")
    remaining = iter(order[:-1])
    for part in parts:
        taken = 0
        for group in remaining:
            found.update(dict.fromkeys(group, part))
            taken += len(group)
            if taken >= wanted:
                break
    return found


def _shared(keys: Sequence[tuple[str, object]]) -> dict[object, str]:
    """The last part of each text that is in several."""
    found: dict[object, set[str]] = defaultdict(set)
    for part, text in keys:
        found[text].add(part)
    return {text: max(parts, key=PARTS.index) for text, parts in found.items() if len(parts) > 1}


def _items(records: Sequence[Record], keys: Sequence[tuple[str, object]], kind: str, task: str,
           ) -> Items:
    number = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    sentences: list = [text for _, text in number]
    ends: list[np.ndarray | None] = [None] * len(sentences)
    if kind != "sentence":
        cuts: dict[tuple, set[int]] = defaultdict(set)
        for record, key in zip(records, keys, strict=True):
            cuts[key].update(edge for span in record.spans for edge in span)
        for key, place in number.items():
            if isinstance(key[1], str):
                pieces = _pieces(key[1], sorted(cuts[key]))
                sentences[place] = [key[1][start:end] for start, end in pieces]
                ends[place] = np.array(pieces, np.int64).reshape(-1, 2)
    spans = [tuple(_places(span, ends[number[key]], len(sentences[number[key]]), record)
                   for span in record.spans) for record, key in zip(records, keys, strict=True)]
    types = [record.type or " ".join(
        " ".join(sentences[number[key]][start:end]) for start, end in own)
        for record, key, own in zip(records, keys, spans, strict=True)]
    return Items(
        task=task, title=task, kind=kind,
        sentences=[text if isinstance(text, str) else list(text) for text in sentences],
        sentence=np.array([number[key] for key in keys], np.int64),
        spans=np.array(spans, np.int64), labels=[record.label for record in records],
        parts=[part for part, _ in keys], types=types,
        documents=[record.document for record in records])


def _pieces(text: str, cuts: Sequence[int]) -> list[tuple[int, int]]:
    """Words and punctuation marks, cut also where a span begins or ends."""
    found = []
    for match in _WORD.finditer(text):
        edges = [match.start(), *(cut for cut in cuts if match.start() < cut < match.end()),
                 match.end()]
        found += zip(edges, edges[1:])
    return found


def _places(span: tuple[int, int], ends: np.ndarray | None, count: int, record: Record,
            ) -> tuple[int, int]:
    """The words of a span, the end exclusive.

    Raises:
        BertScopeError: it is not in the text, or has no word in it.
    """
    start, end = span
    unit, count = ("words", count) if ends is None else ("characters", len(record.text))
    if 0 <= start < end <= count:
        if ends is None:
            return start, end
        inside = np.flatnonzero((ends[:, 0] >= start) & (ends[:, 1] <= end))
        if len(inside):
            return int(inside[0]), int(inside[-1]) + 1
    raise BertScopeError(f"{record.where}: the {unit} {start} to {end} are no span of its text.")
