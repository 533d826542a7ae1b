"""A model that goes on from a layer's states after something was removed from them."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from bertscope.analysis.head_gates import _unrolled, private_copy
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from bertscope.analysis.loading import LoadedModel
    from bertscope.analysis.probing.erasing import Eraser

#: Where something is removed: at the places of mask tokens, or of all pieces but the special ones.
PLACES = ("masked", "words")
FAMILIES = ("bert", "roberta", "xlm-roberta", "camembert", "electra", "albert", "distilbert",
            "deberta", "deberta-v2")


def with_erased(model: LoadedModel, layer: int, eraser: Eraser, places: str = "masked") -> LoadedModel:
    """The same weights in a private copy of the modules; between ``layer`` and the next one the states
    at ``places`` go through ``eraser``. Its fingerprint says so.

    Args:
        layer: 0 (embeddings) to L.

    Raises:
        BertScopeError: no such layer or places, or an architecture whose layers are not known.
    """
    if places not in PLACES:
        raise BertScopeError(f"Something can be removed at places 'masked' or 'words', not {places!r}.")
    if not 0 <= layer <= model.num_layers:
        raise BertScopeError(f"There is no layer {layer}: this model has layers 0 (embeddings) to "
                             f"{model.num_layers}.")
    private = private_copy(model.model)
    _Erasing(model, eraser, places).attach(private.base_model, _outputs(private)[layer])
    digest = hashlib.sha256(eraser.removed.tobytes() + eraser.mean.tobytes()).hexdigest()[:24]
    return dataclasses.replace(model, model=private,
                               fingerprint=f"{model.fingerprint}-erased-{layer}-{places}-{digest}")


class _Erasing:
    """The hooks: one that notes which pieces are read, one that changes a module's output."""

    def __init__(self, model: LoadedModel, eraser: Eraser, places: str):
        def tensor(values: np.ndarray) -> torch.Tensor:
            return torch.tensor(values, dtype=torch.float32, device=model.device)

        self.removed, self.mean = tensor(eraser.removed), tensor(eraser.mean)
        mask = model.tokenizer.mask_token_id
        self.masked = places == "masked"
        chosen = [mask] if self.masked else [i for i in model.tokenizer.all_special_ids if i != mask]
        self.ids = torch.tensor(chosen, device=model.device)
        self.here: torch.Tensor | None = None

    def attach(self, encoder: nn.Module, module: nn.Module) -> None:
        encoder.register_forward_pre_hook(self.note, with_kwargs=True)
        module.register_forward_hook(self.change)

    def note(self, module: nn.Module, args: tuple, kwargs: dict) -> None:
        ids = kwargs["input_ids"] if "input_ids" in kwargs else args[0]
        inside = torch.isin(ids, self.ids)
        self.here = (inside if self.masked else ~inside)[..., None]

    def change(self, module: nn.Module, args: tuple, output):
        states = output[0] if isinstance(output, tuple) else output
        changed = torch.where(self.here, states - (states - self.mean) @ self.removed.T, states)
        return (changed, *output[1:]) if isinstance(output, tuple) else changed


def _outputs(model: nn.Module) -> list[nn.Module]:
    """The modules whose outputs are the states of layers 0 to L.

    Raises:
        BertScopeError: they are not known for this architecture.
    """
    base, family = model.base_model, model.base_model.config.model_type
    if family not in FAMILIES or getattr(base.config, "inner_group_num", 1) != 1 \
            or getattr(getattr(base, "encoder", None), "conv", None) is not None:
        raise BertScopeError(f"BertScope cannot reach between the layers of a {family} model built "
                             "like this one.")
    if family == "albert":
        return [base.encoder.embedding_hidden_mapping_in,
                *(group.albert_layers[-1] for group in _unrolled(base.encoder))]
    if family == "distilbert":
        return [base.embeddings, *base.transformer.layer]
    first = base.embeddings_project if hasattr(base, "embeddings_project") else base.embeddings
    return [first, *base.encoder.layer]
