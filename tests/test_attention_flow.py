"""Flow of attention: closed forms, slow versions written from the papers, linear programming, and
what transformers' own layers gave."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from bertscope.analysis import attention_flow as flow_module, flow_sources
from bertscope.analysis.activations import encode, load, run
from bertscope.analysis.attention import attention_maps
from bertscope.analysis.attention_flow import (attention_flow, attention_gradients,
                                               attention_gradients_of_pair, norm_weighted, rollout)
from bertscope.analysis.head_ablation import masked_sample
from bertscope.analysis.head_gates import with_gates
from bertscope.analysis.head_importance import gate_gradients
from bertscope.analysis.pairs import next_sentence
from bertscope.analysis.predictions import log_probabilities
from bertscope.errors import BertScopeError
from scipy.optimize import linprog

FAMILIES = ["bert", "roberta", "electra", "albert", "distilbert", "deberta-v2"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    tiny_models.save(folder)
    return load(folder, device="cpu")


def random_weights(layers=3, heads=2, size=5) -> np.ndarray:
    weights = np.random.default_rng(0).gamma(0.4, size=(layers, heads, size, size))
    return weights / weights.sum(-1, keepdims=True)


# -- rollout and flow -------------------------------------------------------------------------


def test_rollout_of_even_attention_in_closed_form():
    """(I + J/n) / 2, L times: 2^-L I + (1 - 2^-L) J/n."""
    even = np.full((4, 2, 6, 6), 1 / 6)
    for number, found in enumerate(rollout(even), start=1):
        stays = 0.5 ** number
        np.testing.assert_allclose(found, stays * np.eye(6) + (1 - stays) / 6, atol=1e-12)


def test_rollout_is_the_sum_over_all_paths():
    weights, residual = random_weights(), 0.3
    mean = 0.7 * weights.mean(1) + 0.3 * np.eye(5)
    found = rollout(weights, residual)
    for i in range(5):
        for j in range(5):
            paths = sum(mean[2][i, a] * mean[1][a, b] * mean[0][b, j]
                        for a in range(5) for b in range(5))
            assert found[-1][i, j] == pytest.approx(paths, abs=1e-12)
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-12)
    np.testing.assert_allclose(rollout(weights, 1.0), np.tile(np.eye(5), (3, 1, 1)))
    np.testing.assert_allclose(rollout(weights, 0.0)[0], weights[0].mean(0))


def by_linear_programme(capacity: np.ndarray, source: int, target: int) -> float:
    """Maximum flow by scipy's simplex: an edge a variable, what comes in goes out."""
    layers, size, _ = capacity.shape
    edges = [(l, i, j) for l in range(layers) for i in range(size) for j in range(size)]
    bounds = [(0, capacity[edge]) for edge in edges]
    gain = [-1.0 if (l, j) == (0, target) else 0.0 for l, _, j in edges]
    kept = [[(l == node and j == at) - (l == node - 1 and i == at) for l, i, j in edges]
            for node in range(1, layers) for at in range(size)]
    closed = [0 if l == layers - 1 and i != source else 1 for l, i, j in edges]
    bounds = [(0, high * open) for (_, high), open in zip(bounds, closed)]
    found = linprog(gain, A_eq=np.array(kept, float), b_eq=np.zeros(len(kept)), bounds=bounds)
    return -found.fun


def test_flow_is_that_of_a_linear_programme():
    weights = random_weights(size=4)
    capacity = 0.5 * weights.mean(1) + 0.5 * np.eye(4)
    for piece in (0, 2):
        expected = [by_linear_programme(capacity, piece, target) for target in range(4)]
        np.testing.assert_allclose(attention_flow(weights, piece), expected, atol=1e-5)


def test_flow_through_one_layer_is_its_row_and_bounds_are_kept():
    weights = random_weights()
    mean = 0.5 * weights.mean(1) + 0.5 * np.eye(5)
    np.testing.assert_allclose(attention_flow(weights, 3, layer=1), mean[0][3], atol=1e-6)
    # No flow is less than the rollout along the same edges, nor more than all that leaves.
    found = np.array([attention_flow(weights, piece) for piece in range(5)])
    assert (found >= rollout(weights)[-1] - 1e-5).all() and (found <= 1 + 1e-5).all()
    with pytest.raises(BertScopeError, match="64 pieces at most, and this input has 65"):
        attention_flow(np.full((1, 1, 65, 65), 1 / 65), 0)


# -- by the size of what is carried -----------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_the_carried_vectors_sum_to_the_output_projection(tmp_path, family):
    tiny_models.save(tmp_path, transformers.AutoModelForMaskedLM, family=family)
    model = load(tmp_path, device="cpu")
    found = norm_weighted(model, encode(model, "the cats sat on the mat"))
    assert found.error < 1e-5
    assert found.heads.shape == found.weights.shape and found.layers.shape == (3, 9, 9)
    np.testing.assert_allclose(found.heads, found.weights * found.values[:, :, None], atol=1e-6)
    # The triangle inequality, and not as an equation: the heads' vectors do not point alike.
    assert (found.layers <= found.heads.sum(1) + 1e-5).all()
    assert (found.layers < found.heads.sum(1) * 0.99).any()
    maps = attention_maps(model, "the cats sat on the mat").weights
    np.testing.assert_allclose(found.weights, maps, atol=1e-6)


def test_norms_are_those_of_a_slow_version_from_the_paper(model):
    encoded = encode(model, "the cat sat", "a dog")
    found, size = norm_weighted(model, encoded), len(encoded)
    seen = run(model, encoded, attentions=True)
    for number, layer in enumerate(model.model.bert.encoder.layer):
        x = seen.hidden_states[number].astype(np.float64)
        value, output = layer.attention.self.value, layer.attention.output.dense
        w_v, b_v, w_o = (p.numpy().astype(np.float64).T
                         for p in (value.weight, value.bias, output.weight))
        for i in range(size):
            for j in range(size):
                together = np.zeros(16)
                for head in range(4):
                    part = slice(4 * head, 4 * head + 4)
                    f = (x[j] @ w_v[:, part] + b_v[part]) @ w_o[part]
                    alpha = seen.attentions[number, head, i, j]
                    assert found.heads[number, head, i, j] == pytest.approx(
                        np.linalg.norm(alpha * f), abs=1e-5)
                    together += alpha * f
                assert found.layers[number, i, j] == pytest.approx(np.linalg.norm(together),
                                                                  abs=1e-5)


def test_the_error_is_measured_and_not_assumed(model, monkeypatch):
    """Were the values another layer's, the sum would not be what the layer gave."""
    own = flow_module._carried
    monkeypatch.setattr(flow_module, "_carried",
                        lambda alpha, value, *rest: own(alpha, value * 1.01, *rest))
    assert norm_weighted(model, encode(model, "a cat")).error > 1e-3


def test_norms_leave_the_shared_model_alone_and_refuse_others(model, tmp_path):
    before = sum(len(m._forward_hooks) for m in model.model.modules())
    norm_weighted(model, encode(model, "a cat"))
    attention_gradients(model, encode(model, "a cat"), [1], 1, 7)
    assert sum(len(m._forward_hooks) for m in model.model.modules()) == before
    tiny_models.save(tmp_path / "deberta", transformers.AutoModelForMaskedLM, family="deberta")
    other = load(tmp_path / "deberta", device="cpu")
    with pytest.raises(BertScopeError, match="value vectors"):
        norm_weighted(other, encode(other, "a cat"))
    tiny_models.save(tmp_path / "fnet", transformers.FNetForPreTraining, family="fnet")
    fnet = load(tmp_path / "fnet", device="cpu")
    with pytest.raises(BertScopeError, match="architecture"):
        norm_weighted(fnet, encode(fnet, "a cat"))
    with pytest.raises(BertScopeError, match="no attention weights"):
        attention_gradients(fnet, encode(fnet, "a cat"), [1], 1, 7)


# -- by the gradient --------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_products_sum_to_the_slope_of_the_heads_gate(tmp_path, family):
    """Scaling all weights of a head by xi is scaling its output: sum alpha dy/dalpha = dy/dxi."""
    tiny_models.save(tmp_path, transformers.AutoModelForMaskedLM, family=family)
    model = load(tmp_path, device="cpu")
    (row,) = masked_sample(model, ["the cat sat on"])
    (place,) = row.chosen
    encoded = encode(model, "the cat sat on")
    found = attention_gradients(model, encoded, [place], place, int(row.ids[place]))
    slopes = gate_gradients(model, [row])[0]         # of -ln P
    np.testing.assert_allclose(found.product.sum((-2, -1)), -slopes / np.log(2), atol=1e-4,
                               rtol=1e-3)
    log_p = log_probabilities(model, encoded, [place])[0, row.ids[place]]
    assert found.y == pytest.approx(log_p / np.log(2), abs=1e-4)
    np.testing.assert_allclose(found.product, found.weights * found.gradient, atol=1e-6)


def test_a_weights_gradient_is_what_changing_it_changes(model):
    """One weight of the last layer made larger, by hand, through the rest of the layer."""
    encoded, place, target = encode(model, "the cat sat on a mat"), 2, 9
    found = attention_gradients(model, encoded, [place], place, target)
    from bertscope.analysis.mlm_head import mlm_logits
    from bertscope.analysis.predictions import hide
    hidden = run(model, hide(model, encoded, [place]), attentions=True)
    layer = model.model.bert.encoder.layer[2]
    x = torch.from_numpy(hidden.hidden_states[2])
    values = layer.attention.self.value(x).unflatten(-1, (4, 4)).transpose(0, 1)

    def y(alpha: torch.Tensor) -> float:
        context = (alpha @ values).transpose(0, 1).flatten(1)
        states = layer.feed_forward_chunk(layer.attention.output(context, x))
        return mlm_logits(model, states[[place]]).log_softmax(-1)[0, target].item() / np.log(2)

    alpha = torch.from_numpy(hidden.attentions[2])
    assert y(alpha) == pytest.approx(found.y, abs=1e-4)
    for head, j in np.ndindex(4, len(encoded)):
        step = torch.zeros_like(alpha)
        step[head, place, j] = 0.01
        slope = (y(alpha + step) - y(alpha - step)) / 0.02
        assert found.gradient[2, head, place, j] == pytest.approx(slope, rel=0.02, abs=5e-3)
    others = [i for i in range(len(encoded)) if i != place]
    assert (found.gradient[2][:, others] == 0).all()  # nothing of the last layer but that row counts


def test_gradients_of_a_pair(model):
    encoded = encode(model, "the cat sat", "a dog")
    found = attention_gradients_of_pair(model, encoded)
    p = next_sentence(model, "the cat sat", "a dog").p_next
    assert found.y == pytest.approx(np.log2(p / (1 - p)), abs=1e-3)
    for layer, head in [(0, 1), (1, 3), (2, 2)]:
        odds = []
        for step in (0.02, -0.02):
            gates = torch.ones(3, 4)
            gates[layer, head] += step
            yes, no = next_sentence(with_gates(model, gates), "the cat sat", "a dog").logits
            odds.append((yes - no) / np.log(2))
        assert found.product[layer, head].sum() == pytest.approx((odds[0] - odds[1]) / 0.04,
                                                                 rel=0.02, abs=5e-3)


def test_heads_that_are_needed_must_be_there(tmp_path):
    tiny_models.save(tmp_path, transformers.BertModel)
    bare = load(tmp_path, device="cpu")
    with pytest.raises(BertScopeError, match="no MLM head"):
        attention_gradients(bare, encode(bare, "a cat"), [1], 1, 7)
    with pytest.raises(BertScopeError, match="no NSP head"):
        attention_gradients_of_pair(bare, encode(bare, "a cat", "a dog"))
    assert norm_weighted(bare, encode(bare, "a cat")).error < 1e-5


# -- sources ----------------------------------------------------------------------------------


def test_sources_of_a_piece_are_rows_of_the_maps(model):
    encoded = encode(model, "a cat sat .", "it slept .")
    found = flow_sources.sources(model, encoded, 2, 1)
    maps, carried = attention_maps(model, "a cat sat .", "it slept .").weights, norm_weighted(model, encoded)
    np.testing.assert_allclose(found[flow_sources.RAW], maps[0].mean(0)[2], atol=1e-6)
    np.testing.assert_allclose(found[flow_sources.ROLLOUT], rollout(maps)[0, 2], atol=1e-6)
    row = carried.layers[0, 2]
    np.testing.assert_allclose(found[flow_sources.CARRIED], row / row.sum(), atol=1e-6)
    assert all(values.sum() == pytest.approx(1, abs=1e-5) for values in found.values())
    last = flow_sources.sources(model, encoded, 2, model.num_layers)
    np.testing.assert_allclose(last[flow_sources.ROLLOUT], rollout(maps)[-1, 2], atol=1e-6)


def test_kinds_of_sources_are_every_position_once(model):
    encoded = encode(model, "a cat sat .", "it slept .")
    groups = flow_sources.kinds(encoded, 2)
    assert groups["[CLS]"] == [0] and groups[flow_sources.ITSELF] == [2] and len(groups["[SEP]"]) == 2
    assert sorted(place for places in groups.values() for place in places) == list(range(len(encoded)))
    assert all(encoded.segments[i] == 1 for i in groups[flow_sources.OTHER])
    values = np.arange(len(encoded))
    found = flow_sources.by_kind(values, groups)
    assert sum(found.values()) == values.sum() and found[flow_sources.ITSELF] == 2
    assert flow_sources.kinds(encoded, 0)[flow_sources.ITSELF] == [0]  # [CLS] looks at itself


def test_gradients_by_source_are_the_products_columns(model):
    encoded = encode(model, "a cat sat .")
    target = int(encoded.input_ids[2])
    product = attention_gradients(model, encoded, [2], 2, target).product
    np.testing.assert_allclose(flow_sources.gradient_sources(model, encoded, 1, 2, target),
                               product[0].sum(0).sum(0), atol=1e-6)
    pair = encode(model, "a cat", "a dog")
    np.testing.assert_allclose(flow_sources.gradient_sources(model, pair, 2, None, None),
                               attention_gradients_of_pair(model, pair).product[1].sum((0, 1)), atol=1e-6)
