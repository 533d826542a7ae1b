"""Models and results that are kept between reruns. torch is imported by what these call."""

from __future__ import annotations

import threading
from pathlib import Path

import streamlit as st

from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown


@st.cache_resource(show_spinner=False)
def warm_up() -> threading.Thread:
    """Import the slow libraries while the first page is being read."""
    def load() -> None:
        import torch  # noqa: F401
        import transformers.models.bert.modeling_bert  # noqa: F401

        import bertscope.analysis.activations  # noqa: F401

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
