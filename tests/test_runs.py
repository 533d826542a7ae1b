"""The run directory: what a reader sees while a writer lives, dies or is interrupted."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from bertscope.config import RunConfig
from bertscope.errors import BertScopeError
from bertscope.runs import Run, create_run, find_checkpoint, free_name, list_runs, open_run


@pytest.fixture
def run(tmp_path):
    return create_run("one", RunConfig(), tmp_path)


HOLD = """
import sys, time
from pathlib import Path
from bertscope.runs import Run
run = Run(Path(sys.argv[1]))
with run.lock():
    run.write_status(state="training", step=3, locked=True)
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(run):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(run.path)],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_new_run_is_listed_and_preparing(run, tmp_path):
    assert [r.name for r in list_runs(tmp_path)] == ["one"]
    assert open_run("one", tmp_path).config() == RunConfig()
    assert run.status()["state"] == "preparing"
    assert run.checkpoints() == [] and run.metrics() == [] and not run.alive()


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a b", "-x", "x" * 65, "a\x00"])
def test_names_stay_inside_their_folder(name, tmp_path):
    for call in (lambda: create_run(name, RunConfig(), tmp_path), lambda: open_run(name, tmp_path)):
        with pytest.raises(BertScopeError, match="up to 64"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_a_name_is_taken_once(run, tmp_path):
    with pytest.raises(BertScopeError, match="already a run"):
        create_run("one", RunConfig(), tmp_path)
    assert free_name("one", tmp_path) == "one-2"
    assert free_name("a b/../c", tmp_path) == "a-b-..-c"
    assert free_name("///", tmp_path) == "run"


def test_the_lock_tells_who_lives(run, holder):
    assert run.alive() and run.status()["state"] == "training"
    with pytest.raises(BertScopeError, match="already"):
        with run.lock(patience=0.1):
            pass
    with pytest.raises(BertScopeError, match="stop it first"):
        run.delete()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert not run.alive()
    assert run.status() | {"state": "interrupted", "step": 3} == run.status()


def test_a_launched_process_gets_time_to_take_the_lock(run):
    run.write_status(state="preparing", locked=False)
    assert run.status()["state"] == "preparing"
    record = json.loads((run.path / "status.json").read_text())
    record["heartbeat"] = time.time() - 60
    (run.path / "status.json").write_text(json.dumps(record))
    assert run.status()["state"] == "interrupted"


def test_metrics_outlive_a_torn_line_and_foreign_ones(run):
    for step in range(3):
        run.append_metrics({"step": step, "loss": 1.0})
    with open(run.path / "metrics.jsonl", "ab") as handle:
        handle.write(b'\xff\xfe\n[1]\n{"step": "x"}\n{"step": 3, "lo')
    assert [line["step"] for line in run.metrics()] == [0, 1, 2]
    run.truncate_metrics(1)
    assert [line["step"] for line in run.metrics()] == [0, 1]


def test_a_checkpoint_appears_whole_or_not_at_all(run):
    with pytest.raises(RuntimeError):
        with run.new_checkpoint(4) as folder:
            (folder / "model.safetensors").write_bytes(b"half")
            raise RuntimeError
    assert run.checkpoints() == [] and list(run.checkpoints_path.iterdir()) == []
    for step in (16, 2):
        with run.new_checkpoint(step) as folder:
            (folder / "model.safetensors").write_bytes(b"whole")
            assert step not in [c.step for c in run.checkpoints()]
    assert [c.step for c in run.checkpoints()] == [2, 16]
    (run.checkpoints_path / "notes").mkdir()
    assert [c.step for c in run.checkpoints()] == [2, 16]


def test_only_the_two_newest_states_are_kept(run):
    for step in (1, 2, 4):
        with run.new_state(step) as folder:
            (folder / "x").write_text("")
    assert run.latest_state().step == 4
    assert [state.step for state in run.states()] == [2, 4]
    assert len(list(run.state_path.iterdir())) == 2
    with pytest.raises(BertScopeError, match="from step 2 or 4 only"):
        run.go_back_to(1)
    run.go_back_to(2)
    assert run.latest_state().step == 2


def test_a_checkpoint_is_found_by_run_and_step_or_path(run, tmp_path):
    with pytest.raises(BertScopeError, match="no checkpoint yet"):
        find_checkpoint("one", tmp_path)
    for step in (1, 400):
        with run.new_checkpoint(step) as folder:
            (folder / "model.safetensors").write_bytes(b"")
    assert find_checkpoint("one", tmp_path).name == "step-00000400"
    assert find_checkpoint("one@1", tmp_path).name == "step-00000001"
    with pytest.raises(BertScopeError, match="no checkpoint at step 7"):
        find_checkpoint("one@7", tmp_path)
    path = run.checkpoints_path / "step-00000001"
    assert find_checkpoint(str(path), tmp_path) == path
    assert find_checkpoint("some-hub/name", tmp_path) == "some-hub/name"


def test_damaged_files_are_states_not_tracebacks(run, tmp_path):
    (run.path / "status.json").write_text("{")
    assert run.status()["state"] in ("preparing", "interrupted")
    (run.path / "config.json").write_text("[]")
    assert run.created == 0.0
    with pytest.raises(BertScopeError, match="cannot be read"):
        run.config()
    assert [r.name for r in list_runs(tmp_path)] == ["one"]
    run.delete()
    assert not run.exists() and run.metrics() == [] and run.log_tail() == ""
    assert list_runs(tmp_path) == [] and list_runs(tmp_path / "none") == []


def test_no_heavy_import_is_needed_to_list_runs():
    code = "import sys, bertscope.runs, bertscope.launch; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"
    assert os.path.isabs(str(Run("x").path.absolute()))
