"""Heads: the same as transformers' own classes and pipelines, any layer, mixtures, what is frozen."""

import numpy as np
import pytest
import tiny_models
import torch
from transformers import (
    AutoModelForMaskedLM, BertForMaskedLM, BertForPreTraining, BertForSequenceClassification,
    BertForTokenClassification, pipeline)

from bertscope.config import TrainingConfig
from bertscope.errors import BertScopeError
from bertscope.finetuning.config import FinetuneConfig, HeadConfig, default_learning_rate
from bertscope.finetuning.data import Answer, Dataset, Labelled, Question, Tagged
from bertscope.finetuning.heads import (
    KINDS, MixedLayers, body, depth, freeze, load_model_weights, logits_of, save_model)
from bertscope.finetuning.optimizer import build_optimizer
from bertscope.finetuning.predict import (
    answer, classify, estimate, open_finetuned, tag, task_of)
from bertscope.finetuning.start import begin
from bertscope.finetuning.work import spec_of

EXAMPLES = {
    "sentence": [Labelled("a cat sat .", "no"), Labelled("the dog", "yes")],
    "pair": [Labelled("a cat", "no", "the dog ?"), Labelled("the dog", "yes", "the dog")],
    "tokens": [Tagged(("the", "cat"), ("D", "N"))],
    "question": [Question("who ?", "the cat sat", (Answer("cat", 4),))],
}


def dataset(task, numbers=False):
    examples = EXAMPLES[task]
    labels = {"tokens": ("D", "N"), "question": ()}.get(task, ("no", "yes"))
    if numbers:
        examples, labels = [Labelled("a", 4.0), Labelled("b", 6.0)], ()
    return Dataset("d", task, examples, examples, [], labels)


def begun(folder, task="sentence", data=None, **changes):
    data = data or dataset(task)
    config = FinetuneConfig().override({"start": str(folder), "head.dropout": 0.0} | {
        k.replace("__", "."): v for k, v in changes.items()})
    spec = spec_of(config, data)
    started = begin(config, str(folder), data, spec, folder)
    started.model.eval()
    return started, spec


@pytest.fixture
def checkpoint(tmp_path):
    """A BERT of 3 layers with both heads, and its encoder."""
    return tmp_path, tiny_models.save(tmp_path)


INPUTS = (torch.tensor([[2, 5, 6, 7, 3], [2, 9, 8, 3, 0]]), torch.tensor([[0, 0, 0, 1, 1], [0] * 5]),
          torch.tensor([[1] * 5, [1, 1, 1, 1, 0]]))


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "electra", "distilbert", "deberta-v2"])
@pytest.mark.parametrize("task", ["sentence", "tokens", "question"])
def test_logits_are_the_stock_models_own_and_the_encoder_the_checkpoints(family, task, tmp_path):
    pretrained = tiny_models.save(tmp_path, AutoModelForMaskedLM, family=family)
    started, spec = begun(tmp_path, task)
    assert isinstance(started.model, type(KINDS[task].from_config(started.model.config)))
    ids, types, mask = INPUTS
    types = types if getattr(started.model.config, "type_vocab_size", 0) > 1 else types * 0
    more = {"token_type_ids": types} if getattr(started.model.config, "type_vocab_size", 0) else {}
    with torch.no_grad():
        ours = logits_of(started.model, spec, ids, types, mask)
        stock = started.model(input_ids=ids, attention_mask=mask, **more)
        theirs = torch.stack([stock.start_logits, stock.end_logits], -1) if task == "question" \
            else stock.logits
        hidden = [m(input_ids=ids, attention_mask=mask, **more).last_hidden_state
                  for m in (started.model.base_model, pretrained.base_model)]
    kept = mask.bool() if task != "sentence" else slice(None)
    assert torch.allclose(ours[kept], theirs[kept], atol=1e-5)
    assert torch.allclose(hidden[0][mask.bool()], hidden[1][mask.bool()], atol=1e-5)


def test_the_pooler_is_the_pretrained_one_where_there_is_one(checkpoint, tmp_path):
    folder, pretrained = checkpoint
    started, _ = begun(folder)
    assert started.facts["pooler"] == "pretrained"
    assert torch.equal(started.model.bert.pooler.dense.weight, pretrained.bert.pooler.dense.weight)
    tiny_models.save(tmp_path / "mlm", BertForMaskedLM)
    assert begun(tmp_path / "mlm")[0].facts["pooler"] == "random"
    assert "pooler" not in begun(folder, "tokens")[0].facts


def test_a_layers_number_cuts_off_those_above_it(checkpoint):
    folder, pretrained = checkpoint
    started, spec = begun(folder, "tokens", head__layer="2")
    ids, types, mask = INPUTS
    with torch.no_grad():
        ours = logits_of(started.model, spec, ids, types, mask)
        second = pretrained.bert(ids, mask, types, output_hidden_states=True).hidden_states[2]
        theirs = started.model.classifier(second)
    assert torch.allclose(ours[mask.bool()], theirs[mask.bool()], atol=1e-5)
    assert started.model.config.num_hidden_layers == 2 == started.facts["layers"]
    with pytest.raises(BertScopeError, match="the encoder has 3 layers"):
        begun(folder, head__layer="4")


@pytest.mark.parametrize("task", ["sentence", "tokens", "question"])
def test_a_mixture_is_the_weighted_sum_of_all_layers_and_survives_its_files(checkpoint, task, tmp_path):
    folder, pretrained = checkpoint
    started, spec = begun(folder, task, head__layer="mix")
    model = started.model
    assert isinstance(model, MixedLayers)
    with torch.no_grad():
        model.mixture.copy_(torch.tensor([0.5, -1.0, 2.0, 0.0]))
        model.gamma.fill_(1.5)
        ids, types, mask = INPUTS
        states = pretrained.bert(ids, mask, types, output_hidden_states=True).hidden_states
        weights = np.exp([0.5, -1, 2, 0]) / np.exp([0.5, -1, 2, 0]).sum()
        mixed = 1.5 * sum(float(w) * s for w, s in zip(weights, states))
        if task == "sentence":
            mixed = torch.tanh(mixed[:, 0] @ model.dense.weight.T + model.dense.bias)
        expected = mixed @ model.classifier.weight.T + model.classifier.bias
        found = logits_of(model, spec, ids, types, mask)
    assert torch.allclose(found, expected, atol=1e-5)
    save_model(model, tmp_path / "saved")
    started.loaded.tokenizer.save_pretrained(tmp_path / "saved")
    spec.write(tmp_path / "saved")
    with torch.no_grad():
        opened = open_finetuned(tmp_path / "saved")
        assert torch.allclose(logits_of(opened.model, spec, ids, types, mask), found, atol=1e-5)
    other, _ = begun(folder, "tokens" if task == "sentence" else "sentence", head__layer="mix")
    if task != "question":
        with pytest.raises((ValueError, RuntimeError)):
            load_model_weights(other.model, tmp_path / "saved")


def test_random_weights_have_the_shape_and_follow_the_seed(checkpoint):
    folder, _ = checkpoint
    one, two = (begun(folder, start=f"random:{folder}", training__seed=s)[0].model for s in (0, 1))
    again = begun(folder, start=f"random:{folder}")[0].model
    words = [m.bert.embeddings.word_embeddings.weight for m in (one, two, again)]
    assert torch.equal(words[0], words[2]) and not torch.equal(words[0], words[1])
    assert words[0].shape == (len(tiny_models.VOCABULARY), 16)


def test_a_number_is_first_guessed_as_the_mean(checkpoint):
    started, spec = begun(checkpoint[0], data=dataset("sentence", numbers=True))
    assert started.model.config.num_labels == 1 and started.model.config.problem_type == "regression"
    assert started.model.classifier.bias.item() == 5.0


# -- what is trained --------------------------------------------------------------------------


@pytest.mark.parametrize("name, level", [
    ("bert.embeddings.word_embeddings.weight", 0), ("bert.encoder.layer.0.output.dense.bias", 1),
    ("bert.encoder.layer.2.attention.self.query.weight", 3), ("bert.pooler.dense.weight", 4),
    ("classifier.weight", 4), ("distilbert.transformer.layer.1.ffn.lin1.weight", 2),
    ("albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight", 3),
    ("albert.encoder.embedding_hidden_mapping_in.weight", 0), ("albert.pooler.weight", 4),
    ("deberta.encoder.rel_embeddings.weight", 0), ("deberta.encoder.LayerNorm.weight", 0),
    ("encoder.encoder.layer.1.output.dense.bias", 2), ("mixture", 4)])
def test_depths(name, level):
    assert depth(name, 3) == level


def frozen(model) -> set[int]:
    return {depth(n, 3) for n, p in model.named_parameters() if not p.requires_grad}


@pytest.mark.parametrize("settings, levels", [
    ({}, set()), ({"freeze_embeddings": True}, {0}), ({"freeze_layers": 2}, {0, 1, 2}),
    ({"freeze_layers": 3}, {0, 1, 2, 3})])
def test_freezing(checkpoint, settings, levels):
    started, _ = begun(checkpoint[0])
    freeze(started.model, HeadConfig(**settings))
    assert frozen(started.model) == levels


def test_layers_further_down_learn_more_slowly(checkpoint):
    started, _ = begun(checkpoint[0])
    groups = build_optimizer(started.model, TrainingConfig(), 0.5).param_groups
    scale = {id(p): g["scale"] for g in groups for p in g["params"]}
    decay = {id(p): g["weight_decay"] for g in groups for p in g["params"]}
    for name, parameter in started.model.named_parameters():
        assert scale[id(parameter)] == 0.5 ** (4 - depth(name, 3))
        assert (decay[id(parameter)] == 0) == (name.endswith("bias") or "LayerNorm" in name)
    assert groups[0]["scale"] == 1.0 and len({id(p) for g in groups for p in g["params"]}) == len(scale)
    assert len(build_optimizer(started.model, TrainingConfig(), 1.0).param_groups) == 2


def test_the_topmost_layers_begin_anew(checkpoint):
    folder, pretrained = checkpoint
    started, _ = begun(folder, head__reinit_layers=1, training__seed=7)
    layers = started.model.bert.encoder.layer
    same = [torch.equal(a.output.dense.weight, b.output.dense.weight)
            for a, b in zip(layers, pretrained.bert.encoder.layer)]
    assert same == [True, True, False] and started.facts["pooler"] == "random"
    with pytest.raises(BertScopeError, match="reinit_layers is 4"):
        begun(folder, head__reinit_layers=4)


def test_a_causal_encoder_reads_both_ways_from_now_on(tmp_path):
    from transformers import BertLMHeadModel

    tiny_models.save(tmp_path, BertLMHeadModel, is_decoder=True)
    started, spec = begun(tmp_path)
    ids, types, mask = INPUTS
    other = ids.clone()
    other[0, 3] = 11
    with torch.no_grad():
        one, two = (logits_of(started.model, spec, i, types, mask)[0] for i in (ids, other))
    assert not torch.allclose(one, two)


def test_learning_rates_by_size():
    assert [default_learning_rate(h) for h in (1024, 768, 128)] == [2e-5, 3e-5, 1e-3]


# -- opened by others and from others ---------------------------------------------------------


def saved(folder, to, task, **changes):
    started, spec = begun(folder, task, **changes)
    save_model(started.model, to)
    started.loaded.tokenizer.save_pretrained(to)
    spec.write(to)
    return open_finetuned(to)


@pytest.mark.parametrize("layer", ["last", "2"])
def test_a_pipeline_gives_the_same_labels_and_tags(checkpoint, tmp_path, layer):
    text = "the unbelievable cat walked in a house ."
    model = saved(checkpoint[0], tmp_path / "s", "sentence", head__layer=layer)
    theirs = pipeline("text-classification", str(tmp_path / "s"), top_k=None)([text])[0]
    ours = classify(model, text)
    assert [c.label for c in ours] == [t["label"] for t in theirs] and ours[0].label in ("no", "yes")
    assert [c.probability for c in ours] == pytest.approx([t["score"] for t in theirs], abs=1e-5)

    model = saved(checkpoint[0], tmp_path / "t", "tokens", head__layer=layer)
    theirs = pipeline("token-classification", str(tmp_path / "t"), ignore_labels=[],
                      aggregation_strategy="none")(text)
    first = [t for t in theirs if not t["word"].startswith("##")]
    assert [(w.tag, w.start) for w in tag(model, text)] == [(t["entity"], t["start"]) for t in first]
    assert [w.probability for w in tag(model, text)] == pytest.approx(
        [t["score"] for t in first], abs=1e-5)

    model = saved(checkpoint[0], tmp_path / "p", "pair", head__layer=layer)
    theirs = pipeline("text-classification", str(tmp_path / "p"), top_k=None)(
        [{"text": "the cat", "text_pair": "a dog ?"}])[0]
    ours = classify(model, "the cat", "a dog ?")
    assert {c.label: round(c.probability, 4) for c in ours} == {
        t["label"]: round(t["score"], 4) for t in theirs}


def test_an_answer_is_plain_transformers_best_span(checkpoint, tmp_path):
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer

    model = saved(checkpoint[0], tmp_path / "q", "question")
    question, context = "who sat ?", "the dog walked and the cat sat on a mat ."
    own = AutoModelForQuestionAnswering.from_pretrained(tmp_path / "q").eval()
    encoded = AutoTokenizer.from_pretrained(tmp_path / "q")(
        question, context, return_tensors="pt", return_offsets_mapping=True)
    offsets = encoded.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        found = own(**encoded)
    inside = [i for i, s in enumerate(encoded.sequence_ids(0)) if s == 1]
    best = max(((float(found.start_logits[0, i] + found.end_logits[0, j]), i, j)
                for i in inside for j in inside if i <= j), key=lambda x: x[0])
    span = answer(model, question, context)[0]
    assert span.score == pytest.approx(best[0], abs=1e-4)
    assert span.text == context[offsets[best[1]][0]:offsets[best[2]][1]]


def test_checkpoints_of_others_are_opened_by_their_architecture(tmp_path):
    tiny_models.save(tmp_path / "a", BertForSequenceClassification,
                     id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1})
    tiny_models.save(tmp_path / "b", BertForTokenClassification, num_labels=3)
    tiny_models.save(tmp_path / "c", BertForSequenceClassification, num_labels=1)
    tiny_models.save(tmp_path / "d", BertForPreTraining)
    assert {c.label for c in classify(open_finetuned(tmp_path / "a"), "a cat")} == {"bad", "good"}
    assert tag(open_finetuned(tmp_path / "b"), "a cat")[0].tag.startswith("LABEL_")
    assert isinstance(estimate(open_finetuned(tmp_path / "c"), "a cat"), float)
    assert task_of(tmp_path / "d") is None
    with pytest.raises(BertScopeError, match="no head for a task"):
        open_finetuned(tmp_path / "d")


def test_what_cannot_be_asked_is_said_in_a_sentence(checkpoint, tmp_path):
    pair = saved(checkpoint[0], tmp_path / "p", "pair")
    words = saved(checkpoint[0], tmp_path / "w", "tokens")
    for ask, said in ((lambda: classify(pair, "a"), "second one is empty"),
                      (lambda: classify(pair, " ", "b"), "text is empty"),
                      (lambda: tag(pair, "a"), "fine-tuned for the task pair"),
                      (lambda: estimate(pair, "a", "b"), "predicts a label"),
                      (lambda: answer(words, "a", "b"), "fine-tuned for the task tokens")):
        with pytest.raises(BertScopeError, match=said):
            ask()
    assert tag(words, "\u200b")[0].word == "\u200b"


def test_a_damaged_head_is_said_in_a_sentence(checkpoint, tmp_path):
    saved(checkpoint[0], tmp_path / "m", "tokens", head__layer="mix")
    (tmp_path / "m" / "head.safetensors").write_bytes(b"no tensors")
    with pytest.raises(BertScopeError, match="The head of .* cannot be opened"):
        open_finetuned(tmp_path / "m")
    assert body(begun(checkpoint[0], head__layer="mix")[0].model) is not None
