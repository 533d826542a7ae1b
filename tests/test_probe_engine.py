"""A unit of probing: planted vectors score as they must, and the test part decides nothing."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
import tiny_models
import torch

from bertscope.analysis import activations
from bertscope.analysis.probing import Protocol, classifier, features, mix, mlp, unit
from bertscope.analysis.probing.sampling import hide, sample
from bertscope.analysis.probing.tasks import items as items_of
from bertscope.analysis.probing.unit import probe_unit
from bertscope.corpus.conllu import Sentence, Word, read_conllu
from bertscope.corpus.miniworld import gold_sentences
from bertscope.corpus.tokenizer import train_tokenizer
from bertscope.errors import BertScopeError
from probe_stand_ins import Planted, by_type, gold_of, invented, invented_items, sentence

EWT = Path(__file__).resolve().parents[2] / "shared" / "data" / "ud_english_ewt"
PROTOCOL = Protocol(max_train=2000, max_validation=500, max_test=1000)


def probed(planted, items, protocol=PROTOCOL, seed=0, progress=None):
    return probe_unit(items, sample(items, protocol.most, seed), planted.store, protocol, seed, progress)


def by_layer(found, column="accuracy"):
    return found.scores[~found.scores["mix"]].set_index("layer")[column]


# -- the planted truths -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_planted_layers_score_as_they_must(monkeypatch, tmp_path, kind):
    """Layer 0 holds word identity, layer 1 the label, layer 2 noise."""
    made = [dataclasses.replace(s, words=[Word(f"{w.form}|{w.upos}", upos=w.upos) for w in s.words])
            for s in invented(500, documents=50)]
    items = items_of(gold_of(made), "upos")
    rng, tags = np.random.default_rng(0), ["ADJ", "DET", "NOUN", "VERB"]

    def vector(layer, form):
        word, label = form.split("|")
        return {0: np.eye(64)[int(word[1:])], 1: np.eye(64)[tags.index(label)],
                2: rng.normal(size=64)}[layer]

    items = dataclasses.replace(items, types=[word.split("|")[0] for word in items.types])
    found = probed(Planted(monkeypatch, tmp_path, 3, 64, vector), items,
                   dataclasses.replace(PROTOCOL, probe=kind, max_train=2000 if kind == "linear" else 700))
    accuracy, selectivity = by_layer(found), by_layer(found, "selectivity")
    majority, identity = found.scores.iloc[0][["majority", "word_identity"]]
    assert accuracy[0] == pytest.approx(identity, abs=0.02) and selectivity[0] < 0.05
    assert accuracy[1] == by_layer(found, "macro_f1")[1] == 1 and selectivity[1] > 0.4
    assert accuracy[2] == pytest.approx(majority, abs=0.05)
    assert majority < 0.5 < 0.7 < identity < 0.9
    assert (found.answers["layer_1"] == found.answers["gold"]).all()


def test_codelengths_of_planted_layers(monkeypatch, tmp_path):
    """A label in plain sight costs next to nothing, noise as much as frequencies do."""
    items = invented_items(faithful=1.0)
    label = dict(zip(items.types, items.labels, strict=True))
    names, rng = sorted(set(items.labels)), np.random.default_rng(0)

    def vector(layer, word):
        return 5 * np.eye(6)[names.index(label[word])] if layer else rng.normal(size=6)

    protocol = dataclasses.replace(PROTOCOL, codelength=True)
    found = probed(Planted(monkeypatch, tmp_path, 2, 6, vector), items, protocol)
    bits = by_layer(found, "codelength")
    assert bits[1] < 0.03 * by_layer(found, "uniform_codelength")[1]
    assert bits[0] == pytest.approx(by_layer(found, "frequency_codelength")[0], rel=0.05)
    assert by_layer(found, "compression")[1] > 30
    control = by_layer(found, "control_codelength")
    assert control[1] > 10 * bits[1]


def test_pieces_of_a_label_in_two_layers_are_put_together_by_the_mix(monkeypatch, tmp_path):
    items = invented_items(faithful=1.0)
    label = dict(zip(items.types, items.labels, strict=True))
    names = sorted(set(items.labels))
    halves = {0: lambda n: n % 2, 1: lambda n: n // 2, 2: lambda n: 0}
    rng = np.random.default_rng(0)

    def vector(layer, word):
        return (6 * halves[layer](names.index(label[word])) + rng.normal()) * np.eye(4)[layer]

    found = probed(Planted(monkeypatch, tmp_path, 3, 4, vector), items,
                   dataclasses.replace(PROTOCOL, mix=True))
    mixes = found.scores[found.scores["mix"]].set_index("layer")
    assert by_layer(found).max() < 0.9 and mixes["accuracy"][1] > 0.95
    assert mixes["accuracy"][0] == pytest.approx(by_layer(found)[0], abs=0.02)
    assert mixes["share_2"][2] < 0.2 and 0.2 < mixes["centre"][2] < 0.8
    assert np.isnan(mixes["share_2"][1]) and "mix_2" in found.answers


# -- the test part decides nothing --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["linear", "mlp", "mix"])
def test_the_test_part_touches_neither_the_scaler_nor_the_penalty(monkeypatch, tmp_path, kind):
    """The same training and validation parts with a poisoned test part: vectors and labels."""
    module = {"linear": classifier, "mlp": mlp, "mix": mix}[kind]
    name = "fit_many" if kind == "linear" else "fit"
    fits, original = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *a, **k: fits.append(original(*a, **k)) or fits[-1])
    vector = by_type(10)
    planted = Planted(monkeypatch, tmp_path, 1, 10, lambda layer, word: np.full(10, 1e4)
                      if word.startswith("poison") else vector(layer, word))
    gold = gold_of(invented(300, documents=50))
    poisoned = dataclasses.replace(gold, test=[Sentence(
        [Word(f"poison{i}", upos="VERB") for i, _ in enumerate(s.words)], document=s.document)
        for s in gold.test])
    protocol = dataclasses.replace(PROTOCOL, control=False, mix=kind == "mix",
                                   probe="mlp" if kind == "mlp" else "linear")
    for parts in (gold, poisoned):
        probed(planted, items_of(parts, "upos"), protocol)
    half = len(fits) // 2
    clean, dirty = ((fits[i][0] if kind == "linear" else fits[i]) for i in (half - 1, -1))
    scalers = [f.scalers[0] if kind == "mix" else f.scaler for f in (clean, dirty)]
    assert np.array_equal(scalers[0].mean, scalers[1].mean)
    assert np.array_equal(scalers[0].scale, scalers[1].scale)
    assert clean.C == dirty.C and clean.valid_accuracy == dirty.valid_accuracy
    weights = [f.layers[0] if kind == "mlp" else f.weights for f in (clean, dirty)]
    assert np.array_equal(*weights)
    # A scaler that saw all parts would be another one, so the check above can fail.
    everything = classifier.Scaler.fit(np.full((50, 10), 1e4))
    assert not np.allclose(everything.mean, scalers[0].mean)


def test_the_penalty_is_chosen_on_the_validation_part(monkeypatch, tmp_path):
    """Another validation part, another penalty: few noisy words against a part that is all noise."""
    rng = np.random.default_rng(0)
    vectors = {f"w{i}": rng.normal(size=40) for i in range(60)}
    planted = Planted(monkeypatch, tmp_path, 1, 40, lambda _, word: vectors[word] + rng.normal(size=40))
    items = invented_items(300)
    wrong = dataclasses.replace(items, labels=[
        "DET" if part == "validation" else label
        for label, part in zip(items.labels, items.parts, strict=True)])
    protocol = Protocol(max_train=150, max_validation=200, max_test=500, control=False)
    first, second = (probed(planted, made, protocol).scores.iloc[0] for made in (items, wrong))
    assert first["C"] != second["C"] and first["valid_accuracy"] != second["valid_accuracy"]


# -- sizes, labels, words without a vector ------------------------------------------------------


def test_sizes_are_bounded(monkeypatch, tmp_path):
    protocol = Protocol(max_train=300, max_validation=100, max_test=200)
    planted = Planted(monkeypatch, tmp_path, 1, 8, by_type(8))
    found = probed(planted, invented_items(), protocol)
    row = found.scores.iloc[0]
    for part, size in protocol.most.items():
        assert size - 8 < row[f"items_{part}"] <= size
        assert row[f"sentences_{part}"] == row[f"items_{part}"] / 8
    assert len(found.answers) == row["items_test"]
    assert len(planted.seen) == sum(row[f"sentences_{part}"] for part in protocol.most)


def test_layers_can_be_chosen(monkeypatch, tmp_path):
    planted = Planted(monkeypatch, tmp_path, 4, 8, by_type(8, 4))
    found = probed(planted, invented_items(200), dataclasses.replace(PROTOCOL, layers=(3, 1, 1)))
    assert found.scores["layer"].tolist() == [1, 3]
    with pytest.raises(BertScopeError, match="no layer 4"):
        probed(planted, invented_items(200), dataclasses.replace(PROTOCOL, layers=(4,)))


def test_the_same_seed_gives_the_same_result(monkeypatch, tmp_path):
    planted = Planted(monkeypatch, tmp_path, 2, 8, by_type(8, 2))
    items = invented_items()
    protocol = dataclasses.replace(PROTOCOL, max_train=800, codelength=True)
    one, two, other = (probed(planted, items, protocol, seed) for seed in (0, 0, 1))
    assert one.scores.equals(two.scores) and one.answers.equals(two.answers)
    assert not one.scores.equals(other.scores)
    assert one.answers["item"].tolist() == other.answers["item"].tolist()


def test_labels_that_training_lacks_are_wrong(monkeypatch, tmp_path):
    items = invented_items()
    changed = dataclasses.replace(items, labels=[
        "INTJ" if label == "DET" and part == "test" else "SYM" if place == items.where["train"][0]
        else label for place, (label, part) in enumerate(zip(items.labels, items.parts, strict=True))])
    found = probed(Planted(monkeypatch, tmp_path, 1, 8, by_type(8)), changed)
    unknown = found.answers["gold"] == "INTJ"
    assert unknown.sum() > 10
    assert (found.answers["layer_0"][unknown] != "INTJ").all()
    assert "INTJ" not in set(found.answers["layer_0"])


def test_words_without_a_vector_are_left_out_and_counted(monkeypatch, tmp_path):
    items = invented_items(200)
    lost = items.types[items.where["test"][0]]
    vector = by_type(8)
    planted = Planted(monkeypatch, tmp_path, 1, 8, lambda layer, word: np.full(8, np.nan)
                      if word == lost else vector(layer, word))
    found = probed(planted, items)
    assert found.scores["without_vector"].iloc[0] == items.types.count(lost) > 5
    assert lost not in set(found.answers["type"])
    assert found.answers["gold"].tolist() == [items.labels[i] for i in found.answers["item"]]


def test_what_cannot_be_learnt_is_refused(monkeypatch, tmp_path):
    items = invented_items(200)
    planted = Planted(monkeypatch, tmp_path, 1, 8, lambda layer, word: np.full(8, np.nan))
    with pytest.raises(BertScopeError, match="No word of the training part"):
        probed(planted, items)
    alike = dataclasses.replace(items, labels=["X"] * len(items))
    planted = Planted(monkeypatch, tmp_path / "other", 1, 8, by_type(8))
    (tmp_path / "other").mkdir()
    with pytest.raises(BertScopeError, match="same label"):
        probed(planted, alike)


@pytest.mark.parametrize("change", [
    {"probe": "forest"}, {"word": "sum"}, {"sentence": "first"}, {"max_train": 0}, {"max_test": -1},
    {"layers": ()}, {"layers": (-1,)}, {"layers": (1,), "mix": True}])
def test_impossible_protocols_are_refused(change):
    with pytest.raises(BertScopeError):
        Protocol(**change)


def test_a_protocol_as_json():
    protocol = Protocol(probe="mlp", layers=(0, 2), hide=True)
    assert Protocol.from_dict(protocol.to_dict()) == protocol
    with pytest.raises(BertScopeError, match="no setting called 'magic'"):
        Protocol.from_dict({"magic": 1})


# -- progress -----------------------------------------------------------------------------------


def test_progress_rises_to_1(monkeypatch, tmp_path):
    seen = []
    probed(Planted(monkeypatch, tmp_path, 2, 8, by_type(8, 2)), invented_items(200),
           dataclasses.replace(PROTOCOL, mix=True), progress=lambda message, share: seen.append(share))
    fits = seen[seen.index(0.0):]
    assert fits == sorted(fits) and fits[-1] == 1 and len(seen) > 20


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.8])
def test_it_can_be_cancelled_anywhere(monkeypatch, tmp_path, fraction):
    class Cancelled(Exception):
        pass

    def cancel(message, share):
        if share >= fraction:
            raise Cancelled

    with pytest.raises(Cancelled):
        probed(Planted(monkeypatch, tmp_path, 2, 8, by_type(8, 2)), invented_items(200),
               progress=cancel)


# -- with a real encoder ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A BERT of three layers with random weights that reads 40 pieces at most."""
    folder = tmp_path_factory.mktemp("tiny")
    tiny_models.save(folder, initializer_range=0.1)
    return activations.load(folder)


@pytest.fixture(scope="module")
def world():
    return gold_of(list(gold_sentences(60, 5)))


@pytest.fixture(scope="module")
def reader(world, tmp_path_factory):
    """A BERT of two layers with random weights that knows miniworld's words as pieces."""
    from transformers import BertConfig, BertForPreTraining

    folder = tmp_path_factory.mktemp("reader")
    tokenizer = train_tokenizer([s.text for s in world.train], 600, True)
    torch.manual_seed(0)
    BertForPreTraining(BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=48)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return activations.load(folder)


def real(tiny, items, folder, **settings):
    protocol = Protocol(**{"max_train": 600, "max_validation": 200, "max_test": 300} | settings)
    store = features.Store(folder / "analysis" / "features", tiny)
    return probe_unit(items, sample(items, protocol.most, 0), store, protocol, 0)


def test_miniworlds_number_through_a_random_encoder(reader, world, tmp_path):
    found = real(reader, items_of(world, "feat:Number"), tmp_path)
    assert found.scores["layer"].tolist() == [0, 1, 2]
    assert (found.scores["accuracy"] > found.scores["majority"]).all()  # word identity is in it
    assert set(found.answers["gold"]) == {"Plur", "Sing"}


@pytest.mark.parametrize("task, kind", [("pair:deprel", "pair"), ("sent:length", "sentence")])
def test_pairs_and_sentences_too(reader, world, tmp_path, task, kind):
    items = items_of(world, task)
    found = real(reader, items, tmp_path)
    assert items.kind == kind and len(found.scores) == 3
    assert (found.scores["length_only"].notna() == (kind == "sentence")).all()
    if task == "sent:length":   # the mean of positions tells it, and the words in it exactly
        assert found.scores["length_only"].iloc[0] > 0.95
        assert found.scores["accuracy"].max() > found.scores["majority"].iloc[0] + 0.1


def test_a_masked_word_tells_nothing_at_layer_0(reader, world, tmp_path):
    """There it is the mask's embedding and the position."""
    items = items_of(world, "upos")
    found, shown = real(reader, hide(items, 0), tmp_path), real(reader, items, tmp_path)
    assert by_layer(found)[0] < 0.6 < by_layer(shown)[0]


def test_awkward_sentences_of_a_treebank(tiny, tmp_path):
    """Multi-word tokens, empty nodes, missing columns, a sentence longer than the model reads, a word
    of thirty pieces, one without any, a label that training has once and one that only test has."""
    rows = ["1-2\tcan't\t_\t_\t_\t_\t_\t_\t_\t_", "1\tca\t_\tAUX\t_\t_\t_\t_\t_\t_",
            "2\tnot\t_\tPART\t_\t_\t_\t_\t_\t_", "2.1\tgo\t_\tVERB\t_\t_\t_\t_\t_\t_",
            f"3\t{'x' * 30}\t_\tX\t_\t_\t_\t_\t_\t_", "4\t\u200b\t_\tSYM\t_\t_\t_\t_\t_\t_",
            "5\tdog\t_\t_\t_\t_\t_\t_\t_\t_"]
    path = tmp_path / "awkward.conllu"
    path.write_text("\n".join(rows) + "\n\n", "utf-8")
    awkward, = read_conllu(path)
    assert [word.form for word in awkward.words] == ["ca", "not", "x" * 30, "\u200b", "dog"]
    long = sentence(" ".join(["mat"] * 60), "long", " ".join(["NOUN", "VERB"] * 30))
    plain = [sentence(f"the {w} walked .", f"d{i}", "DET NOUN VERB PUNCT")
             for i, w in enumerate(["cat", "dog", "house", "united", "states"] * 6)]
    gold = dataclasses.replace(gold_of(plain))
    gold = dataclasses.replace(gold, train=[*gold.train, dataclasses.replace(awkward, document="a"), long],
                               test=[*gold.test, sentence("america sat on", "z", "PROPN VERB INTJ")])
    items = items_of(gold, "upos")
    assert "dog" not in [items.types[i] for i in items.where["train"] if items.sentence[i]
                         == len(gold.train) - 2]                       # it has no label
    found = real(tiny, items, tmp_path, max_train=10_000, max_validation=1000, max_test=1000)
    row = found.scores.iloc[0]
    assert row["without_vector"] == 1 + 60 - (tiny.max_length - 2) and row["sentences_cut"] == 1
    assert row["items_train"] == len(items.where["train"]) - row["without_vector"]
    assert set(found.answers["gold"]) - set(found.answers["layer_0"]) >= {"INTJ"}
    last = found.answers.tail(3)
    assert last["type"].tolist() == ["america", "sat", "on"] and not last["seen"].any()


@pytest.mark.skipif(not EWT.is_dir(), reason=f"{EWT} is not there")
def test_a_random_encoder_on_ewt(tiny, tmp_path):
    """EWT has multi-word tokens, 17 labels of which some are rare, and long sentences."""
    file = next(EWT.glob("*test*.conllu"))
    items = items_of(gold_of(list(itertools.islice(read_conllu(file), 500))), "upos")
    found = real(tiny, items, tmp_path, max_train=1500)
    assert (found.scores["accuracy"] > found.scores["majority"]).all()
    assert found.scores["without_vector"].iloc[0] > 20 and found.scores["sentences_cut"].iloc[0] > 2


def test_fitted_layer_by_layer_or_together_is_the_same(monkeypatch, tmp_path):
    planted = Planted(monkeypatch, tmp_path, 3, 8, by_type(8, 3))
    items = invented_items(200)
    together = probed(planted, items)
    monkeypatch.setattr(unit, "TOGETHER", {"cpu": 0, "cuda": 0})
    alone = probed(planted, items)
    assert together.scores["accuracy"].tolist() == pytest.approx(alone.scores["accuracy"], abs=0.005)
