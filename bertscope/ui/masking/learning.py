"""The time axis of an example: its loss, and the lengths of its vectors, at the run's checkpoints."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import frame, over_time, theme
from bertscope.ui.masking import Look, curves, reading


@st.cache_data(max_entries=512, show_spinner=False)
def _at(path: str, stamp: float, ids: tuple[int, ...], types: tuple[int, ...],
        shown: tuple[int, ...], _row, causal: bool):
    """(loss or None, lengths or None) by one checkpoint."""
    from bertscope.analysis.activations import load
    from bertscope.analysis.input_embeddings import input_embeddings
    from bertscope.analysis.place_losses import mean_loss, place_losses

    def asked(question):
        try:
            return question()
        except BertScopeError:  # no such head, or another kind of input
            return None

    model, generator = load(path), Path(path) / "generator"
    reader = load(generator) if generator.is_dir() else model
    return (asked(lambda: mean_loss(place_losses(reader, [_row], causal))),
            asked(lambda: input_embeddings(model, _row.ids, _row.token_type_ids).lengths()))


def show(look: Look, row) -> None:
    """Two curves, side by side."""
    import pandas as pd

    if not over_time.wanted(look.chosen):
        return
    key = tuple(tuple(a.tolist()) for a in (row.ids, row.token_type_ids, row.shown))
    causal = reading.recipe(look.chosen) == "causal"
    answers = over_time.ask(look.chosen,
                            lambda path, stamp: _at(path, stamp, *key, row, causal))
    losses = pd.DataFrame([{"step": step, "of": "loss", "value": loss}
                           for step, (loss, _) in answers if loss is not None and loss == loss])
    lengths = pd.DataFrame([{"step": step, "of": name, "value": value}
                            for step, (_, found) in answers for name, value in (found or {}).items()])
    marks = marked(look)
    for column, table, title in zip(frame.beside(2, "learning"), (losses, lengths), (
            "Loss of this example, by each checkpoint (nats)", "Mean length of its vectors")):
        if table.empty:
            continue
        order = list(dict.fromkeys(table["of"]))
        colours = [theme.colour("main")] if len(order) == 1 else \
            [*theme.categories(5)[2:len(order) + 1], theme.colour("text")]
        column.altair_chart(curves.lines(table, "value", "of", order, title, marks, colours=colours),
                            key=f"learning_{order[0]}", width="stretch")
    frame.download_csv(pd.concat([losses, lengths]), f"{look.chosen.run.name}-example-over-steps")


def marked(look: Look) -> list[tuple[int, str]]:
    """Vertical lines at the chosen checkpoint, and at the second one where it is of the same run."""
    other = look.other
    same = other and other.run and other.checkpoint and other.run.name == look.chosen.run.name
    return [(look.chosen.checkpoint.step, "main")] + (
        [(other.checkpoint.step, "other")] if same else [])
