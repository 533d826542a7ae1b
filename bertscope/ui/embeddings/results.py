"""Vectors and maps for the page: from the disk, or computed with a bar and a way to cancel."""

from __future__ import annotations

from bertscope.ui import loaders, waiting
from bertscope.ui.selection import Choice


def vectors(choice: Choice, rows: tuple[str, ...], at, name: str = ""):
    """float32 [L+1, N, H] of a checkpoint, NaN where a text has no such place; None while it is
    cancelled.

    Args:
        at: a ``vectors.Place``, or a tuple of spans.
        name: which of several on the page this is.

    Raises:
        BertScopeError: see ``vectors.text_vectors``.
    """
    from bertscope.analysis.vectors import text_vectors

    key = ("vectors", choice.path, loaders.stamp(choice.path), rows, at)
    return waiting.kept(key, lambda progress: text_vectors(
        choice.path, rows, at, progress, lambda path: loaders.model(choice)),
        f"Reading the texts{name}")


def steps_vectors(choice: Choice, checkpoints, rows: tuple[str, ...], at, layer: int, progress):
    """``[(step, float32 [N, H])]`` of one layer at some checkpoints of a run. One that cannot be
    read is left out.

    Args:
        progress: is told of the texts at each checkpoint; what it raises cancels.
    """
    from bertscope.analysis.vectors import text_vectors
    from bertscope.errors import BertScopeError

    found = []
    for number, checkpoint in enumerate(checkpoints):
        path = str(checkpoint.path)

        def told(message, share, number=number, checkpoint=checkpoint):
            progress(f"step {checkpoint.step:,}: {message}",
                     (number + (share or 0.0)) / len(checkpoints))

        told("opening", 0.0)
        try:
            states = text_vectors(path, rows, at, told,
                                  lambda p: loaders.one_of_many(p, loaders.stamp(p)))
        except BertScopeError:
            continue
        found.append((checkpoint.step, states[min(layer, len(states) - 1)]))
    return found


def projection(choice: Choice, rows, at, layer: int, method: str, dimensions: int, states, keep,
               name: str = ""):
    """``embeddings.Projection`` of the rows ``keep`` (bool [N]); None while it is cancelled.

    Raises:
        BertScopeError: see ``embeddings.project``.
    """
    from bertscope.analysis.embeddings import project

    key = ("projection", choice.path, loaders.stamp(choice.path), rows, at, layer, method,
           dimensions, keep.tobytes())
    return waiting.kept(key, lambda progress: project(
        states[layer][keep], method, dimensions, progress=progress), f"Drawing the map{name}")
