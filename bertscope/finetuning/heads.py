"""From an encoder to a model with the task's head: transformers' own classes, so that a checkpoint
opens in plain transformers. Only a learnt mixture of layers needs a head of ours."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from types import SimpleNamespace

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import (
    AutoModel, AutoModelForQuestionAnswering, AutoModelForSequenceClassification,
    AutoModelForTokenClassification)

from bertscope.errors import BertScopeError
from bertscope.finetuning.config import HeadConfig
from bertscope.finetuning.tasks import TaskSpec
from bertscope.models.encoder import hidden_states_at
from bertscope.training.checkpoints import load_weights

KINDS = {"sentence": AutoModelForSequenceClassification, "pair": AutoModelForSequenceClassification,
         "tokens": AutoModelForTokenClassification, "question": AutoModelForQuestionAnswering}
HEAD_FILE = "head.safetensors"


def task_config(config, spec: TaskSpec, dropout: float | None = None):
    """A copy of an encoder's configuration with the labels, the layers and the dropout of a task.

    A layer's number cuts off those above it. A causal encoder reads in both directions from now on:
    its [CLS] would see nothing else.

    Raises:
        BertScopeError: the encoder has fewer layers.
    """
    config = copy.deepcopy(config)
    if spec.layer.isdecimal():
        if int(spec.layer) > config.num_hidden_layers:
            raise BertScopeError(f"head.layer is {spec.layer}, but the encoder has "
                                 f"{config.num_hidden_layers} layers.")
        config.num_hidden_layers = int(spec.layer)
    if spec.labels:
        config.id2label = dict(enumerate(spec.labels))
        config.label2id = {label: number for number, label in enumerate(spec.labels)}
    elif spec.numbers:
        config.num_labels, config.problem_type = 1, "regression"
    if dropout is not None:
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout",
                     "attention_dropout", "classifier_dropout", "classifier_dropout_prob",
                     "seq_classif_dropout", "qa_dropout", "pooler_dropout"):
            if hasattr(config, name):
                setattr(config, name, dropout)
    if getattr(config, "is_decoder", False):
        config.is_decoder = False
    return config


def new_model(config, spec: TaskSpec, seed: int) -> nn.Module:
    """A model of random weights; the caller's random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if spec.layer == "mix":
            return MixedLayers(AutoModel.from_config(config, attn_implementation=fastest(config)), spec)
        return KINDS[spec.task].from_config(config, attn_implementation=fastest(config))


def fastest(config) -> str:
    """transformers' fused attention where the architecture has it (DeBERTa's has not)."""
    return "sdpa" if AutoModel._model_mapping[type(config)]._supports_sdpa else "eager"


def body(model: nn.Module) -> nn.Module:
    """The encoder without its head."""
    return model.encoder if isinstance(model, MixedLayers) else model.base_model


def save_model(model: nn.Module, folder: Path) -> None:
    """Of a mixture, the encoder as a standard directory and the head beside it."""
    if isinstance(model, MixedLayers):
        model.encoder.save_pretrained(folder)
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in
                   model.state_dict().items() if not name.startswith("encoder.")},
                  folder / HEAD_FILE)
    else:
        model.save_pretrained(folder)


def load_model_weights(model: nn.Module, folder: Path) -> None:
    """What ``save_model`` wrote, into a model of its shape.

    Raises:
        ValueError: it is another model's.
    """
    if not isinstance(model, MixedLayers):
        load_weights(model, folder)
        return
    load_weights(model.encoder, folder)
    head = load_file(folder / HEAD_FILE)
    missing, unexpected = model.load_state_dict(head, strict=False)
    if unexpected or any(not name.startswith("encoder.") for name in missing):
        raise ValueError("another head than this model's")


class MixedLayers(nn.Module):
    """A head on a learnt mixture of all layers, the embeddings among them.

    gamma * sum_l softmax(w)_l h_l (Peters et al. 2018, equation 1), then for a sentence or a pair a
    dense layer with tanh on [CLS] as BERT's pooler, then a linear layer.
    """

    def __init__(self, encoder: nn.Module, spec: TaskSpec):
        super().__init__()
        config = encoder.config
        width, outputs = config.hidden_size, 2 if spec.task == "question" else len(spec.labels) or 1
        self.encoder, self.spec = encoder, spec
        self.mixture = nn.Parameter(torch.zeros(config.num_hidden_layers + 1))
        self.gamma = nn.Parameter(torch.ones(1))
        self.dropout = nn.Dropout(getattr(config, "hidden_dropout_prob", 0.1))
        self.pooled = spec.task in ("sentence", "pair")
        self.dense = nn.Linear(width, width) if self.pooled else None
        self.classifier = nn.Linear(width, outputs)
        for name, parameter in encoder.named_parameters():
            if "pooler" in name:  # a mixture has no use for it
                parameter.requires_grad_(False)
        for layer in filter(None, (self.dense, self.classifier)):
            nn.init.normal_(layer.weight, std=getattr(config, "initializer_range", 0.02))
            nn.init.zeros_(layer.bias)

    @property
    def config(self):
        return self.encoder.config

    @property
    def shares(self) -> torch.Tensor:
        """How much of each layer is in the mixture, [L + 1]."""
        return self.mixture.softmax(0)

    def forward(self, input_ids, attention_mask=None, **more):
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask,
                              output_hidden_states=True, **more).hidden_states
        mixed = self.gamma * sum(share * state for share, state in zip(self.shares, states))
        if self.pooled:
            mixed = torch.tanh(self.dense(self.dropout(mixed[:, 0])))
        return SimpleNamespace(logits=self.classifier(self.dropout(mixed)))


# -- logits -----------------------------------------------------------------------------------


def logits_of(model: nn.Module, spec: TaskSpec, input_ids: torch.Tensor,
              token_type_ids: torch.Tensor, attention_mask: torch.Tensor | None) -> torch.Tensor:
    """The head's logits: [B, C], [B, T, C], or [B, T, 2] for a question.

    A label is read off [CLS], so the last layer is computed there alone where that is known how.
    """
    kind = model.config.model_type
    stock = not isinstance(model, MixedLayers)
    if stock and spec.task in ("sentence", "pair") and kind in ("bert", "roberta", "electra"):
        first = torch.zeros(len(input_ids), 1, dtype=torch.int64, device=input_ids.device)
        states = hidden_states_at(model.base_model, input_ids, token_type_ids, attention_mask, first)
        if kind == "bert":
            return model.classifier(model.dropout(model.bert.pooler(states)))
        return model.classifier(states)
    inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
    if getattr(model.config, "type_vocab_size", 0):
        inputs["token_type_ids"] = token_type_ids
    found = model(**inputs)
    if spec.task == "question" and stock:
        return torch.stack([found.start_logits, found.end_logits], dim=-1)
    return found.logits


# -- which weights are trained, and how fast --------------------------------------------------

_LAYER = re.compile(r"\.layers?\.(\d+)\.")


def depth(name: str, layers: int) -> int:
    """0 for embeddings, 1 ... L for the encoder's layers, L + 1 for the pooler and the head.

    ALBERT's one layer, which is all of them, counts as the topmost.
    """
    if found := _LAYER.search(name):
        return int(found[1]) + 1
    if "albert_layer_groups" in name:
        return layers
    if "embedding" in name or ".encoder." in name:  # DeBERTa's normalised relative positions
        return 0
    return layers + 1


def freeze(model: nn.Module, head: HeadConfig) -> None:
    """Leave out of the training what is to stay as it is.

    Raises:
        BertScopeError: nothing of the encoder can be frozen so.
    """
    layers = model.config.num_hidden_layers
    if head.freeze_layers > layers:
        raise BertScopeError(f"head.freeze_layers is {head.freeze_layers}, but the encoder has "
                             f"{layers} layers.")
    if head.freeze_layers and model.config.model_type == "albert" and head.freeze_layers < layers:
        raise BertScopeError("ALBERT's layers share their weights: freeze all of them or none.")
    highest = head.freeze_layers if head.freeze_layers else -1 + head.freeze_embeddings
    for name, parameter in model.named_parameters():
        if depth(name, layers) <= highest:
            parameter.requires_grad_(False)
