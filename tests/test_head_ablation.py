"""Heads turned off: against hooks on transformers' own model, hand computation, finite differences."""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from bertscope.analysis.activations import encode, load, run
from bertscope.analysis.attention import attention_maps
from bertscope.analysis.head_ablation import (effect_of_each_head, effect_of_each_head_on_pair,
                                              held_out_loss, masked_sample, prune_curve)
from bertscope.analysis.head_gates import private_copy, with_gates, without_heads
from bertscope.analysis.head_importance import (gate_gradients, head_importance,
                                                head_importance_cached, least_first,
                                                prune_curve_cached)
from bertscope.analysis.pairs import next_sentence, next_sentences
from bertscope.analysis.predictions import log_probabilities
from bertscope.errors import BertScopeError

FAMILIES = ["bert", "roberta", "electra", "albert", "distilbert", "deberta-v2"]
TEXTS = ["the cat sat on the mat", "a dog walked on the new house of states", "united america"]
PAIRS = [("the cat sat", "on the mat it walked"), ("a new house", "dogs of america"),
         ("united states", "a cat")]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    tiny_models.save(folder)
    return load(folder, device="cpu")


# -- the mechanism ----------------------------------------------------------------------------


def projections(base) -> list[torch.nn.Module]:
    """Each layer's output projection, found by its place in transformers' model."""
    if base.config.model_type == "albert":
        return [base.encoder.albert_layer_groups[0].albert_layers[0].attention.dense] * 3
    if base.config.model_type == "distilbert":
        return [layer.attention.out_lin for layer in base.transformer.layer]
    return [layer.attention.output.dense for layer in base.encoder.layer]


def by_hooks(folder, encoded, off) -> torch.Tensor:
    """The last states of a fresh model with pre-hooks that zero the heads' slices; ALBERT's one
    projection counts its passes."""
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    passes = {}

    def hook(number, shared):
        def zero(module, args):
            layer = passes[module] = passes.get(module, -1) + 1 if shared else number
            heads = args[0].clone()
            for one, head in off:
                if one == layer + 1:
                    heads[..., 4 * head - 4:4 * head] = 0
            return (heads,)
        return zero

    found = projections(model)
    shared = found[0] is found[-1]
    for number, projection in enumerate(found[:1] if shared else found):
        projection.register_forward_pre_hook(hook(number, shared))
    ids = torch.from_numpy(encoded.input_ids)[None]
    extra = {} if model.config.model_type == "distilbert" else {
        "token_type_ids": torch.from_numpy(encoded.token_type_ids)[None]}
    with torch.no_grad():
        return model(ids, **extra).last_hidden_state[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_head_off_is_its_slice_zeroed_in_that_layer_only(tmp_path, family):
    tiny_models.save(tmp_path, transformers.AutoModelForMaskedLM, family=family)
    model = load(tmp_path, device="cpu")
    encoded = encode(model, TEXTS[0])
    for off in ([(2, 3)], [(1, 1), (3, 4), (3, 2)]):
        found = run(without_heads(model, off), encoded, heads=False).hidden_states
        np.testing.assert_allclose(found[-1], by_hooks(tmp_path, encoded, off), atol=1e-5)
        before = run(model, encoded, heads=False).hidden_states
        first = off[0][0]
        assert (found[:first] == before[:first]).all() and np.abs(found - before)[first].max() > 0.1


def test_a_layer_without_heads_by_hand(model):
    """LayerNorm(x + b_O), then the feed-forward block: nothing passes between pieces any more."""
    every = run(without_heads(model, [(1, 0), (2, 0), (3, 0)]), encode(model, TEXTS[0]), heads=False)
    x = torch.from_numpy(every.hidden_states[0])
    for number, layer in enumerate(model.model.bert.encoder.layer, start=1):
        x = layer.attention.output.LayerNorm(x + layer.attention.output.dense.bias)
        inner = torch.nn.functional.gelu(layer.intermediate.dense(x))
        x = layer.output.LayerNorm(layer.output.dense(inner) + x)
        np.testing.assert_allclose(every.hidden_states[number], x.detach(), atol=1e-5)


def test_gates_of_each_row_are_its_own(model):
    gates = torch.rand(3, 3, 4, generator=torch.Generator().manual_seed(0))
    encoded = encode(model, TEXTS[0])
    from bertscope.analysis.activations import forward
    together = forward(with_gates(model, gates), [encoded] * 3, heads=False).last_hidden_state
    for row in range(3):
        alone = run(with_gates(model, gates[row]), encoded, heads=False).hidden_states[-1]
        np.testing.assert_allclose(together[row], alone, atol=1e-5)
    whole = run(with_gates(model, torch.ones(3, 4)), encoded).mlm_logits
    assert (whole == run(model, encoded).mlm_logits).all()
    with pytest.raises(ValueError, match=r"\[..., 3, 4\]"):
        with_gates(model, torch.ones(4, 3))


def test_the_shared_model_and_its_other_readers_notice_nothing(model):
    encoded = encode(model, TEXTS[1])
    expected, off = run(model, encoded), without_heads(model, [(2, 1)])
    changed = run(off, encoded)
    assert np.abs(changed.mlm_logits - expected.mlm_logits).max() > 0.01
    wrong, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            if not (run(model, encoded).mlm_logits == expected.mlm_logits).all():
                wrong.append("mlm")

    thread = threading.Thread(target=read)
    thread.start()
    for head in range(1, 5):
        for _ in range(5):
            run(without_heads(model, [(2, head), (1, head)]), encoded)
    stop.set()
    thread.join()
    assert not wrong
    assert not any(m._forward_pre_hooks for m in model.model.modules())
    assert type(model.model.bert.encoder.layer[1].attention.output.dense) is torch.nn.Linear
    assert [id(p) for p in off.model.parameters()] == [id(p) for p in model.model.parameters()]
    assert sum(len(m._forward_hooks) for m in off.model.modules()) == \
        sum(len(m._forward_hooks) for m in model.model.modules())  # captured once, as before


def test_the_copy_of_albert_does_not_unroll_the_model_itself(tmp_path):
    tiny_models.save(tmp_path, transformers.AlbertForPreTraining, family="albert")
    model = load(tmp_path, device="cpu")
    off = without_heads(model, [(2, 0)])
    assert model.model.config.num_hidden_groups == 1
    assert len(model.model.albert.encoder.albert_layer_groups) == 1
    maps = attention_maps(off, "the cat sat").weights
    assert (maps[:2] == attention_maps(model, "the cat sat").weights[:2]).all()
    assert np.abs(maps[2] - attention_maps(model, "the cat sat").weights[2]).max() > 0.01
    assert next_sentence(off, "a cat", "a dog").p_next != next_sentence(model, "a cat", "a dog").p_next


def test_a_module_in_two_places_is_copied_once():
    part = torch.nn.Linear(2, 2)
    tree = torch.nn.ModuleDict({"a": part, "b": torch.nn.Sequential(part)})
    made = private_copy(tree)
    assert made["a"] is made["b"][0] is not part and made["a"].weight is part.weight


def test_no_such_head_and_other_architectures(model, tmp_path):
    assert without_heads(model, []) is model
    one, two = without_heads(model, [(1, 2)]), without_heads(model, [(1, 3)])
    assert len({model.fingerprint, one.fingerprint, two.fingerprint}) == 3
    assert one.fingerprint == without_heads(model, [(1, 2), (1, 2)]).fingerprint
    for off in ((0, 1), (4, 1), (1, 5), (1, -1)):
        with pytest.raises(BertScopeError, match="3 layers with 4 heads each"):
            without_heads(model, [off])
    tiny_models.save(tmp_path / "inner", transformers.AlbertForMaskedLM, family="albert",
                     inner_group_num=2)
    with pytest.raises(BertScopeError, match=r"cannot turn off heads .*\(albert\)"):
        without_heads(load(tmp_path / "inner", device="cpu"), [(1, 1)])
    with pytest.raises(BertScopeError, match=r"cannot turn off heads .*\(fnet\)"):
        without_heads(dataclasses.replace(model, family="fnet"), [(1, 1)])


# -- losses -----------------------------------------------------------------------------------


def test_the_loss_is_transformers_own(model, tmp_path):
    rows = masked_sample(model, PAIRS, labels=[0, 1, 1])
    assert [len(row.chosen) for row in rows] == [2, 1, 1]
    assert all((row.shown[row.chosen] == model.tokenizer.mask_token_id).all() for row in rows)
    reference = transformers.BertForPreTraining.from_pretrained(model.path).eval()
    mlm, nsp, right = [], [], []
    for row in rows:
        labels = torch.full((1, len(row)), -100)
        labels[0, row.chosen] = torch.from_numpy(row.ids[row.chosen])
        given = dict(input_ids=torch.from_numpy(row.shown)[None],
                     token_type_ids=torch.from_numpy(row.token_type_ids)[None])
        with torch.no_grad():
            out = reference(**given)
        mlm += torch.nn.functional.cross_entropy(out.prediction_logits[0], labels[0],
                                                 reduction="none")[row.chosen].tolist()
        nsp.append(torch.nn.functional.cross_entropy(
            out.seq_relationship_logits, torch.tensor([row.label])).item())
        right.append(int(out.seq_relationship_logits.argmax()) == row.label)
    loss = held_out_loss(model, rows)
    assert loss.mlm == pytest.approx(np.mean(mlm), abs=1e-5) and loss.places == 4
    assert loss.nsp == pytest.approx(np.mean(nsp), abs=1e-5)
    assert loss.nsp_accuracy == pytest.approx(np.mean(right))
    singles = held_out_loss(model, masked_sample(model, TEXTS))
    assert singles.nsp is None and singles.nsp_accuracy is None


def test_the_sample_is_the_same_every_time(model):
    long = ["the cat sat on the mat of a dog and " * 2, "a [MASK] cat"]
    first, again = masked_sample(model, long), masked_sample(model, long)
    assert all((a.shown == b.shown).all() for a, b in zip(first, again))
    words = len(first[0]) - 2
    assert len(first[0].chosen) == round(0.15 * words) > 1
    assert first[0].chosen.tolist() != masked_sample(model, long, seed=1)[0].chosen.tolist()
    typed = encode(model, long[1]).tokens.index("[MASK]")
    assert typed not in first[1].chosen and len(first[1].chosen) == 1
    with pytest.raises(BertScopeError, match="Nothing is masked"):
        held_out_loss(model, masked_sample(model, ["[MASK]"]))


def test_pruning_costs_what_turning_off_costs(model):
    rows = masked_sample(model, PAIRS, labels=[0, 1, 0])
    order = [(3, 1), (1, 2), (2, 4), (2, 1)]
    told = []
    table = prune_curve(model, rows, order, steps=2, progress=lambda *a: told.append(a))
    assert table["off"].tolist() == [0, 2, 4] and table["share"].tolist() == [0, 2 / 12, 4 / 12]
    for off, mlm, nsp in zip(table["off"], table["mlm"], table["nsp"]):
        loss = held_out_loss(without_heads(model, order[:off]), rows)
        assert (mlm, nsp) == (loss.mlm, loss.nsp)
    assert table["mlm"].nunique() == 3 and told[-1] == ("4 heads off", 1.0)
    assert prune_curve(model, masked_sample(model, TEXTS), order[:1])["nsp"].isna().all()


# -- one prediction, one pair -----------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_each_head_in_its_turn_is_one_head_off(tmp_path, family):
    tiny_models.save(tmp_path, transformers.AutoModelForMaskedLM, family=family)
    model = load(tmp_path, device="cpu")
    encoded, masked = encode(model, "the [MASK] sat on the mat"), [2, 4]
    table = effect_of_each_head(model, encoded, masked).set_index(["layer", "head"])
    assert len(table) == 12 + 3
    whole = log_probabilities(model, encoded, masked) / np.log(2)
    for layer, head in [(1, 1), (2, 3), (3, 4), (1, 0), (3, 0)]:
        without = log_probabilities(without_heads(model, [(layer, head)]), encoded, masked)
        without /= np.log(2)
        kl = (2 ** whole * (whole - without)).sum(-1).mean()
        assert table.loc[(layer, head), "divergence"] == pytest.approx(kl, abs=1e-4)
        original = encoded.input_ids[4]  # place 2 is a typed mask: it has no original
        assert table.loc[(layer, head), "surprisal"] == pytest.approx(
            whole[1, original] - without[1, original], abs=1e-4)
    assert (table["divergence"] > 0).all()
    assert effect_of_each_head(model, encoded, [2])["surprisal"].isna().all()
    with pytest.raises(BertScopeError, match="Nothing is masked"):
        effect_of_each_head(model, encoded, [])


def test_each_head_off_for_a_pair(model):
    table = effect_of_each_head_on_pair(model, *PAIRS[0]).set_index(["layer", "head"])
    before = next_sentences(model, PAIRS[:1])[0].p_next
    for off in [(1, 3), (2, 0), (3, 1)]:
        p = next_sentences(without_heads(model, [off]), PAIRS[:1])[0].p_next
        assert table.loc[off, "p_yes"] == pytest.approx(p, abs=1e-5)
        assert table.loc[off, "change"] == pytest.approx(p - before, abs=1e-5)
    assert table["change"].abs().max() > 0.01


# -- gradients --------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_gradients_are_finite_differences(tmp_path, family):
    tiny_models.save(tmp_path, transformers.AutoModelForMaskedLM, family=family,
                     initializer_range=0.2)
    model = load(tmp_path, device="cpu")
    rows = masked_sample(model, TEXTS)
    slopes = gate_gradients(model, rows)
    assert slopes.shape == (3, 3, 4) and np.abs(slopes).max() > 0.01
    for number, row in enumerate(rows):
        for place in np.ndindex(3, 4):
            losses = []
            for step in (0.05, -0.05):
                gates = torch.ones(3, 4)
                gates[place] += step
                losses.append(held_out_loss(with_gates(model, gates), [row]).mlm)
            assert slopes[number][place] == pytest.approx((losses[0] - losses[1]) / 0.1, rel=1e-2, abs=2e-3)


def test_importance_is_the_heads_output_times_its_gradient(model):
    """The other form of Michel et al.'s equation 2, |Att_h . dL/dAtt_h|, by autograd on
    transformers' own model, one example after the other."""
    reference = transformers.BertForPreTraining.from_pretrained(
        model.path, attn_implementation="eager").eval()
    contexts = {}
    for number, layer in enumerate(reference.bert.encoder.layer):
        layer.attention.output.dense.register_forward_pre_hook(
            lambda _, args, number=number: contexts.__setitem__(number, args[0]))
    rows = masked_sample(model, TEXTS)
    each = []
    for row in rows:
        logits = reference(torch.from_numpy(row.shown)[None],
                           token_type_ids=torch.from_numpy(row.token_type_ids)[None])
        loss = torch.nn.functional.cross_entropy(logits.prediction_logits[0, row.chosen],
                                                 torch.from_numpy(row.ids[row.chosen]))
        gradients = torch.autograd.grad(loss, list(contexts.values()))
        each.append([(context * gradient)[0].unflatten(-1, (4, 4)).sum((0, 2)).tolist()
                     for context, gradient in zip(contexts.values(), gradients)])
    table = head_importance(model, rows)
    expected = np.abs(each).mean(0)
    np.testing.assert_allclose(table["importance"], expected.ravel(), atol=1e-5)
    np.testing.assert_allclose(table["slope"], np.mean(each, 0).ravel(), atol=1e-5)
    np.testing.assert_allclose(
        table["normalised"], (expected / np.linalg.norm(expected, axis=1)[:, None]).ravel(),
        atol=1e-4)
    order = least_first(table)
    assert len(set(order)) == 12
    assert order[-1] == (expected.argmax() // 4 + 1, expected.argmax() % 4 + 1)


def test_a_dead_layer_has_no_importance(model, tmp_path):
    dead = tiny_models.save(tmp_path)
    with torch.no_grad():
        dead.bert.encoder.layer[1].attention.output.dense.weight.zero_()
    dead.save_pretrained(tmp_path)
    table = head_importance(load(tmp_path, device="cpu"), masked_sample(model, TEXTS))
    second = table[table["layer"] == 2]
    assert (second[["importance", "normalised", "slope"]] == 0).all(axis=None)
    assert (table.loc[table["layer"] != 2, "importance"] > 0).all()


def test_kept_results_and_models_without_a_head(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tmp_path / "runs"))
    tiny_models.save(tmp_path / "a")
    assert head_importance_cached(tmp_path / "a", TEXTS, kept_only=True) is None
    table = head_importance_cached(tmp_path / "a", TEXTS)
    assert table.equals(head_importance_cached(tmp_path / "a", TEXTS, kept_only=True))
    order = least_first(table)
    curve = prune_curve_cached(tmp_path / "a", TEXTS, order, steps=2)
    assert curve.equals(prune_curve_cached(tmp_path / "a", TEXTS, order, steps=2, kept_only=True))
    assert prune_curve_cached(tmp_path / "a", TEXTS, order[::-1], steps=2, kept_only=True) is None
    tiny_models.save(tmp_path / "bare", transformers.BertModel)
    bare = load(tmp_path / "bare", device="cpu")
    for ask in (lambda: masked_sample(bare, TEXTS), lambda: head_importance_cached(bare.path, TEXTS),
                lambda: effect_of_each_head(bare, encode(bare, "a cat"), [1])):
        with pytest.raises(BertScopeError, match="no MLM head"):
            ask()
    with pytest.raises(BertScopeError, match="no NSP head"):
        effect_of_each_head_on_pair(bare, "a", "b")
