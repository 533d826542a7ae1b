"""The three vectors that BERT adds up for each piece, and what becomes of the sum.

Source: Devlin et al. 2019, section 3.2 and figure 2: token + segment + position. The sum is
normalised (``LayerNorm``), and that is ``hidden_states[0]``. ALBERT and ELECTRA add narrower
vectors and widen the normalised sum by a linear layer (Lan et al. 2019, section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from bertscope.analysis.activations import Encoded, LoadedModel, run
from bertscope.errors import BertScopeError

TOKEN, SEGMENT, POSITION = "token", "segment", "position"
#: The largest difference to the model's own output that rounding explains, relative to its size.
ROUNDING = 1e-4


@dataclass(frozen=True)
class InputEmbeddings:
    """One input of T pieces, float32.

    Attributes:
        parts: ``token``, ``segment`` and ``position`` [T, E], those that the model has.
        total: their sum, [T, E].
        normalised: the LayerNorm of the sum, [T, E].
        projected: widened to the encoder's width, [T, H]; None where E = H.
        missing: a sentence for each thing that this family does otherwise than BERT.
        error: the largest difference between the outcome and the model's own ``hidden_states[0]``.
    """

    parts: dict[str, np.ndarray]
    total: np.ndarray
    normalised: np.ndarray
    projected: np.ndarray | None
    missing: tuple[str, ...]
    error: float

    @property
    def outcome(self) -> np.ndarray:
        """What the first layer reads, [T, H]."""
        return self.normalised if self.projected is None else self.projected

    def lengths(self) -> dict[str, float]:
        """The mean Euclidean length of each part's vectors and of the sum's."""
        return {name: float(np.linalg.norm(vectors, axis=1).mean())
                for name, vectors in {**self.parts, "sum": self.total}.items()}


@torch.inference_mode()
def input_embeddings(model: LoadedModel, ids: np.ndarray, token_type_ids: np.ndarray,
                     ) -> InputEmbeddings:
    """The parts of the input's embeddings.

    Args:
        ids, token_type_ids: int64 [T], special pieces included.

    Raises:
        BertScopeError: the input is too long for the model or has pieces that it does not know, or
            its family adds up other things than these.
    """
    _check(model, ids)
    layer = model.model.base_model.embeddings
    types = token_type_ids if model.text_encoder.has_segments else np.zeros_like(token_type_ids)
    try:
        parts = {TOKEN: layer.word_embeddings(torch.from_numpy(ids).to(model.device))}
        if getattr(layer, "token_type_embeddings", None) is not None:
            parts[SEGMENT] = layer.token_type_embeddings(torch.from_numpy(types).to(model.device))
        if getattr(layer, "position_embeddings", None) is not None:
            parts[POSITION] = layer.position_embeddings(_positions(layer, len(ids)))
        if getattr(layer, "embed_proj", None) is not None:  # DeBERTa widens before it normalises
            parts = {name: layer.embed_proj(part) for name, part in parts.items()}
        total = sum(parts.values())
        normalised = layer.LayerNorm(total)
        widen = _projection(model)
        projected = widen(normalised) if widen is not None else None
    except (AttributeError, TypeError):
        raise _otherwise(model) from None
    arrays = {name: part.float().cpu().numpy() for name, part in parts.items()}
    outcome = (normalised if projected is None else projected).float().cpu().numpy()
    own = run(model, _encoded(ids, types), heads=False).hidden_states[0]
    if own.shape != outcome.shape:
        raise _otherwise(model)
    error = float(np.abs(own - outcome).max())
    if error > ROUNDING * max(1.0, float(np.abs(own).max())):
        raise _otherwise(model)
    return InputEmbeddings(
        arrays, total.float().cpu().numpy(), normalised.float().cpu().numpy(),
        None if projected is None else outcome, tuple(_missing(model, layer, parts, outcome)), error)


def _check(model: LoadedModel, ids: np.ndarray) -> None:
    if len(ids) > model.max_length:
        raise BertScopeError(f"The example has {len(ids):,} pieces; this checkpoint reads at most "
                             f"{model.max_length:,} at once.")
    if int(ids.max()) >= model.model.config.vocab_size:
        raise BertScopeError("The example has pieces that this checkpoint does not know.")


def _otherwise(model: LoadedModel) -> BertScopeError:
    return BertScopeError(f"A {model.family} model makes its input in a way that BertScope cannot "
                          "take apart.")


def _positions(layer, count: int) -> torch.Tensor:
    """0, 1, 2 ...; RoBERTa's begin after the number of its padding piece."""
    first = getattr(layer.position_embeddings, "padding_idx", None)
    start = 0 if first is None else first + 1
    return torch.arange(start, start + count, device=layer.word_embeddings.weight.device)


def _projection(model: LoadedModel):
    """The linear layer from the embeddings' width to the encoder's, if there is one."""
    base = model.model.base_model
    found = getattr(base, "embeddings_project", None)  # ELECTRA
    return found if found is not None else getattr(
        getattr(base, "encoder", None), "embedding_hidden_mapping_in", None)  # ALBERT


def _missing(model: LoadedModel, layer, parts, outcome: np.ndarray) -> list[str]:
    said = []
    if SEGMENT not in parts:
        said.append("This model has no segment vectors: only [SEP] tells A from B.")
    elif layer.token_type_embeddings.num_embeddings == 1:
        said.append("This model has one segment vector, which it adds to every piece: only the "
                    "separators tell A from B.")
    if POSITION not in parts:
        said.append("This model adds no position vectors: its attention compares how far apart two "
                    "pieces are instead.")
    elif getattr(layer.position_embeddings, "padding_idx", None) is not None:
        said.append(f"This model counts its positions from "
                    f"{layer.position_embeddings.padding_idx + 1}.")
    width = parts[TOKEN].shape[1]
    if width != outcome.shape[1]:
        said.append(f"The vectors that are added are {width} numbers wide; a linear layer widens "
                    f"the normalised sum to {outcome.shape[1]}.")
    return said


def _encoded(ids: np.ndarray, types: np.ndarray) -> Encoded:
    size = len(ids)
    return Encoded(input_ids=ids, token_type_ids=types, attention_mask=np.ones(size, np.int64),
                   tokens=[""] * size, word_ids=[None] * size, special=np.zeros(size, bool),
                   segments=types.tolist(), offsets=[(0, 0)] * size, text="")
