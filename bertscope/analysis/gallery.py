"""Something to try at once: sentences with a word to mask, pairs of texts, texts with labels.

Made from the corpus a model was trained on, where possible from what it has never seen. Nothing
here needs a model, so a page can show it while the model is still being loaded.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from bertscope.analysis.telling_words import telling_words
from bertscope.corpus.sources import Document, documents
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.runs import Run

MASK = "[MASK]"
#: Runs train on miniworld's seed 0; documents of this one were never seen. (Probing has another.)
MINIWORLD_SEED = 20_190_602
#: A corpus is looked through to this many documents, so that a page need not wait for the rest.
LOOK_THROUGH = 1000
#: Scanning the installed documentation is slow: some seconds for so many.
LOOK_THROUGH_PYDOCS = 400
#: An excerpt has this many sentences, fewer where they are long; a document gives so many at most.
EXCERPT_SENTENCES, EXCERPT_WORDS, EXCERPTS = 4, 80, 4

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


@dataclass(frozen=True)
class Fill:
    """A sentence and the word to mask in it, ``text[start:end]``; ``note`` says what to expect."""

    text: str
    start: int
    end: int
    note: str = ""

    @property
    def answer(self) -> str:
        return self.text[self.start:self.end]

    @property
    def masked(self) -> str:
        """The text with ``[MASK]`` in the word's place."""
        return f"{self.text[:self.start]}{MASK}{self.text[self.end:]}"


@dataclass(frozen=True)
class Pair:
    """Two texts; ``follows`` tells whether ``b`` really came after ``a``."""

    a: str
    b: str
    follows: bool
    note: str = ""


def _fill(masked: str, answer: str, note: str = "") -> Fill:
    start = masked.index(MASK)
    return Fill(masked.replace(MASK, answer, 1), start, start + len(answer), note)


SOTU_FILLS = (
    _fill("the united [MASK] of america", "states", "a fixed phrase, learnt first"),
    _fill("My fellow [MASK], the state of our union is strong.", "Americans",
          "who is spoken to, in the speeches of our time"),
    _fill("I ask the [MASK] to pass this bill.", "congress", "who passes laws"),
    _fill("The [MASK] of the treasury has sent his report to the congress.", "secretary",
          "an office"),
    _fill("We wish to live in peace with all the [MASK] of the world.", "nations",
          "plural, after all the"),
    _fill("Our soldiers fought with great [MASK] in this war.", "courage",
          "what the subject suggests"),
)
PYDOCS_FILLS = (
    _fill("This function [MASK] a list of strings.", "returns", "what functions do"),
    _fill("If the file does not [MASK], an error is raised.", "exist", "a condition"),
    _fill("The default [MASK] is None.", "value", "a fixed phrase"),
    _fill("Raised when an operation runs out of [MASK].", "memory", "a resource"),
    _fill("The method is called with two [MASK].", "arguments", "plural, after a number"),
)
ENGLISH_FILLS = (
    _fill("The children [MASK] playing in the garden.", "are", "agreement with the subject"),
    _fill("The keys to the cabinet [MASK] on the table.", "are",
          "agreement with keys, across the cabinet"),
    _fill("He opened the door and went into the [MASK].", "room", "what the context suggests"),
    _fill("She put on her coat because it was [MASK].", "cold", "a cause"),
    _fill("Paris is the capital of [MASK].", "France", "a fact"),
)
ENGLISH_PAIRS = (
    Pair("He went to the kitchen.", "He made himself a cup of tea.", True, "the story goes on"),
    Pair("He went to the kitchen.", "The treaty was signed in the following year.", False,
         "another story"),
)


#: Two passages on two things, for the making of pairs.
ENGLISH_PASSAGES = (
    "The boy found a small dog in the garden. It was hungry and afraid. He gave it some bread and "
    "milk. From that day on they were friends.",
    "The ship left the harbour at night. A strong wind blew from the north. The captain looked at "
    "the stars. In the morning they saw land.",
)
SOTU_PASSAGES = (
    "The elements of our strength are many. They include our democratic government, our economic "
    "system, our great natural resources. But these are only partial explanations. The basic "
    "source of our strength is spiritual.",
    "Now we know what we must do: increase production. We must cut down on waste. And we must use "
    "more of those fuels which are plentiful and more permanent.",
)
CHINESE_PASSAGES = (
    "小明在公园里散步。他看见一只小狗。小狗非常高兴。他们一起回家了。",
    "北京是中国的首都。城市里有很多大学。学生们每天去图书馆学习。",
)


def passages(source: str, run: Run | None = None) -> list[str]:
    """Two passages of some short neighbouring sentences, of two documents."""
    if source == "sotu":
        return list(SOTU_PASSAGES)
    found = _or_nothing(lambda: list(islice(filter(None, (
        _passage(document.sentences) for document in _unseen(source, run))), 2)))
    return found if len(found) == 2 else list(ENGLISH_PASSAGES)


def _passage(sentences: list[str]) -> str | None:
    """The first neighbours of 4 to 20 words each, as many as make an excerpt."""
    for start in range(len(sentences) - EXCERPT_SENTENCES + 1):
        near = sentences[start: start + EXCERPT_SENTENCES]
        if all(4 <= len(sentence.split()) <= 20 for sentence in near):
            return " ".join(near)
    return None


def readings(source: str, run: Run | None = None, sentences: int = 7) -> list[str]:
    """Two stretches from the middle of two documents far apart, a sentence a line."""
    found = _or_nothing(lambda: [document.sentences for document in islice(_unseen(source, run), 20)
                                 if len(document.sentences) >= sentences])
    if len(found) < 2:
        return [passage.replace(". ", ".\n") for passage in ENGLISH_PASSAGES]
    middles = [(len(own) - sentences) // 2 for own in (found[0], found[-1])]
    return ["\n".join(own[middle:middle + sentences])
            for own, middle in zip((found[0], found[-1]), middles)]


def fills(source: str, limit: int = 6, run: Run | None = None) -> list[Fill]:
    """Sentences with a word to mask, the most telling first.

    For a path they are the first sentences of documents, held-out ones where ``run`` is given (the
    run that was trained on ``source``). A corpus that cannot be read any more gives plain English.

    Args:
        source: a corpus's name or path, as in ``config.corpus.source``.
    """
    if source == "miniworld":
        made = [Fill(*found) for found in telling_words(MINIWORLD_SEED)]
    elif source in ("sotu", "pydocs"):
        made = SOTU_FILLS if source == "sotu" else PYDOCS_FILLS
    else:
        made = _or_nothing(lambda: _first_sentences(source, limit, run)) or ENGLISH_FILLS
    return list(made)[:limit]


def pairs(source: str, limit: int = 6, run: Run | None = None) -> list[Pair]:
    """Pairs of neighbouring sentences, each followed by a pair with a sentence from elsewhere."""
    made = _or_nothing(lambda: _neighbours(source, limit, run))
    return (made or list(ENGLISH_PAIRS))[:limit]


def labelled_texts(source: str, limit: int = 300, seed: int = 0,
                   progress: Callable[[str, float | None], None] | None = None) -> pd.DataFrame:
    """Excerpts of about four sentences from all over a corpus, to be coloured by what is known.

    Args:
        source: a corpus's name or path.
        limit: excerpts at most. Each document gives one before any gives a second.
    Returns: a row per excerpt: ``text``, ``document`` (its place in the corpus), then what the
        source knows of the document, for example ``topic`` and ``tense`` (miniworld), ``year``
        and ``party`` (sotu), ``path`` (files). Values that a document lacks are None.

    Raises:
        BertScopeError: the source cannot be read or has no text.
    """
    import pandas as pd

    chosen: list[list[dict]] = []
    # Any documents of miniworld are as good as others; elsewhere the first ones are alike.
    most = limit if source == "miniworld" else None
    each = EXCERPTS if limit <= EXCERPTS * LOOK_THROUGH else limit  # of so many, all that fit
    for index, document in enumerate(islice(readable_documents(source, limit // 2), most)):
        if progress and index % 50 == 0:
            progress(f"document {index + 1:,}", None)
        rng = random.Random(f"{seed}-{index}")
        known = {key: value for key, value in document.meta.items()
                 if key not in ("text", "document")}
        chosen.append([{"text": text, "document": index, **known}
                       for text in _excerpts(document.sentences, rng, each)])
    random.Random(seed).shuffle(chosen)
    rounds = (row for number in range(max(map(len, chosen), default=0))
              for rows in chosen for row in rows[number:number + 1])
    return pd.DataFrame(list(islice(rounds, limit)))


def label_columns(texts: pd.DataFrame, most: int = 50) -> list[str]:
    """The columns worth a colour: numbers that vary, and 2 to ``most`` different names."""
    import pandas as pd

    def telling(column: str) -> bool:
        values = texts[column].nunique()
        if pd.api.types.is_numeric_dtype(texts[column]):
            return values > 1
        return 2 <= values <= min(most, len(texts) - 1)

    columns = [column for column in texts.columns if column not in ("text", "document")]
    return [column for column in [*columns, "document"] if telling(column)]


def _or_nothing(make: Callable[[], list]) -> list:
    """Examples are a courtesy: where the corpus is gone, the page goes on without it."""
    try:
        return make()
    except BertScopeError:
        return []


def readable_documents(source: str, least: int = 0) -> Iterator[Document]:
    """The first documents of a source; of miniworld those that no run trains on, ``least`` at
    least.

    Raises:
        BertScopeError: the source cannot be read.
    """
    if source != "miniworld":
        return documents(source, LOOK_THROUGH_PYDOCS if source == "pydocs" else LOOK_THROUGH)
    from bertscope.corpus.miniworld import generate

    return (Document(made.texts, {"topic": made.topic, "tense": made.tense, "number": made.number,
                                  "gender": made.gender, "thing": made.thing, "title": made.title},
                     made.sentences)
            for made in generate(max(LOOK_THROUGH, least), MINIWORLD_SEED))


def _excerpts(sentences: list[str], rng: random.Random, most: int = EXCERPTS) -> list[str]:
    """Up to ``most`` stretches of a document that do not overlap, from random places."""
    whole = len(sentences) // EXCERPT_SENTENCES
    if not whole:
        return [_shortened(sentences)]
    places = rng.sample(range(whole), min(whole, most))
    return [_shortened(sentences[place * EXCERPT_SENTENCES:][:EXCERPT_SENTENCES])
            for place in places]


def _shortened(sentences: list[str]) -> str:
    """Whole sentences up to ``EXCERPT_WORDS`` words, at least the first one's beginning."""
    words: list[str] = []
    for sentence in sentences:
        more = sentence.split()
        if words and len(words) + len(more) > EXCERPT_WORDS:
            break
        words += more
    return " ".join(words[:EXCERPT_WORDS])


# -- held-out documents -----------------------------------------------------------------------


def _unseen(source: str, run: Run | None) -> Iterator[Document]:
    """Documents that the run did not train on, as far as that is known."""
    found = readable_documents(source)
    held_out = _held_out(run) if run and source != "miniworld" else None
    return (document for index, document in enumerate(found)
            if held_out is None or index in held_out)


def _held_out(run: Run) -> set[int] | None:
    """Places of the held-out documents; None before the run has counted its corpus."""
    from bertscope.corpus.store import split_documents

    count = run.config_record().get("corpus", {}).get("documents")
    if not isinstance(count, int) or count < 2:
        return None
    return set(split_documents(count, run.config().corpus.held_out)[1].tolist())


def _first_sentences(source: str, limit: int, run: Run | None) -> list[Fill]:
    """From each document the first sentence of 6 to 20 words, its longest inner word masked."""
    made = []
    for document in _unseen(source, run):
        sentence = next((s for s in document.sentences if 6 <= len(s.split()) <= 20), None)
        inner = list(_WORD.finditer(sentence))[1:] if sentence else []
        if inner:
            word = max(inner, key=lambda match: (match.end() - match.start(), -match.start()))
            made.append(Fill(sentence, word.start(), word.end(), _origin(document)))
        if len(made) == limit:
            break
    return made


def _origin(document: Document) -> str:
    """Where an example comes from."""
    meta = document.meta
    known = meta.get("title") or meta.get("document") or Path(str(meta.get("path", ""))).stem
    return f"from “{known}”" if known else ""


def _neighbours(source: str, limit: int, run: Run | None) -> list[Pair]:
    """Two sentences from the middle of each document, then the first with another document's."""
    found = [(document, middle) for document in islice(_unseen(source, run), max(2, limit))
             if (middle := _middle(document.sentences))]
    made = []
    for place, (document, (a, b)) in enumerate(found):
        made.append(Pair(a, b, True, f"neighbours {_origin(document)}".strip()))
        if len(found) > 1:
            other, (_, foreign) = found[(place + 1) % len(found)]
            made.append(Pair(a, foreign, False, f"the second is {_origin(other)}".strip()
                             if _origin(other) else "the second is from another document"))
    return made


def _middle(sentences: list[str]) -> tuple[str, str] | None:
    """The first two neighbours of 4 to 40 words from the middle on, or from the beginning."""
    near = [*zip(sentences[len(sentences) // 2:], sentences[len(sentences) // 2 + 1:]),
            *zip(sentences, sentences[1:])]
    return next(((a, b) for a, b in near
                 if all(4 <= len(s.split()) <= 40 for s in (a, b))), None)
