"""Two checkpoints side by side: where the second one has no answer, the first is shown alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import Any

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown


@contextmanager
def aside(choice: Choice, meaning: str = "other"):
    """What fails within becomes a sentence that names the checkpoint, and the view goes on without it.

    Args:
        meaning: ``main`` for the chosen checkpoint, whose error ends the view.
    """
    try:
        yield
    except BertScopeError as error:
        if meaning == "main":
            raise
        warn(choice, error)


def warn(choice: Choice, reason) -> None:
    """Why a checkpoint is not shown."""
    st.warning(f"{markdown(choice.label)}: {markdown(reason)}", icon=":material/compare:")


def each(sides: Iterable[tuple[Choice, str]], compute: Callable[[Choice, str], Any]
         ) -> list[tuple[Choice, str, Any]]:
    """``(choice, meaning, compute(choice, meaning))`` of one or two checkpoints, the chosen one first.

    None means that an answer was cancelled or waits to be asked for: what comes after it is not computed.

    Raises:
        BertScopeError: the chosen checkpoint has no answer; of the second one that is only said.
    """
    found = []
    for choice, meaning in sides:
        with aside(choice, meaning):
            answer = compute(choice, meaning)
            if answer is None:
                break
            found.append((choice, meaning, answer))
    return found
