"""Which words mattered for one masked prediction: three answers that need not agree.

Scores are in bits of the logarithm of P(target piece): +1 means that the probability is twice as
high with the piece as without it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bertscope.analysis.activations import Encoded, LoadedModel, Progress
from bertscope.analysis.mlm_head import log_probabilities_at, mlm_logits, require_mlm_head
from bertscope.analysis.predictions import hide
from bertscope.errors import BertScopeError

#: Pieces whose gradients are computed at once: what bounds memory.
GRADIENT_PIECES = 1024
#: Finding the points of the rule takes longer than the gradients beyond this many.
FEWEST_STEPS, MOST_STEPS = 32, 512
#: Completeness: the scores add up to the difference within this share of it,
TOLERANCE = 0.01
#: or within so many bits, where there is no difference to speak of.
NOTHING = 1e-4


@dataclass(frozen=True)
class Attribution:
    """``scores`` are NaN where a piece is not asked about.

    ``difference`` is log2 P(target) of the input minus that of the baseline, ``error`` the absolute
    difference between it and the sum of the scores, both in bits, both None where a method has no
    baseline; ``steps`` is how many gradients were averaged.
    """

    scores: np.ndarray           # float64 [T], bits
    log2_p: float                # of the target, for the input as it is
    difference: float | None = None
    error: float | None = None
    steps: int | None = None

    @property
    def complete(self) -> bool:
        """Whether the scores add up to the difference within 1 %."""
        return self.error is not None and \
            self.error <= max(TOLERANCE * abs(self.difference or 0.0), NOTHING)


def occlusion(model: LoadedModel, encoded: Encoded, masked: Sequence[int], place: int, target: int,
              whole_words: bool = False, progress: Progress | None = None) -> Attribution:
    """Leave one out: log2 P(target) minus that with a piece replaced by ``[MASK]``.

    Zeiler and Fergus 2014, section 2.1 (occlusion); Li, Monroe and Jurafsky 2016, equation 2
    (erasure). A unit's score is given to each of its pieces.

    Args:
        masked: the positions that are hidden throughout, ``place`` among them; they have no score.
        target: the piece (its number in the vocabulary) whose probability is asked for.
        whole_words: replace all pieces of a word at once.

    Raises:
        BertScopeError: the checkpoint has no MLM head, or a position is not that of a word piece.
    """
    hidden = hide(model, encoded, {*masked, place})
    units = _units(encoded, {*masked, place}, whole_words)
    log2_p = np.zeros(1 + len(units))
    inputs = [hidden, *(hide(model, hidden, unit) for unit in units)]
    for index, found in log_probabilities_at(model, inputs, [[place]] * len(inputs), progress):
        log2_p[index] = found[0, target] / np.log(2)
    scores = np.full(len(encoded), np.nan)
    for unit, without in zip(units, log2_p[1:], strict=True):
        scores[unit] = log2_p[0] - without
    return Attribution(scores, float(log2_p[0]))


def gradient_x_input(model: LoadedModel, encoded: Encoded, masked: Sequence[int], place: int,
                     target: int) -> Attribution:
    """The gradient of log2 P(target) along each word embedding, times the embedding.

    Shrikumar et al. 2016, section 3.2 (gradient * input); Denil et al. 2014 for text. A first-order
    guess of what taking the embedding away would change; every piece has a score, the special and
    masked ones too.

    Raises:
        BertScopeError: as :func:`occlusion`, or the architecture takes no embeddings as input.
    """
    log2_p, embeddings, _ = _differentiable(model, encoded, masked, place, target)
    embeddings.requires_grad_(True)
    value = log2_p(embeddings)
    (gradient,) = torch.autograd.grad(value.sum(), embeddings)
    return Attribution((gradient * embeddings).sum(-1)[0].detach().double().cpu().numpy(),
                       value.item())


def integrated_gradients(model: LoadedModel, encoded: Encoded, masked: Sequence[int], place: int,
                         target: int, baseline: str = "pad", progress: Progress | None = None,
                         ) -> Attribution:
    """The gradient averaged along the straight line from a baseline, times the way.

    Sundararajan et al. 2017, section 3, by Captum's Gauss-Legendre rule. The baseline is the same
    input with the embedding of ``[PAD]`` or of ``[MASK]`` for each piece; special pieces and those
    at ``masked`` stay as they are and have no score. The number of steps is doubled until the
    scores add up to the difference between input and baseline to 1 % of it (completeness,
    proposition 1), or is :data:`MOST_STEPS`.

    Args:
        baseline: ``"pad"`` or ``"mask"``.

    Raises:
        BertScopeError: as :func:`gradient_x_input`, or another baseline.
    """
    if baseline not in ("pad", "mask"):
        raise BertScopeError(f"The baseline is 'pad' or 'mask', not {baseline!r}.")
    log2_p, embeddings, table = _differentiable(model, encoded, masked, place, target)
    tokenizer = model.tokenizer
    index = tokenizer.pad_token_id if baseline == "pad" else tokenizer.mask_token_id
    if index is None:
        raise BertScopeError(f"This model's tokenizer has no [{baseline.upper()}] piece.")
    changed = ~encoded.special
    changed[[*masked, place]] = False
    start = embeddings.clone()
    start[0, torch.from_numpy(changed).to(start.device)] = table[index]
    rows = max(1, GRADIENT_PIECES // len(encoded))
    vectors, difference, error, steps = path_integral(log2_p, embeddings, start, rows, progress)
    scores = np.where(changed, vectors.sum(-1)[0].double().cpu().numpy(), np.nan)
    with torch.no_grad():
        value = log2_p(embeddings).item()
    return Attribution(scores, value, difference, error, steps)


def path_integral(function: Callable[[torch.Tensor], torch.Tensor], end: torch.Tensor,
                  start: torch.Tensor, rows: int, progress: Progress | None = None,
                  ) -> tuple[torch.Tensor, float, float, int]:
    """Integrated gradients of any function, with steps doubled until they are complete.

    Args:
        function: differentiable, float [B, ...] -> [B].
        end, start: float [1, ...], the input and the baseline.
        rows: points of the line whose gradients are computed at once.

    Returns:
        The attributions, shaped as ``end``; function(end) - function(start); how far their sum is
        from that, absolute; the steps taken.
    """
    from captum.attr import IntegratedGradients

    with torch.no_grad():
        difference = (function(end).double() - function(start).double()).item()
    steps = FEWEST_STEPS
    while True:
        done = 0

        def told(points: torch.Tensor) -> torch.Tensor:
            nonlocal done
            if progress:
                progress(f"{done:,} of {steps:,} gradients", min(done / steps, 1.0))
            done += len(points)
            return function(points)

        vectors = IntegratedGradients(told).attribute(end, start, n_steps=steps,
                                                      internal_batch_size=rows).detach()
        error = abs(vectors.double().sum().item() - difference)
        if error <= max(TOLERANCE * abs(difference), NOTHING) or 2 * steps > MOST_STEPS:
            return vectors, difference, error, steps
        steps *= 2


# -- inside -----------------------------------------------------------------------------------


def _units(encoded: Encoded, hidden: set[int], whole_words: bool) -> list[list[int]]:
    """Groups of positions that are left out together."""
    free = [i for i in range(len(encoded)) if not encoded.special[i] and i not in hidden]
    if not whole_words:
        return [[i] for i in free]
    words: dict[int | None, list[int]] = {}
    for i in free:
        words.setdefault(encoded.word_ids[i], []).append(i)
    return list(words.values())


def _differentiable(model: LoadedModel, encoded: Encoded, masked: Sequence[int], place: int,
                    target: int) -> tuple[Callable, torch.Tensor, torch.Tensor]:
    """log2 P(target at place) as a function of word embeddings float32 [B, T, E], the input's own
    embeddings [1, T, E], and the table [V, E] they are from. The weights get no gradient."""
    require_mlm_head(model)
    base, device = model.model.base_model, model.device
    accepted = inspect.signature(base.forward).parameters
    if "inputs_embeds" not in accepted:
        raise BertScopeError(f"A {model.family} model takes no embeddings as its input, so there is "
                             "no gradient to show.")
    hidden = hide(model, encoded, {*masked, place})
    fixed = {name: torch.from_numpy(getattr(hidden, name))[None].to(device)
             for name in ("attention_mask", "token_type_ids") if name in accepted}
    table = base.get_input_embeddings().weight.detach()
    embeddings = table[torch.from_numpy(hidden.input_ids).to(device)][None]

    def log2_p(vectors: torch.Tensor) -> torch.Tensor:
        same = {name: value.expand(len(vectors), -1) for name, value in fixed.items()}
        states = base(inputs_embeds=vectors, **same).last_hidden_state[:, place]
        return mlm_logits(model, states).log_softmax(-1)[:, target] / np.log(2)

    return log2_p, embeddings, table
