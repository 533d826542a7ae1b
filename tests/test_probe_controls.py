"""What a probe must beat: baselines, control tasks, random weights."""

from pathlib import Path

import numpy as np
import pytest
import tiny_models
import torch

from bertscope.analysis import activations
from bertscope.analysis.probing import baselines, open_source
from bertscope.analysis.probing.controls import control_labels
from bertscope.analysis.probing.protocol import Protocol
from bertscope.analysis.probing.sampling import sample
from bertscope.analysis.probing.unit import probe_unit
from bertscope.analysis.probing.untrained import architecture, with_random_weights
from probe_stand_ins import Planted, invented_items

EWT = Path(__file__).resolve().parents[2] / "shared" / "data" / "ud_english_ewt"
SMALL = Protocol(max_train=2000, max_validation=500, max_test=1000)


# -- without a model ----------------------------------------------------------------------------


def test_type_baseline_on_a_case_done_by_hand():
    forms = ["the", "The", "run", "run", "run", "dog", "dog", "cat"]
    labels = ["D", "D", "N", "V", "V", "N", "V", "N"]
    # N, V are both three times; "dog" is a tie of N and V, which N wins by the alphabet.
    assert baselines.majority_label(labels) == "N"
    assert baselines.type_predictions(forms, labels, ["THE", "run", "dog", "cat", "new"]) == [
        "D", "V", "N", "N", "N"]


@pytest.mark.skipif(not EWT.is_dir(), reason=f"{EWT} is not there")
def test_baselines_of_ewt():
    """0.862 and 0.164 are known values for UPOS on the test part."""
    items = open_source(EWT).items("upos")
    assert [size["sentences"] for size in items.sizes.values()] == [12544, 2001, 2077]
    labels, types = np.array(items.labels), np.array(items.types)
    train, test = items.where["train"], items.where["test"]
    majority = baselines.majority_label(labels[train])
    predicted = baselines.type_predictions(types[train], labels[train], types[test])
    assert np.mean(labels[test] == majority) == pytest.approx(0.164, abs=5e-4)
    assert np.mean(labels[test] == predicted) == pytest.approx(0.862, abs=5e-4)


def test_a_units_baselines_are_of_its_own_training_items(monkeypatch, tmp_path):
    items = invented_items()
    places = sample(items, SMALL.most, 0)
    rng = np.random.default_rng(0)
    planted = Planted(monkeypatch, tmp_path, 1, 4, lambda layer, word: rng.normal(size=4))
    scores = probe_unit(items, places, planted.store, SMALL, 0).scores.iloc[0]
    chosen = items.select(places)
    train, test = chosen.where["train"], chosen.where["test"]
    labels = np.array(chosen.labels)
    by_type = {}
    for word in set(chosen.types):
        mine = [labels[i] for i in train if chosen.types[i] == word]
        by_type[word] = max(sorted(set(mine)), key=mine.count) if mine else None
    expected = np.mean([by_type[chosen.types[i]] == labels[i] for i in test])
    assert scores["word_identity"] == pytest.approx(expected, abs=0.002)
    most = max(set(labels[train]), key=list(labels[train]).count)
    assert scores["majority"] == np.mean(labels[test] == most)
    assert scores["length_only"] != scores["length_only"]


# -- control tasks ------------------------------------------------------------------------------


def test_every_type_has_one_label_in_all_parts():
    items = invented_items()
    number = {label: i for i, label in enumerate(sorted(set(items.labels)))}
    labels = [number[label] for label in items.labels]
    drawn = control_labels(items.types, labels, items.where["train"], 3)
    of = {}
    assert all(of.setdefault(word, label) == label
               for word, label in zip(items.types, drawn.tolist(), strict=True))
    assert np.array_equal(drawn, control_labels(items.types, labels, items.where["train"], 3))
    assert not np.array_equal(drawn, control_labels(items.types, labels, items.where["train"], 4))


def test_control_labels_follow_the_training_labels_distribution():
    types = [f"t{i}" for i in range(20_000)]
    labels = [0] * 16_000 + [1] * 3000 + [2] * 1000
    drawn = control_labels(types, labels, range(20_000), 0)
    assert np.bincount(drawn) / 20_000 == pytest.approx([0.8, 0.15, 0.05], abs=0.01)
    only_first = control_labels(types, labels, range(16_000), 0)
    assert (only_first == 0).all()


def one_hot(word: str) -> np.ndarray:
    made = np.zeros(60)
    made[int(word[1:])] = 1
    return made


def probed(monkeypatch, tmp_path, items, size, vector, **settings):
    planted = Planted(monkeypatch, tmp_path, 1, size, vector)
    protocol = Protocol(**{"max_train": 2000, "max_validation": 500, "max_test": 1000} | settings)
    return probe_unit(items, sample(items, protocol.most, 0), planted.store, protocol, 0).scores.iloc[0]


def test_word_identity_alone_has_no_selectivity(monkeypatch, tmp_path):
    """As many labels as words: both tasks are learnt by heart, completely."""
    scores = probed(monkeypatch, tmp_path, invented_items(faithful=1.0), 60, lambda _, word: one_hot(word))
    assert scores["accuracy"] == scores["word_identity"] == scores["control_accuracy"] == 1
    assert scores["selectivity"] == 0


def test_ambiguous_words_make_it_negative(monkeypatch, tmp_path):
    """The control task is never ambiguous, so a probe of nothing but the word is better at it."""
    scores = probed(monkeypatch, tmp_path, invented_items(), 60, lambda _, word: one_hot(word))
    assert scores["accuracy"] == pytest.approx(scores["word_identity"], abs=0.01)
    assert scores["accuracy"] < 0.9
    assert scores["control_accuracy"] > 0.99 and scores["selectivity"] < -0.1


def test_what_holds_the_label_and_no_word_is_selective(monkeypatch, tmp_path):
    items = invented_items(faithful=1.0)
    label = dict(zip(items.types, items.labels, strict=True))
    names = sorted(set(items.labels))
    scores = probed(monkeypatch, tmp_path, items, 4, lambda _, word: np.eye(4)[names.index(label[word])])
    assert scores["accuracy"] == 1 and scores["selectivity"] > 0.4


def test_a_network_memorises_more_than_a_line(monkeypatch, tmp_path):
    """Hewitt and Liang's finding: few dimensions, many words."""
    rng = np.random.default_rng(0)
    vectors = {f"w{i}": rng.normal(size=6) for i in range(60)}
    items = invented_items(faithful=1.0)
    control = {kind: probed(monkeypatch, tmp_path, items, 6, lambda _, word: vectors[word],
                            probe=kind)["control_accuracy"] for kind in ("linear", "mlp")}
    assert control["mlp"] > control["linear"] + 0.1


def test_items_without_a_type_have_no_control(monkeypatch, tmp_path):
    items = invented_items()
    bare = type(items)(items.task, items.title, items.kind, items.sentences, items.sentence, items.spans,
                       items.labels, items.parts)
    scores = probed(monkeypatch, tmp_path, bare, 60, lambda _, word: one_hot(word))
    assert "selectivity" not in scores and np.isnan(scores["word_identity"])


# -- random weights -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    tiny_models.save(folder, initializer_range=0.02)
    return activations.load(folder)


def test_random_weights_are_of_the_same_architecture_and_follow_the_seed(tiny):
    before = torch.random.get_rng_state()
    one, two, other = (with_random_weights(tiny, seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    states = [activations.word_states(m, [["the", "cat"]])[0] for m in (one, two, other, tiny)]
    assert np.array_equal(states[0], states[1])
    assert not np.allclose(states[0], states[2]) and not np.allclose(states[0], states[3])
    assert [p.shape for p in one.model.parameters()] == [p.shape for p in tiny.model.parameters()]
    weights = torch.cat([p.flatten() for name, p in one.model.named_parameters()
                         if "dense.weight" in name])
    assert weights.std() == pytest.approx(tiny.model.config.initializer_range, rel=0.05)
    assert not one.model.training and one.fingerprint == two.fingerprint != other.fingerprint


def test_checkpoints_of_one_training_share_their_random_weights(tiny, tmp_path):
    tiny_models.save(tmp_path / "later", seed=5, initializer_range=0.02)
    tiny_models.save(tmp_path / "wider", hidden_size=32)
    later, wider = (activations.load(tmp_path / name) for name in ("later", "wider"))
    assert later.fingerprint != tiny.fingerprint and architecture(later.path) == architecture(tiny.path)
    assert architecture(wider.path) != architecture(tiny.path)
    assert with_random_weights(later, 1).fingerprint == with_random_weights(tiny, 1).fingerprint
