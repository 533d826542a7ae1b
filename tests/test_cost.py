"""The plan of a training against closed forms and transformers' own counts."""

import pytest
import torch
from transformers import BertConfig, BertForPreTraining

from bertscope.cli import main
from bertscope.config import RECIPES, RunConfig
from bertscope.presets import sized
from bertscope.errors import BertScopeError
from bertscope.training.cost import plan


def config(recipe="bert", **changes):
    return RunConfig().override({
        "recipe": recipe, **RECIPES[recipe], "corpus.vocab_size": 500, "objective.max_length": 32,
        "model.hidden_size": 32, "model.intermediate_size": 64, "training.batch_size": 4, **changes})


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_every_recipe_can_be_planned(recipe):
    cost = plan(config(recipe))
    assert ("generator" in cost.parameters) == (recipe == "electra")
    assert all(n > 0 for n in (*cost.parameters.values(), *cost.memory.values()))
    assert 0 < cost.attention_share < 0.5 and cost.tokens_per_second > 0 and cost.seconds > 0


def test_parameters_are_transformers_own_count():
    cost = plan(config())
    theirs = BertForPreTraining(BertConfig(
        vocab_size=500, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=32))
    assert sum(cost.parameters.values()) == sum(p.numel() for p in theirs.parameters())
    assert cost.parameters["attention"] == 2 * 4 * (32 * 32 + 32)
    assert cost.parameters["feed-forward"] == 2 * (2 * 32 * 64 + 64 + 32)
    assert cost.memory["optimiser"] == 2 * cost.memory["weights"] == 8 * sum(cost.parameters.values())


def test_operations_are_those_of_the_matrix_products():
    """Causal, so that every place is computed: 2 operations per weight forward, 4 backward, and
    attention's two products of T x T per head."""
    cost = plan(config("causal", **{"model.dropout": 0.0}))
    H, F, L, T, V = 32, 64, 2, 32, 500
    layer = 4 * H * H + 2 * H * F
    head = (H * H + H * V) * (T - 1) / T
    linear = 6 * (L * layer + head)
    attention = 6 * L * 2 * T * H
    assert cost.flops_per_token == pytest.approx(linear + attention, rel=0.02)
    assert cost.attention_share == pytest.approx(attention / (linear + attention), rel=0.02)


def test_twice_the_length_doubles_attentions_share_of_a_token():
    short, long = (plan(config("roberta", **{"objective.max_length": n})) for n in (64, 128))
    assert long.flops_per_token * long.attention_share == pytest.approx(
        2 * short.flops_per_token * short.attention_share, rel=0.1)


def test_a_model_too_large_for_the_app_is_refused_before_it_is_built():
    large = RunConfig().override({f"model.{k}": v for k, v in sized("large").items()})
    with pytest.raises(BertScopeError, match="too large"):
        plan(large, most_parameters=150_000_000)


def test_the_command_prints_the_plan(capsys):
    threads = torch.get_num_threads()
    assert main(["plan", "--vocab-size", "300", "--max-length", "32", "--batch-size", "2"]) == 0
    said = capsys.readouterr().out
    for word in ("parameters", "activations", "MFLOP", "tokens per second", "the whole training"):
        assert word in said
    assert torch.get_num_threads() == threads
