"""How often pieces were chosen and what was made of them, over many examples, against the theory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from bertscope.analysis.inputs import Made, made
from bertscope.analysis.intervals import wilson
from bertscope.config import ObjectiveConfig
from bertscope.objectives import Examples
from bertscope.objectives.examples import STATIC_COPIES
from bertscope.objectives.masking import KEEP, MASK, RANDOM

#: A tally of a corpus looks at documents of so many pieces: planning an epoch of all may be slow.
CORPUS_PIECES = 300_000
#: Examples that are made at a time.
BLOCK = 256


@dataclass(frozen=True)
class Share:
    """``count`` of ``of``, where ``theory`` is expected; ``low`` and ``high`` are the 95 % interval
    of the share by chance, None where nothing was left to chance."""

    name: str
    count: int
    of: int
    theory: float
    low: float | None
    high: float | None

    @property
    def share(self) -> float:
        return self.count / self.of if self.of else 0.0


def tally(rows: Iterable[Made], objective: ObjectiveConfig, ordinary: int) -> list[Share]:
    """Count over examples.

    ``chosen`` is of all pieces, special ones included, and no matter of chance: the number is fixed
    by each example's length. ``mask``, ``random`` and ``kept`` are of the decisions: a piece each,
    but a whole span's together. ``hit`` is how many random pieces were the original, ``pair`` how
    many pairs are random or swapped.

    Args:
        ordinary: how many pieces a random replacement is drawn from.
    """
    pieces = chosen = drawn = hits = pairs = ones = 0
    fates = np.zeros(3, np.int64)
    for row in rows:
        places = row.chosen
        pieces, chosen = pieces + len(row), chosen + len(places)
        decided = np.unique(row.first[places]) if objective.mask_unit == "span" else places
        fates += np.bincount(row.fate[decided], minlength=3)
        random = places[row.fate[places] == RANDOM]
        drawn, hits = drawn + len(random), hits + int((row.shown[random] == row.ids[random]).sum())
        pairs, ones = pairs + (row.label is not None), ones + (row.label or 0)
    rest = 1.0 - objective.mask_share - objective.random_share
    counted = [("mask", fates[MASK], fates.sum(), objective.mask_share),
               ("random", fates[RANDOM], fates.sum(), objective.random_share),
               ("kept", fates[KEEP], fates.sum(), max(rest, 0.0)),
               ("hit", hits, drawn, 1 / ordinary)]
    if pairs:
        counted.append(("pair", ones, pairs, 0.5))
    return [Share("chosen", chosen, pieces, objective.mask_rate, None, None),
            *(Share(name, int(count), int(of), theory, *wilson(int(count), int(of)))
              for name, count, of, theory in counted)]


def many_epochs(source: Examples, count: int) -> Iterator[Made]:
    """At least ``count`` examples, epoch after epoch; of static masking at most its ten copies,
    after which the same examples come again."""
    epoch = found = 0
    last = STATIC_COPIES if source.objective.masking == "static" else count
    while found < count and epoch < last:
        size = len(source.plan(epoch))
        for start in range(0, size, BLOCK):
            block = made(source, epoch, np.arange(start, min(start + BLOCK, size)))
            yield from block
            found += len(block)
            if found >= count:
                return
        epoch += 1


def some_documents(store, documents: np.ndarray, most: int = CORPUS_PIECES) -> np.ndarray:
    """Documents from all over the corpus, of about ``most`` pieces together; at least two."""
    ends = store.sentence_offsets[store.document_offsets]
    pieces = int((ends[documents + 1] - ends[documents]).sum())
    stride = max(1, min(-(-pieces // most), len(documents) // 2))
    return documents[::stride]
