"""Examples that are no pairs: whole sentences packed until the length is reached.

Source: Liu et al. 2019 (RoBERTa), section 4.2. ``full_sentences`` goes on into the next document
after a further [SEP], ``doc_sentences`` begins a new example there, ``sentences`` takes one
sentence at a time. A sentence longer than an example is cut, so that no text is lost.
"""

from __future__ import annotations

import numpy as np

from bertscope.errors import BertScopeError
from bertscope.objectives.plan import Plan


def plan_packed(sentence_offsets: np.ndarray, document_offsets: np.ndarray, documents: np.ndarray,
                max_length: int, scheme: str, rng: np.random.Generator) -> Plan:
    """Cut ``documents``, in an order drawn anew, into examples of at most ``max_length`` pieces.

    Args:
        sentence_offsets: int64 [sentences + 1], first piece of each sentence.
        document_offsets: int64 [documents + 1], first sentence of each document.
        documents: int64, the documents to draw from.
        scheme: ``full_sentences``, ``doc_sentences`` or ``sentences``.

    Raises:
        BertScopeError: the documents hold no text.
    """
    spans, offsets, room = [], [0], max_length - 1  # [CLS]
    left = room

    def close():
        nonlocal left
        if len(spans) > offsets[-1]:
            offsets.append(len(spans))
        left = room

    for document in rng.permutation(documents):
        first, end = document_offsets[document: document + 2]
        starts = sentence_offsets[first: end + 1]
        place, last = int(starts[0]), int(starts[-1])
        while place < last:
            if scheme == "sentences":
                close()
            stop = _fitting(starts, place, left - 1, scheme)
            if stop is None and left < room:  # not a whole sentence fits here: a new example
                close()
                continue
            if stop is None:  # longer than any example
                stop = min(place + room - 1, last)
            spans.append((place, stop))
            left -= stop - place + 1
            place = stop
        if scheme != "full_sentences":
            close()
    close()
    if not spans:
        raise BertScopeError("The documents to train on hold no text.")
    return Plan(np.array(spans, dtype=np.int64), np.array(offsets, dtype=np.int64))


def _fitting(starts: np.ndarray, place: int, room: int, scheme: str) -> int | None:
    """The end of the last sentence that fits whole from ``place`` on; None where none does."""
    following = np.searchsorted(starts, place, "right")  # ends of this sentence and later ones
    index = np.searchsorted(starts, place + room, "right") - 1
    if scheme == "sentences":
        index = min(index, following)
    return int(starts[index]) if index >= following else None
