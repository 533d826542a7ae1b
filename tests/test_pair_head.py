"""The head that judges two texts: against transformers' own classes, and against the labels that
the trainer gives."""

import numpy as np
import pytest
import tiny_models
import torch
import transformers

from bertscope.analysis.activations import encode, load, run
from bertscope.analysis.pair_head import NSP, SOP, question, require_pair_head, route
from bertscope.analysis.pairs import next_sentence, next_sentences
from bertscope.errors import BertScopeError

A, B = "the cat sat on the mat .", "a dog walked !"


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    path = tmp_path_factory.mktemp("bert")
    tiny_models.save(path)
    return path


@pytest.fixture(scope="module")
def albert(tmp_path_factory):
    path = tmp_path_factory.mktemp("albert")
    tiny_models.save(path, transformers.AlbertForPreTraining, family="albert")
    return path


def outputs(kind, path):
    """What a class of transformers gives for the pair."""
    model = kind.from_pretrained(path, attn_implementation="eager").eval()
    with torch.no_grad():
        return model, model(**tiny_models.tokenizer()(A, B, return_tensors="pt"),
                            output_hidden_states=True)


def test_the_route_of_bert_ends_at_transformers_own_answer(bert):
    theirs, expected = outputs(transformers.BertForNextSentencePrediction, bert)
    found = route(load(bert, device="cpu"), A, B)
    np.testing.assert_allclose(found.logits, expected.logits[0], atol=1e-5)
    assert found.p_yes == pytest.approx(float(expected.logits.softmax(-1)[0, 0]), abs=1e-6)
    pooled = theirs.bert(**tiny_models.tokenizer()(A, B, return_tensors="pt")).pooler_output[0]
    np.testing.assert_allclose(found.pooled, pooled.detach(), atol=1e-5)
    np.testing.assert_allclose(found.cls, expected.hidden_states[-1][0, 0], atol=1e-5)
    assert found.error < 1e-5 and not found.truncated


def test_votes_and_bias_add_up_to_the_difference_of_the_logits(bert, albert):
    for path in (bert, albert):
        found = route(load(path, device="cpu"), A, B)
        assert found.votes.sum() + found.bias == pytest.approx(found.logits[0] - found.logits[1],
                                                               abs=1e-4)
        assert found.p_yes == pytest.approx(1 / (1 + np.exp(found.logits[1] - found.logits[0])))


def test_each_layer_goes_through_the_same_head(bert, albert):
    theirs, expected = outputs(transformers.BertForNextSentencePrediction, bert)
    with torch.no_grad():
        layers = [theirs.cls(theirs.bert.pooler(states)).softmax(-1)[0, 0]
                  for states in expected.hidden_states]
    np.testing.assert_allclose(route(load(bert, device="cpu"), A, B).layers, layers, atol=1e-5)

    theirs, expected = outputs(transformers.AlbertForPreTraining, albert)
    with torch.no_grad():
        layers = [theirs.sop_classifier(theirs.albert.pooler_activation(
            theirs.albert.pooler(states[:, 0]))).softmax(-1)[0, 0]
            for states in expected.hidden_states]
    found = route(load(albert, device="cpu"), A, B).layers
    np.testing.assert_allclose(found, layers, atol=1e-5)
    assert len(found) == 4 and len(set(found.round(4))) == 4


def test_layer_0_is_the_same_for_every_pair_and_the_last_is_not(bert):
    model = load(bert, device="cpu")
    one, two = route(model, A, B), route(model, B, A)
    assert one.layers[0] == pytest.approx(two.layers[0], abs=1e-6)
    assert abs(one.layers[-1] - two.layers[-1]) > 1e-3


def test_albert_keeps_its_head_for_the_order(albert):
    model = load(albert, device="cpu")
    assert (model.has_mlm_head, model.has_nsp_head, model.has_sop_head) == (True, False, True)
    assert model.missing == model.unexpected == ()
    _, expected = outputs(transformers.AlbertForPreTraining, albert)
    found = route(model, A, B)
    np.testing.assert_allclose(found.logits, expected.sop_logits[0], atol=1e-5)
    np.testing.assert_allclose(run(model, encode(model, A, B)).mlm_logits,
                               expected.prediction_logits[0], atol=1e-5)
    assert question(model) is SOP
    answers = next_sentences(model, [(A, B), (B, A)])
    assert answers[0].p_next == pytest.approx(found.p_yes, abs=1e-6)
    assert answers[1].p_next == pytest.approx(route(model, B, A).p_yes, abs=1e-5)


def test_a_partial_or_foreign_pair_head_is_none(albert, tmp_path):
    from safetensors.torch import load_file, save_file

    tiny_models.save(tmp_path / "partial", transformers.AlbertForPreTraining, family="albert")
    weights = tmp_path / "partial" / "model.safetensors"
    tensors = load_file(weights)
    del tensors["albert.pooler.weight"]
    save_file(tensors, weights, metadata={"format": "pt"})
    model = load(tmp_path / "partial", device="cpu")
    assert model.has_mlm_head and not model.has_sop_head
    with pytest.raises(BertScopeError, match="no NSP head: .*missing too"):
        require_pair_head(model)
    tiny_models.save(tmp_path / "three", transformers.AlbertForPreTraining, family="albert",
                     num_labels=3)
    with pytest.raises(BertScopeError, match="3 labels"):
        route(load(tmp_path / "three", device="cpu"), A, B)


def test_the_question_of_a_checkpoint_of_others_is_the_next_sentence(bert):
    assert question(load(bert, device="cpu")) is NSP


def test_values_that_are_not_finite_are_a_sentence(tmp_path):
    model = tiny_models.save(tmp_path)
    with torch.no_grad():
        model.cls.seq_relationship.weight.fill_(float("nan"))
    model.save_pretrained(tmp_path)
    with pytest.raises(BertScopeError, match="not finite"):
        next_sentence(load(tmp_path, device="cpu"), A, B)


# -- which label is which: against the trainer's own -------------------------------------------


@pytest.mark.parametrize("recipe", ["albert", "bert"])
def test_in_order_is_what_the_trainer_labels_0(tmp_path, recipe):
    """Really trained on documents in which *dawn* always comes before *dusk*."""
    from bertscope.presets import run_config
    from bertscope.runs import create_run
    from bertscope.training.loop import train

    times = ("dawn", "noon", "dusk")
    text = "\n\n".join("\n".join(f"the {time} was {word} and the {time} was good."
                                 for time in times)
                       for word in ("red", "blue", "grey", "cold", "warm", "long") for _ in range(8))
    (tmp_path / "days.txt").write_text(text)
    started = create_run("days", run_config({
        "corpus.source": str(tmp_path / "days.txt"), "objective.pairs": "sop",
        "corpus.vocab_size": 128, "objective.max_length": 32, "objective.short_seq_prob": 0.0,
        "model.hidden_size": 32, "model.intermediate_size": 64, "model.dropout": 0.0,
        "model.initializer_range": 0.1, "training.steps": 100, "training.learning_rate": 0.005,
        "training.batch_size": 16, "training.evaluation_examples": 16, "training.threads": 1,
        "training.checkpoint_every": 1000, "training.evaluate_every": 1000}, recipe=recipe),
        tmp_path)
    train(started)
    model = load(started.checkpoints()[-1].path, device="cpu")
    assert (model.has_sop_head, model.has_nsp_head) == (recipe == "albert", recipe == "bert")
    assert question(model) is SOP  # BERT's own head, taught the other question: the run tells
    early, late = ("the dawn was red and the dawn was good.",
                   "the dusk was red and the dusk was good.")
    assert next_sentence(model, early, late).p_next > 0.8
    assert next_sentence(model, late, early).p_next < 0.2


def test_the_masked_pieces_of_albert_are_still_read_through_its_own_head(albert):
    """Beside the pair head the MLM head goes on to work on any hidden states."""
    from bertscope.analysis.mlm_head import mlm_logits

    model = load(albert, device="cpu")
    found = run(model, encode(model, A, B))
    again = mlm_logits(model, torch.from_numpy(found.hidden_states[-1]))
    np.testing.assert_allclose(again, found.mlm_logits, atol=1e-4)
