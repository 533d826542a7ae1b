"""Is what a probe finds also used? Amnesic probing (Elazar et al. 2021).

What the layer says linearly of the task is removed from its states, the model goes on from there, and
the masked-language-model loss is compared with that of the untouched model, and with that after
removing as many directions drawn at random. A loss that rises no more than at random says that the
model does not need, for its guesses, what the probe can read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bertscope.analysis.probing import classifier, erasing, metrics
from bertscope.analysis.probing.amnesic_data import Losses, Part, losses, read, states
from bertscope.analysis.probing.erased_model import PLACES, with_erased
from bertscope.analysis.probing.erasing import METHODS, Eraser
from bertscope.analysis.probing.uncertainty import RESAMPLES, resampled
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.loading import LoadedModel
    from bertscope.analysis.probing.items import Items

Progress = Callable[[str, float | None], None]
#: Of each part, what a layer has at labelled pieces: float32 [pieces, H] and int [pieces].
Seen = dict[str, tuple[np.ndarray, np.ndarray]]
#: Raise it when the same question would get another answer.
VERSION = 2


@dataclass(frozen=True)
class AmnesicConfig:
    """What is asked. Sizes count sentences. ``rounds``: how often the training and validation
    sentences are masked anew, each time 15 % of their pieces. ``places``: what is removed from, and
    learnt from, the states of the masked pieces alone, or of all pieces of words."""

    method: str = "leace"
    places: str = "masked"
    max_train: int = 1000
    max_valid: int = 200
    max_test: int = 300
    rounds: int = 4
    controls: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS or self.places not in PLACES:
            raise BertScopeError(f"The method is one of {', '.join(METHODS)}; the places are one of "
                                 f"{', '.join(PLACES)}.")
        for name in ("max_train", "max_valid", "max_test", "rounds", "controls"):
            if getattr(self, name) < 1:
                raise BertScopeError(f"{name} must be at least 1.")
        if self.seed < 0:
            raise BertScopeError("The seed must be at least 0.")


@dataclass
class AmnesicResult:
    """What removing does to the guesses on the test part.

    ``table`` has rows for each ``layer`` and what was ``removed``: ``nothing``, ``task`` and, once for
    each control, ``random``. ``rank`` (directions removed), ``variance`` (share of the states'
    variance that went with them), ``probe`` (accuracy of a new linear probe on what is left) beside
    ``majority``, ``mlm`` (nats per masked piece of labelled words), ``accuracy`` (of the guesses
    there), ``change`` of the loss from ``nothing`` with its 95 % interval ``low`` to ``high`` (paired
    bootstrap over sentences); ``mlm_all`` and ``change_all`` are over all masked pieces, most of
    which the task may say nothing about. ``summary`` has a row per layer: the change for the task,
    the mean of the controls, and their difference, ``excess``, with its interval (nan of too few
    sentences); ``sentences`` is how many test sentences have such a piece.
    """

    table: pd.DataFrame
    summary: pd.DataFrame
    meta: dict = field(default_factory=dict)


def amnesic(model: LoadedModel, items: Items, config: AmnesicConfig = AmnesicConfig(),
            layers: Sequence[int] | None = None, progress: Progress | None = None) -> AmnesicResult:
    """Remove what each layer says linearly of a task and measure the model's own loss.

    The eraser is learnt from states of the training part as the model has them while it guesses
    masked pieces (INLP also looks at the validation part, to know when to end); loss and probes are
    of the test part.

    Args:
        items: of words.
        layers: all of them by default.
        progress: called often, may raise to cancel.

    Raises:
        BertScopeError: the items are no words, there is no such layer, the checkpoint has no MLM head
            or cannot be reached into, or a part has no labelled piece.
    """
    from bertscope.analysis.mlm_head import require_mlm_head

    require_mlm_head(model)
    if items.kind != "word":
        raise BertScopeError("What is removed is what the states of words say; this task is about "
                             f"{items.kind}s.")
    layers = list(range(model.num_layers + 1)) if layers is None else list(layers)
    if not set(layers) <= set(range(model.num_layers + 1)):
        raise BertScopeError(f"There are layers 0 to {model.num_layers}.")
    told = progress or (lambda message, share: None)
    told("masking sentences", 0.0)
    parts = {part: read(model, items, part, size, rounds, config.seed)
             for part, size, rounds in (("train", config.max_train, config.rounds),
                                        ("validation", config.max_valid, config.rounds),
                                        ("test", config.max_test, 1))}
    told("reading states", 0.0)
    seen = {name: states(model, part, config.places, layers) for name, part in parts.items()}
    before = losses(model, parts["test"])
    if not before.labelled.any():
        raise BertScopeError("No masked piece of the test part has a label; take more sentences.")
    table, summary = [], []
    for number, layer in enumerate(layers):
        def tell(message: str, share: float, number=number, layer=layer) -> None:
            told(f"layer {layer}: {message}", (number + share) / len(layers))

        own = {name: (vectors[number].astype(np.float32), labels)
               for name, (vectors, labels) in seen.items()}
        rows, line = _layer(model, layer, own, parts["test"], before, config, tell)
        table += rows
        summary.append(line)
    told("done", 1.0)
    return _result(table, summary, parts, items, model, config)


def _layer(model, layer: int, own: Seen, test: Part, before: Losses, config: AmnesicConfig,
           tell: Progress) -> tuple[list[dict], dict]:
    """The rows of one layer, and its line of the summary."""
    tell("what it says of the task", 0.0)
    eraser = _eraser(own, config, lambda: tell("what it says of the task", 0.1))
    removed = [("nothing", None), ("task", eraser),
               *(("random", eraser.at_random(config.seed + n)) for n in range(config.controls))]
    rows, found = [], []
    for place, (name, erased) in enumerate(removed):
        tell(f"the loss with {name} removed", 0.2 + 0.8 * place / len(removed))
        found.append(before if erased is None else
                     losses(with_erased(model, layer, erased, config.places), test))
        probed = _probe(own, erased) if place <= 2 else {}
        rows.append({"layer": layer, "removed": name, "rank": erased.rank if erased else 0,
                     "variance": erased.variance(own["test"][0]) if erased else 0.0,
                     **probed, **_effect(found[-1], before, config.seed)})
    excess = found[1].loss - np.mean([one.loss for one in found[2:]], axis=0)
    value, low, high = _mean(excess, before, config.seed)
    return rows, {"layer": layer, "rank": eraser.rank, "change_task": rows[1]["change"],
                  "change_random": float(np.mean([row["change"] for row in rows[2:]])),
                  "excess": value, "low": low, "high": high,
                  "sentences": len(np.unique(before.sentence[before.labelled]))}


def _eraser(own: Seen, config: AmnesicConfig, check: Callable[[], None]) -> Eraser:
    if config.method == "leace":
        return erasing.leace(*own["train"])
    return erasing.inlp(*own["train"], *own["validation"], check)


def _probe(own: Seen, eraser: Eraser | None) -> dict[str, float]:
    """The accuracy of a new probe on the test part's states after removal, and the majority."""
    (x, y), (v, w), (t, u) = (own[part] for part in ("train", "validation", "test"))
    if eraser:
        x, v, t = eraser(x), eraser(v), eraser(t)
    fitted = classifier.fit(x, y, v, w)
    names, counts = np.unique(y, return_counts=True)
    return {"probe": metrics.accuracy(u, fitted.predict(t)),
            "majority": float(np.mean(u == names[counts.argmax()]))}


def _effect(found: Losses, before: Losses, seed: int) -> dict[str, float]:
    of = before.labelled
    change = found.loss - before.loss
    value, low, high = _mean(change, before, seed)
    return {"mlm": float(found.loss[of].mean()), "accuracy": float(found.right[of].mean()),
            "change": value, "low": low, "high": high,
            "mlm_all": float(found.loss.mean()), "change_all": float(change.mean())}


def _mean(change: np.ndarray, before: Losses, seed: int) -> tuple[float, float, float]:
    """The mean over masked pieces of labelled words, and its 95 % interval."""
    of = before.labelled
    value, draws = resampled(change[of][None, None], before.sentence[of], seed=seed)
    low, high = metrics.interval(draws[0])
    return float(value[0]), float(low), float(high)


def _result(table, summary, parts, items, model, config) -> AmnesicResult:
    import pandas as pd

    meta = {"version": VERSION, "config": asdict(config), "task": items.task,
            "items": items.fingerprint, "provenance": items.provenance,
            "checkpoint": {"path": str(model.path), "fingerprint": model.fingerprint},
            "examples": {name: len(part.rows) for name, part in parts.items()},
            "bootstrap": {"unit": "sentence", "resamples": RESAMPLES, "confidence": 0.95}}
    return AmnesicResult(pd.DataFrame(table), pd.DataFrame(summary), meta)
