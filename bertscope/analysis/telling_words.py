"""Words of miniworld whose masking asks for what the grammar teaches: agreement, reference, tense, articles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from bertscope.corpus.conllu import Sentence, Word


class Found(NamedTuple):
    """``text[start:end]`` is the word; ``note`` says what it depends on."""

    text: str
    start: int
    end: int
    note: str


def telling_words(seed: int) -> list[Found]:
    """One sentence for each thing that the grammar teaches, twice over, of the documents of a seed."""
    from bertscope.corpus.miniworld import generate

    sentences = [s for made in generate(200, seed) for s in made.sentences]
    kinds = (_agreement, _pronoun, _tense, _article)
    found = [list(islice(_found(sentences, kind), 2)) for kind in kinds]
    return [one for number in range(2) for some in found for one in some[number:number + 1]]


def _found(sentences: Iterable[Sentence], kind) -> Iterator[Found]:
    for sentence in sentences:
        hit = kind(sentence.words)
        place = _places(sentence)[hit[0]] if hit else None
        if place:
            yield Found(sentence.text, *place, hit[1])


def _places(sentence: Sentence) -> list[tuple[int, int] | None]:
    """Where each word stands in the text; None for one that is not found."""
    places: list[tuple[int, int] | None] = []
    end = 0
    for word in sentence.words:
        start = sentence.text.find(word.form, end)
        places.append(None if start < 0 else (start, start + len(word.form)))
        end = end if start < 0 else start + len(word.form)
    return places


def _agreement(words: list[Word]) -> tuple[int, str] | None:
    """A finite verb with a noun of the other number between it and its subject."""
    for place, verb in enumerate(words):
        if verb.upos not in ("VERB", "AUX") or verb.feats.get("VerbForm") != "Fin":
            continue
        clause = verb.head - 1 if verb.upos == "AUX" else place
        for start, subject in enumerate(words[:place]):
            if subject.deprel.split(":")[0] != "nsubj" or subject.head - 1 != clause:
                continue
            number = verb.feats.get("Number")
            for noun in words[start + 1:place]:
                if noun.upos == "NOUN" and noun.feats.get("Number") != number == \
                        subject.feats.get("Number"):
                    return place, f"agreement with {subject.form}, across {noun.form}"
    return None


def _pronoun(words: list[Word]) -> tuple[int, str] | None:
    """A pronoun whose entity has a name or noun earlier in the sentence."""
    named: dict[str, str] = {}
    for place, word in enumerate(words):
        entity = word.misc.get("Entity", "")
        if word.upos == "PRON" and entity in named:
            return place, f"a pronoun for {named[entity]}"
        if word.upos in ("PROPN", "NOUN") and entity:
            named.setdefault(entity, word.form)
    return None


def _tense(words: list[Word]) -> tuple[int, str] | None:
    """A finite verb in a sentence that begins with a word for the time."""
    if words[0].form.lower() not in ("yesterday", "today", "tomorrow"):
        return None
    for place, word in enumerate(words):
        if word.upos in ("VERB", "AUX") and word.feats.get("VerbForm") == "Fin":
            return place, f"tense, after {words[0].form}"
    return None


def _article(words: list[Word]) -> tuple[int, str] | None:
    """*a* or *an*: which one, the next word tells."""
    for place, (word, after) in enumerate(zip(words, words[1:])):
        if word.form == "an":
            return place, f"a or an, before {after.form}"
    return None
