"""Attributions against slow loops, torch's autograd by hand, and closed forms."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from bertscope.analysis.activations import encode, load
from bertscope.analysis.attribution import (
    Attribution, gradient_x_input, integrated_gradients, occlusion, path_integral)
from bertscope.analysis.predictions import log_probabilities
from bertscope.errors import BertScopeError

SENTENCE = "the cat sat on the unbelievable mat ."
PLACE, TARGET = 3, tiny_models.VOCABULARY.index("sat")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("bert")
    tiny_models.save(path, transformers.BertForMaskedLM, initializer_range=0.2)
    return path


@pytest.fixture(scope="module")
def model(folder):
    return load(folder, device="cpu")


@pytest.fixture(scope="module")
def reference(folder):
    return transformers.BertForMaskedLM.from_pretrained(
        folder, attn_implementation="eager").eval()


def log2_p(reference, ids, place=PLACE, target=TARGET):
    logits = reference(input_ids=torch.tensor(ids)[None]).logits[0, place].double()
    return (logits.log_softmax(-1)[target] / np.log(2)).item()


# -- leave one out ----------------------------------------------------------------------------


@torch.no_grad()
def test_occlusion_is_a_loop_over_the_pieces(model, reference):
    encoded = encode(model, SENTENCE)
    assert encoded.tokens[6:9] == ["un", "##believ", "##able"]
    found = occlusion(model, encoded, [PLACE, 5], PLACE, TARGET)
    mask = model.tokenizer.mask_token_id
    ids = encoded.input_ids.copy()
    ids[[PLACE, 5]] = mask
    whole = log2_p(reference, ids)
    assert found.log2_p == pytest.approx(whole, abs=1e-5)
    for place, score in enumerate(found.scores):
        if encoded.special[place] or place in (PLACE, 5):
            assert np.isnan(score)
            continue
        without = ids.copy()
        without[place] = mask
        assert score == pytest.approx(whole - log2_p(reference, without), abs=1e-4)
    assert np.nanmax(np.abs(found.scores)) > 0.01


@torch.no_grad()
def test_occlusion_of_whole_words(model, reference):
    encoded = encode(model, SENTENCE)
    found = occlusion(model, encoded, [PLACE], PLACE, TARGET, whole_words=True)
    ids = encoded.input_ids.copy()
    ids[PLACE] = model.tokenizer.mask_token_id
    without = ids.copy()
    without[6:9] = model.tokenizer.mask_token_id
    expected = log2_p(reference, ids) - log2_p(reference, without)
    np.testing.assert_allclose(found.scores[6:9], expected, atol=1e-4)
    pieces = occlusion(model, encoded, [PLACE], PLACE, TARGET)
    np.testing.assert_allclose(found.scores[1:3], pieces.scores[1:3], atol=1e-6)
    # A word of which one piece is the masked place: its other pieces go together.
    inner = occlusion(model, encoded, [7], 7, TARGET, whole_words=True)
    assert np.isnan(inner.scores[7]) and inner.scores[6] == inner.scores[8]


def test_nothing_but_a_mask_has_nothing_to_leave_out(model):
    for text, place in (("[MASK]", 1), ("[MASK] [MASK]", 2), ("cat", 1)):
        encoded = encode(model, text)
        masked = [i for i, special in enumerate(encoded.special) if not special]
        assert np.isnan(occlusion(model, encoded, masked, place, TARGET).scores).all()
        found = integrated_gradients(model, encoded, masked, place, TARGET)
        assert np.isnan(found.scores).all() and (found.difference, found.error) == (0, 0)
        assert found.complete
        assert np.isfinite(gradient_x_input(model, encoded, masked, place, TARGET).scores).all()


# -- gradients --------------------------------------------------------------------------------


def test_gradient_x_input_is_autograd_by_hand(model, reference):
    encoded = encode(model, SENTENCE)
    found = gradient_x_input(model, encoded, [PLACE, 5], PLACE, TARGET)
    ids = torch.tensor(encoded.input_ids)[None].clone()
    ids[0, [PLACE, 5]] = model.tokenizer.mask_token_id
    embeddings = reference.bert.embeddings.word_embeddings(ids).detach().requires_grad_(True)
    value = reference(inputs_embeds=embeddings).logits[0, PLACE].log_softmax(-1)[TARGET]
    value.backward()
    expected = (embeddings.grad * embeddings).sum(-1)[0].detach() / np.log(2)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-3, atol=1e-5)
    assert found.log2_p == pytest.approx(value.item() / np.log(2), abs=1e-5)
    assert not any(p.requires_grad or p.grad is not None for p in model.model.parameters())


@pytest.mark.parametrize("family", ["roberta", "albert", "electra", "distilbert", "deberta-v2"])
def test_embeddings_as_input_give_what_pieces_give(tmp_path, family):
    """In every family the function that is differentiated is the model's own prediction."""
    tiny_models.save(tmp_path, transformers.AutoModelForMaskedLM, family=family)
    model = load(tmp_path, device="cpu")
    encoded = encode(model, SENTENCE)
    expected = log_probabilities(model, encoded, [PLACE])[0, TARGET] / np.log(2)
    assert gradient_x_input(model, encoded, [PLACE], PLACE, TARGET).log2_p \
        == pytest.approx(expected, abs=1e-4)
    found = integrated_gradients(model, encoded, [PLACE], PLACE, TARGET, "mask")
    masks = dataclasses.replace(encoded, input_ids=np.where(
        encoded.special, encoded.input_ids, model.tokenizer.mask_token_id))
    nothing = log_probabilities(model, masks, [PLACE])[0, TARGET] / np.log(2)
    assert found.difference == pytest.approx(expected - nothing, abs=1e-4)


@pytest.mark.parametrize("baseline", ["pad", "mask"])
def test_integrated_gradients_are_complete_to_1_percent(model, reference, baseline):
    encoded = encode(model, SENTENCE)
    found = integrated_gradients(model, encoded, [PLACE], PLACE, TARGET, baseline)
    ids = encoded.input_ids.copy()
    ids[PLACE] = model.tokenizer.mask_token_id
    start = np.where(encoded.special | (np.arange(len(ids)) == PLACE), ids,
                     getattr(model.tokenizer, f"{baseline}_token_id"))
    with torch.no_grad():
        difference = log2_p(reference, ids) - log2_p(reference, start)
    assert abs(difference) > 0.01
    assert found.difference == pytest.approx(difference, abs=1e-4)
    assert abs(np.nansum(found.scores) - difference) < 0.01 * abs(difference)
    assert found.complete and found.error < 0.01 * abs(difference)
    assert np.isnan(found.scores[[0, PLACE, -1]]).all()
    assert np.isfinite(np.delete(found.scores, [0, PLACE, len(ids) - 1])).all()


def test_the_steps_are_raised_until_it_is_complete():
    """A sharp turn along the line needs more than the fewest steps."""
    said = []
    end, start = torch.ones(1, 1), torch.zeros(1, 1)
    vectors, difference, error, steps = path_integral(
        lambda x: torch.sigmoid(400 * (x - 0.303))[:, 0], end, start, 64,
        lambda message, share: said.append(share))
    assert steps > 32 and error < 0.01 and difference == pytest.approx(1)
    assert vectors.item() == pytest.approx(1, abs=0.01)
    assert max(said) <= 1 and min(said) == 0


def test_integrated_gradients_by_the_definition(model, reference):
    """The integral of Sundararajan et al. 2017, equation 1, as a plain sum of 600 midpoints."""
    encoded = encode(model, "the cat sat on")
    found = integrated_gradients(model, encoded, [PLACE], PLACE, TARGET, "mask")
    ids = torch.tensor(encoded.input_ids)[None].clone()
    ids[0, PLACE] = model.tokenizer.mask_token_id
    table = reference.bert.embeddings.word_embeddings
    end = table(ids).detach()
    blank = ids.clone()
    blank[0, 1:-1] = model.tokenizer.mask_token_id
    start = table(blank).detach()
    alphas = (torch.arange(600) + 0.5) / 600
    points = (start + alphas[:, None, None] * (end - start)).requires_grad_(True)
    value = reference(inputs_embeds=points).logits[:, PLACE].log_softmax(-1)[:, TARGET]
    (gradients,) = torch.autograd.grad(value.sum(), points)
    expected = ((end - start)[0] * gradients.mean(0)).sum(-1) / np.log(2)
    free = [1, 2, 4]
    np.testing.assert_allclose(found.scores[free], expected[free], rtol=0.02, atol=2e-3)


def test_a_linear_function_in_closed_form():
    torch.manual_seed(0)
    weights, end, start = torch.randn(5, 4), torch.randn(1, 5, 4), torch.randn(1, 5, 4)

    def function(x):
        return (x * weights).sum((1, 2)) + 3

    vectors, difference, error, steps = path_integral(function, end, start, rows=7)
    torch.testing.assert_close(vectors, (end - start) * weights, rtol=1e-4, atol=1e-5)
    assert difference == pytest.approx(((end - start) * weights).sum().item(), abs=1e-4)
    assert steps == 32 and error < 1e-4


def test_a_bent_function_in_closed_form():
    """Of f(w.x) every attribution is the difference, shared out as w_i (x_i - b_i)."""
    torch.manual_seed(1)
    weights, end, start = torch.randn(6), torch.randn(1, 6), torch.randn(1, 6)

    def function(x):
        return torch.nn.functional.logsigmoid(4 * x @ weights)

    vectors, difference, error, _ = path_integral(function, end, start, rows=64)
    along = (end - start)[0] * weights
    expected = difference * along / along.sum()
    torch.testing.assert_close(vectors[0].double(), expected.double(), rtol=1e-3, atol=1e-4)
    assert error <= 0.01 * abs(difference)


def test_a_function_that_no_number_of_steps_completes():
    def jump(x):
        return (x > 0.3).float().sum(1) + 0 * x.sum(1)

    _, difference, error, steps = path_integral(jump, torch.ones(1, 1), torch.zeros(1, 1), 4096)
    assert (difference, error, steps) == (1, 1, 512)
    assert not Attribution(np.zeros(1), 0.0, difference, error, steps).complete


def test_refusals(model, tmp_path):
    encoded = encode(model, SENTENCE)
    with pytest.raises(BertScopeError, match="'pad' or 'mask'"):
        integrated_gradients(model, encoded, [PLACE], PLACE, TARGET, "zero")
    for method in (occlusion, gradient_x_input, integrated_gradients):
        with pytest.raises(BertScopeError, match="not a word piece"):
            method(model, encoded, [0], 0, TARGET)
    tiny_models.save(tmp_path, transformers.BertModel)
    bare = load(tmp_path, device="cpu")
    for method in (occlusion, gradient_x_input, integrated_gradients):
        with pytest.raises(BertScopeError, match="no MLM head"):
            method(bare, encoded, [PLACE], PLACE, TARGET)
