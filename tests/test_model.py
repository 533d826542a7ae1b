"""The model and its loss against transformers' own."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForPreTraining

from bertscope.config import ModelConfig, ObjectiveConfig, RunConfig, TrainingConfig
from bertscope.presets import sized
from bertscope.models import MaskedLoss, vocabulary_loss
from bertscope.models import build as build_run
from bertscope.models.encoder import hidden_states_at
from bertscope.objectives import Examples
from bertscope.training.update import batch_tensors
from bertscope.training.optimizer import build_optimizer
from bertscope.training.schedule import is_checkpoint_step, learning_rate


class Vocabulary:
    cls_token_id, sep_token_id, pad_token_id, mask_token_id = 2, 3, 0, 4
    all_special_ids = [0, 1, 2, 3, 4]

    def __len__(self):
        return 192

    def get_vocab(self):
        return {f"[unused{i}]" if i > 180 else str(i): i for i in range(192)}


class Text:
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 15, 400)
    ids = rng.integers(5, 180, lengths.sum()).astype(np.uint16)
    sentence_offsets = np.concatenate([[0], np.cumsum(lengths)])
    document_offsets = np.arange(0, 401, 8)


SHAPE = ModelConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                    intermediate_size=64, dropout=0.0)


def build(shape, tokenizer, max_length, seed):
    return build_run(RunConfig(model=shape, objective=ObjectiveConfig(max_length=max_length),
                               training=TrainingConfig(seed=seed)), tokenizer)


def examples(**objective):
    return Examples(Text, np.arange(50), Vocabulary(), ObjectiveConfig(max_length=48, **objective),
                    seed=3)


def hf_labels(batch):
    labels = np.full(batch.input_ids.size, -100)
    labels[batch.masked_index] = batch.masked_labels
    return torch.from_numpy(labels.reshape(batch.input_ids.shape))


@pytest.fixture(scope="module")
def model():
    return build(SHAPE, Vocabulary(), 48, seed=0).eval()


def test_the_loss_and_its_gradient_equal_bert_for_pretraining(model):
    source = examples()
    for number in range(4):
        batch = source.batch(0, source.order(0, 16)[number])
        inputs = batch_tensors(batch, "cpu")
        out = MaskedLoss(model).eval()(**inputs)
        ours = out["mlm"].loss / batch.masked + out["nsp"].loss / 16
        theirs = model(input_ids=inputs["input_ids"], token_type_ids=inputs["token_type_ids"],
                       attention_mask=inputs["attention_mask"], labels=hf_labels(batch),
                       next_sentence_label=inputs["pair_label"])
        assert abs(ours.item() - theirs.loss.item()) < 1e-5
        parameters = list(model.parameters())
        one, two = (torch.autograd.grad(loss, parameters) for loss in (ours, theirs.loss))
        assert max(float((a - b).abs().max()) for a, b in zip(one, two)) < 1e-5
        right = theirs.prediction_logits.argmax(-1) == hf_labels(batch)
        assert int(out["mlm"].correct) == int(right.sum())


def test_the_last_layer_is_the_same_where_it_is_computed(model):
    source = examples()
    batch = source.batch(0, source.order(0, 16)[0])
    inputs = batch_tensors(batch, "cpu")
    places = torch.from_numpy(np.random.default_rng(0).integers(0, batch.input_ids.shape[1], (16, 5)))
    names = ("input_ids", "token_type_ids", "attention_mask")
    with torch.no_grad():
        ours = hidden_states_at(model.bert, *(inputs[n] for n in names), places)
        theirs = model.bert(**{n: inputs[n] for n in names}).last_hidden_state
    theirs = theirs.gather(1, places[:, :, None].expand(-1, -1, theirs.shape[-1]))
    assert torch.allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("block", [1, 300, 1 << 22])
def test_the_vocabulary_loss_is_cross_entropy_in_blocks(monkeypatch, block):
    monkeypatch.setitem(vocabulary_loss.BLOCK, "cpu", block)
    torch.manual_seed(0)
    inputs = [torch.randn(shape, requires_grad=True)
              for shape in ((11, 6), (90, 6), (90,))]
    labels = torch.randint(0, 90, (11,))
    labels[[2, 7]] = -100
    logits = torch.nn.functional.linear(*inputs)
    expected = torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
    loss, correct = vocabulary_loss.vocabulary_loss(*inputs, labels)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert int(correct) == int((logits.argmax(-1) == labels).sum())
    for ours, theirs in zip(torch.autograd.grad(loss / 9, inputs),
                            torch.autograd.grad(expected / 9, inputs)):
        assert torch.allclose(ours, theirs, atol=1e-6)


def test_a_saved_model_is_a_standard_directory(model, tmp_path):
    model.save_pretrained(tmp_path)
    again, info = AutoModelForPreTraining.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    ids = torch.tensor([[2, 50, 4, 60, 3, 70, 3]])
    with torch.no_grad():
        for key in ("prediction_logits", "seq_relationship_logits"):
            assert torch.equal(again.eval()(ids)[key], model(ids)[key])


def test_building_is_decided_by_the_seed_alone():
    torch.manual_seed(1)
    one = build(SHAPE, Vocabulary(), 48, seed=5)
    drawn = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1), drawn)  # the caller's random state is untouched
    two, other = build(SHAPE, Vocabulary(), 48, seed=5), build(SHAPE, Vocabulary(), 48, seed=6)
    name = "bert.encoder.layer.0.output.dense.weight"
    assert torch.equal(one.state_dict()[name], two.state_dict()[name])
    assert not torch.equal(one.state_dict()[name], other.state_dict()[name])
    assert abs(float(one.state_dict()[name].std()) - 0.02) < 0.002


def test_sinusoidal_positions_begin_as_rotations_of_the_usual_size():
    shape = ModelConfig(hidden_size=32, intermediate_size=64, positions="sinusoidal")
    made = build(shape, Vocabulary(), 48, seed=5)
    table = made.bert.embeddings.position_embeddings.weight.detach().double()
    assert abs(float(table.pow(2).mean().sqrt()) - shape.initializer_range) < 1e-6
    # The similarity of two places depends on their distance alone, and falls at first.
    similarity = table @ table.T
    for distance in range(6):
        band = similarity.diagonal(distance)
        assert float(band.max() - band.min()) < 1e-5 * float(similarity[0, 0])
    assert similarity[0, 0] > similarity[0, 1] > similarity[0, 2]
    plain = build(ModelConfig(hidden_size=32, intermediate_size=64), Vocabulary(), 48, seed=5)
    name = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(made.state_dict()[name], plain.state_dict()[name])


def test_examples_are_a_pure_function_of_seed_epoch_and_index():
    one, two = examples(), examples()
    indices = np.array([5, 2, 9, 0])
    expected = one.batch(3, indices)
    for epoch in (0, 7, 3):  # whatever was asked for before
        two.batch(epoch, np.array([1, 2]))
    got = two.batch(3, indices)
    for name in ("input_ids", "masked_lm_positions", "masked_lm_labels", "source", "pair_label"):
        assert (getattr(expected, name) == getattr(got, name)).all()


def test_dynamic_masks_change_with_the_epoch_and_static_ones_return_after_ten():
    dynamic, static = examples(), examples(masking="static")
    rows = np.arange(8)

    def places(source, epoch):
        batch = source.batch(epoch, rows)
        return batch.source.tolist(), batch.masked_index.tolist()

    assert places(static, 2) == places(static, 12)
    assert places(static, 2) != places(static, 3)
    assert places(dynamic, 2) != places(dynamic, 12)


def test_a_batch_says_where_its_pieces_come_from():
    source = examples()
    batch = source.batch(0, source.order(0, 16)[0])
    flat_source, flat_ids = batch.source.ravel(), batch.input_ids.ravel()
    original = np.where(flat_source >= 0, Text.ids[flat_source].astype(int), -1)
    assert (original[batch.masked_index] == batch.masked_labels).all()
    untouched = np.setdiff1d(np.flatnonzero(flat_source >= 0), batch.masked_index)
    assert (flat_ids[untouched] == original[untouched]).all()
    # Segment A with [CLS] and its [SEP] is 0, B with its [SEP] is 1, padding is 0.
    for row, (ids, segments) in enumerate(zip(batch.input_ids, batch.token_type_ids)):
        first, second = np.flatnonzero(ids == 3)[:2]
        assert (segments[: first + 1] == 0).all() and (segments[first + 1: second + 1] == 1).all()
        assert (segments[second + 1:] == 0).all() and (ids[second + 1:] == 0).all()


def test_random_pieces_are_ordinary_ones():
    source = examples()
    assert set(source.ordinary_ids) == set(range(5, 181))


def test_an_epoch_uses_every_example_once():
    source = examples()
    order = np.concatenate(source.order(4, 16))
    count = len(source.plan(4))
    assert len(np.unique(order)) == order.size == count // 16 * 16


def test_batches_by_tokens_are_full_and_use_every_example_once():
    source = examples(pairs="doc_sentences")
    lengths = source.plan(0).lengths
    order = source.order(0, 16, batch_tokens=400, parts=2)
    used = np.concatenate(order)
    assert len(np.unique(used)) == len(used) > 0.9 * len(lengths)
    for rows in order:
        assert len(rows) % 2 == 0 and len(rows) * lengths[rows].max() <= 800
    assert np.median([len(rows) * lengths[rows].max() for rows in order]) > 700


def test_weight_decay_spares_biases_and_layer_norm(model):
    optimizer = build_optimizer(model, TrainingConfig())
    decay, none = optimizer.param_groups
    spared = {id(p) for p in none["params"]}
    names = {n: id(p) in spared for n, p in model.named_parameters()}
    assert all(spare == (n.endswith("bias") or "LayerNorm" in n) for n, spare in names.items())
    assert not names["bert.embeddings.word_embeddings.weight"]
    assert decay["weight_decay"] == 0.01 and none["weight_decay"] == 0.0
    assert len(decay["params"]) + len(none["params"]) == len(list(model.parameters()))


def test_learning_rate_rises_to_its_peak_and_falls_to_zero():
    def rate(progress, **changes):
        return learning_rate(progress, TrainingConfig(
            **{"learning_rate": 2.0, "warmup": 0.1, "steps": 100, **changes}))

    rates = [rate(step / 100) for step in range(101)]
    assert rates[0] == 0.0 and rates[10] == 2.0 and rates[100] == 0.0
    assert np.allclose(np.diff(rates[:11]), 0.2) and np.allclose(np.diff(rates[10:]), -2 / 90)
    assert rate(0.0, warmup=0.0) == 2.0 and rate(2.0) == 0.0


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant", "inverse_sqrt"])
def test_schedules_equal_transformers_own(schedule):
    from transformers import get_scheduler

    training = TrainingConfig(learning_rate=2.0, warmup_steps=10, steps=100, schedule=schedule)
    name = "constant_with_warmup" if schedule == "constant" else schedule
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    theirs = get_scheduler(name, optimizer, num_warmup_steps=10, num_training_steps=100)
    for step in range(100):
        assert learning_rate(step / 100, training) == pytest.approx(
            theirs.get_last_lr()[0], rel=1e-6, abs=1e-9), step
        optimizer.step()
        theirs.step()


def test_checkpoints_are_dense_early_and_sparse_late():
    steps = [s for s in range(501) if is_checkpoint_step(s, 200)]
    assert steps == [0, 1, 2, 4, 8, 16, 32, 64, 128, 200, 256, 400]


def test_named_sizes_have_the_published_parameter_counts():
    """BERT-base has 110 M parameters and BERT-tiny 4.4 M (Turc et al. 2019), at 30,522 pieces."""
    class Wide(Vocabulary):
        def __len__(self):
            return 30522

    with torch.device("meta"):
        counts = {name: sum(p.numel() for p in build(ModelConfig(**sized(name)), Wide(), 512, 0)
                            .bert.parameters()) for name in ("tiny", "base")}
    assert round(counts["tiny"] / 1e6, 1) == 4.4 and round(counts["base"] / 1e6, 1) == 109.5


def test_evaluation_masks_are_frozen_and_shown_as_mask_whatever_the_run_masks():
    from bertscope.objectives.examples import evaluation_batches

    def frozen(**objective):
        return list(evaluation_batches(Text, np.arange(30), Vocabulary(),
                                       ObjectiveConfig(max_length=48, **objective), 64, 16))

    one, again, other = frozen(), frozen(), frozen(mask_rate=0.4, mask_unit="span", masking="static")
    assert len(one) == len(other) > 1
    for a, b, c in zip(one, again, other):
        assert (a.input_ids == b.input_ids).all() and (a.input_ids == c.input_ids).all()
        assert (a.masked_labels == c.masked_labels).all()
        assert (a.input_ids.ravel()[a.masked_index] == 4).all() and (a.masked_labels != 4).all()
