"""Tiny random models on disk, written by transformers itself, to test against transformers."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers

WORDS = ("the a cat dog sat on mat new house united states of america walk ##ed ##ing ##s un "
         "##believ ##able play . , ? ! ' < > / = [ ] cls sep mask").split()
LETTERS = [mark + letter for letter in "abcdefghijklmnopqrstuvwxyz0123456789"
           for mark in ("", "##")]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = list(dict.fromkeys(SPECIAL + WORDS + LETTERS))

#: What the configurations of other families call things, where they need more than BERT's.
FAMILIES = {
    "roberta": dict(type_vocab_size=1, max_position_embeddings=42, pad_token_id=1, bos_token_id=0,
                    eos_token_id=2),
    "albert": dict(embedding_size=8),
    "electra": dict(embedding_size=8),
    "distilbert": dict(dim=16, n_layers=3, n_heads=4, hidden_dim=32),
    "deberta-v2": dict(relative_attention=True, pos_att_type=["c2p", "p2c"], type_vocab_size=0,
                       position_biased_input=False),
}


def tokenizer():
    return transformers.BertTokenizerFast(vocab={w: i for i, w in enumerate(VOCABULARY)})


def config(family: str = "bert", **changes):
    values = dict(vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=3,
                  num_attention_heads=4, intermediate_size=32, max_position_embeddings=40,
                  # Large enough that a wrong layer or piece is no rounding error.
                  initializer_range=0.5)
    return transformers.AutoConfig.for_model(family, **values | FAMILIES.get(family, {}) | changes)


def save(folder: Path, kind=transformers.BertForPreTraining, seed: int = 0, family: str = "bert",
         **changes):
    """Write a random model and the tokenizer to ``folder``; returns the model."""
    torch.manual_seed(seed)
    model = getattr(kind, "from_config", kind)(config(family, **changes)).eval()
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return model
