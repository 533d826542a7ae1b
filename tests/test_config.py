import json

import pytest

from bertscope.config import SECTIONS, RunConfig
from bertscope.errors import BertScopeError
from bertscope.presets import CORPUS_DEFAULTS, SIZES, run_config, sized
from bertscope.settings import knobs


def test_a_configuration_survives_json():
    made = RunConfig().override({"training.steps": 7, "corpus.documents": 30,
                                 "training.max_minutes": 2})
    assert RunConfig.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    assert made.training.max_minutes == 2.0


@pytest.mark.parametrize("key, value, part", [
    ("training.step", 5, "no setting called 'training.step'"),
    ("nothing.steps", 5, "no setting called 'nothing.steps'"),
    ("training.steps", "many", "training.steps must be of type int"),
    ("training.steps", True, "training.steps must be of type int"),
    ("training.steps", 0, "at least 1"),
    ("training.learning_rate", float("nan"), "must be a finite number"),
    ("objective.masking", "none", "dynamic, static"),
    ("model.hidden_size", 130, "at most"),
    ("model.num_attention_heads", 3, "multiple of"),
    ("objective.mask_share", 0.95, "more than 1"),
    ("corpus.source", None, "needs a value"),
    ("recipe", "gpt9", "one of"),
])
def test_what_cannot_be_meant_is_one_sentence(key, value, part):
    if (key, value) == ("model.hidden_size", 130):
        value = 10**6
    with pytest.raises(BertScopeError, match=part):
        RunConfig().override({key: value})


def test_every_knob_has_a_help_line_and_a_legal_default():
    for section in SECTIONS.values():
        for knob in knobs(section):
            assert knob["help"]
            default = knob["default"]
            if default is None:
                assert knob["optional"]
            else:
                assert isinstance(default, knob["type"])
                assert knob.get("min", default) <= default <= knob.get("max", default)


def test_sizes_divide_into_heads_of_64():
    for name in SIZES:
        shape = sized(name)
        assert shape["hidden_size"] == 64 * shape["num_attention_heads"]
    assert sized("base")["intermediate_size"] == 3072
    with pytest.raises(BertScopeError):
        sized("huge")


def test_what_is_asked_for_wins_over_the_corpus_and_the_size():
    made = run_config({"corpus.source": "miniworld", "objective.max_length": 96,
                       "model.hidden_size": 64, "training.steps": None}, "mini")
    assert made.objective.max_length == 96
    assert made.corpus.vocab_size == CORPUS_DEFAULTS["miniworld"]["corpus.vocab_size"]
    assert made.model.hidden_size == 64 and made.model.num_hidden_layers == 4
    assert made.training.steps == run_config({}).training.steps


def test_a_misspelt_setting_is_answered_with_the_likeliest_one():
    with pytest.raises(BertScopeError, match="Did you mean 'training.learning_rate'"):
        RunConfig().override({"training.learning_rat": 1.0})
    with pytest.raises(BertScopeError, match="Did you mean 'objective.mask_rate'"):
        RunConfig.from_dict({"objective": {"maskrate": 0.2}})
    with pytest.raises(BertScopeError) as caught:
        RunConfig().override({"zzz": 1})
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("arguments, sentence", [
    (["train", "--resume", ""], "A run's name has"),
    (["train", "--name", "", "--steps", "1"], "A run's name has"),
    (["train", "--from-step", "3"], "goes with --resume"),
    (["train", "--corpus", "no/such/text"], "no file or folder"),
    (["train", "--max-minutes", "inf"], "must be a finite number"),
    (["train", "--batch-size", "99999999999"], "at most 65536"),
    (["train", "--recipe", "albert", "--gradient-checkpointing"], "cannot go with recipe albert"),
    (["train", "--recipe", "roberta", "--pairs", "nsp"], "has no head"),
    (["train", "--init-from", ""], "must be the folder of a checkpoint"),
    (["train", "--short-length", "32", "--max-minutes", "1"], "goes by the clock"),
    (["train", "--short-length", "300", "--max-length", "128"], "must be less than"),
    (["predict", "x", "a [MASK]", "-k", "0"], "-k must be at least 1"),
])
def test_a_bad_command_is_one_sentence_and_leaves_nothing(arguments, sentence, tmp_path, monkeypatch,
                                                          capsys):
    from bertscope.cli import main

    monkeypatch.setenv("BERTSCOPE_RUNS", str(tmp_path / "runs"))
    assert main(arguments) == 1
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1 and "Traceback" not in said
    assert not (tmp_path / "runs").exists()
