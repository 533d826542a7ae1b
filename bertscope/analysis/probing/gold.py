"""Annotated sentences for probing: from ``miniworld``, CoNLL-U, or columns with entity tags."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from bertscope.analysis.probing.columns import read_columns
from bertscope.analysis.probing.items import PARTS
from bertscope.analysis.probing.parts import in_folder, place, siblings
from bertscope.analysis.probing.splits import forms, split_by_document, split_in_two
from bertscope.corpus.conllu import Sentence, read_conllu
from bertscope.errors import BertScopeError

#: ``miniworld`` is a function of seed and index; runs train on seed 0, never on this one.
MINIWORLD_SEED = 20_181_011
MINIWORLD_DOCUMENTS = 400

#: Endings of a treebank's files, and of files with an entity's tag in the last column.
TREEBANK = ".conllu"
COLUMN_FILES = (".conll", ".iob", ".iob2", ".bio", ".annotated")


@dataclass(frozen=True)
class Gold:
    """Three parts that share no document; ``note`` says in a sentence where they come from."""

    train: list[Sentence]
    valid: list[Sentence]
    test: list[Sentence]
    name: str
    note: str = ""

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.train, self.valid, self.test)

    @cached_property
    def sentences(self) -> list[Sentence]:
        """All of them: first those for training, then validation, then test."""
        return [*self.train, *self.valid, *self.test]

    @cached_property
    def words(self) -> list[list[str]]:
        """The forms of each sentence; every task shares this list, unless it changes sentences."""
        return [[word.form for word in sentence.words] for sentence in self.sentences]

    @cached_property
    def parts(self) -> list[str]:
        """The part of each sentence: ``train``, ``validation`` or ``test``."""
        sizes = zip(PARTS, map(len, (self.train, self.valid, self.test)), strict=True)
        return [part for part, size in sizes for _ in range(size)]

    @cached_property
    def documents(self) -> list[str]:
        """The document of each sentence, ``""`` where none is named."""
        return [sentence.document for sentence in self.sentences]

    @cached_property
    def in_two_parts(self) -> int:
        """Sentences of training and validation that are, word for word, also in a later part."""
        return len(self.sentences) - len(self.without_duplicates().sentences)

    def without_duplicates(self) -> Gold:
        """Without the sentences that ``in_two_parts`` counts: the test part stays as it is."""
        test = set(map(forms, self.test))
        valid = [sentence for sentence in self.valid if forms(sentence) not in test]
        later = test.union(map(forms, valid))
        train = [sentence for sentence in self.train if forms(sentence) not in later]
        return replace(self, train=train, valid=valid)

    @property
    def notices(self) -> dict:
        """What else a result should say of its data: JSON values."""
        return {"sentences_in_two_parts": self.in_two_parts} if self.in_two_parts else {}


def data(source: str | Path, seed: int = 0) -> Gold:
    """Gold annotation, in three parts.

    ``miniworld`` is generated from a seed that no run trains on. Files are CoNLL-U, or (.conll, .iob,
    .bio) a word and its entity tag a line. Of a folder, or of a file with
    siblings, the files called *train*, *dev* (or *valid*) and *test* are used as they are. Where
    one of the three is missing, the last part present is the test part and the first is split by
    document; a single file is split in three.

    Raises:
        BertScopeError: nothing usable is there; the sentence says what is wrong.
    """
    if str(source) == "miniworld":
        return _miniworld(seed)
    path = place(source)
    if path.is_dir():
        return _folder(path, seed)
    if not path.is_file():
        raise BertScopeError(f"There is no gold annotation called {str(source)!r}: give miniworld, "
                             "a CoNLL-U file, or a folder with train, dev and test files.")
    beside = siblings(path)
    return _from_parts(beside, path.parent.name or path.name, seed) if len(beside) > 1 \
        else _from_files([path], path.stem, seed)


def fingerprint(*parts: Iterable[Sentence]) -> str:
    """24 hex digits over the words and their annotation, and over the part that each is in."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"\x1d")
        for sentence in part:
            rows = ("\t".join((word.form, word.upos, word.xpos, word.deprel, str(word.head),
                               *(f"{key}={value}" for found in (word.feats, word.misc)
                                 for key, value in sorted(found.items()))))
                    for word in sentence.words)
            digest.update(("\n".join(rows) + "\x1e").encode("utf-8", "replace"))
    return digest.hexdigest()[:24]


def _miniworld(seed: int) -> Gold:
    from bertscope.corpus.miniworld import gold_sentences

    sentences = list(gold_sentences(MINIWORLD_DOCUMENTS, MINIWORLD_SEED))
    note = f"{MINIWORLD_DOCUMENTS} documents of miniworld that no run trains on, split by document."
    return Gold(*split_by_document(sentences, seed), "miniworld", note)


def _folder(path: Path, seed: int) -> Gold:
    parts, files = in_folder(path, (TREEBANK,))
    if not files:
        parts, files = in_folder(path, COLUMN_FILES)
    if not files:
        raise BertScopeError(f"The folder {path} has no .conllu file in it.")
    name = path.resolve().name
    return _from_parts(parts, name, seed) if parts else _from_files(files, name, seed)


def _from_parts(parts: dict[str, Path], name: str, seed: int) -> Gold:
    read = {part: _read(parts[part]) for part in PARTS if part in parts}
    files = ", ".join(parts[part].name for part in read)
    if len(read) == 3:
        return Gold(*read.values(), name=name, note=f"{files}, as they are.")
    first, last = read
    train, valid = split_in_two(read[first], seed)
    note = f"{files}: {parts[last].name} is the test part, the other is split by document."
    return Gold(train, valid, read[last], name, note)


def _from_files(files: list[Path], name: str, seed: int) -> Gold:
    sentences = list(chain.from_iterable(_read(file) for file in files))
    note = f"{', '.join(file.name for file in files)}, split by document."
    return Gold(*split_by_document(sentences, seed), name, note)


def _read(path: Path) -> list[Sentence]:
    sentences = list(read_columns(path) if path.suffix.lower() in COLUMN_FILES
                     else read_conllu(path))
    if not sentences:
        raise BertScopeError(f"There is no sentence in {path}.")
    return sentences
