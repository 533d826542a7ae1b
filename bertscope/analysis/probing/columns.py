"""Files with a word in the first column and its entity tag in the last, as in the shared tasks of
CoNLL 2003 and WNUT 2017: a blank line after each sentence, ``-DOCSTART-`` before a document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bertscope.corpus.conllu import Sentence, Word
from bertscope.errors import BertScopeError

#: Characters of a line at most, and words of a sentence: a file without blank lines is none of these.
LONGEST_LINE, LONGEST_SENTENCE = 10_000, 5000
_TAG = re.compile(r"O|[BIESLU]-\S+")


def is_tag(value: str) -> bool:
    """Whether it is a tag of BIO, BIOES or BILOU: ``O``, ``B-PER``."""
    return _TAG.fullmatch(value) is not None


def read_columns(path: str | Path) -> Iterator[Sentence]:
    """Yield the sentences, one at a time; the tag is in each word's MISC, under ``NER``.

    Columns are separated by tabs, else by spaces. Invalid UTF-8 becomes U+FFFD.

    Raises:
        BertScopeError: the file cannot be read, or a line is malformed (file and line are named).
    """
    words: list[Word] = []
    documents = 0
    for number, line in _lines(path):
        if not line.strip():
            if words:
                yield Sentence(words, document=f"document {documents}" if documents else "")
            words = []
        elif line.startswith("-DOCSTART-"):
            documents += 1
        else:
            words.append(_word(line, f"{path}, line {number}"))
            if len(words) > LONGEST_SENTENCE:
                raise BertScopeError(f"{path}, line {number}: the sentence has more than "
                                     f"{LONGEST_SENTENCE:,} words; a blank line ends a sentence.")
    if words:
        yield Sentence(words, document=f"document {documents}" if documents else "")


def _lines(path: str | Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise BertScopeError(f"{path}, line {number}: the line has more than "
                                         f"{LONGEST_LINE:,} characters.")
                yield number, line.rstrip("\n")
    except OSError as error:
        raise BertScopeError(f"{path} cannot be read: {error.strerror}.") from None


def _word(line: str, where: str) -> Word:
    fields = line.split("\t") if "\t" in line else line.split()
    if len(fields) < 2 or not fields[0].strip():
        raise BertScopeError(f"{where}: a word and its tag should stand here, separated by a tab or "
                             "a space.")
    tag = fields[-1].strip()
    if not is_tag(tag):
        raise BertScopeError(f"{where}: the last column should be an entity tag such as B-PER, I-PER "
                             f"or O, not {tag[:40]!r}.")
    return Word(fields[0].strip(), misc={"NER": tag})
