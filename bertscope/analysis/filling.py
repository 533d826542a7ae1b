"""Several masks filled: all at once, or one after the other, each seeing what was put before it.

At once, the places are guessed as if they were independent of each other, which BERT's training
assumes (Yang et al. 2019, XLNet, section 1). One by one, the model reads its own guesses, and the
result depends on the order (Wang and Cho 2019; *most certain first* is the easy-first order of
Ghazvininejad et al. 2019's mask-predict, one place at a time).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertscope.analysis.activations import Encoded, LoadedModel, Progress
from bertscope.analysis.mlm_head import log_probabilities_at
from bertscope.analysis.predictions import hide
from bertscope.errors import BertScopeError

ORDERS = ("all at once", "left to right", "right to left", "most certain first")


@dataclass(frozen=True)
class Step:
    """One place is filled; ``entropy_bits`` is how unsure the model was just before."""

    place: int
    token: str
    id: int
    probability: float
    entropy_bits: float


@dataclass(frozen=True)
class Filling:
    """What one order gives.

    ``log_product`` is the natural logarithm of the product of the steps' probabilities, each as it
    was when its place was filled. ``pseudo_log_likelihood`` asks the finished text instead: the sum
    over the filled places of log p(piece | all the rest, the other fillings too), as Salazar et al.
    2020 score a text, over these places only; it is the same question whatever the order was.
    """

    order: str
    steps: list[Step]            # in the order of filling
    input_ids: np.ndarray        # int64 [T], nothing masked any more
    tokens: list[str]            # T pieces
    log_product: float
    pseudo_log_likelihood: float


def fill(model: LoadedModel, encoded: Encoded, masked: Sequence[int], order: str,
         progress: Progress | None = None) -> Filling:
    """Put the most probable piece into each masked place.

    Special pieces, [UNK] among them, are never put in; probabilities are still those of the whole vocabulary.

    Args:
        order: one of :data:`ORDERS`. *Most certain first* takes, each time, the place whose best
            piece is the most probable.

    Raises:
        BertScopeError: no such order; no MLM head; a position that is not a word piece's.
    """
    if order not in ORDERS:
        raise BertScopeError(f"Masks are filled in one of the orders {', '.join(ORDERS)}; not "
                             f"{order!r}.")
    text = hide(model, encoded, masked)
    left = sorted(set(masked))
    steps: list[Step] = []
    while left:
        found = _best(model, text, left)
        chosen = found if order == "all at once" else [_next(found, order)]
        for step in chosen:
            text.input_ids[step.place] = step.id  # ``hide`` gave a copy
            left.remove(step.place)
        steps += chosen
        if progress:
            progress(f"{order}: {len(steps):,} of {len(set(masked)):,}",
                     len(steps) / len(set(masked)))
    tokens = list(encoded.tokens)
    for step in steps:
        tokens[step.place] = step.token
    return Filling(order, steps, text.input_ids, tokens,
                   float(np.log([s.probability for s in steps]).sum()),
                   _pseudo_log_likelihood(model, text, steps))


def _best(model: LoadedModel, text: Encoded, places: list[int]) -> list[Step]:
    """The best piece of each place in one pass."""
    ((_, log_p),) = log_probabilities_at(model, [text], [places])
    log_p = log_p.astype(np.float64)
    entropy = -(np.exp(log_p) * log_p).sum(1) / np.log(2)
    log_p[:, [i for i in model.tokenizer.all_special_ids if i < log_p.shape[1]]] = -np.inf
    best = log_p.argmax(1)
    return [Step(place, model.tokenizer.convert_ids_to_tokens(int(i)) or f"[{i}]", int(i),
                 float(np.exp(row[i])), float(bits))
            for place, i, row, bits in zip(places, best, log_p, entropy, strict=True)]


def _next(found: list[Step], order: str) -> Step:
    """Which place an order fills now; ``found`` is sorted by place."""
    if order == "most certain first":
        return max(found, key=lambda step: step.probability)
    return found[0 if order == "left to right" else -1]


def _pseudo_log_likelihood(model: LoadedModel, text: Encoded, steps: list[Step]) -> float:
    inputs = [hide(model, text, [step.place]) for step in steps]
    places = [[step.place] for step in steps]
    return float(sum(log_p[0, steps[index].id]
                     for index, log_p in log_probabilities_at(model, inputs, places)))


def same_text(fillings: Sequence[Filling]) -> bool:
    """Whether all orders came to the same pieces."""
    return all((f.input_ids == fillings[0].input_ids).all() for f in fillings)


def filled_text(encoded: Encoded, filling: Filling) -> str:
    """The text with the fillings in the characters' places; pieces of words without their ``##``."""
    text = encoded.text
    for step in sorted(filling.steps, key=lambda s: -s.place):
        start, end = encoded.offsets[step.place]
        space = " " * (len(text[start:end]) - len(text[start:end].lstrip()))
        word = step.token.removeprefix("##").lstrip("\u2581\u0120")  # SentencePiece, byte-level BPE
        text = text[:start] + space + word + text[end:]
    return text
