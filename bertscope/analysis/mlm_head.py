"""A model's own MLM head, on any hidden states: the last layer's, an inner one's, many inputs' at once.

Each family keeps its head elsewhere and calls its parts by other names. Instead of knowing them all,
the model's own ``forward`` is run with an encoder in its encoder's place that does nothing but
answer with the states that are asked about.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutputWithPooling

from bertscope.analysis.activations import Encoded, LoadedModel, Progress, run_batches
from bertscope.errors import BertScopeError

#: Logits computed at once: 64 MiB of float32.
MOST_LOGITS = 1 << 24


class _Answering(nn.Module):
    """Stands in the place of an encoder; some heads ask it for the encoder's word embeddings."""

    def __init__(self, encoder: nn.Module, hidden_states: torch.Tensor):
        super().__init__()
        self.embeddings = encoder.embeddings
        self.hidden_states = hidden_states

    def forward(self, *_, **__) -> BaseModelOutputWithPooling:
        return BaseModelOutputWithPooling(last_hidden_state=self.hidden_states,
                                          pooler_output=self.hidden_states[:, 0])


def mlm_logits(model: LoadedModel, hidden_states: torch.Tensor) -> torch.Tensor:
    """The MLM head's logits for hidden states.

    Args:
        hidden_states: float [..., H], on the model's device.

    Returns:
        float32 [..., V]; of the last layer's states, those that the model itself gives.

    Raises:
        BertScopeError: the checkpoint has no MLM head.
    """
    require_mlm_head(model)
    flat = hidden_states.reshape(1, -1, hidden_states.shape[-1])
    around = copy.copy(model.model)  # the model itself is shared and never changed
    around._modules = {**model.model._modules,
                       model.model.base_model_prefix: _Answering(model.model.base_model, flat)}
    output = around(input_ids=torch.zeros(flat.shape[:2], dtype=torch.long, device=flat.device))
    logits = output.prediction_logits if "prediction_logits" in output else output.logits
    return logits[0].float().unflatten(0, hidden_states.shape[:-1])


def log_probabilities_at(model: LoadedModel, inputs: Sequence[Encoded],
                         places: Sequence[Sequence[int]], progress: Progress | None = None,
                         ) -> Iterator[tuple[int, np.ndarray]]:
    """The distributions over the vocabulary at chosen places of many inputs, in batches.

    The inputs are read as they are: nothing is masked here. The head is run only where it is asked.

    Args:
        places: for each input, positions in it.

    Yields:
        (the input's number, float32 [its places, V] natural logarithms), in no special order.

    Raises:
        BertScopeError: the checkpoint has no MLM head, or its weights are not finite.
    """
    require_mlm_head(model)
    most = max(1, MOST_LOGITS // model.model.config.vocab_size)
    for indices, batch in run_batches(model, inputs, progress=progress):
        rows = [row for row, index in enumerate(indices) for _ in places[index]]
        columns = [place for index in indices for place in places[index]]
        states = batch.hidden_states[-1][rows, columns]
        with torch.inference_mode():
            found = torch.cat([mlm_logits(model, part).log_softmax(-1).cpu()
                               for part in states.split(most)] or [torch.zeros(0, 0)])
        if not torch.isfinite(found).all():
            raise BertScopeError("The weights of this checkpoint give values that are not finite: "
                                 "its training has diverged.")
        start = 0
        for index in indices:
            end = start + len(places[index])
            yield index, found[start:end].numpy()
            start = end


def require_mlm_head(model: LoadedModel) -> None:
    """Raise the sentence for a checkpoint that cannot fill masks."""
    if model.has_mlm_head:
        return
    if getattr(model.model.config, "is_decoder", False):
        raise BertScopeError("This is a causal model: it predicts the next piece from those to its "
                             "left, and cannot fill a mask.")
    raise BertScopeError("This checkpoint has no MLM head: it cannot say what a masked piece was.")
