"""Labels of pairs of words: edge probing (Tenney et al. 2019a).

``pair:deprel``: the relation of a dependent (first span) to its governor (second span), which are
given. ``pair:head``: which of two words is the governor of the first, the real one or another of the
sentence (Liu et al. 2019, arc prediction). ``pair:coref``: do two mentions mean the same? Both in
one sentence, or in two that follow each other and are read together.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from bertscope.analysis.probing.items import Items
from bertscope.analysis.probing.tasks.common import Row, balanced, made
from bertscope.corpus.conllu import Sentence

if TYPE_CHECKING:
    from bertscope.analysis.probing.gold import Gold


def relations(gold: Gold, task: str = "pair:deprel", seed: int = 0) -> Items:
    """Every arc but the root's, with its relation."""
    rows = [_row(number, sentence, place, word.head - 1, word.deprel)
            for number, sentence in enumerate(gold.sentences)
            for place, word in enumerate(sentence.words) if word.deprel and _governed(word, place)]
    return made(gold, task, "pair", rows)


def governors(gold: Gold, task: str = "pair:head", seed: int = 0) -> Items:
    """Every arc but the root's and punctuation's, and as many pairs that are none.

    Of each dependent the real governor, and a word drawn at random from those that are neither it
    nor its governor (from three words on).
    """
    rng, rows = random.Random(f"{seed}-{task}"), []
    for number, sentence in enumerate(gold.sentences):
        for place, word in enumerate(sentence.words):
            if len(sentence.words) > 2 and _governed(word, place) and word.upos != "PUNCT":
                other = rng.randrange(len(sentence.words) - 2)  # past the word and its governor
                for taken in sorted((place, word.head - 1)):
                    other += other >= taken
                rows += [_row(number, sentence, place, word.head - 1, "governor"),
                         _row(number, sentence, place, other, "another word")]
    return made(gold, task, "pair", rows, seed=seed)


def coreference(gold: Gold, task: str = "pair:coref", seed: int = 0) -> Items:
    """Pairs of mentions by the number that MISC has under ``Entity``, as many same as different.

    Mentions are compared within windows of two sentences of one document; pairs of equal words
    (*boat* … *boat*) are left out, for they need no reading.
    """
    windows = list(_windows(gold))
    sentences = [[] for _ in gold.words]
    rows = []
    for numbers in windows:
        words = [word for number in numbers for word in gold.sentences[number].words]
        sentences[numbers[0]] = [word.form for word in words]
        marked = [(place, word) for place, word in enumerate(words)
                  if word.misc.get("Entity", "").isdecimal()]
        for (i, first), (j, second) in combinations(marked, 2):
            if first.form.lower() != second.form.lower():
                same = first.misc["Entity"] == second.misc["Entity"]
                rows.append(Row(numbers[0], ((i, i + 1), (j, j + 1)), "same" if same else "different",
                                f"{first.form} {second.form}"))
    return balanced(made(gold, task, "pair", rows, sentences,
                         seed=seed), seed)


def _windows(gold: Gold) -> Iterator[tuple[int, ...]]:
    """Sentences two by two: neighbours of one document and part, none in two windows."""
    start = 0
    while start < len(gold.words):
        together = start + 1 < len(gold.words) and gold.documents[start] \
            and gold.documents[start] == gold.documents[start + 1] \
            and gold.parts[start] == gold.parts[start + 1]
        yield (start, start + 1) if together else (start,)
        start += 2 if together else 1


def _governed(word, place: int) -> bool:
    return word.head > 0 and word.head != place + 1


def _row(number: int, sentence: Sentence, first: int, second: int, label: str) -> Row:
    forms = f"{sentence.words[first].form} {sentence.words[second].form}"
    return Row(number, ((first, first + 1), (second, second + 1)), label, forms)
