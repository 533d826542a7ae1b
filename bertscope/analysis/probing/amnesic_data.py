"""Masked sentences with a label on each piece: what amnesic probing learns from and is measured on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from bertscope.analysis.inputs import Made
    from bertscope.analysis.loading import LoadedModel
    from bertscope.analysis.probing.items import Items

#: Examples in one batch while states are read, and labelled pieces whose states are kept at most.
BATCH, MOST_PIECES = 64, 20_000


@dataclass(frozen=True)
class Part:
    """Masked examples of some sentences, and for each the labels of its pieces, int64 [T]: the number
    of the label among the task's classes (one more for a label that training lacks), -1 where the
    piece's word has none."""

    rows: list[Made]
    labels: list[np.ndarray]

    def asked(self, places: str) -> list[np.ndarray]:
        """Labelled pieces, of each example: those that are masked, or all (``words``)."""
        found, room = [], MOST_PIECES
        for row, labels in zip(self.rows, self.labels, strict=True):
            found.append(np.flatnonzero((labels >= 0) & ((row.fate >= 0) | (places == "words")))[:room])
            room -= len(found[-1])
        return found


@dataclass(frozen=True)
class Losses:
    """Of every masked piece: ``loss`` float64 (nats), ``right`` whether the likeliest guess is,
    ``sentence`` the number of its example, ``labelled`` whether its word has a label."""

    loss: np.ndarray
    right: np.ndarray
    sentence: np.ndarray
    labelled: np.ndarray


def read(model: LoadedModel, items: Items, part: str, most: int, rounds: int, seed: int) -> Part:
    """At most so many sentences of a part, each masked anew ``rounds`` times.

    Words are joined by spaces, as for probing; 15 % of the pieces are masked.

    Raises:
        BertScopeError: no piece of them is labelled.
    """
    from bertscope.analysis.activations import encode, pieces_of_words
    from bertscope.analysis.head_ablation import masked_sample

    names = {name: number for number, name in enumerate(items.classes)}
    of: dict[int, list[int]] = {}
    for place in items.where[part].tolist():
        of.setdefault(int(items.sentence[place]), []).append(place)
    texts, labels = [], []
    for sentence in np.random.default_rng(seed).permutation(sorted(of)).tolist():
        if len(texts) == most:
            break
        words = [model.text_encoder.clean(word) for word in items.sentences[sentence]]
        try:
            encoded = encode(model, " ".join(words))
        except BertScopeError:
            continue  # a sentence without any piece
        pieces, own = pieces_of_words(encoded, words), np.full(len(encoded), -1)
        for place in of[sentence]:
            for word in range(*items.spans[place, 0].tolist()):
                own[pieces.get(word, [])] = names.get(items.labels[place], len(names))
        texts.append(" ".join(words))
        labels.append(own)
    if not texts or max(own.max() for own in labels) < 0:
        raise BertScopeError(f"No word of the {part} part has a label that this model could show.")
    rows = [row for number in range(rounds)
            for row in masked_sample(model, texts, seed=1000 * seed + number)]
    return Part(rows, labels * rounds)


def states(model: LoadedModel, part: Part, places: str, layers: Sequence[int],
           ) -> tuple[np.ndarray, np.ndarray]:
    """float16 [layers, pieces, H] and int64 [pieces]: what layers have at labelled pieces.

    Raises:
        BertScopeError: there is no such piece.
    """
    asked = part.asked(places)
    labels = np.concatenate([own[at] for own, at in zip(part.labels, asked, strict=True)])
    if not len(labels):
        raise BertScopeError("No masked piece has a label; take more sentences.")
    found = [np.zeros((len(layers), 0, model.hidden_size), np.float16)]
    for number, hidden in enumerate(_hidden(model, part.rows, layers)):
        found.append(hidden[:, asked[number]])
    return np.concatenate(found, axis=1), labels


def _hidden(model: LoadedModel, rows: Sequence[Made], layers: Sequence[int]) -> Iterator[np.ndarray]:
    """float16 [layers, T, H] of each example."""
    import torch

    from bertscope.analysis.place_losses import padded_inputs

    for start in range(0, len(rows), BATCH):
        batch = rows[start:start + BATCH]
        with torch.inference_mode():
            output = model.model.base_model(**padded_inputs(model, batch), output_hidden_states=True)
        chosen = torch.stack([output.hidden_states[layer] for layer in layers])
        vectors = chosen.float().clamp(-65504, 65504).half().cpu().numpy()
        yield from (vectors[:, number, :len(row)] for number, row in enumerate(batch))


def losses(model: LoadedModel, part: Part) -> Losses:
    """What the model's guesses at the masked pieces cost it."""
    from bertscope.analysis.place_losses import place_losses

    answers = list(zip(place_losses(model, part.rows), part.rows, part.labels, strict=True))
    return Losses(
        np.concatenate([answer.loss[row.chosen] for answer, row, _ in answers]).astype(np.float64),
        np.concatenate([answer.guess[row.chosen] == row.ids[row.chosen] for answer, row, _ in answers]),
        np.repeat(np.arange(len(answers)), [len(row.chosen) for _, row, _ in answers]),
        np.concatenate([own[row.chosen] >= 0 for _, row, own in answers]))
