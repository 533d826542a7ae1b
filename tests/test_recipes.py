"""Every recipe against its family's own class in transformers, and through the whole loop."""

import json

import numpy as np
import pytest
import torch
from test_model import SHAPE, Text, Vocabulary, hf_labels
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    ElectraForMaskedLM,
    ElectraForPreTraining,
)

from bertscope.config import RECIPES, ObjectiveConfig, RunConfig, TrainingConfig
from bertscope.errors import BertScopeError
from bertscope.models import ReplacedTokenLoss, build, build_loss, parts
from bertscope.objectives import Examples
from bertscope.training.update import batch_tensors, update
from bertscope.training.optimizer import build_optimizer


def config(recipe, **changes):
    return RunConfig().override({
        "recipe": recipe, **RECIPES[recipe], "objective.max_length": 48,
        **{f"model.{k}": v for k, v in vars(SHAPE).items()}, **changes})


def made(recipe, **changes):
    run = config(recipe, **changes)
    model = build(run, Vocabulary())
    source = Examples(Text, np.arange(50), Vocabulary(), run.objective, seed=3)
    return run, model, source


def batches(source, number=3):
    return [source.batch(0, rows) for rows in source.order(0, 16)[:number]]


MASKED = ["bert", "roberta", "albert", "deberta"]


@pytest.mark.parametrize("recipe", MASKED)
def test_masked_losses_and_gradients_equal_the_familys_own(recipe):
    run, model, source = made(recipe)
    loss_module = build_loss(run, model).eval()
    for batch in batches(source):
        inputs = batch_tensors(batch, "cpu")
        measured = loss_module(**inputs)
        ours = measured["mlm"].loss / batch.masked
        more = {}
        if batch.pair_label is not None:
            pair = run.objective.pairs
            ours = ours + measured[pair].loss / len(batch.input_ids)
            key = {"nsp": "next_sentence_label", "sop": "sentence_order_label"}[pair]
            more[key] = inputs["pair_label"]
        theirs = model(input_ids=inputs["input_ids"], token_type_ids=inputs["token_type_ids"],
                       attention_mask=inputs["attention_mask"], labels=hf_labels(batch), **more)
        assert abs(ours.item() - theirs.loss.item()) < 1e-5
        used = [p for p in model.parameters()]
        one, two = (torch.autograd.grad(loss, used, allow_unused=True)
                    for loss in (ours, theirs.loss))
        for a, b in zip(one, two):
            assert (a is None) == (b is None)
            assert a is None or float((a - b).abs().max()) < 1e-5


def test_the_causal_loss_equals_transformers_shifted_one():
    run, model, source = made("causal")
    for batch in batches(source):
        inputs = batch_tensors(batch, "cpu")
        out = build_loss(run, model).eval()(**inputs)["clm"]
        labels = inputs["input_ids"].clone()
        if inputs["attention_mask"] is not None:
            labels[inputs["attention_mask"] == 0] = -100
        theirs = model(input_ids=inputs["input_ids"], token_type_ids=inputs["token_type_ids"],
                       attention_mask=inputs["attention_mask"], labels=labels)
        assert (out.loss / batch.count("clm")).item() == pytest.approx(theirs.loss.item(), abs=1e-5)
        assert batch.count("clm") == len(batch.next_pieces)


def test_a_causal_model_does_not_look_to_the_right():
    _, model, source = made("causal")
    ids = torch.from_numpy(batches(source, 1)[0].input_ids)
    other = ids.clone()
    other[:, 20:] = 7
    with torch.no_grad():
        one, two = model.eval()(ids).logits, model(other).logits
    assert torch.allclose(one[:, :20], two[:, :20], atol=1e-6)
    assert not torch.allclose(one[:, 20:], two[:, 20:], atol=1e-3)


def test_the_discriminators_loss_equals_electras_own():
    run, model, source = made("electra")
    batch = batches(source, 1)[0]
    inputs = batch_tensors(batch, "cpu")
    torch.manual_seed(5)
    measured = ReplacedTokenLoss(model).eval()(**inputs)
    hidden = model.generator.generator_predictions(
        model.generator.electra(inputs["input_ids"], attention_mask=inputs["attention_mask"],
                                token_type_ids=inputs["token_type_ids"]).last_hidden_state)
    positions = inputs["masked_lm_positions"]
    hidden = hidden.gather(1, positions[:, :, None].expand(-1, -1, hidden.shape[-1]))
    torch.manual_seed(5)
    original, corrupted = ReplacedTokenLoss.fill(hidden, model.generator.generator_lm_head,
                                                 inputs["input_ids"], positions,
                                                 inputs["masked_lm_labels"])
    labels = (original != corrupted).long()
    theirs = model.discriminator(corrupted, attention_mask=inputs["attention_mask"],
                                 token_type_ids=inputs["token_type_ids"], labels=labels)
    assert (measured["rtd"].loss / batch.count("rtd")).item() == pytest.approx(
        theirs.loss.item(), abs=1e-5)
    # The unmasked text is what the labels say, special pieces are never touched.
    flat = original.flatten().numpy()
    assert (flat[batch.masked_index] == batch.masked_labels).all()
    kept = np.setdiff1d(np.arange(flat.size), batch.masked_index)
    assert (flat[kept] == batch.input_ids.ravel()[kept]).all()
    assert (corrupted.flatten().numpy()[kept] == flat[kept]).all()


def test_electras_samples_follow_the_generators_softmax():
    """Gumbel-max: 40,000 samples of one distribution against its probabilities."""
    torch.manual_seed(0)
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0])

    def head(hidden):
        return logits.expand(*hidden.shape[:2], 4)

    rows = 40_000
    ids, places = torch.full((rows, 1), 9), torch.zeros(rows, 1, dtype=torch.long)
    _, filled = ReplacedTokenLoss.fill(torch.zeros(rows, 1, 1), head, ids, places,
                                       torch.zeros(rows, 1, dtype=torch.long))
    found = torch.bincount(filled.flatten(), minlength=4) / rows
    assert torch.allclose(found, logits.softmax(-1), atol=0.012)


def test_electra_shares_its_embeddings_and_only_those():
    _, model, _ = made("electra")
    generator, discriminator = model.generator.electra, model.discriminator.electra
    assert generator.embeddings is discriminator.embeddings
    assert model.generator.generator_lm_head.weight is generator.embeddings.word_embeddings.weight
    shared = {id(p) for p in generator.parameters()} & {id(p) for p in discriminator.parameters()}
    assert shared == {id(p) for p in generator.embeddings.parameters()}
    assert generator.config.hidden_size < discriminator.config.hidden_size


def test_albert_shares_one_layer_and_factorises():
    counts = {}
    for layers in (2, 6):
        _, model, _ = made("albert", **{"model.num_hidden_layers": layers})
        counts[layers] = sum(p.numel() for p in model.parameters())
    assert counts[2] == counts[6]
    assert model.albert.embeddings.word_embeddings.weight.shape == (192, 16)


@pytest.mark.parametrize("recipe,kind", [
    ("bert", AutoModelForPreTraining), ("roberta", AutoModelForMaskedLM),
    ("albert", AutoModelForPreTraining), ("electra", AutoModelForPreTraining),
    ("deberta", AutoModelForMaskedLM), ("causal", AutoModelForCausalLM)])
def test_a_saved_recipe_is_its_familys_own_directory(recipe, kind, tmp_path):
    _, model, source = made(recipe)
    for name, part in parts(model.eval()).items():
        part.save_pretrained(tmp_path / name)
    again, info = kind.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    ids = torch.from_numpy(batches(source, 1)[0].input_ids)
    first = parts(model)[""]
    with torch.no_grad():
        assert torch.allclose(again.eval()(ids)[0], first(ids)[0], atol=1e-6)
    if recipe == "electra":
        assert isinstance(again, ElectraForPreTraining)
        _, info = ElectraForMaskedLM.from_pretrained(tmp_path / "generator",
                                                     output_loading_info=True)
        assert not info["missing_keys"] and not info["unexpected_keys"]


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_each_recipe_overfits_64_sentences(recipe):
    """Near zero loss on text it has seen a few hundred times: the gradients reach everything."""
    from accelerate import Accelerator

    run = config(recipe, **{"model.hidden_size": 64, "model.num_attention_heads": 2,
                            "model.initializer_range": 0.05, "objective.masking": "static"})
    model = build(run, Vocabulary())

    class Few:
        ids = Text.ids[: Text.sentence_offsets[64]]
        sentence_offsets = Text.sentence_offsets[:65]
        document_offsets = np.arange(0, 65, 8)

    source = Examples(Few, np.arange(8), Vocabulary(), run.objective, seed=0)
    accelerator = Accelerator(cpu=True)
    loss_module, optimizer = accelerator.prepare(
        build_loss(run, model).train(),
        build_optimizer(model, TrainingConfig(learning_rate=3e-3, weight_decay=0.0)))
    batch = source.batch(0, source.order(0, len(source.plan(0)))[0])
    torch.manual_seed(0)
    for _ in range(300):
        measured, _ = update(accelerator, loss_module, optimizer, [batch], run.objectives, 1.0)
    for name, (loss, correct) in measured[0].items():
        chance = {"mlm": 5.0, "clm": 5.0}.get(name, 0.69)
        if name == "rtd":  # against a generator that knows the answers nothing is left to find
            assert loss / batch.count(name) < 0.2
        else:
            assert loss / batch.count(name) < 0.1 * chance, (name, float(loss) / batch.count(name))


def test_objectives_that_a_recipe_has_no_head_for_are_refused():
    for recipe, pairs in (("roberta", "nsp"), ("causal", "sop"), ("albert", "nsp")):
        with pytest.raises(BertScopeError, match="has no head for objective.pairs"):
            config(recipe, **{"objective.pairs": pairs})
    assert config("bert", **{"objective.pairs": "doc_sentences"}).objectives == {"mlm": 1.0}
    assert config("bert", **{"objective.pairs": "sop"}).objectives == {"mlm": 1.0, "sop": 1.0}


def test_bert_without_pairs_has_no_pair_head():
    _, model, _ = made("bert", **{"objective.pairs": "full_sentences"})
    names = {name for name, _ in model.named_parameters()}
    assert not any("pooler" in name or "seq_relationship" in name for name in names)


def test_label_smoothing_equals_torchs_own():
    run, model, source = made("bert", **{"training.label_smoothing": 0.1,
                                         "objective.pairs": "full_sentences"})
    batch = batches(source, 1)[0]
    inputs = batch_tensors(batch, "cpu")
    measured = build_loss(run, model).train()(**inputs)["mlm"]
    logits = model(inputs["input_ids"], attention_mask=inputs["attention_mask"],
                   token_type_ids=inputs["token_type_ids"]).logits.flatten(0, 1)
    theirs = torch.nn.functional.cross_entropy(logits, hf_labels(batch).flatten(),
                                               label_smoothing=0.1)
    assert (measured.loss / batch.masked).item() == pytest.approx(theirs.item(), abs=1e-5)
    one = torch.autograd.grad(measured.loss / batch.masked, model.parameters())
    two = torch.autograd.grad(theirs, model.parameters())
    assert max(float((a - b).abs().max()) for a, b in zip(one, two)) < 1e-5


def test_our_gradient_agrees_with_finite_differences():
    from bertscope.models.vocabulary_loss import vocabulary_loss

    torch.manual_seed(1)
    hidden, weight, bias = torch.randn(5, 4), torch.randn(9, 4), torch.randn(9)
    labels = torch.tensor([0, 8, -100, 3, 3])
    hidden.requires_grad_()
    (gradient,) = torch.autograd.grad(vocabulary_loss(hidden, weight, bias, labels, 0.2)[0], hidden)
    for place in np.ndindex(5, 4):
        step = torch.zeros(5, 4)
        step[place] = 1e-2
        with torch.no_grad():
            up, down = (vocabulary_loss(hidden + s, weight, bias, labels, 0.2)[0].double()
                        for s in (step, -step))
        assert float((up - down) / 0.02) == pytest.approx(float(gradient[place]), abs=2e-3)


def test_the_configuration_survives_json():
    run = config("electra")
    assert RunConfig.from_dict(json.loads(json.dumps(run.to_dict()))) == run
    assert ObjectiveConfig().pairs == "nsp"


def test_a_causal_model_reads_the_text_as_it_is():
    """Its batches, training's and evaluation's, hold no [MASK] and no random piece."""
    from bertscope.objectives.examples import evaluation_batches

    run, model, source = made("causal")
    held_out = list(evaluation_batches(Text, np.arange(50), Vocabulary(), run.objective, 64, 16))
    for batch in batches(source) + held_out:
        text = batch.source >= 0
        assert (batch.input_ids[text] == Text.ids[batch.source[text]]).all()
        assert not batch.masked
    with pytest.raises(BertScopeError, match="mask_rate must be 0 for recipe causal"):
        config("causal", **{"objective.mask_rate": 0.15})
    with pytest.raises(BertScopeError, match="mask_rate must be above 0 for recipe bert"):
        config("bert", **{"objective.mask_rate": 0.0})
