"""Settings that suit a size, a recipe or a corpus, where the user leaves them open."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from bertscope.config import RECIPES, ModelConfig, RunConfig
from bertscope.errors import BertScopeError

#: The small BERTs of Turc et al. 2019 (Table 1: L layers, H hidden), and the two of Devlin et al.
SIZES = {
    "tiny": {"num_hidden_layers": 2, "hidden_size": 128},
    "mini": {"num_hidden_layers": 4, "hidden_size": 256},
    "small": {"num_hidden_layers": 4, "hidden_size": 512},
    "medium": {"num_hidden_layers": 8, "hidden_size": 512},
    "base": {"num_hidden_layers": 12, "hidden_size": 768},
    "large": {"num_hidden_layers": 24, "hidden_size": 1024},
}


def sized(name: str) -> dict[str, int]:
    """Overrides of ``model`` for a named size: heads are 64 wide, the feed-forward layer 4 H."""
    if name not in SIZES:
        raise BertScopeError(f"There is no size called {name!r}; choose from {', '.join(SIZES)}.")
    shape = SIZES[name]
    hidden = shape["hidden_size"]
    return {**shape, "num_attention_heads": hidden // 64, "intermediate_size": 4 * hidden}


def shape_of(folder: str) -> dict[str, object]:
    """Overrides of ``model`` and ``objective`` that fit the weights of a checkpoint folder.

    Raises:
        BertScopeError: there is no ``config.json`` in it, or it cannot be read.
    """
    try:
        record = json.loads((Path(folder) / "config.json").read_text("utf-8"))
        names = [f.name for f in dataclasses.fields(ModelConfig) if f.name in record]
        shape = {f"model.{name}": record[name] for name in names}
        places = record["max_position_embeddings"]
        if record["model_type"] == "roberta":
            places -= record["pad_token_id"] + 1
        return {**shape, "model.dropout": record["hidden_dropout_prob"],
                "objective.max_length": places}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BertScopeError(f"training.init_from must be the folder of a checkpoint with a "
                             f"config.json of a BERT-like model, not {folder!r}.") from None


#: What differs by corpus: found by trial on two CPU cores, see docs/results.md.
CORPUS_DEFAULTS: dict[str, dict[str, object]] = {
    "miniworld": {"corpus.documents": 8000, "corpus.vocab_size": 1152, "objective.max_length": 64,
                  "model.num_attention_heads": 4, "model.intermediate_size": 256,
                  "model.dropout": 0.0,
                  "model.initializer_range": 0.05, "model.positions": "sinusoidal",
                  "training.learning_rate": 3e-3, "training.warmup": 0.03,
                  "training.batch_size": 32, "training.steps": 6000,
                  "training.evaluate_every": 250, "training.checkpoint_every": 250},
    "sotu": {"objective.max_length": 48, "model.dropout": 0.0, "model.initializer_range": 0.05,
             "model.positions": "sinusoidal", "training.learning_rate": 2e-3,
             "training.warmup": 0.03, "training.steps": 8000, "training.evaluate_every": 500,
             "training.checkpoint_every": 500},
}


def defaults(recipe: str, source: str) -> dict[str, object]:
    """Overrides that suit a recipe and a corpus, for settings the user leaves open.

    Raises:
        BertScopeError: there is no such recipe.
    """
    if recipe not in RECIPES:
        raise BertScopeError(f"recipe must be one of {', '.join(RECIPES)}, not {recipe!r}.")
    return {"recipe": recipe, **RECIPES[recipe], **CORPUS_DEFAULTS.get(source, {})}


def run_config(changes: dict[str, object], size: str | None = None, recipe: str = "bert") -> RunConfig:
    """A configuration from what was asked for, over the recipe's and the corpus's own defaults."""
    asked = {k: v for k, v in changes.items() if v is not None}
    # "tiny" is the default shape, which a corpus may refine.
    shape = {} if size in (None, "tiny") else {f"model.{k}": v for k, v in sized(size).items()}
    if "training.init_from" in asked:
        shape = shape_of(str(asked["training.init_from"]))
    suited = defaults(recipe, str(asked.get("corpus.source", "miniworld")))
    return RunConfig().override({**suited, **shape, **asked})
