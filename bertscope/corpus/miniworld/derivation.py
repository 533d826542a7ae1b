"""From the grammar to one document: every choice drawn, every word with its oracle.

The choices of a document, in order: topic, tense, the entities (hero, thing, role, ...), the
number of sentences of each step, a skeleton per sentence, and the words of its slots. Given topic,
tense and skeletons, the slots are independent but for what agreement shows, so what the other
words tell about a word is a condition on its own slot, and its posterior is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bertscope.corpus.miniworld import lexicon
from bertscope.corpus.miniworld.grammar import SCRIPT, Node, skeletons
from bertscope.corpus.miniworld.lexicon import (
    ADJECTIVE_SLOTS, ADVERB_SLOTS, DEFINITE, FEMALE, FUTURE, KNOWN, LITERALS, MALE, NAMES, NEXT,
    NOUN_SLOTS, PAST, PLUR, PREPOSITION_SLOTS, PRESENT, PROBLEMS, PRONOUNS, REMEDIES, SEVERAL,
    SING, TOPICS, VERB_SLOTS, Lex, Slot, Topic, article)

TENSES = Slot([PAST, PRESENT, FUTURE], [5, 4, 1])

#: Choices that several words reveal. Other words have numbers of their own, from FIRST_FREE on.
HERO, GENDER, THING, LOOK, ROLE, PLACE, TOOL, PROBLEM, FIRST_FREE = range(1, 10)
#: Entities of a document; parts of the place are numbered from FIRST_PART on.
ENTITY = {"HERO": 1, "THING": 2, "ROLE": 3, "PLACE": 4, "TOOL": 5, "FRIEND": 6, "THEY": 7}
FIRST_PART = 8


class Token(NamedTuple):
    """A word with its place in the tree, and what an oracle makes of it (see the package).

    ``guess`` is what the oracle says where the choice is seen elsewhere, ``alone_guess`` where
    it is not; ``oracle`` and ``alone`` are the probabilities that they are right.
    """

    lex: Lex
    head: int
    relation: str
    entity: int
    choice: int
    oracle: float
    guess: str
    alone: float
    alone_guess: str


@dataclass
class Cast:
    """What holds for a whole document."""

    topic: Topic
    tense: str
    gender: str
    hero: str
    thing: str
    number: str
    look: str
    role: str
    place: str
    tool: str
    problem: str


class Uniforms:
    """Uniform numbers in [0, 1) for one document, drawn in blocks: one at a time is slow."""

    def __init__(self, seed: int, index: int):
        self.rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, index])))
        self.block: list[float] = []

    def __call__(self) -> float:
        if not self.block:
            self.block = self.rng.random(256).tolist()
        return self.block.pop()


class Derivation:
    """One document, drawn with ``uniform()``. ``sentences`` is a list of (step, tokens)."""

    def __init__(self, uniform: Callable[[], float]):
        self.uniform = uniform
        self.cast = self._draw_cast()
        self.free_choice = FIRST_FREE
        self.parts: dict[str, int] = {}
        self.actions = 0
        self.focus_given = False
        self.sentences = [(step, self._sentence(pattern, step)) for step, pattern in self._script()]
        self._settle_alone()

    # ---- the whole document

    def _draw_cast(self) -> Cast:
        u = self.uniform
        topic = TOPICS[int(u() * len(TOPICS))]
        gender = FEMALE if u() < 0.5 else MALE
        return Cast(
            topic=topic, tense=TENSES.draw(u()), gender=gender, hero=NAMES[gender].draw(u()),
            thing=topic.things.draw(u()), number=SING if u() < 0.5 else PLUR,
            look=topic.looks.draw(u()), role=topic.roles.draw(u()), place=topic.places.draw(u()),
            tool=topic.tools.draw(u()), problem=PROBLEMS.draw(u()))

    def _script(self):
        """Yield (step, pattern): no pattern twice in a document."""
        for step, fewest, most, choices in SCRIPT:
            left = list(choices)
            for _ in range(fewest + int(self.uniform() * (most - fewest + 1))):
                chosen = Slot(left, [weight for weight, _ in left]).draw(self.uniform())
                left.remove(chosen)
                yield step, chosen[1]

    def _settle_alone(self) -> None:
        """Where no choice of an entity is seen: what its other traces in the document tell."""
        cast, topic = self.cast, self.cast.topic
        tokens = [token for _, sentence in self.sentences for token in sentence]
        before = {after.choice for token, after in zip(tokens, tokens[1:]) if token.lex.lemma == "a"}
        sexed = any(token.choice == GENDER for token in tokens)

        def seen(choice: int, slot: Slot, word: str) -> Slot:
            return slot.given(article, article(word)) if choice in before else slot

        look, role = seen(LOOK, topic.looks, cast.look), seen(ROLE, topic.roles, cast.role)
        tool, names = seen(TOOL, topic.tools, cast.tool), NAMES[cast.gender]
        name_chance = names.chance if sexed else names.chance / 2
        alone = {
            THING: (topic.things.chance, lexicon.noun(topic.things.best, cast.number).form),
            LOOK: (look.chance, look.best), ROLE: (role.chance, role.best),
            TOOL: (tool.chance, tool.best), PLACE: (topic.places.chance, topic.places.best),
            HERO: (name_chance, names.best),
        }
        for _, sentence in self.sentences:
            for i, token in enumerate(sentence):
                if token.choice in alone and token.oracle == 1.0:
                    chance, guess = alone[token.choice]
                    sentence[i] = token._replace(alone=chance, alone_guess=guess)

    # ---- one sentence

    def _sentence(self, pattern: str, step: str) -> list[Token]:
        skeleton = _sampler(pattern, self.cast.tense, self.focus_given).draw(self.uniform())
        self.actions += step == "act"
        # What determiners and verbs agree with comes first.
        self.nouns = {place: self._draw_part() for place in skeleton.parts}
        self.drawn = {place: SHARED[skeleton.nodes[place].item].draw(self.uniform())
                      for place in skeleton.attributes}
        self.skeleton, self.determiner, self.previous = skeleton, "", ""
        tokens = []
        for place, node in enumerate(skeleton.nodes):
            word = self._word(place, node)
            if len(word) == 1:
                word = (*word, 0, self._free(), 1.0, word[0].form)
            lex, entity, choice, chance, guess, *alone = word
            self.previous = lex.form
            if lex.upos in ("DET", "NUM"):
                self.determiner = lex.form
            relation = node.relation if lex.upos != "NUM" or node.item != "SOME" else "nummod"
            tokens.append(Token(lex, node.head + 1, relation, entity, choice, chance, guess,
                                *(alone or (chance, guess))))
        self.focus_given = skeleton.has_focus
        return tokens

    def _free(self) -> int:
        """The number of a choice that shows in one word only."""
        self.free_choice += 1
        return self.free_choice - 1

    def _draw_part(self) -> tuple[str, str]:
        lemma = self.cast.topic.parts.draw(self.uniform())
        return lemma, PART_NUMBERS.draw(self.uniform())

    def _word(self, place: int, node: Node) -> tuple:
        """(word, entity, choice, chance, guess[, alone, alone's guess]), or (word,) if certain."""
        item = node.item
        if item in LITERALS:
            return (LITERALS[item],)
        if node.is_verb:
            return self._verb(node)
        return FILLERS[item](self, place, node)

    # ---- slots that fill one word and are seen nowhere else

    def _verb(self, node: Node) -> tuple:
        item = node.item
        slot = VERB_SLOTS.get(item) or (self.cast.topic.deeds if item == "DEED" else None)
        if slot is None:
            return (self._inflect(item, node),)
        lemma = slot.draw(self.uniform())
        return (self._inflect(lemma, node), 0, self._free(), slot.chance,
                self._inflect(slot.best, node).form)

    def _inflect(self, lemma: str, node: Node) -> Lex:
        upos = "AUX" if node.relation.startswith(("cop", "aux")) else "VERB"
        if node.form in ("", "rel", "conj"):
            number = node.subject
            if number == "focus":
                number = self.cast.number
            elif isinstance(number, int):
                number = self.nouns[number][1]
            tense = PAST if self.cast.tense == PAST else PRESENT
            return lexicon.finite(lemma, tense, number, upos)
        if node.form == "inf":
            return lexicon.infinitive(lemma, upos)
        return lexicon.passive(lemma) if node.form == "part" else lexicon.progressive(lemma)

    def _shared(self, place: int, node: Node) -> tuple:
        slot, entity = SHARED[node.item], ENTITY.get(node.item, 0)
        lex = self.drawn.get(place) or slot.draw(self.uniform())
        if self.previous in lexicon.A:
            slot = slot.given(_article_of, self.previous)
        return lex, entity, self._free(), slot.chance, slot.best.form

    def _part(self, place: int, node: Node) -> tuple:
        lemma, number = self.nouns[place]
        lex, parts = lexicon.noun(lemma, number), self.cast.topic.parts
        entity = self.parts.setdefault(lex.form, FIRST_PART + len(self.parts))
        if self.previous in lexicon.A:
            parts = parts.given(article, self.previous)
        if place in self.skeleton.shown or self.determiner in SHOW_NUMBER:
            best, chance = lexicon.noun(parts.best, number), parts.chance
        else:
            best = lexicon.noun(parts.best, PART_NUMBERS.best)
            chance = parts.chance * PART_NUMBERS.chance
        return lex, entity, self._free(), chance, best.form

    def _next(self, place: int, node: Node) -> tuple:
        slot = NEXT[min(self.actions, len(NEXT)) - 1]
        return LITERALS[slot.draw(self.uniform())], 0, self._free(), slot.chance, slot.best

    def _definite(self, place: int, node: Node) -> tuple:
        number = self.nouns[node.head][1] if node.head in self.nouns else self.cast.number
        slot = DEFINITE[number]
        lex = slot.draw(self.uniform())
        return lex, 0, self._free(), slot.chance, slot.best.form

    def _some(self, place: int, node: Node) -> tuple:
        if self.cast.number == SING:
            return self._article(place, node)
        lex = SEVERAL.draw(self.uniform())
        return lex, 0, self._free(), SEVERAL.chance, SEVERAL.best.form

    def _article(self, place: int, node: Node) -> tuple:
        """"a" or "an", as the next word asks."""
        return (lexicon.A[article(self._form(place + 1))],)

    def _any(self, place: int, node: Node) -> tuple:
        """The determiner of a part of the place: "the", or "a(n)" and "some" by its number."""
        known, number = KNOWN.draw(self.uniform()), self.nouns[node.head][1]
        indefinite = lexicon.A[article(self._form(place + 1))] if number == SING else lexicon.SOME
        lex = lexicon.THE if known else indefinite
        return lex, 0, self._free(), KNOWN.chance, lexicon.THE.form

    def _form(self, place: int) -> str:
        """The word that will stand at ``place``, after a determiner."""
        if place in self.drawn:
            return self.drawn[place].form
        if place in self.nouns:
            return self.nouns[place][0]  # enough to choose the article
        return getattr(self.cast, self.skeleton.nodes[place].item.lower())

    def _at(self, place: int, node: Node) -> tuple:
        return (LITERALS[self.cast.topic.at],)

    # ---- entities and pronouns: one choice, many words

    def _name(self, place: int, node: Node) -> tuple:
        name = lexicon.name(self.cast.hero)
        return name, ENTITY["HERO"], HERO, 1.0, name.form

    def _entity(self, place: int, node: Node) -> tuple:
        """A noun or adjective that stays the same in the document; ``alone`` is settled later."""
        lemma = getattr(self.cast, node.item.lower())
        number = self.cast.number if node.item == "THING" else SING
        lex = lexicon.adjective(lemma) if node.item == "LOOK" else lexicon.noun(lemma, number)
        return lex, ENTITY.get(node.item, 0), CHOICES[node.item], 1.0, lex.form

    def _problem(self, place: int, node: Node) -> tuple:
        problem, best = self.cast.problem, PROBLEMS.best
        if node.item == "REMEDY":
            problem, best = REMEDIES[problem], REMEDIES[best]
        return (lexicon.adjective(problem), 0, PROBLEM, 1.0, problem, PROBLEMS.chance, best)

    def _hero_pronoun(self, place: int, node: Node) -> tuple:
        lex = PRONOUNS[self.cast.gender, HERO_CASES[node.item]]
        return lex, ENTITY["HERO"], GENDER, 1.0, lex.form

    def _thing_pronoun(self, place: int, node: Node) -> tuple:
        lex = PRONOUNS[self.cast.number, "Acc" if node.item == "THEM" else "Nom"]
        return lex, ENTITY["THING"], self._free(), 1.0, lex.form

    def _they(self, place: int, node: Node) -> tuple:
        lex = PRONOUNS[PLUR, "Nom"]
        return lex, ENTITY["THEY"], self._free(), 1.0, lex.form


#: The parts of a place are more often one than several.
PART_NUMBERS = Slot([SING, PLUR], [2, 1])
SHOW_NUMBER = {"a", "an", "this", "these", "some"}
CHOICES = {"THING": THING, "LOOK": LOOK, "ROLE": ROLE, "PLACE": PLACE, "TOOL": TOOL}
HERO_CASES = {"HERO": "Nom", "HIM": "Acc", "HIS": "Gen"}
#: Slots that are the same in every topic, as words.
SHARED = {
    **{name: Slot([lexicon.adjective(word) for word in slot.words], slot.weights)
       for name, slot in ADJECTIVE_SLOTS.items()},
    **{name: Slot([lexicon.noun(word) for word in slot.words], slot.weights)
       for name, slot in NOUN_SLOTS.items()},
    **{name: Slot([LITERALS[word] for word in slot.words], slot.weights)
       for name, slot in (ADVERB_SLOTS | PREPOSITION_SLOTS).items()},
}
FILLERS = {
    **dict.fromkeys(SHARED, Derivation._shared),
    **dict.fromkeys(("THING", "LOOK", "ROLE", "PLACE", "TOOL"), Derivation._entity),
    **dict.fromkeys(("PROBLEM", "REMEDY"), Derivation._problem),
    **dict.fromkeys(HERO_CASES, Derivation._hero_pronoun),
    **dict.fromkeys(("IT", "THEM"), Derivation._thing_pronoun),
    "A": Derivation._article, "NAME": Derivation._name, "PART": Derivation._part, "NEXT": Derivation._next,
    "DEF": Derivation._definite, "ANY": Derivation._any, "SOME": Derivation._some, "AT": Derivation._at,
    "THEY": Derivation._they,
}


def _article_of(lex: Lex) -> str:
    return article(lex.form)


@lru_cache(maxsize=None)
def _sampler(pattern: str, tense: str, given: bool) -> Slot:
    """The skeletons of a pattern as a slot."""
    weights, choices = zip(*skeletons(pattern, tense, given))
    return Slot(list(choices), list(weights))
