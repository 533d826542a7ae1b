"""The structural probe: is the dependency tree in the geometry of a layer? (Hewitt and Manning 2019)"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bertscope.analysis.probing import shards, tree_probe, trees
from bertscope.analysis.probing.nonce import nonce
from bertscope.analysis.probing.reading import OWN
from bertscope.analysis.probing.tree_scores import Scored, chain, scores
from bertscope.analysis.probing.uncertainty import RESAMPLES
from bertscope.corpus.conllu import Sentence
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.probing.features import Store
    from bertscope.analysis.probing.gold import Gold

Progress = Callable[[str, float | None], None]
#: Raise it when the same question would get another answer.
VERSION = 2
#: Words of the longest sentence that is used: the work grows with the square.
LONGEST = 100


@dataclass(frozen=True)
class StructuralConfig:
    """What is asked. Sizes count sentences; beyond rank 64 Hewitt and Manning found no gain.

    ``nonce``: test on sentences that make no sense, see ``nonce``: is it syntax that the probe reads,
    or which words go together? (Hall Maudslay and Cotterell 2021)
    """

    rank: int = 64
    epochs: int = 40
    max_train: int = 2000
    max_valid: int = 500
    max_test: int = 1000
    seed: int = 0
    nonce: bool = False

    def __post_init__(self) -> None:
        for name in ("rank", "epochs", "max_train", "max_valid", "max_test"):
            if getattr(self, name) < 1:
                raise BertScopeError(f"{name} must be at least 1.")
        if self.seed < 0:
            raise BertScopeError("The seed must be at least 0.")


@dataclass
class StructuralResult:
    """What each layer's geometry knows of the trees of the test part.

    ``layers`` has a row per layer: ``layer``, ``uuas`` (share of the tree's edges in the minimum
    spanning tree over predicted distances, punctuation excluded) with its 95 % interval ``low`` to
    ``high`` from a bootstrap over sentences (nan of too few), over how many ``sentences``, ``spearman``
    (of true and predicted distances: the mean over lengths 5 to 50 of the mean over the words of
    sentences so long), ``root`` (share of sentences whose shallowest word is the root) with
    ``root_low``, ``root_high``, and ``depth_spearman``. ``baselines`` has ``uuas`` and ``spearman`` of
    the left-to-right chain and ``root`` where the first word is always taken. ``edges``: layer,
    sentence (of ``sentences``), first, second (places of words), gold (whether the tree has the edge).
    ``maps`` are the probes themselves: ``{layer: (distance, depth)}``.
    """

    layers: pd.DataFrame
    baselines: dict[str, float]
    edges: pd.DataFrame
    sentences: list[Sentence]
    maps: dict[int, tuple[tree_probe.Map, tree_probe.Map]]
    meta: dict = field(default_factory=dict)


def structural_probe(store: Store, gold: Gold, config: StructuralConfig = StructuralConfig(),
                     layers: Sequence[int] | None = None, progress: Progress | None = None,
                     ) -> StructuralResult:
    """Train both maps for each layer and test them on held-out sentences.

    Of a model with random weights, give its own ``store``. A word is the vector that the store keeps
    of it (the paper: the mean of its pieces); words without one are left out, as are sentences
    whose governors are no tree, and those of fewer than 2 or more than ``LONGEST`` words. The
    validation part alone decides when training ends; the test part is used once.

    Args:
        layers: all of them by default.
        progress: called often, may raise to cancel.

    Raises:
        BertScopeError: a part has no sentence with a tree, or there is no such layer.
    """
    layers = list(range(store.layers)) if layers is None else list(layers)
    if not set(layers) <= set(range(store.layers)):
        raise BertScopeError(f"There are layers 0 to {store.layers - 1}.")
    parts = chosen(gold, config)
    for name, sentences in parts.items():
        if not sentences:
            raise BertScopeError(f"The {name} part of {gold.name} has no sentence with a dependency "
                                 "tree.")
    told = progress or (lambda message, share: None)
    store.fill([_words(sentence) for part in parts.values() for sentence in part],
               lambda message, share: told(message, 0.3 * (share or 0.0)))
    rows, edges, maps, found = [], [], {}, None
    for number, layer in enumerate(layers):
        train, valid, test = (_seen(store, part, layer) for part in parts.values())
        pair = []
        for which, name in enumerate(("distances", "depths")):
            def check(share: float, which=which, name=name, number=number) -> None:
                told(f"layer {layers[number]}: {name}",
                     0.3 + 0.7 * (number + (which + share) / 2) / len(layers))

            examples = [[tree_probe.Example(v, t[which]) for v, *t in _usable(part)]
                        for part in (train, valid)]
            if not all(examples):
                raise BertScopeError("No sentence of the training or the validation part has two "
                                     "words that this model can read.")
            pair.append(tree_probe.fit(*examples, config.rank, config.epochs, config.seed, check))
        maps[layer] = tuple(pair)
        found = scores([Scored(own.heads, own.scored, own.kept, pair[0].distances(own.vectors),
                               pair[1].depths(own.vectors)) for own in test], config.seed)
        rows.append({"layer": layer, **found.row, "distance_loss": pair[0].valid_loss,
                     "depth_loss": pair[1].valid_loss, "epochs": pair[0].epochs})
        edges += [(layer, *edge) for edge in found.edges]
    told("done", 1.0)
    return _result(rows, edges, maps, parts, test, config, store, gold)


def chosen(gold: Gold, config: StructuralConfig) -> dict[str, list[Sentence]]:
    """The sentences of each part: ``training``, ``validation``, ``test``."""
    parts = {name: sample(sentences, most, f"{config.seed}-{name}") for name, sentences, most in (
        ("training", gold.train, config.max_train), ("validation", gold.valid, config.max_valid),
        ("test", gold.test, config.max_test))}
    if config.nonce:
        parts["test"] = nonce(parts["test"], gold.sentences, config.seed)
    return parts


def sample(sentences: Sequence[Sentence], most: int, seed: str) -> list[Sentence]:
    """At most so many sentences of 2 to ``LONGEST`` words with a tree, in their order."""
    usable = [number for number, sentence in enumerate(sentences)
              if 2 <= len(sentence.words) <= LONGEST and trees.heads(sentence) is not None]
    chosen = random.Random(seed).sample(usable, min(most, len(usable)))
    return [sentences[number] for number in sorted(chosen)]


def punctuation(sentence: Sentence) -> list[bool]:
    """Which words are punctuation, by their part of speech or relation."""
    return [word.upos == "PUNCT" or word.deprel == "punct" for word in sentence.words]


@dataclass(frozen=True)
class Seen:
    """A sentence as a layer shows it. ``kept`` are the places of the words that have a vector,
    ``vectors`` float32 [kept, H]; ``scored`` those of them that are no punctuation."""

    heads: list[int]
    kept: list[int]
    scored: list[int]
    vectors: np.ndarray


def _words(sentence: Sentence) -> list[str]:
    return [word.form for word in sentence.words]


def _seen(store: Store, sentences: Sequence[Sentence], layer: int) -> list[Seen]:
    places = [store.place(_words(sentence)) for sentence in sentences]
    vectors: list[np.ndarray] = [np.zeros(0)] * len(places)
    for shard in {place.shard for place in places}:  # a layer of a shard is read as a whole
        here = [number for number, place in enumerate(places) if place.shard == shard]
        rows = [places[n].start + OWN + np.arange(places[n].words) for n in here]
        read = shards.read(shard, layer, np.concatenate(rows)).astype(np.float32)
        parts = np.split(read, np.cumsum([len(own) for own in rows])[:-1])
        for number, own in zip(here, parts, strict=True):
            vectors[number] = own
    found = []
    for sentence, own in zip(sentences, vectors, strict=True):
        kept = np.flatnonzero(np.isfinite(own).all(1)).tolist()
        marks = punctuation(sentence)
        found.append(Seen(trees.heads(sentence), kept,
                          [place for place in kept if not marks[place]], own[kept]))
    return found


def _usable(part: Sequence[Seen]):
    """``(vectors, distances, depths)`` of the sentences of which two words can be seen."""
    for own in part:
        if len(own.kept) >= 2:
            yield (own.vectors, trees.distances(own.heads)[np.ix_(own.kept, own.kept)],
                   np.array(trees.depths(own.heads))[own.kept])


def _result(rows, edges, maps, parts, test, config, store, gold) -> StructuralResult:
    import pandas as pd

    left_out = sum(len(own.heads) - len(own.kept) for own in test)
    meta = {"version": VERSION, "config": asdict(config), "pooling": store.pooling,
            "checkpoint": {"path": str(store.model.path), "fingerprint": store.model.fingerprint},
            "data": gold.name, "data_fingerprint": gold.fingerprint, "split": gold.note,
            "sentences": {name: len(part) for name, part in parts.items()},
            "words_without_vector": left_out, **gold.notices,
            "bootstrap": {"unit": "sentence", "resamples": RESAMPLES, "confidence": 0.95}}
    table = pd.DataFrame(edges, columns=["layer", "sentence", "first", "second", "gold"])
    return StructuralResult(pd.DataFrame(rows), chain(test), table, parts["test"], maps, meta)
