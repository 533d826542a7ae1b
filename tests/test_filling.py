"""Filling several masks against loops written by hand with transformers."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from bertscope.analysis.activations import encode, load
from bertscope.analysis.filling import ORDERS, fill, filled_text, same_text
from bertscope.errors import BertScopeError

SENTENCE = "the cat sat on the new mat ."
MASKED = [2, 3, 6, 7]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("bert")
    tiny_models.save(path, transformers.BertForMaskedLM)
    return path


@pytest.fixture(scope="module")
def model(folder):
    return load(folder, device="cpu")


@pytest.fixture(scope="module")
def reference(folder):
    return transformers.BertForMaskedLM.from_pretrained(
        folder, attn_implementation="eager").eval()


@torch.no_grad()
def probabilities(reference, ids):
    return reference(torch.tensor([ids])).logits[0].double().softmax(-1).numpy()


def best(p):
    """The most probable piece that is none of [PAD] [UNK] [CLS] [SEP] [MASK]."""
    return max(range(5, len(p)), key=lambda i: p[i])


def by_hand(reference, ids, masked, order):
    """(place, piece, probability) in the order of filling, and the ids at the end."""
    ids, steps, left = list(ids), [], list(masked)
    for i in masked:
        ids[i] = 4
    if order == "all at once":
        p = probabilities(reference, ids)
        steps = [(i, best(p[i]), p[i][best(p[i])]) for i in masked]
        for i, piece, _ in steps:
            ids[i] = piece
        return steps, ids
    while left:
        p = probabilities(reference, ids)
        place = {"left to right": min(left), "right to left": max(left),
                 "most certain first": max(left, key=lambda i: p[i][best(p[i])])}[order]
        ids[place] = best(p[place])
        steps.append((place, ids[place], p[place][ids[place]]))
        left.remove(place)
    return steps, ids


@pytest.mark.parametrize("order", ORDERS)
def test_each_order_is_the_loop_written_by_hand(model, reference, order):
    encoded = encode(model, SENTENCE)
    before = encoded.input_ids.copy()
    steps, ids = by_hand(reference, encoded.input_ids, MASKED, order)
    said = []
    found = fill(model, encoded, MASKED, order, lambda message, share: said.append(share))
    np.testing.assert_array_equal(encoded.input_ids, before)
    assert [(s.place, s.id) for s in found.steps] == [(place, piece) for place, piece, _ in steps]
    assert [s.token for s in found.steps] == [tiny_models.VOCABULARY[p] for _, p, _ in steps]
    np.testing.assert_allclose([s.probability for s in found.steps], [p for *_, p in steps],
                               rtol=1e-4)
    assert found.input_ids.tolist() == ids
    assert found.tokens == [tiny_models.VOCABULARY[i] for i in ids]
    assert found.log_product == pytest.approx(np.log([p for *_, p in steps]).sum(), rel=1e-4)
    total = 0.0
    for place in MASKED:
        without = list(ids)
        without[place] = 4
        total += np.log(probabilities(reference, without)[place][ids[place]])
    assert found.pseudo_log_likelihood == pytest.approx(total, rel=1e-4)
    assert said[-1] == 1 and len(said) == (1 if order == "all at once" else 4)


def test_entropy_is_of_the_moment(model, reference):
    encoded = encode(model, SENTENCE)
    found = fill(model, encoded, [2, 3], "left to right")
    ids = encoded.input_ids.tolist()
    ids[2] = ids[3] = 4
    for step in found.steps:
        p = probabilities(reference, ids)[step.place]
        assert step.entropy_bits == pytest.approx(-(p * np.log2(p)).sum(), rel=1e-4)
        ids[step.place] = step.id


def test_the_order_matters_for_several_and_not_for_one(model):
    encoded = encode(model, SENTENCE)
    fillings = [fill(model, encoded, MASKED, order) for order in ORDERS]
    assert not same_text(fillings)
    one = [fill(model, encoded, [3], order) for order in ORDERS]
    assert same_text(one) and len({round(f.log_product, 6) for f in one}) == 1
    assert one[0].log_product == pytest.approx(one[0].pseudo_log_likelihood, rel=1e-4)


def test_special_pieces_are_never_put_in(tmp_path):
    saved = tiny_models.save(tmp_path, transformers.BertForMaskedLM)
    saved.cls.predictions.bias.data[:5] = 100.0
    saved.save_pretrained(tmp_path)
    model = load(tmp_path, device="cpu")
    for order in ORDERS:
        found = fill(model, encode(model, SENTENCE), [2, 3], order)
        assert all(step.id >= 5 and step.probability < 1e-20 for step in found.steps)


def test_the_text_with_its_fillings(model):
    encoded = encode(model, "The  [MASK] walked, <b>on</b> [MASK]!")
    masked = [i for i, t in enumerate(encoded.tokens) if t in ("[MASK]", "##ed")]
    found = fill(model, encoded, masked, "left to right")
    words = {s.place: s.token.removeprefix("##") for s in found.steps}
    first, ed, last = (words[i] for i in sorted(words))
    assert filled_text(encoded, found) == f"The  {first} walk{ed}, <b>on</b> {last}!"


def test_refusals(model, tmp_path):
    encoded = encode(model, SENTENCE)
    with pytest.raises(BertScopeError, match="one of the orders"):
        fill(model, encoded, [2], "backwards")
    with pytest.raises(BertScopeError, match="not a word piece"):
        fill(model, encoded, [0], ORDERS[0])
    tiny_models.save(tmp_path, transformers.BertModel)
    bare = load(tmp_path, device="cpu")
    with pytest.raises(BertScopeError, match="no MLM head"):
        fill(bare, encoded, [2], ORDERS[0])
