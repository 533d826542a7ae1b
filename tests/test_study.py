"""The comparison of recipes: the same budget for all, resumable, one table."""

import pandas as pd
import pytest

from bertscope.errors import BertScopeError
from bertscope.training import study

SMALL = {"model.hidden_size": 32, "model.intermediate_size": 64, "model.num_attention_heads": 2,
         "corpus.documents": 40, "corpus.vocab_size": 256, "training.evaluation_examples": 32,
         "training.threads": 1}


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tmp_path))
    return tmp_path


def test_a_study_trains_each_variant_with_each_seed_and_goes_on_where_it_stood(root):
    made = study.Study("miniworld", steps=4, seeds=2, batch_tokens=512, changes=SMALL,
                       names=["bert", "electra", "causal", "bert, no pairs"])
    said = []
    runs = study.train_all(made, said.append)
    assert len(runs) == len(said) == 8
    assert study.train_all(made, said.append).keys() == runs.keys() and len(said) == 8
    frame = study.results(runs, probe=lambda run: 0.5)
    assert set(frame["variant"]) == set(made.names) and (frame["probe"] == 0.5).all()
    budget = frame.groupby("variant")["tokens"].mean()
    assert budget.min() > 0.85 * budget.max()  # the same number of pieces, but for padding
    lines = study.table(frame).splitlines()
    assert len(lines) == 2 + 4 and lines[2].startswith("| bert |") and "±" in lines[2]
    bert, causal = lines[2].split("|"), lines[4].split("|")
    assert "" in [cell.strip() for cell in causal[3:-1]] and bert[2] != causal[2]


def test_the_table_has_mean_and_sample_deviation():
    frame = pd.DataFrame([{"variant": "a", "parameters": 1000, "mlm_accuracy": x, "seconds": 10.0}
                          for x in (0.1, 0.2, 0.3)])
    assert "| a | 1,000 | 0.200 ± 0.100 | 10 ± 0 |" in study.table(frame)


def test_unknown_variants_and_other_configurations_are_refused(root):
    with pytest.raises(BertScopeError, match="no variant 'gpt'"):
        study.Study("miniworld", 4, names=["gpt"])
    one = study.Study("miniworld", 4, seeds=1, names=["roberta"], changes=SMALL)
    study.train_all(one, lambda line: None)
    other = study.Study("miniworld", 4, seeds=1, names=["roberta"],
                        changes={**SMALL, "model.hidden_size": 64})
    with pytest.raises(BertScopeError, match="another configuration"):
        study.train_all(other)
