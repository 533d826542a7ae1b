"""Does a head matter? What becomes of predictions and losses when heads are turned off (Michel et al.
2019, section 3; Voita et al. 2019).

``head_gates.without_heads`` gives a model that everything else here takes: ``predict`` and
``next_sentence`` answer without those heads too. Here is what looks at many heads, or many texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertscope.analysis.attention_sample import Text, encode_texts
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from bertscope.analysis.activations import Encoded, LoadedModel, Progress
    from bertscope.analysis.inputs import Made

#: Share of the word pieces that are hidden, as in training.
MASK_RATE = 0.15
#: A probability is not taken to be nearer to 0 than this: what float32 tells from 1.
LEAST = 1e-7


@dataclass(frozen=True)
class Loss:
    """``mlm`` in nats per masked piece and the share ``accuracy`` of them guessed right, over
    ``places``; ``nsp`` (nats) and ``nsp_accuracy`` where there are pairs and a head for them."""

    mlm: float
    accuracy: float
    places: int
    nsp: float | None = None
    nsp_accuracy: float | None = None


def masked_sample(model: LoadedModel, texts: Sequence[Text], labels: Sequence[int] | None = None,
                  seed: int = 0) -> list[Made]:
    """The texts with 15 % of their word pieces (at least one) hidden behind [MASK]; always the same
    ones for equal texts and seed.

    Args:
        labels: of pairs, 0 = B follows A (or: in order), 1 = it does not.

    Raises:
        BertScopeError: no MLM head, no text, or one that is empty.
    """
    from bertscope.analysis.inputs import Made
    from bertscope.analysis.mlm_head import require_mlm_head
    from bertscope.objectives.masking import MASK

    require_mlm_head(model)
    mask = model.tokenizer.mask_token_id
    made = []
    for number, encoded in enumerate(encode_texts(model, texts)):
        free = np.flatnonzero(~encoded.special & (encoded.input_ids != mask))
        chosen = np.random.default_rng([seed, number]).permutation(free)[
            :max(1, round(MASK_RATE * len(free)))]
        fate, shown = np.full(len(encoded), -1), encoded.input_ids.copy()
        fate[chosen], shown[chosen] = MASK, mask
        words = np.array([-1 if word is None else word for word in encoded.word_ids])
        made.append(Made(encoded.input_ids, shown, encoded.token_type_ids, words,
                         np.full(len(encoded), -1), fate, np.where(fate < 0, -1, np.arange(len(fate))),
                         None if labels is None else int(labels[number])))
    return made


def held_out_loss(model: LoadedModel, rows: Sequence[Made], progress: Progress | None = None) -> Loss:
    """The losses that training would have on ``rows``; of a model of ``without_heads`` too.

    Raises:
        BertScopeError: no MLM head, or nothing is masked.
    """
    from bertscope.analysis.place_losses import place_losses

    answers = place_losses(model, rows, progress=progress)
    losses = [answer.loss[row.chosen] for answer, row in zip(answers, rows, strict=True)]
    right = [answer.guess[row.chosen] == row.ids[row.chosen]
             for answer, row in zip(answers, rows, strict=True)]
    losses, right = np.concatenate(losses).astype(np.float64), np.concatenate(right)
    if not len(losses):
        raise BertScopeError("Nothing is masked in these texts, so there is no loss to measure.")
    answered = [(answer.p_yes, row.label) for answer, row in zip(answers, rows, strict=True)
                if answer.p_yes is not None and row.label is not None]
    nsp = nsp_accuracy = None
    if answered:
        p = np.array([yes if label == 0 else 1 - yes for yes, label in answered])
        nsp, nsp_accuracy = float(-np.log(np.maximum(p, LEAST)).mean()), float((p > 0.5).mean())
    return Loss(float(losses.mean()), float(right.mean()), len(losses), nsp, nsp_accuracy)


def prune_curve(model: LoadedModel, rows: Sequence[Made], order: Sequence[tuple[int, int]],
                steps: int = 10, progress: Progress | None = None) -> pd.DataFrame:
    """The losses while more and more heads are turned off, in ``order``, in about ``steps`` steps.

    Args:
        order: (layer, head) from 1, the first to go first: ``head_importance.least_first`` of the
            gradient's importance, or any other.

    Returns: ``off`` (how many heads, from 0 to all in ``order``), ``share`` (of the model's heads),
        ``mlm``, ``accuracy``, ``nsp``, ``nsp_accuracy`` (NaN where there is none).

    Raises:
        BertScopeError: as :func:`held_out_loss` and ``without_heads``.
    """
    import pandas as pd

    from bertscope.analysis.head_gates import without_heads

    counts = np.unique(np.linspace(0, len(order), steps + 1).round().astype(int)).tolist()
    found = []
    for number, off in enumerate(counts):
        found.append(held_out_loss(without_heads(model, order[:off]), rows))
        if progress:
            progress(f"{off} heads off", (number + 1) / len(counts))
    table = pd.DataFrame([(loss.mlm, loss.accuracy, loss.nsp, loss.nsp_accuracy) for loss in found],
                         columns=["mlm", "accuracy", "nsp", "nsp_accuracy"], dtype=float)
    table.insert(0, "share", np.array(counts) / (model.num_layers * model.num_heads))
    table.insert(0, "off", counts)
    return table


# -- one input, every head in its turn --------------------------------------------------------


def effect_of_each_head(model: LoadedModel, encoded: Encoded, masked: Sequence[int],
                        progress: Progress | None = None) -> pd.DataFrame:
    """One masked prediction with each head off in its turn, many of them in one batch.

    Returns: a row per head, and one per layer with all of its heads off (``head`` 0): ``layer``,
        ``head``, ``surprisal`` (change of -log2 P(original) in bits, mean over ``masked``; positive:
        the prediction got worse; NaN where the text itself said [MASK]) and ``divergence`` (KL from
        the prediction as it is to that without, bits, mean over ``masked``).

    Raises:
        BertScopeError: no MLM head, nothing masked, or heads cannot be turned off.
    """
    import torch

    from bertscope.analysis.mlm_head import MOST_LOGITS, mlm_logits, require_mlm_head
    from bertscope.analysis.predictions import hide

    require_mlm_head(model)
    if not len(masked):
        raise BertScopeError("Nothing is masked: mask a piece to see which heads its prediction "
                             "needs.")
    places = list(masked)
    original = torch.from_numpy(encoded.input_ids[places])
    typed = original == model.tokenizer.mask_token_id
    most = max(1, MOST_LOGITS // (model.model.config.vocab_size * len(places)))

    def log2_p(states: torch.Tensor) -> torch.Tensor:
        return mlm_logits(model, states[:, places]).log_softmax(-1).cpu().double() / np.log(2)

    whole, rows = None, []
    with torch.inference_mode():
        for states in _each_off(model, hide(model, encoded, masked), most, progress):
            found = log2_p(states)
            whole = found[0] if whole is None else whole
            own = (whole - found).gather(-1, original.expand(len(found), -1)[..., None])[..., 0]
            kl = (whole.exp2() * (whole - found)).sum(-1).mean(-1).clamp(min=0)
            rows += zip(own.masked_fill(typed, torch.nan).nanmean(-1).tolist(), kl.tolist())
    return _by_head(model, rows[1:], ["surprisal", "divergence"])


def effect_of_each_head_on_pair(model: LoadedModel, a: str, b: str,
                                progress: Progress | None = None) -> pd.DataFrame:
    """The judgement of a pair with each head off in its turn.

    Returns: rows as in :func:`effect_of_each_head`: ``layer``, ``head``, ``p_yes`` without it
        (P(B follows A), or that the order is right), ``change`` of it from the whole model's.

    Raises:
        BertScopeError: no head for pairs, a text is empty, or heads cannot be turned off.
    """
    import torch

    from bertscope.analysis.activations import encode
    from bertscope.analysis.pair_head import pair_logits, probability, require_pair_head

    require_pair_head(model)
    with torch.inference_mode():
        p = torch.cat([probability(pair_logits(model, states[:, 0])).cpu() for states in
                       _each_off(model, encode(model, a, b), 1 << 12, progress)]).double().tolist()
    return _by_head(model, [(value, value - p[0]) for value in p[1:]], ["p_yes", "change"])


# -- inside -----------------------------------------------------------------------------------


def _each_off(model: LoadedModel, encoded: Encoded, most: int, progress: Progress | None,
              ) -> Iterator[torch.Tensor]:
    """The last layer's states [B, T, H] of the whole model, then without each head, then without
    each layer's heads; at most ``most`` at a time."""
    import torch

    from bertscope.analysis.activations import BATCH_PIECES, forward
    from bertscope.analysis.head_gates import with_gates

    layers, heads = model.num_layers, model.num_heads
    gates = torch.ones(1 + layers * heads + layers, layers, heads)
    each = torch.arange(layers * heads)
    gates.flatten(1)[1 + each, each] = 0
    gates[1 + layers * heads + torch.arange(layers), torch.arange(layers)] = 0
    pieces = BATCH_PIECES["cpu" if model.device == "cpu" else "cuda"]
    done = 0
    for part in gates.split(max(1, min(most, pieces // len(encoded)))):
        output = forward(with_gates(model, part), [encoded] * len(part), heads=False)
        done += len(part)
        if progress:
            progress(f"{done:,} of {len(gates):,} passes", done / len(gates))
        states = output.hidden_states[-1]
        if not torch.isfinite(states).all():
            raise BertScopeError("The weights of this checkpoint give values that are not finite: "
                                 "its training has diverged.")
        yield states


def _by_head(model: LoadedModel, values: Sequence[tuple[float, ...]], names: list[str],
             ) -> pd.DataFrame:
    import pandas as pd

    places = [(layer, head) for layer in range(1, model.num_layers + 1)
              for head in range(1, model.num_heads + 1)]
    places += [(layer, 0) for layer in range(1, model.num_layers + 1)]
    return pd.DataFrame([(*place, *value) for place, value in zip(places, values, strict=True)],
                        columns=["layer", "head", *names])
