"""What a training example is, whatever file it was read from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text, or a pair of texts, with a class's name or a number."""

    text: str
    label: str | float
    pair: str | None = None
    where: str = ""
    group: str = ""   # examples of one group are never divided between parts

    @property
    def key(self) -> str:
        """The same for what reads the same."""
        return _folded(self.text) + ("\0" + _folded(self.pair) if self.pair else "")


@dataclass(frozen=True, slots=True)
class Tagged:
    """The words of a sentence, each with a tag."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    where: str = ""
    group: str = ""

    @property
    def key(self) -> str:
        return _folded(" ".join(self.words))


@dataclass(frozen=True, slots=True)
class Answer:
    """``text`` stands at character ``start`` of the paragraph."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question on a paragraph; without answers the paragraph does not answer it."""

    question: str
    context: str
    answers: tuple[Answer, ...]
    id: str = ""
    where: str = ""
    group: str = ""

    @property
    def key(self) -> str:
        return _folded(self.question) + "\0" + _folded(self.context)


Example = Labelled | Tagged | Question


@dataclass(frozen=True)
class Dataset:
    """Examples of one task in three parts; ``test`` may be empty, the others are not.

    ``labels`` are the classes or tags of the training part, sorted; none where labels are numbers
    or answers. ``notes`` are sentences on what was guessed, divided, found twice and left out.
    """

    name: str
    task: str
    train: list[Example]
    valid: list[Example]
    test: list[Example]
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def numbers(self) -> bool:
        """Whether a number is predicted."""
        return self.task in ("sentence", "pair") and not self.labels

    @property
    def fingerprint(self) -> str:
        """24 hex digits that change when an example does."""
        digest = hashlib.sha256()
        for part in (self.train, self.valid, self.test):
            for example in part:
                digest.update(repr(example).encode("utf-8", "replace"))
            digest.update(b"\0")
        return digest.hexdigest()[:24]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
