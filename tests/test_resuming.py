"""Runs that are killed, stopped and damaged, against runs that never were."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from test_training import make, root, start, text, wait_for, weights  # root, text: fixtures

from bertscope.config import RECIPES
from bertscope.errors import BertScopeError
from bertscope.training.loop import train


def metrics(run) -> bytes:
    return (run.path / "metrics.jsonl").read_bytes()


def last_weights(run) -> dict[str, bytes]:
    folder = run.checkpoints()[-1].path
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.safetensors")}


#: A trainer in a process that is killed 20 times: between two system calls of a checkpoint's
#: writing, or wherever a clock finds it. A fork has everything loaded, so a life costs little.
LIVES = """
import os, random, signal, sys, threading
from pathlib import Path
import torch
torch.set_num_threads(1)
from bertscope.runs import Run
from bertscope.training import checkpoints, loop

run, rng, kills = Run(Path(sys.argv[1])), random.Random(int(sys.argv[2])), 0

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def life(kind, moment):
    if kind == "clock":
        timer = threading.Timer(moment, die)
        timer.daemon = True
        timer.start()
    if kind == "save":  # at one of the renames and files that make up saving
        left = [1 + int(moment * 30)]
        for module, name in ((os, "replace"), (checkpoints, "seal"), (os, "fsync")):
            def counted(*args, original=getattr(module, name), **kwargs):
                left[0] -= 1
                if left[0] <= 0:
                    die()
                return original(*args, **kwargs)
            setattr(module, name, counted)
    loop.train(run)

while True:
    kind = ("clock", "save")[kills % 2] if kills < 20 else "free"
    moment = 0.7 * rng.random()
    child = os.fork()
    if child == 0:
        try:
            life(kind, moment)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        kills += run.status()["state"] != "finished"
    elif run.status()["state"] == "finished":
        break
    elif kind == "free":
        break
print(kills)
"""


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_twenty_kills_change_nothing(root, text, recipe):
    changes = {"recipe": recipe, "training__steps": 500, "training__log_every": 7,
               "training__checkpoint_every": 6, "training__evaluate_every": 50}
    calm = make(root, f"calm-{recipe}", text, **changes)
    train(calm)
    killed = make(root, f"killed-{recipe}", text, **changes)
    done = subprocess.run([sys.executable, "-c", LIVES, str(killed.path), "1"],
                          capture_output=True, text=True, timeout=400,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.splitlines()[-1]) == 20, "it was done before it was killed 20 times"
    assert killed.status()["state"] == "finished"
    assert metrics(killed) == metrics(calm)
    assert last_weights(killed) == last_weights(calm)
    assert [c.step for c in killed.checkpoints()] == [c.step for c in calm.checkpoints()]
    assert not [p for p in killed.path.rglob("*.partial")]


def test_stopping_leaves_the_same_metrics(root, text):
    changes = {"training__steps": 60, "training__log_every": 7}
    calm = make(root, "calm-stop", text, **changes)
    train(calm)
    stopped = make(root, "stopped-often", text, **changes)
    for _ in range(3):
        process = start(stopped)
        before = stopped.status()["step"]
        wait_for(lambda: stopped.status()["step"] > before or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
    train(stopped)
    assert metrics(stopped) == metrics(calm) and weights(stopped, 60) == weights(calm, 60)


def spoil(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("file", ["state/step-{}/optimizer.safetensors",
                                  "checkpoints/step-{}/model.safetensors"])
@pytest.mark.parametrize("how", ["a flipped bit", "missing"])
def test_damage_is_named_and_the_step_before_is_offered(root, text, file, how):
    run = make(root, f"damaged-{how.replace(' ', '-')}-{file[:5]}", text, training__steps=20)
    train(run)
    run.write_config(run.config().override({"training.steps": 30}))  # there is more to do
    last, before = (state.step for state in reversed(run.states()))
    path = run.path / file.format(f"{last:08d}")
    spoil(path) if how == "a flipped bit" else path.unlink()
    with pytest.raises(BertScopeError) as caught:
        train(run)
    said = str(caught.value)
    assert path.name in said and f"--from-step {before}" in said
    run.go_back_to(before)
    train(run)
    assert run.status()["state"] == "finished" and run.checkpoints()[-1].step == 30


def test_a_damaged_checkpoint_is_not_opened_for_looking_either(root, text):
    from bertscope.analysis import load

    run = make(root, "damaged-look", text, training__steps=2)
    train(run)
    spoil(run.checkpoints()[-1].path / "model.safetensors")
    with pytest.raises(BertScopeError, match="damaged: model.safetensors"):
        load(run.checkpoints()[-1].path)


def test_a_full_disk_stops_the_run_and_leaves_the_checkpoints_whole(root, text):
    """A limit on the size of files stands in for the disk: writes fail half way, as on a full one."""
    run = make(root, "full", text, training__steps=4)
    train(run)
    whole = last_weights(run)
    run.write_config(run.config().override({"training.steps": 12}))

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    done = subprocess.run([sys.executable, "-m", "bertscope.training", str(run.path)],
                          capture_output=True, text=True, timeout=120, preexec_fn=limit)
    assert done.returncode == 1
    assert "could not be saved" in done.stderr and "Traceback" not in done.stderr
    assert run.status()["state"] == "failed" and "could not be saved" in run.status()["message"]
    assert run.checkpoints()[-1].step == 4 and last_weights(run) == whole
    assert not [p for p in run.path.rglob("*.partial")]
    train(run)
    assert run.status()["state"] == "finished"


def test_the_bad_batch_is_kept(root, text, monkeypatch):
    from safetensors.numpy import load_file

    from bertscope.training import loop

    run = make(root, "nan", text)
    monkeypatch.setattr(loop, "learning_rate",
                        lambda progress, training: float("nan") if progress >= 0.25 else 1e-3)
    with pytest.raises(BertScopeError, match="at step 12") as caught:
        train(run)
    kept = load_file(run.path / "failed-step-00000012.safetensors")
    assert "failed-step-00000012" in str(caught.value)
    assert kept["input_ids"].shape == kept["source"].shape
    assert run.checkpoints()[-1].step == 10
    json.loads((run.path / "status.json").read_text())


def test_short_examples_first_then_long_ones(root, text):
    changes = {"training__short_length": 24, "training__short_share": 0.5, "training__log_every": 1,
               "training__steps": 20, "objective__short_seq_prob": 0.0}
    run = make(root, "short-first", text, **changes)
    train(run)
    tokens = [line["tokens"] for line in run.metrics() if "tokens" in line]
    per_step = [b - a for a, b in zip([0, *tokens], tokens)]
    assert max(per_step[:10]) <= 24 * 8 < sorted(per_step[10:])[3]
    again = make(root, "short-first-killed", text, **changes)
    process = start(again)
    wait_for(lambda: len(again.metrics()) >= 12)
    process.kill()
    process.wait()
    train(again)
    assert metrics(again) == metrics(run)


def test_patience_ends_a_run_that_no_longer_learns(root, text):
    run = make(root, "patient", text, training__learning_rate=0.1, training__steps=400,
               training__evaluate_every=2, training__patience=3, training__warmup=0.0)
    train(run)
    status = run.status()
    assert status["state"] == "finished" and status["step"] < 400
    assert "no longer fell" in status["message"]
    losses = [line["eval_loss"] for line in run.metrics() if "eval_loss" in line]
    assert min(losses) == min(losses[:-3])


def test_domain_adaptation_begins_where_the_other_run_ended(root, text, tmp_path):
    from bertscope.presets import run_config
    from bertscope.runs import create_run

    first = make(root, "general", text, training__steps=30)
    train(first)
    other = tmp_path / "other.txt"
    other.write_text("\n\n".join("the river sees a garden.\nthe tree likes the river." for _ in range(20)))
    folder = str(first.checkpoints()[-1].path)
    config = run_config({"corpus.source": str(other), "training.init_from": folder,
                         "training.steps": 5, "training.batch_size": 8})
    run = create_run("adapted", config, root)
    train(run)
    begun = run.checkpoints()[0].path
    assert (begun / "model.safetensors").read_bytes() == weights(first, 30)
    assert (begun / "tokenizer.json").read_text() == (
        first.checkpoints()[-1].path / "tokenizer.json").read_text()
    with pytest.raises(BertScopeError, match="init_from must be the folder"):
        run_config({"training.init_from": str(tmp_path)})


def test_what_the_machine_lacks_stands_in_the_runs_status(root, text, monkeypatch):
    from bertscope.training import machine

    run = make(root, "lacking", text, training__steps=10, training__tensorboard=True)
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    with pytest.raises(BertScopeError, match="pip install tensorboard"):
        train(run)
    status = run.status()
    assert status["state"] == "failed" and "pip install tensorboard" in status["message"]


def test_tensorboard_files_and_gradient_checkpointing(root, text):
    run = make(root, "events", text, training__steps=10, training__tensorboard=True,
               training__gradient_checkpointing=True)
    train(run)
    assert list(run.path.rglob("events.out.tfevents*"))
    plain = make(root, "no-events", text, training__steps=10)
    train(plain)
    assert weights(run, 10) == weights(plain, 10)  # activations computed again are the same


def test_a_stop_is_heard_while_the_corpus_is_prepared(root, text, monkeypatch):
    from bertscope.training import pretraining

    run = make(root, "stopped-early", text)

    def slow(config, folder, progress):
        run.ask_to_stop()
        progress("reading", 0.1)
        time.sleep(60)

    monkeypatch.setattr(pretraining, "prepare", slow)
    train(run)
    assert run.status()["state"] == "stopped" and not run.stop_asked() and not run.checkpoints()
