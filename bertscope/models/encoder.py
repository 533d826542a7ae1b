"""The encoder run for pretraining: its last layer only at the places that a loss looks at.

The two losses read [CLS] and the masked 15 %. Every layer but the last must be computed everywhere,
for its output is attended to; the last layer's keys and values too. Its queries, its feed-forward
block and its normalisations are needed at those places alone. The result is the same, and so are
the gradients; of a two-layer model's work, a third is saved.
"""

from __future__ import annotations

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers.masking_utils import create_bidirectional_mask


def hidden_states_at(encoder, input_ids: torch.Tensor, token_type_ids: torch.Tensor,
                     attention_mask: torch.Tensor | None, places: torch.Tensor) -> torch.Tensor:
    """``last_hidden_state`` at chosen places.

    Args:
        encoder: a bidirectional ``BertModel``, ``RobertaModel``, ``ElectraModel``, or any other
            encoder of transformers (ALBERT's layers are one, DeBERTa's attention needs every
            query: those are computed whole).
        input_ids, token_type_ids: int64 [B, T].
        attention_mask: 1 = a piece, 0 = padding, [B, T]; None where no row is padded.
        places: int64 [B, Q], each in 0 .. T - 1.

    Returns:
        [B, Q, hidden_size].
    """
    if encoder.config.model_type not in ("bert", "roberta", "electra"):
        hidden_states = encoder(input_ids=input_ids, token_type_ids=token_type_ids,
                                attention_mask=attention_mask).last_hidden_state
        return _gather(hidden_states, places)
    hidden_states = encoder.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
    if hasattr(encoder, "embeddings_project"):
        hidden_states = encoder.embeddings_project(hidden_states)
    mask = create_bidirectional_mask(config=encoder.config, inputs_embeds=hidden_states,
                                     attention_mask=attention_mask)
    *layers, last = encoder.encoder.layer
    for layer in layers:
        hidden_states = layer(hidden_states, mask)
    return _layer_at(last, hidden_states, mask, places)


def _gather(hidden_states: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    rows = torch.arange(len(places), device=places.device)[:, None] * hidden_states.shape[1]
    chosen = hidden_states.flatten(0, 1).index_select(0, (rows + places).flatten())
    return chosen.view(*places.shape, -1)


def _layer_at(layer, hidden_states, mask, places):
    chosen = _gather(hidden_states, places)
    attention = layer.attention.self

    def heads(states):
        return states.unflatten(-1, (attention.num_attention_heads, -1)).transpose(1, 2)

    context = scaled_dot_product_attention(
        heads(attention.query(chosen)), heads(attention.key(hidden_states)),
        heads(attention.value(hidden_states)),
        attn_mask=None if mask is None else mask[:, :, :1],  # every query sees the same keys
        dropout_p=attention.dropout.p if layer.training else 0.0)
    attended = layer.attention.output(context.transpose(1, 2).flatten(2), chosen)
    return layer.feed_forward_chunk(attended)
