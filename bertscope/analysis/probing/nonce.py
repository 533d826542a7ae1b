"""Sentences that are grammatical and make no sense: *colourless green ideas* (Gulordava et al. 2018)."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from bertscope.analysis.probing.tasks.common import cased, key
from bertscope.corpus.conllu import Sentence, Word

#: Parts of speech that are replaced; the words between them, which carry the grammar, stay.
CONTENT = ("NOUN", "VERB", "ADJ", "ADV")


def nonce(sentences: Sequence[Sentence], lexicon: Iterable[Sentence], seed: int = 0) -> list[Sentence]:
    """Each content word replaced by another one of the lexicon with the same tags and features, drawn
    at random without regard to frequency; a word without any such other one stays. Trees stay."""
    found: dict[tuple, set[str]] = defaultdict(set)
    for sentence in lexicon:
        for word in sentence.words:
            if word.upos in CONTENT and word.form.isalpha():
                form, group = key(word)
                found[group].add(form)
    pools = {group: sorted(forms) for group, forms in found.items()}
    rng = random.Random(seed)
    return [replace(sentence, words=[_other(word, pools, rng) for word in sentence.words],
                    metadata={}) for sentence in sentences]


def _other(word: Word, pools: dict[tuple, list[str]], rng: random.Random) -> Word:
    form, group = key(word)
    pool = pools.get(group, [])
    if word.upos not in CONTENT or not [other for other in pool[:2] if other != form]:
        return word
    while (drawn := rng.choice(pool)) == form:
        pass
    return replace(word, form=cased(drawn, word.form), lemma="")
