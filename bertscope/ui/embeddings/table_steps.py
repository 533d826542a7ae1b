"""The input tables at the run's other checkpoints."""

from __future__ import annotations

from bertscope.ui import loaders, over_time, waiting
from bertscope.ui.embeddings import Look, measured


def asked(look: Look, what: str, key: tuple, ask):
    """A DataFrame of the rows ``ask(model, step)`` for the run's checkpoints; None while cancelled."""
    import pandas as pd

    run, checkpoints = look.chosen.run, measured.chosen_steps(look.chosen)

    def compute(progress):
        def rows(checkpoint):
            path = str(checkpoint.path)
            return ask(loaders.one_of_many(path, loaders.stamp(path)), checkpoint.step)

        return pd.DataFrame([row for _, made in over_time.each(checkpoints, rows, progress) for row in made])

    return waiting.kept(("input tables", what, str(run.path), run.created, key,
                         tuple(c.step for c in checkpoints)), compute, f"Asking for {what}")


def marks(look: Look) -> list[tuple[int, str]]:
    """The steps of this run that are looked at."""
    return [(choice.checkpoint.step, meaning) for choice, meaning in look.sides
            if choice.run is not None and choice.run.path == look.chosen.run.path]
