"""From a recipe and a shape to a model of the transformers library, never to one of our own."""

from __future__ import annotations

import torch
from torch import nn
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    AlbertForPreTraining,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertLMHeadModel,
    DebertaV2Config,
    DebertaV2ForMaskedLM,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    RobertaConfig,
    RobertaForMaskedLM,
)

from bertscope.config import ModelConfig, RunConfig


def build(config: RunConfig, tokenizer) -> nn.Module:
    """A freshly initialised model of the recipe, with every head that its objectives train.

    Weights are normal(0, ``initializer_range``), the decoder is tied to the word embeddings.
    ``training.seed`` decides them whatever was drawn before; the caller's random state is left as
    it was. Where examples are no pairs, BERT and ALBERT come without a pair head and a pooler.
    """
    paired = config.objective.pairs in ("nsp", "sop")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        model = _RECIPES[config.recipe](config.model, _common(config, tokenizer), paired)
    if config.model.positions == "sinusoidal":
        _sinusoidal_start(model, config.model.initializer_range)
    return model


def _common(config: RunConfig, tokenizer) -> dict:
    """What the families' configurations have in common."""
    model = config.model
    return dict(
        vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id, eos_token_id=tokenizer.sep_token_id,
        hidden_size=model.hidden_size, num_hidden_layers=model.num_hidden_layers,
        num_attention_heads=model.num_attention_heads, intermediate_size=model.intermediate_size,
        hidden_act="gelu", hidden_dropout_prob=model.dropout,
        attention_probs_dropout_prob=model.dropout, initializer_range=model.initializer_range,
        layer_norm_eps=1e-12, type_vocab_size=2,
        max_position_embeddings=config.objective.max_length)


def _bert(model: ModelConfig, common: dict, paired: bool) -> nn.Module:
    return (BertForPreTraining if paired else BertForMaskedLM)(BertConfig(**common))


def _roberta(model: ModelConfig, common: dict, paired: bool) -> nn.Module:
    places = common["max_position_embeddings"] + common["pad_token_id"] + 1  # counted from there
    return RobertaForMaskedLM(RobertaConfig(
        **{**common, "type_vocab_size": 1, "max_position_embeddings": places}))


def _albert(model: ModelConfig, common: dict, paired: bool) -> nn.Module:
    """Factorised embeddings, one layer's weights for all (Lan et al. 2019, section 3.1)."""
    config = AlbertConfig(**common, embedding_size=embedding_size(model), num_hidden_groups=1,
                          inner_group_num=1, num_labels=2, classifier_dropout_prob=model.dropout)
    return (AlbertForPreTraining if paired else AlbertForMaskedLM)(config)


def _deberta(model: ModelConfig, common: dict, paired: bool) -> nn.Module:
    """Disentangled attention over relative positions (He et al. 2020, section 3), no absolute ones.

    The enhanced mask decoder of section 4 is left out: no class of transformers holds one.
    """
    return DebertaV2ForMaskedLM(DebertaV2Config(
        **{**common, "type_vocab_size": 0}, relative_attention=True, pos_att_type=["c2p", "p2c"],
        position_biased_input=False, position_buckets=-1, share_att_key=True,
        norm_rel_ebd="layer_norm", max_relative_positions=common["max_position_embeddings"],
        legacy=False))


def _causal(model: ModelConfig, common: dict, paired: bool) -> nn.Module:
    """BERT's own layers with each place seeing only what stands left of it."""
    return BertLMHeadModel(BertConfig(**common, is_decoder=True, use_cache=False))


class Electra(nn.Module):
    """A generator and a discriminator over one table of embeddings (Clark et al. 2020, section 3).

    Shared are the word, position and segment embeddings and their normalisation; each has its own
    projection to its width.
    """

    def __init__(self, generator: ElectraForMaskedLM, discriminator: ElectraForPreTraining):
        super().__init__()
        generator.electra.embeddings = discriminator.electra.embeddings
        generator.tie_weights()
        self.discriminator, self.generator = discriminator, generator


def _electra(model: ModelConfig, common: dict, paired: bool) -> Electra:
    width = max(8, round(model.hidden_size * model.generator_size))
    heads = max(1, width // 64)
    small = {**common, "hidden_size": width - width % heads, "num_attention_heads": heads,
             "intermediate_size": 4 * width}
    size = embedding_size(model)
    return Electra(ElectraForMaskedLM(ElectraConfig(**small, embedding_size=size)),
                   ElectraForPreTraining(ElectraConfig(**common, embedding_size=size)))


_RECIPES = {"bert": _bert, "roberta": _roberta, "albert": _albert, "electra": _electra,
            "deberta": _deberta, "causal": _causal}


def embedding_size(model: ModelConfig) -> int:
    """The width of the word embeddings where they are factorised: 128, or half of a narrow model."""
    return model.embedding_size or min(128, max(8, model.hidden_size // 2))


def _sinusoidal_start(model: nn.Module, deviation: float) -> None:
    for name, table in model.named_parameters():
        if name.endswith("position_embeddings.weight"):
            with torch.no_grad():
                table.copy_(sinusoids(*table.shape) * (2**0.5 * deviation))


def sinusoids(length: int, width: int, base: float = 200.0) -> torch.Tensor:
    """Sines and cosines of the place, float32 [length, width], each row of norm sqrt(width / 2).

    Vaswani et al. 2017, section 3.5, here only as a start: the embeddings are learnt from there.
    A step to the left or right is one rotation wherever it is taken, so attention to a neighbour
    need not be found anew for every place. ``base`` suits examples of some hundred pieces.
    """
    frequencies = base ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(length)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :width]


def parts(model: nn.Module) -> dict[str, nn.Module]:
    """The transformers models a run trains, by their folder within a checkpoint."""
    if isinstance(model, Electra):
        return {"": model.discriminator, "generator": model.generator}
    return {"": model}
