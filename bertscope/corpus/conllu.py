"""CoNLL-U files: one word a line, ten columns, a blank line after each sentence.

The format is that of Universal Dependencies (https://universaldependencies.org/format.html). The
reader is our own because it has to name the line of an error and to stream; the ``conllu``
package does neither. What probing needs is kept: columns 1-8 and MISC of the syntactic words.
Multi-word tokens (``3-4``), empty nodes (``5.1``) and the DEPS column are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bertscope.errors import BertScopeError

COLUMNS = 10


@dataclass(frozen=True, slots=True)
class Word:
    """One syntactic word. ``_`` in a file is ``""`` or ``{}`` here; a missing HEAD is -1.

    ``head`` is the 1-based place of the governor in the sentence, 0 for the root.
    """

    form: str
    lemma: str = ""
    upos: str = ""
    xpos: str = ""
    feats: dict[str, str] = field(default_factory=dict)
    head: int = -1
    deprel: str = ""
    misc: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words in order, the comment lines as ``metadata``, and the document's id ("" if none)."""

    words: list[Word]
    metadata: dict[str, str] = field(default_factory=dict)
    document: str = ""

    @property
    def text(self) -> str:
        """The ``# text`` line; without one, the forms joined as ``SpaceAfter=No`` says."""
        return self.metadata.get("text") or detokenize(self.words)


def detokenize(words: Iterable[Word]) -> str:
    """Forms joined by single spaces, none after a word with ``SpaceAfter=No``."""
    parts = []
    for word in words:
        parts += [word.form, "" if word.misc.get("SpaceAfter") == "No" else " "]
    return "".join(parts).strip()


def read_conllu(path: str | Path) -> Iterator[Sentence]:
    """Yield the sentences of a file, one at a time. Invalid UTF-8 becomes U+FFFD.

    A ``# newdoc`` without an id is numbered (``newdoc 3``), so that documents stay apart.

    Raises:
        BertScopeError: the file cannot be read, or a line is malformed (file and line are named).
    """
    document, documents = "", 0
    for first, lines in _blocks(path):
        words, metadata = [], {}
        for number, line in enumerate(lines, first):
            if line.startswith("#"):
                key, _, value = line[1:].partition("=")
                metadata[key.strip()] = value.strip()
            elif (word := _word(line, len(words) + 1, path, number)) is not None:
                words.append(word)
        if "newdoc id" in metadata or "newdoc" in metadata:
            documents += 1
            document = metadata.get("newdoc id") or f"newdoc {documents}"
        for word in words:
            if word.head > len(words):
                raise BertScopeError(f"{path}, sentence at line {first}: HEAD {word.head} of "
                                     f"{word.form!r} is beyond the sentence.")
        if words:
            yield Sentence(words, metadata, document)


def _blocks(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines between blank lines, each with the number of its first line."""
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            lines: list[str] = []
            number = 0
            for number, line in enumerate(file, 1):
                if line.strip():
                    lines.append(line.rstrip("\n"))
                elif lines:
                    yield number - len(lines), lines
                    lines = []
            if lines:
                yield number - len(lines) + 1, lines
    except OSError as error:
        raise BertScopeError(f"{path} cannot be read: {error.strerror}.") from None


def _word(line: str, expected: int, path: str | Path, number: int) -> Word | None:
    """The word of one line; None for a multi-word token or an empty node."""
    columns = line.split("\t")
    where = f"{path}, line {number}"
    if len(columns) != COLUMNS:
        raise BertScopeError(f"{where}: a CoNLL-U line has {COLUMNS} columns separated by tabs, "
                             f"this one has {len(columns)}.")
    place, form, lemma, upos, xpos, feats, head, deprel, _, misc = columns
    if not _is_number(place):
        if not place.isdecimal() and place.replace("-", "", 1).replace(".", "", 1).isdecimal():
            return None
        raise BertScopeError(f"{where}: {place[:40]!r} is not a word's number.")
    if int(place) != expected:
        raise BertScopeError(f"{where}: word {expected} should come here, not word {place}.")
    if not form:
        raise BertScopeError(f"{where}: the word has no form.")
    if head != "_" and not _is_number(head):
        raise BertScopeError(f"{where}: HEAD must be a number, not {head[:40]!r}.")
    if feats != "_" and not all("=" in item for item in feats.split("|")):
        raise BertScopeError(f"{where}: FEATS must be like Number=Sing|Person=3, not {feats!r}.")
    if lemma == "_" and form != "_":
        lemma = ""
    return Word(form, lemma, _plain(upos), _plain(xpos), _items(feats),
                -1 if head == "_" else int(head), _plain(deprel), _items(misc))


def _is_number(value: str) -> bool:
    """Of at most nine digits: Python refuses to read thousands of them."""
    return value.isdecimal() and len(value) <= 9


def _plain(value: str) -> str:
    return "" if value == "_" else value


def _items(value: str) -> dict[str, str]:
    """``A=1|B=2`` -> ``{"A": "1", "B": "2"}``; an item without ``=`` has the value ``""``."""
    if value == "_" or not value:
        return {}
    return {key: rest for key, _, rest in (item.partition("=") for item in value.split("|"))}


def write_conllu(sentences: Iterable[Sentence], path: str | Path) -> None:
    """Write sentences, streaming. ``# newdoc id`` is written wherever the document changes.

    Raises:
        OSError: the file cannot be written.
        BertScopeError: a value contains a tab or a line break.
    """
    before = ""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for sentence in sentences:
            file.write(_block(sentence, sentence.document != before))
            before = sentence.document


def _block(sentence: Sentence, new_document: bool) -> str:
    metadata = dict(sentence.metadata)
    if new_document and sentence.document and "newdoc" not in metadata:
        metadata = {"newdoc id": sentence.document, **metadata}
    lines = [f"# {key} = {value}" if value else f"# {key}" for key, value in metadata.items()]
    for place, word in enumerate(sentence.words, 1):
        columns = (str(place), word.form, word.lemma or "_", word.upos or "_", word.xpos or "_",
                   _joined(word.feats, True), "_" if word.head < 0 else str(word.head),
                   word.deprel or "_", "_", _joined(word.misc, False))
        lines.append("\t".join(columns))
        if lines[-1].count("\t") != COLUMNS - 1:
            raise BertScopeError(f"{word.form!r} cannot be written: a value contains a tab.")
    if any("\n" in line or "\r" in line for line in lines):
        raise BertScopeError("The sentence cannot be written: a value contains a line break.")
    return "\n".join(lines) + "\n\n"


def _joined(items: dict[str, str], ordered: bool) -> str:
    """The inverse of ``_items``; FEATS are in alphabetical order, as UD asks."""
    pairs = sorted(items.items(), key=lambda item: item[0].lower()) if ordered else items.items()
    return "|".join(f"{key}={value}" if value else key for key, value in pairs) or "_"
