"""Masked pieces and next sentences, against the logits of transformers."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from bertscope.analysis.activations import encode, load
from bertscope.analysis.pairs import next_sentence, next_sentences
from bertscope.analysis.predictions import log_probabilities, predict, rate, typed_candidates
from bertscope.errors import BertScopeError

SENTENCE = "the cat sat on the new mat ."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("bert")
    tiny_models.save(path)
    return path


@pytest.fixture(scope="module")
def model(folder):
    return load(folder, device="cpu")


@pytest.fixture(scope="module")
def reference(folder):
    return transformers.BertForPreTraining.from_pretrained(
        folder, attn_implementation="eager").eval()


@torch.no_grad()
def probabilities(reference, text, pair=None):
    inputs = tiny_models.tokenizer()(text, pair, return_tensors="pt")
    output = reference(**inputs)
    return (output.prediction_logits[0].double().softmax(-1).numpy(),
            output.seq_relationship_logits[0].double().softmax(-1).numpy())


def test_probabilities_ranks_and_bits(model, reference):
    encoded = encode(model, SENTENCE)
    before = encoded.input_ids.copy()
    cat, mat = encoded.tokens.index("cat"), encoded.tokens.index("mat")
    answers = predict(model, encoded, [mat, cat], k=7)
    np.testing.assert_array_equal(encoded.input_ids, before)
    expected, _ = probabilities(reference, "the [MASK] sat on the new [MASK] .")
    np.testing.assert_allclose(np.exp(log_probabilities(model, encoded, [mat, cat])),
                               expected[[mat, cat]], rtol=1e-4)
    vocabulary = tiny_models.VOCABULARY
    for answer, position in zip(answers, (mat, cat), strict=True):
        p = expected[position]
        original = vocabulary.index(encoded.tokens[position])
        assert (answer.position, answer.original) == (position, vocabulary[original])
        order = sorted(range(len(p)), key=lambda i: -p[i])
        assert [c.id for c in answer.candidates] == order[:7]
        assert [c.token for c in answer.candidates] == [vocabulary[i] for i in order[:7]]
        np.testing.assert_allclose([c.probability for c in answer.candidates], p[order[:7]],
                                   rtol=1e-4)
        assert answer.rank_of_original == 1 + order.index(original)
        assert answer.surprisal_bits == pytest.approx(-np.log2(p[original]), rel=1e-4)
        assert answer.entropy_bits == pytest.approx(-(p * np.log2(p)).sum(), rel=1e-4)


def test_all_candidates_sum_to_one(model):
    encoded = encode(model, SENTENCE)
    (answer,) = predict(model, encoded, [3], k=10_000)
    assert len(answer.candidates) == len(tiny_models.VOCABULARY)
    assert sum(c.probability for c in answer.candidates) == pytest.approx(1)
    assert len(predict(model, encoded, [3], k=0)[0].candidates) == 1
    assert predict(model, encoded, []) == []
    assert log_probabilities(model, encoded, []).shape == (0, len(tiny_models.VOCABULARY))


def test_masked_at_once_is_not_masked_in_turn(model):
    encoded = encode(model, SENTENCE)
    together = predict(model, encoded, [2, 3])[0]
    alone = predict(model, encoded, [2])[0]
    assert abs(together.surprisal_bits - alone.surprisal_bits) > 1e-3


def test_a_mask_that_was_typed_has_no_original(model, reference):
    encoded = encode(model, "the [MASK] sat", "a new [MASK]")
    places = [i for i, t in enumerate(encoded.tokens) if t == "[MASK]"]
    expected, _ = probabilities(reference, "the [MASK] sat", "a new [MASK]")
    for answer in predict(model, encoded, places):
        assert answer.original == "[MASK]"
        assert answer.rank_of_original is None and answer.surprisal_bits is None
        assert answer.candidates[0].id == expected[answer.position].argmax()


def test_a_head_of_zeros_is_uniform(tmp_path):
    saved = tiny_models.save(tmp_path)
    saved.bert.embeddings.word_embeddings.weight.data.zero_()  # tied to the decoder
    saved.cls.predictions.bias.data.zero_()
    saved.save_pretrained(tmp_path)
    model = load(tmp_path, device="cpu")
    (answer,) = predict(model, encode(model, SENTENCE), [2])
    bits = np.log2(len(tiny_models.VOCABULARY))
    assert answer.entropy_bits == pytest.approx(bits) == answer.surprisal_bits
    assert answer.rank_of_original == 1  # all are as likely as each other


def test_rows_beyond_the_tokenizer_have_a_name(tmp_path):
    tiny_models.save(tmp_path, vocab_size=len(tiny_models.VOCABULARY) + 1)
    model = load(tmp_path, device="cpu")
    (answer,) = predict(model, encode(model, SENTENCE), [2], k=10_000)
    assert f"[{len(tiny_models.VOCABULARY)}]" in [c.token for c in answer.candidates]


@pytest.mark.parametrize("position", [0, 9, -1, 10, 99])
def test_special_tokens_cannot_be_masked(model, position):
    encoded = encode(model, SENTENCE)
    assert len(encoded) == 10
    with pytest.raises(BertScopeError, match="is not a word piece"):
        predict(model, encoded, [2, position])


def test_no_mlm_head(tmp_path):
    tiny_models.save(tmp_path, transformers.BertForNextSentencePrediction)
    model = load(tmp_path, device="cpu")
    with pytest.raises(BertScopeError, match="no MLM head"):
        predict(model, encode(model, SENTENCE), [2])
    assert 0 < next_sentence(model, "cat", "dog").p_next < 1


# -- next sentences ---------------------------------------------------------------------------

PAIRS = [("the cat sat .", "a dog walked !"), ("a dog walked !", "the cat sat ."), ("a", "b"),
         ("cat " * 50, "dog"), ("united states of america", "house " * 30)]


def test_next_sentence_is_label_0(model, reference):
    for a, b in PAIRS[:3]:
        _, expected = probabilities(reference, a, b)
        answer = next_sentence(model, a, b)
        assert answer.p_next == pytest.approx(expected[0], abs=1e-5)
        log_odds = np.log(expected[0] / expected[1])
        assert np.subtract(*answer.logits) == pytest.approx(log_odds, abs=1e-4)
        assert not answer.truncated
    assert next_sentence(model, *PAIRS[0]).p_next != next_sentence(model, *PAIRS[1]).p_next


def test_many_pairs_are_the_pairs_one_by_one(model):
    said = []
    answers = next_sentences(model, PAIRS, progress=lambda message, share: said.append(share))
    assert said[-1] == 1
    assert [a.truncated for a in answers] == [False, False, False, True, False]
    for answer, pair in zip(answers, PAIRS, strict=True):
        assert answer.p_next == pytest.approx(next_sentence(model, *pair).p_next, abs=1e-5)
    assert next_sentences(model, []) == []


@pytest.mark.parametrize(("kind", "family", "why"), [
    (transformers.BertForMaskedLM, "bert", "whether one text follows"),
    (transformers.AutoModelForMaskedLM, "roberta", "RoBERTa models are trained without"),
    (transformers.AutoModelForMaskedLM, "albert", "the order of two segments"),
    (transformers.AutoModelForMaskedLM, "distilbert", "whether one text follows"),
])
def test_no_nsp_head(tmp_path, kind, family, why):
    tiny_models.save(tmp_path, kind, family=family)
    with pytest.raises(BertScopeError, match=f"no NSP head: .*{why}"):
        next_sentence(load(tmp_path, device="cpu"), "cat", "dog")


def test_next_sentence_needs_two_texts(model):
    with pytest.raises(BertScopeError, match="empty"):
        next_sentence(model, "cat", " ")


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_typed_candidates_are_pieces_in_their_place_or_say_what_they_are(tmp_path, family):
    tiny_models.save(tmp_path / "m", transformers.AutoModelForMaskedLM, family=family)
    model = load(tmp_path / "m")
    encoded = encode(model, "the cat sat on a mat .")
    cat = encoded.tokens.index("cat")
    found = typed_candidates(model, encoded, cat, ["dog", "walking", "中", "[MASK]", "[SEP]", ""])
    assert [(t.token, t.id) for t in found[:1]] == [
        ("dog", model.tokenizer.convert_tokens_to_ids("dog"))]
    assert found[1].id is None and found[1].pieces == ["walk", "##ing"]
    assert all(t.id is None for t in found[2:])
    assert found[2].pieces == [model.tokenizer.unk_token] and found[5].pieces == []
    inner = encode(model, "unbelievable")
    place = inner.tokens.index("##believ")
    assert typed_candidates(model, inner, place, ["able"])[0].token == "##able"


def test_rates_of_chosen_pieces():
    log_p = np.log(np.array([0.1, 0.6, 0.2, 0.1]))
    assert rate(log_p, [3, 1]) == [(1, pytest.approx(0.6), 1), (3, pytest.approx(0.1), 3)]
