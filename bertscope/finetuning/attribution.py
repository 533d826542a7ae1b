"""Which pieces a fine-tuned checkpoint's answer rests on: slopes along the word embeddings.

Scores are in bits of log2 P(answer), or in the task's own unit where a number is predicted.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from bertscope.analysis.activations import Progress
from bertscope.analysis.attribution import GRADIENT_PIECES, Attribution, path_integral
from bertscope.errors import BertScopeError
from bertscope.finetuning.batches import Feature
from bertscope.finetuning.data.examples import Example
from bertscope.finetuning.heads import MixedLayers, body
from bertscope.finetuning.predict import Finetuned

METHODS = ("gradient", "integrated")


@dataclass(frozen=True)
class Target:
    """The answer that is asked about: a ``label`` by its number (none where a number is predicted), of a
    ``word`` by its number; or a ``span`` of the paragraph in characters, (0, 0) for no answer."""

    label: int | None = None
    word: int | None = None
    span: tuple[int, int] | None = None


@dataclass(frozen=True)
class Explained:
    """An input as the model reads it, with a score for each of its T pieces."""

    tokens: tuple[str, ...]
    special: np.ndarray          # bool [T]: [CLS], [SEP]
    segments: np.ndarray         # int64 [T]
    places: tuple[int, ...]      # the pieces that the answer is read off
    attribution: Attribution


def explain(model: Finetuned, example: Example, target: Target, method: str = "integrated",
            progress: Progress | None = None) -> Explained:
    """Scores of all pieces of an input for one answer.

    ``gradient`` is the gradient of log2 P(answer) times the embedding (Shrikumar et al. 2016, section
    3.2), ``integrated`` integrated gradients from the embedding of ``[PAD]`` for every piece that is
    not special (Sundararajan et al. 2017, section 3): these scores add up to the difference between
    input and baseline, and how far they miss it is ``attribution.error``. A span has P(start) P(end);
    of a long paragraph the window is read in which it has the highest score.

    Raises:
        BertScopeError: the architecture takes no embeddings as input, or the input has no such place.
    """
    if method not in METHODS:
        raise BertScopeError(f"The method is 'gradient' or 'integrated', not {method!r}.")
    network = model.model
    outer = network.encoder if isinstance(network, MixedLayers) else network
    if "inputs_embeds" not in inspect.signature(outer.forward).parameters:
        raise BertScopeError(f"A {model.loaded.family} model takes no embeddings as its input, so there is "
                             "no gradient to show.")
    feature, places = _where(model, example, target)
    table = body(network).get_input_embeddings().weight.detach()
    ids = torch.from_numpy(feature.input_ids).to(table.device)
    end = table[ids][None]
    score = _score(model, feature, target, places)
    special = _special(model, feature)
    if method == "gradient":
        end = end.clone().requires_grad_(True)
        value = score(end)
        (slope,) = torch.autograd.grad(value.sum(), end)
        found = Attribution((slope * end).sum(-1)[0].detach().double().cpu().numpy(), value.item())
    else:
        start = end.clone()
        padding = model.loaded.tokenizer.pad_token_id
        if padding is None:
            raise BertScopeError("This model's tokenizer has no [PAD] piece.")
        start[0, torch.from_numpy(~special).to(start.device)] = table[padding]
        rows = max(1, GRADIENT_PIECES // len(feature))
        vectors, difference, error, steps = path_integral(score, end, start, rows, progress)
        with torch.no_grad():
            value = score(end).item()
        found = Attribution(np.where(special, np.nan, vectors.sum(-1)[0].double().cpu().numpy()), value,
                            difference, error, steps)
    return Explained(tuple(model.loaded.tokenizer.convert_ids_to_tokens(feature.input_ids.tolist())),
                     special, feature.token_type_ids, places, found)


def _special(model: Finetuned, feature: Feature) -> np.ndarray:
    """Which pieces the layout brings along; in a text only ``[MASK]`` has a meaning."""
    encoder = model.task.cutter.encoder
    known = {part for paired in (False, True) for part in encoder.layout(paired) if isinstance(part, int)}
    return np.isin(feature.input_ids, list(known))


def _logits(model: Finetuned, feature: Feature, embeddings: torch.Tensor) -> torch.Tensor:
    """[B, C], [B, T, C] or [B, T, 2] of B versions of one input."""
    inputs = {"inputs_embeds": embeddings,
              "attention_mask": torch.ones(embeddings.shape[:2], dtype=torch.int64,
                                           device=embeddings.device)}
    if getattr(model.model.config, "type_vocab_size", 0):
        inputs["token_type_ids"] = torch.from_numpy(feature.token_type_ids).to(embeddings.device) \
            .expand(len(embeddings), -1)
    if isinstance(model.model, MixedLayers):
        return model.model(input_ids=None, **inputs).logits
    found = model.model(**inputs)
    if model.spec.task == "question":
        return torch.stack([found.start_logits, found.end_logits], dim=-1)
    return found.logits


def _score(model: Finetuned, feature: Feature, target: Target, places: tuple[int, ...],
           ) -> Callable[[torch.Tensor], torch.Tensor]:
    """log2 P(target) as a function of embeddings [B, T, E]; the number itself where one is predicted."""
    def score(embeddings: torch.Tensor) -> torch.Tensor:
        logits = _logits(model, feature, embeddings).float()
        if model.spec.numbers:
            return logits[:, 0]
        if model.spec.task == "question":
            chances = logits.log_softmax(1)
            found = chances[:, places[0], 0] + chances[:, places[-1], 1]
        elif model.spec.task == "tokens":
            found = logits[:, places[0]].log_softmax(-1)[:, target.label]
        else:
            found = logits.log_softmax(-1)[:, target.label]
        return found / np.log(2)

    return score


def _where(model: Finetuned, example: Example, target: Target) -> tuple[Feature, tuple[int, ...]]:
    """The input, of several, in which the answer is, and the pieces that it is read off."""
    features = model.task.features([example])
    if model.spec.task == "tokens":
        for feature in features:
            if len(at := np.flatnonzero(feature.places == target.word)):
                return feature, (int(at[0]),)
        raise BertScopeError("The text has no such word.")
    if model.spec.task != "question":
        return features[0], (0,)
    best: tuple[float, Feature, tuple[int, ...]] | None = None
    table = body(model.model).get_input_embeddings().weight
    for feature in features:
        if (at := _pieces(feature, target.span or (0, 0))) is None:
            continue
        with torch.no_grad():
            ids = torch.from_numpy(feature.input_ids).to(table.device)
            logits = _logits(model, feature, table[ids][None])[0]
        own = float(logits[at[0], 0] + logits[at[-1], 1])
        own = -own if at == (0,) else own  # no answer is as good as its lowest score
        if best is None or own > best[0]:
            best = own, feature, at
    if best is None:
        raise BertScopeError("No window of the paragraph holds the whole answer.")
    return best[1:]


def _pieces(feature: Feature, span: tuple[int, int]) -> tuple[int, ...] | None:
    """The pieces of a span of characters in a window; None where it does not hold all of it."""
    start, end = span
    if start == end:
        return (0,)
    inside = feature.places[:, 0] >= 0
    first = np.flatnonzero(inside & (feature.places[:, 0] <= start) & (feature.places[:, 1] > start))
    last = np.flatnonzero(inside & (feature.places[:, 0] < end) & (feature.places[:, 1] >= end))
    return tuple(range(int(first[0]), int(last[0]) + 1)) if len(first) and len(last) else None
