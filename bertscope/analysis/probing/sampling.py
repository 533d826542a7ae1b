"""Which items are used: whole sentences up to a size, and words hidden."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np

from bertscope.analysis.probing.items import PARTS, Items
from bertscope.analysis.probing.splits import sample_sentences
from bertscope.errors import BertScopeError

#: What a hidden word is replaced by; ``activations.encode`` reads it as the model's mask token.
MASK = "[MASK]"
#: Share of the words that are hidden at once, as in pretraining (Devlin et al. 2019, section 3.1).
MASK_SHARE = 0.15


def sample(items: Items, most: dict[str, int], seed: int) -> np.ndarray:
    """Whole sentences of each part at random, until their items would exceed ``most``.

    Only the training sentences follow the seed: the probes of all seeds are tested on the same items.
    A larger size continues the same order.

    Returns: int64, ascending places of the chosen items.
    """
    chosen = []
    for part in PARTS:
        places = items.where[part]
        sentences, counts = np.unique(items.sentence[places], return_counts=True)
        taken = sample_sentences(counts.tolist(), most[part],
                                 seed if part == "train" else 0)
        chosen.append(places[np.isin(items.sentence[places], sentences[taken])])
    return np.sort(np.concatenate(chosen))


def hide(items: Items, seed: int) -> Items:
    """The same task over words that are hidden, each behind one mask token.

    Of each sentence about ``MASK_SHARE`` of its words are hidden, at least one; the other words are
    no items then.

    Raises:
        BertScopeError: the items are no words.
    """
    if items.kind != "word":
        raise BertScopeError("Only words can be hidden; this task is about "
                             f"{'pairs of words' if items.kind == 'pair' else 'sentences'}.")
    of: dict[int, list[int]] = {}
    for place, sentence in enumerate(items.sentence.tolist()):
        of.setdefault(sentence, []).append(place)
    sentences, kept = list(items.sentences), []
    for sentence, places in of.items():
        words = list(sentences[sentence])
        count = min(len(places), max(1, round(MASK_SHARE * len(words))))
        chosen = random.Random(f"{seed}-{sentence}").sample(places, count)
        for place in chosen:
            start, end = items.spans[place, 0]
            words[start:end] = [MASK] * (end - start)
        sentences[sentence] = words
        kept += chosen
    return replace(items.select(sorted(kept)), sentences=sentences)


def require_labels(items: Items) -> None:
    """Refuse what no probe can be trained on.

    Raises:
        BertScopeError: a part has no item, or training has one label only.
    """
    for part in PARTS:
        if not len(items.where[part]):
            name = {"train": "training"}.get(part, part)
            what = {"word": "word", "pair": "pair of words", "sentence": "sentence"}[items.kind]
            raise BertScopeError(f"No {what} of the {name} part has a label of the task "
                                 f"{items.task}.")
    if len(items.classes) < 2:
        raise BertScopeError(f"All {len(items.where['train'])} training items have the same label of "
                             f"the task {items.task}; there is nothing to learn.")


def unseen_labels(items: Items) -> dict[str, int]:
    """Labels of the test part that training lacks, with how often they occur; always wrong."""
    known = set(items.classes)
    counts: Counter = items.label_counts("test")
    return {label: count for label, count in counts.most_common() if label not in known}
