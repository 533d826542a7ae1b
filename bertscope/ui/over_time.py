"""The time axis of a page: the same question at the run's other checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import streamlit as st

from bertscope.analysis import timeline
from bertscope.errors import BertScopeError
from bertscope.ui import loaders
from bertscope.ui.selection import Choice

MOST_CHECKPOINTS = 16
#: Above this many parameters the curve is drawn on request only.
EASY = 20_000_000


def wanted(choice: Choice) -> bool:
    """The switch; on by itself where loading the checkpoints is a matter of a second or two."""
    try:
        parameters = choice.run.config_record().get("parameters") or 0
    except BertScopeError:
        parameters = 0
    return st.toggle("Show how this was learnt, over the checkpoints", key="over_time",
                     value=isinstance(parameters, int) and parameters <= EASY,
                     help=f"Asks up to {MOST_CHECKPOINTS} of the run's checkpoints.")


def each(checkpoints: Sequence, question: Callable, progress: Callable[[str, float], None]
         ) -> list[tuple[int, object]]:
    """``[(step, question(checkpoint))]``, within a computation that tells how far it is.

    A checkpoint that is damaged, or was deleted meanwhile, is left out: the others are drawn.
    """
    def one(checkpoint):
        with suppress(BertScopeError):
            return question(checkpoint)

    return [(step, answer) for step, answer in timeline.over_checkpoints(checkpoints, one, progress)
            if answer is not None]


def ask(choice: Choice, question: Callable[[str, float], object], also: Sequence[int] = (),
        ) -> list[tuple[int, object]]:
    """``[(step, question(path, stamp))]`` for a bounded number of the run's checkpoints.

    ``question`` keeps its answers, so a second look, or a checkpoint that was just saved, costs
    only what is new. A checkpoint that cannot be read is left out, and said so.
    """
    chosen = timeline.sample(choice.run.checkpoints(), MOST_CHECKPOINTS,
                             (choice.checkpoint.step, *also))
    bar, damaged = st.empty(), []

    def one(checkpoint):
        path = choice.folder(checkpoint)
        try:
            return question(path, loaders.stamp(path))
        except BertScopeError:
            damaged.append(checkpoint.step)
            return None

    answers = timeline.over_checkpoints(
        chosen, one, lambda message, fraction: bar.progress(fraction or 0.0, text=message))
    bar.empty()
    if damaged:
        st.caption("Left out, because they cannot be read: step "
                   + ", ".join(f"{step:,}" for step in damaged) + ".")
    return [(step, answer) for step, answer in answers if answer is not None]
