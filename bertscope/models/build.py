"""From a configuration to a model of the transformers library, never to one of our own."""

from __future__ import annotations

import torch
from transformers import BertConfig, BertForPreTraining

from bertscope.config import ModelConfig


def build(model: ModelConfig, tokenizer, max_length: int, seed: int) -> BertForPreTraining:
    """A freshly initialised BERT with both of its heads (Devlin et al. 2019, section 3).

    Weights are normal(0, ``initializer_range``), the decoder is tied to the word embeddings.
    ``seed`` decides them whatever was drawn before; the caller's random state is left as it was.
    """
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=model.hidden_size,
        num_hidden_layers=model.num_hidden_layers,
        num_attention_heads=model.num_attention_heads,
        intermediate_size=model.intermediate_size,
        hidden_dropout_prob=model.dropout,
        attention_probs_dropout_prob=model.dropout,
        initializer_range=model.initializer_range,
        max_position_embeddings=max_length,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        built = BertForPreTraining(config)
    if model.positions == "sinusoidal":
        table = built.bert.embeddings.position_embeddings.weight
        with torch.no_grad():
            table.copy_(sinusoids(*table.shape) * (2**0.5 * model.initializer_range))
    return built


def sinusoids(length: int, width: int, base: float = 200.0) -> torch.Tensor:
    """Sines and cosines of the place, float32 [length, width], each row of norm sqrt(width / 2).

    Vaswani et al. 2017, section 3.5, here only as a start: the embeddings are learnt from there.
    A step to the left or right is one rotation wherever it is taken, so attention to a neighbour
    need not be found anew for every place. ``base`` suits examples of some hundred pieces.
    """
    frequencies = base ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(length)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)
