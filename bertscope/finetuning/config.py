"""The settings of a fine-tuning run, each with its help line; kept in the run's ``config.json``."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from bertscope.config import TrainingConfig
from bertscope.errors import BertScopeError
from bertscope.settings import Settings, knob

TASKS = ("sentence", "pair", "tokens", "question")


@dataclass(frozen=True)
class DataConfig:
    """Which examples, and which of them are for training, validation and the test."""

    source: str = knob("miniworld", "miniworld, the path of a file, or of a folder with train, dev "
                                    "and test; hf:NAME or hf:NAME/SUBSET with the package datasets")
    task: str = knob("auto", "what is answered: a label for a sentence, for a pair of sentences, for "
                             "each word (tokens), or a question by a part of a paragraph; auto looks "
                             "at the columns", choices=("auto", *TASKS))
    valid: str | None = knob(None, "the validation part's own file")
    test: str | None = knob(None, "the test part's own file")
    text: str | None = knob(None, "column of the text (of the words, of the question)")
    pair: str | None = knob(None, "column of the second text (of the paragraph)")
    label: str | None = knob(None, "column of the label (of the words' tags, of the answers)")
    labels: str = knob("auto", "whether labels are classes or numbers to be predicted; auto takes "
                               "numbers with a fraction for numbers",
                       choices=("auto", "classes", "numbers"))
    header: bool = knob(True, "CSV and TSV begin with a line of column names; without it columns are "
                              "called 1, 2, ...")
    valid_share: float = knob(0.1, "share of the training part that becomes the validation part "
                                   "where there is none", min=0.01, max=0.5)
    test_share: float = knob(0.1, "the same for the test part, where there is but one file",
                             min=0.0, max=0.5)
    split_seed: int = knob(0, "seed of these divisions", min=0, max=2**31 - 1)
    most_train: int | None = knob(None, "train on at most so many examples, drawn by the run's seed",
                                  min=1)
    most_valid: int | None = knob(None, "validate on at most so many, drawn by the split's seed",
                                  min=1)
    most_test: int | None = knob(None, "test on at most so many, drawn by the split's seed", min=1)
    skip_bad: bool = knob(False, "leave out rows that cannot be used, rather than stop at them")

    @property
    def in_files(self) -> bool:
        """Whether ``source`` is a path."""
        return self.source != "miniworld" and not self.source.startswith("hf:")

    @property
    def title(self) -> str:
        """What the examples are called: of a path its last part."""
        return Path(absolute(self.source)).name or self.source if self.in_files else self.source


@dataclass(frozen=True)
class HeadConfig:
    """What stands on the encoder, and what of the encoder is trained with it."""

    layer: str = knob("last", "which layer feeds the head: last, a layer's number (layers above it "
                              "are cut off), or mix, a learnt mixture of all (Peters et al. 2018)")
    dropout: float = knob(0.1, "dropout of hidden states, attention and the head", min=0.0, max=0.9)
    class_weights: str = knob("none", "balanced weighs each class by how rare it is",
                              choices=("none", "balanced"))
    freeze_embeddings: bool = knob(False, "do not train the embeddings")
    freeze_layers: int = knob(0, "do not train the embeddings and so many of the lowest layers",
                              min=0, max=96)
    reinit_layers: int = knob(0, "begin so many of the topmost layers, and the pooler, with random "
                                 "weights (Zhang et al. 2021)", min=0, max=96)
    layer_decay: float = knob(1.0, "learning rate of each layer as a share of the one above it "
                                   "(Howard & Ruder 2018)", min=0.01, max=1.0)
    max_length: int | None = knob(None, "word pieces at most; what the model reads by default",
                                  min=8, max=4096)
    stride: int | None = knob(None, "word pieces by which windows of a paragraph are moved on; half "
                                    "a window by default", min=1, max=4096)
    longest_answer: int = knob(30, "word pieces of an answer at most", min=1, max=512)
    no_answer_margin: float = knob(0.0, "how far 'no answer' must be ahead of the best answer to be "
                                        "given", min=-100.0, max=100.0)


def _as_in_pretraining(name: str, default=None):
    """The knob of ``TrainingConfig``, with another default if one is given."""
    known = TrainingConfig.__dataclass_fields__[name]
    return field(default=known.default if default is None else default, metadata=known.metadata)


@dataclass(frozen=True)
class FinetuneTraining:
    """The loop: optimiser, schedule, what is saved and when."""

    epochs: float = knob(4.0, "passes over the training part", min=0.01, max=10_000)
    batch_size: int = _as_in_pretraining("batch_size")
    accumulation: int = _as_in_pretraining("accumulation")
    learning_rate: float | None = knob(
        None, "peak learning rate; by default 3e-5 for a hidden size of 768, and more for smaller "
              "models", min=1e-7, max=1.0)
    warmup: float = _as_in_pretraining("warmup")
    schedule: str = _as_in_pretraining("schedule")
    weight_decay: float = _as_in_pretraining("weight_decay")
    beta1: float = _as_in_pretraining("beta1")
    beta2: float = _as_in_pretraining("beta2")
    clip: float = _as_in_pretraining("clip")
    patience: int | None = knob(
        None, "stop after so many validations without a better metric", min=1)
    gradient_checkpointing: bool = _as_in_pretraining("gradient_checkpointing")
    compile: bool = _as_in_pretraining("compile")
    tensorboard: bool = _as_in_pretraining("tensorboard")
    precision: str = _as_in_pretraining("precision")
    seed: int = knob(0, "seed of the head's weights, the order, dropout, and of which examples are "
                        "drawn", min=0, max=2**31 - 1)
    log_every: int = _as_in_pretraining("log_every")
    evaluate_every: int | None = knob(
        None, "steps between validations, each with a checkpoint; once an epoch by default", min=1)
    threads: int = _as_in_pretraining("threads")

    def for_loop(self, epoch: int, learning_rate: float) -> TrainingConfig:
        """As the loop wants it, where an epoch has so many updates."""
        every = self.evaluate_every or epoch
        same = {name: getattr(self, name) for name in TrainingConfig.__dataclass_fields__
                if name in self.__dataclass_fields__}
        return TrainingConfig(**{
            **same, "learning_rate": self.learning_rate or learning_rate,
            "steps": max(1, round(self.epochs * epoch)),
            "evaluate_every": every, "checkpoint_every": every})


@dataclass(frozen=True)
class FinetuneConfig(Settings):
    """Everything that decides a fine-tuning run's result, but the checkpoint it begins with."""

    start: str = knob("random", "where it begins: a run (books), a run at a step (books@400), a "
                                "checkpoint's folder or hub name; random:NAME takes only that one's "
                                "shape and vocabulary, random a tiny BERT with a vocabulary of the "
                                "training part")
    data: DataConfig = field(default_factory=DataConfig)
    head: HeadConfig = field(default_factory=HeadConfig)
    training: FinetuneTraining = field(default_factory=FinetuneTraining)

    def settled(self) -> FinetuneConfig:
        """The same with paths that mean the same from every folder."""
        data = self.data
        return self.override({
            "data.source": absolute(data.source) if data.in_files else data.source,
            **{f"data.{part}": absolute(path) for part in ("valid", "test")
               if (path := getattr(data, part)) is not None}})

    def check(self) -> None:
        """Conditions between fields.

        Raises:
            BertScopeError: one is not met.
        """
        layer = self.head.layer
        if layer not in ("last", "mix") and not (layer.isdecimal() and int(layer) > 0):
            raise BertScopeError(f"head.layer must be last, mix or a layer's number from 1 on, not "
                                 f"{layer!r}.")


def absolute(path: str) -> str:
    """A path from the root on; a home that is not there is left to whoever reads it."""
    try:
        return os.path.abspath(Path(path).expanduser())
    except RuntimeError:
        return path


def random_weights(start: str) -> tuple[bool, str]:
    """Whether a starting point has random weights, and the checkpoint in it, "" where there is none.

    A run may be called ``random-books``: only ``random`` and ``random:NAME`` are random.
    """
    first, _, name = start.partition(":")
    return (True, name) if first == "random" else (False, start)


SECTIONS = {"data": DataConfig, "head": HeadConfig, "training": FinetuneTraining}


def default_learning_rate(hidden_size: int) -> float:
    """3e-5 for 768 (Devlin et al. 2019, appendix A.3: 2e-5 to 5e-5); small models need more.

    Turc et al. 2019 found up to 3e-4 best for the small ones; ours are smaller still. The power was
    found by trial, see docs/finetuning.md. One significant digit.
    """
    return float(f"{3e-5 * (768 / hidden_size) ** 2:.0e}")
