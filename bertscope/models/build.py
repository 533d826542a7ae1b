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
        return BertForPreTraining(config)
