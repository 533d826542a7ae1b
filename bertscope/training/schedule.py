"""The learning rate, and when to save: pure functions of the step."""

from __future__ import annotations


def learning_rate(progress: float, peak: float, warmup: float) -> float:
    """Linear warm-up, then linear decay to zero (Devlin et al. 2019, appendix A.2).

    Args:
        progress: how much of the training is done, from 0 to 1: of its steps, or of its minutes.
        warmup: share of the training spent warming up.

    The decay starts from the peak, as in transformers; the original's decay runs from step 0 and
    jumps down at the end of the warm-up.
    """
    progress = min(max(progress, 0.0), 1.0)
    if progress < warmup:
        return peak * progress / warmup
    return peak * (1.0 - progress) / (1.0 - warmup) if warmup < 1.0 else peak


def is_checkpoint_step(step: int, every: int) -> bool:
    """0, 1, 2, 4, 8, ... and every multiple of ``every``: dense where learning is fast."""
    return step % every == 0 or step & (step - 1) == 0
