"""Made-up annotation and a stand-in for the encoder, for tests of probing."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np

from bertscope.analysis.probing import features
from bertscope.analysis.probing.gold import Gold
from bertscope.analysis.probing.reading import OWN, rows_of
from bertscope.analysis.probing.splits import split_by_document
from bertscope.analysis.probing.tasks import items
from bertscope.corpus.conllu import Sentence, Word

TAGS = ["NOUN", "VERB", "ADJ", "DET"]


def sentence(words: str, document="", labels: str = "") -> Sentence:
    """``"the boats"`` with UPOS ``"DET NOUN"``; without labels every word is an X."""
    forms = words.split()
    tags = labels.split() or ["X"] * len(forms)
    return Sentence([Word(form, upos=tag) for form, tag in zip(forms, tags, strict=True)],
                    document=document)


def invented(count: int, seed=0, documents=20, types=60, length=8, faithful=0.75) -> list[Sentence]:
    """Random sentences: each word type has a favourite label that it takes mostly."""
    rng = random.Random(seed)
    favourite = {f"w{i}": TAGS[min(3, i % 5)] for i in range(types)}
    made = []
    for number in range(count):
        forms = [rng.choice(list(favourite)) for _ in range(length)]
        labels = [favourite[f] if rng.random() < faithful else rng.choice(TAGS) for f in forms]
        made.append(sentence(" ".join(forms), f"d{number * documents // count}", " ".join(labels)))
    return made


def gold_of(sentences: list[Sentence]) -> Gold:
    """Split by document."""
    return Gold(*split_by_document(sentences), "made up")


def invented_items(count=500, **how):
    """The parts of speech of invented sentences, as Items."""
    return items(gold_of(invented(count, documents=50, **how)), "upos")


class Planted:
    """Stands in for the encoder: ``vector(layer, word)`` says what each layer holds.

    ``read`` counts the sentences that it was shown. The shards are real.
    """

    def __init__(self, monkeypatch, folder, layers: int, size: int, vector, sentence_vector=None):
        self.vector, self.sentence_vector = vector, sentence_vector or (lambda layer, text: 0.0)
        self.seen: list[str] = []
        self.folder, self.layers = folder, layers
        self.model = SimpleNamespace(path="planted", fingerprint="planted", num_layers=layers - 1,
                                     hidden_size=size)
        monkeypatch.setattr(features, "read", self.read)

    @property
    def store(self) -> features.Store:
        return features.Store(self.folder / "analysis" / "features", self.model)

    def read(self, model, texts, pooling="mean", progress=None):
        states = np.zeros((self.layers, sum(map(rows_of, texts)), model.hidden_size), np.float16)
        start = 0
        for text in texts:
            self.seen.append(text if isinstance(text, str) else " ".join(text))
            for layer in range(self.layers):
                states[layer, start:start + OWN] = self.sentence_vector(layer, text)
                for place, word in enumerate([] if isinstance(text, str) else text):
                    states[layer, start + OWN + place] = self.vector(layer, word)
            start += rows_of(text)
        if progress:
            progress("planted", 1.0)
        return states, [False] * len(texts)


def by_type(size: int, layers: int = 1, seed: int = 0, types: int = 60):
    """``vector(layer, word)`` that is one random vector for each word type."""
    rng = np.random.default_rng(seed)
    vectors = {f"w{i}": rng.normal(size=(layers, size)) for i in range(types)}
    return lambda layer, word: vectors[word][layer]
