"""A document read sentence by sentence: at every boundary, does what follows belong there?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertscope.analysis.activations import LoadedModel, Progress, encode
from bertscope.analysis.pairs import next_sentences
from bertscope.corpus.sentences import split_sentences
from bertscope.errors import BertScopeError

#: Sentences that are looked at; a longer document is read to there.
MOST_SENTENCES = 200


@dataclass(frozen=True)
class Boundaries:
    """``p_next[i]`` is the probability that sentence i + 1 goes on where sentence i ends, float64
    [S - 1]; ``cut`` says how many of the pairs were longer than the model reads."""

    p_next: np.ndarray
    cut: int


def sentences_of(model: LoadedModel, text: str) -> list[str]:
    """The sentences of a text that the model can read; a line break ends one too.

    Raises:
        BertScopeError: there are fewer than two, so there is no boundary.
    """
    found = [sentence for line in text.splitlines() for sentence in split_sentences(line)]
    readable = [sentence for sentence in found if _has_pieces(model, sentence)]
    if len(readable) < 2:
        raise BertScopeError("A document needs at least two sentences: between them is a boundary.")
    return readable


def boundaries(model: LoadedModel, sentences: list[str], around: int = 1,
               progress: Progress | None = None) -> Boundaries:
    """The answer of the checkpoint's head for pairs at each boundary.

    A is up to ``around`` sentences before it, B as many after it. Where the two are longer than the
    model reads, what is nearest to the boundary is kept.

    Raises:
        BertScopeError: the checkpoint has no head for pairs.
    """
    whole = [(" ".join(sentences[max(0, i - around):i]), " ".join(sentences[i:i + around]))
             for i in range(1, len(sentences))]
    pairs = [model.text_encoder.nearest(*pair) for pair in whole]
    answers = next_sentences(model, pairs, progress)
    return Boundaries(np.array([a.p_next for a in answers], float),
                      sum(kept != pair for kept, pair in zip(pairs, whole, strict=True)))


def _has_pieces(model: LoadedModel, sentence: str) -> bool:
    try:
        encode(model, sentence)
    except BertScopeError:
        return False
    return True
