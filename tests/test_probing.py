"""Probing: tasks, splits that do not leak, classifier, baselines, intervals, the whole probe."""

import dataclasses
import json
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bertscope.analysis import activations, probing
from bertscope.analysis.probing import ProbeConfig, available_tasks, data, probe
from bertscope.analysis.probing import baselines, classifier, metrics, splits
from bertscope.analysis.probing.gold import MINIWORLD_SEED
from bertscope.analysis.probing.tasks import labeller, title
from bertscope.analysis.probing.untrained import with_random_weights
from bertscope.corpus.conllu import Sentence, Word, write_conllu
from bertscope.errors import BertScopeError

EWT = Path(__file__).resolve().parents[2] / "shared" / "data" / "ud_english_ewt"
CHINESE = EWT.with_name("ud_chinese_gsdsimp")
needs_ewt = pytest.mark.skipif(not EWT.is_dir(), reason=f"{EWT} is not there")


@pytest.fixture(scope="module")
def ewt():
    return data(EWT)


# -- made-up annotation -------------------------------------------------------------------------


def sentence(words: str, document="", labels: str = "") -> Sentence:
    """``"the boats"`` with UPOS ``"DET NOUN"``; without labels every word is an X."""
    forms = words.split()
    tags = labels.split() or ["X"] * len(forms)
    return Sentence([Word(form, upos=tag) for form, tag in zip(forms, tags, strict=True)],
                    document=document)


def invented(count: int, seed=0, documents=20, types=60, length=8) -> list[Sentence]:
    """Random sentences: each word type has a favourite label that it takes three times of four."""
    rng = random.Random(seed)
    tags = ["NOUN", "VERB", "ADJ", "DET"]
    favourite = {f"w{i}": tags[min(3, i % 5)] for i in range(types)}
    made = []
    for number in range(count):
        forms = [rng.choice(list(favourite)) for _ in range(length)]
        labels = [favourite[f] if rng.random() < 0.75 else rng.choice(tags) for f in forms]
        made.append(sentence(" ".join(forms), f"d{number * documents // count}", " ".join(labels)))
    return made


class Planted:
    """Stands in for the encoder: ``vector(layer, word)`` says what each layer holds."""

    def __init__(self, monkeypatch, layers, size, vector):
        self.vector, self.seen = vector, []
        self.model = SimpleNamespace(path="planted", fingerprint="planted", num_layers=layers - 1,
                                     hidden_size=size)
        monkeypatch.setattr(activations, "word_states", self.word_states)
        self.layers = layers

    def word_states(self, model, sentences, pooling="mean", progress=None):
        self.seen += [" ".join(words) for words in sentences]
        places = [(s, w) for s, words in enumerate(sentences) for w in range(len(words))]
        states = np.array([[self.vector(layer, sentences[s][w]) for s, w in places]
                           for layer in range(self.layers)], np.float32)
        return states, (np.array([s for s, _ in places]), np.array([w for _, w in places]))


# -- tasks --------------------------------------------------------------------------------------


def test_labels_are_read_from_columns_and_features():
    word = Word("boats", "boat", "NOUN", "NNS", {"Number": "Plur"}, 2, "nsubj")
    assert [labeller(t)(word) for t in ("upos", "xpos", "deprel", "feat:Number")] == [
        "NOUN", "NNS", "nsubj", "Plur"]
    assert labeller("feat:Number@NOUN")(word) == "Plur"
    assert labeller("feat:Number@VERB")(word) == labeller("feat:Tense")(word) == ""


@pytest.mark.parametrize("task", ["", "pos", "lemma", "feat:", "feat:Number@", "upos "])
def test_an_unknown_task_is_refused(task):
    with pytest.raises(BertScopeError, match="no task called"):
        ProbeConfig(task=task)


@pytest.mark.parametrize("change", [{"max_train": 0}, {"max_test": -1}, {"seed": -1}])
def test_impossible_sizes_are_refused(change):
    with pytest.raises(BertScopeError):
        ProbeConfig(**change)


def test_available_tasks_are_those_with_two_frequent_labels():
    nouns = [Word("a", upos="NOUN", feats={"Number": number, "Case": "Nom"}) for number in
             ["Sing"] * 12 + ["Plur"] * 11]
    verbs = [Word("b", upos="VERB", feats={"Number": "Sing", "Tense": tense}) for tense in
             ["Past"] * 30 + ["Pres"] * 9]
    found = {t.name: t for t in available_tasks([Sentence(nouns + verbs)])}
    assert list(found) == ["upos", "feat:Number"]  # Number is mostly on verbs, with one value
    assert (found["feat:Number"].classes, found["feat:Number"].words) == (2, 62)
    assert "feat:Tense" in {t.name for t in available_tasks([Sentence(nouns + verbs)], enough=9)}
    assert available_tasks([]) == []


def test_titles_are_for_people():
    assert title("upos") == "Part of speech (UPOS)"
    assert title("feat:Number@NOUN") == "Number of nouns"


# -- splits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("documents", [3, 7, 100])
def test_no_document_and_no_sentence_is_in_two_parts(seed, documents):
    made = invented(300, seed, documents, types=8, length=3)  # so short that many occur twice
    parts = splits.split_by_document(made, seed)
    names = [{s.document for s in part} for part in parts]
    texts = [{splits.forms(s) for s in part} for part in parts]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert not names[a] & names[b] and not texts[a] & texts[b]
    assert splits.split_by_document(made, seed) == parts


def test_shares_are_about_80_10_10():
    parts = splits.split_by_document(invented(1000, documents=100))
    assert [round(len(part) / 1000, 1) for part in parts] == [0.8, 0.1, 0.1]


def test_a_giant_document_is_for_training():
    made = [sentence(f"a b{i}", "giant") for i in range(500)]
    made += [sentence(f"c d{i}", f"small {i // 5}") for i in range(100)]
    for seed in range(10):
        train, valid, test = splits.split_by_document(made, seed)
        assert sum(s.document == "giant" for s in train) == 500 and valid and test


def test_documents_too_uneven_give_way_to_blocks():
    made = [sentence(f"a b{i}", "giant") for i in range(500)]
    made += [sentence(f"c d{i}", f"small {i}") for i in range(2)]
    assert [len(part) for part in splits.split_by_document(made)] == pytest.approx(
        [402, 50, 50], abs=15)


@pytest.mark.parametrize("document", ["", "the only one"])
def test_without_documents_consecutive_blocks_are_dealt_out(document):
    made = [sentence(f"word{i} x", document) for i in range(400)]
    train, valid, test = splits.split_by_document(made, 1)
    assert (len(train), len(valid), len(test)) == (320, 40, 40)
    places = [int(s.words[0].form[4:]) for s in test]
    assert sum(b - a != 1 for a, b in zip(places, places[1:])) <= 3  # blocks of ten


def test_too_little_to_split_is_refused():
    for made in ([], [sentence("a b")], [sentence("a b", f"d{i}") for i in range(50)]):
        with pytest.raises(BertScopeError, match="too few different sentences"):
            splits.split_by_document(made)
    assert all(splits.split_by_document([sentence(f"a{i}") for i in range(3)]))


def test_samples_are_whole_sentences_nested_and_bounded():
    counts = [random.Random(0).randrange(6) for _ in range(200)]
    small, large = (splits.sample_sentences(counts, most, 3) for most in (50, 200))
    assert set(small) < set(large) and small == sorted(small)
    assert 45 <= sum(counts[i] for i in small) <= 50
    assert all(counts[i] for i in large)
    assert splits.sample_sentences([0, 9, 0], 5, 0) == [1]  # one sentence at least
    assert splits.sample_sentences([0, 0], 5, 0) == []


# -- where gold comes from ----------------------------------------------------------------------


def test_miniworld_gold_is_of_no_training_document():
    gold = data("miniworld")
    prefixes = {s.document.rsplit("-", 1)[0] for s in gold.sentences}
    assert prefixes == {f"miniworld-{MINIWORLD_SEED}"}
    assert min(len(gold.train), len(gold.valid), len(gold.test)) > 100
    names = {t.name for t in available_tasks(gold.sentences)}
    assert {"upos", "deprel", "feat:Number", "feat:Tense"} <= names
    assert gold.fingerprint == data("miniworld").fingerprint != data("miniworld", 1).fingerprint


@pytest.fixture
def treebank(tmp_path):
    """x-ud-train, x-ud-dev and x-ud-test.conllu."""
    folder = tmp_path / "UD_X"
    folder.mkdir()
    for name, seed in (("train", 0), ("dev", 1), ("test", 2)):
        write_conllu(invented(50, seed), folder / f"x-ud-{name}.conllu")
    return folder


def test_given_parts_are_used_as_they_are(treebank):
    from bertscope.corpus.conllu import read_conllu

    for source in (treebank, str(treebank), treebank / "x-ud-dev.conllu"):
        gold = data(source)
        assert gold.name == "UD_X" and "as they are" in gold.note
        for part, name in ((gold.train, "train"), (gold.valid, "dev"), (gold.test, "test")):
            assert part == list(read_conllu(treebank / f"x-ud-{name}.conllu"))


def test_a_missing_part_is_made_from_the_first(treebank):
    (treebank / "x-ud-train.conllu").unlink()
    gold = data(treebank)
    assert len(gold.test) == 50 and len(gold.train) + len(gold.valid) == 50
    assert not {s.document for s in gold.train} & {s.document for s in gold.valid}
    (treebank / "x-ud-dev.conllu").unlink()
    gold = data(treebank / "x-ud-test.conllu")
    assert len(gold.train) + len(gold.valid) + len(gold.test) == 50


def test_files_of_no_part_are_put_together(treebank):
    for path in list(treebank.iterdir()):
        path.rename(path.with_name(path.name.replace("-ud-", "").replace("test", "contest")
                                   .replace("train", "trainer").replace("dev", "device")))
    gold = data(treebank)
    assert sum(map(len, (gold.train, gold.valid, gold.test))) == 150


def test_a_wrong_source_is_refused_in_a_sentence(tmp_path, treebank):
    def refuses(source, match):
        with pytest.raises(BertScopeError, match=match) as caught:
            data(source)
        assert "\n" not in str(caught.value)

    refuses(tmp_path / "missing", "no gold annotation called")
    refuses(tmp_path, "no .conllu file")
    (tmp_path / "prose.conllu").write_text("It was a dark and stormy night.\n")
    refuses(tmp_path / "prose.conllu", "line 1")
    (tmp_path / "empty.conllu").write_text("\n")
    refuses(tmp_path / "empty.conllu", "no sentence")
    write_conllu([sentence("a b")], tmp_path / "one.conllu")
    refuses(tmp_path / "one.conllu", "too few")
    write_conllu(invented(9), treebank / "y-ud-test.conllu")
    refuses(treebank, "several files for one part")
    assert len(data(treebank / "x-ud-test.conllu").test) == 50  # naming one says which


# -- metrics ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_macro_f1_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 7, 200)
    predicted = np.where(rng.random(200) < 0.5, gold, rng.integers(2, 9, 200))
    assert metrics.macro_f1(gold, predicted) == pytest.approx(
        f1_score(gold, predicted, average="macro"), abs=1e-12)
    assert metrics.accuracy(gold, predicted) == np.mean(gold == predicted)


def test_with_one_word_a_sentence_the_bootstrap_is_binomial():
    correct = np.arange(400) < 300
    draws = metrics.bootstrap(correct, np.arange(400), seed=1, resamples=20_000)
    assert draws.mean() == pytest.approx(0.75, abs=1e-3)
    assert draws.std() == pytest.approx(np.sqrt(0.75 * 0.25 / 400), rel=0.02)
    low, high = metrics.interval(draws)
    assert (low, high) == pytest.approx(
        (binom.ppf(0.025, 400, 0.75) / 400, binom.ppf(0.975, 400, 0.75) / 400), abs=0.004)


def test_copies_of_a_word_in_its_sentence_are_no_new_evidence():
    one = metrics.bootstrap(np.arange(100) < 70, np.arange(100), resamples=5000).std()
    nine = metrics.bootstrap(np.repeat(np.arange(100) < 70, 9), np.repeat(np.arange(100), 9),
                             resamples=5000).std()
    assert nine == pytest.approx(one, rel=1e-9)


def test_layers_are_resampled_together():
    correct = np.random.default_rng(0).random((3, 50)) < 0.8
    sentences = np.repeat([5, 3, 9, 70, 1], 10)  # numbers with gaps, in any order
    draws = metrics.bootstrap(correct, sentences, seed=4)
    assert draws.shape == (3, metrics.RESAMPLES)
    assert np.array_equal(draws[1], metrics.bootstrap(correct[1], sentences, seed=4))


# -- baselines ----------------------------------------------------------------------------------


def test_type_baseline_on_a_case_done_by_hand():
    forms = ["the", "The", "run", "run", "run", "dog", "dog", "cat"]
    labels = ["D", "D", "N", "V", "V", "N", "V", "N"]
    # N, V are both three times; "dog" is a tie of N and V, which N wins by the alphabet.
    assert baselines.majority_label(labels) == "N"
    assert baselines.type_predictions(forms, labels, ["THE", "run", "dog", "cat", "new"]) == [
        "D", "V", "N", "N", "N"]


@needs_ewt
def test_baselines_of_ewt(ewt):
    """0.862 and 0.164 are known values for UPOS on the test part."""
    gold = ewt
    assert (len(gold.train), len(gold.valid), len(gold.test)) == (12544, 2001, 2077)
    train, test = ([w for s in part for w in s.words] for part in (gold.train, gold.test))
    labels = np.array([w.upos for w in test])
    majority = baselines.majority_label([w.upos for w in train])
    predicted = baselines.type_predictions([w.form for w in train], [w.upos for w in train],
                                           [w.form for w in test])
    assert np.mean(labels == majority) == pytest.approx(0.164, abs=5e-4)
    assert np.mean(labels == np.array(predicted)) == pytest.approx(0.862, abs=5e-4)
    found = {t.name: t for t in available_tasks(gold.sentences)}
    assert [found[name].classes for name in ("upos", "xpos", "deprel")] == [17, 49, 51]


# -- the classifier -----------------------------------------------------------------------------


def noisy(words=900, size=12, classes=4, seed=0):
    """Features whose scale differs a thousandfold, labels that are linear in them but for noise."""
    rng = np.random.default_rng(seed)
    clean = rng.normal(size=(words, size))
    scores = clean @ rng.normal(size=(size, classes)) + rng.gumbel(size=(words, classes))
    labels = scores.argmax(1)
    features = (clean * 10.0 ** rng.uniform(-2, 2, size) + rng.normal(size=size) * 5)
    return features.astype(np.float32), labels


@pytest.mark.parametrize("classes", [2, 4])
def test_it_equals_scikit_learn_with_the_penalty_that_it_chose(classes):
    x, y = noisy(classes=classes)
    fitted = classifier.fit(x[:500], y[:500], x[500:700], y[500:700])
    peers = {C: make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=2000, tol=1e-6))
             .fit(x[:500].astype(float), y[:500]) for C in classifier.STRENGTHS}
    best = max(peer.score(x[500:700], y[500:700]) for peer in peers.values())
    assert abs(fitted.valid_accuracy - best) <= 0.005
    assert np.mean(fitted.predict(x[700:]) == peers[fitted.C].predict(x[700:])) >= 0.99
    assert fitted.converged and fitted.C in classifier.STRENGTHS


def test_the_solution_is_stationary():
    """At the minimum C * sum of cross-entropies + |W|^2 / 2 has gradient zero."""
    x, y = noisy()
    fitted = classifier.fit(x, y, x, y, strengths=[0.1])
    z = fitted.scaler.transform(x).astype(float)
    scores = z @ fitted.weights.T + fitted.intercept
    p = np.exp(scores - scores.max(1, keepdims=True))
    error = p / p.sum(1, keepdims=True) - np.eye(4)[y]
    gradient = 0.1 * error.T @ z + fitted.weights
    assert np.abs(gradient).max() / (0.1 * len(x)) < 3 * classifier.TOLERANCE
    assert np.abs(error.sum(0)).max() / len(x) < 3 * classifier.TOLERANCE


def test_features_that_never_vary_do_no_harm():
    x, y = noisy()
    padded = np.concatenate([x, np.full((len(x), 2), 1e4), np.zeros((len(x), 1))], axis=1)
    plain, with_constants = (classifier.fit(f[:600], y[:600], f[600:], y[600:])
                             for f in (x, padded.astype(np.float32)))
    assert with_constants.valid_accuracy == plain.valid_accuracy
    assert np.isfinite(with_constants.weights).all()


def test_the_scaler_gives_mean_zero_and_variance_one():
    x, _ = noisy()
    z = classifier.Scaler.fit(x).transform(x)
    assert np.allclose(z.mean(0), 0, atol=1e-3) and np.allclose(z.std(0), 1, atol=1e-3)


def test_word_identity_alone_gives_the_most_frequent_label_of_each_known_word():
    made = [w for s in invented(600) for w in s.words]
    train, test = made[:4000], made[4000:]
    types, tags = sorted({w.form for w in train}), sorted({w.upos for w in train})

    def one_hot(words):
        return (np.array([[w.form == t for t in types] for w in words], np.float32),
                np.array([tags.index(w.upos) for w in words]))

    fitted = classifier.fit(*one_hot(train), *one_hot(train), strengths=[10.0])
    predicted = [tags[i] for i in fitted.predict(one_hot(test)[0])]
    assert predicted == baselines.type_predictions(
        [w.form for w in train], [w.upos for w in train], [w.form for w in test])


def test_noise_and_shuffled_labels_give_the_majority():
    x, y = noisy(words=3000, size=20, classes=3)
    skewed = np.where(y == 2, 2, np.where(np.arange(3000) % 5 == 0, 1, 0))
    np.random.default_rng(0).shuffle(skewed)
    fitted = classifier.fit(x[:1500], skewed[:1500], x[1500:2000], skewed[1500:2000])
    majority = np.mean(skewed[2000:] == np.bincount(skewed[:1500]).argmax())
    assert np.mean(fitted.predict(x[2000:]) == skewed[2000:]) == pytest.approx(majority, abs=0.03)


def test_validation_labels_unknown_to_training_count_as_wrong():
    x, y = noisy(classes=2)
    valid = np.where(np.arange(200) < 50, 7, y[600:800])
    fitted = classifier.fit(x[:600], y[:600], x[600:800], valid)
    assert fitted.valid_accuracy == np.mean(fitted.predict(x[600:800]) == valid) <= 0.75


# -- the whole probe ----------------------------------------------------------------------------

CONFIG = ProbeConfig(max_train=2000, max_valid=500, max_test=1000, random_init=False)


def parts(seed=0):
    return splits.split_by_document(invented(500, seed, documents=50))


def test_planted_layers_score_as_they_must(monkeypatch):
    """Layer 0 holds word identity, layer 1 the label, layer 2 noise."""
    train, valid, test = parts()
    types = sorted({w.form for part in (train, valid, test) for s in part for w in s.words})
    rng = np.random.default_rng(0)

    def vector(layer, form):
        made = np.zeros(61)
        if layer == 2:
            return rng.normal(size=61)
        made[types.index(form.split("|")[0])] = 1.0
        return made if layer == 0 else np.roll(made, 1)

    planted = Planted(monkeypatch, 3, 61, vector)
    result = probe(planted.model, train, valid, test, CONFIG)
    words = [w for i in sorted({*result.words["sentence"]}) for w in test[i].words]
    assert result.words["form"].tolist() == [w.form for w in words]
    assert result.words["label"].tolist() == [w.upos for w in words]
    identity, _, noise = result.layers["accuracy"]
    assert identity == pytest.approx(result.type_baseline, abs=0.01)
    assert noise == pytest.approx(result.majority, abs=0.05)
    assert result.majority < 0.5 < 0.7 < result.type_baseline < 0.9


def test_a_layer_that_holds_the_label_scores_100_percent(monkeypatch):
    """The label is written into each form, so that the stand-in can see it."""
    train, valid, test = ([Sentence([dataclasses.replace(w, form=f"{w.form}|{w.upos}")
                                     for w in s.words], document=s.document) for s in part]
                          for part in parts())
    tags = ["ADJ", "DET", "NOUN", "VERB"]

    def vector(layer, form):
        noise = np.array([len(form), ord(form[1]), 3.0])
        return np.append(noise, [form.endswith(t) for t in tags]) * 1.0

    result = probe(Planted(monkeypatch, 1, 7, vector).model, train, valid, test, CONFIG)
    row = result.layers.iloc[0]
    assert (row.accuracy, row.low, row.high, row.macro_f1) == (1, 1, 1, 1)
    assert (result.words["layer_0"] == result.words["label"]).all()


def test_the_test_part_touches_neither_the_scaler_nor_the_penalty(monkeypatch):
    """The same training and validation parts with a poisoned test part: vectors and labels."""
    train, valid, test = parts()
    fits = []
    original = classifier.fit
    monkeypatch.setattr(classifier, "fit",
                        lambda *a, **k: fits.append(original(*a, **k)) or fits[-1])
    rng = np.random.default_rng(0)
    vectors = {f"w{i}": rng.normal(size=10) for i in range(60)}

    def vector(layer, form):
        return np.full(10, 1e4) if form.startswith("poison") else vectors[form]

    poisoned = [Sentence([Word(f"poison{i}", upos="VERB") for i, _ in enumerate(s.words)],
                         document=s.document) for s in test]
    planted = Planted(monkeypatch, 1, 10, vector)
    for part in (test, poisoned):
        probe(planted.model, train, valid, part, CONFIG)
    clean, dirty = fits
    assert np.array_equal(clean.scaler.mean, dirty.scaler.mean)
    assert np.array_equal(clean.scaler.scale, dirty.scaler.scale)
    assert clean.C == dirty.C and np.array_equal(clean.weights, dirty.weights)
    # A scaler that saw all parts would be another one, so the check above can fail.
    everything = classifier.Scaler.fit(np.array([vector(0, f"poison{i}") for i in range(50)]))
    assert not np.allclose(everything.mean, clean.scaler.mean)


def simple(monkeypatch, layers=2):
    rng = np.random.default_rng(0)
    vectors = {f"w{i}": rng.normal(size=(layers, 8)) for i in range(60)}
    return Planted(monkeypatch, layers, 8, lambda layer, form: vectors[form][layer])


def test_sizes_are_bounded_and_each_sentence_is_read_once(monkeypatch):
    planted = simple(monkeypatch)
    train, valid, test = parts()
    result = probe(planted.model, train, valid, test,
                   dataclasses.replace(CONFIG, max_train=300, max_valid=100, max_test=200))
    assert 290 < result.n_train <= 300 and 90 < result.n_valid <= 100 and 190 < result.n_test <= 200
    assert len(planted.seen) == sum(result.meta["sentences"].values()) == 37 + 12 + 25


def test_the_same_seed_gives_the_same_result(monkeypatch):
    planted = simple(monkeypatch)
    one, two, other = (probe(planted.model, *parts(), dataclasses.replace(CONFIG, seed=seed))
                       for seed in (0, 0, 1))
    assert one.to_json() == two.to_json() != other.to_json()


def test_labels_that_training_lacks_are_wrong_and_reported(monkeypatch):
    planted = simple(monkeypatch)
    train, valid, test = parts()
    test = [Sentence([dataclasses.replace(w, upos="INTJ") if w.upos == "DET" else w
                      for w in s.words], document=s.document) for s in test]
    result = probe(planted.model, train, valid, test, CONFIG)
    count = (result.words["label"] == "INTJ").sum()
    assert result.meta["labels_only_in_test"] == {"INTJ": count} and count > 10
    assert "INTJ" not in result.labels
    wrong = result.words[result.words["label"] == "INTJ"]
    assert (wrong["layer_0"] != "INTJ").all()


def test_the_result_as_a_table_and_as_json(monkeypatch):
    result = probe(simple(monkeypatch).model, *parts(), CONFIG)
    table = result.to_frame()
    assert table[["weights", "layer"]].values.tolist() == [["trained", 0], ["trained", 1]]
    assert {"accuracy", "low", "high", "macro_f1", "C", "converged", "majority", "type_baseline",
            "n_train", "n_test", "seed", "task", "title"} <= set(table.columns)
    assert (table["low"] <= table["accuracy"]).all() and (table["accuracy"] <= table["high"]).all()
    record = json.loads(result.to_json())
    assert record["config"] == dataclasses.asdict(CONFIG)
    assert record["checkpoint"]["fingerprint"] == "planted" and record["data"]
    assert set(record["versions"]) == {"numpy", "scikit-learn", "torch", "transformers",
                                       "bertscope"}
    assert record["rows"][1]["accuracy"] == table["accuracy"][1]


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.7])
def test_progress_rises_and_may_cancel(monkeypatch, fraction):
    class Cancelled(Exception):
        pass

    seen = []

    def progress(message, done):
        seen.append(done)
        if done >= fraction:
            raise Cancelled

    with pytest.raises(Cancelled):
        probe(simple(monkeypatch).model, *parts(), CONFIG, progress)
    assert seen == sorted(seen) and len([d for d in seen if d >= fraction]) == 1


def test_progress_goes_from_0_to_1(monkeypatch):
    seen = []
    probe(simple(monkeypatch).model, *parts(), CONFIG, lambda message, done: seen.append(done))
    assert seen[0] == 0 and seen[-1] == 1 and seen == sorted(seen) and len(seen) > 10


def test_a_task_without_words_or_with_one_label_is_refused(monkeypatch):
    planted = simple(monkeypatch)
    train, valid, test = parts()
    with pytest.raises(BertScopeError, match="training part has a label"):
        probe(planted.model, train, valid, test, dataclasses.replace(CONFIG, task="feat:Tense"))
    with pytest.raises(BertScopeError, match="test part has a label"):
        probe(planted.model, train, valid, [], CONFIG)
    alike = [Sentence([dataclasses.replace(w, upos="X") for w in s.words]) for s in train]
    with pytest.raises(BertScopeError, match="same label"):
        probe(planted.model, alike, valid, test, CONFIG)


def test_the_key_of_a_result_changes_with_all_that_decides_it(monkeypatch):
    model = simple(monkeypatch).model
    gold = probing.Gold(*parts(), "made up")
    key = probing.result_key(model, gold, CONFIG, step=4)
    assert json.loads(json.dumps(key)) == key and key["step"] == 4
    others = [
        probing.result_key(SimpleNamespace(fingerprint="other"), gold, CONFIG, step=4),
        probing.result_key(model, probing.Gold(*parts(1), "made up"), CONFIG, step=4),
        probing.result_key(model, gold, dataclasses.replace(CONFIG, task="xpos"), step=4)]
    assert key not in others and len({json.dumps(k) for k in others}) == 3


# -- with a real encoder ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A BERT of two layers with random weights that reads 24 pieces at most."""
    from transformers import BertConfig, BertForPreTraining

    from bertscope.corpus.tokenizer import train_tokenizer

    folder = tmp_path_factory.mktemp("tiny")
    gold = data("miniworld")
    tokenizer = train_tokenizer([s.text for s in gold.train], 600, True)
    torch.manual_seed(0)
    BertForPreTraining(BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=24)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return activations.load(folder)


def test_a_random_encoder_on_miniworld(tiny):
    gold = data("miniworld")
    config = ProbeConfig(task="feat:Number", max_train=1500, max_valid=400, max_test=800)
    before = torch.random.get_rng_state()
    result = probe(tiny, gold.train, gold.valid, gold.test, config)
    assert torch.equal(before, torch.random.get_rng_state())
    assert result.layers["layer"].tolist() == result.random_layers["layer"].tolist() == [0, 1, 2]
    assert (result.layers["accuracy"] > result.majority).all()  # word identity is in it
    assert result.labels == ["Plur", "Sing"] and result.type_baseline > 0.9
    assert result.to_frame()["weights"].value_counts().to_dict() == {"trained": 3, "random": 3}
    # Both sets of weights are random, so their curves agree as far as chance goes.
    assert result.layers["accuracy"].mean() == pytest.approx(
        result.random_layers["accuracy"].mean(), abs=0.1)


def test_random_weights_are_of_the_same_architecture_and_follow_the_seed(tiny):
    one, two, other = (with_random_weights(tiny, seed) for seed in (1, 1, 2))
    states = [activations.word_states(m, [["the", "boat"]])[0] for m in (one, two, other, tiny)]
    assert np.array_equal(states[0], states[1])
    assert not np.allclose(states[0], states[2]) and not np.allclose(states[0], states[3])
    assert [p.shape for p in one.model.parameters()] == [p.shape for p in tiny.model.parameters()]
    weights = torch.cat([p.flatten() for name, p in one.model.named_parameters()
                         if "query.weight" in name])
    assert weights.std() == pytest.approx(tiny.model.config.initializer_range, rel=0.1)
    assert not one.model.training


def test_words_without_a_vector_are_left_out_and_counted(tiny):
    """Beyond 24 pieces, or of a character that is no piece."""
    long = sentence(" ".join(["boat"] * 60), "long", " ".join(["NOUN", "VERB"] * 30))
    strange = sentence("the \u200b boat", "strange", "DET X NOUN")
    ordinary = [sentence(f"the boat was {w}", f"d{i}", "DET NOUN AUX ADJ")
                for i, w in enumerate(["dry", "wet", "old", "cold"] * 5)]
    result = probe(tiny, ordinary + [long, strange], ordinary, ordinary,
                   dataclasses.replace(CONFIG, max_valid=80, max_test=80))
    assert result.n_train == 80 + 22 + 2
    assert result.meta["words_without_vector"] == {"train": 38 + 1, "valid": 0, "test": 0}
    assert result.n_test == 80


@needs_ewt
def test_a_random_encoder_on_ewt(tiny, ewt):
    """EWT has multi-word tokens, 17 labels of which some are rare, and long sentences."""
    gold = ewt
    result = probe(tiny, gold.train, gold.valid, gold.test,
                   ProbeConfig(max_train=1500, max_valid=400, max_test=800, random_init=False))
    assert result.majority < result.layers["accuracy"].min()
    dropped = result.meta["words_without_vector"]["train"]
    assert 1400 < result.n_train + dropped <= 1500 and dropped > 100  # 24 pieces are few
    low, accuracy, high = (result.layers[c] for c in ("low", "accuracy", "high"))
    assert (low < accuracy).all() and (accuracy < high).all() and (high - low < 0.15).all()


@pytest.mark.skipif(not CHINESE.is_dir(), reason=f"{CHINESE} is not there")
def test_a_folder_with_dev_and_test_only():
    gold = data(CHINESE)
    assert len(gold.test) == 500 and len(gold.train) + len(gold.valid) == 500
    assert "test part" in gold.note


def test_masked_words_are_hidden_and_only_they_are_probed(tiny, monkeypatch):
    seen = []
    original = activations.word_states
    monkeypatch.setattr(activations, "word_states",
                        lambda model, texts, **k: seen.extend(texts) or original(model, texts, **k))
    gold = data("miniworld")
    result = probe(tiny, gold.train, gold.valid, gold.test, ProbeConfig(
        masked=True, max_train=1500, max_valid=200, max_test=400, random_init=False))
    hidden = sum(text.count("[MASK]") for text in seen)
    assert result.n_train + result.n_valid + result.n_test == hidden
    assert 0.1 < hidden / sum(map(len, seen)) < 0.2
    shown = {tuple(text) for text in seen}
    for number, rows in result.words.groupby("sentence"):
        text = [w.form for w in gold.test[number].words]
        assert [text[place] for place in rows["word"]] == rows["form"].tolist()
        for place in rows["word"]:
            text[place] = "[MASK]"
        assert tuple(text) in shown  # these and no others are hidden
    # Layer 0 of a masked word is the mask's embedding and the position: less than the word tells.
    assert result.layers["accuracy"][0] < 0.6 < result.type_baseline


def test_a_model_without_a_mask_token_cannot_hide_words(tiny):
    model = dataclasses.replace(tiny, tokenizer=SimpleNamespace(mask_token=None))
    with pytest.raises(BertScopeError, match="no mask token"):
        probe(model, *parts(), dataclasses.replace(CONFIG, masked=True))
