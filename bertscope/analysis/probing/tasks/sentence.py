"""Labels of sentences, derived from a treebank in the spirit of SentEval (Conneau et al. 2018).

Each task is balanced: in every part as many sentences of each label. What stands for the sentence as
its word type (for control tasks and ``types_apart``) is the word that decides, else the root.

``sent:length``: ranges of words with about equally many training sentences. ``sent:word``: which of
up to 100 words of middle frequency occurs in it. ``sent:depth``: edges from the root to the deepest
word. ``sent:tense``: of the finite verb of the main clause. ``sent:subject``, ``sent:object``:
number of the noun that is its subject or object.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from bertscope.analysis.probing import trees
from bertscope.analysis.probing.items import Items
from bertscope.analysis.probing.tasks.common import ENOUGH, Bins, Row, balanced, frequent, made
from bertscope.corpus.conllu import Sentence, Word

if TYPE_CHECKING:
    from bertscope.analysis.probing.gold import Gold

#: Ranges of lengths at most, as in SentEval.
LENGTHS = 6
#: Words to tell apart at most, characters that each has at least, and the share of sentences above
#: which a word is too frequent.
WORDS, WORD_CHARACTERS, TOO_FREQUENT = 100, 4, 0.02
#: A label that is rarer than this share of the most frequent one would leave next to nothing.
RARE = 0.1
#: Depths to tell apart at most.
DEPTHS = 5
#: Training sentences below which fewer depths are told apart.
FEWEST = 1000
#: Sentences are alike in length where one is less than so many times as long as the other.
ALIKE = 1.15


def length(gold: Gold, task: str = "sent:length", seed: int = 0) -> Items:
    """How many words the sentence has."""
    sizes = [len(words) for words in gold.words]
    training = [size for size, part in zip(sizes, gold.parts, strict=True) if part == "train"]
    label = Bins(training, LENGTHS)
    rows = [row(gold, number, label(size)) for number, size in enumerate(sizes)]
    return balanced(made(gold, task, "sentence", rows, seed=seed), seed)


def content(gold: Gold, task: str = "sent:word", seed: int = 0) -> Items:
    """Which of the chosen words the sentence has: one of them, once.

    The words are the most frequent ones, by training sentences, after those that more than 2 % have;
    of these, half or more are kept: as many as leave most sentences with all equally frequent.
    """
    lowered = [[form.lower() for form in words] for words in gold.words]
    counts = Counter(form for words, part in zip(lowered, gold.parts, strict=True)
                     if part == "train" for form in set(words))
    limit = TOO_FREQUENT * gold.parts.count("train")
    order = sorted((form for form, n in counts.items() if ENOUGH <= n <= max(limit, ENOUGH)
                    and len(form) >= WORD_CHARACTERS and form.isalpha()),
                   key=lambda form: (-counts[form], form))
    chosen = set(order[:WORDS])
    rows = []
    for number, words in enumerate(lowered):
        found = [form for form in words if form in chosen]
        if len(found) == 1:
            rows.append(row(gold, number, found[0], found[0]))
    items = made(gold, task, "sentence", rows, seed=seed)
    sizes = sorted(items.label_counts("train").values(), reverse=True)
    least = max(((n + 1) * size, size) for n, size in enumerate(sizes)
                if n + 1 >= len(sizes) / 2)[1] if sizes else ENOUGH
    return balanced(frequent(items, least), seed, least)


def depth(gold: Gold, task: str = "sent:depth", seed: int = 0) -> Items:
    """The depth of the tree, which its length does not tell: among the sentences of like length (up
    to 15 % longer) every depth is equally frequent.

    As many neighbouring depths, up to five, are told apart as leave 1,000 training sentences; if
    none does, the two with most. Sentences whose governors are no tree are left out.
    """
    rows = []
    for number, sentence in enumerate(gold.sentences):
        heads = trees.heads(sentence)
        if heads is not None and len(heads) <= trees.LONGEST:
            rows.append(row(gold, number, str(max(trees.depths(heads)))))
    items = made(gold, task, "sentence", rows, seed=seed,
                 no_tree=len(gold.words) - len(rows))
    depths = sorted({int(label) for label in items.labels})
    best = items.select([])
    for count in range(min(DEPTHS, len(depths)), 1, -1):
        tried = [_decorrelated(gold, items, range(first, first + count), seed) for first in depths]
        best = max(tried, key=lambda found: len(found.where["train"]))
        if len(best.where["train"]) >= FEWEST:
            break
    return best


def _decorrelated(gold: Gold, items: Items, depths: range, seed: int) -> Items:
    groups: dict[tuple, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    names = {str(value) for value in depths}
    for place, label in enumerate(items.labels):
        if label in names:
            size = int(math.log(len(gold.words[items.sentence[place]]), ALIKE))
            groups[items.parts[place], size][label].append(place)
    kept: list[int] = []
    for (part, size), by_depth in groups.items():
        count = min(map(len, by_depth.values())) if len(by_depth) == len(names) else 0
        rng = random.Random(f"{seed}-{part}-{size}")
        for label in sorted(by_depth) if count else ():
            kept += rng.sample(by_depth[label], count)
    return items.select(sorted(kept))


def tense(gold: Gold, task: str = "sent:tense", seed: int = 0) -> Items:
    """The tense of the main clause's finite verb: the root, else its first finite auxiliary."""
    def found(sentence: Sentence) -> tuple[str, str] | None:
        word = finite(sentence)
        return (word.feats["Tense"], word.form) if word else None

    return _of_words(gold, task, seed, found)


def subject(gold: Gold, task: str = "sent:subject", seed: int = 0) -> Items:
    """The number of the noun that is the subject of the main clause."""
    return _of_words(gold, task, seed,
                     lambda sentence: _number(sentence, ("nsubj",)))


def object_(gold: Gold, task: str = "sent:object", seed: int = 0) -> Items:
    """The number of the noun that is the direct object of the main clause."""
    return _of_words(gold, task, seed,
                     lambda sentence: _number(sentence, ("obj", "dobj")))


def finite(sentence: Sentence) -> Word | None:
    """The finite verb of the main clause, with its Tense; None where there is none."""
    root = root_place(sentence)
    if root is None:
        return None
    around = [word for word in sentence.words if word.head == root + 1
              and word.deprel.partition(":")[0] in ("aux", "cop")]
    return next((word for word in (sentence.words[root], *around) if "Tense" in word.feats
                 and word.feats.get("VerbForm", "Fin") == "Fin"), None)


def root_place(sentence: Sentence) -> int | None:
    """The place of the first root, from 0."""
    return next((place for place, word in enumerate(sentence.words) if word.head == 0), None)


def _number(sentence: Sentence, relations: tuple[str, ...]) -> tuple[str, str] | None:
    root = root_place(sentence)
    nouns = [word for word in sentence.words if root is not None and word.head == root + 1
             and word.deprel.partition(":")[0] in relations]
    if len(nouns) != 1 or nouns[0].upos != "NOUN" or "Number" not in nouns[0].feats:
        return None
    return nouns[0].feats["Number"], nouns[0].form


def _of_words(gold: Gold, task: str, seed: int, found) -> Items:
    """Labels that one word of the sentence decides."""
    rows = [row(gold, number, *label) for number, sentence in enumerate(gold.sentences)
            if (label := found(sentence))]
    items = made(gold, task, "sentence", rows, seed=seed)
    most = max(items.label_counts("train").values(), default=0)
    return balanced(frequent(items, max(ENOUGH, int(RARE * most))), seed)


def row(gold: Gold, number: int, label: str, type_: str | None = None) -> Row:
    """The item of a sentence; what stands for it is its root, unless ``type_`` says otherwise."""
    if type_ is None:
        sentence = gold.sentences[number]
        place = root_place(sentence)
        type_ = "" if place is None else sentence.words[place].form
    return Row(number, (), label, type_)

