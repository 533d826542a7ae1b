"""The structural probe: planted trees are found, scores are scipy's and hand-made ones, nothing leaks."""

import random
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import tiny_models
import torch
from scipy.stats import spearmanr

from bertscope.analysis import activations
from bertscope.analysis.probing import data, shards, structural, tree_probe, trees
from bertscope.analysis.probing.amnesic import AmnesicConfig
from bertscope.analysis.probing.features import Store, digest
from bertscope.analysis.probing.gold import Gold
from bertscope.analysis.probing.kept_trees import amnesic_kept, structural_kept
from bertscope.analysis.probing.nonce import CONTENT, nonce
from bertscope.analysis.probing.reading import OWN
from bertscope.analysis.probing.structural import StructuralConfig, structural_probe
from bertscope.analysis.probing.tasks import items
from bertscope.analysis.probing.tree_peak import best_layers
from bertscope.analysis.probing.tree_scores import (
    Scored, chain, depth_spearman, distance_spearman, recovered, root_found, scores, spearman_rows)
from bertscope.corpus.conllu import Sentence, Word
from bertscope.errors import BertScopeError

LONGEST, SIZE = 9, 16


def tree(rng, number: int) -> Sentence:
    """A random tree of 5 to 9 words; its last word is a punctuation mark below the root."""
    count = rng.randint(5, LONGEST)
    order = rng.sample(range(count - 1), count - 1)
    heads = [0] * count
    for place, node in enumerate(order[1:], 1):
        heads[node] = order[rng.randrange(place)] + 1
    heads[-1] = order[0] + 1
    return Sentence([Word(f"w{number}-{i}", head=head, upos="PUNCT" if i == count - 1 else "X",
                          deprel="dep") for i, head in enumerate(heads)])


def planted(sentence: Sentence) -> np.ndarray:
    """float [words, LONGEST]: for each edge between the root and the word a 1. Squared distances are
    distances in the tree, squared lengths depths."""
    heads = [word.head - 1 for word in sentence.words]
    made = np.zeros((len(heads), LONGEST))
    for word in range(len(heads)):
        place = word
        while heads[place] >= 0:
            made[word, place] = 1
            place = heads[place]
    return made


class Planted(Store):
    """A store with three layers: the tree turned around and mixed with noise, noise, and the tree
    with some words missing."""

    def __init__(self, folder, sentences):
        model = SimpleNamespace(path="planted", fingerprint="planted", num_layers=2, hidden_size=SIZE)
        super().__init__(folder / "features", model)
        rng = np.random.default_rng(0)
        turn = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0]
        self.vectors, self.filled = {}, []
        for sentence in sentences:
            words = tuple(word.form for word in sentence.words)
            noise = rng.normal(size=(len(words), SIZE - LONGEST))
            whole = 30 * np.concatenate([planted(sentence), noise], 1) @ turn
            holes = whole.copy()
            holes[1] = np.nan
            self.vectors[words] = np.stack([whole, rng.normal(size=whole.shape), holes])

    def fill(self, texts, progress=None):
        self.filled += [tuple(text) for text in texts]
        own = np.full((3, OWN, SIZE), np.nan)
        for start in range(0, len(texts), 100):  # several shards
            some = [tuple(text) for text in texts[start:start + 100]]
            states = [np.concatenate([own, self.vectors[text]], 1) for text in some]
            at = np.cumsum([0, *(OWN + len(text) for text in some)]).tolist()
            index = [(digest(text), begin, len(text), False) for text, begin in zip(some, at)]
            shards.write(self.folder, self.key, np.concatenate(states, 1), index)
        self._places = shards.places(self.folder, self.key)

    def of(self, sentence, layer):
        place = self.place([word.form for word in sentence.words])
        rows = np.arange(place.start + OWN, place.start + OWN + place.words)
        return shards.read(place.shard, layer, rows).astype(np.float32)


@pytest.fixture(scope="module")
def gold():
    rng = random.Random(0)
    made = [tree(rng, number) for number in range(260)]
    return Gold(made[:180], made[180:220], made[220:], "planted")


@pytest.fixture(scope="module")
def store(gold, tmp_path_factory):
    return Planted(tmp_path_factory.mktemp("planted"), gold.sentences)


@pytest.fixture(scope="module")
def found(gold, store):
    return structural_probe(store, gold, StructuralConfig(rank=SIZE))


# -- the whole probe --------------------------------------------------------------------------------


def test_planted_trees_are_recovered(found):
    whole, noise, holes = found.layers.to_dict("records")
    assert whole["uuas"] > 0.95 and whole["spearman"] > 0.95
    assert whole["root"] > 0.95 and whole["depth_spearman"] > 0.9  # words of equal depth are ties
    assert whole["low"] <= whole["uuas"] <= whole["high"]
    assert holes["uuas"] > 0.9


def test_in_noise_there_is_no_tree(found):
    """Two random trees over n words share 2 (n - 1) / n edges on average."""
    noise = found.layers.to_dict("records")[1]
    sizes = [len(s.words) - 1 for s in found.sentences]  # without the punctuation mark
    chance = sum(2 * (n - 1) / n for n in sizes) / sum(n - 1 for n in sizes)
    assert noise["uuas"] == pytest.approx(chance, abs=0.1)
    assert abs(noise["spearman"]) < 0.35 and noise["root"] < 0.5  # 0 to itself is always known


def test_the_edges_are_those_of_the_spanning_trees(found):
    layer = found.edges[found.edges["layer"] == 0]
    for number, sentence in enumerate(found.sentences):
        own = layer[layer["sentence"] == number]
        heads = [word.head - 1 for word in sentence.words]
        assert len(own) == len(heads) - 2  # n - 1 words are scored
        assert not {len(heads) - 1} & {*own["first"], *own["second"]}
        true = {tuple(sorted((i, h))) for i, h in enumerate(heads) if h >= 0}
        assert [(a, b) in true for a, b in zip(own["first"], own["second"])] == own["gold"].tolist()
    assert layer["gold"].mean() == pytest.approx(found.layers["uuas"][0], abs=1e-12)


def test_the_maps_are_the_probe(found, store):
    sentence = found.sentences[0]
    vectors = store.of(sentence, 0)
    distance, depth = found.maps[0]
    heads = [word.head - 1 for word in sentence.words]
    assert np.abs(distance.distances(vectors) - trees.distances(heads)).mean() < 0.5
    assert np.abs(depth.depths(vectors) - trees.depths(heads)).mean() < 0.5


def test_the_manifest_says_what_was_done(found):
    assert found.meta["sentences"] == {"training": 180, "validation": 40, "test": 40}
    assert found.meta["words_without_vector"] == 40  # of the last layer looked at
    assert found.meta["config"]["rank"] == SIZE and found.meta["data"] == "planted"


def test_the_test_part_changes_nothing(found, gold, store):
    """Other test sentences: the same maps, bit for bit."""
    other = Gold(gold.train, gold.valid, gold.test[:5], "planted")
    again = structural_probe(store, other, StructuralConfig(rank=SIZE), [1])
    assert all(np.array_equal(a.B, b.B) and a.scale == b.scale
               for a, b in zip(again.maps[1], found.maps[1], strict=True))


def test_samples_are_bounded_and_layers_can_be_chosen(gold, store):
    shares, before = [], len(store.filled)
    config = StructuralConfig(rank=2, max_train=20, max_valid=5, max_test=7, seed=3)
    made = structural_probe(store, gold, config, [2], lambda message, share: shares.append(share))
    assert len(store.filled) == before + 32 and made.layers["layer"].tolist() == [2]
    assert made.maps[2][0].B.shape == (2, SIZE)
    assert shares == sorted(shares) and shares[-1] == 1.0


def test_it_can_be_cancelled(gold, store):
    class Stop(Exception):
        pass

    def progress(message, share):
        if "depths" in message:
            raise Stop

    with pytest.raises(Stop):
        structural_probe(store, gold, StructuralConfig(rank=2, max_train=20), [0], progress)


@pytest.mark.parametrize("change", [{"rank": 0}, {"seed": -1}, {"max_test": 0}, {"epochs": 0}])
def test_impossible_settings_are_refused(change):
    with pytest.raises(BertScopeError, match="must be at least"):
        StructuralConfig(**change)


def test_sentences_without_a_tree_are_left_out_or_refused(gold, store):
    circle = Sentence([Word("a", head=2), Word("b", head=1)])
    two = Sentence([Word("a", head=0), Word("b", head=0)])
    bare = Sentence([Word("a"), Word("b")])
    long = Sentence([Word("a", head=i) for i in range(structural.LONGEST + 1)])
    assert structural.sample([circle, two, bare, long, gold.train[0]], 9, "") == [gold.train[0]]
    with pytest.raises(BertScopeError, match="training part of x has no sentence with a dep"):
        structural_probe(store, Gold([circle], gold.valid, gold.test, "x"))
    with pytest.raises(BertScopeError, match="layers 0 to 2"):
        structural_probe(store, gold, layers=[3])


def test_nonsense_keeps_the_grammar_and_no_content_word():
    lexicon = data("miniworld").train[:300]
    made = nonce(lexicon[:60], lexicon, seed=1)
    changed = 0
    for old, new in zip(lexicon[:60], made, strict=True):
        for a, b in zip(old.words, new.words, strict=True):
            assert (a.upos, a.xpos, a.feats, a.head, a.deprel) == (b.upos, b.xpos, b.feats, b.head,
                                                                   b.deprel)
            assert a.form[:1].isupper() == b.form[:1].isupper()
            assert a.form == b.form or a.upos in CONTENT
            changed += a.form != b.form
    content = sum(w.upos in CONTENT for s in lexicon[:60] for w in s.words)
    assert changed > 0.8 * content
    assert made == nonce(lexicon[:60], lexicon, seed=1) != nonce(lexicon[:60], lexicon, seed=2)
    alone = Sentence([Word("green", upos="ADJ", head=0)])
    assert nonce([alone], [alone])[0].words == alone.words


def test_only_the_test_part_is_nonsense(gold, store, monkeypatch):
    other = {s.words[0].form: s for s in gold.train[:7]}
    monkeypatch.setattr(structural, "nonce", lambda test, lexicon, seed: list(other.values()))
    config = StructuralConfig(rank=2, max_train=20, max_valid=5, max_test=7, nonce=True)
    made = structural_probe(store, gold, config, [0])
    assert made.sentences == gold.train[:7] and made.meta["config"]["nonce"]


# -- scores -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_rank_correlations_are_scipys(seed):
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 4, (6, 6))
    predicted = rng.normal(size=(6, 6)).round(1)
    peers = [spearmanr(a, b).statistic for a, b in zip(gold, predicted)]
    assert np.allclose(spearman_rows(gold, predicted), peers)
    assert spearman_rows(np.ones((1, 4)), np.arange(4)[None]).tolist() == [0.0]


def test_correlations_average_lengths_not_sentences():
    up, down = np.arange(6), -np.arange(6)
    five = (np.tile(np.arange(5), (5, 1)),) * 2
    six = (np.tile(up, (6, 1)), np.tile(down, (6, 1)))
    assert distance_spearman([five, six, six, six]) == pytest.approx(0.0)  # (1 + -1) / 2
    assert np.isnan(distance_spearman([(np.zeros((4, 4)), np.zeros((4, 4)))]))  # too short
    assert depth_spearman([(up, down), (np.arange(5), np.arange(5))]) == pytest.approx(0.0)


HEADS = [1, -1, 1, 2, 1]  # word 4 is a punctuation mark


def test_scores_by_hand():
    distances = trees.distances(HEADS).astype(float)
    distances[[0, 2], [2, 0]] = 0.5      # so that 0 hangs from 2: two of three edges are right
    depths = np.array([0.1, 1.0, 2.0, 2.0, -5.0])  # the mark does not count, word 0 is no root
    own = Scored(HEADS, [0, 1, 2, 3], [0, 1, 2, 3, 4], distances, depths)
    assert recovered(own) == {(0, 2), (0, 1), (2, 3)} and not root_found(own)
    made = scores([own] * 8)
    assert made.row["uuas"] == made.row["low"] == pytest.approx(2 / 3) and made.row["root"] == 0
    few = scores([own] * 5).row
    assert few["uuas"] == made.row["uuas"] and (few["sentences"], made.row["sentences"]) == (5, 8)
    assert np.isnan([few[name] for name in ("low", "high", "root_low", "root_high")]).all()
    assert made.edges[:3] == [(0, 0, 1, True), (0, 0, 2, False), (0, 2, 3, True)]


def test_the_chain_by_hand():
    """A chain has 0-1, 1-2, 2-3; the tree has all three of them: word 4 is not scored."""
    own = Scored(HEADS, [0, 1, 2, 3], [0, 1, 2, 3, 4], np.zeros((5, 5)), np.zeros(5))
    assert chain([own])["uuas"] == 1.0 and chain([own])["root"] == 0.0
    star = Scored([-1, 0, 0, 0], [0, 1, 3], [0, 1, 2, 3], np.zeros((4, 4)), np.zeros(4))
    assert chain([star]) == {"uuas": 0.5, "spearman": chain([star])["spearman"], "root": 1.0}
    line = Scored([-1, 0, 1, 2, 3], range(5), list(range(5)), np.zeros((5, 5)), np.zeros(5))
    assert chain([line])["spearman"] == pytest.approx(1.0)


def test_words_without_a_vector_are_bridged():
    """0 - 1 - 2 in a line, and the middle cannot be seen: the edge 0-2 is what is left."""
    own = Scored([-1, 0, 1], [0, 2], [0, 2], np.array([[0, 2.0], [2.0, 0]]), np.array([0.0, 2.0]))
    assert scores([own]).row["uuas"] == 1.0 and root_found(own)
    lost = Scored([1, -1], [0], [0], np.zeros((1, 1)), np.zeros(1))  # the root cannot be seen
    assert np.isnan(scores([lost]).row["root"]) and np.isnan(scores([lost]).row["uuas"])


# -- the maps ---------------------------------------------------------------------------------------


def example(seed=0, words=5, size=4, depth=False):
    rng = np.random.default_rng(seed)
    shape = (words,) if depth else (words, words)
    return tree_probe.Example(rng.normal(size=(words, size)).astype(np.float32),
                              rng.integers(0, 5, shape))


@pytest.mark.parametrize("depth", [False, True])
def test_the_loss_is_the_papers_equation(depth):
    """Mean over sentences of 1/|s|^2 sum |d_T - d_B|, or 1/|s| for depths, padded or not."""
    examples = [example(0, 5, depth=depth), example(1, 3, depth=depth)]
    B = np.random.default_rng(2).normal(size=(2, 4)).astype(np.float32)
    expected = []
    for own in examples:
        words, total = len(own.vectors), 0.0
        for i in range(words):
            if depth:
                total += abs(own.targets[i] - np.sum((B @ own.vectors[i]) ** 2)) / words
            for j in range(words if not depth else 0):
                difference = B @ (own.vectors[i] - own.vectors[j])
                total += abs(own.targets[i, j] - difference @ difference) / words ** 2
        expected.append(total)
    batch = tree_probe._padded(examples, 1.0)
    assert float(tree_probe._error(torch.from_numpy(B), batch)) == pytest.approx(
        np.mean(expected), rel=1e-5)
    fitted = tree_probe.Map(B, 1.0, 0.0, 0)
    made = fitted.depths(examples[0].vectors) if depth else fitted.distances(examples[0].vectors)
    assert np.abs(made - examples[0].targets).mean() == pytest.approx(expected[0], rel=1e-5)


def test_the_scale_of_the_vectors_does_not_matter():
    own = [example(seed) for seed in range(6)]
    large = [tree_probe.Example(e.vectors * 1024, e.targets) for e in own]
    a, b = (tree_probe.fit(e[:4], e[4:], 4, 1) for e in (own, large))
    assert np.allclose(a.distances(own[0].vectors), b.distances(large[0].vectors), atol=1e-3)
    assert b.scale == pytest.approx(1024 * a.scale)


def test_the_best_epoch_on_the_validation_part_is_kept():
    own = [example(seed) for seed in range(8)]
    made = tree_probe.fit(own[:6], own[6:], 4, 5)
    again = [np.abs(made.distances(e.vectors) - e.targets).mean() for e in own[6:]]
    assert made.valid_loss == pytest.approx(np.mean(again), rel=1e-4)
    constant = [tree_probe.Example(np.ones((3, 4), np.float32), np.zeros((3, 3), int))] * 2
    assert np.isfinite(tree_probe.fit(constant, constant, 4, 1).B).all()  # nothing to tell apart


# -- a real model, and what is kept -----------------------------------------------------------------


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    tiny_models.save(folder, seed=5)
    return folder


@pytest.fixture(autouse=True)
def hurried(request, monkeypatch):
    """Where nothing has to be learnt well."""
    if "checkpoint" in request.fixturenames:
        monkeypatch.setattr(tree_probe, "FEWEST_STEPS", 20)


@cache
def small_world():
    """Cut off by the model's 40 positions: its tokenizer spells most words letter by letter."""
    gold = data("miniworld")
    return Gold(gold.train[:20], gold.valid[:5], gold.test[:6], "small world")


def test_words_that_the_model_cannot_read_are_left_out_and_counted(checkpoint, tmp_path):
    gold, model = small_world(), activations.load(checkpoint)
    made = structural_probe(Store(tmp_path / "features", model), gold,
                            StructuralConfig(rank=4, epochs=1), [1])
    _, (sentence, word) = activations.word_states(
        model, [[w.form for w in s.words] for s in made.sentences])
    words = sum(len(s.words) for s in made.sentences)
    assert made.meta["words_without_vector"] == words - len(word) > 0
    read = {(s, w) for s, w in zip(sentence.tolist(), word.tolist())}
    assert all((s, a) in read and (s, b) in read for s, a, b in
               zip(made.edges["sentence"], made.edges["first"], made.edges["second"]))


def test_it_is_kept_by_weights_data_and_settings(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tmp_path / "runs"))
    (tmp_path / "runs").mkdir()
    opened = []

    def open_model(path):
        opened.append(path)
        return activations.load(path)

    config = StructuralConfig(rank=4, epochs=1)
    how = dict(open_model=open_model)
    assert structural_kept(checkpoint, small_world(), config, kept_only=True, **how) is None
    layers, edges = structural_kept(checkpoint, small_world(), config, **how)
    again = structural_kept(checkpoint, small_world(), config, **how)
    assert len(opened) == 1 and again[0].equals(layers) and again[1].equals(edges)
    assert layers["layer"].tolist() == [0, 1, 2, 3] and layers["chain_uuas"].nunique() == 1
    assert edges["gold"].dtype == bool and set(edges["layer"]) == {0, 1, 2, 3}
    untrained, _ = structural_kept(checkpoint, small_world(), config, random=True, **how)
    assert len(opened) == 2 and not untrained["uuas"].equals(layers["uuas"])
    other = StructuralConfig(rank=4, epochs=1, seed=1)
    assert structural_kept(checkpoint, small_world(), other, kept_only=True, **how) is None


def test_the_amnesic_control_is_kept_too(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tmp_path / "runs"))
    (tmp_path / "runs").mkdir()
    task = items(small_world(), "upos")
    config = AmnesicConfig(max_train=20, max_valid=5, max_test=6, rounds=1, controls=1)
    table = amnesic_kept(checkpoint, task, config)
    assert table.equals(amnesic_kept(checkpoint, task, config, kept_only=True))
    rows = table[table["removed"] == "task"]
    assert rows["layer"].tolist() == [0, 1, 2, 3]
    assert np.allclose(rows["excess"], rows["change"] - rows["change_random"])
    assert table.loc[table["removed"] != "task", "excess"].isna().all()


# -- the best layers ----------------------------------------------------------------------------


def test_layers_as_good_as_the_best_are_best_too():
    """Of 60 chains: layer 0 finds half of the edges, layers 1 and 2 nearly all, in different sentences."""
    length = 9
    said = [Sentence([Word(f"w{i}", head=i, deprel="dep") for i in range(length)]) for _ in range(60)]
    rows = []
    for layer in range(3):
        for number in range(60):
            missed = {0: 4, 1: int(number % 7 == 0), 2: int(number % 7 == 1)}[layer]
            rows += [(layer, number, place, place + 1) for place in range(length - 1 - missed)]
            rows += [(layer, number, 0, length - 1 - n) for n in range(missed)]
    edges = pd.DataFrame(rows, columns=["layer", "sentence", "first", "second"])
    assert best_layers(edges, said) == [1, 2]
    # Of five sentences nothing can be said.
    assert best_layers(edges[edges.sentence < 5], said) == [0, 1, 2]
    assert best_layers(edges[:0], said) == []
