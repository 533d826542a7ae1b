"""Which layers' trees are best: no star on one layer, but all that cannot be told from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertscope.analysis.probing import trees
from bertscope.analysis.probing.uncertainty import compare, resampled
from bertscope.corpus.conllu import Sentence

if TYPE_CHECKING:
    import pandas as pd


def best_layers(edges: pd.DataFrame, sentences: Sequence[Sentence]) -> list[int]:
    """The layers whose UUAS is not significantly below the best one: a paired bootstrap over
    sentences, p corrected for the number of layers (Holm). All of them where too few sentences can
    be scored.

    Args:
        edges: ``layer, sentence, first, second`` of every recovered edge, as in ``StructuralResult``.
        sentences: those that ``sentence`` counts.
    """
    recovered = {layer: set(zip(own["sentence"].tolist(), own["first"].tolist(), own["second"].tolist()))
                 for layer, own in edges.groupby("layer")}
    gold = sorted(_gold(set.union(*recovered.values()), sentences)) if recovered else []
    if not gold:
        return sorted(recovered)
    correct = np.array([[[edge in own for edge in gold]] for own in recovered.values()])
    sentence = np.array([number for number, _, _ in gold])
    good = compare(*resampled(correct, sentence)).as_good
    return [layer for layer, best in zip(recovered, good, strict=True) if best]


def _gold(recovered: set[tuple[int, int, int]], sentences: Sequence[Sentence]) -> set[tuple[int, int, int]]:
    """``(sentence, first, second)`` of the gold trees over the words that the recovered ones join."""
    places: dict[int, set[int]] = {}
    for number, *edge in recovered:
        places.setdefault(number, set()).update(edge)
    return {(number, *edge) for number, own in places.items()
            for edge in trees.edges(trees.heads(sentences[number]), sorted(own))}
