"""Held-out evaluation on frozen masks, and the two lines to read it against."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from bertscope.objectives import Batch
from bertscope.objectives.examples import EVALUATION_SEED
from bertscope.training.progress import means


@torch.no_grad()
def evaluate(loss_module, batches: Sequence[Batch], to_device, weights: dict[str, float],
             total=lambda sums: sums) -> dict:
    """Held-out loss (nats per prediction) and accuracy of each objective, and its perplexity.

    Args:
        loss_module: answers ``{objective: Measured}``; put back into training mode afterwards.
        to_device: turns a :class:`Batch` into the module's keyword arguments.
        weights: of each objective in ``eval_loss``.
        total: adds a float64 tensor of sums up over all processes.
    """
    loss_module.eval()
    torch.manual_seed(EVALUATION_SEED)  # ELECTRA samples; the same at every evaluation
    sums = {f"{name}.{what}": 0.0 for name in weights for what in ("loss", "correct", "count")}
    for batch in batches:
        for name, (loss, correct) in loss_module(**to_device(batch)).items():
            for what, value in (("loss", loss), ("correct", correct), ("count", batch.count(name))):
                sums[f"{name}.{what}"] += float(value)
    loss_module.train()
    values = total(torch.tensor(list(sums.values()), dtype=torch.float64)).tolist()
    measured = {f"eval_{key}": value
                for key, value in means(dict(zip(sums, values)), weights).items()}
    for name in set(weights) & {"mlm", "clm"}:
        measured[f"eval_{name}_perplexity"] = math.exp(min(measured[f"eval_{name}_loss"], 700))
    return measured


def unigram_baseline(store, held_out: np.ndarray, batches: Sequence[Batch], vocab_size: int,
                     causal: bool = False) -> dict:
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
    labels = np.concatenate([batch.next_pieces if causal else batch.masked_labels
                             for batch in batches])
    frequencies = (counts + 1) / (counts.sum() + vocab_size)
    return {"unigram_accuracy": float((labels == counts.argmax()).mean()),
            "unigram_loss": float(-np.log(frequencies[labels]).mean())}


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
