"""A document: what every source yields and the token store keeps apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bertscope.corpus.conllu import Sentence
from bertscope.corpus.sentences import split_sentences

#: Longest document, in characters. A longer one (a file without a blank line) becomes several,
#: so that reading needs little memory and a second document to draw random pairs from exists.
LONGEST = 1_000_000


@dataclass(frozen=True)
class Document:
    """Sentences in order, and what is known about them.

    ``gold`` holds the annotated sentences behind ``sentences``, one for one, where there are any.
    """

    sentences: list[str]
    meta: dict[str, str | int | float] = field(default_factory=dict)
    gold: list[Sentence] | None = None


class Collector:
    """Gathers paragraphs into documents of at most ``LONGEST`` characters.

    A document that had to be cut says so in its ``meta`` (``part`` counts from 1) and in ``cut``.
    """

    def __init__(self, meta: dict[str, str | int | float]):
        self.meta = meta
        self.sentences: list[str] = []
        self.size = 0
        self.part = 0
        self.cut = False

    def add(self, paragraph: str) -> Iterator[Document]:
        """Yields a document whenever one is full."""
        for sentence in split_sentences(paragraph):
            self.sentences.append(sentence)
            self.size += len(sentence)
            if self.size >= LONGEST:
                self.part += 1
                self.cut = True
                yield from self._take()

    def end(self) -> Iterator[Document]:
        """Yields what is left, if anything, and begins a new document."""
        self.part += 1 if self.part and self.sentences else 0
        yield from self._take()
        self.part = 0

    def _take(self) -> Iterator[Document]:
        if self.sentences:
            meta = {**self.meta, "part": self.part} if self.part else dict(self.meta)
            yield Document(self.sentences, meta)
        self.sentences, self.size = [], 0
