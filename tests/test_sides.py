"""One place from the left, the right and both, against transformers on texts cut by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from bertscope.analysis.activations import encode, load
from bertscope.analysis.causal import next_token_logits
from bertscope.analysis.sides import left_to_right, piece_id, same_vocabulary, sides
from bertscope.errors import BertScopeError

SENTENCE = "the cat sat on the new mat ."


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    tiny_models.save(folder, transformers.BertForMaskedLM)
    return load(folder, device="cpu")


@pytest.fixture(scope="module")
def causal_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("causal")
    tiny_models.save(folder, transformers.BertLMHeadModel, seed=4, is_decoder=True)
    return folder


@pytest.fixture(scope="module")
def causal(causal_folder):
    return load(causal_folder, device="cpu")


@torch.no_grad()
def expected(model, text, nth=0):
    """transformers' log p at the nth mask of a text."""
    reference = transformers.BertForMaskedLM.from_pretrained(
        model.path, attn_implementation="eager").eval()
    tokenizer = tiny_models.tokenizer()
    inputs = tokenizer(text, return_tensors="pt")
    place = np.flatnonzero(inputs.input_ids[0].numpy() == tokenizer.mask_token_id)[nth]
    return reference(**inputs).logits[0, place].double().log_softmax(-1).numpy()


def test_the_other_side_is_cut_off(model):
    found = sides(model, encode(model, SENTENCE), [4], 4)
    texts = {"left": "the cat sat [MASK]", "right": "[MASK] the new mat .",
             "both": "the cat sat [MASK] the new mat ."}
    for side, text in texts.items():
        np.testing.assert_allclose(found[side].log_p, expected(model, text), atol=1e-5)
        read = found[side].tokens
        assert " ".join(read[1:-1]) == text and (read[0], read[-1]) == ("[CLS]", "[SEP]")
        assert read[found[side].place] == "[MASK]"
    assert np.abs(found["left"].log_p - found["both"].log_p).max() > 0.01


def test_the_other_side_is_all_masks(model):
    found = sides(model, encode(model, SENTENCE), [4], 4, cut=False)
    mask = "[MASK]"
    texts = {"left": (f"the cat sat {mask}" + f" {mask}" * 4, 0),
             "right": (f"{mask} " * 3 + f"{mask} the new mat .", 3)}
    for side, (text, nth) in texts.items():
        np.testing.assert_allclose(found[side].log_p, expected(model, text, nth), atol=1e-5)
        assert found[side].place == 4


def test_nothing_of_the_other_side_is_left(model):
    """Any right context gives the same answer from the left, and the other way round."""
    left = [sides(model, encode(model, f"the cat {rest}"), [3], 3)["left"].log_p
            for rest in ("sat on the mat", "walk", "of america united states house . .")]
    for other in left[1:]:
        np.testing.assert_allclose(other, left[0], atol=1e-5)
    right = [sides(model, encode(model, f"{begin} sat on"), [n], n)["right"].log_p
             for begin, n in (("the cat", 3), ("sat", 2), ("a new house of a dog", 7))]
    for other in right[1:]:
        np.testing.assert_allclose(other, right[0], atol=1e-5)


def test_other_masks_stay_hidden_and_one_word_is_all_there_is(model):
    found = sides(model, encode(model, SENTENCE), [2, 4], 4)
    np.testing.assert_allclose(found["left"].log_p, expected(model, "the [MASK] sat [MASK]", 1),
                               atol=1e-5)
    np.testing.assert_allclose(found["right"].log_p, expected(model, "[MASK] the new mat ."),
                               atol=1e-5)
    alone = sides(model, encode(model, "cat"), [1], 1)
    for side in alone.values():
        assert side.tokens == ["[CLS]", "[MASK]", "[SEP]"]
        np.testing.assert_allclose(side.log_p, alone["both"].log_p, atol=1e-6)
    with pytest.raises(BertScopeError, match="not a word piece"):
        sides(model, encode(model, "cat"), [0], 0)


# -- the causal model -------------------------------------------------------------------------


@torch.no_grad()
def test_next_token_logits_are_the_models_own_and_look_only_left(causal, causal_folder):
    reference = transformers.BertLMHeadModel.from_pretrained(
        causal_folder, attn_implementation="eager").eval()
    encoded = encode(causal, SENTENCE)
    whole = reference(**tiny_models.tokenizer()(SENTENCE, return_tensors="pt"),
                      use_cache=False).logits[0].numpy()
    found = next_token_logits(causal, encoded)
    np.testing.assert_allclose(found, whole, atol=1e-5)
    # A model's own word: the loss of transformers is the mean of these rows' surprisals.
    inputs = tiny_models.tokenizer()(SENTENCE, return_tensors="pt")
    loss = reference(**inputs, labels=inputs.input_ids, use_cache=False).loss.item()
    log_p = found - np.log(np.exp(found).sum(-1, keepdims=True))
    ids = encoded.input_ids
    assert loss == pytest.approx(-np.mean([log_p[t, ids[t + 1]] for t in range(len(ids) - 1)]),
                                 rel=1e-5)
    other = encode(causal, "the cat sat walk un a house ?")
    np.testing.assert_allclose(next_token_logits(causal, other)[:4], found[:4], atol=1e-5)


def test_a_causal_model_is_asked_at_the_same_place(model, causal):
    encoded = encode(model, SENTENCE)
    found = left_to_right(causal, model, encoded, [4], 4)
    assert found.tokens == ["[CLS]", "the", "cat", "sat"] and found.place == 4
    rows = next_token_logits(causal, encode(causal, SENTENCE)).astype(np.float64)
    np.testing.assert_allclose(found.log_p, rows[3] - np.log(np.exp(rows[3]).sum()), atol=1e-5)
    first = left_to_right(causal, model, encoded, [1], 1)
    assert first.tokens == ["[CLS]"]
    hidden = left_to_right(causal, model, encoded, [2, 4, 6], 4)
    assert hidden.tokens == ["[CLS]", "the", "[MASK]", "sat"]
    expected = next_token_logits(causal, encode(causal, "the [MASK] sat on"))[3]
    np.testing.assert_allclose(np.exp(hidden.log_p),
                               np.exp(expected) / np.exp(expected).sum(), rtol=1e-4)


def test_a_causal_model_with_other_pieces(model, tmp_path):
    smaller = [w for w in tiny_models.VOCABULARY if w not in ("walk", "mat")] + ["walked"]
    tiny_models.save(tmp_path, transformers.BertLMHeadModel, is_decoder=True)
    transformers.BertTokenizerFast(vocab={w: i for i, w in enumerate(smaller)}).save_pretrained(
        tmp_path)
    causal = load(tmp_path, device="cpu")
    assert not same_vocabulary(model, causal) and same_vocabulary(model, model)
    assert piece_id(causal, "walk") is None and piece_id(causal, "walked") == len(smaller) - 1
    assert piece_id(causal, "[UNK]") == 1
    encoded = encode(model, "the cat walked on")
    assert encoded.tokens[3:5] == ["walk", "##ed"]
    assert left_to_right(causal, model, encoded, [3], 3).tokens == ["[CLS]", "the", "cat"]
    with pytest.raises(BertScopeError, match="other pieces"):
        left_to_right(causal, model, encoded, [4], 4)
    long = encode(model, "cat " * 39)
    short = dataclasses.replace(causal, text_encoder=type(causal.text_encoder)(
        causal.tokenizer, 12, True, len(tiny_models.VOCABULARY)), max_length=12)
    assert left_to_right(short, model, long, [10], 10).place == 10
    with pytest.raises(BertScopeError, match="12 pieces at most"):
        left_to_right(short, model, long, [20], 20)


def test_a_typed_mask_of_another_family(causal, tmp_path):
    """The same text where [MASK] has another name, as in RoBERTa's vocabulary."""
    tiny_models.save(tmp_path, transformers.BertForMaskedLM)
    words = ["<mask-it>" if w == "[MASK]" else w for w in tiny_models.VOCABULARY]
    transformers.BertTokenizerFast(vocab={w: i for i, w in enumerate(words)},
                                   mask_token="<mask-it>").save_pretrained(tmp_path)
    other = load(tmp_path, device="cpu")
    encoded = encode(other, "the [MASK] sat on")
    assert encoded.tokens[2] == "<mask-it>" and encoded.text == "the <mask-it> sat on"
    assert left_to_right(causal, other, encoded, [2, 4], 4).tokens == ["[CLS]", "the", "[MASK]", "sat"]


def test_a_head_that_is_not_there(model, causal, causal_folder, tmp_path):
    with pytest.raises(BertScopeError, match="no causal model"):
        next_token_logits(model, encode(model, "cat"))
    with pytest.raises(BertScopeError, match="causal model: it predicts the next piece"):
        sides(causal, encode(causal, "cat"), [1], 1)
    from safetensors.torch import load_file, save_file

    for file in causal_folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = load_file(causal_folder / "model.safetensors")
    save_file({n: t for n, t in weights.items() if not n.startswith("cls.")},
              tmp_path / "model.safetensors", metadata={"format": "pt"})
    headless = load(tmp_path, device="cpu")
    with pytest.raises(BertScopeError, match="no causal model"):
        next_token_logits(headless, encode(headless, "cat"))
