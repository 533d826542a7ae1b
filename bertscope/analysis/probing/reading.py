"""One pass of the encoder over sentences: vectors of their words and of the sentences themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from bertscope.analysis.activations import (
    Encoded, LoadedModel, Progress, encode, pieces_of_words, run_batches)
from bertscope.errors import BertScopeError

#: A word's vector from its pieces, and a sentence's from all of its pieces.
WORD_POOLING = ("mean", "first", "last")
SENTENCE_POOLING = ("cls", "mean", "max")
#: Rows that each sentence has before those of its words, in the order of SENTENCE_POOLING.
OWN = len(SENTENCE_POOLING)
#: The largest number that half precision holds.
HALF = 65504.0
Text = Sequence[str] | str


def rows_of(text: Text) -> int:
    """How many rows a sentence takes: its own, and one for each word of one that is split."""
    return OWN + (0 if isinstance(text, str) else len(text))


def read(model: LoadedModel, texts: Sequence[Text], pooling: str = "mean",
         progress: Progress | None = None) -> tuple[np.ndarray, list[bool]]:
    """Vectors of sentences and their words from every layer, in half precision.

    A list of words is read as those words joined by spaces, and each piece belongs to the word in
    which its characters lie. A sentence's mean and maximum go over its pieces without [CLS] and
    [SEP]. Words without a piece, words that the model's length cuts off in part or whole, and
    sentences without any piece have NaN.

    Args:
        texts: lists of words, or raw texts, which have no words.
        pooling: of a word's pieces.

    Returns:
        float16 [L+1, rows, H]: for each text ``rows_of(text)`` rows, in the order of
        ``SENTENCE_POOLING``, then its words; and for each text whether it was cut.

    Raises:
        BertScopeError: values are not finite.
    """
    starts = np.cumsum([0, *map(rows_of, texts)])
    states = np.full((model.num_layers + 1, int(starts[-1]), model.hidden_size), np.nan, np.float16)
    inputs: list[Encoded] = []
    groups: list[dict[int, list[int]]] = []
    begins, cut = [], [False] * len(texts)
    for number, text in enumerate(texts):
        words = None if isinstance(text, str) else [model.text_encoder.clean(w) for w in text]
        try:
            encoded = encode(model, text if words is None else " ".join(words))
        except BertScopeError:
            continue  # without any piece there is nothing to show
        inputs.append(encoded)
        groups.append({} if words is None else pieces_of_words(encoded, words))
        begins.append(int(starts[number]))
        cut[number] = encoded.truncated
    for indices, batch in run_batches(model, inputs, progress=progress):
        chosen = [inputs[i] for i in indices]
        words = [groups[i] for i in indices]
        targets = np.concatenate([_targets(begins[i], groups[i]) for i in indices])
        for layer, vectors in enumerate(_pooled(batch.hidden_states, chosen, words, pooling)):
            states[layer, targets] = vectors
    return states, cut


def _targets(start: int, groups: dict[int, list[int]]) -> np.ndarray:
    return np.array([*range(start, start + OWN), *(start + OWN + word for word in groups)])


def _pooled(layers: Sequence[torch.Tensor], inputs: list[Encoded],
            groups: list[dict[int, list[int]]], pooling: str) -> Iterator[np.ndarray]:
    """For each layer float16 [rows, H], row by row as in ``_targets``."""
    width = layers[0].shape[1]
    rows, pieces, weights, maxima, count = [], [], [], [], 0
    for number, (encoded, words) in enumerate(zip(inputs, groups, strict=True)):
        content = np.flatnonzero(~encoded.special).tolist()
        parts = [[0], content, [], *(_chosen(p, pooling) for p in words.values())]
        for row, part in enumerate(parts, count):
            rows += [row] * len(part)
            pieces += [number * width + piece for piece in part]
            weights += [1 / len(part) for _ in part]
        maxima.append(count + SENTENCE_POOLING.index("max"))
        count += len(parts)
    device = layers[0].device
    rows, pieces, maxima = (torch.tensor(x, device=device) for x in (rows, pieces, maxima))
    weights = torch.tensor(weights, device=device)[:, None]
    special = np.ones((len(inputs), width), bool)
    for number, encoded in enumerate(inputs):
        special[number, :len(encoded)] = encoded.special
    hidden = torch.from_numpy(special).to(device)[..., None]
    for states in layers:
        states = states.float()
        found = states.new_zeros(count, states.shape[-1])
        found.index_add_(0, rows, states.flatten(0, 1)[pieces] * weights)
        found[maxima] = states.masked_fill(hidden, -torch.inf).amax(1)
        if not torch.isfinite(found).all():
            raise BertScopeError("The weights of this checkpoint give values that are not finite: "
                                 "its training has diverged.")
        yield found.clamp(-HALF, HALF).half().cpu().numpy()


def _chosen(pieces: list[int], pooling: str) -> list[int]:
    return {"mean": pieces, "first": pieces[:1], "last": pieces[-1:]}[pooling]
