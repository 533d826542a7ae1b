"""A reader that knows only which words two texts hold: the topic baseline of next-sentence prediction.

It solves the same task as the model, the true next text against one of another document, with a
bag of words. Everything that it looks at is symmetric in the two texts: their order cannot be told
from it, by construction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bertscope.analysis.coherence import Anchor, Document, draw, pairs_of

#: Pairs of places to learn from and to choose by, of training documents.
TRAIN, VALID = 2000, 600
#: Topics (dimensions of the latent semantic space), and sentences in a text that it is learnt from.
TOPICS, STRETCH, STRETCHES = 100, 8, 3000
PENALTIES = (0.001, 0.01, 0.1, 1.0)
VERSION = 1

Progress = Callable[[str, float | None], None]

#: A word, or a single character of a script without spaces.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")


@dataclass
class TopicBaseline:
    """A fitted baseline. ``features`` and ``C`` are what was chosen on the validation documents,
    ``valid_accuracy`` its share of right answers there."""

    features: str
    C: float
    valid_accuracy: float
    _words: TfidfVectorizer = field(repr=False)
    _topics: TruncatedSVD = field(repr=False)
    _classifier: object = field(repr=False)

    def p_next(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """P(B follows A rather than comes from another document), float64 [N]."""
        made = _features(self._words, self._topics, pairs)[self.features]
        return self._classifier.predict_proba(made)[:, 1]


def fit(train: Sequence[Document], valid: Sequence[Document], seed: int = 0, sentences: int = 1,
        cut: Callable[[str, str], tuple[str, str]] = lambda *pair: pair,
        progress: Progress | None = None) -> TopicBaseline:
    """Learn to tell true next texts from those of other documents.

    Two sets of features are tried, ``words`` (the cosine of the two TF-IDF vectors: logistic
    regression then finds its threshold) and ``topics`` (that, and the products of the coordinates
    in a latent semantic space of the TF-IDF vectors; Deerwester et al. 1990), each with several
    penalties. The one with the smallest log loss on ``valid`` is taken.

    Args:
        train, valid: documents; none of them may be tested on.
        sentences: how many make up a text.
        cut: shortens two texts, where those of the test are.

    Raises:
        BertScopeError: there are too few documents of enough sentences.
    """
    progress = progress or (lambda message, fraction: None)
    progress("bag of words: drawing pairs of training documents", 0.0)
    learn, learnt = _task(draw(train, TRAIN, seed, sentences), cut)
    check, right = _task(draw(valid, VALID, seed, sentences), cut)
    progress("bag of words: finding topics", 0.3)
    words = TfidfVectorizer(tokenizer=_WORD.findall, token_pattern=None, sublinear_tf=True)
    counts = words.fit_transform(_stretches(train, seed))
    topics = TruncatedSVD(max(1, min(TOPICS, min(counts.shape) - 1)), random_state=seed).fit(counts)
    x, x_valid = (_features(words, topics, pairs) for pairs in (learn, check))
    best = None
    tried = [(name, c) for name in x for c in PENALTIES]
    for number, (name, penalty) in enumerate(tried):
        progress("bag of words: learning", 0.6 + 0.4 * number / len(tried))
        model = make_pipeline(StandardScaler(), LogisticRegression(C=penalty, max_iter=1000))
        model.fit(x[name], learnt)
        loss = log_loss(right, model.predict_proba(x_valid[name])[:, 1], labels=[0, 1])
        if best is None or loss < best[0]:
            best = (loss, name, penalty, model)
    _, name, penalty, model = best
    return TopicBaseline(name, penalty, float(model.score(x_valid[name], right)), words, topics,
                         model)


def _task(anchors: Sequence[Anchor], cut) -> tuple[list[tuple[str, str]], np.ndarray]:
    """Pairs and labels, 1 = true next, half of each."""
    pairs = [cut(*pair) for pair in pairs_of(anchors, ("next", "other"))]
    return pairs, np.tile([1, 0], len(anchors))


def _stretches(documents, seed: int) -> list[str]:
    """Texts of some sentences, a bounded number from all over the documents."""
    places = [(d, start) for d, document in enumerate(documents)
              for start in range(0, len(document), STRETCH)]
    if len(places) > STRETCHES:
        rng = np.random.default_rng(seed)
        places = [places[i] for i in rng.choice(len(places), STRETCHES, replace=False)]
    return [" ".join(documents[d][i] for i in range(start, min(start + STRETCH, len(documents[d]))))
            for d, start in places]


def _features(words, topics, pairs) -> dict[str, np.ndarray]:
    """``words`` [N, 1] and ``topics`` [N, 1 + topics], symmetric in the two texts."""
    a, b = (words.transform([pair[side] for pair in pairs]) for side in (0, 1))
    cosine = np.asarray(a.multiply(b).sum(1))  # the vectors have length 1, or 0
    left, right = (topics.transform(x) for x in (a, b))
    scale = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    products = left * right / np.maximum(scale, 1e-12)[:, None]
    return {"words": cosine, "topics": np.hstack([cosine, products])}
