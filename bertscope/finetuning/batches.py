"""From examples in word pieces to batches: rows of like length together, little padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

#: Rows of like length are put together within so many batches: fewer than in pretraining, for of a small
#: data set's few batches each would hold one length alone, which is learnt from less well.
POOL = 16
NO_LABEL = -100


@dataclass(frozen=True, slots=True)
class Feature:
    """One input of the model: an example, or a window of one.

    ``label`` is a class (), the tags of the pieces [T] with -100 where there is none, the first and
    last piece of the answer [2], or a number () in float32. ``places`` says of each piece which word
    it begins (-1: none), or which characters of the paragraph it covers [T, 2].
    """

    input_ids: np.ndarray        # int64 [T]
    token_type_ids: np.ndarray   # int64 [T]
    label: np.ndarray
    example: int
    places: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.input_ids)


@dataclass(frozen=True)
class TaskBatch:
    """B features, padded to the longest; the mask is None where none is shorter."""

    task: str
    input_ids: np.ndarray
    token_type_ids: np.ndarray
    attention_mask: np.ndarray | None
    labels: np.ndarray

    @property
    def inputs(self) -> dict[str, np.ndarray | None]:
        """What the loss module takes."""
        return {name: getattr(self, name)
                for name in ("input_ids", "token_type_ids", "attention_mask", "labels")}

    @property
    def tokens(self) -> int:
        """Pieces that are not padding."""
        return self.input_ids.size if self.attention_mask is None else int(self.attention_mask.sum())

    def count(self, objective: str) -> int:
        """How much is predicted: rows, or words with a tag."""
        return int((self.labels != NO_LABEL).sum()) if self.task == "tokens" else len(self.labels)


def collate(task: str, features: Sequence[Feature], pad_id: int) -> TaskBatch:
    """Features as one batch."""
    width = max(len(f) for f in features)
    ids = np.full((len(features), width), pad_id, dtype=np.int64)
    types = np.zeros_like(ids)
    mask = np.zeros_like(ids)
    for row, feature in enumerate(features):
        ids[row, :len(feature)] = feature.input_ids
        types[row, :len(feature)] = feature.token_type_ids
        mask[row, :len(feature)] = 1
    if task == "tokens":
        labels = np.full_like(ids, NO_LABEL)
        for row, feature in enumerate(features):
            labels[row, :len(feature)] = feature.label
    else:
        labels = np.stack([f.label for f in features])
    return TaskBatch(task, ids, types, None if mask.all() else mask, labels)


def order(lengths: np.ndarray, batch_size: int, parts: int, seed: Sequence[int],
          ) -> list[list[np.ndarray]]:
    """An epoch's updates: each a list of ``parts`` micro-batches of indices, none of them empty.

    Shuffled, sorted by length within each pool of updates, then the updates shuffled. The last one
    may be smaller; where it has fewer rows than parts, some rows come twice.
    """
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(lengths))
    size = batch_size * parts
    if (short := -len(shuffled) % parts):
        shuffled = np.concatenate([shuffled, np.resize(shuffled, short)])
    for start in range(0, len(shuffled), POOL * size):
        pool = shuffled[start:start + POOL * size]
        shuffled[start:start + POOL * size] = pool[np.argsort(lengths[pool], kind="stable")]
    updates = [shuffled[start:start + size] for start in range(0, len(shuffled), size)]
    return [[updates[i][part::parts] for part in range(parts)]
            for i in rng.permutation(len(updates))]


def by_length(features: Sequence[Feature], size: int) -> Iterator[np.ndarray]:
    """Indices of all features in batches of like length, for measuring."""
    ranked = np.argsort([len(f) for f in features], kind="stable")
    for start in range(0, len(ranked), size):
        yield ranked[start:start + size]
