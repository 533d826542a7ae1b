"""What many processes must agree on before the loop begins."""

from __future__ import annotations

import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list

from bertscope import runs
from bertscope.config import RunConfig
from bertscope.errors import BertScopeError


def create_together(name: str | None, stem: str, config: RunConfig) -> runs.Run:
    """The first process creates the run, all learn its name (or why it could not be made).

    Raises:
        BertScopeError: as :func:`bertscope.runs.create_run`, on every process.
    """
    state = PartialState(cpu=not torch.accelerator.is_available())
    answer: list[object] = [None, None]
    if state.is_main_process:
        try:
            answer[0] = runs.create_run(name or runs.free_name(stem), config).name
        except BertScopeError as error:
            answer[1] = str(error)
    broadcast_object_list(answer)
    if answer[1]:
        raise BertScopeError(str(answer[1]))
    return runs.open_run(str(answer[0]))
