"""Where a new fine-tuning run can begin, and how it is started."""

from __future__ import annotations

import json
from pathlib import Path

import streamlit as st

from bertscope import launch, runs
from bertscope.config import ModelConfig
from bertscope.finetuning.config import FinetuneConfig, random_weights
from bertscope.ui import loaders
from bertscope.ui.fine_tuning import tuned_run
from bertscope.ui.selection import Choice, parse_spec


def start(config: FinetuneConfig, name: str) -> None:
    """Make the run, start it in a process of its own, and show it; ends this run of the script.

    Raises:
        BertScopeError: the name is taken, or there is no checkpoint to begin with.
    """
    from bertscope.finetuning.launch import create

    with st.spinner("Starting …"):
        loaders.warm_up().join()  # two threads that import the same modules can lock each other out
        run = create(config, name)
        launch.start(run)
    st.session_state.update(_open_run=run.name, _open_view="Watch")  # before the next rerun's widgets
    st.rerun()


def starts(main: Choice, other: Choice | None) -> dict[str, str]:
    """Starting points as ``FinetuneConfig.start`` takes them, and what they are called."""
    found: dict[str, str] = {}
    shape_of = None
    if (run := tuned_run(main)) is not None:
        begun = str(run.config_record().get("start", {}).get("name", "random"))
        found[begun] = f"{begun}, where {run.name} began"
        if begun.partition(":")[0] != "random":
            shape_of = begun
    elif main.path is not None:
        shape_of = main.name
    for choice in (main, other):
        if choice is not None and choice.path is not None:
            more = ", fine-tuned already" if tuned_run(choice) else ""
            found.setdefault(named(choice), choice.label + more)
    if shape_of is not None:
        found[random_of(shape_of)] = f"random weights in the shape of {parse_spec(shape_of)[0]}"
    found.setdefault("random", "a tiny BERT of random weights, with a vocabulary of the examples")
    return found


def named(choice: Choice) -> str:
    """A checkpoint as the command line takes it after ``--from``."""
    return f"{choice.run.name}@{choice.checkpoint.step}" if choice.run else choice.name


def random_of(start: str) -> str:
    """Random weights in the shape of a starting point, whatever its step."""
    return start if start.partition(":")[0] == "random" else f"random:{parse_spec(start)[0]}"


def shape(start: str) -> tuple[int, int]:
    """Width and layers of a starting point; a base model's where they are not known."""
    _, name = random_weights(start)
    if not name:
        return ModelConfig().hidden_size, ModelConfig().num_hidden_layers
    try:
        values = json.loads((Path(runs.find_checkpoint(name)) / "config.json").read_text("utf-8"))
        return int(values["hidden_size"]), int(values["num_hidden_layers"])
    except (OSError, ValueError, KeyError, TypeError):
        return 768, 12
