"""What a checkpoint's loss is at each place of a training example, and what it would have said.

The examples are read as the trainer feeds them, masks and random pieces included, without dropout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bertscope.analysis.activations import BATCH_PIECES, LoadedModel, Progress
from bertscope.analysis.causal import require_next_token_head
from bertscope.analysis.inputs import Made
from bertscope.analysis.mlm_head import MOST_LOGITS, mlm_logits, require_mlm_head
from bertscope.analysis.pair_head import pair_logits, probability
from bertscope.errors import BertScopeError


@dataclass(frozen=True)
class PlaceLosses:
    """One example of T pieces under one checkpoint.

    ``loss``: float32 [T], -ln p(the true piece) in nats, NaN where nothing is predicted. ``guess``:
    int64 [T], the likeliest piece there, else -1; ``confidence``: float32 [T], its probability.
    ``p_yes``: P(pair label 0: B follows A, or A and B are in order), None where there is no pair or
    no head for pairs.
    """

    loss: np.ndarray
    guess: np.ndarray
    confidence: np.ndarray
    p_yes: float | None


def place_losses(model: LoadedModel, rows: Sequence[Made], causal: bool = False,
                 progress: Progress | None = None) -> list[PlaceLosses]:
    """The losses of examples, in padded batches.

    Masked language modelling asks for the chosen places (Devlin et al. 2019, section 3.1), a causal
    model for every piece but the first, as it stands in the input.

    Raises:
        BertScopeError: the checkpoint lacks the head, reads fewer pieces at once than an example
            has, has another vocabulary, or weights that are not finite.
    """
    require_next_token_head(model) if causal else require_mlm_head(model)
    if rows and max(map(len, rows)) > model.max_length:
        raise BertScopeError(f"These examples have up to {max(map(len, rows)):,} pieces; this "
                             f"checkpoint reads at most {model.max_length:,} at once.")
    if rows and max(int(row.ids.max()) for row in rows) >= model.model.config.vocab_size:
        raise BertScopeError("These examples have pieces that this checkpoint does not know.")
    answers, size = [], 1
    while len(answers) < len(rows):
        start = len(answers)
        budget = BATCH_PIECES["cpu" if model.device == "cpu" else "cuda"]
        size = max(1, budget // max(len(row) for row in rows[start: start + budget // 16]))
        answers += _batch(model, rows[start: start + size], causal)
        if progress:
            progress(f"{len(answers):,} of {len(rows):,} examples", len(answers) / len(rows))
    return answers


@torch.inference_mode()
def _batch(model: LoadedModel, rows: Sequence[Made], causal: bool) -> list[PlaceLosses]:
    hidden = model.model.base_model(**padded_inputs(model, rows)).last_hidden_state
    asked = [np.arange(1, len(row)) if causal else row.chosen for row in rows]
    places = [(number, place) for number, found in enumerate(asked) for place in found.tolist()]
    labels = np.concatenate([(row.shown if causal else row.ids)[found]
                             for row, found in zip(rows, asked)])
    at = torch.tensor(places, dtype=torch.long, device=hidden.device).reshape(-1, 2).T
    states = hidden[at[0], at[1] - 1 if causal else at[1]]
    loss, guess, confidence = _against(model, states, torch.from_numpy(labels).to(hidden.device),
                                       causal)
    if not np.isfinite(loss).all():
        raise BertScopeError("The weights of this checkpoint give values that are not finite: its "
                             "training has diverged.")
    p_yes: Sequence[float | None] = [None] * len(rows)
    if rows[0].label is not None and (model.has_nsp_head or model.has_sop_head):
        p_yes = probability(pair_logits(model, hidden[:, 0])).tolist()
    return list(_spread(rows, asked, loss, guess, confidence, p_yes))


def padded_inputs(model: LoadedModel, rows: Sequence[Made]) -> dict[str, torch.Tensor]:
    """The rows padded on the right, on the model's device: what its encoder is called with."""
    shape = len(rows), max(map(len, rows))
    ids = np.full(shape, model.tokenizer.pad_token_id or 0, np.int64)
    types, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for number, row in enumerate(rows):
        ids[number, :len(row)] = row.shown
        types[number, :len(row)] = row.token_type_ids
        mask[number, :len(row)] = 1
    arrays = {"input_ids": ids, "attention_mask": mask}
    if model.text_encoder.has_segments:
        arrays["token_type_ids"] = types
    return {name: torch.from_numpy(array).to(model.device) for name, array in arrays.items()}


def _against(model: LoadedModel, states: torch.Tensor, labels: torch.Tensor, causal: bool):
    """Loss, likeliest piece and its probability for each state, numpy [M]."""
    if not len(states):  # rows of special pieces alone
        return np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0, np.float32)
    most = max(1, MOST_LOGITS // model.model.config.vocab_size)
    found = []
    for part, label in zip(states.split(most), labels.split(most)):
        logits = model.model.cls(part).float() if causal else mlm_logits(model, part)
        log_p = logits.log_softmax(-1)
        best, guess = log_p.max(-1)
        found.append((-log_p.gather(1, label[:, None])[:, 0], guess, best.exp()))
    return tuple(torch.cat(column).cpu().numpy() for column in zip(*found))


def _spread(rows, asked, loss, guess, confidence, p_yes) -> Iterator[PlaceLosses]:
    """From one entry for each predicted place to arrays over each row's places."""
    start = 0
    for row, places, p in zip(rows, asked, p_yes):
        part, start = slice(start, start + len(places)), start + len(places)
        size = len(row)
        columns = np.full(size, np.nan, np.float32), np.full(size, -1), np.full(
            size, np.nan, np.float32)
        for column, values in zip(columns, (loss, guess, confidence)):
            column[places] = values[part]
        yield PlaceLosses(*columns, p)


def mean_loss(answers: Sequence[PlaceLosses]) -> float:
    """The loss as the trainer takes it, in nats: the sum over all places by their number;
    NaN where nothing was asked."""
    losses = np.concatenate([answer.loss for answer in answers]).astype(np.float64)
    return float(np.nanmean(losses)) if np.isfinite(losses).any() else float("nan")
