"""The views of the Fine-tuning page, a module each with ``show(...)`` and an ``EXPLANATION``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from bertscope.runs import Run
from bertscope.ui import looking
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown

#: What the four tasks are called on the page, and what they are for.
TASKS = {
    "sentence": ("a label for a sentence", "one sentence, one label"),
    "pair": ("a label for a pair", "two texts, one label"),
    "tokens": ("a tag for each word", "who, what and where, word by word"),
    "question": ("an answer in a paragraph", "a question, and the words that answer it"),
}


@dataclass(frozen=True)
class Look:
    """What a view of a fine-tuned checkpoint is given.

    ``spec`` is its ``TaskSpec``; ``other`` the second checkpoint if it is fine-tuned for the same
    task and labels.
    """

    chosen: Choice
    other: Choice | None
    spec: Any

    @property
    def run(self) -> Run | None:
        """The fine-tuning run that the checkpoint is of."""
        return self.chosen.run

    @property
    def sides(self) -> list[tuple[Choice, str]]:
        """(choice, meaning of its colour) of one or two checkpoints."""
        return [(self.chosen, "main")] + ([(self.other, "other")] if self.other else [])


def about(look: Look, model) -> None:
    """What is being looked at. ``model`` is the checkpoint without its head, whose tensors are therefore
    no cause for a warning."""
    labels = f", {len(look.spec.labels):,} labels" if look.spec.labels else ""
    st.caption(f"{looking.summary(look.chosen, model)} · fine-tuned for {markdown(look.spec.task)}{labels}")


def tuned_run(choice: Choice | None) -> Run | None:
    """The fine-tuning run of a choice; None where it is none."""
    run = choice.run if choice else None
    return run if run is not None and run.kind == "finetuning" else None


#: Widgets whose values outlive a look at another view.
KEPT = ("try_label", "try_method", "try_word", "worth_which", "worth_log", "inside_vectors")


def keep_state() -> None:
    """Streamlit forgets a widget that one run of the script does not draw."""
    for key in list(st.session_state):
        if key in KEPT or str(key).startswith("ft."):
            st.session_state[key] = st.session_state[key]
