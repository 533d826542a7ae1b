"""The logit lens against transformers' own heads, called by hand on its own hidden states."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from bertscope.analysis.activations import encode, load
from bertscope.analysis.lens import _leads, layer_probabilities, lens
from bertscope.analysis.probing.untrained import with_random_weights
from bertscope.errors import BertScopeError

SENTENCE = "the cat sat on the new mat ."
KINDS = {"bert": transformers.BertForMaskedLM, "roberta": transformers.RobertaForMaskedLM,
         "albert": transformers.AlbertForMaskedLM, "deberta-v2": transformers.DebertaV2ForMaskedLM}


def saved(folder, family, **changes):
    """A random model on disk, as we and as transformers open it."""
    kind = transformers.BertForPreTraining if family == "bert" else \
        transformers.AutoModelForMaskedLM
    tiny_models.save(folder, kind, family=family, **changes)
    return load(folder, device="cpu"), KINDS[family].from_pretrained(
        folder, attn_implementation="eager").eval()


def own_head(reference, family, states):
    if family == "bert":
        return reference.cls.predictions(states)
    if family == "roberta":
        return reference.lm_head(states)
    if family == "albert":
        return reference.predictions(states)
    return reference.lm_predictions(states, reference.deberta.embeddings.word_embeddings)


@pytest.fixture(scope="module", params=["bert", "roberta", "albert"])
def both(request, tmp_path_factory):
    return request.param, *saved(tmp_path_factory.mktemp(request.param), request.param)


@torch.no_grad()
def by_hand(family, reference, encoded, masked, mask_id):
    """log p [L+1, T, V] of every layer, and transformers' own of the whole model [T, V]."""
    ids = torch.tensor(encoded.input_ids)[None].clone()
    ids[0, masked] = mask_id
    output = reference(ids, attention_mask=torch.ones_like(ids), output_hidden_states=True)
    layers = torch.stack([own_head(reference, family, h)[0] for h in output.hidden_states])
    return layers.double().log_softmax(-1).numpy(), \
        output.logits[0].double().log_softmax(-1).numpy()


def test_every_layer_is_transformers_own_head_on_its_hidden_states(both):
    family, model, reference = both
    encoded = encode(model, SENTENCE)
    masked = [2, 7]
    layers, whole = by_hand(family, reference, encoded, masked, model.tokenizer.mask_token_id)
    places = [2, 7, 3]
    found = lens(model, encoded, masked, places)
    assert found.probability.shape == (4, 3) and found.places == places
    assert found.originals == [encoded.tokens[i] for i in places]
    for layer in range(4):
        for column, place in enumerate(places):
            log_p, last = layers[layer, place], layers[-1, place]
            p, true = np.exp(log_p), int(encoded.input_ids[place])
            best = int(log_p.argmax())
            assert found.tokens[layer][column] == tiny_models.VOCABULARY[best]
            assert found.probability[layer, column] == pytest.approx(p[best], rel=1e-4)
            assert found.true_probability[layer, column] == pytest.approx(p[true], rel=1e-4)
            order = sorted(range(len(p)), key=lambda i: -p[i])
            assert found.true_rank[layer, column] == 1 + order.index(true)
            assert found.entropy_bits[layer, column] == pytest.approx(
                -(p * np.log2(p)).sum(), rel=1e-4)
            kl = (np.exp(last) * np.log2(np.exp(last) / p)).sum()
            assert found.kl_bits[layer, column] == pytest.approx(kl, abs=1e-4)
            answer = int(last.argmax())
            assert found.final[column] == tiny_models.VOCABULARY[answer]
            assert found.final_probability[layer, column] == pytest.approx(p[answer], rel=1e-4)
    np.testing.assert_allclose(layer_probabilities(model, encoded, masked, 7),
                               np.exp(layers[:, 7]), rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(layers[-1], whole, atol=1e-12)  # the reference is one


def test_the_last_layer_is_the_output_itself(both):
    """Bit for bit where the head is run on as many rows as the model runs it; KL is zero."""
    _, model, reference = both
    encoded = encode(model, SENTENCE)
    from bertscope.analysis.activations import run
    from bertscope.analysis.mlm_head import mlm_logits
    from bertscope.analysis.predictions import hide

    hidden = hide(model, encoded, [2])
    states = run(model, hidden, heads=False).hidden_states[-1]
    with torch.no_grad():
        ids = torch.tensor(hidden.input_ids)[None]
        output = reference(ids, attention_mask=torch.ones_like(ids)).logits[0]
    assert torch.equal(mlm_logits(model, torch.from_numpy(states)), output)
    found = lens(model, encoded, [2], range(1, 9))
    assert (found.kl_bits[-1] == 0).all()
    assert (found.kl_bits[:-1] > 1e-3).all()
    np.testing.assert_array_equal(found.final_probability[-1], found.probability[-1])
    assert found.tokens[-1] == found.final


def test_the_head_of_a_family_that_keeps_its_embeddings_elsewhere(tmp_path):
    model, reference = saved(tmp_path, "deberta-v2", legacy=False)
    encoded = encode(model, SENTENCE)
    layers, _ = by_hand("deberta-v2", reference, encoded, [3], model.tokenizer.mask_token_id)
    np.testing.assert_allclose(layer_probabilities(model, encoded, [3], 3), np.exp(layers[:, 3]),
                               rtol=1e-3, atol=1e-7)


def test_layer_0_knows_nothing_but_the_place(both):
    _, model, _ = both
    first, second = (encode(model, s) for s in (SENTENCE, "a dog walk ed un a house of"))
    one, two = (layer_probabilities(model, e, [4], 4) for e in (first, second))
    np.testing.assert_allclose(one[0], two[0], rtol=1e-5)
    assert np.abs(one[1] - two[1]).max() > 1e-3


def test_a_mask_that_was_typed_has_no_true_piece(both):
    _, model, _ = both
    encoded = encode(model, "the [MASK] sat")
    found = lens(model, encoded, [2])
    assert (found.true_rank == 0).all() and np.isnan(found.true_probability).all()
    assert not np.isnan(found.final_probability).any()


@pytest.mark.parametrize("column, first, stays", [
    ([0, 0, 1], 2, 2), ([1, 0, 1], 0, 2), ([1, 1, 1], 0, 0), ([0, 1, 1], 1, 1), ([1], 0, 0)])
def test_where_the_final_answer_leads(column, first, stays):
    found = _leads(np.array(column, bool)[:, None])
    assert (int(found[0][0]), int(found[1][0])) == (first, stays)


def test_random_weights_see_the_true_piece_nowhere(tmp_path):
    """Of a real initialisation (0.02), every layer is near a uniform guess, as a baseline must be."""
    tiny_models.save(tmp_path, initializer_range=0.02)
    model = load(tmp_path, device="cpu")
    random = with_random_weights(model, seed=3)
    found = lens(random, encode(random, SENTENCE), [2, 3, 5, 7])
    size = len(tiny_models.VOCABULARY)
    assert (found.entropy_bits > np.log2(size) - 0.1).all()
    assert np.abs(found.true_probability * size - 1).max() < 0.6
    before = lens(model, encode(model, SENTENCE), [2])
    assert not np.allclose(before.final_probability, lens(random, encode(random, SENTENCE),
                                                          [2]).final_probability, rtol=1e-3)


def test_refusals_and_progress(both, tmp_path):
    _, model, _ = both
    encoded = encode(model, SENTENCE)
    with pytest.raises(BertScopeError, match="is not a word piece"):
        lens(model, encoded, [0])
    said = []
    lens(model, encoded, [2], progress=lambda message, share: said.append(share))
    assert said == [0.25, 0.5, 0.75, 1.0]
    tiny_models.save(tmp_path, transformers.BertModel)
    bare = load(tmp_path, device="cpu")
    with pytest.raises(BertScopeError, match="no MLM head"):
        lens(bare, encode(bare, SENTENCE), [2])
