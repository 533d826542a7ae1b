"""From a corpus's name to its tokenizer and token store, built once and then re-used.

Under the folder of all runs::

    .corpora/<fingerprint>/tokenizer/   a tokenizer directory
    .corpora/<fingerprint>/store/       a token store
    .corpora/pydocs-<key>.jsonl         the result of the slow scan for ``pydocs``

Each appears by a rename, under a lock: two processes that want the same corpus build it once.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from bertscope.config import CorpusConfig
from bertscope.corpus.files import readable
from bertscope.corpus.sources import (
    Document,
    documents,
    source_bytes,
    source_fingerprint,
)
from bertscope.corpus.store import SINGLE_DOCUMENT, TokenStore, build_store
from bertscope.corpus.tokenizer import open_tokenizer, train_tokenizer
from bertscope.durable import published
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

#: Raise it when the same text would give other ids or another store.
FORMAT = 2
#: A vocabulary is learnt from so many bytes at most, from documents all over the corpus,
VOCABULARY_BYTES = 256 << 20
#: and from so many documents of miniworld, which are all alike and slow to write.
VOCABULARY_MINIWORLD = 3000
#: Seconds between two calls of the caller's progress function.
REPORT_EVERY = 0.2

Progress = Callable[[str, float | None], None]
_in_this_process = threading.Lock()  # lockf does not hold back threads of one process


@dataclass(frozen=True)
class Prepared:
    """A corpus ready for training: its folder, tokenizer and token store."""

    path: Path
    tokenizer: PreTrainedTokenizerBase
    store: TokenStore
    fingerprint: str


def prepare(config: CorpusConfig, root: Path, progress: Progress | None = None) -> Prepared:
    """The corpus of ``config``, from ``root/.corpora`` or built there.

    ``progress(message, fraction)`` is called a few times a second; the fraction runs from 0 to 1
    in each of the two stages, training the tokenizer and writing the store.

    Raises:
        BertScopeError: the corpus or the tokenizer cannot be used, or it is a single document.
    """
    progress = progress or (lambda message, fraction: None)
    home = Path(root) / ".corpora" / fingerprint(config)
    try:
        with _one_thread(progress):
            if (found := _open(home)) is None:
                with _only_one(home, progress):
                    if (found := _open(home)) is None:  # no other process was faster
                        with published(home) as scratch:
                            _build(config, scratch, home.parent, progress)
                        found = _open(home)
    except OSError as error:
        raise BertScopeError(f"The corpus cannot be prepared in {home.parent}: "
                             f"{error.strerror or error}.") from None
    if found is None:
        raise BertScopeError(f"The corpus that was just prepared in {home} cannot be opened.")
    return found


def fingerprint(config: CorpusConfig) -> str:
    """24 hex digits that change when the ids or the store would.

    The held-out share is not part of it: it divides the documents, and changes none.
    """
    if config.tokenizer:
        pieces: object = _tokenizer_digest(Path(config.tokenizer))
    else:
        pieces = [config.vocab_size, config.lowercase]
    state = [FORMAT, source_fingerprint(config.source, config.documents), pieces]
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()[:24]


def _tokenizer_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    if not folder.is_dir():
        raise BertScopeError(f"There is no tokenizer folder called {str(folder)!r}.")
    with readable(folder):
        for file in sorted(folder.iterdir()):
            if file.is_file() and file.suffix not in (".safetensors", ".bin", ".pt"):
                digest.update(f"{file.name}\0{file.stat().st_size}\0".encode("utf-8", "replace"))
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _open(home: Path) -> Prepared | None:
    """What was built before; None when it is not there or damaged."""
    try:
        return Prepared(home, open_tokenizer(home / "tokenizer"), TokenStore(home / "store"),
                        home.name)
    except BertScopeError:
        return None


def _build(config: CorpusConfig, scratch: Path, corpora: Path, progress: Progress) -> None:
    stage = _Stage(progress)
    source = config.source
    if source == "pydocs":
        source = str(_pydocs(corpora, stage))

    def read(limit: int | None = None) -> Iterator[Document]:
        return documents(source, limit or config.documents, stage.reading)

    if len(list(islice(read(), 2))) < 2:
        raise BertScopeError(SINGLE_DOCUMENT)
    if config.tokenizer:
        tokenizer = open_tokenizer(config.tokenizer)
    else:
        stage.label = "learning the vocabulary"
        tokenizer = train_tokenizer(_sample(read(), source), config.vocab_size, config.lowercase)
        if len(tokenizer) < config.vocab_size:
            stage.notice(f"The text is too small for {config.vocab_size:,} word pieces; "
                         f"the vocabulary has {len(tokenizer):,}.")
    tokenizer.save_pretrained(scratch / "tokenizer")
    tokenizer = open_tokenizer(scratch / "tokenizer")  # whose ids every later reader will get
    stage.label = "writing the token store"
    store = build_store(read(), tokenizer, scratch / "store", stage.writing, stage.notices)
    if store.documents < 2:
        raise BertScopeError(SINGLE_DOCUMENT)


def _sample(docs: Iterator[Document], source: str) -> Iterator[str]:
    """Sentences to learn a vocabulary from: all, or of every n-th document where that is a lot."""
    stride = 1 + source_bytes(source) // VOCABULARY_BYTES
    end = VOCABULARY_MINIWORLD if source == "miniworld" else None
    return (sentence for document in islice(docs, 0, end, stride)
            for sentence in document.sentences)


def _pydocs(corpora: Path, stage: _Stage) -> Path:
    """The scan's result as JSON lines, made once per set of installed packages."""
    key = hashlib.sha256(source_fingerprint("pydocs").encode()).hexdigest()[:16]
    path = corpora / f"pydocs-{key}.jsonl"
    with _only_one(path, stage.progress):
        if not path.exists():
            stage.label = "scanning the installed documentation, once"
            scratch = path.with_name(f".{path.name}.{os.getpid()}.partial")
            with open(scratch, "w", encoding="utf-8") as handle:
                for document in documents("pydocs", progress=stage.reading):
                    text = "\n".join(document.sentences)
                    handle.write(json.dumps({"text": text, **document.meta}) + "\n")
            os.replace(scratch, path)
    return path


class _Stage:
    """Joins what the source and the store report, at most a few times a second."""

    def __init__(self, progress: Progress):
        self.progress = progress
        self.label, self.detail = "reading the corpus", ""
        self.fraction: float | None = None
        self.notices: list[str] = []
        self.next = 0.0

    def reading(self, message: str, fraction: float | None) -> None:
        if fraction is None:
            self.notice(message)
        else:
            self.fraction, self.detail = fraction, message
            self._report()

    def writing(self, message: str, fraction: float | None) -> None:
        self.detail = message
        self._report()

    def notice(self, sentence: str) -> None:
        if sentence not in self.notices:  # the text is read more than once
            self.notices.append(sentence)
            self.progress(sentence, None)

    def _report(self) -> None:
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + REPORT_EVERY
            self.progress(f"{self.label}: {self.detail}", self.fraction)


@contextmanager
def _one_thread(progress: Progress):
    """Hold the lock of this process; who waits for it tells so, and can be stopped meanwhile."""
    while not _in_this_process.acquire(timeout=REPORT_EVERY):
        progress("another corpus is being prepared; waiting for it", None)
    try:
        yield
    finally:
        _in_this_process.release()


@contextmanager
def _only_one(target: Path, progress: Progress):
    """Hold ``target``'s lock; a second process waits. What a killed one left is removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = target.with_name(f".{target.name}.lock")
    with open(lock, "a+") as handle:
        while True:
            try:
                fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                progress("another process is preparing this corpus; waiting for it", None)
                time.sleep(REPORT_EVERY)
        for left in target.parent.glob(f".{target.name}.*.partial"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        yield
