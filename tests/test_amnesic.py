"""Erasing what a probe reads, and what that does to the model: closed forms, scikit-learn, the model's
own layers run by hand."""

import dataclasses

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from sklearn.linear_model import LogisticRegression

from bertscope.analysis import activations
from bertscope.analysis.head_ablation import held_out_loss
from bertscope.analysis.mlm_head import mlm_logits
from bertscope.analysis.probing import data
from bertscope.analysis.probing.amnesic import AmnesicConfig, amnesic
from bertscope.analysis.probing.amnesic_data import read, states
from bertscope.analysis.probing.erased_model import with_erased
from bertscope.analysis.probing.erasing import Eraser, inlp, leace
from bertscope.analysis.probing.gold import Gold
from bertscope.analysis.probing.items import Items
from bertscope.analysis.probing.tasks import items
from bertscope.corpus.conllu import Sentence, Word
from bertscope.errors import BertScopeError

torch.set_num_threads(1)


def labelled(n=3000, size=12, classes=3, seed=0):
    """Correlated features of unequal scale, the labels linear in them but for noise."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(classes, n, p=[0.5, 0.3, 0.2][:classes] if classes == 3 else None)
    means = rng.normal(size=(classes, size)) * 2
    features = (means[labels] + rng.normal(size=(n, size))) @ rng.normal(size=(size, size))
    return (features * 10.0 ** rng.uniform(-1, 1, size) + 5).astype(np.float32), labels


# -- erasers --------------------------------------------------------------------------------------


def test_after_leace_no_linear_classifier_beats_the_constant_answer():
    """scikit-learn, without a penalty, on the very data: the majority, and its cross-entropy."""
    x, y = labelled()
    eraser = leace(x, y)
    before, left = ((v - v.mean(0)) / v.std(0) for v in (x.astype(float), eraser(x).astype(float)))
    assert LogisticRegression(C=1e6, max_iter=500).fit(before, y).score(before, y) > 0.9
    probe = LogisticRegression(C=1e6, max_iter=500).fit(left, y)
    shares = np.bincount(y) / len(y)
    assert probe.score(left, y) == pytest.approx(shares.max(), abs=1e-3)
    loss = -np.mean(probe.predict_log_proba(left)[np.arange(len(y)), y])
    assert loss == pytest.approx(-(shares * np.log(shares)).sum(), abs=1e-4)
    assert eraser.rank == 2


def test_leace_makes_all_labels_means_equal_and_changes_no_more_than_it_must():
    x, y = labelled()
    eraser = leace(x, y)
    left = eraser(x).astype(float)
    for label in range(3):
        assert np.allclose(left[y == label].mean(0), x.mean(0, dtype=float), atol=2e-2)
    assert np.allclose(eraser.removed @ eraser.removed, eraser.removed, atol=1e-8)  # a projection
    assert np.allclose(eraser(left), left, atol=1e-3)
    means = np.stack([x[y == label].mean(0, dtype=float) for label in range(3)])
    span = np.linalg.svd(means - means.mean(0), full_matrices=False)[2][:2]  # the orthogonal way
    plain = x - (x - x.mean(0)) @ span.T @ span
    assert ((left - x) ** 2).sum() < 0.9 * ((plain - x) ** 2).sum()
    assert 0 < eraser.variance(x) < 1


def test_leace_takes_empty_directions():
    x, y = labelled(size=6)
    wide = np.concatenate([x, x[:, :2], np.ones((len(x), 1), np.float32)], 1)
    eraser = leace(wide, y)
    left = eraser(wide).astype(float)
    assert np.isfinite(left).all() and eraser.rank == 2
    assert np.allclose([left[y == 0].mean(0)], [left[y == 1].mean(0)], atol=5e-2)


def test_after_inlp_a_probe_is_at_the_majority():
    rng = np.random.default_rng(0)
    y = rng.choice(3, 4000, p=[0.5, 0.3, 0.2])
    x = (rng.normal(size=(3, 30))[y] + rng.normal(size=(4000, 30))).astype(np.float32)
    train, valid, test = slice(0, 2000), slice(2000, 3000), slice(3000, None)
    assert LogisticRegression().fit(x[train], y[train]).score(x[test], y[test]) > 0.95
    eraser = inlp(x[train], y[train], x[valid], y[valid])
    left = eraser(x)
    probe = LogisticRegression(C=0.1, max_iter=500).fit(left[train], y[train])
    assert probe.score(left[test], y[test]) <= np.mean(y[test] == 0) + 0.04
    assert 2 <= eraser.rank <= 10 and np.allclose(eraser.removed, eraser.removed.T, atol=1e-10)
    assert np.trace(eraser.removed) == pytest.approx(eraser.rank)


def test_inlp_finds_the_one_direction_that_was_planted():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    direction = rng.normal(size=10)
    direction /= np.linalg.norm(direction)
    x = rng.normal(size=(3000, 10)) + 8 * np.outer(y, direction)
    eraser = inlp(x[:2000], y[:2000], x[2000:], y[2000:])
    assert direction @ eraser.removed @ direction > 0.98 and eraser.rank <= 4


@pytest.mark.parametrize("method", ["leace", "inlp"])
def test_the_control_removes_as_much_elsewhere(method):
    x, y = labelled(size=40)
    eraser = leace(x, y) if method == "leace" else inlp(x[:2000], y[:2000], x[2000:], y[2000:])
    control = eraser.at_random(1)
    assert np.linalg.matrix_rank(control.removed) == control.rank == eraser.rank
    assert np.allclose(control.removed @ control.removed, control.removed, atol=1e-6)
    assert np.array_equal(control.removed, eraser.at_random(1).removed)
    assert not np.allclose(control.removed, eraser.at_random(2).removed, atol=1e-2)
    left = control(x)
    left = (left - left.mean(0)) / left.std(0).clip(1e-6)
    assert LogisticRegression(C=10, max_iter=300).fit(left, y).score(left, y) > 0.8


def test_one_label_is_refused():
    x, y = labelled()
    for erase in (lambda: leace(x, y * 0), lambda: inlp(x, y * 0, x, y)):
        with pytest.raises(BertScopeError, match="one label only"):
            erase()


# -- the model ------------------------------------------------------------------------------------

TEXT = "the cat [MASK] on the mat [MASK]"


def erasers(size, rank=3, seed=0):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(size, rank)))[0]
    return Eraser(Q @ Q.T, rng.normal(size=size), rank, np.eye(size))


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    tiny_models.save(folder)
    return activations.load(folder)


FAMILIES = {"bert": transformers.BertForPreTraining, "roberta": transformers.RobertaForMaskedLM,
            "albert": transformers.AlbertForPreTraining, "electra": transformers.ElectraForMaskedLM,
            "distilbert": transformers.DistilBertForMaskedLM,
            "deberta-v2": transformers.DebertaV2ForMaskedLM}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("places", ["masked", "words"])
def test_the_layers_states_are_changed_where_they_should_be_and_nowhere_before(
        tmp_path, family, places):
    tiny_models.save(tmp_path, FAMILIES[family], family=family)
    model = activations.load(tmp_path)
    encoded = activations.encode(model, TEXT)
    plain = activations.run(model, encoded, heads=False).hidden_states
    masked = encoded.input_ids == model.tokenizer.mask_token_id
    here = masked if places == "masked" else ~encoded.special
    assert 0 < masked.sum() < here.sum() + 1 < len(encoded)
    for layer in range(model.num_layers + 1):
        eraser = erasers(model.hidden_size, seed=layer)
        changed = activations.run(with_erased(model, layer, eraser, places), encoded,
                                  heads=False).hidden_states
        assert np.array_equal(changed[:layer], plain[:layer])
        assert np.allclose(changed[layer][here], eraser(plain[layer])[here], atol=1e-4)
        assert np.array_equal(changed[layer][~here], plain[layer][~here])
        if layer < model.num_layers:
            assert not np.allclose(changed[-1], plain[-1], atol=1e-3)
    again = activations.run(model, encoded, heads=False).hidden_states
    assert np.array_equal(again, plain)  # the model itself was left alone


def test_the_remaining_layers_are_run_on_the_changed_states(bert):
    """Against the layers called one after the other by hand."""
    encoded = activations.encode(bert, TEXT)
    eraser = erasers(bert.hidden_size)
    plain = activations.run(bert, encoded).hidden_states
    states = torch.from_numpy(plain[1])[None].clone()
    here = torch.from_numpy(encoded.input_ids == bert.tokenizer.mask_token_id)
    states[0, here] = torch.from_numpy(eraser(plain[1]))[here]
    with torch.inference_mode():
        for layer in bert.model.bert.encoder.layer[1:]:
            output = layer(states)
            states = output[0] if isinstance(output, tuple) else output
        logits = mlm_logits(bert, states)[0]
    made = activations.run(with_erased(bert, 1, eraser), encoded)
    assert np.allclose(made.hidden_states[-1], states[0].numpy(), atol=1e-4)
    assert np.allclose(made.mlm_logits, logits.numpy(), atol=1e-3)


def test_what_cannot_be_done_is_refused(bert):
    with pytest.raises(BertScopeError, match="no layer 4"):
        with_erased(bert, 4, erasers(16))
    with pytest.raises(BertScopeError, match="'masked' or 'words'"):
        with_erased(bert, 1, erasers(16), "everywhere")
    with pytest.raises(BertScopeError, match="cannot reach between the layers"):
        other = dataclasses.replace(bert, model=transformers.GPT2LMHeadModel(
            transformers.GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=9)))
        with_erased(other, 1, erasers(8))


def test_the_fingerprint_tells(bert):
    made = [with_erased(bert, *how).fingerprint for how in (
        (1, erasers(16)), (2, erasers(16)), (1, erasers(16, seed=1)), (1, erasers(16), "words"))]
    assert len({*made, bert.fingerprint}) == 5
    assert with_erased(bert, 1, erasers(16)).fingerprint == made[0]


# -- the whole --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def task():
    gold = data("miniworld")
    return items(Gold(gold.train[:150], gold.valid[:40], gold.test[:60], "miniworld"), "upos")


CONFIG = AmnesicConfig(max_train=150, max_valid=40, max_test=30, rounds=2, controls=2)


def test_of_too_few_sentences_nothing_is_said_of_chance(bert, task):
    few = amnesic(bert, task, dataclasses.replace(CONFIG, max_test=5), [1])
    assert few.summary["sentences"][0] <= 5 and np.isfinite(few.summary["excess"][0])
    assert few.summary[["low", "high"]].isna().all(axis=None) and few.table[["low", "high"]].isna().all(axis=None)


def test_pieces_carry_the_label_of_their_word(bert):
    sentence = Sentence([Word("unbelievable", upos="ADJ"), Word("cat"), Word("walking", upos="VERB")])
    gold = Gold([sentence], [sentence], [sentence], "x")
    part = read(bert, items(gold, "upos"), "train", 5, 3, 0)
    tokens = activations.encode(bert, "unbelievable cat walking").tokens
    assert tokens[1:-1] == ["un", "##believ", "##able", "cat", "walk", "##ing"]
    assert len(part.rows) == 3 and part.labels[0].tolist() == [-1, 0, 0, 0, -1, 1, 1, -1]
    vectors, labels = states(bert, part, "words", [0, 2])
    assert vectors.shape == (2, 15, 16) and labels.tolist() == [0, 0, 0, 1, 1] * 3
    row = part.rows[1]
    hidden = activations.run(bert, dataclasses.replace(
        activations.encode(bert, "unbelievable cat walking"), input_ids=row.shown)).hidden_states
    assert np.allclose(vectors[1, 5:10].astype(float), hidden[2][[1, 2, 3, 5, 6]], atol=0.01)


def test_the_table_says_what_was_removed_and_what_it_costs(bert, task):
    told = []
    made = amnesic(bert, task, CONFIG, [0, 3], lambda message, share: told.append(share))
    table = made.table
    assert table["removed"].tolist() == ["nothing", "task", "random", "random"] * 2
    nothing = table[table.removed == "nothing"]
    part = read(bert, task, "test", 30, 1, 0)
    assert np.allclose(nothing["mlm_all"], held_out_loss(bert, part.rows).mlm)
    assert (nothing[["change", "low", "high", "rank", "variance"]] == 0).all(axis=None)
    for row in table.to_dict("records"):
        base = nothing["mlm"].iloc[0]
        assert row["change"] == pytest.approx(row["mlm"] - base)
        assert row["low"] <= row["change"] <= row["high"]
        assert row["change_all"] == pytest.approx(row["mlm_all"] - nothing["mlm_all"].iloc[0])
    top = table[(table.layer == 3) & (table.removed != "nothing")]
    assert len(set(top["rank"])) == 1 and (top["change"] != 0).all()
    line = made.summary.to_dict("records")[1]
    assert line["excess"] == pytest.approx(line["change_task"] - line["change_random"])
    assert line["low"] <= line["excess"] <= line["high"] and 6 <= line["sentences"] <= 30
    assert told == sorted(told) and told[-1] == 1.0
    assert made.meta["task"] == "upos" and made.meta["examples"]["train"] == 300


def test_the_loss_is_of_pieces_that_have_a_label(bert, task):
    """Only nouns have one: their masked pieces' loss, by the model's own logits."""
    nouns = task.select([i for i, label in enumerate(task.labels) if label in ("NOUN", "PROPN")])
    made = amnesic(bert, nouns, dataclasses.replace(CONFIG, places="words"), [2])
    part = read(bert, nouns, "test", 30, 1, 0)
    losses = []
    for row, labels in zip(part.rows, part.labels, strict=True):
        encoded = activations.encode(bert, "the")
        logits = activations.run(bert, dataclasses.replace(
            encoded, input_ids=row.shown, attention_mask=np.ones(len(row), np.int64),
            token_type_ids=np.zeros(len(row), np.int64), tokens=["x"] * len(row))).mlm_logits
        log_p = torch.from_numpy(logits).log_softmax(-1).numpy()
        losses += [-log_p[at, row.ids[at]] for at in row.chosen if labels[at] >= 0]
    assert 0 < len(losses) < sum(len(row.chosen) for row in part.rows)
    assert made.table["mlm"][0] == pytest.approx(np.mean(losses), rel=1e-4)
    assert made.table["mlm_all"][0] != pytest.approx(made.table["mlm"][0], rel=1e-4)


@pytest.mark.parametrize("method", ["leace", "inlp"])
def test_after_removal_a_probe_is_at_the_majority(bert, method):
    """Of all words' states in an untrained model: the embeddings say which word it is."""
    rng, tags = np.random.default_rng(0), {"the": "DET", "cat": "NOUN", "dog": "NOUN", "mat": "NOUN",
                                           "sat": "VERB", "walk": "VERB", "new": "ADJ"}
    made = [Sentence([Word(form, upos=tags[form]) for form in rng.choice(list(tags), 8)])
            for _ in range(120)]
    task = items(Gold(made[:70], made[70:90], made[90:], "made up"), "upos")
    config = dataclasses.replace(CONFIG, method=method, places="words", controls=1)
    nothing, removed, control = amnesic(bert, task, config, [0]).table.to_dict("records")
    assert nothing["probe"] > nothing["majority"] + 0.15
    assert removed["probe"] < nothing["probe"] - 0.1
    assert removed["probe"] <= removed["majority"] + 0.05
    assert removed["rank"] == control["rank"]


def test_a_direction_that_the_head_does_not_read_costs_nothing_and_one_that_it_reads_does(bert):
    """The head begins with a matrix; one direction is taken out of what it reads."""
    unread = np.zeros(bert.hidden_size)
    unread[5] = 1.0
    weight = bert.model.cls.predictions.transform.dense.weight
    before = weight.detach().clone()
    try:
        with torch.no_grad():
            weight[:, 5] = 0.0
        encoded = activations.encode(bert, TEXT)
        plain = activations.run(bert, encoded).mlm_logits
        for place, same in ((5, True), (6, False)):
            axis = np.eye(bert.hidden_size)[place]
            eraser = Eraser(np.outer(axis, axis), unread * 0, 1, np.eye(bert.hidden_size))
            made = activations.run(with_erased(bert, bert.num_layers, eraser), encoded).mlm_logits
            assert np.allclose(made, plain, atol=1e-5) == same
    finally:
        with torch.no_grad():
            weight.copy_(before)


def test_it_can_be_cancelled_and_refuses_what_it_cannot_do(bert, task, tmp_path):
    class Stop(Exception):
        pass

    def progress(message, share):
        if "removed" in message:
            raise Stop

    with pytest.raises(Stop):
        amnesic(bert, task, CONFIG, [1], progress)
    with pytest.raises(BertScopeError, match="layers 0 to 3"):
        amnesic(bert, task, CONFIG, [4])
    with pytest.raises(BertScopeError, match="task is about sentences"):
        amnesic(bert, Items("x", "x", "sentence", ["a"], [0], [], ["b"], ["train"]), CONFIG)
    with pytest.raises(BertScopeError, match="no MLM head"):
        amnesic(dataclasses.replace(bert, has_mlm_head=False), task, CONFIG)
    for change in ({"method": "x"}, {"places": "x"}, {"rounds": 0}, {"seed": -1}):
        with pytest.raises(BertScopeError):
            AmnesicConfig(**change)
