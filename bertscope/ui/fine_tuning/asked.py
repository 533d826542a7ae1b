"""What the views ask of fine-tuned checkpoints and their runs, kept between reruns."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import islice

import streamlit as st

from bertscope import runs
from bertscope.durable import write_atomically
from bertscope.errors import BertScopeError
from bertscope.ui import loaders, waiting
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown

#: Words, and texts, of the training part up to which the linear model takes a few seconds.
FEW_WORDS, FEW_TEXTS = 30_000, 8000


@st.cache_data(max_entries=64, show_spinner=False)
def _spec(path: str, stamp: float):
    loaders.warm_up().join()
    from bertscope.finetuning.predict import task_of

    return task_of(path)


def spec(choice: Choice | None):
    """The ``TaskSpec`` of a checkpoint; None where it is not fine-tuned. Opens no weights."""
    if choice is None or choice.path is None:
        return None
    if choice.run is not None and choice.run.kind != "finetuning":
        return None
    return _spec(choice.path, loaders.stamp(choice.path))


@st.cache_resource(max_entries=4, show_spinner=False)
def _opened(path: str, stamp: float):
    loaders.warm_up().join()
    from bertscope.finetuning.predict import open_finetuned

    return open_finetuned(path)


def opened(choice: Choice):
    """The checkpoint with its head (``predict.Finetuned``), opened once for all visitors.

    Raises:
        BertScopeError: it cannot be opened.
    """
    with st.spinner(f"Opening {markdown(choice.label)} …"):
        return _opened(choice.path, loaders.stamp(choice.path))


@st.cache_resource(max_entries=24, show_spinner=False)
def small(path: str, stamp: float):
    """A checkpoint that is asked together with the others of its run.

    Raises:
        BertScopeError: it cannot be opened.
    """
    loaders.warm_up().join()
    from bertscope.finetuning.predict import open_finetuned

    return open_finetuned(path)


@st.cache_resource(max_entries=4, show_spinner="Reading the examples …")
def _data(path: str, created: float):
    from pathlib import Path

    from bertscope.finetuning.results import data_of

    return data_of(runs.Run(Path(path)))


def data(run):
    """The examples that a run was trained on.

    Raises:
        BertScopeError: they cannot be read, or are others by now.
    """
    return _data(str(run.path), run.created)


def outcome(choice: Choice, examples):
    """``outcome.Outcome`` of a checkpoint on the validation part of ``examples`` (a ``Dataset``); None
    while it is cancelled.

    Raises:
        BertScopeError: the checkpoint cannot be opened.
    """
    def compute(progress):
        from bertscope.finetuning.outcome import outcome as measure

        count = len(examples.valid)
        return measure(opened(choice), examples, "valid", lambda share: progress(
            f"{round(share * count):,} of {count:,} examples", share))

    key = ("finetuned outcome", choice.path, loaders.stamp(choice.path), examples.fingerprint)
    return waiting.kept(key, compute, f"Asking {choice.label}")


def linear(run, examples) -> dict[str, float] | None:
    """``baselines.linear`` of a run's examples, kept beside the run; None while it waits for a click."""
    place = run.analysis_path / f"linear-{examples.fingerprint}.json"
    key = ("linear baseline", examples.fingerprint)
    with suppress(OSError, ValueError):
        known = json.loads(place.read_text("utf-8"))
        if isinstance(known, dict):
            return known
    found = loaders.recent(key)
    if found is None:
        words = sum(len(e.words) for e in examples.train) if examples.task == "tokens" else 0
        if (words > FEW_WORDS or len(examples.train) > FEW_TEXTS) and not st.button(
                "Train the linear model too", icon=":material/play_arrow:", key="linear_go",
                help="A model of scikit-learn on the same parts, without any pretraining. With so "
                     "many examples it takes a minute or more."):
            return None
        from bertscope.finetuning import baselines

        with st.spinner("Training a linear model on the same examples …"):
            found = loaders.keep(key, lambda: baselines.linear(examples))
    with suppress(OSError):
        run.analysis_path.mkdir(exist_ok=True)
        write_atomically(place, json.dumps(found))
    return found


def tuned_runs(most: int) -> list:
    """The newest fine-tuning runs with a checkpoint. A run that cannot be read is left out."""
    def found():
        for run in runs.list_runs():
            with suppress(BertScopeError):
                if run.kind == "finetuning" and run.checkpoints():
                    yield run

    return list(islice(found(), most))
