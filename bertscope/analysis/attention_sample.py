"""Many texts through a model for their attention: what is looked at, batch by batch, and never kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import torch

    from bertscope.analysis.activations import Encoded, LoadedModel, Progress

#: One text, or a pair (A, B) that is read as [CLS] A [SEP] B [SEP].
Text = str | tuple[str, str]
#: Weights of one batch at most, all layers and heads: 128 MiB of float32. One input may exceed it.
MOST_WEIGHTS = 1 << 25


def texts_digest(texts: Sequence[Text]) -> str:
    """24 hex digits of what the texts are; a pair differs from its texts joined."""
    plain = [text if isinstance(text, str) else list(text) for text in texts]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()[:24]


def held_out_texts(documents: Sequence[Sequence[str]], count: int, seed: int = 0, pairs: bool = False,
                   ) -> list[Text]:
    """Sentences spread over documents, or neighbouring sentences as pairs (A, B).

    Every document gives one before any gives a second.

    Args:
        documents: each a sequence of sentences, such as ``held_out.of_run(run).test``.
        count: texts at most; a larger count begins with the smaller one's.

    Raises:
        BertScopeError: there is no such text.
    """
    size = 2 if pairs else 1
    order = np.random.default_rng(seed).permutation(len(documents)).tolist()
    places = {d: np.random.default_rng([seed, d]).permutation(max(0, len(documents[d]) - size + 1))
              for d in order}
    found: list[Text] = []
    for turn in range(max(map(len, places.values()), default=0)):
        for d in order:
            if len(found) == count:
                return found
            if turn < len(places[d]):
                start = int(places[d][turn])
                run = tuple(documents[d][i] for i in range(start, start + size))
                if all(any(map(str.isalnum, sentence)) for sentence in run):
                    found.append(run if pairs else run[0])
    if not found:
        raise BertScopeError("These documents hold no " + ("two neighbouring sentences." if pairs
                                                           else "sentence."))
    return found


def encode_texts(model: LoadedModel, texts: Sequence[Text]) -> list[Encoded]:
    """The texts as the model reads them.

    Raises:
        BertScopeError: there is none, or one has nothing to read (named by its place).
    """
    from bertscope.analysis.activations import encode

    if not len(texts):
        raise BertScopeError("There is no text to look at.")
    inputs = []
    for number, text in enumerate(texts, start=1):
        try:
            inputs.append(encode(model, *([text] if isinstance(text, str) else text)))
        except BertScopeError as error:
            raise BertScopeError(f"Text {number}: {error}") from None
    return inputs


def attention_batches(model: LoadedModel, inputs: Sequence[Encoded], progress: Progress | None = None,
                      ) -> Iterator[list[tuple[int, torch.Tensor]]]:
    """The weights of all heads for many inputs; a batch's memory is bounded.

    Yields:
        (the input's number, float32 [L, A, T, T] on the CPU, rows sum to 1) of each input of a batch.
        Drop them before asking for the next.

    Raises:
        BertScopeError: the architecture has no such weights, or they are not finite. Whatever
            ``progress`` raises ends the work.
    """
    order = sorted(range(len(inputs)), key=lambda i: -len(inputs[i]))
    each = max(1, model.num_layers * model.num_heads)
    done = 0
    while done < len(order):
        longest = len(inputs[order[done]])
        chosen = order[done:done + max(1, MOST_WEIGHTS // (each * longest ** 2))]
        yield _batch(model, inputs, chosen)
        done += len(chosen)
        if progress:
            progress(f"{done:,} of {len(order):,} texts", done / len(order))


def attentions_of(model: LoadedModel, encoder, inputs: Sequence[Encoded]):
    """The output of an encoder (``model``'s, or a private copy of it) for a padded batch, and its
    weights, L times [B, A, T, T]. Gradients are as the caller sets them.

    Raises:
        BertScopeError: the architecture has no weights from every piece to every piece.
    """
    from bertscope.analysis.activations import as_tensors

    output = encoder(**as_tensors(model, encoder, inputs), output_attentions=True)
    weights = tuple(getattr(output, "attentions", None) or ())
    longest = max(len(encoded) for encoded in inputs)
    expected = (len(inputs), model.num_heads, longest, longest)
    if len(weights) != model.num_layers or any(tuple(w.shape) != expected for w in weights):
        raise BertScopeError(f"A {model.family} model has no attention weights from every piece to "
                             "every piece.")
    return output, weights


def _batch(model, inputs, chosen: list[int]) -> list[tuple[int, torch.Tensor]]:
    import torch

    with torch.inference_mode():
        _, weights = attentions_of(model, model.model.base_model, [inputs[i] for i in chosen])
        stacked = torch.stack(weights, dim=1).float().cpu()
    if not torch.isfinite(stacked).all():
        raise BertScopeError("The weights of this checkpoint give values that are not finite: its "
                             "training has diverged.")
    return [(i, stacked[row, :, :, :len(inputs[i]), :len(inputs[i])])
            for row, i in enumerate(chosen)]
