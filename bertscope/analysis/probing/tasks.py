"""What a probe predicts: a label for single words, read from the gold annotation.

A task has a short name: ``upos``, ``xpos``, ``deprel`` (columns of CoNLL-U), or ``feat:Number`` for
the value of a morphological feature over the words that carry it. ``@`` restricts a task to words
of one part of speech: ``feat:Number@NOUN``. Lemmas are no task: they are the word itself.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bertscope.corpus.conllu import Sentence, Word
from bertscope.errors import BertScopeError

COLUMNS = {"upos": "Part of speech (UPOS)", "xpos": "Fine part of speech (XPOS)",
           "deprel": "Dependency relation"}
PLURALS = {"ADJ": "adjectives", "ADP": "adpositions", "ADV": "adverbs", "AUX": "auxiliaries",
           "DET": "determiners", "NOUN": "nouns", "NUM": "numerals", "PRON": "pronouns",
           "PROPN": "proper nouns", "VERB": "verbs"}
#: A label counts as probed for :func:`available_tasks` from so many words on.
ENOUGH = 10

_NAME = re.compile(r"(upos|xpos|deprel|feat:[^@\s]+)(?:@(\S+))?")


@dataclass(frozen=True)
class TaskInfo:
    """A task that some sentences can serve: ``classes`` labels on ``words`` words."""

    name: str
    title: str
    classes: int
    words: int


def labeller(task: str) -> Callable[[Word], str]:
    """The function from a word to its label; ``""`` for words that the task leaves out.

    Raises:
        BertScopeError: there is no such task.
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


def title(task: str) -> str:
    """A task's name for people: ``feat:Number@NOUN`` -> ``Number of nouns``."""
    column, _, upos = task.partition("@")
    name = COLUMNS.get(column, column.removeprefix("feat:"))
    return f"{name} of {PLURALS.get(upos, f'{upos} words')}" if upos else name


def available_tasks(sentences: Iterable[Sentence], enough: int = ENOUGH) -> list[TaskInfo]:
    """Tasks with two or more labels on at least ``enough`` words each, columns before features.

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
