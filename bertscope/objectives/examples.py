"""From the token store to batches: every example a pure function of (seed, epoch, index)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from bertscope.config import ObjectiveConfig
from bertscope.objectives.keys import MASKS, ORDER, PLAN, generator
from bertscope.objectives.masking import MaskedRow, mask_row
from bertscope.objectives.pairs import Pairs, plan_pairs

#: The original makes ten masked copies of its data (``dupe_factor``): that is static masking.
STATIC_COPIES = 10
#: Rows of like length are put together within so many batches: less padding, still well mixed.
POOL = 64


@dataclass(frozen=True)
class Batch:
    """B examples of at most T pieces, each with at most P to be predicted. Integers are int64.

    ``masked_lm_positions`` and ``masked_lm_labels`` are [B, P] as in the original's records; a row
    with fewer is filled up with place 0 and label -100. ``attention_mask`` is None where no row is
    padded. ``source`` [B, T] is each piece's place in the token store, -1 for special pieces.
    """

    input_ids: np.ndarray
    token_type_ids: np.ndarray
    attention_mask: np.ndarray | None
    masked_lm_positions: np.ndarray
    masked_lm_labels: np.ndarray
    next_sentence_label: np.ndarray
    source: np.ndarray

    @property
    def tokens(self) -> int:
        """Pieces that are not padding."""
        mask = self.attention_mask
        return self.input_ids.size if mask is None else int(mask.sum())

    @property
    def masked(self) -> int:
        """How many pieces are to be predicted, M."""
        return int((self.masked_lm_labels >= 0).sum())

    @property
    def masked_index(self) -> np.ndarray:
        """The places to be predicted in the flattened [B * T], int64 [M]."""
        rows, columns = np.nonzero(self.masked_lm_labels >= 0)
        return rows * self.input_ids.shape[1] + self.masked_lm_positions[rows, columns]

    @property
    def masked_labels(self) -> np.ndarray:
        """What stood at ``masked_index``, int64 [M]."""
        return self.masked_lm_labels[self.masked_lm_labels >= 0]


class Examples:
    """The examples of a set of documents under one objective.

    Args:
        store: a token store (``ids``, ``sentence_offsets``, ``document_offsets``).
        documents: the documents to draw from, ascending int64.
        tokenizer: for the ids of its special pieces.
        seed: with the epoch and the index, decides everything.
    """

    def __init__(self, store, documents: np.ndarray, tokenizer, objective: ObjectiveConfig,
                 seed: int):
        self.store, self.documents, self.objective, self.seed = store, documents, objective, seed
        self.cls, self.sep = tokenizer.cls_token_id, tokenizer.sep_token_id
        self.pad, self.mask_id = tokenizer.pad_token_id, tokenizer.mask_token_id
        self.is_special = np.zeros(len(tokenizer), dtype=bool)
        self.is_special[tokenizer.all_special_ids] = True
        unused = [i for piece, i in tokenizer.get_vocab().items() if piece.startswith("[unused")]
        self.ordinary_ids = np.flatnonzero(~self.is_special)
        self.ordinary_ids = self.ordinary_ids[~np.isin(self.ordinary_ids, unused)]
        self._planned = lru_cache(maxsize=2)(self._make_plan)

    def plan(self, epoch: int) -> Pairs:
        """The pairs of an epoch; the last two epochs asked for are kept."""
        return self._planned(self._copy(epoch))

    def _make_plan(self, copy: int) -> Pairs:
        return plan_pairs(self.store.sentence_offsets, self.store.document_offsets,
                          self.documents, self.objective.max_length,
                          self.objective.short_seq_prob, generator(self.seed, copy, PLAN))

    def _copy(self, epoch: int) -> int:
        return epoch % STATIC_COPIES if self.objective.masking == "static" else epoch

    def order(self, epoch: int, batch_size: int) -> np.ndarray:
        """Indices in the order of training, int64 [batches, batch_size]; a rest is left out.

        Shuffled, then sorted by length within each pool of batches, then the batches shuffled.
        """
        rng = generator(self.seed, epoch, ORDER)
        lengths = self.plan(epoch).lengths
        order = rng.permutation(len(lengths))
        if len(order) < batch_size:  # a tiny corpus: repeat it rather than train on nothing
            order = np.resize(order, batch_size)
        order = order[: len(order) // batch_size * batch_size]
        pool = POOL * batch_size
        for start in range(0, len(order), pool):
            part = order[start: start + pool]
            order[start: start + pool] = part[np.argsort(lengths[part], kind="stable")]
        return rng.permutation(order.reshape(-1, batch_size))

    def batch(self, epoch: int, indices: np.ndarray) -> Batch:
        """The examples ``indices`` of an epoch, padded to the longest of them."""
        pairs = self.plan(epoch)
        lengths = pairs.lengths[indices]
        rows, width = len(indices), int(lengths.max())
        input_ids = np.full((rows, width), self.pad, dtype=np.int64)
        token_type_ids = np.zeros((rows, width), dtype=np.int64)
        source = np.full((rows, width), -1, dtype=np.int64)
        positions, labels = [], []
        for row, index in enumerate(indices):
            ids, segments, places = self.example(epoch, int(index))
            masked = self.masked(epoch, int(index), ids)
            length = len(ids)
            input_ids[row, :length] = masked.input_ids
            token_type_ids[row, :length] = segments
            source[row, :length] = places
            positions.append(masked.positions)
            labels.append(masked.labels)
        padded = bool((lengths < width).any())
        attention_mask = (np.arange(width) < lengths[:, None]).astype(np.int64) if padded else None
        return Batch(input_ids, token_type_ids, attention_mask, _filled_up(positions, 0),
                     _filled_up(labels, -100), pairs.is_random[indices].astype(np.int64), source)

    def example(self, epoch: int, index: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One example before masking: ``input_ids``, ``token_type_ids`` and ``source``, each [T]."""
        pairs, ids = self.plan(epoch), self.store.ids
        a0, a1 = int(pairs.a_start[index]), int(pairs.a_end[index])
        b0, b1 = int(pairs.b_start[index]), int(pairs.b_end[index])
        special, a, b = np.array([-1]), np.arange(a0, a1), np.arange(b0, b1)
        source = np.concatenate([special, a, special, b, special])
        input_ids = np.concatenate([[self.cls], ids[a0:a1], [self.sep], ids[b0:b1], [self.sep]])
        segments = (np.arange(len(source)) >= len(a) + 2).astype(np.int64)
        return input_ids.astype(np.int64), segments, source

    def masked(self, epoch: int, index: int, ids: np.ndarray) -> MaskedRow:
        """The masking of one example in one epoch."""
        candidates = np.flatnonzero(~self.is_special[ids])
        return mask_row(ids, candidates, self.ordinary_ids, self.mask_id, self.objective.mask_rate,
                        self.objective.mask_share, self.objective.random_share,
                        generator(self.seed, self._copy(epoch), MASKS, index))


def _filled_up(rows: list[np.ndarray], filler: int) -> np.ndarray:
    """Rows of unequal length as int64 [rows, longest]."""
    table = np.full((len(rows), max(map(len, rows))), filler, dtype=np.int64)
    for line, row in zip(table, rows):
        line[: len(row)] = row
    return table


#: Held-out examples do not depend on the run's seed, so that runs can be compared.
EVALUATION_SEED = 20181011


def evaluation_batches(store, documents: np.ndarray, tokenizer, objective: ObjectiveConfig,
                       limit: int, batch_size: int) -> Iterator[Batch]:
    """Frozen held-out batches: the same pairs and the same 15 % masks at every evaluation.

    Every chosen piece is shown as [MASK], whatever the training's shares, so that accuracy means
    "guessed from the context" and can be held against an oracle's.
    """
    objective = replace(objective, mask_rate=0.15, mask_share=1.0, random_share=0.0,
                        short_seq_prob=0.0, masking="dynamic")
    examples = Examples(store, documents, tokenizer, objective, EVALUATION_SEED)
    chosen = generator(EVALUATION_SEED, 0, ORDER).permutation(len(examples.plan(0)))[:limit]
    chosen = chosen[np.argsort(examples.plan(0).lengths[chosen], kind="stable")]
    for start in range(0, len(chosen), batch_size):
        yield examples.batch(0, chosen[start: start + batch_size])
