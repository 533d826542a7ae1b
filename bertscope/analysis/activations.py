"""The one place that runs an encoder: text in, arrays out.

Layers are numbered as in the papers: 0 is the output of the embeddings, 1 to L are the encoder's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bertscope.analysis.encoding import Encoded
from bertscope.analysis.loading import LoadedModel, load
from bertscope.errors import BertScopeError
from bertscope.models.encoder import hidden_states_at

__all__ = ["Activations", "Encoded", "LoadedModel", "encode", "load", "pool", "run", "run_at",
           "run_batches", "word_states"]

Progress = Callable[[str, float | None], None]
#: Pieces in one batch, padding included.
BATCH_PIECES = {"cpu": 4096, "cuda": 32768}
#: Families of which the last layer can be computed at some places only.
LAST_LAYER_AT = ("bert", "roberta", "electra")


@dataclass
class Activations:
    """What the encoder gave for one input; float32, on the CPU."""

    hidden_states: np.ndarray          # [L+1, T, H]
    attentions: np.ndarray | None      # [L, A, T, T], rows sum to 1
    mlm_logits: np.ndarray | None      # [T, V]
    nsp_logits: np.ndarray | None      # [2]: B follows A, B is random


def encode(model: LoadedModel, text: str, pair: str | None = None) -> Encoded:
    """Word pieces of a text, or of a pair of texts, with ``[CLS]`` and ``[SEP]`` around them.

    ``[MASK]`` in the text is the model's mask token, whatever that is called; every other special
    token that was typed is ordinary text. What the model cannot read at once is cut off
    (``truncated``), of a pair the longer text first.

    Raises:
        BertScopeError: a text is empty or enormous, or the tokenizer is another model's.
    """
    return model.text_encoder.encode(text, pair)


def run(model: LoadedModel, encoded: Encoded, attentions: bool = False, heads: bool = True,
        ) -> Activations:
    """Run the encoder on one input, without dropout and without gradients.

    Args:
        attentions: also return the attention weights.
        heads: also compute the logits of the heads that the checkpoint has; those of a big
            vocabulary are most of the work.

    Raises:
        BertScopeError: the weights give values that are not finite, or the architecture has no
            attention weights to show.
    """
    output = forward(model, [encoded], attentions, heads)
    hidden = torch.stack([h[0] for h in output.hidden_states]).float().cpu().numpy()
    _check_finite(hidden)
    weights = _attentions(model, output, len(encoded)) if attentions else None
    mlm, nsp = _logits(model, output) if heads else (None, None)
    return Activations(hidden, weights, _first(mlm), _first(nsp))


def run_batches(model: LoadedModel, inputs: Sequence[Encoded], heads: bool = False,
                progress: Progress | None = None) -> Iterator[tuple[list[int], Batch]]:
    """Run the encoder on many inputs, in padded batches of similar length.

    Yields, for each batch, the indices of its inputs and what came out. The longest come first, so
    that a lack of memory shows at once. Padding changes no result by more than rounding.
    """
    for indices in _batches(model, [len(e) for e in inputs], progress):
        chosen = [inputs[i] for i in indices]
        output = forward(model, chosen, attentions=False, heads=heads)
        nsp = _logits(model, output)[1] if heads else None
        yield indices, Batch(output.hidden_states, [len(e) for e in chosen], nsp)


def run_at(model: LoadedModel, inputs: Sequence[Encoded], places: Sequence[int],
           progress: Progress | None = None) -> Iterator[tuple[list[int], torch.Tensor]]:
    """The last layer's state at one place of each of many inputs, in padded batches.

    Nothing else is computed where the architecture allows it, and nothing else is kept. ``inputs``
    may make its items when they are asked for: each is taken twice, and a batch of them held.

    Yields:
        (B indices of inputs, float32 [B, H] on the model's device).
    """
    encoder = model.model.base_model
    for indices in _batches(model, [len(e) for e in inputs], progress):
        tensors = as_tensors(model, encoder, [inputs[i] for i in indices])
        at = torch.tensor([places[i] for i in indices], device=model.device)
        with torch.inference_mode():
            if model.family in LAST_LAYER_AT and not getattr(encoder.config, "is_decoder", False):
                types = tensors.get("token_type_ids", torch.zeros_like(tensors["input_ids"]))
                states = hidden_states_at(encoder, tensors["input_ids"], types,
                                          tensors["attention_mask"], at[:, None])[:, 0]
            else:
                states = encoder(**tensors).last_hidden_state[range(len(indices)), at]
        yield indices, states.float()


@dataclass
class Batch:
    """Tensors on the model's device: B inputs, padded on the right to T pieces."""

    hidden_states: Sequence[torch.Tensor]   # L+1 times [B, T, H]
    lengths: list[int]                      # pieces of each input
    nsp_logits: torch.Tensor | None         # [B, 2]


def pool(model: LoadedModel, texts: Sequence[str], layer: int, how: str = "mean",
         progress: Progress | None = None) -> np.ndarray:
    """One vector for each text: float32 [N, H].

    Args:
        layer: 0 (embeddings) to L.
        how: ``"cls"`` is the vector of the first piece, [CLS]; ``"mean"`` is the mean over the
            word pieces without [CLS] and [SEP] (padding never counts).

    Raises:
        BertScopeError: no such layer or way of pooling; a text that is empty (named by its place).
    """
    if not 0 <= layer <= model.num_layers:
        raise BertScopeError(f"There is no layer {layer}: this model has layers 0 (embeddings) to "
                             f"{model.num_layers}.")
    if how not in ("cls", "mean"):
        raise BertScopeError(f"Texts are pooled by 'cls' or 'mean', not {how!r}.")
    inputs = _encode_all(model, texts)
    vectors = np.zeros((len(inputs), model.hidden_size), np.float32)
    for indices, batch in run_batches(model, inputs, progress=progress):
        states = batch.hidden_states[layer].float().cpu().numpy()
        for row, index in enumerate(indices):
            words = ~inputs[index].special
            vectors[index] = states[row, 0] if how == "cls" else \
                states[row, :len(words)][words].mean(axis=0)
    _check_finite(vectors)
    return vectors


def word_states(model: LoadedModel, sentences: Sequence[Sequence[str]], pooling: str = "mean",
                progress: Progress | None = None,
                ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """A vector for each word of pre-split sentences, from every layer.

    The sentence is read as its words joined by spaces, and each piece belongs to the word in which
    its characters lie. Words without a piece, and words that the model's length cuts off in part or
    whole, have no vector.

    Args:
        sentences: each a list of words.
        pooling: ``"mean"``, ``"first"`` or ``"last"`` over the pieces of a word.

    Returns:
        float32 [L+1, words, H], and two int64 arrays [words]: the sentence of each word and its
        place in that sentence, both from 0 and in order.

    Raises:
        BertScopeError: another way of pooling.
    """
    if pooling not in ("mean", "first", "last"):
        raise BertScopeError(f"Pieces are pooled by 'mean', 'first' or 'last', not {pooling!r}.")
    inputs, owners = [], []
    sentences = [[model.text_encoder.clean(word) for word in words] for words in sentences]
    for number, words in enumerate(sentences):
        try:
            inputs.append(encode(model, " ".join(words)))
            owners.append(number)
        except BertScopeError:
            continue  # a sentence without any piece has no words to show
    groups = [pieces_of_words(encoded, sentences[owner])
              for encoded, owner in zip(inputs, owners, strict=True)]
    starts = np.cumsum([0] + [len(g) for g in groups])
    states = np.zeros((model.num_layers + 1, int(starts[-1]), model.hidden_size), np.float32)
    for indices, batch in run_batches(model, inputs, progress=progress):
        layers = torch.stack(list(batch.hidden_states)).float().cpu().numpy()
        for row, index in enumerate(indices):
            for place, pieces in enumerate(groups[index].values(), start=starts[index]):
                chosen = {"mean": pieces, "first": pieces[:1], "last": pieces[-1:]}[pooling]
                states[:, place] = layers[:, row, chosen].mean(axis=1)
    _check_finite(states)
    of_sentence = [owner for owner, g in zip(owners, groups, strict=True) for _ in g]
    of_word = [word for g in groups for word in g]
    return states, (np.array(of_sentence, np.int64), np.array(of_word, np.int64))


# -- inside -----------------------------------------------------------------------------------


def _batches(model: LoadedModel, lengths: Sequence[int], progress: Progress | None,
             ) -> Iterator[list[int]]:
    """The indices of inputs of similar length, batch by batch; progress is told after each."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    budget = BATCH_PIECES["cpu" if model.device == "cpu" else "cuda"]
    done = 0
    while done < len(order):
        indices = order[done:done + max(1, budget // lengths[order[done]])]
        yield indices
        done += len(indices)
        if progress:
            progress(f"{done:,} of {len(order):,} texts", done / len(order))


@torch.inference_mode()
def forward(model: LoadedModel, inputs: Sequence[Encoded], attentions: bool = False,
            heads: bool = True):
    """The output of transformers' own class for a padded batch, hidden states included.

    Raises:
        BertScopeError: the architecture does not give one state for each layer.
    """
    module = model.model if heads else model.model.base_model
    output = module(**as_tensors(model, module, inputs), output_hidden_states=True,
                    output_attentions=attentions)
    if len(output.hidden_states) != model.num_layers + 1:
        raise BertScopeError(f"BertScope cannot tell the layers of a {model.family} model apart.")
    return output


def as_tensors(model: LoadedModel, module, inputs: Sequence[Encoded]) -> dict[str, torch.Tensor]:
    """What ``module`` is called with: int64 [B, T] each, padded on the right."""
    longest = max(len(e) for e in inputs)
    names = ["input_ids", "attention_mask"]
    if "token_type_ids" in inspect.signature(module.forward).parameters:
        names.append("token_type_ids")
    padding = {"input_ids": model.tokenizer.pad_token_id or 0}
    arrays = {name: np.full((len(inputs), longest), padding.get(name, 0), np.int64)
              for name in names}
    for name, array in arrays.items():
        for row, encoded in enumerate(inputs):
            array[row, :len(encoded)] = getattr(encoded, name)
    return {name: torch.from_numpy(array).to(model.device) for name, array in arrays.items()}


def _attentions(model: LoadedModel, output, length: int) -> np.ndarray:
    weights = getattr(output, "attentions", None) or ()
    expected = (1, model.num_heads, length, length)
    if len(weights) != model.num_layers or any(tuple(w.shape) != expected for w in weights):
        raise BertScopeError(f"A {model.family} model has no attention weights from every piece to "
                             "every piece.")
    return torch.stack([w[0] for w in weights]).float().cpu().numpy()


def _logits(model: LoadedModel, output) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """MLM [B, T, V] and NSP [B, 2], None for a head that the checkpoint doesn't have."""
    mlm = nsp = None
    if model.has_mlm_head:
        mlm = output.prediction_logits if "prediction_logits" in output else output.logits
    if model.has_nsp_head:
        nsp = output.seq_relationship_logits
    return mlm, nsp


def _check_finite(values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise BertScopeError("The weights of this checkpoint give values that are not finite: its "
                             "training has diverged.")


def _first(logits: torch.Tensor | None) -> np.ndarray | None:
    return None if logits is None else logits[0].float().cpu().numpy()


def _encode_all(model: LoadedModel, texts: Sequence[str]) -> list[Encoded]:
    inputs = []
    for number, text in enumerate(texts, start=1):
        try:
            inputs.append(encode(model, text))
        except BertScopeError as error:
            raise BertScopeError(f"Text {number}: {error}") from None
    return inputs


def pieces_of_words(encoded: Encoded, words: Sequence[str]) -> dict[int, list[int]]:
    """``{word: [pieces]}`` for the words that are there as a whole, in their order."""
    ends = np.cumsum([len(w) + 1 for w in words])  # one beyond the space after each word
    groups: dict[int, list[int]] = {}
    for piece, (_, end) in enumerate(encoded.offsets):
        if not encoded.special[piece] and end > 0:
            # By its last character: SentencePiece counts the space before a word to its piece.
            groups.setdefault(int(np.searchsorted(ends, end - 1, side="right")), []).append(piece)
    if encoded.truncated and groups:
        last = max(groups)
        if encoded.offsets[groups[last][-1]][1] < ends[last] - 1:
            del groups[last]
    return groups
