"""One probing: one task, one checkpoint, one seed, every layer.

Two tables come out. ``scores`` has a row for each layer and mix; ``answers`` a row for each test item
with what each of them said. Intervals, comparisons and pictures are made of these two afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bertscope.analysis.probing import classifier, metrics, mix, mlp
from bertscope.analysis.probing.baselines import majority_label, type_predictions
from bertscope.analysis.probing.codelength import LinearCoder, online_code
from bertscope.analysis.probing.controls import control_labels
from bertscope.analysis.probing.features import Features, Store
from bertscope.analysis.probing.items import Items
from bertscope.analysis.probing.protocol import Protocol
from bertscope.analysis.probing.sampling import require_labels

Progress = Callable[[str, float | None], None]
#: Numbers in the features of layers that are fitted together. Of few words that halves the time, and a
#: GPU is busy only then; of many, one layer after the other uses the processor's cache better.
TOGETHER = {"cpu": 3_000_000, "cuda": 300_000_000}


@dataclass(frozen=True)
class Unit:
    """What one probing gave: see the module."""

    scores: pd.DataFrame
    answers: pd.DataFrame


def probe_unit(items: Items, places: np.ndarray, store: Store, protocol: Protocol, seed: int,
               progress: Progress | None = None) -> Unit:
    """Probe the items at some places, as ``sampling.sample`` chooses them.

    Features are standardised on the training items; the penalty is chosen on the validation items;
    the test items are used once, at the end.

    Raises:
        BertScopeError: after words without a vector are left out nothing can be learnt.
    """
    items = items.select(places)
    require_labels(items)
    features = Features(items, store, protocol.sentence, progress)
    layers = protocol.chosen(features.layers)
    data = _Data.of(items, features, seed, protocol)
    tell = _Tell(progress, len(layers) + (features.layers if protocol.mix else 0))
    rows, answers = [], {}
    for group in _groups(layers, data.numbers, protocol):
        tell.about(f"layer {group[0]}")
        for layer, row, predicted in _layers(data, group, protocol, seed, tell.check):
            rows.append({"mix": False, "layer": layer} | row)
            answers |= {f"{name}_{layer}": values for name, values in predicted.items()}
            tell.done()
    if protocol.mix:
        for last in range(features.layers):
            tell.about(f"layers 0 to {last} mixed")
            row, answers[f"mix_{last}"] = _mixed(data, last, tell.check)
            rows.append({"mix": True, "layer": last} | row)
            tell.done()
    scores = pd.DataFrame(rows).assign(
        **_baselines(data.items), **_sizes(data.items), without_vector=int((~features.readable).sum()),
        sentences_cut=features.cut)
    table = {"item": places[data.places["test"]], "sentence": items.sentence[data.places["test"]],
             "type": [items.types[i] for i in data.places["test"]],
             "seen": data.seen, "gold": data.names[data.y["test"]]}
    return Unit(scores, pd.DataFrame(table | answers))


@dataclass
class _Data:
    """Items with a vector, by part."""

    items: Items
    features: Features
    names: np.ndarray                 # label of each number
    places: dict[str, np.ndarray]     # in the items that were given
    y: dict[str, np.ndarray]          # label numbers
    control: dict[str, np.ndarray]    # those of the control task; empty without one
    seen: np.ndarray                  # bool: test items whose type is among the training items
    order: np.ndarray                 # of the training items, for the online code

    @classmethod
    def of(cls, items: Items, features: Features, seed: int, protocol: Protocol) -> _Data:
        places = {part: rows[features.readable[rows]] for part, rows in items.where.items()}
        kept = items.select(np.flatnonzero(features.readable))
        require_labels(kept)
        names = np.array(sorted(set(items.labels)), dtype=object)
        number = {name: i for i, name in enumerate(names)}
        labels = np.array([number[label] for label in items.labels], np.int64)
        control = {}
        if protocol.control and any(items.types):
            drawn = control_labels(items.types, labels, places["train"], seed)
            control = {part: drawn[rows] for part, rows in places.items()}
            if len(np.unique(control["train"])) < 2:  # too few types to draw two labels
                control = {}
        known = {items.types[i] for i in places["train"]}
        order = _by_sentence(items.sentence[places["train"]], seed)
        return cls(kept, features, names, places,
                   {part: labels[rows] for part, rows in places.items()}, control,
                   np.array([items.types[i] in known for i in places["test"]], bool), order)

    @property
    def numbers(self) -> int:
        """In the training features of one layer."""
        return len(self.y["train"]) * self.features.store.size * max(1, self.items.spans.shape[1])

    def x(self, layer: int, part: str) -> np.ndarray:
        return self.features.matrix(layer, self.places[part])


def _layers(data: _Data, group: Sequence[int], protocol: Protocol, seed: int, check):
    """``(layer, row of scores, answers)`` of each layer of a group."""
    x = {part: [data.x(layer, part) for layer in group] for part in data.places}
    y, control = data.y, data.control
    if protocol.probe == "linear":
        fitted = classifier.fit_many(x["train"], y["train"], x["validation"], y["validation"],
                                     check=check)
    else:
        fitted = [mlp.fit(t, y["train"], v, y["validation"], seed=seed, check=check)
                  for t, v in zip(x["train"], x["validation"], strict=True)]
    for place, (layer, found) in enumerate(zip(group, fitted, strict=True)):
        test = x["test"][place]
        predicted = found.predict(test)
        row = {**metrics.scores(y["test"], predicted, data.seen), "C": found.C,
               "valid_accuracy": found.valid_accuracy, "iterations": found.iterations,
               "converged": found.converged}
        answers = {"layer": data.names[predicted]}
        if control:
            remembered = _control(found, x["train"][place], x["validation"][place], control,
                                  protocol, seed, check).predict(test)
            answers["control"] = remembered == control["test"]
            row["control_accuracy"] = float(answers["control"].mean())
            row["selectivity"] = row["accuracy"] - row["control_accuracy"]
        if protocol.codelength:
            row |= _codelength(data, found.scaler.transform(x["train"][place]), protocol, seed, check)
        yield layer, row, answers


def _control(found, train, valid, control: dict, protocol: Protocol, seed: int, check):
    """The same probe with the same penalty, trained on the control task."""
    if protocol.probe == "linear":
        return classifier.fit(train, control["train"], valid, control["validation"], [found.C], check)
    return mlp.fit(train, control["train"], valid, control["validation"], [found.decay], seed, check)


def _codelength(data: _Data, features: np.ndarray, protocol: Protocol, seed: int, check) -> dict:
    """Bits of the training labels, and of the control labels where there are some."""
    row = {}
    for prefix, labels in (("", data.y["train"]), ("control_", data.control.get("train"))):
        if labels is None:
            continue
        classes, y = np.unique(labels[data.order], return_inverse=True)
        x = features[data.order]
        coder = LinearCoder(x, y, len(classes), check=check) if protocol.probe == "linear" else \
            mlp.MLPCoder(x, y, len(classes), seed=seed, check=check)
        code = online_code(y, len(classes), coder)
        row |= {f"{prefix}codelength": code.bits, f"{prefix}compression": code.compression}
        if not prefix:
            row |= {"uniform_codelength": code.uniform, "frequency_codelength":
                    code.items * code.entropy}
    return row


def _mixed(data: _Data, last: int, check) -> tuple[dict, np.ndarray]:
    """Layers 0 to ``last`` together: scores and answers."""
    x = {part: [data.x(layer, part) for layer in range(last + 1)] for part in data.places}
    found = mix.fit(x["train"], data.y["train"], x["validation"], data.y["validation"], check=check)
    predicted = found.predict(x["test"])
    row = {**metrics.scores(data.y["test"], predicted, data.seen), "C": found.C,
           "valid_accuracy": found.valid_accuracy, "iterations": found.iterations,
           "converged": found.converged, "centre": found.centre,
           "bits_from_uniform": found.from_uniform,
           **{f"share_{layer}": float(share) for layer, share in enumerate(found.share)}}
    return row, data.names[predicted]


def _baselines(items: Items) -> dict:
    """What is known without vectors, from the same training items."""
    train, test = items.where["train"], items.where["test"]
    labels = [items.labels[i] for i in train]
    gold = [items.labels[i] for i in test]

    def share(predicted: Sequence[str]) -> float:
        return sum(a == b for a, b in zip(gold, predicted, strict=True)) / len(gold)

    def by(values: Sequence[str]) -> float:
        return share(type_predictions([values[i] for i in train], labels,
                                      [values[i] for i in test]))

    found = {"majority": share([majority_label(labels)] * len(gold)),
             "word_identity": by(items.types) if any(items.types) else np.nan,
             "length_only": np.nan}
    if items.kind == "sentence":
        found["length_only"] = by([str(_length(items.sentences[i])) for i in items.sentence])
    return found


def _sizes(items: Items) -> dict[str, int]:
    sizes = {f"{unit}_{part}": count for part, counted in items.sizes.items()
             for unit, count in counted.items()}
    return sizes | {"classes": len(items.classes)}


def _length(sentence: Sequence[str] | str) -> int:
    return len(sentence.split() if isinstance(sentence, str) else sentence)


def _by_sentence(sentence: np.ndarray, seed: int) -> np.ndarray:
    """An order of items in which whole sentences come at random."""
    _, unit = np.unique(sentence, return_inverse=True)
    rank = np.random.default_rng(seed).permutation(unit.max() + 1)
    return np.argsort(rank[unit], kind="stable")


def _groups(layers: Sequence[int], numbers: int, protocol: Protocol) -> list[Sequence[int]]:
    """Layers that are fitted together."""
    import torch

    most = TOGETHER["cuda" if torch.cuda.is_available() else "cpu"]
    size = max(1, most // max(1, numbers)) if protocol.probe == "linear" else 1
    return [layers[start:start + size] for start in range(0, len(layers), size)]


class _Tell:
    """One progress bar over the layers; also told between steps, so that it can cancel."""

    def __init__(self, progress: Progress | None, steps: int):
        self._progress = progress or (lambda message, share: None)
        self._steps, self._done, self._message = steps, 0, ""

    def about(self, message: str) -> None:
        self._message = message
        self.check()

    def done(self) -> None:
        self._done += 1
        self.check()

    def check(self) -> None:
        self._progress(self._message, self._done / self._steps)
