"""What is done in one probing: everything that decides a result but the data and the checkpoint."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from bertscope.analysis.probing.reading import SENTENCE_POOLING, WORD_POOLING
from bertscope.errors import BertScopeError

#: Raise it when the same question would get another answer.
VERSION = 2
PROBES = ("linear", "mlp")


@dataclass(frozen=True)
class Protocol:
    """What is asked of every task and checkpoint. Sizes count items; whole sentences are sampled.

    Raises:
        BertScopeError: a value is not one of those possible.
    """

    probe: str = "linear"          # multinomial logistic regression; "mlp": one hidden layer
    word: str = "mean"             # a word's vector from its pieces: mean, first, last
    sentence: str = "mean"         # a sentence's from all of its pieces: mean, max; or "cls"
    max_train: int = 8000
    max_validation: int = 2000
    max_test: int = 4000
    layers: tuple[int, ...] | None = None   # those to probe, 0 = embeddings; None = all
    hide: bool = False             # mask each probed word: what does the context tell about it?
    control: bool = True           # control tasks, for selectivity
    codelength: bool = False       # minimum description length, online code
    mix: bool = False              # all layers together, and layers 0 to l for each l
    random: bool = True            # also the same architecture with random weights

    def __post_init__(self) -> None:
        for name, values in (("probe", PROBES), ("word", WORD_POOLING),
                             ("sentence", SENTENCE_POOLING)):
            if getattr(self, name) not in values:
                raise BertScopeError(f"{name} must be one of {', '.join(values)}, not "
                                     f"{getattr(self, name)!r}.")
        for name in ("max_train", "max_validation", "max_test"):
            if getattr(self, name) < 1:
                raise BertScopeError(f"{name} must be at least 1.")
        if self.layers is not None:
            layers = tuple(sorted(set(self.layers)))
            if not layers or layers[0] < 0:
                raise BertScopeError("Layers are numbered from 0 (embeddings).")
            object.__setattr__(self, "layers", layers)
        if self.mix and self.layers is not None:
            raise BertScopeError("A mix takes all layers: leave out either the mix or the layers.")

    @property
    def most(self) -> dict[str, int]:
        """The size of each part at most."""
        return {"train": self.max_train, "validation": self.max_validation, "test": self.max_test}

    def chosen(self, count: int) -> tuple[int, ...]:
        """The layers to probe of a model with ``count`` of them, embeddings included.

        Raises:
            BertScopeError: it has no such layer.
        """
        if self.layers is None:
            return tuple(range(count))
        if self.layers[-1] >= count:
            raise BertScopeError(f"There is no layer {self.layers[-1]}: this model has layers 0 "
                                 f"(embeddings) to {count - 1}.")
        return self.layers

    def to_dict(self) -> dict:
        """JSON values."""
        return {**dataclasses.asdict(self), "layers": list(self.layers) if self.layers else None}

    @classmethod
    def from_dict(cls, values: dict) -> Protocol:
        """The inverse of ``to_dict``.

        Raises:
            BertScopeError: there is no such setting.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        if unknown := set(values) - names:
            raise BertScopeError(f"A protocol has no setting called {min(unknown)!r}.")
        layers = values.get("layers")
        return cls(**{**values, "layers": None if layers is None else tuple(layers)})
