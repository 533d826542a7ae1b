"""Minimal pairs of miniworld: a sentence of its grammar and the same with one word made wrong.

A built-in test in the manner of BLiMP (Warstadt et al. 2020): the wrong sentence is one that the
grammar never makes, whatever the topic, the document or the sentences around it, and it differs in
one word. What is wrong shows within the sentence itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bertscope.corpus.conllu import Word
from bertscope.corpus.miniworld import generate
from bertscope.corpus.miniworld.lexicon import (
    DEFINITE, FEMALE, MALE, NAMES, PLUR, PRONOUNS, SEVERAL, SING, article, finite, noun)

#: Runs train on seed 0; the gallery and probing have others.
SEED = 20_200_708
_OTHER = {SING: PLUR, PLUR: SING}
#: Documents looked through at most: the rarest paradigm has a pair in every tenth.
_MOST_DOCUMENTS = 20_000


@dataclass(frozen=True)
class Contrast:
    """``paradigm`` is a kind of mistake, ``phenomenon`` what several kinds have in common."""

    good: str
    bad: str
    paradigm: str
    phenomenon: str


def contrasts(per_paradigm: int = 100, seed: int = SEED) -> list[Contrast]:
    """So many different pairs of each paradigm, in the order of ``PARADIGMS``."""
    found: dict[str, dict[str, Contrast]] = {name: {} for name in PARADIGMS}
    for made in generate(_MOST_DOCUMENTS, seed):
        for sentence in made.sentences:
            for name, (phenomenon, changes) in PARADIGMS.items():
                if len(found[name]) < per_paradigm:
                    for bad in changes(sentence.words):
                        pair = Contrast(sentence.text, _text(bad), name, phenomenon)
                        found[name].setdefault(pair.bad, pair)
                        break
        if all(len(pairs) >= per_paradigm for pairs in found.values()):
            break
    return [pair for pairs in found.values() for pair in list(pairs.values())[:per_paradigm]]


def _text(forms: list[str]) -> str:
    return "".join(form if form in (".", ",", "?", "!") else " " + form for form in forms)[1:]


def _replaced(words: list[Word], place: int, form: str) -> list[str]:
    return [form if i == place else word.form for i, word in enumerate(words)]


# -- a verb and its subject -------------------------------------------------------------------


def _verbs(words: list[Word]) -> Iterator[tuple[int, int, str]]:
    """(place of a finite verb, place of the noun that is its subject, the verb's wrong form)."""
    for place, verb in enumerate(words):
        number, tense = verb.feats.get("Number"), verb.feats.get("Tense")
        if verb.feats.get("VerbForm") != "Fin" or number not in _OTHER:
            continue
        other = finite(verb.lemma, "past" if tense == "Past" else "present", _OTHER[number]).form
        clause = verb.head - 1 if verb.upos == "AUX" else place
        for subject, word in enumerate(words):
            if (word.deprel.startswith("nsubj") and word.head - 1 == clause and word.upos == "NOUN"
                    and word.feats.get("Number") == number and other != verb.form):
                yield place, subject, other


def _between(words: list[Word], place: int, subject: int) -> list[Word]:
    return words[min(place, subject) + 1:max(place, subject)]


def _verb_beside(words):
    """No noun stands between the verb and its subject."""
    for place, subject, other in _verbs(words):
        if not any(word.upos == "NOUN" for word in _between(words, place, subject)):
            yield _replaced(words, place, other)


def _verb_across(words):
    """A noun of the other number stands between them, and misleads."""
    for place, subject, other in _verbs(words):
        numbers = {word.feats.get("Number") for word in _between(words, place, subject)
                   if word.upos == "NOUN"}
        if _OTHER[words[subject].feats["Number"]] in numbers:
            yield _replaced(words, place, other)


# -- a noun and what stands before it ---------------------------------------------------------


def _determined(words: list[Word], forms: set[str]) -> Iterator[tuple[int, int]]:
    """(place of a determiner or number with one of these forms, place of its noun)."""
    for place, word in enumerate(words):
        if word.form in forms and word.deprel in ("det", "nummod"):
            yield place, word.head - 1


def _determiner(words):
    """*this* and *these*, before a noun of the other number."""
    number_of = {lex.form: number for number, slot in DEFINITE.items() for lex in slot.words
                 if lex.lemma == "this"}
    form_of = {number: form for form, number in number_of.items()}
    for place, _ in _determined(words, set(number_of)):
        yield _replaced(words, place, form_of[_OTHER[number_of[words[place].form]]])


def _numeral(words):
    """A noun in the singular after *two* or *three*."""
    several = {lex.form for lex in SEVERAL.words if lex.upos == "NUM"}
    for _, head in _determined(words, several):
        if words[head].feats.get("Number") == PLUR:
            yield _replaced(words, head, noun(words[head].lemma).form)


def _article(words):
    """*a* before a vowel, *an* before a consonant."""
    for place, _ in _determined(words, {"a", "an"}):
        yield _replaced(words, place, "a" if article(words[place + 1].form) == "an" else "an")


# -- pronouns ---------------------------------------------------------------------------------


def _gender(words):
    """*her* for a man, *his* for a woman: in miniworld only the hero's can be meant."""
    names = {name: gender for gender, slot in NAMES.items() for name in slot.words}
    named = [names[word.form] for word in words if word.form in names]
    for place, word in enumerate(words):
        if word.feats.get("Poss") == "Yes" and named:
            other = MALE if named[0] == FEMALE else FEMALE
            yield _replaced(words, place, PRONOUNS[other, "Gen"].form)


def _case(words):
    """*him* where *he* must stand."""
    accusative = {PRONOUNS[who, "Nom"].form: PRONOUNS[who, "Acc"].form
                  for who, case in PRONOUNS if case == "Nom" and who != SING}
    for place, word in enumerate(words):
        if word.form in accusative and word.deprel.startswith("nsubj"):
            yield _replaced(words, place, accusative[word.form])


#: Paradigm -> (phenomenon, the sentences with one word made wrong).
PARADIGMS: dict[str, tuple[str, Callable[[list[Word]], Iterator[list[str]]]]] = {
    "verb_beside_subject": ("subject-verb agreement", _verb_beside),
    "verb_across_a_noun": ("subject-verb agreement", _verb_across),
    "this_or_these": ("determiner-noun agreement", _determiner),
    "noun_after_numeral": ("determiner-noun agreement", _numeral),
    "a_or_an": ("articles", _article),
    "his_or_her": ("pronouns", _gender),
    "he_or_him": ("pronouns", _case),
}
