"""From a model and gold annotation to one accuracy per layer, with what it must be compared to."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import bertscope
from bertscope.analysis.probing import classifier, metrics
from bertscope.analysis.probing.baselines import majority_label, type_predictions
from bertscope.analysis.probing.gold import Gold, fingerprint
from bertscope.analysis.probing.states import Part, read_part
from bertscope.analysis.probing.tasks import labeller, title
from bertscope.corpus.conllu import Sentence
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from bertscope.analysis.activations import LoadedModel

Progress = Callable[[str, float | None], None]
#: Raise it when the same question would get another answer.
VERSION = 1
#: Of the whole time, the share for running the encoder; only the progress bar depends on it.
READING = 0.4


@dataclass(frozen=True)
class ProbeConfig:
    """What is asked. Sizes count labelled words; it is whole sentences that are sampled."""

    task: str = "upos"
    max_train: int = 8000
    max_valid: int = 2000
    max_test: int = 4000
    seed: int = 0
    pooling: str = "mean"      # of a word's pieces, as in ``activations.word_states``
    masked: bool = False       # hide each probed word: what does the context tell about it?
    random_init: bool = True   # also probe the same architecture with random weights

    def __post_init__(self) -> None:
        labeller(self.task)
        for name in ("max_train", "max_valid", "max_test"):
            if getattr(self, name) < 1:
                raise BertScopeError(f"{name} must be at least 1.")
        if self.seed < 0:
            raise BertScopeError("The seed must be at least 0.")


@dataclass
class ProbeResult:
    """What each layer knows of a task, measured on the test part.

    ``layers`` has a row per layer 0...L (0 = embeddings): ``layer``, ``accuracy`` with its 95 %
    interval ``low``-``high``, ``macro_f1``, and of the classifier ``C``, ``iterations``,
    ``converged``. ``random_layers`` is the same for random weights, or None. ``words`` has a row
    per test word: ``sentence`` and ``word`` (places in the test part), ``form``, ``label`` and what
    each layer answered (``layer_0`` ...).
    """

    task: str
    layers: pd.DataFrame
    random_layers: pd.DataFrame | None
    majority: float
    type_baseline: float
    labels: list[str]
    n_train: int
    n_valid: int
    n_test: int
    seed: int
    words: pd.DataFrame
    meta: dict = field(default_factory=dict)

    def to_frame(self) -> pd.DataFrame:
        """One tidy table: a row per ``weights`` (``trained``, ``random``) and layer.

        The baselines, sizes and the task stand in every row, so that tables of several
        checkpoints can be put under each other.
        """
        parts = [self.layers.assign(weights="trained")]
        if self.random_layers is not None:
            parts.append(self.random_layers.assign(weights="random"))
        return pd.concat(parts, ignore_index=True).assign(
            task=self.task, title=title(self.task), majority=self.majority,
            type_baseline=self.type_baseline, n_labels=len(self.labels), n_train=self.n_train,
            n_valid=self.n_valid, n_test=self.n_test, seed=self.seed)

    def to_json(self) -> str:
        """The result with its manifest: enough to reproduce it."""
        record = {"task": self.task, "majority": self.majority, "type_baseline": self.type_baseline,
                  "labels": self.labels, "n_train": self.n_train, "n_valid": self.n_valid,
                  "n_test": self.n_test, "seed": self.seed, **self.meta,
                  "rows": self.to_frame().to_dict("records")}
        return json.dumps(record, indent=2, default=_plain)


def result_key(model: LoadedModel, gold: Gold, config: ProbeConfig, **more) -> dict:
    """The key under which a result is cached: everything that decides it, and ``more`` to show."""
    return {"version": VERSION, "checkpoint": model.fingerprint, "data": gold.fingerprint,
            "data_name": gold.name, **dataclasses.asdict(config), **more}


def probe(model: LoadedModel, train: Sequence[Sentence], valid: Sequence[Sentence],
          test: Sequence[Sentence], config: ProbeConfig, progress: Progress | None = None,
          ) -> ProbeResult:
    """Train a linear classifier on each layer's word vectors and test it on held-out sentences.

    The encoder runs once per sentence for all layers. Features are standardised on the training
    part; the penalty is chosen on the validation part; the test part is used once. Intervals are
    percentiles of a bootstrap over test sentences. Protocol: Hewitt and Liang 2019, section 3
    (tasks over words, linear probe); Belinkov 2022 (baselines beside every number).

    ``progress(message, fraction)`` is called often and may raise to cancel; nothing is written.

    Raises:
        BertScopeError: a part has no word for the task, or training has one label only.
    """
    runs = 2 if config.random_init else 1
    steps = _Steps(progress, runs)
    parts, trained, predicted = _probe_layers(model, train, valid, test, config, steps)
    random_layers = None
    if config.random_init:
        from bertscope.analysis.probing.untrained import with_random_weights

        steps.begin(1, "random weights")
        untrained = with_random_weights(model, config.seed)
        random_layers = _probe_layers(untrained, train, valid, test, config, steps)[1]
    fit_part, valid_part, test_part = parts
    steps(1.0, "done")
    return ProbeResult(
        task=config.task, layers=trained, random_layers=random_layers,
        majority=_share(test_part, [majority_label(fit_part.labels)] * len(test_part.labels)),
        type_baseline=_share(test_part, type_predictions(fit_part.forms, fit_part.labels,
                                                         test_part.forms)),
        labels=sorted(set(fit_part.labels)), n_train=len(fit_part.labels),
        n_valid=len(valid_part.labels), n_test=len(test_part.labels), seed=config.seed,
        words=_words(test_part, predicted),
        meta=_manifest(model, config, parts, fingerprint(train, valid, test)))


def _probe_layers(model, train, valid, test, config: ProbeConfig, steps: _Steps):
    """``((train, valid, test) parts, table of layers, predicted labels [L+1][words])``."""
    parts = _read(model, train, valid, test, config, steps)
    names = sorted(set().union(*(part.labels for part in parts)))
    number = {name: i for i, name in enumerate(names)}
    y_train, y_valid, y_test = (np.array([number[n] for n in part.labels]) for part in parts)
    rows, predictions, layers = [], [], model.num_layers + 1
    for layer in range(layers):
        x_train, x_valid, x_test = (part.states[layer].astype(np.float32) for part in parts)
        fits = iter(range(len(classifier.STRENGTHS)))
        fitted = classifier.fit(
            x_train, y_train, x_valid, y_valid,
            check=lambda: steps(READING + (1 - READING)
                                * (layer + next(fits) / len(classifier.STRENGTHS)) / layers,
                                f"layer {layer}"))
        predicted = fitted.predict(x_test)
        predictions.append(predicted)
        rows.append({"layer": layer, "accuracy": metrics.accuracy(y_test, predicted),
                     "macro_f1": metrics.macro_f1(y_test, predicted), "C": fitted.C,
                     "iterations": fitted.iterations, "converged": fitted.converged})
    table = pd.DataFrame(rows)
    draws = metrics.bootstrap(np.stack(predictions) == y_test, parts[2].sentence, config.seed)
    low, high = metrics.interval(draws)
    table.insert(2, "low", low)
    table.insert(3, "high", high)
    return parts, table, np.array(names, dtype=object)[np.stack(predictions)]


def _read(model, train, valid, test, config: ProbeConfig, steps: _Steps) -> list[Part]:
    """The three parts' word vectors, checked for what the classifier needs."""
    parts = []
    sources = (("training", train, config.max_train), ("validation", valid, config.max_valid),
               ("test", test, config.max_test))
    for place, (name, sentences, most) in enumerate(sources):
        def tick(share: float, name=name, place=place) -> None:
            steps(READING * ((place + share) / len(sources)), f"reading the {name} sentences")

        tick(0.0)
        part = read_part(model, sentences, config.task, most, config.seed, config.pooling,
                         config.masked, tick)
        if not part.labels:
            raise BertScopeError(f"No word of the {name} part has a label of the task "
                                 f"{config.task}.")
        parts.append(part)
    if len(set(parts[0].labels)) < 2:
        raise BertScopeError(f"All {len(parts[0].labels)} training words have the same label of "
                             f"the task {config.task}; there is nothing to learn.")
    return parts


def _share(part: Part, predicted: Sequence[str]) -> float:
    return sum(a == b for a, b in zip(part.labels, predicted, strict=True)) / len(part.labels)


def _words(part: Part, predicted: np.ndarray) -> pd.DataFrame:
    columns = {"sentence": part.sentence, "word": part.word, "form": part.forms,
               "label": part.labels}
    columns |= {f"layer_{layer}": row for layer, row in enumerate(predicted)}
    return pd.DataFrame(columns)


def _manifest(model: LoadedModel, config: ProbeConfig, parts: list[Part], data: str) -> dict:
    names = ("train", "valid", "test")
    known = set(parts[0].labels)
    unknown = Counter(label for label in parts[2].labels if label not in known)
    return {
        "probe_version": VERSION,
        "checkpoint": {"path": str(model.path), "fingerprint": model.fingerprint,
                       "layers": model.num_layers, "hidden_size": model.hidden_size},
        "data": data,
        "config": dataclasses.asdict(config),
        "sentences": {name: part.sentences for name, part in zip(names, parts)},
        "words_without_vector": {name: part.dropped for name, part in zip(names, parts)},
        "labels_only_in_test": dict(unknown.most_common()),
        "strengths": list(classifier.STRENGTHS),
        "bootstrap": {"unit": "sentence", "resamples": metrics.RESAMPLES, "confidence": 0.95},
        "versions": {"bertscope": bertscope.__version__,
                     **{name: importlib.metadata.version(name)
                        for name in ("numpy", "scikit-learn", "torch", "transformers")}},
    }


class _Steps:
    """Maps the work of one or two models onto one progress bar."""

    def __init__(self, progress: Progress | None, runs: int):
        self.progress = progress or (lambda message, fraction: None)
        self.runs, self.run, self.prefix = runs, 0, ""

    def begin(self, run: int, name: str) -> None:
        self.run, self.prefix = run, f"{name}: "

    def __call__(self, share: float, message: str) -> None:
        self.progress(self.prefix + message, (self.run + share) / self.runs)


def _plain(value):
    """NumPy scalars as JSON."""
    return value.item() if isinstance(value, np.generic) else str(value)
