"""Which model reads the examples: the checkpoint itself, or the part of it that fills masks."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import loaders
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown


def recipe(choice: Choice) -> str:
    """The run's recipe; ``""`` for checkpoints of others."""
    try:
        return choice.run.config().recipe if choice.run else ""
    except BertScopeError:
        return ""


def reader(choice: Choice):
    """(model, causal): ELECTRA's masks are filled by its generator.

    Raises:
        BertScopeError: it cannot be opened.
    """
    kind = recipe(choice)
    if kind == "electra" and choice.path and (Path(choice.path) / "generator").is_dir():
        choice = Choice(str(Path(choice.path) / "generator"))
    return loaders.model(choice), kind == "causal"


def losses(choice: Choice, rows, tokenizer, progress=None):
    """``place_losses`` of the rows, None (and a sentence) where the checkpoint cannot give them.

    Args:
        tokenizer: what the rows' pieces are of; another vocabulary cannot read them.
    """
    from bertscope.analysis.place_losses import place_losses

    try:
        model, causal = reader(choice)
        if tokenizer is not model.tokenizer and tokenizer.get_vocab() != model.tokenizer.get_vocab():
            raise BertScopeError("its vocabulary is another one, so it cannot read these pieces.")
        return place_losses(model, rows, causal, progress)
    except BertScopeError as error:
        st.caption(f":material/info: No loss by {markdown(choice.label)}: {markdown(error)}")
        return None
