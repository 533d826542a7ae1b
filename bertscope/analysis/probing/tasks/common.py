"""What the makers of tasks share: the shape of an offer, balance, bins, and the way to ``Items``."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bertscope.analysis.probing.items import PARTS, Items
from bertscope.corpus.conllu import Word
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from bertscope.analysis.probing.gold import Gold

#: A label counts as probed for the offers from so many items on.
ENOUGH = 10
#: More labels than this are refused: each needs a row of weights in every layer's classifier.
MOST_LABELS = 1000


#: What the tasks are called for people; columns and features: ``title``.
TITLES = {
    "upos": "Part of speech (UPOS)",
    "xpos": "Fine part of speech (XPOS)",
    "deprel": "Dependency relation",
    "head-distance": "Distance to the governor",
    "ner": "Named entity (tags)",
    "entity": "Type of a named entity",
    "pair:deprel": "Relation of a word to its governor",
    "pair:head": "Is the second word the governor of the first?",
    "pair:coref": "Do two mentions mean the same?",
    "sent:length": "Length of the sentence",
    "sent:word": "Which word is in the sentence?",
    "sent:depth": "Depth of the tree",
    "sent:tense": "Tense of the main clause",
    "sent:subject": "Number of the subject",
    "sent:object": "Number of the object",
    "sent:shift": "Were two neighbours swapped?",
    "sent:odd": "Was a noun or verb replaced?",
    "sent:coordination": "Were two clauses swapped?",
}
PLURALS = {"ADJ": "adjectives", "ADP": "adpositions", "ADV": "adverbs", "AUX": "auxiliaries",
           "DET": "determiners", "NOUN": "nouns", "NUM": "numerals", "PRON": "pronouns",
           "PROPN": "proper nouns", "VERB": "verbs"}


def title(task: str) -> str:
    """A task's name for people: ``feat:Number@NOUN`` -> ``Number of nouns``."""
    column, _, upos = task.partition("@")
    name = TITLES.get(column, column.removeprefix("feat:"))
    return f"{name} of {PLURALS.get(upos, f'{upos} words')}" if upos else name


@dataclass(frozen=True)
class TaskInfo:
    """A task that some data can serve: ``classes`` labels on ``words`` items of a ``kind``."""

    name: str
    title: str
    classes: int
    words: int
    kind: str = "word"


class Row(NamedTuple):
    """One item in the making: places of words by sentence, spans with the end exclusive."""

    sentence: int
    spans: tuple[tuple[int, int], ...]
    label: str
    type: str = ""


def made(gold: Gold, task: str, kind: str, rows: Sequence[Row],
         sentences: Sequence[Sequence[str]] | None = None, **provenance) -> Items:
    """``rows`` as ``Items``, in the order of the sentences.

    Args:
        sentences: where they are not the gold's own words, one for each of the gold's sentences.

    Raises:
        BertScopeError: there is no row, or there are too many labels.
    """
    if not rows:
        raise BertScopeError(f"{gold.name} has nothing for the task {task}: what it needs is not "
                             "annotated there.")
    check_labels(Counter(row.label for row in rows), f"The task {task}")
    parts, documents = gold.parts, gold.documents
    return Items(
        task=task, title=title(task), kind=kind, sentences=gold.words if sentences is None else sentences,
        sentence=np.array([row.sentence for row in rows], np.int64),
        spans=np.array([row.spans for row in rows], np.int64),
        labels=[row.label for row in rows], parts=[parts[row.sentence] for row in rows],
        types=[row.type for row in rows], documents=[documents[row.sentence] for row in rows],
        provenance={"source": gold.name, "split": gold.note, "fingerprint": gold.fingerprint,
                    **gold.notices, **provenance})


def check_labels(counts: Counter, where: str) -> None:
    """Refuse what no classifier should be trained on.

    Raises:
        BertScopeError: more than ``MOST_LABELS`` labels.
    """
    if len(counts) > MOST_LABELS:
        raise BertScopeError(f"{where} has {len(counts):,} different labels; at most "
                             f"{MOST_LABELS:,} can be told apart.")


def balanced(items: Items, seed: int = 0, most: int | None = None) -> Items:
    """As many items of each label, drawn at random in each part.

    A label that a part lacks is left out of it alone, not of the balance of the others.

    Args:
        most: so many of each label, where there are; by default as many as the rarest has.
    """
    kept: list[int] = []
    for part in PARTS:
        groups: dict[str, list[int]] = defaultdict(list)
        for place in items.where[part].tolist():
            groups[items.labels[place]].append(place)
        size = most or min(map(len, groups.values()), default=0)
        rng = random.Random(f"{seed}-{items.task}-{part}")
        for label in sorted(groups):
            kept += rng.sample(groups[label], min(size, len(groups[label])))
    return items.select(sorted(kept))


def frequent(items: Items, enough: int) -> Items:
    """Without the labels of which training has fewer than ``enough``."""
    counts = items.label_counts("train")
    return items.select(lambda place: counts[items.labels[place]] >= enough)


def key(word: Word) -> tuple[str, tuple]:
    """A word by its form, lower-cased, and by the tags and features that another would have to share
    to stand in its place."""
    return word.form.lower(), (word.upos, word.xpos, tuple(sorted(word.feats.items())))


def cased(form: str, like: str) -> str:
    """``form`` with capitals where ``like`` has them."""
    return form.upper() if like.isupper() and len(like) > 1 else \
        form.capitalize() if like[:1].isupper() else form


class Bins:
    """Up to ``most`` ranges of whole numbers with about equally many training values in each."""

    def __init__(self, values: Sequence[int], most: int):
        asked = np.quantile(values, np.linspace(0, 1, most + 1)[1:-1], method="lower").astype(int)
        last = int(max(values))
        ends = sorted({*asked.tolist()} - {last})
        #: The first value of each bin after the first one.
        self.starts = [end + 1 for end in ends]
        bounds = zip([None, *self.starts], [*ends, None], strict=True)
        self.names = [_range(low, high) for low, high in bounds]

    def __call__(self, value: int) -> str:
        return self.names[bisect_right(self.starts, value)]


def _range(low: int | None, high: int | None) -> str:
    if low is None:
        return "all" if high is None else f"up to {high}"
    return f"{low} and more" if high is None else f"{low}–{high}" if low < high else f"{low}"


def types_apart(items: Items, seed: int = 0, shares: tuple[float, ...] = (0.6, 0.15, 0.25)) -> Items:
    """No word type in two parts: of every part only the items whose type was dealt to it.

    What a probe reads from new words cannot be what it remembers of them (SentEval does the same for
    tense and number, Conneau et al. 2018, section 2). Types, without regard to case, are dealt out
    in the order of their frequency, so that each part gets its share of frequent and of rare ones.
    For a pair the type is that of the two words together.

    Raises:
        BertScopeError: the items have no types, or a part would be empty.
    """
    counts = Counter(name.lower() for name in items.types)
    if not counts or set(counts) == {""}:
        raise BertScopeError(f"The items of the task {items.task} have no word that stands for them, "
                             "so word types cannot be kept apart.")
    order = sorted(counts, key=lambda name: (-counts[name], name))
    rng, block, owner = random.Random(f"{seed}-types"), 20, {}
    deck = [part for part, share in zip(PARTS, shares, strict=True)
            for _ in range(round(share * block))]
    for start in range(0, len(order), block):
        dealt = rng.sample(deck, len(deck))
        owner.update(zip(order[start:start + block], dealt))
    kept = items.select(lambda place: owner[items.types[place].lower()] == items.parts[place])
    if not all(len(kept.where[part]) for part in PARTS):
        raise BertScopeError(f"The task {items.task} has too few word types to keep them apart "
                             "between training, validation and test.")
    note = "no word type (without regard to case) is in two parts"
    return replace(kept, provenance={**items.provenance, "types": note})
