"""What needs no pretraining, to be held against: the commonest answer, and linear models."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from bertscope.finetuning import metrics
from bertscope.finetuning.data import Dataset


def simplest(data: Dataset, task) -> dict[str, float]:
    """On the validation part: the training part's commonest label, its mean, or no answer.

    Keys are ``<task>_majority_<metric>``.
    """
    if data.task == "question":
        found = metrics.of_answers([""] * len(data.valid),
                                   [[a.text for a in e.answers] for e in data.valid])
    elif data.numbers:
        mean = float(np.mean([e.label for e in data.train]))
        found = metrics.of_numbers([e.label for e in data.valid], [mean] * len(data.valid))
    else:
        counts = task.frequencies(data.train)
        best, common = int(counts.argmax()), data.labels[int(counts.argmax())]
        if data.task == "tokens":
            found = metrics.of_tags([e.tags for e in data.valid],
                                    [[common] * len(e.tags) for e in data.valid], task.entities)
        else:
            gold = [data.labels.index(e.label) for e in data.valid]
            found = metrics.of_labels(gold, [best] * len(gold), len(data.labels))
    return {f"{data.task}_majority_{name}": value for name, value in found.items()}


def linear(data: Dataset, part: str = "valid") -> dict[str, float]:
    """A linear model of scikit-learn on the same parts, its strength chosen on the validation part.

    ``sentence`` and ``pair``: TF-IDF of words and pairs of words (of both texts and of what they
    share), logistic regression or, for numbers, ridge regression. ``tokens``: a word, its ends and
    its neighbours, logistic regression. ``question``: the sentence of the paragraph most like the
    question by TF-IDF.
    """
    return {"tokens": _tokens, "question": _questions}.get(data.task, _texts)(
        data, getattr(data, part))


#: Inverse strengths of regularisation that are tried.
STRENGTHS = (0.1, 1.0, 10.0)


def _texts(data: Dataset, examples: Sequence) -> dict[str, float]:
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import Ridge

    def sides(own) -> list[list[str]]:
        if data.task == "sentence":
            return [[e.text for e in own]]
        shared = [" ".join(sorted(set(e.text.lower().split()) & set(e.pair.lower().split())))
                  for e in own]
        return [[e.text for e in own], [e.pair for e in own], shared]

    made = [TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\S+")
            for _ in sides(data.train[:1])]
    fitted = hstack([v.fit_transform(side) for v, side in zip(made, sides(data.train))]).tocsr()

    def read(own):
        return hstack([v.transform(side) for v, side in zip(made, sides(own))]).tocsr()

    def score(model, own) -> dict[str, float]:
        answers = model.predict(read(own))
        if data.numbers:
            return metrics.of_numbers([e.label for e in own], answers)
        index = {label: number for number, label in enumerate(data.labels)}
        return metrics.of_labels([index[e.label] for e in own], [index[a] for a in answers],
                                 len(data.labels))

    labels = [e.label for e in data.train]
    models = [(Ridge(alpha=1 / c) if data.numbers else _classifier(labels, C=c)).fit(fitted, labels)
              for c in STRENGTHS]
    key = "pearson" if data.numbers else "accuracy"
    return score(max(models, key=lambda model: score(model, data.valid)[key]), examples)


def _classifier(labels: Sequence[str], **settings):
    """Logistic regression; that label alone where a few examples happen to have but one."""
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression

    if len(set(labels)) < 2:
        return DummyClassifier()
    return LogisticRegression(max_iter=1000, **settings)


def _tokens(data: Dataset, examples: Sequence) -> dict[str, float]:
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.pipeline import make_pipeline

    tags = [tag for e in data.train for tag in e.tags]
    model = make_pipeline(DictVectorizer(), _classifier(tags, C=1.0, tol=1e-3))
    model.fit([f for e in data.train for f in _looks(e.words)], tags)
    found = [list(model.predict(_looks(e.words))) for e in examples]
    return metrics.of_tags([e.tags for e in examples], found, metrics.marks_entities(data.labels))


def _looks(words: Sequence[str]) -> list[dict[str, bool]]:
    made = []
    for place, word in enumerate(words):
        low = word.lower()
        looks = {f"word={low}", f"title={word[:1].isupper()}", f"digit={word[:1].isdigit()}",
                 *(f"end{n}={low[-n:]}" for n in (1, 2, 3))}
        for name, near in (("before", place - 1), ("after", place + 1)):
            looks.add(f"{name}={words[near].lower() if 0 <= near < len(words) else ''}")
        made.append(dict.fromkeys(looks, True))
    return made


def by_word(data: Dataset, examples: Sequence) -> dict[str, float]:
    """Each word's commonest tag in the training part; the commonest tag of all for others."""
    counts, every = defaultdict(Counter), Counter()
    for example in data.train:
        for word, tag in zip(example.words, example.tags):
            counts[word.lower()][tag] += 1
            every[tag] += 1
    best = {word: own.most_common(1)[0][0] for word, own in counts.items()}
    rest = every.most_common(1)[0][0]
    found = [[best.get(word.lower(), rest) for word in e.words] for e in examples]
    return metrics.of_tags([e.tags for e in examples], found, metrics.marks_entities(data.labels))


def _questions(data: Dataset, examples: Sequence) -> dict[str, float]:
    import re

    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(token_pattern=r"(?u)[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
    words.fit([text for e in data.train for text in (e.question, e.context)])
    found = []
    for example in examples:
        sentences = [s for s in re.split(r"(?<=[.!?])\s+|(?<=[。！？])", example.context) if s.strip()]
        like = words.transform(sentences) @ words.transform([example.question]).T
        found.append(sentences[int(like.toarray().argmax())])
    return metrics.of_answers(found, [[a.text for a in e.answers] for e in examples])
