"""Labelled words of some sentences, with their vectors from every layer."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertscope.analysis.probing.splits import sample_sentences
from bertscope.analysis.probing.tasks import labeller
from bertscope.corpus.conllu import Sentence
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from bertscope.analysis.activations import LoadedModel

#: Sentences per call of the encoder's front end: what bounds memory, and how soon one can cancel.
CHUNK = 128
#: How :func:`bertscope.analysis.activations.encode` is told of a mask token.
MASK = "[MASK]"
#: Share of the words that are hidden at once, as in pretraining (Devlin et al. 2019, section 3.1).
MASK_SHARE = 0.15


@dataclass
class Part:
    """One part of the data as the probe sees it; all lists have one entry per kept word."""

    states: np.ndarray        # float [L+1, words, H]
    forms: list[str]
    labels: list[str]
    sentence: np.ndarray      # int64 [words], index into the part's sentences
    word: np.ndarray          # int64 [words], index into the sentence's words
    sentences: int            # how many sentences were read
    dropped: int              # words without a vector: no piece, or beyond the model's length


def read_part(model: LoadedModel, sentences: Sequence[Sentence], task: str, most: int, seed: int,
              pooling: str, masked: bool = False, tick: Callable[[float], None] | None = None,
              ) -> Part:
    """Run the encoder once over sampled sentences and keep the words that carry a label.

    Args:
        most: labelled words at most; whole sentences are sampled.
        masked: hide the probed words, each behind one mask token: about ``MASK_SHARE`` of each
            sentence's words, at least one. Other words are then not probed.
        tick: called with the share of the sentences that were read.

    Raises:
        BertScopeError: words shall be hidden, and the model has no mask token.
    """
    from bertscope.analysis.activations import word_states

    if masked and model.tokenizer.mask_token is None:
        raise BertScopeError("This model has no mask token to hide words behind.")
    probed = _probed_words(sentences, task, masked, seed)
    chosen = sample_sentences([len(places) for places in probed], most, seed)
    label = labeller(task)
    states, of_sentence, of_word = [], [], []
    for start in range(0, len(chosen), CHUNK):
        chunk = chosen[start:start + CHUNK]
        texts = [[MASK if masked and place in probed[i] else word.form
                  for place, word in enumerate(sentences[i].words)] for i in chunk]
        vectors, (row, place) = word_states(model, texts, pooling=pooling)
        row = np.asarray(chunk, dtype=np.int64)[row]
        kept = np.array([p in probed[i] for i, p in zip(row, place, strict=True)], dtype=bool)
        states.append(vectors[:, kept])
        of_sentence += row[kept].tolist()
        of_word += place[kept].tolist()
        if tick:
            tick((start + len(chunk)) / len(chosen))
    words = [sentences[i].words[p] for i, p in zip(of_sentence, of_word, strict=True)]
    return Part(
        np.concatenate(states, axis=1) if states else np.zeros((model.num_layers + 1, 0, 1)),
        [word.form for word in words], [label(word) for word in words],
        np.array(of_sentence, np.int64), np.array(of_word, np.int64), len(chosen),
        sum(len(probed[i]) for i in chosen) - len(words))


def _probed_words(sentences: Sequence[Sentence], task: str, masked: bool, seed: int,
                  ) -> list[set[int]]:
    """For each sentence the places of the words that are probed."""
    label = labeller(task)
    probed = [{place for place, word in enumerate(sentence.words) if label(word)}
              for sentence in sentences]
    if not masked:
        return probed
    return [set(random.Random(f"{seed}-{number}").sample(
        sorted(places), min(len(places), max(1, round(MASK_SHARE * len(sentence.words))))))
        for number, (places, sentence) in enumerate(zip(probed, sentences, strict=True))]
