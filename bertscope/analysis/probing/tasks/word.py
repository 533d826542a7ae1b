"""Labels of single words and of named entities, read from a treebank's columns.

``upos``, ``xpos``, ``deprel`` are columns of CoNLL-U, ``feat:Number`` is the value of a
morphological feature over the words that carry it; ``@`` restricts either to words of one part of
speech: ``feat:Number@NOUN``. Lemmas are no task: they are the word itself.

``head-distance``: how far away a word's governor is, and on which side. ``ner``: the tag of each
word as in the column MISC (``B-PER``, ``O``). ``entity``: the type of a whole name.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from bertscope.analysis.probing.columns import is_tag
from bertscope.analysis.probing.items import Items
from bertscope.analysis.probing.tasks.common import ENOUGH, Row, TaskInfo, made, title
from bertscope.corpus.conllu import Sentence, Word
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from bertscope.analysis.probing.gold import Gold

COLUMNS = ("upos", "xpos", "deprel")
#: Lower ends of the ranges of distances.
FAR = (1, 2, 3, 5, 10)
#: Keys of MISC that hold an entity's tag; under the last one also other things are kept.
ENTITY_KEYS = ("NER", "NE", "BIO", "Entity")

_NAME = re.compile(r"(upos|xpos|deprel|feat:[^@\s]+)(?:@(\S+))?")


def labeller(task: str) -> Callable[[Word], str]:
    """The function from a word to its label; ``""`` for words that the task leaves out.

    Raises:
        BertScopeError: there is no such task of a word's columns.
    """
    match = _NAME.fullmatch(task)
    if not match:
        raise BertScopeError(f"There is no task called {task!r}; choose upos, xpos, deprel or "
                             "feat:NAME, for example feat:Number or feat:Number@NOUN.")
    column, upos = match.groups()
    feature = column.removeprefix("feat:") if column.startswith("feat:") else None

    def label(word: Word) -> str:
        if upos and word.upos != upos:
            return ""
        return word.feats.get(feature, "") if feature else getattr(word, column)

    return label


def is_column(task: str) -> bool:
    """Whether it is a task for :func:`labeller`."""
    return _NAME.fullmatch(task) is not None


def columns(gold: Gold, task: str, seed: int = 0) -> Items:
    """The items of a column or feature. (No seed changes them.)

    Raises:
        BertScopeError: no word has a label, or there are too many labels.
    """
    label = labeller(task)
    rows = [Row(number, ((place, place + 1),), found, word.form)
            for number, sentence in enumerate(gold.sentences)
            for place, word in enumerate(sentence.words) if (found := label(word))]
    return made(gold, task, "word", rows)


def head_distance(gold: Gold, task: str = "head-distance", seed: int = 0) -> Items:
    """Side and distance in words of each word's governor; the root, which has none, is left out."""
    rows = [Row(number, ((place, place + 1),), _far(word.head - 1 - place), word.form)
            for number, sentence in enumerate(gold.sentences)
            for place, word in enumerate(sentence.words)
            if word.head > 0 and word.head != place + 1]
    return made(gold, task, "word", rows)


def _far(offset: int) -> str:
    side = "left" if offset < 0 else "right"
    low = max(start for start in FAR if start <= abs(offset))
    if low == FAR[-1]:
        return f"{side} {low}+"
    high = FAR[FAR.index(low) + 1] - 1
    return f"{side} {low}" if low == high else f"{side} {low}–{high}"


def entity_tags(gold: Gold, task: str = "ner", seed: int = 0) -> Items:
    """The entity tag of each word, ``O`` where it has none.

    Raises:
        BertScopeError: MISC has no entity tags.
    """
    key = entity_key(gold.sentences)
    rows = [Row(number, ((place, place + 1),), tag, sentence.words[place].form)
            for number, sentence in enumerate(gold.sentences if key else ())
            for place, tag in enumerate(_tags(sentence, key))]
    return made(gold, task, "word", rows, column=f"MISC {key}")


def entity_types(gold: Gold, task: str = "entity", seed: int = 0) -> Items:
    """The type of each named entity over the span of all its words (Tenney et al. 2019a: NER)."""
    key = entity_key(gold.sentences)
    rows = [Row(number, ((start, end),), kind,
                " ".join(word.form for word in sentence.words[start:end]))
            for number, sentence in enumerate(gold.sentences if key else ())
            for start, end, kind in mentions(_tags(sentence, key))]
    return made(gold, task, "word", rows, column=f"MISC {key}")


def entity_key(sentences: Iterable[Sentence]) -> str | None:
    """The key of MISC under which all that is found looks like an entity's tag."""
    values: dict[str, set[str]] = defaultdict(set)
    for sentence in sentences:
        for word in sentence.words:
            for key in ENTITY_KEYS:
                if key in word.misc:
                    values[key].add(word.misc[key])
    return next((key for key in ENTITY_KEYS if values[key] - {"O"}
                 and all(map(is_tag, values[key]))), None)


def _tags(sentence: Sentence, key: str) -> list[str]:
    return [word.misc.get(key, "O") for word in sentence.words]


def mentions(tags: list[str]) -> Iterator[tuple[int, int, str]]:
    """``(start, end, type)`` of each entity of BIO (also BIOES, BILOU) tags. An ``I-`` without its
    beginning, or of another type than the one before, begins a new entity, as in conlleval."""
    start, kind = 0, ""
    for place, tag in enumerate([*tags, "O"]):
        mark, _, this = tag.partition("-")
        if kind and (mark in "OBSU" or this != kind):
            yield start, place, kind
            kind = ""
        if mark != "O" and not kind:
            start, kind = place, this


def offers(sentences: Iterable[Sentence], enough: int = ENOUGH) -> list[TaskInfo]:
    """Columns and features with two or more labels on at least ``enough`` words each, columns first.

    A feature that several parts of speech carry is offered once for all of them, and once for the
    part of speech that carries it most often.
    """
    counts: dict[str, Counter] = defaultdict(Counter)
    carriers: dict[str, Counter] = defaultdict(Counter)
    for sentence in sentences:
        for word in sentence.words:
            for column in COLUMNS:
                counts[column][getattr(word, column)] += 1
            for feature, value in word.feats.items():
                counts[f"feat:{feature}"][value] += 1
                counts[f"feat:{feature}@{word.upos}"][value] += 1
                carriers[f"feat:{feature}"][word.upos] += 1
    names = list(COLUMNS)
    for feature in sorted(carriers, key=lambda name: (-carriers[name].total(), name)):
        names.append(feature)
        upos = min(carriers[feature], key=lambda tag: (-carriers[feature][tag], tag))
        if len(carriers[feature]) > 1 and upos:
            names.append(f"{feature}@{upos}")
    return [TaskInfo(name, title(name), *_size(counts[name])) for name in names
            if _NAME.fullmatch(name) and _probed(counts[name], enough) >= 2]


def _size(counts: Counter) -> tuple[int, int]:
    labels = [label for label in counts if label]
    return len(labels), sum(counts[label] for label in labels)


def _probed(counts: Counter, enough: int) -> int:
    return sum(bool(label) and count >= enough for label, count in counts.items())
