"""From the token store to batches: every example a pure function of (seed, epoch, index)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from bertscope.config import ObjectiveConfig
from bertscope.objectives.keys import MASKS, ORDER, PLAN, generator
from bertscope.objectives.masking import MaskedRow, mask_row
from bertscope.objectives.packing import plan_packed
from bertscope.objectives.pairs import plan_pairs
from bertscope.objectives.plan import Plan

#: The original makes ten masked copies of its data (``dupe_factor``): that is static masking.
STATIC_COPIES = 10
#: Rows of like length are put together within so many batches: less padding, still well mixed.
POOL = 64


@dataclass(frozen=True)
class Batch:
    """B examples of at most T pieces, each with at most P to be predicted. Integers are int64.

    ``masked_lm_positions`` and ``masked_lm_labels`` are [B, P] as in the original's records; a row
    with fewer is filled up with place 0 and label -100. ``attention_mask`` is None where no row is
    padded. ``pair_label`` [B] is the answer of the pair objective (1 = random or swapped), None
    where examples are no pairs. ``source`` [B, T] is each piece's place in the token store, -1 for
    special pieces.
    """

    input_ids: np.ndarray
    token_type_ids: np.ndarray
    attention_mask: np.ndarray | None
    masked_lm_positions: np.ndarray
    masked_lm_labels: np.ndarray
    pair_label: np.ndarray | None
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

    def count(self, objective: str) -> int:
        """How many predictions an objective makes: the denominator of its loss and accuracy."""
        rows = len(self.input_ids)
        return {"mlm": self.masked, "nsp": rows, "sop": rows, "rtd": self.tokens,
                "clm": self.tokens - rows}[objective]

    @property
    def next_pieces(self) -> np.ndarray:
        """What a causal model predicts: all pieces but each row's first, int64 [tokens - B]."""
        kept = slice(None) if self.attention_mask is None else self.attention_mask[:, 1:] == 1
        return self.input_ids[:, 1:][kept].ravel()

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
        # Whole words: a segmenter's where the store has them, else what "##" does not continue.
        self.continues = np.zeros(len(tokenizer), dtype=bool)
        self.continues[[i for piece, i in tokenizer.get_vocab().items()
                        if piece.startswith("##")]] = True
        self._planned = lru_cache(maxsize=2)(self._make_plan)

    def plan(self, epoch: int) -> Plan:
        """The examples of an epoch; the last two epochs asked for are kept."""
        return self._planned(self._copy(epoch))

    def _make_plan(self, copy: int) -> Plan:
        objective, rng = self.objective, generator(self.seed, copy, PLAN)
        text = (self.store.sentence_offsets, self.store.document_offsets, self.documents,
                objective.max_length)
        if objective.pairs in ("nsp", "sop"):
            return plan_pairs(*text, objective.short_seq_prob, rng, objective.pairs).plan()
        return plan_packed(*text, objective.pairs, rng)

    def _copy(self, epoch: int) -> int:
        return epoch % STATIC_COPIES if self.objective.masking == "static" else epoch

    def order(self, epoch: int, batch_size: int, batch_tokens: int | None = None,
              parts: int = 1) -> list[np.ndarray]:
        """An epoch's batches of indices, in the order of training; a rest is left out.

        Shuffled, then sorted by length within each pool of batches, then the batches shuffled.

        Args:
            batch_size: examples in each of the ``parts`` of a batch.
            batch_tokens: instead, pieces in each part, padding included.
            parts: micro-batches and processes among which a batch will be divided.
        """
        rng = generator(self.seed, epoch, ORDER)
        lengths = self.plan(epoch).lengths
        order = rng.permutation(len(lengths))
        if batch_tokens:
            batch_size = max(1, batch_tokens // self.objective.max_length)
        size = batch_size * parts
        if len(order) < size:  # a tiny corpus: repeat it rather than train on nothing
            order = np.resize(order, size)
        pool = POOL * size
        for start in range(0, len(order), pool):
            part = order[start: start + pool]
            order[start: start + pool] = part[np.argsort(lengths[part], kind="stable")]
        if not batch_tokens:
            whole = order[: len(order) // size * size].reshape(-1, size)
            return list(rng.permutation(whole))
        cut = list(_cut_by_tokens(order, lengths, batch_tokens, parts, pool))
        return [cut[i] for i in rng.permutation(len(cut))]

    def batch(self, epoch: int, indices: np.ndarray) -> Batch:
        """The examples ``indices`` of an epoch, padded to the longest of them."""
        plan = self.plan(epoch)
        lengths = plan.lengths[indices]
        rows, width = len(indices), int(lengths.max())
        input_ids = np.full((rows, width), self.pad, dtype=np.int64)
        token_type_ids = np.zeros((rows, width), dtype=np.int64)
        source = np.full((rows, width), -1, dtype=np.int64)
        positions, labels = [], []
        for row, index in enumerate(indices):
            ids, segments, places = self.example(epoch, int(index))
            masked = self.masked(epoch, int(index), ids, places)
            length = len(ids)
            input_ids[row, :length] = masked.input_ids
            token_type_ids[row, :length] = segments
            source[row, :length] = places
            positions.append(masked.positions)
            labels.append(masked.labels)
        padded = bool((lengths < width).any())
        attention_mask = (np.arange(width) < lengths[:, None]).astype(np.int64) if padded else None
        return Batch(input_ids, token_type_ids, attention_mask, _filled_up(positions, 0),
                     _filled_up(labels, -100),
                     None if plan.label is None else plan.label[indices], source)

    def example(self, epoch: int, index: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One example before masking: ``input_ids``, ``token_type_ids`` and ``source``, each [T]."""
        plan, ids = self.plan(epoch), self.store.ids
        parts, pieces, special = [[-1]], [[self.cls]], [-1]
        for start, stop in plan.of(index).tolist():
            parts += [np.arange(start, stop), special]
            pieces += [ids[start:stop], [self.sep]]
        source = np.concatenate(parts)
        input_ids = np.concatenate(pieces).astype(np.int64)
        segments = np.zeros(len(source), dtype=np.int64)
        if plan.label is not None:
            segments[len(parts[1]) + 2:] = 1
        return input_ids, segments, source

    def words(self, ids: np.ndarray, source: np.ndarray) -> np.ndarray:
        """The number of each piece's word, ascending along the row, -1 for special pieces."""
        special = self.is_special[ids]
        if getattr(self.store, "word_starts", None) is not None:
            starts = self.store.word_starts[source] != 0
        else:
            starts = ~self.continues[ids]
        starts[1:] |= special[:-1]
        return np.where(special, -1, np.cumsum(starts))

    def masked(self, epoch: int, index: int, ids: np.ndarray, source: np.ndarray) -> MaskedRow:
        """The masking of one example in one epoch."""
        objective = self.objective
        return mask_row(ids, self.words(ids, source), self.ordinary_ids, self.mask_id,
                        objective.mask_rate, objective.mask_share, objective.random_share,
                        generator(self.seed, self._copy(epoch), MASKS, index),
                        objective.mask_unit)


def _cut_by_tokens(order: np.ndarray, lengths: np.ndarray, tokens: int, parts: int, pool: int,
                   ) -> Iterator[np.ndarray]:
    """Runs of ``order`` that hold ``tokens`` pieces in each of ``parts``, the longest row's width
    for all; short examples make larger batches."""
    start = 0
    while start < len(order):
        end = min(start - start % pool + pool, len(order))  # lengths ascend within a pool
        widths = np.maximum.accumulate(lengths[order[start:end]])
        fitting = int(np.searchsorted(widths * np.arange(1, len(widths) + 1), tokens * parts, "right"))
        rows = max(fitting // parts, 1) * parts
        if start + rows <= len(order):
            yield order[start: start + rows]
        start += rows


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
                        short_seq_prob=0.0, masking="dynamic", mask_unit="piece")
    examples = Examples(store, documents, tokenizer, objective, EVALUATION_SEED)
    chosen = generator(EVALUATION_SEED, 0, ORDER).permutation(len(examples.plan(0)))[:limit]
    chosen = chosen[np.argsort(examples.plan(0).lengths[chosen], kind="stable")]
    for start in range(0, len(chosen), batch_size):
        yield examples.batch(0, chosen[start: start + batch_size])
