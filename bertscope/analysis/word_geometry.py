"""The geometry of all words of a sample of texts, layer by layer: one table for a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertscope.analysis.activations import LoadedModel, Progress, word_states
from bertscope.analysis.geometry import CONTEXTS, Occurrences, measure, standardised
from bertscope.corpus.words import without_spaces
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import pandas as pd

#: Raise it when the same texts and weights give another table.
VERSION = 1
#: Words of a sample at most; all layers of them are in memory.
MOST_WORDS = 4000
#: Words of one text at most.
MOST_EACH = 60
RAW, STANDARDISED = "raw", "standardised"
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def split_words(text: str) -> list[str]:
    """Words and punctuation marks; Chinese by a segmenter."""
    if without_spaces(text):
        import rjieba

        return [word for word in rjieba.cut(text) if word.strip()][:MOST_EACH]
    return _WORD.findall(text)[:MOST_EACH]


def sample(texts: Sequence[str], most: int = MOST_WORDS) -> list[list[str]]:
    """The texts' words, as many texts from the first on as hold ``most`` words."""
    kept, count = [], 0
    for text in texts:
        words = split_words(text)
        if count + len(words) > most:
            break
        if words:
            kept.append(words)
            count += len(words)
    return kept


def layer_table(model: LoadedModel, sentences: Sequence[Sequence[str]], only: str | None = None,
                progress: Progress | None = None) -> pd.DataFrame:
    """A row for each layer and each of ``values``, raw or standardised; columns as in
    ``geometry.Layer``, and ``largest`` as text. Punctuation is read but not measured.

    Args:
        sentences: each a list of words.
        only: see ``geometry.measure``.

    Raises:
        BertScopeError: there are too few sentences, or no word often enough.
    """
    import pandas as pd

    states, (sentence, place) = word_states(model, sentences, progress=progress)
    found = [sentences[s][w] for s, w in zip(sentence.tolist(), place.tolist())]
    words = [i for i, word in enumerate(found) if any(c.isalnum() for c in word)]
    if len(words) < 2:
        raise BertScopeError("There are too few words in these texts.")
    occurrences = Occurrences(sentence[words], [found[i] for i in words])
    rows = []
    for layer, vectors in enumerate(states[:, words]):
        for values, chosen in ((RAW, vectors), (STANDARDISED, standardised(vectors))):
            got = vars(measure(chosen, occurrences, only=only))
            largest = ", ".join(f"{i} ({share:.0%})" for i, share in got.pop("largest")
                                if values == RAW and got["baseline"] > 0.05)
            rows.append({"layer": layer, "values": values, **got, "largest": largest})
    return pd.DataFrame(rows)


def often_enough(sentences: Sequence[Sequence[str]], contexts: int = CONTEXTS) -> list[str]:
    """Words found in at least ``contexts`` of the sentences, the most frequent first."""
    from collections import Counter

    counts = Counter(word for words in sentences for word in {w.casefold() for w in words})
    return [word for word, count in counts.most_common() if count >= contexts]
