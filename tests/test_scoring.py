"""Pseudo-log-likelihoods against a slow loop over transformers, written from the papers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from bertscope.analysis import activations, scoring
from bertscope.analysis.activations import encode, load, run_at
from bertscope.analysis.scoring import Score, pseudo_perplexity, score, score_encoded
from bertscope.errors import BertScopeError

SENTENCES = ["the cat sat on the new mat .", "unbelievable !", "a dog walked , playing on a mat",
             "the dog sat on the new mat .", "cat", "the cat sat on the new mat .",
             "zebras of america walked <b> 'unplayable'", "the the the the"]
FAMILIES = {"bert": transformers.BertForMaskedLM, "roberta": transformers.RobertaForMaskedLM,
            "albert": transformers.AlbertForMaskedLM, "electra": transformers.ElectraForMaskedLM,
            "deberta-v2": transformers.DebertaV2ForMaskedLM,
            "distilbert": transformers.DistilBertForMaskedLM}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """{family: (ours, transformers' own class on the same folder)}"""
    found = {}
    for family, kind in FAMILIES.items():
        folder = tmp_path_factory.mktemp(family)
        tiny_models.save(folder, transformers.AutoModelForMaskedLM, family=family)
        found[family] = load(folder, device="cpu"), kind.from_pretrained(folder).eval()
    return found


@pytest.fixture(scope="module")
def model(models):
    return models["bert"][0]


@torch.no_grad()
def by_the_formula(reference, text: str, variant: str) -> list[float]:
    """log P(w_t | the others), one masked sentence at a time, pieces of one word by their ``##``."""
    tokenizer = tiny_models.tokenizer()
    pieces = tokenizer.tokenize(text)
    found = []
    for t, piece in enumerate(pieces):
        context = list(pieces)
        context[t] = tokenizer.mask_token
        if variant == "word_l2r":
            later = t + 1
            while later < len(pieces) and pieces[later].startswith("##"):
                context[later] = tokenizer.mask_token
                later += 1
        ids = tokenizer.convert_tokens_to_ids(["[CLS]", *context, "[SEP]"])
        logits = reference(input_ids=torch.tensor([ids])).logits[0, t + 1].double()
        found.append(float(logits.log_softmax(-1)[tokenizer.convert_tokens_to_ids(piece)]))
    return found


@pytest.mark.parametrize("variant", scoring.VARIANTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_batched_is_the_formula(models, family, variant):
    ours, reference = models[family]
    scores = score(ours, SENTENCES, variant)
    for sentence, found in zip(SENTENCES, scores, strict=True):
        expected = by_the_formula(reference, sentence, variant)
        np.testing.assert_allclose(found.log_probabilities, expected, rtol=0, atol=5e-5)  # float32
        assert found.pll == pytest.approx(sum(expected), abs=1e-4)
        np.testing.assert_allclose(found.bits, [-x / math.log(2) for x in expected], rtol=0, atol=7e-5)
    everything = [x for s in SENTENCES for x in by_the_formula(reference, s, variant)]
    assert pseudo_perplexity(scores) == pytest.approx(math.exp(-np.mean(everything)), rel=1e-4)


def test_small_batches_are_one_large_one(model, monkeypatch):
    expected = [s.pll for s in score(model, SENTENCES)]
    monkeypatch.setitem(activations.BATCH_PIECES, "cpu", 17)
    monkeypatch.setattr(scoring, "MOST_LOGITS", 1)
    np.testing.assert_allclose([s.pll for s in score(model, SENTENCES)], expected, atol=5e-5)


def test_words_gather_their_pieces(model):
    (found,) = score(model, ["unbelievable playing , mat"], "word_l2r")
    assert [found.encoded.tokens[i] for i in found.places] == \
        ["un", "##believ", "##able", "play", "##ing", ",", "mat"]
    assert [(w.text, w.pieces) for w in found.words] == [
        ("unbelievable", (1, 2, 3)), ("playing", (4, 5)), (",", (6,)), ("mat", (7,))]
    assert found.words[0].bits == pytest.approx(found.bits[:3].sum())
    assert sum(w.bits for w in found.words) == pytest.approx(-found.pll / math.log(2))


def test_a_word_from_left_to_right_is_a_probability(model, models):
    """By the chain rule the pieces of a two-piece word multiply to P(first, second | the rest), as
    sampled by hand: both masked, the first read, the first put in, the second read."""
    _, reference = models["bert"]
    tokenizer = tiny_models.tokenizer()
    (found,) = score(model, ["a dog walked"], "word_l2r")

    def log_p(pieces, place, piece):
        ids = tokenizer.convert_tokens_to_ids(pieces)
        with torch.no_grad():
            logits = reference(input_ids=torch.tensor([ids])).logits[0, place]
        return float(logits.log_softmax(-1)[tokenizer.convert_tokens_to_ids(piece)])

    both = log_p(["[CLS]", "a", "dog", "[MASK]", "[MASK]", "[SEP]"], 3, "walk") \
        + log_p(["[CLS]", "a", "dog", "walk", "[MASK]", "[SEP]"], 4, "##ed")
    assert found.words[-1].bits == pytest.approx(-both / math.log(2), abs=1e-4)
    (original,) = score(model, ["a dog walked"])
    assert original.log_probabilities[:2] == pytest.approx(found.log_probabilities[:2], abs=5e-5)
    assert abs(original.log_probabilities[2] - found.log_probabilities[2]) > 1e-3


def test_equal_masked_sentences_are_run_once(model, monkeypatch):
    seen = []

    def watched(model, inputs, places, progress=None):
        for indices, states in run_at(model, inputs, places, progress):
            seen.extend(inputs[i].input_ids.tobytes() for i in indices)
            yield indices, states

    monkeypatch.setattr(scoring, "run_at", watched)
    a, b, c = score(model, ["the cat sat", "the dog sat", "the cat sat"])
    assert len(seen) == len(set(seen)) == 5  # 3 + 3 + 3, "the [MASK] sat" and the third shared
    np.testing.assert_array_equal(a.log_probabilities, c.log_probabilities)
    alone = score(model, ["the dog sat"])[0]
    np.testing.assert_allclose(b.log_probabilities, alone.log_probabilities, atol=5e-5)


def test_unlike_a_whole_forward_nothing_is_unmasked(model):
    """The fast variant of BabyBERTa, one pass without masks, is another number."""
    (found,) = score(model, [SENTENCES[0]])
    logits = torch.tensor(activations.run(model, found.encoded).mlm_logits).log_softmax(-1)
    unmasked = [float(logits[i, found.encoded.input_ids[i]]) for i in found.places]
    assert np.abs(found.log_probabilities - unmasked).max() > 1e-3


def test_two_segments_keep_their_types(model, models):
    encoded = encode(model, "the cat", "a dog walked")
    (found,) = score_encoded(model, [encoded])
    place = encoded.tokens.index("dog")
    ids = torch.tensor(encoded.input_ids)[None].clone()
    ids[0, place] = tiny_models.tokenizer().mask_token_id
    with torch.no_grad():
        logits = models["bert"][1](input_ids=ids, token_type_ids=torch.tensor(
            encoded.token_type_ids)[None]).logits[0, place].log_softmax(-1)
    number = found.places.tolist().index(place)
    assert found.log_probabilities[number] == pytest.approx(
        float(logits[encoded.input_ids[place]]), abs=5e-5)
    assert [w.text for w in found.words] == ["the", "cat", "a", "dog", "walked"]


def test_a_uniform_model_has_the_vocabulary_as_perplexity(tmp_path):
    saved = tiny_models.save(tmp_path)
    saved.bert.embeddings.word_embeddings.weight.data.zero_()
    saved.cls.predictions.bias.data.zero_()
    saved.save_pretrained(tmp_path)
    scores = score(load(tmp_path, device="cpu"), SENTENCES)
    assert pseudo_perplexity(scores) == pytest.approx(len(tiny_models.VOCABULARY), rel=1e-5)


def test_what_has_no_score_is_a_sentence(model, tmp_path):
    for text, why in (("cat " * 60, "longer than the 40 pieces"), ("the [MASK] sat", "a gap"),
                      ("[MASK]", "a gap"), ("  ", "empty"), ("", "empty")):
        with pytest.raises(BertScopeError, match=why):
            score(model, [text])
    with pytest.raises(BertScopeError, match="^Text 2: .*empty"):
        score(model, ["cat", ""])
    with pytest.raises(BertScopeError, match="original or word_l2r, not 'l2r'"):
        score(model, ["cat"], "l2r")
    assert score(model, []) == [] and math.isnan(pseudo_perplexity([]))
    tiny_models.save(tmp_path, transformers.BertForNextSentencePrediction)
    with pytest.raises(BertScopeError, match="no MLM head"):
        score(load(tmp_path, device="cpu"), ["cat"])


def test_typed_separators_and_unreadable_letters_are_scored_as_text(model):
    found = score(model, ["the [SEP] cat", "猫 💥", "38 pieces " + "a " * 30])
    assert all(isinstance(s, Score) and np.isfinite(s.pll) for s in found)
    assert model.tokenizer.sep_token_id not in found[0].encoded.input_ids[1:-1]
    assert set(found[1].encoded.tokens[1:-1]) == {"[UNK]"}


def test_progress_counts_masked_sentences_and_may_cancel(model, monkeypatch):
    monkeypatch.setitem(activations.BATCH_PIECES, "cpu", 30)
    told = []
    score(model, SENTENCES, progress=lambda message, share: told.append((message, share)))
    assert told[-1][1] == 1 and "masked sentences" in told[-1][0] and len(told) > 5

    class Cancelled(Exception):
        pass

    def cancel(message, share):
        raise Cancelled

    with pytest.raises(Cancelled):
        score(model, SENTENCES, progress=cancel)


def test_a_diverged_model_is_said(tmp_path):
    saved = tiny_models.save(tmp_path)
    saved.cls.predictions.transform.dense.weight.data.fill_(float("nan"))
    saved.save_pretrained(tmp_path)
    with pytest.raises(BertScopeError, match="diverged"):
        score(load(tmp_path, device="cpu"), ["cat"])
