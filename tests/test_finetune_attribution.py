"""Attributions of fine-tuned answers: they add up, and are autograd's on plain transformers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tiny_models
import torch

from bertscope.errors import BertScopeError
from bertscope.finetuning import predict
from bertscope.finetuning.attribution import Target, explain
from bertscope.finetuning.data.examples import Labelled, Question, Tagged
from bertscope.finetuning.heads import KINDS, new_model, save_model, task_config
from bertscope.finetuning.tasks import TaskSpec

LABELS = ("x", "y", "z")
WORDS = ("the", "cat", "sat", "on", "unbelievable", "mat")
EXAMPLES = {
    "sentence": Labelled("the cat sat on the mat", "x"),
    "pair": Labelled("the cat sat", "x", "a dog walked on the mat"),
    "tokens": Tagged(WORDS, ("x",) * 6),
    "question": Question("what sat", "the dog walks . the cat sat on the mat", ()),
}
TARGETS = {"sentence": Target(1), "pair": Target(2), "tokens": Target(1, word=4),
           "question": Target(span=(16, 23))}


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    made = {}
    for task in (*EXAMPLES, "mix", "numbers"):
        kind = {"mix": "pair", "numbers": "sentence"}.get(task, task)
        folder = tmp_path_factory.mktemp(task)
        spec = TaskSpec(kind, () if task in ("question", "numbers") else LABELS,
                        "mix" if task == "mix" else "last")
        config = task_config(tiny_models.config(initializer_range=0.2), spec)
        save_model(new_model(config, spec, 3), folder)
        tiny_models.tokenizer().save_pretrained(folder)
        spec.write(folder)
        made[task] = predict.open_finetuned(folder, "cpu")
    return made


@pytest.mark.parametrize("task", [*EXAMPLES, "mix", "numbers"])
def test_integrated_gradients_add_up_to_the_difference(opened, task):
    kind = {"mix": "pair", "numbers": "sentence"}.get(task, task)
    model = opened[task]
    target = Target() if task == "numbers" else TARGETS[kind]
    example = dataclasses.replace(EXAMPLES[kind], label=0.0) if task == "numbers" else EXAMPLES[kind]
    found = explain(model, example, target)
    attribution = found.attribution
    assert attribution.complete and attribution.steps >= 32
    assert abs(attribution.difference) > 1e-3
    total = np.nansum(attribution.scores)
    assert total == pytest.approx(attribution.difference, rel=0.01, abs=1e-6)
    assert np.isnan(attribution.scores[found.special]).all()
    assert not np.isnan(attribution.scores[~found.special]).any()
    assert found.tokens[0] == "[CLS]" and len(found.tokens) == len(attribution.scores)


def test_the_probability_is_the_one_that_the_page_shows(opened):
    pair = EXAMPLES["pair"]
    choices = {c.label: c.probability for c in predict.classify(opened["pair"], pair.text, pair.pair)}
    found = explain(opened["pair"], pair, TARGETS["pair"], "gradient")
    assert 2 ** found.attribution.log2_p == pytest.approx(choices["z"], abs=1e-5)
    (chances,) = predict.answers(opened["tokens"], [EXAMPLES["tokens"]])
    found = explain(opened["tokens"], EXAMPLES["tokens"], TARGETS["tokens"], "gradient")
    assert 2 ** found.attribution.log2_p == pytest.approx(chances[4][1], abs=1e-5)
    assert [found.tokens[i] for i in found.places] == ["un"]
    example = dataclasses.replace(EXAMPLES["sentence"], label=0.0)
    number = explain(opened["numbers"], example, Target(), "gradient")
    assert number.attribution.log2_p == pytest.approx(
        predict.estimate(opened["numbers"], EXAMPLES["sentence"].text), abs=1e-5)


def test_the_gradient_is_autograds_on_plain_transformers(opened):
    model = opened["pair"]
    plain = KINDS["pair"].from_pretrained(model.path, attn_implementation="eager").eval()
    found = explain(model, EXAMPLES["pair"], TARGETS["pair"], "gradient")
    read = tiny_models.tokenizer()(EXAMPLES["pair"].text, EXAMPLES["pair"].pair, return_tensors="pt")
    vectors = plain.get_input_embeddings()(read["input_ids"]).detach().requires_grad_(True)
    logits = plain(inputs_embeds=vectors, attention_mask=read["attention_mask"],
                   token_type_ids=read["token_type_ids"]).logits
    (logits.log_softmax(-1)[0, 2] / np.log(2)).backward()
    expected = (vectors.grad * vectors).sum(-1)[0].detach().numpy()
    np.testing.assert_allclose(found.attribution.scores, expected, atol=1e-5)
    assert np.abs(expected).max() > 1e-3


def test_a_span_and_no_answer(opened):
    model, example = opened["question"], EXAMPLES["question"]
    found = explain(model, example, TARGETS["question"], "gradient")
    assert [found.tokens[i] for i in found.places] == ["the", "cat"]
    with torch.no_grad():
        plain = KINDS["question"].from_pretrained(model.path, attn_implementation="eager").eval()
        out = plain(**tiny_models.tokenizer()(example.question, example.context, return_tensors="pt"))
    chances = [logits[0].log_softmax(-1).numpy() for logits in (out.start_logits, out.end_logits)]
    expected = (chances[0][found.places[0]] + chances[1][found.places[-1]]) / np.log(2)
    assert found.attribution.log2_p == pytest.approx(expected, abs=1e-4)
    assert explain(model, example, Target(span=(0, 0)), "gradient").places == (0,)


def test_a_long_paragraph_is_read_where_the_answer_is(opened):
    context = "the dog walks . " * 12 + "a cat sat ."
    start = context.index("cat")
    found = explain(opened["question"], dataclasses.replace(EXAMPLES["question"], context=context),
                    Target(span=(start, start + 3)), "gradient")
    assert len(found.tokens) <= 40 and [found.tokens[i] for i in found.places] == ["cat"]


def test_what_cannot_be_asked_is_a_sentence(opened):
    with pytest.raises(BertScopeError, match="no such word"):
        explain(opened["tokens"], EXAMPLES["tokens"], Target(0, word=99))
    with pytest.raises(BertScopeError, match="No window"):
        explain(opened["question"], EXAMPLES["question"], Target(span=(900, 905)))
    with pytest.raises(BertScopeError, match="'gradient' or 'integrated'"):
        explain(opened["pair"], EXAMPLES["pair"], TARGETS["pair"], "magic")
