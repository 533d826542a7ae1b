"""A number on each head's output: 1 leaves the head as it is, 0 turns it off (Michel et al. 2019,
equation 1)."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import nn

from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from bertscope.analysis.activations import LoadedModel

#: Families whose output projections we know, and whose input is the heads' outputs side by side.
FAMILIES = ("bert", "roberta", "xlm-roberta", "camembert", "electra", "albert", "distilbert",
            "deberta", "deberta-v2")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs",
          "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called")


class Gated(nn.Module):
    """An output projection whose input, the heads' outputs side by side, is weighted by head."""

    def __init__(self, projection: nn.Module, gates: torch.Tensor):
        """``gates``: float [A], or [B, A] with its own for each row of a batch."""
        super().__init__()
        self.projection = projection
        self.gates = gates

    def forward(self, heads: torch.Tensor) -> torch.Tensor:
        """[B, T, A * size] to [B, T, H]."""
        gates = self.gates.repeat_interleave(heads.shape[-1] // self.gates.shape[-1], dim=-1)
        return self.projection(heads * gates.unsqueeze(-2))


def require_gates(model: LoadedModel) -> None:
    """Raise the sentence for an architecture whose heads cannot be turned off here."""
    config = model.model.config
    if model.family not in FAMILIES or getattr(config, "inner_group_num", 1) != 1:
        raise BertScopeError("BertScope cannot turn off heads of this architecture "
                             f"({model.family}): it does not know where their outputs meet.")


def with_gates(model: LoadedModel, gates: torch.Tensor) -> LoadedModel:
    """The same weights in a private copy of the modules, each head's output times its gate.

    ``model`` and other threads that use it notice nothing, and no memory is copied. The gate stands
    before the output projection, whose bias stays. ALBERT's layers share their weights; each pass
    has its own gates.

    Args:
        gates: float [L, A], or [B, L, A] with gates of its own for each row of a batch.

    Raises:
        BertScopeError: as :func:`require_gates`.
    """
    require_gates(model)
    if gates.shape[-2:] != (model.num_layers, model.num_heads):
        raise ValueError(f"gates must be [..., {model.num_layers}, {model.num_heads}]")
    gates = gates.to(model.device)
    private = private_copy(model.model)
    for number, (owner, name) in enumerate(output_projections(private)):
        setattr(owner, name, Gated(getattr(owner, name), gates[..., number, :]))
    values = gates.detach().float().cpu().numpy().tobytes()
    name = f"{model.fingerprint}-gates-{hashlib.sha256(values).hexdigest()[:24]}"
    return dataclasses.replace(model, model=private, fingerprint=name)


def without_heads(model: LoadedModel, off: Iterable[tuple[int, int]]) -> LoadedModel:
    """The model with heads turned off; everything that takes a model takes it.

    Its fingerprint says so: results on it are kept apart. ``model`` itself, if none is off.

    Args:
        off: (layer, head) from 1; head 0 stands for all heads of the layer. The feed-forward block
            and the residual path of the layer stay.

    Raises:
        BertScopeError: no such layer or head, or as :func:`require_gates`.
    """
    gates = torch.ones(model.num_layers, model.num_heads)
    for layer, head in off:
        if not (1 <= layer <= model.num_layers and 0 <= head <= model.num_heads):
            raise BertScopeError(f"There is no head {layer}-{head}: this model has "
                                 f"{model.num_layers} layers with {model.num_heads} heads each.")
        gates[layer - 1, slice(None) if head == 0 else head - 1] = 0
    return model if bool(gates.all()) else with_gates(model, gates)


def private_copy(module: nn.Module, known: dict[int, nn.Module] | None = None) -> nn.Module:
    """The same tree of modules once more, on the same weights: hooks and replacements in the copy
    are no one else's. A module that is in several places is so in the copy. Hooks are not copied
    (transformers installs those that capture outputs anew)."""
    known = {} if known is None else known
    if id(module) not in known:
        made = known[id(module)] = copy.copy(module)
        made.__dict__.update({name: OrderedDict() for name in _HOOKS})
        made.__dict__.pop("_output_capturing_hooks_installed", None)
        made._modules = {name: child and private_copy(child, known)
                         for name, child in module._modules.items()}
    return known[id(module)]


def output_projections(model: nn.Module) -> list[tuple[nn.Module, str]]:
    """Where each layer's output projection is: (its owner, its name), layer 1 first.

    ALBERT's loop over one layer is unrolled, in ``model`` itself: give it a private copy.
    """
    base = model.base_model
    family = base.config.model_type
    if family == "albert":
        return [(group.albert_layers[0].attention, "dense") for group in _unrolled(base.encoder)]
    if family == "distilbert":
        return [(layer.attention, "out_lin") for layer in base.transformer.layer]
    return [(layer.attention.output, "dense") for layer in base.encoder.layer]


def value_projections(model: nn.Module) -> list[tuple[nn.Module, str]]:
    """Where each layer's value projection is; call :func:`output_projections` first (ALBERT).

    Raises:
        BertScopeError: a family that has no projection of values alone.
    """
    base = model.base_model
    family = base.config.model_type
    if family == "albert":
        return [(group.albert_layers[0].attention, "value")
                for group in base.encoder.albert_layer_groups]
    if family == "distilbert":
        return [(layer.attention, "v_lin") for layer in base.transformer.layer]
    name = "value_proj" if family == "deberta-v2" else "value"
    found = [(layer.attention.self, name) for layer in base.encoder.layer]
    if not all(hasattr(*place) for place in found):
        raise BertScopeError("BertScope does not know where the value vectors of this architecture "
                             f"({family}) are made.")
    return found


def _unrolled(encoder: nn.Module) -> nn.ModuleList:
    """ALBERT's groups, one for each pass, sharing their weights."""
    passes = encoder.config.num_hidden_layers
    each = passes / encoder.config.num_hidden_groups  # as transformers counts
    encoder.albert_layer_groups = nn.ModuleList(
        private_copy(encoder.albert_layer_groups[int(i / each)]) for i in range(passes))
    encoder.config = copy.copy(encoder.config)
    encoder.config.num_hidden_groups = passes
    return encoder.albert_layer_groups
