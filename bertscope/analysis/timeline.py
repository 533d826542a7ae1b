"""The same question put to a run's checkpoints, one after the other: how an answer was learnt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from bertscope.runs import Checkpoint

Answer = TypeVar("Answer")


def sample(checkpoints: Sequence[Checkpoint], most: int = 16,
           always: Sequence[int] = ()) -> list[Checkpoint]:
    """At most ``most`` checkpoints, evenly among those saved, with the first, the last and the
    steps in ``always``. Checkpoints are saved densely early on, so even ranks are denser there.
    """
    if len(checkpoints) <= most:
        return list(checkpoints)
    last = len(checkpoints) - 1
    wanted = {step for step in always}
    kept = {i for i, c in enumerate(checkpoints) if c.step in wanted} | {0, last}
    evenly = [round(i * last / (most - 1)) for i in range(most)]
    # Fill the places that are left with the even ranks that are farthest from what is kept.
    while len(kept) < most:
        free = [i for i in evenly if i not in kept] or [i for i in range(last) if i not in kept]
        kept.add(max(free, key=lambda i: (min(abs(i - k) for k in kept), -i)))
    return [checkpoints[i] for i in sorted(kept)]


def over_checkpoints(checkpoints: Sequence[Checkpoint], ask: Callable[[Checkpoint], Answer],
                     progress: Callable[[str, float | None], None] | None = None,
                     ) -> list[tuple[int, Answer]]:
    """``[(step, ask(checkpoint)), ...]`` in the order of the steps."""
    answers = []
    for number, checkpoint in enumerate(checkpoints):
        if progress:
            progress(f"step {checkpoint.step:,}", number / len(checkpoints))
        answers.append((checkpoint.step, ask(checkpoint)))
    return answers
