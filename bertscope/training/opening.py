"""From a run to the work that it is: the one place that knows both kinds."""

from __future__ import annotations

from bertscope.runs import Run
from bertscope.training.work import Progress, Work


def open_work(run: Run, progress: Progress) -> Work:
    """Prepare what the run trains; ``progress(message, fraction)`` hears how that goes on.

    Raises:
        BertScopeError: the data, the settings or the weights it begins with cannot be used.
    """
    if run.kind == "finetuning":
        from bertscope.finetuning.work import Finetuning

        return Finetuning(run, progress)
    from bertscope.training.pretraining import Pretraining

    return Pretraining(run, progress)
