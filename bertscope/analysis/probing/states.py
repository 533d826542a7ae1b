"""Labelled words of some sentences, with their vectors from every layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertscope.analysis.probing.splits import sample_sentences
from bertscope.analysis.probing.tasks import count_labelled, labeller
from bertscope.corpus.conllu import Sentence

if TYPE_CHECKING:
    from bertscope.analysis.activations import LoadedModel

#: Sentences per call of the encoder's front end: what bounds memory, and how soon one can cancel.
CHUNK = 128


@dataclass
class Part:
    """One part of the data as the probe sees it; all lists have one entry per kept word."""

    states: np.ndarray        # float [L+1, words, H]
    forms: list[str]
    labels: list[str]
    sentence: np.ndarray      # int64 [words], index into the part's sentences
    word: np.ndarray          # int64 [words], index into the sentence's words
    sentences: int            # how many sentences were read
    dropped: int              # labelled words without a vector: no piece, or beyond the model's length


def read_part(model: LoadedModel, sentences: Sequence[Sentence], task: str, most: int, seed: int,
              pooling: str, tick: Callable[[float], None] | None = None) -> Part:
    """Run the encoder once over sampled sentences and keep the words that carry a label.

    Args:
        most: labelled words at most; whole sentences are sampled.
        tick: called with the share of the sentences that were read.
    """
    from bertscope.analysis.activations import word_states

    label = labeller(task)
    chosen = sample_sentences(count_labelled(sentences, task), most, seed)
    states, forms, labels, sentence, word = [], [], [], [], []
    wanted = 0
    for start in range(0, len(chosen), CHUNK):
        chunk = chosen[start:start + CHUNK]
        vectors, (of_sentence, of_word) = word_states(
            model, [[w.form for w in sentences[i].words] for i in chunk], pooling=pooling)
        words = [sentences[chunk[s]].words[w] for s, w in zip(of_sentence, of_word, strict=True)]
        kept = np.array([i for i, w in enumerate(words) if label(w)], dtype=np.int64)
        states.append(vectors[:, kept])
        forms += [words[i].form for i in kept]
        labels += [label(words[i]) for i in kept]
        sentence.append(np.asarray(chunk, dtype=np.int64)[np.asarray(of_sentence)[kept]])
        word.append(np.asarray(of_word, dtype=np.int64)[kept])
        wanted += sum(bool(label(w)) for i in chunk for w in sentences[i].words)
        if tick:
            tick((start + len(chunk)) / len(chosen))
    if not states:
        shape = (model.num_layers + 1, 0, model.hidden_size)
        return Part(np.zeros(shape, np.float32), [], [], np.zeros(0, np.int64),
                    np.zeros(0, np.int64), 0, 0)
    return Part(np.concatenate(states, axis=1), forms, labels, np.concatenate(sentence),
                np.concatenate(word), len(chosen), wanted - len(labels))
