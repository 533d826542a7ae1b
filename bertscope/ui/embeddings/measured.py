"""Measures of a sample of words at one or many checkpoints, kept or computed with a bar."""

from __future__ import annotations

from bertscope.analysis import timeline
from bertscope.errors import BertScopeError
from bertscope.ui import compared, frame, loaders, over_time, waiting
from bertscope.ui.embeddings import Look, figures, results
from bertscope.ui.selection import Choice
from bertscope.ui.text import shorten

MOST_CHECKPOINTS = 16


def sentences(rows: tuple[str, ...], whole: bool = False) -> tuple[tuple[str, ...], ...]:
    """A sample of the texts' words, a sentence each (a text each where ``whole``)."""
    def cut():
        from bertscope.analysis.word_geometry import sample
        from bertscope.corpus.sentences import split_sentences

        texts = rows if whole else (s for text in rows for s in split_sentences(text))
        return tuple(map(tuple, sample(texts)))

    return loaders.keep(("sentences", rows, whole), cut)


def table(path: str, found, only: str | None, progress=None, open_model=None):
    """``word_geometry.layer_table`` of a checkpoint, kept beside its run."""
    from bertscope.analysis import word_geometry
    from bertscope.analysis.kept import kept
    from bertscope.analysis.vectors import digest

    key = {"version": word_geometry.VERSION, "only": only and only.casefold(),
           "words": digest(["\n".join(words) for words in found])}
    return kept(path, "geometry", key, lambda model: word_geometry.layer_table(
        model, found, only, progress), open_model)


def tables(look: Look, found, only: str | None = None) -> list:
    """``[((choice, meaning), table)]`` of one or two checkpoints; empty while cancelled.

    Raises:
        BertScopeError: the first checkpoint has no such table.
    """
    def measured(choice: Choice, meaning: str):
        return waiting.kept(
            ("geometry", choice.path, loaders.stamp(choice.path), found, only),
            lambda progress: table(choice.path, found, only, progress, lambda path: loaders.model(choice)),
            "Measuring the words" + (" of the second checkpoint" if meaning == "other" else ""))

    return [((choice, meaning), own) for choice, meaning, own in compared.each(look.sides, measured)]


def together(made: list):
    """The tables of all checkpoints as one."""
    import pandas as pd

    return pd.concat([own.assign(checkpoint=choice.label) for (choice, _), own in made],
                     ignore_index=True)


def opened(path: str):
    """One of a run's checkpoints, which are asked together."""
    return loaders.one_of_many(path, loaders.stamp(path))


def chosen_steps(choice: Choice) -> list:
    """Checkpoints of the run, a bounded number, with the chosen one."""
    return timeline.sample(choice.run.checkpoints(), MOST_CHECKPOINTS, (choice.checkpoint.step,))


def tables_over_steps(choice: Choice, found):
    """One table for all chosen checkpoints of the run, with ``step``; None while cancelled."""
    import pandas as pd

    checkpoints = chosen_steps(choice)
    key = ("geometry steps", str(choice.run.path), choice.run.created,
           tuple(c.step for c in checkpoints), found)

    def compute(progress):
        made = over_time.each(checkpoints, lambda checkpoint: table(
            str(checkpoint.path), found, None, None, opened), progress)
        if not made:
            raise BertScopeError("None of these checkpoints can be measured.")
        return pd.concat([own.assign(step=step) for step, own in made], ignore_index=True)

    return waiting.kept(key, compute, "Measuring the words over the checkpoints")


def agreement_over_steps(look: Look, found, spans, label: str, nearest: int) -> None:
    """A heat map, layers × checkpoints: the share of same labels among the nearest uses."""
    import numpy as np

    from bertscope.analysis.embeddings import label_agreement

    choice, rows = look.chosen, found.rows
    checkpoints = chosen_steps(choice)
    key = ("agreement", str(choice.run.path), choice.run.created, rows, spans, label,
           tuple(c.step for c in checkpoints))
    labels = found.table[label].astype(str).to_numpy()

    def compute(progress):
        from bertscope.analysis.vectors import text_vectors

        def agreement(checkpoint):
            states = text_vectors(str(checkpoint.path), rows, spans, None, opened)
            keep = np.isfinite(states[0, :, 0])
            return [label_agreement(s[keep], labels[keep], nearest) for s in states]

        return over_time.each(checkpoints, agreement, progress)

    columns = waiting.kept(key, compute, "Asking the checkpoints")
    if not columns:
        return
    values = np.array([[share for share, _ in column] for _, column in columns]).T
    chance, steps = columns[0][1][0][1], [f"{step:,}" for step, _ in columns]
    figure = figures.heat(values, steps, [f"{i}" for i in range(len(values))],
                          f"Same {shorten(label, 30)} among the {nearest} nearest: chance, "
                          f"{chance:.0%}, has the page's colour", "training step", "layer", chance, 1.0, ".0%")
    frame.figure(figure, f"{choice.run.name}-uses-over-steps", "agreement_steps")
    import pandas as pd

    frame.download_csv(pd.DataFrame(values, columns=[step for step, _ in columns]).rename_axis("layer").reset_index(),
                       f"{choice.run.name}-uses-over-steps", key="agreement_csv")


def vectors_over_steps(choice: Choice, rows, at, layer: int):
    """``[(step, [N, H])]`` of one layer; None while cancelled."""
    checkpoints = chosen_steps(choice)
    key = ("steps vectors", str(choice.run.path), choice.run.created, rows, at, layer,
           tuple(c.step for c in checkpoints))
    return waiting.kept(key, lambda progress: results.steps_vectors(
        choice, checkpoints, rows, at, layer, progress), "Reading the texts over the checkpoints")
