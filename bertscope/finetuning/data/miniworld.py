"""An example of each task from miniworld's grammar, whose documents here no run was trained on.

``sentence``  is the sentence well formed? Minimal pairs: a bag of words cannot tell.
``pair``      does the sentence answer the question? Other sentences are of the same document.
``tokens``    who and what is spoken of, in BIO tags: hero, helper, thing, place, tool, part.
``question``  a question on a document; a fifth asks for somebody who is not in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bertscope.corpus.conllu import Sentence
from bertscope.corpus.miniworld import GoldDocument, generate
from bertscope.corpus.miniworld.contrasts import contrasts
from bertscope.corpus.miniworld.lexicon import NAMES
from bertscope.finetuning.data.examples import Answer, Labelled, Question, Tagged

#: Runs train on seed 0; other views have others.
SEED = 20_181_012
PAIRS_OF_A_PARADIGM, DOCUMENTS = 150, 300
ENTITIES = {"1": "HERO", "2": "THING", "3": "HELPER", "4": "PLACE", "5": "TOOL", "6": "HELPER"}
UNANSWERED = 0.2


def make(task: str) -> dict[str, list]:
    """``{"train": examples}``: they are still to be divided."""
    return {"train": list(_made(task))}


@lru_cache
def _made(task: str) -> tuple:
    return tuple(_MAKERS[task]())


def _sentences() -> Iterator[Labelled]:
    for number, pair in enumerate(contrasts(PAIRS_OF_A_PARADIGM, SEED)):
        for text, label in ((pair.good, "well formed"), (pair.bad, "ill formed")):
            yield Labelled(text, label, None, f"pair {number} of {pair.paradigm}", pair.good)


def _pairs() -> Iterator[Labelled]:
    rng = np.random.default_rng(SEED)
    for made in generate(2 * DOCUMENTS, SEED):
        for asked in _asked(made):
            if asked.sure:
                others = [s.text for i, s in enumerate(made.sentences)
                          if i != asked.sentence and asked.answer not in s.text]
                other = others[int(rng.integers(len(others)))]
                for text, label in ((made.sentences[asked.sentence].text, "answers"),
                                    (other, "does not answer")):
                    yield Labelled(asked.question, label, text, f"{made.id}: {asked.question}",
                                   made.id)


def _tagged() -> Iterator[Tagged]:
    for made in generate(DOCUMENTS // 2, SEED):
        for number, sentence in enumerate(made.sentences, 1):
            yield Tagged(tuple(word.form for word in sentence.words), _entity_tags(sentence),
                         f"{made.id}-{number}", made.id)


def _entity_tags(sentence: Sentence) -> tuple[str, ...]:
    """A mention is its head with the determiner and the adjectives to the left of it."""
    words, tags = sentence.words, ["O"] * len(sentence.words)
    for place, word in enumerate(words):
        if "Entity" in word.misc:
            kind, first = ENTITIES.get(word.misc["Entity"], "PART"), place
            while first and words[first - 1].head == place + 1 \
                    and words[first - 1].deprel in ("det", "amod", "nummod"):
                first -= 1
            tags[first:place + 1] = [f"B-{kind}"] + [f"I-{kind}"] * (place - first)
    return tuple(tags)


def _questions() -> Iterator[Question]:
    rng = np.random.default_rng(SEED)
    for made in generate(DOCUMENTS, SEED):
        context, starts = "", []
        for sentence in made.sentences:
            starts.append(len(context))
            context += sentence.text + " "
        context = context.rstrip()
        for asked in _asked(made):
            name = f"{made.id}: {asked.question}"
            if rng.random() < UNANSWERED:
                strange = [n for slot in NAMES.values() for n in slot.words if n != made.hero]
                other = strange[int(rng.integers(len(strange)))]
                question = f"when did {other} come?"
                yield Question(question, context, (), f"{made.id}: {question}", name, made.id)
            else:
                start = starts[asked.sentence] + asked.start
                yield Question(asked.question, context, (Answer(asked.answer, start),), name, name,
                               made.id)


class _Asked(NamedTuple):
    """A question whose answer stands at ``start`` of a sentence; ``sure`` if no other tells it."""

    question: str
    answer: str
    sentence: int
    start: int
    sure: bool


def _asked(made: GoldDocument) -> Iterator[_Asked]:
    steps = {step: number for number, step in reversed(list(enumerate(made.steps)))}

    def ask(question: str, number: int, chosen, sure: bool) -> Iterator[_Asked]:
        sentence = made.sentences[number]
        for (start, end), word in zip(_places(sentence), sentence.words):
            if chosen(word):
                yield _Asked(question, sentence.text[start:end], number, start, sure)
                return

    first = made.sentences[0].words
    place = next((w.form for w in first if w.misc.get("Entity") == "4"), "place")
    thing = made.thing
    number = steps["arrive"]
    yield from ask(f"who came to the {place}?", number, lambda w: w.form == made.hero, True)
    yield from ask(f"where did {made.hero} go?", number, lambda w: w.misc.get("Entity") == "4", False)
    yield from ask(f"when did {made.hero} come?", number, lambda w: w.deprel == "obl:unmarked", True)
    yield from ask(f"what was wrong with the {thing}?", steps["problem"],
                   lambda w: w.misc.get("Choice") == "8", True)
    yield from ask(f"how was the {thing} in the end?", steps["result"],
                   lambda w: w.misc.get("Choice") == "8", True)
    for entity, question in (("3", f"who helped {made.hero}?"), ("5", f"what did {made.hero} use?")):
        number = next((i for i, s in enumerate(made.sentences)
                       if any(w.misc.get("Entity") == entity for w in s.words)), None)
        if number is not None:
            yield from ask(question, number, lambda w: w.misc.get("Entity") == entity, False)


def _places(sentence: Sentence) -> list[tuple[int, int]]:
    """Where each word stands in the sentence's text."""
    places, at = [], 0
    for word in sentence.words:
        at = sentence.text.index(word.form, at)
        places.append((at, at + len(word.form)))
        at += len(word.form)
    return places


_MAKERS = {"sentence": _sentences, "pair": _pairs, "tokens": _tagged, "question": _questions}
