"""Held-out evaluation on frozen masks, and the two lines to read it against."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from bertscope.objectives import Batch


@torch.no_grad()
def evaluate(loss_module, batches: Sequence[Batch], to_device, total=lambda sums: sums) -> dict:
    """MLM loss (nats per predicted piece), accuracy and perplexity; NSP loss and accuracy.

    Args:
        loss_module: a ``PretrainingLoss``; put back into training mode afterwards.
        to_device: turns a :class:`Batch` into the module's keyword arguments.
        total: adds a float64 tensor of sums up over all processes.
    """
    loss_module.eval()
    sums = torch.zeros(6, dtype=torch.float64)
    for batch in batches:
        out = loss_module(**to_device(batch))
        values = (out.mlm_loss, out.mlm_correct, out.nsp_loss, out.nsp_correct)
        sums += torch.tensor([*(float(v) for v in values), batch.masked,
                              len(batch.next_sentence_label)], dtype=torch.float64)
    loss_module.train()
    mlm_loss, mlm_correct, nsp_loss, nsp_correct, masked, rows = total(sums).tolist()
    masked, rows = max(masked, 1), max(rows, 1)
    return {
        "eval_mlm_loss": mlm_loss / masked,
        "eval_mlm_accuracy": mlm_correct / masked,
        "eval_mlm_perplexity": math.exp(min(mlm_loss / masked, 700)),
        "eval_nsp_loss": nsp_loss / rows,
        "eval_nsp_accuracy": nsp_correct / rows,
    }


def unigram_baseline(store, held_out: np.ndarray, batches: Sequence[Batch], vocab_size: int) -> dict:
    """What guessing by frequency alone reaches on the evaluation's own places.

    ``unigram_accuracy`` always guesses the piece most frequent in the training documents;
    ``unigram_loss`` is the cross-entropy (nats) of their add-one-smoothed frequencies.
    """
    counts = np.zeros(vocab_size, dtype=np.int64)
    for start in range(0, len(store.ids), 1 << 24):
        counts += np.bincount(store.ids[start: start + (1 << 24)], minlength=vocab_size)
    for document in held_out:
        first, end = store.document_offsets[document: document + 2]
        ids = store.ids[store.sentence_offsets[first]: store.sentence_offsets[end]]
        counts -= np.bincount(ids, minlength=vocab_size)
    labels = np.concatenate([batch.masked_labels for batch in batches])
    frequencies = (counts + 1) / (counts.sum() + vocab_size)
    return {"unigram_accuracy": float((labels == counts.argmax()).mean()),
            "unigram_loss": float(-np.log(frequencies[labels]).mean()), "nsp_chance": 0.5}


def oracle_accuracy(oracle, batches: Sequence[Batch]) -> float:
    """The MLM accuracy that the corpus's own grammar allows on the evaluation's places.

    Args:
        oracle: per piece of the store, ``choice`` (which choice of the generator it reveals),
            ``oracle`` (probability of the likeliest form where another piece of that choice is
            seen) and ``alone`` (where none is).

    For every masked piece the generator's own probability of the likeliest form, given whether
    its choice can be seen elsewhere in the example.
    """
    chances = []
    for batch in batches:
        width = batch.source.shape[1]
        masked = np.zeros(batch.source.size, dtype=bool)
        masked[batch.masked_index] = True
        choice = np.where(batch.source >= 0, oracle.choice[batch.source], -1)
        shown = np.where(masked.reshape(choice.shape), -1, choice)
        rows, places = batch.masked_index // width, batch.masked_index % width
        source = batch.source[rows, places]
        own = choice[rows, places]
        revealed = (shown[rows] == own[:, None]).any(1) & (own >= 0)
        chances.append(np.where(revealed, oracle.oracle[source], oracle.alone[source]))
    return float(np.concatenate(chances).mean())
