"""English that every installation has: the reference topics of Python and the installed docstrings.

Modules are parsed, never imported. Of each docstring the prose paragraphs are kept; parameter
tables, code, doctests, lists and markup are not. One module is one document, its docstrings in
the order of the source: neighbouring docstrings are about one thing, and most alone are too short
to have a next sentence.
"""

from __future__ import annotations

import ast
import importlib.metadata
import re
import warnings
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

from bertscope.corpus.document import Collector, Document
from bertscope.errors import BertScopeError

#: Raise it when the filter changes, so that cached scans are made again.
VERSION = 1
#: Source files larger than this many bytes are tables or generated code.
LARGEST_FILE = 2_000_000
FEWEST_WORDS = 8

_SPACE = re.compile(r"\s+")
_MARKUP = [  # in this order: what it looks like, what remains of it
    (re.compile(r"\[[\w#*]+\]_+"), ""),                                # footnote [1]_
    (re.compile(r":[\w:+.-]+:`[!~]?(?:[^`<]*[. ])?([^`<.]+?)(?: *<[^`>]*>)?`"), r"\1"),  # role
    (re.compile(r"`([^`<]+?)\s*<[^`>]+>`_{1,2}"), r"\1"),              # link with its address
    (re.compile(r"\[([^\]]+)\]\([^)]*\)"), r"\1"),                     # Markdown link
    (re.compile(r"`{1,2}([^`]+)`{1,2}_{0,2}"), r"\1"),                 # code, reference
    (re.compile(r"\*{1,2}(\w[^*]*?)\*{1,2}"), r"\1"),                  # emphasis
]
#: A paragraph is no prose if one of its lines begins like a list, a table, code, a heading ...
_NO_PROSE_LINE = re.compile(
    r"\s*(>>>|\.\.|:\w|@|[|+*#$%~>=•-]|\d+[.):]|\(?\w\)|\w+ *:( |$)|\w+(, \w+)* : |[-=~^\"'`]{3,})")
_SYMBOLS = re.compile(r"[^A-Za-z\s.,;:'\"()?!-]")
_IDENTIFIER = re.compile(r"\w*_\w*|\w+\.\w+|\w+\(|[a-z]+[A-Z]\w*")


def distributions() -> list[tuple[str, str]]:
    """Installed distributions as sorted ``(name, version)``: what a scan depends on."""
    found = {(d.metadata["Name"] or "", d.version or "")
             for d in importlib.metadata.distributions()}
    return sorted(pair for pair in found if pair[0])


def read_pydocs(progress=None) -> Iterator[Document]:
    """Documents with ``meta`` ``package`` and ``module``; a paragraph met before is left out.

    A scan of a usual installation takes a minute or two; ``progress`` gets its fraction.
    """
    seen: set[int] = set()
    yield from _topics(seen)
    files = _source_files()
    for number, (package, module, path) in enumerate(files):
        if progress and number % 50 == 0:
            progress(f"reading the docstrings of {package}", number / len(files))
        document = _collect(_module_docstrings(path), {"package": package, "module": module}, seen)
        yield from document


def _topics(seen: set[int]) -> Iterator[Document]:
    from pydoc_data.topics import topics

    for topic in sorted(topics):
        yield from _collect([topics[topic]], {"package": "python", "module": topic}, seen)


def _collect(docstrings, meta: dict, seen: set[int]) -> Iterator[Document]:
    collector = Collector(meta)
    for docstring in docstrings:
        for paragraph in prose(docstring):
            if hash(paragraph) not in seen:
                seen.add(hash(paragraph))
                yield from collector.add(paragraph)
    yield from collector.end()


def _source_files() -> list[tuple[str, str, Path]]:
    """``(distribution, dotted module, path)`` of every installed source file, sorted."""
    found = {}
    for distribution in importlib.metadata.distributions():
        package = distribution.metadata["Name"] or ""
        for file in distribution.files or []:
            parts = file.parts
            if file.suffix == ".py" and ".." not in parts and not {"tests", "test"} & set(parts):
                found[str(file)] = (package, ".".join(file.with_suffix("").parts),
                                    Path(distribution.locate_file(file)))
    if not found:
        raise BertScopeError("No installed package with documentation was found.")
    return sorted(found.values())


def _module_docstrings(path: Path) -> Iterator[str]:
    """Docstrings of the module, its classes and functions, in the order of the source."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            return
        source = path.read_bytes()
        if b'"""' not in source and b"'''" not in source:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings
            tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        first = body[0].value if body and isinstance(body[0], ast.Expr) else None
        if (isinstance(first, ast.Constant) and isinstance(first.value, str)
                and not isinstance(node, (ast.If, ast.With, ast.For, ast.While, ast.Try))):
            yield first.value
        waiting += reversed([child for child in body if hasattr(child, "body")])


def prose(docstring: str) -> Iterator[str]:
    """The paragraphs of running text in a docstring, each on one line and without markup.

    >>> list(prose("Return the *sum*.\\n\\n    x : int\\n\\nThe two numbers are added with "
    ...            "``operator.add`` and nothing else happens.\\n"))
    ['The two numbers are added with operator.add and nothing else happens.']
    """
    for lines in _runs(cleandoc(docstring.expandtabs())):
        if any(map(_NO_PROSE_LINE.match, lines)):
            continue
        text = _SPACE.sub(" ", " ".join(lines)).strip()
        for pattern, remains in _MARKUP:
            text = pattern.sub(remains, text)
        text = _SPACE.sub(" ", text).replace(" .", ".").replace(" ,", ",")
        if _reads_as_prose(text):
            yield text


def _runs(docstring: str) -> Iterator[list[str]]:
    """Neighbouring lines with the same indentation: a description stands under its parameter."""
    run: list[str] = []
    depth = -1
    for line in docstring.split("\n"):
        stripped = line.lstrip()
        indentation = len(line) - len(stripped) if stripped else -1
        if indentation != depth:
            yield run
            run, depth = [], indentation
        if stripped:
            run.append(stripped)
    yield run


def _reads_as_prose(text: str) -> bool:
    words = text.split()
    return (len(words) >= FEWEST_WORDS
            and text[0].isupper() and text[-1] in ".!?" and not text.endswith("..")
            and "::" not in text and " .. " not in text
            and len(_SYMBOLS.findall(text)) <= 0.03 * len(text)
            and len(_IDENTIFIER.findall(text)) <= 0.12 * len(words)
            and sum(map(str.isalpha, text)) >= 0.7 * len(text)
            and max(map(len, words)) <= 40)
