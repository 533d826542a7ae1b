"""Was the sentence tampered with? Three of SentEval's tasks (Conneau et al. 2018, section 2).

A sentence is there as it was or as it was made, never both; half of each in every part.

``sent:shift``: two neighbouring words were swapped. ``sent:odd``: a noun or verb was replaced by
another of the same tag and a like frequency. ``sent:coordination``: two coordinated clauses were
swapped.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bertscope.analysis.probing.items import PARTS, Items
from bertscope.analysis.probing.tasks.common import Row, balanced, cased, key, made
from bertscope.analysis.probing.tasks.sentence import root_place, row
from bertscope.corpus.conllu import Sentence, Word

if TYPE_CHECKING:
    from bertscope.analysis.probing.gold import Gold

ORIGINAL, CHANGED = "original", "changed"
#: Words of the shortest sentence that is used.
SHORTEST = 5
#: Two words are of like frequency where the more frequent one is at most so many times as frequent.
LIKE = 2.0
#: Parts of speech that are replaced, and how many candidates of like frequency are tried.
REPLACED, TRIES = ("NOUN", "VERB"), 5
#: Of the words that may replace others, the share that may do so in each of ``PARTS``.
SHARES = (0.6, 0.15, 0.25)

#: The words of a sentence, by its number, once it is changed; None where it cannot be.
Change = Callable[[int, random.Random], "list[str] | None"]


def shift(gold: Gold, task: str = "sent:shift", seed: int = 0) -> Items:
    """Two neighbouring words swapped: neither the first word nor punctuation, and not twice the same
    word. From five words on."""
    def change(number: int, rng: random.Random) -> list[str] | None:
        words = gold.sentences[number].words
        places = [place for place in range(1, len(words) - 1)
                  if not {words[place].upos, words[place + 1].upos} & {"PUNCT", "SYM"}
                  and words[place].form.lower() != words[place + 1].form.lower()]
        if len(words) < SHORTEST or not places:
            return None
        place, forms = rng.choice(places), list(gold.words[number])
        forms[place:place + 2] = forms[place + 1], forms[place]
        return forms

    return _tampered(gold, task, seed, change)


def odd_one_out(gold: Gold, task: str = "sent:odd", seed: int = 0) -> Items:
    """A noun or verb replaced by a word with the same XPOS (else UPOS) and features, of another
    lemma, at most twice or half as frequent in these data. A word replaces others in one part only.

    SentEval compares the frequencies of both bigrams, for which most treebanks are too small.
    """
    counts = Counter(key(word) for sentence in gold.sentences for word in sentence.words
                     if word.upos in REPLACED and word.form.isalpha())
    lemmas = {key(word): word.lemma for sentence in gold.sentences for word in sentence.words}
    pools = _dealt(counts, f"{seed}-{task}")

    def change(number: int, rng: random.Random) -> list[str] | None:
        words = gold.sentences[number].words
        places = [place for place, word in enumerate(words) if key(word) in counts]
        for place in rng.sample(places, len(places)):
            form, group = own = key(words[place])
            pool = pools.get((gold.parts[number], group), [])
            start, end = (bisect_left(pool, (counts[own] * share,)) for share in (1 / LIKE, LIKE))
            for _, other in rng.sample(pool[start:end], min(TRIES, end - start)):
                if other != form and lemmas[other, group] != words[place].lemma:
                    forms = list(gold.words[number])
                    forms[place] = cased(other, forms[place])
                    return forms
        return None

    return _tampered(gold, task, seed, change)


def coordination(gold: Gold, task: str = "sent:coordination", seed: int = 0) -> Items:
    """Two coordinated main clauses swapped around their conjunction.

    Each clause has a subject of its own, one conjunction stands between them, and nothing but
    punctuation follows. The first clause is the longer one as often in the changed as in the
    original sentences; capitals are set as for a sentence that was written so.
    """
    clauses = {number: found for number, sentence in enumerate(gold.sentences)
               if (found := _clauses(sentence))}
    chosen: dict[int, bool] = {}  # whether the sentence is changed
    for part in PARTS:
        sides = defaultdict(list)
        for number, (first, _, second, _) in clauses.items():
            if gold.parts[number] == part:
                sides[len(first) - len(second) > 0, len(first) == len(second)].append(number)
        rng = random.Random(f"{seed}-{task}-{part}")
        longer, shorter = sides[True, False], sides[False, False]
        most = min(len(longer), len(shorter)) // 2 * 2
        for group in (rng.sample(longer, most), rng.sample(shorter, most), sides[False, True]):
            half = len(group) // 2
            shuffled = rng.sample(group, len(group))[:2 * half]
            chosen.update({number: place < half for place, number in enumerate(shuffled)})
    sentences, rows = list(gold.words), []
    for number, changed in sorted(chosen.items()):
        sentences[number] = _ordered(*clauses[number], swap=changed)
        rows.append(_row(gold, number, changed))
    return made(gold, task, "sentence", rows, sentences, seed=seed)


# -- inside -----------------------------------------------------------------------------------


def _tampered(gold: Gold, task: str, seed: int, change: Change) -> Items:
    """Half of the sentences that can be changed are; which ones, and how, the seed decides."""
    rng = random.Random(f"{seed}-{task}")
    sentences, rows = list(gold.words), []
    for number in range(len(gold.words)):
        found = change(number, rng)
        if found is None:
            continue
        if changed := rng.random() < 0.5:
            sentences[number] = found
        rows.append(_row(gold, number, changed))
    return balanced(made(gold, task, "sentence", rows, sentences, seed=seed), seed)


def _row(gold: Gold, number: int, changed: bool) -> Row:
    return row(gold, number, CHANGED if changed else ORIGINAL)


def _dealt(counts: Counter, seed: str) -> dict[tuple, list[tuple[float, str]]]:
    """``(frequency, form)`` in ascending order of each ``(part, group)``: a form is in one part."""
    forms = sorted({form for form, _ in counts})
    shuffled = random.Random(seed).sample(forms, len(forms))
    ends = [round(sum(SHARES[:place + 1]) * len(forms)) for place in range(len(PARTS))]
    owner = {form: part for start, end, part in zip([0, *ends], ends, PARTS)
             for form in shuffled[start:end]}
    pools = defaultdict(list)
    for (form, group), count in sorted(counts.items(), key=lambda item: (item[1], item[0][0])):
        pools[owner[form], group].append((count, form))
    return pools


def _clauses(sentence: Sentence) -> tuple[list[Word], list[Word], list[Word], list[Word]] | None:
    """``(first clause, conjunction with its comma, second clause, end)``; None where the sentence is
    not made so."""
    root = root_place(sentence)
    words = sentence.words
    if root is None or sum(word.deprel.partition(":")[0] == "cc" for word in words) != 1:
        return None
    cc = next(i for i, word in enumerate(words) if word.deprel.partition(":")[0] == "cc")
    second = words[cc].head - 1
    if words[second].deprel.partition(":")[0] != "conj" or words[second].head - 1 != root \
            or not 0 < cc <= second or root > cc or not (_has_subject(words, root, 0, cc)
                                             and _has_subject(words, second, cc, len(words))):
        return None
    end = len(words)
    while end and words[end - 1].upos == "PUNCT":
        end -= 1
    start = cc
    while start and words[start - 1].upos == "PUNCT":
        start -= 1
    crossing = any(word.head > 0 and word.upos != "PUNCT" and (place < cc) != (word.head - 1 < cc)
                   for place, word in enumerate(words) if place != second)
    if crossing or start == 0 or end <= cc + 1:
        return None
    return words[:start], words[start:cc + 1], words[cc + 1:end], words[end:]


def _has_subject(words: Sequence[Word], verb: int, start: int, end: int) -> bool:
    return any(word.head - 1 == verb and word.deprel.partition(":")[0] in ("nsubj", "csubj")
               for word in words[start:end])


def _ordered(first: Sequence[Word], joint: Sequence[Word], second: Sequence[Word],
             end: Sequence[Word], swap: bool) -> list[str]:
    before, after = (second, first) if swap else (first, second)
    forms = [[word.form for word in part] for part in (before, joint, after, end)]
    if swap:
        if before[0].form[:1].islower() and first[0].form[:1].isupper():
            forms[0][0] = before[0].form[:1].upper() + before[0].form[1:]
        if after[0].upos != "PROPN" and after[0].form != "I":
            forms[2][0] = after[0].form[:1].lower() + after[0].form[1:]
    return [form for part in forms for form in part]
