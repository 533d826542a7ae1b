"""Probing results for the page: found in the cache, or computed with a bar and a way to cancel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import streamlit as st

from bertscope.ui import loaders
from bertscope.ui.selection import Choice

SIZES = {"2,000": (2000, 1000, 2000), "8,000": (8000, 2000, 4000), "30,000": (30_000, 5000, 10_000)}
#: Probing a model up to this many numbers per word takes seconds: it is done without being asked.
EASY = 1024


@st.cache_resource(max_entries=3, show_spinner="Reading the gold annotation …")
def gold(source: str, stamp: float):
    """``probing.data`` and the tasks that it can serve."""
    from bertscope.analysis import probing

    found = probing.data(source)
    return found, probing.available_tasks(found.sentences)


def stamp(source: str) -> float:
    """When a file or folder was last changed."""
    try:
        path = Path(source).expanduser()
        return max([path.stat().st_mtime, *(p.stat().st_mtime for p in path.glob("*.conllu"))])
    except OSError:
        return 0.0


@st.cache_resource(max_entries=3, show_spinner="Reading the file …")
def uploaded(name: str, data: bytes):
    """The same for an uploaded CoNLL-U file, split by document."""
    import tempfile

    from bertscope.analysis import probing

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "uploaded.conllu"
        path.write_bytes(data)
        found = replace(probing.data(path), name=Path(name).name)
    return found, probing.available_tasks(found.sentences)


def config(task: str, size: str, masked: bool, random_init: bool):
    from bertscope.analysis.probing import ProbeConfig

    train, valid, test = SIZES[size]
    return ProbeConfig(task=task, max_train=train, max_valid=valid, max_test=test,
                       masked=masked, random_init=random_init)


def _place(choice: Choice, data, asked):
    """(folder, key) of a result."""
    from bertscope.analysis.cache import analysis_folder
    from bertscope.analysis.probing import result_key

    more = {"step": choice.checkpoint.step if choice.checkpoint else None}
    return analysis_folder(choice.path), result_key(loaders.model(choice), data, asked, **more)


def kept(choice: Choice, data, asked):
    """The result if it is in the cache, else None."""
    folder, key = _place(choice, data, asked)

    def absent():
        raise LookupError

    from bertscope.analysis.cache import cached_frame

    try:
        return cached_frame(folder, "probe", key, absent)
    except LookupError:
        return None


def compute(choice: Choice, data, asked, progress: Callable[[str, float | None], None]):
    """Probe, and keep the result. A click anywhere interrupts it through ``progress``."""
    from bertscope.analysis.cache import cached_frame
    from bertscope.analysis.probing import probe

    folder, key = _place(choice, data, asked)
    return cached_frame(folder, "probe", key, lambda: probe(
        loaders.model(choice), data.train, data.valid, data.test, asked, progress).to_frame())


def over_checkpoints(choice: Choice, data, asked):
    """What is known of the run's other checkpoints: step, layer, accuracy; empty if only one is."""
    import pandas as pd

    from bertscope.analysis.cache import list_cached

    folder, key = _place(choice, data, asked)
    same = ("version", "data", "task", "max_train", "max_valid", "max_test", "seed",
            "pooling", "masked")
    saved = {c.step for c in choice.run.checkpoints()}
    found = {k["step"]: table for k, table in list_cached(folder, "probe")
             if k.get("step") in saved and all(k.get(name) == key[name] for name in same)}
    parts = [table[table.weights == "trained"].assign(step=step) for step, table in found.items()]
    return pd.concat(parts, ignore_index=True) if len(parts) > 1 else pd.DataFrame()
