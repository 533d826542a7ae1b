"""Which items are used: whole sentences up to a size, words hidden, word types kept apart."""

from __future__ import annotations

import hashlib
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
#: Of the word types, the share that each part gets where types are kept apart.
TYPE_SHARES = {"train": 0.6, "validation": 0.1, "test": 0.3}


def sample(items: Items, most: dict[str, int], seed: int, train_seed: int) -> Items:
    """Whole sentences of each part, until their items would exceed ``most``.

    Validation and test sentences follow ``seed``, training sentences ``train_seed``: probes of
    several training seeds are tested on the same items. A larger size continues the same order.
    """
    chosen = []
    for part in PARTS:
        places = items.where[part]
        sentences, counts = np.unique(items.sentence[places], return_counts=True)
        taken = sample_sentences(counts.tolist(), most[part],
                                 train_seed if part == "train" else seed)
        chosen.append(places[np.isin(items.sentence[places], sentences[taken])])
    return items.select(np.sort(np.concatenate(chosen)))


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


def apart(items: Items, seed: int) -> Items:
    """Items whose word type belongs to the part they are in: no type is in two parts.

    Each lower-cased type is given to one part by lot (``TYPE_SHARES``), so that training keeps about
    six words of ten, and a probe cannot answer by having seen the word.

    Raises:
        BertScopeError: nothing stands for the items' types, or a part is left empty.
    """
    if not any(items.types):
        raise BertScopeError(f"The task {items.task} has no word types to keep apart.")
    kept = items.select(lambda place: items.parts[place] == _side(items.types[place], seed))
    empty = [part for part in PARTS if not len(kept.where[part])]
    if empty:
        raise BertScopeError(f"With word types kept apart no item is left in the {empty[0]} part.")
    return kept


def _side(word: str, seed: int) -> str:
    lot = int.from_bytes(hashlib.sha256(f"{seed}|{word.lower()}".encode("utf-8", "replace")
                                        ).digest()[:7]) / 2 ** 56
    for part, share in TYPE_SHARES.items():
        lot -= share
        if lot < 0:
            return part
    return "test"


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
