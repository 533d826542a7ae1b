"""User text made harmless before it is shown, and cut to a bound.

Streamlit's labels and messages are Markdown, Plotly's labels are a small HTML.
"""

from __future__ import annotations

import html as _html
import re

from bertscope.errors import BertScopeError

#: Longest text a page takes in one field; longer input is refused, never cut silently.
MAX_TEXT = 20_000
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def markdown(text: object) -> str:
    """``text`` as Markdown that shows exactly these characters, on one line."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(str(text).split()))


def plotly(text: object) -> str:
    """``text`` as a Plotly label that shows exactly these characters."""
    return _html.escape(str(text), quote=False)


def hover(text: str, width: int = 60, lines: int = 6) -> str:
    """``text`` for a Plotly hover box: wrapped at ``width``, cut after ``lines``, escaped."""
    import textwrap

    wrapped = textwrap.wrap(text[: width * lines * 2], width)
    if len(wrapped) > lines:
        wrapped = wrapped[:lines] + ["…"]
    return "<br>".join(plotly(line) for line in wrapped)


def shorten(text: str, length: int = 60) -> str:
    """At most ``length`` characters, the last one an ellipsis where something was cut."""
    return text if len(text) <= length else text[: length - 1] + "…"


def bounded(text: str | None, limit: int = MAX_TEXT, what: str = "The text") -> str:
    """The text, stripped.

    Raises:
        BertScopeError: it is longer than ``limit`` characters.
    """
    text = (text or "").strip()
    if len(text) > limit:
        raise BertScopeError(f"{what} has {len(text):,} characters; at most {limit:,} are taken.")
    return text
