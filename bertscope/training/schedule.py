"""The learning rate, and when to save: pure functions of the step."""

from __future__ import annotations

import math

from bertscope.config import TrainingConfig


def learning_rate(progress: float, training: TrainingConfig) -> float:
    """Linear warm-up to the peak, then ``training.schedule``.

    ``linear`` falls to zero (Devlin et al. 2019, appendix A.2), ``cosine`` too, along half a wave
    (Loshchilov & Hutter 2017, equation 5); ``constant`` stays; ``inverse_sqrt`` falls with the
    root of the time since the beginning (Vaswani et al. 2017, equation 3).

    Args:
        progress: how much of the training is done, from 0 to 1: of its steps, or of its minutes.

    The decay starts from the peak, as in transformers; the original's decay runs from step 0 and
    jumps down at the end of the warm-up.
    """
    progress, peak = min(max(progress, 0.0), 1.0), training.learning_rate
    warmup = training.warmup
    if training.warmup_steps is not None:
        warmup = min(training.warmup_steps / training.steps, 1.0)
    if progress < warmup:
        return peak * progress / warmup
    if training.schedule == "constant" or warmup == 1.0:
        return peak
    if training.schedule == "inverse_sqrt":
        start = max(warmup, 1 / training.steps)
        return peak * math.sqrt(start / max(progress, start))
    rest = (1.0 - progress) / (1.0 - warmup)
    return peak * (rest if training.schedule == "linear" else (1 - math.cos(math.pi * rest)) / 2)


def is_checkpoint_step(step: int, every: int) -> bool:
    """0, 1, 2, 4, 8, ... and every multiple of ``every``: dense where learning is fast."""
    return step % every == 0 or step & (step - 1) == 0
