"""The four tasks: from examples to features, from logits to a loss, to answers and to metrics."""

from __future__ import annotations

from bertscope.finetuning.tasks.labels import LabelTask
from bertscope.finetuning.tasks.question import QuestionTask, Span
from bertscope.finetuning.tasks.spec import TaskSpec
from bertscope.finetuning.tasks.tokens import TokensTask

__all__ = ["LabelTask", "QuestionTask", "Span", "TaskSpec", "TokensTask", "build_task"]

Task = LabelTask | TokensTask | QuestionTask


def build_task(spec: TaskSpec, cutter) -> Task:
    """The task of this kind, in the pieces of one tokenizer."""
    kind = {"tokens": TokensTask, "question": QuestionTask}.get(spec.task, LabelTask)
    return kind(spec, cutter)
