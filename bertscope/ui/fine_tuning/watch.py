"""Watching a fine-tuning run: the same view as on the Train page."""

from __future__ import annotations

from bertscope.ui import run_watch
from bertscope.ui.fine_tuning import empty, tuned_run
from bertscope.ui.selection import Choice

EXPLANATION = r"""
*Training* is the mean over the batches since the last point, *held out* the validation part. Dashed is
what always answering the commonest label of the training part reaches (of questions: never answering).
A checkpoint is saved with each validation; the best one is the one with the highest metric: accuracy;
where tags mark entities or questions are answered F1; where numbers are predicted Pearson's $r$. Dodge et
al. 2020 on how much the seed alone changes: try three.
"""


def show(main: Choice, other: Choice | None) -> None:
    run = tuned_run(main)
    if run is None:
        empty.needs(main, "watches a fine-tuning run; choose or start one")
        return
    run_watch.watch(run, tuned_run(other))
