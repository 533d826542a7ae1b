"""Studies for the page: from the disk, or computed with a bar and a way to cancel.

The engine keeps every task, checkpoint and seed beside its run as soon as it is done: what was
cancelled goes on where it stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import streamlit as st

from bertscope.ui import compared, loaders, waiting
from bertscope.ui.probing import data
from bertscope.ui.selection import Choice

#: Probing a model of up to this many numbers per word takes seconds: it is done unasked.
EASY = 1024
#: Seconds between two looks at the bar.
OFTEN = 0.15


class _Absent(Exception):
    """Something would have to be computed."""


def study(look, choices: Sequence[Choice], tasks: Sequence[str], asked, name: str,
          unasked: bool | None = None):
    """A ``probing.result.Result`` of some checkpoints and tasks; None while it is cancelled or waits
    for a click. Checkpoints are called by their labels in it.

    Args:
        name: what is computed, plain words; different for each call on a page.
        unasked: begin without a click; by default where it takes seconds.

    Raises:
        BertScopeError: the data do not serve a task, or a checkpoint cannot be read.
    """
    items = [data.items(look.source, task, asked.apart) for task in tasks]
    stamps = tuple((choice.label, choice.path, loaders.stamp(choice.path)) for choice in choices)
    key = ("probing", stamps, tuple(own.fingerprint for own in items), tuple(tasks), asked.protocol,
           asked.seeds)
    found = loaders.recent(key)
    if found is not None:
        return found
    begins = easy(look, choices[0]) if unasked is None else unasked
    if not begins:
        found = _on_disk(look, choices, items, asked)
        if found is not None:
            return loaders.keep(key, lambda: found)
        waits(key)
    return waiting.kept(key, lambda told: _study(look, choices, items, asked, seldom(told)), name)


def beside(look, tasks: Sequence[str], asked, name: str = ""):
    """The same of both checkpoints together, on the items that they share; None, with a sentence
    where there is something to say, where the second one gives nothing."""
    if look.other is None or look.other.label == look.chosen.label:
        return None
    with compared.aside(look.other):
        return study(look, [look.chosen, look.other], tasks, asked,
                     f"probes of {look.other.label}{name}")


def easy(look, choice: Choice) -> bool:
    """Whether it is quick enough to do unasked, and nothing is training beside it."""
    return look.model.hidden_size * (look.model.num_layers + 1) <= EASY and not choice.active


def waits(key: tuple) -> None:
    """What takes minutes begins on a click, the first time it is met."""
    met = st.session_state.setdefault("_probing_met", set())
    if key not in met:
        met.add(key)
        st.session_state.setdefault("_cancelled", set()).add(key)


def seldom(told: Callable) -> Callable:
    """``told``, but not so often that drawing the bar takes longer than the work."""
    last = 0.0

    def tell(message: str, share: float | None) -> None:
        nonlocal last
        if time.monotonic() - last >= OFTEN:
            told(message, share)
            last = time.monotonic()

    return tell


def _study(look, choices: Sequence[Choice], items, asked, told):
    from bertscope.analysis.probing.study import Subject, study

    subjects = [Subject(choice.label, choice.path, choice.checkpoint.step if choice.checkpoint
                        else None) for choice in choices]
    found = study(subjects, items, asked.protocol, asked.seeds, told, opener(look))
    found.request = _request(choices, items, asked)
    return found


def _request(choices, items, asked) -> dict:
    """What ``bertscope probe`` would have to be asked for the same."""
    from bertscope.analysis.probing.request import Request

    return Request(tuple(str(choice.path) for choice in choices), data.named(),
                   tuple(own.task for own in items), asked.protocol, asked.seeds,
                   apart=asked.apart).to_dict()


def _on_disk(look, choices, items, asked):
    """The study, if all of it is there; None else."""
    def told(message: str, share: float | None) -> None:
        if message != "done":
            raise _Absent

    with suppress(_Absent):
        return _study(look, choices, items, asked, told)
    return None


def opener(look) -> Callable:
    """Opens a checkpoint: those that the page looks at stay open, others of the run do if small."""
    shown = {choice.path: choice for choice in (look.chosen, look.other) if choice}

    def opened(path):
        if path in shown:
            return loaders.model(shown[path])
        return loaders.one_of_many(str(path), loaders.stamp(str(path)))

    return opened


def over_steps(look, tasks: Sequence[str], asked, most: int, unasked: bool, name: str):
    """The study of up to ``most`` of the run's checkpoints, the second one among them if it is of
    the same run."""
    from bertscope.analysis import timeline

    other = look.other
    same = [other.checkpoint.step] if other and other.run and other.checkpoint \
        and other.run.path == look.chosen.run.path else []
    saved = timeline.sample(look.chosen.run.checkpoints(), most, [look.chosen.checkpoint.step, *same])
    choices = [replace(look.chosen, checkpoint=checkpoint) for checkpoint in saved]
    return study(look, choices, tasks, asked, name, unasked)
