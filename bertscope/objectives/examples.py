"""From the token store to batches: every example a pure function of (seed, epoch, index)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from bertscope.config import ObjectiveConfig
from bertscope.corpus.words import continuing
from bertscope.objectives.keys import ORDER, PLAN, generator, uniforms
from bertscope.objectives.masking import Masked, mask_rows
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
    def inputs(self) -> dict[str, np.ndarray | None]:
        """What a loss module takes."""
        names = ("input_ids", "token_type_ids", "attention_mask", "masked_lm_positions",
                 "masked_lm_labels", "pair_label")
        return {name: getattr(self, name) for name in names}

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


@dataclass(frozen=True)
class Rows:
    """B examples before masking: ``input_ids``, ``token_type_ids`` and ``source`` [B, T], and their
    ``lengths`` [B], all int64."""

    input_ids: np.ndarray
    token_type_ids: np.ndarray
    source: np.ndarray
    lengths: np.ndarray


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
        self.continues = continuing(tokenizer)
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
        rows = self.rows(epoch, indices)
        masked = self.masked(epoch, indices, rows)
        width = rows.input_ids.shape[1]
        padded = bool((rows.lengths < width).any())
        label = self.plan(epoch).label
        return Batch(
            masked.input_ids, rows.token_type_ids,
            (np.arange(width) < rows.lengths[:, None]).astype(np.int64) if padded else None,
            masked.positions, masked.labels, None if label is None else label[indices],
            rows.source)

    def rows(self, epoch: int, indices: np.ndarray) -> Rows:
        """The examples ``indices`` before masking."""
        plan = self.plan(epoch)
        lengths = plan.lengths[indices]
        shape = (len(indices), int(lengths.max()))
        first, last = plan.offsets[indices], plan.offsets[np.asarray(indices) + 1]
        count = last - first  # spans of each example
        row = np.repeat(np.arange(len(indices)), count)
        span = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + first[row]
        start, size = plan.spans[span, 0], plan.spans[span, 1] - plan.spans[span, 0]
        # The column at which a span begins: after [CLS], and each span before it with its [SEP].
        before = np.cumsum(size + 1) - (size + 1)
        column = 1 + before - before[np.repeat(np.cumsum(count) - count, count)]

        within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        source = np.full(shape, -1, dtype=np.int64)
        source[np.repeat(row, size), np.repeat(column, size) + within] = \
            np.repeat(start, size) + within
        input_ids = np.where(source >= 0, self.store.ids[source], self.pad).astype(np.int64)
        input_ids[:, 0] = self.cls
        input_ids[row, column + size] = self.sep
        token_type_ids = np.zeros(shape, dtype=np.int64)
        if plan.label is not None:
            places = np.arange(shape[1])
            token_type_ids[(places >= column[1::2, None]) & (places < lengths[:, None])] = 1
        return Rows(input_ids, token_type_ids, source, lengths)

    def words(self, rows: Rows) -> np.ndarray:
        """The number of each piece's word, ascending along a row, -1 for special pieces: [B, T]."""
        special = self.is_special[rows.input_ids]
        if getattr(self.store, "word_starts", None) is not None:
            starts = self.store.word_starts[rows.source] != 0
        else:
            starts = ~self.continues[rows.input_ids]
        starts[:, 1:] |= special[:, :-1]
        return np.where(special, -1, np.cumsum(starts, axis=1))

    def masked(self, epoch: int, indices: np.ndarray, rows: Rows) -> Masked:
        """The masking of these examples in one epoch."""
        def draw(stream: int) -> np.ndarray:
            return uniforms(self.seed, self._copy(epoch), stream, np.asarray(indices),
                            rows.input_ids.shape[1])

        return mask_rows(rows.input_ids, self.words(rows), rows.lengths, self.ordinary_ids,
                         self.mask_id, self.objective, draw)


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


#: Held-out examples do not depend on the run's seed, so that runs can be compared.
EVALUATION_SEED = 20181011


def evaluation_batches(store, documents: np.ndarray, tokenizer, objective: ObjectiveConfig,
                       limit: int, batch_size: int) -> Iterator[Batch]:
    """Frozen held-out batches: the same pairs and the same 15 % masks at every evaluation.

    Every chosen piece is shown as [MASK], whatever the training's shares, so that accuracy means
    "guessed from the context" and can be held against an oracle's. Where nothing is masked in
    training (a causal model), nothing is here.
    """
    objective = replace(objective, mask_rate=0.15 if objective.mask_rate else 0.0, mask_share=1.0,
                        random_share=0.0, short_seq_prob=0.0, masking="dynamic", mask_unit="piece")
    examples = Examples(store, documents, tokenizer, objective, EVALUATION_SEED)
    chosen = generator(EVALUATION_SEED, 0, ORDER).permutation(len(examples.plan(0)))[:limit]
    chosen = chosen[np.argsort(examples.plan(0).lengths[chosen], kind="stable")]
    for start in range(0, len(chosen), batch_size):
        yield examples.batch(0, chosen[start: start + batch_size])
