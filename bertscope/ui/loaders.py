"""Models and results that are kept between reruns. torch is imported by what these call."""

from __future__ import annotations

import importlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import streamlit as st

from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown

#: Vectors and maps of texts that are kept for all visitors.
MOST_RESULTS = 32


@st.cache_resource(show_spinner=False)
def warm_up() -> threading.Thread:
    """Import the slow libraries while the first page is being read."""
    def load() -> None:
        with suppress(Exception):  # a page that needs them will say what is wrong
            importlib.import_module("bertscope.analysis.activations")

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    return thread


def stamp(path: str) -> float:
    """When a checkpoint was last written; 0 for a hub name."""
    for name in ("model.safetensors", "config.json", ""):
        try:
            return (Path(path) / name).stat().st_mtime
        except OSError:
            continue
    return 0.0


@st.cache_resource(max_entries=4, show_spinner=False)
def _model(path: str, stamp: float):
    warm_up().join()  # transformers' lazy modules cannot be imported by two threads at once
    from bertscope.analysis.activations import load

    return load(path)


def model(choice: Choice):
    """The chosen checkpoint, opened once for all visitors.

    Raises:
        BertScopeError: it cannot be opened.
    """
    with st.spinner(f"Opening {markdown(choice.label)} …"):
        return _model(choice.path, stamp(choice.path))


@st.cache_data(max_entries=8, show_spinner=False)
def _metrics(path: str, stamp: float, size: int):
    from bertscope.runs import Run

    return Run(Path(path)).metrics()


def metrics(run) -> list[dict]:
    """The run's logged lines, read again only when the file has grown."""
    try:
        found = (run.path / "metrics.jsonl").stat()
    except OSError:
        return []
    return _metrics(str(run.path), found.st_mtime, found.st_size)


# -- answers at other checkpoints -------------------------------------------------------------


#: Checkpoints of at most this many bytes are kept open: sixteen of them are asked at every click.
SMALL = 24_000_000


@st.cache_resource(max_entries=40, show_spinner=False)
def _small_model(path: str, stamp: float):
    from bertscope.analysis.activations import load

    return load(path)


def one_of_many(path: str, stamp: float):
    """A checkpoint that is asked together with the others of its run.

    Raises:
        BertScopeError: it cannot be opened.
    """
    from bertscope.analysis.activations import load

    try:
        small = (Path(path) / "model.safetensors").stat().st_size <= SMALL
    except OSError:
        small = False
    return _small_model(path, stamp) if small else load(path)


@st.cache_data(max_entries=512, show_spinner=False)
def distribution(path: str, stamp: float, text: str, masked: tuple[int, ...], place: int):
    """P(piece) at one of the masked places by one checkpoint: float32 [V]."""
    import numpy as np

    from bertscope.analysis.activations import encode
    from bertscope.analysis.predictions import log_probabilities

    opened = one_of_many(path, stamp)
    found = log_probabilities(opened, encode(opened, text), masked)
    return np.exp(found[masked.index(place)]).astype(np.float32)


@st.cache_data(max_entries=512, show_spinner=False)
def p_replaced(path: str, stamp: float, text: str, ids: tuple[int, ...]):
    """P(replaced) of each piece by one ELECTRA checkpoint, for a text with other ids put into it."""
    import dataclasses

    import numpy as np

    from bertscope.analysis.activations import encode
    from bertscope.analysis.replaced import p_replaced

    opened = one_of_many(path, stamp)
    filled = dataclasses.replace(encode(opened, text), input_ids=np.array(ids))
    return p_replaced(opened, filled)


@st.cache_data(max_entries=2000, show_spinner=False)
def p_by_layer(path: str, stamp: float, a: str, b: str):
    """P(yes) of the head for pairs from each layer's [CLS] by one checkpoint: float32 [L + 1]."""
    from bertscope.analysis.activations import load
    from bertscope.analysis.pair_head import route

    return route(load(path), a, b).layers


@st.cache_data(max_entries=256, show_spinner=False)
def p_at_boundaries(path: str, stamp: float, sentences: tuple[str, ...], around: int):
    """P(what follows belongs there) at each boundary by one checkpoint: float64 [S - 1]."""
    from bertscope.analysis.activations import load
    from bertscope.analysis.boundaries import boundaries

    return boundaries(load(path), list(sentences), around).p_next


# -- what a run was fed ------------------------------------------------------------------------


@st.cache_resource(max_entries=4, show_spinner=False)
def _feed(path: str, created: float):
    warm_up().join()
    from bertscope.analysis.feeding import open_feed
    from bertscope.runs import Run

    return open_feed(Run(Path(path)))


def feed(run):
    """The run's corpus and examples, opened once for all visitors.

    Raises:
        BertScopeError: they are no longer there.
    """
    return _feed(str(run.path), run.created)


def exposure(run, step: int, progress=None):
    """``analysis.exposure.Exposure`` of the whole vocabulary: how often the run had seen each piece
    by a step, and had to predict it. The first look at a long run takes seconds.

    Raises:
        BertScopeError: the run's corpus is no longer there.
    """
    from bertscope.analysis.exposure import exposure as count

    return keep(("exposure", str(run.path), run.created, step),
                lambda: count(feed(run), step, progress))


# -- results that are kept ---------------------------------------------------------------------


#: A larger model is not tried out in the app's own process.
MOST_PARAMETERS = 150_000_000


@st.cache_data(max_entries=32, show_spinner="Taking a few steps …")
def cost(config):
    """``training.cost.plan`` of a configuration."""
    warm_up().join()
    from bertscope.training.cost import plan

    return plan(config, MOST_PARAMETERS)


@st.cache_resource(show_spinner=False)
def _recent() -> OrderedDict:
    """Results kept by hand: Streamlit's caches do not let a progress bar be drawn meanwhile."""
    return OrderedDict()


def recent(key: tuple):
    """What :func:`keep` has under this key, else None; it is then the last to be forgotten."""
    found = _recent().get(key)
    if found is not None:
        with suppress(KeyError):  # forgotten in this moment
            _recent().move_to_end(key)
    return found


def keep(key: tuple, compute: Callable[[], object]):
    """``compute()``, or what it gave for the same key not long ago; never None."""
    results, found = _recent(), recent(key)
    if found is None:
        found = results[key] = compute()
        while len(results) > MOST_RESULTS:
            results.popitem(last=False)
    return found
