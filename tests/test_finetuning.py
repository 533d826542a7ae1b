"""Fine-tuning through the trainer's loop: it learns, stops, is killed, resumes; sweeps; the test part."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import tiny_models
from test_training import start, wait_for
from transformers import AutoTokenizer

from bertscope import runs
from bertscope.cli import main
from bertscope.errors import BertScopeError
from bertscope.finetuning import results, sweep
from bertscope.finetuning.config import TASKS, FinetuneConfig
from bertscope.finetuning.heads import KINDS
from bertscope.finetuning.launch import create
from bertscope.finetuning.outcome import calibration_error, confusion, outcome
from bertscope.finetuning.predict import open_finetuned
from bertscope.training.loop import train

SMALL = {"training.threads": 1, "training.epochs": 2.0, "training.batch_size": 8,
         "training.learning_rate": 3e-3, "training.log_every": 5, "data.most_train": 48,
         "data.most_valid": 24, "data.most_test": 24, "head.dropout": 0.1}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrained")
    tiny_models.save(folder, initializer_range=0.1, max_position_embeddings=128)
    return folder


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    before, os.environ["BERTSCOPE_RUNS"] = os.environ.get("BERTSCOPE_RUNS"), str(folder)
    yield folder
    os.environ.pop("BERTSCOPE_RUNS") if before is None else os.environ.update(BERTSCOPE_RUNS=before)


#: A paragraph is many inputs.
FEWER = {"data.most_train": 12, "data.most_valid": 8}


def make(root, checkpoint, name, task="pair", **changes):
    few = FEWER if task == "question" else {}
    config = FinetuneConfig().override({**SMALL, **few, "start": str(checkpoint), "data.task": task} | {
        k.replace("__", "."): v for k, v in changes.items()})
    return create(config, name, root)


@pytest.fixture(scope="module")
def finished(root, checkpoint):
    made = {}
    for task in TASKS:
        made[task] = make(root, checkpoint, f"finished-{task}", task)
        train(made[task])
    return made


@pytest.mark.parametrize("start, random, path", [
    ("random", True, None), ("random:random-tiny", True, "step"), ("random-tiny", False, "step"),
    ("random-tiny@0", False, "step")])
def test_a_run_that_is_called_random_something_is_a_run(start, random, path, tiny_root, tmp_path):
    """A run that began with random:tiny is called so."""
    from bertscope.finetuning.config import random_weights
    from bertscope.finetuning.start import origin

    shutil.copytree(tiny_root / "tiny", tmp_path / "random-tiny")
    assert random_weights(start)[0] is random
    found = origin(start, tmp_path)["path"]
    assert found is None if path is None else "random-tiny/checkpoints/step-" in found


def weights(run) -> bytes:
    return (run.checkpoints()[-1].path / "model.safetensors").read_bytes()


def lines(run) -> bytes:
    return (run.path / "metrics.jsonl").read_bytes()


@pytest.mark.parametrize("task", TASKS)
def test_a_run_leaves_what_the_contract_promises(finished, task):
    run = finished[task]
    assert run.status()["state"] == "finished" and run.kind == "finetuning"
    record = run.config_record()
    assert record["task"] == task and record["data"]["train"] == (12 if task == "question" else 48)
    steps = record["steps"]
    assert run.status()["step"] == steps == 2 * -(-record["data"]["train_inputs"] // 8)
    measured = [line for line in run.metrics() if "eval_loss" in line]
    assert [line["step"] for line in measured] == [0, steps // 2, steps]
    assert measured[-1]["eval_loss"] < measured[0]["eval_loss"]
    assert f"{task}_majority_{record['metric']}" in record["baselines"]
    assert {0, 1, 2, 4, steps // 2, steps} <= {c.step for c in run.checkpoints()}
    rates = [line["learning_rate"] for line in run.metrics() if "learning_rate" in line]
    assert max(rates) <= 3e-3 and rates[-1] < rates[0]


@pytest.mark.parametrize("task", TASKS)
def test_a_checkpoint_opens_in_plain_transformers_with_its_labels(finished, task):
    folder = finished[task].checkpoints()[-1].path
    model, info = KINDS[task].from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    labels = finished[task].config_record()["labels"]
    if labels:
        assert [model.config.id2label[i] for i in range(len(labels))] == labels
    assert len(AutoTokenizer.from_pretrained(folder)) == model.config.vocab_size


@pytest.mark.parametrize("task", TASKS)
def test_the_opened_checkpoint_measures_what_the_loop_did(finished, task):
    run = finished[task]
    checkpoint, line = results.best(run)
    found = outcome(open_finetuned(checkpoint.path), results.data_of(run))
    for name, value in found.metrics.items():
        assert value == pytest.approx(line[f"eval_{name}"], abs=1e-6), name
    table = found.table
    if task == "question":
        assert table["exact_match"].mean() == pytest.approx(found.metrics["exact_match"])
        assert table["f1"].mean() == pytest.approx(found.metrics["f1"])
    else:
        assert table["right"].mean() == pytest.approx(found.metrics["accuracy"])
        counts = confusion(found)
        assert list(counts.index) == list(counts.columns) == run.config_record()["labels"]
        assert np.trace(counts.to_numpy()) == table["right"].sum() and counts.sum().sum() == len(table)
    assert not found.errors["right"].any() and found.errors["probability"].is_monotonic_decreasing
    assert 0 <= calibration_error(table["probability"], table["right"]) <= 1


def test_other_views_open_it_without_a_head(finished):
    from bertscope.analysis import load
    from bertscope.analysis.activations import encode, run

    for task in TASKS:
        model = load(finished[task].checkpoints()[-1].path)
        assert not model.has_mlm_head and not model.has_nsp_head and model.num_layers == 3
        assert run(model, encode(model, "a cat sat"), attentions=True) is not None


# -- stopped, killed, resumed -----------------------------------------------------------------


def test_a_killed_run_is_resumed_to_the_same_end(root, checkpoint):
    changes = {"training__epochs": 10.0, "training__evaluate_every": 7, "head__freeze_layers": 1,
               "head__layer_decay": 0.8, "training__accumulation": 2, "training__batch_size": 4}
    calm = make(root, checkpoint, "calm", **changes)
    train(calm)
    killed = make(root, checkpoint, "killed", **changes)
    process = start(killed)
    wait_for(lambda: len(killed.metrics()) >= 6)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert killed.status()["state"] == "interrupted"
    train(killed)
    assert lines(killed) == lines(calm) and weights(killed) == weights(calm)


def test_a_mixture_and_a_vocabulary_of_its_own_are_resumed_too(root, checkpoint):
    """A run from random weights has its vocabulary in its checkpoints only."""
    changes = {"start": "random", "head__layer": "mix", "training__epochs": 3.0, "task": "tokens"}
    calm, stopped = (make(root, checkpoint, name, **changes) for name in ("calm-mix", "stopped-mix"))
    train(calm)
    process = start(stopped)
    wait_for(lambda: len(stopped.checkpoints()) >= 3)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0
    assert main(["finetune", "--resume", "stopped-mix"]) == 0
    assert lines(stopped) == lines(calm)
    for file in ("model.safetensors", "head.safetensors"):
        assert (stopped.checkpoints()[-1].path / file).read_bytes() == (
            calm.checkpoints()[-1].path / file).read_bytes()


def test_data_that_changed_are_not_resumed_on(root, checkpoint, tmp_path):
    rows = "\n".join(f"a cat {i},{'xy'[i % 2]}" for i in range(40))
    (tmp_path / "d.csv").write_text("text,label\n" + rows)
    run = make(root, checkpoint, "changed", "auto", data__source=str(tmp_path / "d.csv"))
    train(run)
    (tmp_path / "d.csv").write_text("text,label\nnew,x\n" + rows)
    with pytest.raises(BertScopeError, match="no longer those it was begun with"):
        train(run)
    with pytest.raises(BertScopeError, match="no longer those that run"):
        results.data_of(run)


def test_what_is_frozen_stays(root, checkpoint):
    from safetensors.numpy import load_file

    run = make(root, checkpoint, "frozen", head__freeze_layers=2)
    train(run)
    first, last = (load_file(run.checkpoints()[i].path / "model.safetensors") for i in (0, -1))
    moved = {name for name in first if (first[name] != last[name]).any()}
    assert any("layer.2." in n for n in moved) and any("classifier" in n for n in moved)
    assert not any("embeddings" in n or "layer.0." in n or "layer.1." in n for n in moved)


def test_patience_ends_a_run_whose_metric_no_longer_rises(root, checkpoint):
    run = make(root, checkpoint, "patient", "sentence", training__epochs=60.0, training__patience=2,
               training__learning_rate=1e-6)
    train(run)
    assert run.status()["state"] == "finished" and run.status()["step"] < run.config_record()["steps"]
    assert "accuracy no longer rose" in run.status()["message"]


def test_class_weights_and_numbers(root, checkpoint, tmp_path):
    (tmp_path / "d.csv").write_text("text,label\n" + "\n".join(
        f"{'cat' if i % 4 else 'dog'} {i},{'x' if i % 4 else 'y'}" for i in range(80)))
    run = make(root, checkpoint, "weighed", "auto", data__source=str(tmp_path / "d.csv"),
               head__class_weights="balanced")
    train(run)
    (tmp_path / "n.csv").write_text("text,label\n" + "\n".join(
        f"{'cat' if i % 2 else 'dog'} {i},{(i % 2) * 3 + 0.5}" for i in range(80)))
    run = make(root, checkpoint, "numbers", "auto", data__source=str(tmp_path / "n.csv"),
               training__epochs=6.0)
    train(run)
    line = results.best(run)[1]
    assert line["eval_pearson"] > 0.9 and "eval_mse" in line
    assert not any("sentence_accuracy" in line for line in run.metrics())
    found = outcome(open_finetuned(results.best(run)[0].path), results.data_of(run))
    assert found.errors["error"].abs().is_monotonic_decreasing
    assert np.corrcoef(found.table["gold"], found.table["predicted"])[0, 1] > 0.9


def test_processes_take_the_same_steps_as_one(root, checkpoint):
    small = {"training__epochs": 1.0, "head__dropout": 0.0, "training__log_every": 1}
    one = make(root, checkpoint, "one", training__batch_size=8, **small)
    train(one)
    two = make(root, checkpoint, "two", training__batch_size=4, **small)
    subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2",
                    "--standalone", "-m", "bertscope.training", str(two.path)], check=True,
                   capture_output=True, timeout=180, env={**os.environ, "OMP_NUM_THREADS": "1"})
    for key in ("loss", "eval_loss", "eval_accuracy"):
        a, b = ([line[key] for line in run.metrics() if key in line] for run in (one, two))
        assert len(a) >= 2 and a[:len(b)] == pytest.approx(b[:len(a)], rel=1e-4)


# -- sweeps and the test part -----------------------------------------------------------------


def test_the_test_part_is_measured_once_at_the_end(root, checkpoint, finished, monkeypatch):
    run = finished["pair"]
    with pytest.raises(BertScopeError, match="once, at the end"):
        results.test(make(root, checkpoint, "unfinished"))
    first = results.test(run)
    assert first["step"] == results.best(run)[0].step and 0 <= first["accuracy"] <= 1
    monkeypatch.setattr(results, "data_of", lambda run: pytest.fail("it was looked at again"))
    assert results.test(run) == first == run.test_result()


def test_a_sweep_is_every_combination_and_goes_on_where_it_stood(root, checkpoint):
    config = FinetuneConfig().override({**SMALL, "start": str(checkpoint), "data.task": "pair"})
    config = config.override({"training.epochs": 1.0})
    plan = sweep.Sweep(config, [str(checkpoint)], [16, 48], [1e-6, 3e-3], seeds=2)
    said = []
    made = sweep.train_all(plan, said.append)
    assert len(made) == len(said) == 8 and len({run.name for run in made.values()}) == 8
    assert all(len(run.checkpoints()) <= 3 for run in made.values())
    assert sweep.train_all(plan, lambda line: pytest.fail("trained again")).keys() == made.keys()
    table = sweep.frame(made)
    assert set(table["examples"]) == {16, 48} and set(table["metric"]) == {"accuracy"}
    means = sweep.summary(table)
    assert len(means) == 4 and means["chosen"].sum() == 2
    for _, own in means.groupby(["start", "examples"]):
        assert own.loc[own["chosen"], "mean"].item() == own["mean"].max()
    assert (means["low"] <= means["mean"]).all() and (means["mean"] <= means["high"]).all()
    tested = sweep.test_chosen(made, table)
    assert len(tested) == 4 and sum(run.test_result() is not None for run in made.values()) == 4
    assert sweep.markdown(table).count("**") == 4


def test_the_interval_is_students():
    low, high = sweep.interval([0.7, 0.8, 0.9])
    half = 4.302653 * 0.1 / 3**0.5
    assert (low, high) == pytest.approx((0.8 - half, 0.8 + half), abs=1e-6)
    assert sweep.interval([0.5]) == (0.5, 0.5)


def test_starting_points_of_a_pretraining_run(tiny_run):
    assert sweep.milestones(tiny_run) == ["random:tiny", "tiny@2", "tiny@20", "tiny@40"]


# -- the command line -------------------------------------------------------------------------


def test_from_a_run_of_ours_by_the_command_line(root, tiny_run, capsys, monkeypatch):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tiny_run.path.parent))
    few = ["--most-train=40", "--most-valid=20", "--most-test=20", "--epochs=1", "--threads=1"]
    assert main(["finetune", "miniworld", "--task=tokens", "--from", "tiny@20", "--test",
                 "--name=tuned", *few]) == 0
    out = capsys.readouterr().out
    assert "Validation, best at step" in out and "Test: accuracy" in out
    assert re.search(r"f1 \d\.\d{3}, order errors \d+[,.](?!\d)", out)
    run = runs.open_run("tuned")
    assert run.config() == tiny_run.config()  # how its encoder was pretrained
    assert run.settings().start == "tiny@20"
    assert main(["runs"]) == 0
    assert "fine-tuned on miniworld, tokens" in capsys.readouterr().out
    assert main(["predict", "tuned", "Anna found a boat."]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5
    assert main(["finetune", "miniworld", "--task=pair", "--from", "tiny", "--seeds=2",
                 "--learning-rates", "1e-3", "--output", str(root / "t.csv"), *few]) == 0
    assert "| tiny | 40 | 0.001 | accuracy" in capsys.readouterr().out
    assert len((root / "t.csv").read_text().splitlines()) == 3


def test_what_is_refused_for_its_data_leaves_no_run(root, checkpoint, tmp_path, capsys):
    bad = tmp_path / "bad.csv"
    bad.write_text("text,label\n" + "".join(f"a cat {i},{'xy'[i % 2]}\n" for i in range(9)) + ",x\n")
    begun, before = ["finetune", str(bad), "--from", str(checkpoint)], set(root.iterdir())
    for more in ([], ["--name", "refused"], ["--background"], ["--seeds=2"]):
        assert main([*begun, *more]) == 1
        assert "bad.csv, line 11: the text is empty." in capsys.readouterr().err
        assert set(root.iterdir()) == before
    assert main(["finetune", "miniworld", "--from", str(checkpoint), "--layer=9"]) == 1
    assert set(root.iterdir()) == before


def test_paths_mean_the_same_from_every_folder(root, checkpoint, tmp_path, monkeypatch):
    rows = [f"a cat {i},{'xy'[i % 2]}" for i in range(20)]
    (tmp_path / "d.csv").write_text("\n".join(["text,label", *rows]))
    shutil.copytree(checkpoint, tmp_path / "bert")
    monkeypatch.chdir(tmp_path)
    config = FinetuneConfig().override({**SMALL, "start": "./bert", "data.source": "d.csv",
                                        "data.valid": "./d.csv"})
    run, plan = create(config, "from-elsewhere", root), sweep.Sweep(config)
    assert run.settings().data.source == run.settings().data.valid == str(tmp_path / "d.csv")
    assert runs.free_stem("bert-d") in sweep.name_of(*next((c, plan.config_of(c)) for c in plan.cells()))
    monkeypatch.chdir("/")
    train(run)
    assert run.status()["state"] == "finished" and run.config_record()["data"]["name"] == "d.csv"
    assert len(results.data_of(run).train) == 20


@pytest.mark.parametrize("task, pair, said", [
    ("sentence", "more", "reads one text: leave --pair out"), ("tokens", "more", "reads one text"),
    ("pair", None, "give the second one with --pair"), ("question", None, "give the second one")])
def test_a_second_text_goes_with_the_tasks_that_read_two(finished, task, pair, said, capsys):
    asked = ["predict", finished[task].name, "a cat sat"]
    assert main([*asked, *(["--pair", pair] if pair else [])]) == 1
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error


def test_a_head_for_labels_of_another_program_reads_one_text_or_two(checkpoint, tmp_path, capsys):
    AutoTokenizer.from_pretrained(checkpoint).save_pretrained(tmp_path)
    model = KINDS["pair"].from_pretrained(str(checkpoint), num_labels=3)
    model.classifier.weight.data *= 100
    model.save_pretrained(tmp_path)
    said = []
    for more in ([], ["--pair", "the dog"]):
        assert main(["predict", str(tmp_path), "a cat sat", *more]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] != said[1] and all(len(lines.splitlines()) == 3 for lines in said)


@pytest.mark.parametrize("arguments, said", [
    (["--resume", "tiny"], "is no fine-tuning run"),
    (["--resume", "tiny", "--epochs", "3"], "takes no other setting"),
    (["miniworld", "--from", "nothing@3"], "no checkpoint folder|There is no"),
    (["miniworld", "--layer", "first"], "must be last, mix or a layer's number"),
    (["miniworld", "--curve", "few"], "--curve takes numbers"),
    (["miniworld", "--seeds", "0"], "--seeds must be at least 1"),
    (["none.csv", "--check"], "does not exist"),
    (["miniworld", "--grid", "--name", "x"], "names its runs itself"),
    (["miniworld", "--worth"], "--worth takes one run after --from"),
    (["miniworld", "--background", "--test"], "--resume NAME --test"),
    (["miniworld", "--output", "t.csv"], "--output goes with a sweep"),
    (["miniworld", "--from", "tiny", "--seeds", "1", "--output", "/no/such/t.csv"], "folder does not exist"),
    (["~no-such-user/d.csv", "--check"], "does not exist"),
])
def test_what_the_command_line_refuses(tiny_run, arguments, said, capsys, monkeypatch):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tiny_run.path.parent))
    before = set(tiny_run.path.parent.iterdir())
    assert main(["finetune", *arguments]) == 1
    assert set(tiny_run.path.parent.iterdir()) == before
    error = capsys.readouterr().err
    assert re.search(said, error) and "Traceback" not in error


def test_checking_and_baselines_by_the_command_line(capsys):
    assert main(["finetune", "miniworld", "--task=pair", "--check"]) == 0
    assert "3,888 training, 432 validation, 480 test examples" in capsys.readouterr().out
    for task in ("pair", "tokens", "question"):
        assert main(["finetune", "miniworld", "--baselines", f"--task={task}", "--most-train=200"]) == 0
        out = capsys.readouterr().out
        assert out.startswith("commonest ") and "\nlinear " in out


def test_a_fine_tuned_run_keeps_json_and_its_seal(finished):
    from bertscope.durable import damage

    run = finished["tokens"]
    for line in lines(run).splitlines():
        json.loads(line)
    assert all(damage(c.path) is None for c in run.checkpoints())


def test_a_linear_model_of_one_label_says_that_label(tmp_path):
    """A single training example has but one."""
    from bertscope.finetuning.baselines import linear
    from bertscope.finetuning.config import DataConfig
    from bertscope.finetuning.data import read

    place = tmp_path / "d.conll"
    place.write_text("\n\n".join(f"a{i} X\nb X" if i % 2 else f"c{i} Y\nd Y" for i in range(40)))
    for source in ("miniworld", str(place)):
        data = read(DataConfig(source=source, most_train=1))
        only = data.train[0].label if source == "miniworld" else data.train[0].tags[0]
        own = [e.label if source == "miniworld" else e.tags[0] for e in data.valid]
        assert linear(data)["accuracy"] == pytest.approx(own.count(only) / len(own))


def test_a_run_that_is_deleted_while_it_trains_ends_with_a_sentence(root, checkpoint, monkeypatch):
    run, append = make(root, checkpoint, "deleted", "sentence"), runs.Run.append_metrics

    def delete(self, record, **clock):
        shutil.rmtree(self.path)
        append(self, record, **clock)

    monkeypatch.setattr(runs.Run, "append_metrics", delete)
    with pytest.raises(BertScopeError, match="'deleted' was deleted: its training ends"):
        train(run)
    assert not run.path.exists()
