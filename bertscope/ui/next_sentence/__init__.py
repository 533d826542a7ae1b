"""The views of the Next sentence page, a module each with one function ``show(look)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from bertscope.ui import compared, loaders
from bertscope.ui.selection import Choice


@dataclass(frozen=True)
class Look:
    """What a view is given: the checkpoint, opened, with the question that its head answers, and
    the second one where it has a head for pairs too (else ``other`` and what belongs to it are
    None)."""

    chosen: Choice
    model: Any
    question: Any
    other: Choice | None = None
    other_model: Any = None
    other_question: Any = None

    @property
    def sides(self) -> list[tuple[Choice, Any, Any, str]]:
        """(choice, model, question, meaning of its colour), of one or two checkpoints."""
        found = [(self.chosen, self.model, self.question, "main")]
        if self.other:
            found.append((self.other, self.other_model, self.other_question, "other"))
        return found


#: Widgets of the views whose values outlive a look at another view.
KEPT = ("a", "b", "document", "docs", "each", "places", "draw", "kind", "around")


def keep_state() -> None:
    """Streamlit forgets a widget that one run of the script does not draw."""
    for key in KEPT:
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]


def open_both(chosen: Choice, other: Choice | None) -> Look:
    """Open the checkpoints; a second one without a head for pairs is left out with a sentence.

    Raises:
        BertScopeError: the first one cannot be opened or has no such head.
    """
    model = loaders.model(chosen)
    from bertscope.analysis.pair_head import question

    look = Look(chosen, model, question(model))
    if other is None:
        return look
    with compared.aside(other):
        second = loaders.model(other)
        return Look(chosen, model, look.question, other, second, question(second))
    return look


def verdict(question, p: float) -> str:
    """One line, as Markdown, that says what the number means; never a bare label."""
    percent = f"{p:.1%}" if 0.0005 < p < 0.9995 else "under 0.1%" if p < 0.5 else "over 99.9%"
    if 0.4 < p < 0.6:
        said = "it cannot tell"
    else:
        sure = "is sure" if abs(p - 0.5) > 0.4 else "thinks"
        said = f"it {sure} that {question.yes if p > 0.5 else question.no}"
    return f"##### “{question.yes}”: {percent} :gray[· {said}]"
