"""Sweeps in a process of their own, sweeps found among runs, and how far weights moved."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
import tiny_models
import torch
import transformers

from bertscope.analysis.loading import load
from bertscope.errors import BertScopeError
from bertscope.finetuning import gathered, planned, sweep
from bertscope.finetuning.changes import weight_distance
from bertscope.finetuning.config import FinetuneConfig
from bertscope.finetuning.launch import create
from bertscope.runs import Run, open_run

SMALL = {"data.task": "tokens", "data.most_valid": 16, "training.epochs": 1.0, "training.threads": 1}


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def wanted(**more):
    config = FinetuneConfig().override(SMALL)
    return sweep.Sweep(config, ["random"], [8, 16], [], **{"seeds": 2, **more})


# -- a process of its own -----------------------------------------------------------------------


def test_the_same_sweep_has_the_same_plan(root):
    one, two = planned.plan(wanted()), planned.plan(wanted())
    assert one.path == two.path and one.path.parent == root / ".sweeps"
    assert planned.plan(wanted(seeds=3)).path != one.path
    assert one.sweep() == wanted() and len(planned.listed()) == 2
    assert list(one.sweep().cells()) == list(wanted().cells())
    with pytest.raises(BertScopeError, match="at least one seed"):
        planned.plan(wanted(seeds=0))
    (one.path / "plan.json").write_text("{")
    with pytest.raises(BertScopeError, match="cannot be read"):
        one.progress()


def test_a_sweep_outlives_its_starter_stops_and_goes_on(root):
    plan = planned.plan(wanted())
    assert plan.progress() == planned.Progress(0, 4, None) and not plan.alive()
    plan.start()
    assert plan.alive()
    with pytest.raises(BertScopeError, match="being trained already"):
        plan.start()
    until(lambda: plan.runs())
    plan.stop()
    until(lambda: not plan.alive())
    stopped = plan.progress()
    assert stopped.done < 4 and "stopped" in plan.said()
    plan.start()
    until(lambda: not plan.alive())
    assert plan.progress().done == 4, plan.folder.log_tail()
    assert "All runs are finished" in plan.said() and plan.progress().share == 1.0
    table = sweep.frame(plan.runs())
    assert sorted(table["examples"]) == [8, 8, 16, 16]


def test_a_sweep_that_cannot_begin_says_why(root):
    plan = planned.plan(sweep.Sweep(FinetuneConfig().override({**SMALL, "data.source": "gone.csv"}),
                                    ["random"], [8], [], 1))
    try:
        plan.start()
    except BertScopeError as error:
        assert "gone.csv" in str(error)
    until(lambda: not plan.alive())
    assert "does not exist" in plan.folder.log_tail()


def until(condition, seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.1)


# -- sweeps among the runs ------------------------------------------------------------------------


def record(root, name, start, path, **changes) -> Run:
    """A run as it stands when it is finished, without weights."""
    config = FinetuneConfig().override({"data.task": "pair", **{k.replace("__", "."): v
                                                                for k, v in changes.items()}})
    run = create(config, name, root)
    run.write_config(config.override({"start": start}), start={"name": start, "path": path},
                     data={"train": changes.get("data__most_train") or 3888, "name": "miniworld, pair"})
    (run.checkpoints_path / "step-00000010").mkdir()
    run.write_status(state="finished")
    return run


def test_where_a_run_began(root):
    for number, (start, path, begun) in enumerate([
            ("random", None, ("", "random", -1.0)),
            ("random:books", "/r/books/checkpoints/step-00000400", ("books", "random:books", -1.0)),
            ("random:books@40", "/r/books/checkpoints/step-00000040", ("books", "random:books", -1.0)),
            ("books", "/r/books/checkpoints/step-00000400", ("books", "books@400", 400.0)),
            ("books@400", "/r/books/checkpoints/step-00000400", ("books", "books@400", 400.0)),
            ("/models/bert", "/models/bert", ("/models/bert", "/models/bert", math.inf))]):
        found = gathered.begun(record(root, f"r{number}", start, path))
        assert (found.family, found.start, found.step) == begun


def test_runs_are_gathered_by_what_a_sweep_does_not_vary(root):
    at = "/r/books/checkpoints/step-000004"
    for n, (start, path) in enumerate([("random:books", at + "00"), ("books", at + "00"),
                                       ("books@400", at + "00"), ("books@440", at + "40")]):
        for seed in (0, 1):
            record(root, f"s{n}-{seed}", start, path, training__seed=seed, data__most_train=50 + n % 2)
    record(root, "other-head", "books", at + "00", head__layer="mix")
    record(root, "unfinished", "random:books", at + "00", training__seed=7).write_status(state="stopped")
    record(root, "alone", "random", None)
    (group,) = gathered.gather()
    assert group.family == "books" and len(group.made) == 8
    assert [b.title for b in group.starts] == ["random weights", "step 400", "step 440"]
    assert {run.name for run in group.made.values()} == {f"s{n}-{s}" for n in range(4) for s in (0, 1)}
    assert {cell.start for cell in group.made} == {"random:books", "books@400", "books@440"}


# -- how far weights moved ------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "distilbert"])
def test_the_distance_in_closed_form(tmp_path, family):
    tiny_models.save(tmp_path / "before", transformers.AutoModelForMaskedLM, family=family)
    before = load(tmp_path / "before", "cpu")
    assert (weight_distance(before, before)["distance"] == 0).all()
    doubled = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "before")
    with torch.no_grad():
        for parameter in doubled.base_model.parameters():
            parameter.mul_(1.5)
    doubled.save_pretrained(tmp_path / "after")
    tiny_models.tokenizer().save_pretrained(tmp_path / "after")
    table = weight_distance(before, load(tmp_path / "after", "cpu"))
    np.testing.assert_allclose(table["distance"], 0.5, rtol=1e-6)
    assert list(table["layer"]) == ([0, 3] if family == "albert" else [0, 1, 2, 3])


def test_one_layer_alone_moves(tmp_path):
    model = tiny_models.save(tmp_path / "before", transformers.BertForMaskedLM)
    weight = model.bert.encoder.layer[1].output.dense.weight
    norm = math.sqrt(sum(float(p.detach().double().square().sum())
                         for p in model.bert.encoder.layer[1].parameters()))
    with torch.no_grad():
        weight[0, 0] += 3.0
        weight[1, 2] -= 4.0
    model.save_pretrained(tmp_path / "after")
    tiny_models.tokenizer().save_pretrained(tmp_path / "after")
    table = weight_distance(load(tmp_path / "before", "cpu"), load(tmp_path / "after", "cpu"))
    moved = dict(zip(table["layer"], table["moved"]))
    assert moved[2] == pytest.approx(5.0, rel=1e-5) and moved[0] == moved[1] == moved[3] == 0
    assert table.set_index("layer")["distance"][2] == pytest.approx(5.0 / norm, rel=1e-5)


def test_layers_that_were_cut_off_and_other_shapes(tmp_path):
    tiny_models.save(tmp_path / "before", transformers.BertForMaskedLM)
    tiny_models.save(tmp_path / "cut", transformers.BertForMaskedLM, num_hidden_layers=2)
    tiny_models.save(tmp_path / "wide", transformers.BertForMaskedLM, hidden_size=32)
    before = load(tmp_path / "before", "cpu")
    assert list(weight_distance(before, load(tmp_path / "cut", "cpu"))["layer"]) == [0, 1, 2]
    with pytest.raises(BertScopeError, match="another shape"):
        weight_distance(before, load(tmp_path / "wide", "cpu"))


def test_a_run_is_opened_by_its_name(root):
    record(root, "mine", "random", None)
    assert open_run("mine").kind == "finetuning"
