"""The sentences of miniworld, and how their patterns become skeletons with heads and relations.

A pattern is a row of items. A lower-case item is the word itself (a verb's lemma is inflected),
an upper-case item is a slot that the derivation fills, or a phrase of ``PHRASES``; NAME is the hero
by name, HERO by pronoun. After an item:

    /inf /part /ing     that form of the verb; without it the verb is finite and agrees
    /rel                finite, in the present where the document tells of the future
    /conj               finite, but without a second "will"
    *                   the head of the pattern
    :relation           its relation to the head; ``:relation@ITEM`` to another item

Determiners, prepositions and attributes need no relation: they belong to the next nominal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from bertscope.corpus.miniworld.lexicon import (
    FUTURE, LITERALS, NOUN_SLOTS, PAST, PLUR, PREPOSITION_SLOTS,
    PRESENT, SING, VERB_SLOTS)

MIN_WORDS, MAX_WORDS = 5, 14

#: The event script: step, fewest and most sentences of it, and its weighted patterns.
SCRIPT = (
    ("arrive", 1, 1, (
        (4, "TIME:obl:unmarked , NAME:nsubj MOVE* to the PLACE:obl ."),
        (2, "NAME:nsubj MOVE* to the PLACE:obl TIME:obl:unmarked ."),
        (3, "TIME:obl:unmarked , NAME:nsubj VISIT* the PLACE:obj with HIS FRIEND:obl ."),
        (2, "TIME:obl:unmarked , NAME:nsubj be:aux WORK/ing* AT the PLACE:obl ."),
    )),
    ("meet", 1, 1, (
        (3, "NEWROLE:nsubj be:aux WORK/ing* NEAR PARTS:obl ."),
        (3, "HERO:nsubj MEET* NEWROLE:obj NEAR PARTS:obl ."),
        (1, "there:expl be* NEWROLE:nsubj AT the PLACE:obl ."),
    )),
    ("find", 1, 1, (
        (3, "there:expl be* SOME LOOK THING:nsubj NEAR PARTS:obl ."),
        (3, "HERO:nsubj SEE* SOME LOOK THING:obj NEAR PARTS:obl ."),
        (2, "HELPER:nsubj HAVE* SOME LOOK THING:obj ."),
    )),
    ("describe", 1, 2, (
        (3, "SUBJECT:nsubj be:cop VERY QUALITY* ."),
        (2, "HERO:nsubj LIKE* OBJECT:obj because:mark@QUALITY IT:nsubj@QUALITY "
            "be:cop@QUALITY QUALITY:advcl ."),
        (1, "SUBJECT:nsubj belong* to HELPER:obl ."),
        (3, "DEF PART:nsubj NEAR DEF THING:nmod@PART be:cop VERY QUALITY* ."),
        (2, "HELPER:nsubj OFTEN:advmod DEED* OBJECT:obj in the DAYTIME:obl ."),
    )),
    ("problem", 1, 2, (
        (4, "but:cc SUBJECT:nsubj be:cop PROBLEM* ."),
        (3, "suddenly:advmod , NAME:nsubj LEARN* that/mark:mark@PROBLEM SUBJECT:nsubj@PROBLEM "
            "be/rel:cop@PROBLEM PROBLEM:ccomp ."),
        (2, "HERO:nsubj be:cop VERY SAD* because:mark@PROBLEM FOCUS:nsubj@PROBLEM "
            "be:cop@PROBLEM PROBLEM:advcl ."),
        (1, "why:advmod be:cop FOCUS:nsubj so:advmod PROBLEM* ?"),
    )),
    ("act", 2, 4, (
        (3, "CONNECTIVE HERO:nsubj DEED* OBJECT:obj TOOLED ."),
        (2, "CONNECTIVE HERO:nsubj ASK* HELPER:obj for A TOOL:obl ."),
        (2, "CONNECTIVE HELPER:nsubj BRING* A TOOL:obj and:cc@HELP HELP/conj:conj "
            "HIM:obj@HELP ."),
        (2, "CONNECTIVE FOCUS:nsubj:pass be:aux:pass ADVERB:advmod DEED/part* by "
            "HELPER:obl:agent ."),
        (2, "CONNECTIVE HERO:nsubj WANT* to/part:mark@DEED DEED/inf:xcomp OBJECT:obj@DEED ."),
        (2, "CONNECTIVE HELPER:nsubj CARRY* OBJECT:obj to PARTS:obl ."),
        (1, "CONNECTIVE HERO:nsubj WATCH* HELPER:obj ADVERB:advmod ."),
        (2, "CONNECTIVE HELPER:nsubj ADVERB:advmod DEED* OBJECT:obj ."),
    )),
    ("result", 1, 1, (
        (4, "FINALLY:advmod , SUBJECT:nsubj be:cop REMEDY* ."),
        (1, "SUBJECT:nsubj be:cop REMEDY* again:advmod ."),
        (3, "NAME:nsubj LEARN* that/mark:mark@REMEDY SUBJECT:nsubj@REMEDY be/rel:cop@REMEDY "
            "REMEDY:ccomp ."),
        (1, "how:advmod REMEDY* FOCUS:nsubj be:cop !"),
    )),
    ("close", 1, 1, (
        (3, "NAME:nsubj and:cc@HELPER HELPER:conj@NAME be:cop VERY HAPPY* ."),
        (2, "HELPER:nsubj SMILE* at HIM:obl and:cc@HAPPY be/conj:cop@HAPPY HAPPY:conj ."),
        (2, "NAME:nsubj THANK* HELPER:obj and:cc@SMILE SMILE/conj:conj ."),
    )),
    ("home", 0, 1, (
        (2, "in the NIGHT:obl , NAME:nsubj MOVE* home:advmod ."),
        (2, "in the NIGHT:obl , THEY:nsubj leave* the PLACE:obj together:advmod ."),
        (2, "in the NIGHT:obl , NAME:nsubj REST* at home/noun:obl ."),
    )),
)

#: Phrases by name. A third column names the tense, or ``given``: only for what was just spoken of.
PHRASES: dict[str, tuple] = {
    "TIME": (
        (3, "yesterday*", PAST), (2, "one:nummod DAYTIME*", PAST),
        (3, "today*", PRESENT), (2, "this:det DAYTIME*", PRESENT),
        (3, "tomorrow*", FUTURE), (2, "next/adj:amod DAYTIME*", FUTURE),
    ),
    "FOCUS": ((5, "DEF THING*"), (2, "DEF LOOK THING*"), (4, "IT*", "given")),
    "OBJECT": ((5, "DEF THING*"), (2, "DEF LOOK THING*"), (4, "THEM*", "given")),
    "SUBJECT": (
        (3, "DEF THING*"), (2, "DEF LOOK THING*"), (3, "IT*", "given"),
        (5, "DEF THING* NEAR PARTS:nmod"),
        (3, "DEF THING* that/pron:obj@DEED the ROLE:nsubj@DEED DEED/rel:acl:relcl"),
        (2, "DEF THING* that/pron:nsubj@PARTS be/rel:cop@PARTS NEAR PARTS:acl:relcl"),
    ),
    "PARTS": ((1, "ANY PART*"), (1, "ANY QUALITY PART*")),
    "NEWROLE": ((1, "A ROLE*"), (1, "A TRAIT ROLE*")),
    "HELPER": ((1, "the ROLE*"), (1, "the TRAIT ROLE*")),
    "TOOLED": ((2, "with the TOOL:obl"), (1, "ADVERB:advmod"), (1, "")),
    "CONNECTIVE": ((3, "NEXT:advmod ,"), (2, "")),
}

ENTITIES = ("NAME", "THING", "LOOK", "ROLE", "PLACE", "TOOL", "PROBLEM", "REMEDY")
PRONOUNS = ("HERO", "HIM", "HIS", "IT", "THEM", "THEY")
NOMINALS = {"NAME", "HERO", "THING", "ROLE", "PLACE", "TOOL", "PART", "HIM", "IT", "THEM", "THEY",
            "home/noun", *NOUN_SLOTS}
DEFAULT_RELATIONS = {
    **dict.fromkeys(("the", "DEF", "ANY", "A", "SOME", "every"), "det"), "HIS": "nmod:poss",
    **dict.fromkeys(("LOOK", "TRAIT", "QUALITY"), "amod"),
    **dict.fromkeys(("in", "at", "to", "with", "for", "by", "AT", *PREPOSITION_SLOTS), "case"),
}
VERB_FORMS = ("inf", "part", "ing", "rel", "conj")


@dataclass
class Node:
    """An item of a pattern. ``head`` is an index; None until it is resolved."""

    item: str
    form: str = ""
    relation: str | None = None
    head: int | None = None
    target: str | None = None
    subject: str | int = ""

    @property
    def is_verb(self) -> bool:
        return (self.item.islower() and self.item.isalpha() and self.item not in LITERALS
                or self.item in VERB_SLOTS or self.item == "DEED")

    @property
    def is_finite(self) -> bool:
        return self.is_verb and self.form in ("", "rel", "conj")


@dataclass(frozen=True)
class Skeleton:
    """A sentence before its words are chosen: nodes with heads (0-based; the root's is -1).

    ``parts`` are the places of PART nodes, ``shown`` those whose verb shows their number,
    ``attributes`` the places of adjectives that follow a determiner. ``has_focus``: it speaks of
    the document's thing.
    """

    nodes: tuple[Node, ...]
    parts: tuple[int, ...]
    attributes: tuple[int, ...]
    shown: frozenset[int]
    has_focus: bool


@lru_cache(maxsize=None)
def skeletons(pattern: str, tense: str, given: bool) -> tuple[tuple[float, Skeleton], ...]:
    """Every way to fill in a pattern's phrases, with its weight.

    ``given``: the sentence before spoke of the document's thing, so a pronoun can stand for it.
    """
    found = []
    for weight, nodes, head in _expand(pattern, tense, given):
        nodes[head].head, nodes[head].relation = -1, "root"
        _attach(nodes, head)
        if tense == FUTURE:
            nodes = _with_will(nodes)
        if MIN_WORDS <= len(nodes) <= MAX_WORDS:
            _find_subjects(nodes)
            items = [node.item for node in nodes]
            found.append((weight, Skeleton(
                tuple(nodes), tuple(i for i, item in enumerate(items) if item == "PART"),
                tuple(i for i, node in enumerate(nodes)
                      if node.item in ("TRAIT", "QUALITY") and node.relation == "amod"),
                frozenset(node.subject for node in nodes if isinstance(node.subject, int)
                          and (tense != PAST or node.item == "be")),
                any(item in ("THING", "IT", "THEM") for item in items))))
    return tuple(found)


def _expand(pattern: str, tense: str, given: bool) -> list[tuple[float, list[Node], int | None]]:
    """(weight, nodes, index of the head or None) for every choice of phrases."""
    options: list[tuple] = [(1.0, [], None, {})]
    for text in pattern.split():
        item, _, relation = text.partition(":")
        relation, _, target = relation.partition("@")
        is_head, item = item.endswith("*"), item.removesuffix("*")
        extended = []
        for part_weight, part, part_head in _readings(item, tense, given):
            for weight, nodes, head, names in options:
                shift = len(nodes)
                added = [replace(node, head=None if node.head is None else node.head + shift)
                         for node in part]
                if part_head is not None:
                    added[part_head].relation = relation or None
                    added[part_head].target = target or None
                    names = {**names, item.partition("/")[0]: shift + part_head}
                extended.append((weight * part_weight, nodes + added,
                                 shift + part_head if is_head else head, names))
        options = extended
    return [(weight, _resolve(nodes, head, names), head) for weight, nodes, head, names in options]


def _readings(item: str, tense: str, given: bool) -> list:
    """The expansions of one item: itself, or those of the phrase that it names."""
    if item not in PHRASES:
        word, _, form = item.partition("/")
        node = Node(word, form) if form in VERB_FORMS else Node(item)
        return [(1.0, [node], 0)]
    return [(weight * inner, nodes, head)
            for weight, pattern, *condition in PHRASES[item]
            if not condition or condition[0] == tense or (condition[0] == "given" and given)
            for inner, nodes, head in _expand(pattern, tense, given)]


def _resolve(nodes: list[Node], head: int | None, names: dict[str, int]) -> list[Node]:
    """Turn named targets into indices; what names none belongs to the pattern's head."""
    resolved = [replace(node) for node in nodes]
    for place, node in enumerate(resolved):
        if node.relation and node.head is None and place != head:
            if node.target:
                node.head, node.target = names[node.target], None
            elif head is not None:
                node.head = head
    return resolved


def _attach(nodes: list[Node], root: int) -> None:
    """Give punctuation, determiners, prepositions and attributes their heads."""
    for place, node in enumerate(nodes):
        if node.head is not None:
            continue
        following = range(place + 1, len(nodes))
        if node.item in (".", ",", "?", "!"):
            node.head, node.relation = root, "punct"
        elif node.item == "VERY":
            node.head, node.relation = place + 1, "advmod"
        else:
            node.relation = DEFAULT_RELATIONS[node.item]
            node.head = next(i for i in following if nodes[i].item in NOMINALS)


def _with_will(nodes: list[Node]) -> list[Node]:
    """Put "will" before every finite verb that takes it, and shift the heads."""
    places = [i for i, node in enumerate(nodes) if node.is_verb and node.form == ""]
    if nodes[0].item == "why":  # the auxiliary goes before the subject, "be" after it
        return _question_with_will(nodes)
    shifted = [i + sum(place <= i for place in places) for i in range(len(nodes))]
    moved = [replace(node, head=node.head if node.head < 0 else shifted[node.head])
             for node in nodes]
    for place in reversed(places):
        verb = moved[place]
        head = verb.head if verb.relation.startswith(("cop", "aux")) else shifted[place]
        verb.form = "inf"
        moved.insert(place, Node("will", "", "aux", head))
    for node in moved:
        if node.form == "conj":
            node.form = "inf"
    return moved


def _question_with_will(nodes: list[Node]) -> list[Node]:
    """"why be FOCUS so PROBLEM ?" -> "why will FOCUS be so PROBLEM ?"."""
    so = next(i for i, node in enumerate(nodes) if node.item == "so")
    shifted = [i + (i >= so) for i in range(len(nodes))]
    moved = [replace(node, head=node.head if node.head < 0 else shifted[node.head])
             for node in nodes]
    be = moved[1]
    moved[1] = Node("will", "", "aux", be.head)
    moved.insert(so, replace(be, form="inf"))
    return moved


def _find_subjects(nodes: list[Node]) -> None:
    """Say whose number each finite verb takes: a number, ``focus``, or the place of a PART."""
    for place, node in enumerate(nodes):
        if not node.is_finite:
            continue
        clause = node.head if node.relation.startswith(("cop", "aux")) else place
        if nodes[clause].relation == "conj" and not _subject(nodes, clause):
            clause = nodes[clause].head
        subject = _subject(nodes, clause)
        item = nodes[subject[0]].item
        if item == "that/pron":
            item = "THING"
        if any(n.relation == "conj" and n.head == subject[0] for n in nodes) or item == "THEY":
            node.subject = PLUR
        elif item in ("THING", "IT"):
            node.subject = "focus"
        elif item == "PART":
            node.subject = subject[0]
        else:
            node.subject = SING


def _subject(nodes: list[Node], clause: int) -> list[int]:
    return [i for i, node in enumerate(nodes)
            if node.head == clause and (node.relation or "").startswith("nsubj")]


def patterns() -> list[str]:
    """Every sentence pattern of the script."""
    return [pattern for _, _, _, choices in SCRIPT for _, pattern in choices]
