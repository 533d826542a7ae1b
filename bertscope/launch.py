"""Start and stop training processes that outlive the browser tab and the app.

The app never trains in its own process and never trusts a process number: whether a run is
being trained is told by its lock (``Run.alive``).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from bertscope.errors import BertScopeError
from bertscope.presets import run_config
from bertscope.runs import ACTIVE, Run, create_run, open_run

#: How a trainer's threads wait for one another; OpenMP reads it when torch is loaded. Small layers
#: are a few dozen microseconds' work: a thread that sleeps at once spends longer waking up than
#: computing, one that spins for long takes its core from the app. This many turns are some ten
#: microseconds. Whoever else computes beside a trainer (the app, a probe) only sleeps.
TRAINER_THREADS = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "5000"}


def demo_run() -> Run:
    """The run ``demo``, made if it is not there yet."""
    try:
        return open_run("demo")
    except BertScopeError:
        return create_run("demo", run_config({}))


def start(run: Run) -> None:
    """Train ``run`` in a process of its own, from its last saved state if it has one.

    Raises:
        BertScopeError: it is being trained already.
    """
    if run.alive():
        raise BertScopeError(f"Run {run.name!r} is being trained already.")
    run.clear_stop()
    run.write_status(state="preparing", message="starting", locked=False)
    apart("bertscope.training", run)


def apart(module: str, folder: Run) -> subprocess.Popen:
    """``python -m module FOLDER`` in a session of its own, what it prints at the end of the folder's log."""
    environment = {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        **TRAINER_THREADS,
        "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).resolve().parent.parent), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
    }
    with open(folder.log_path, "ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(folder.path)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            start_new_session=True, close_fds=True, env=environment)
    threading.Thread(target=process.wait, daemon=True).start()  # no zombie is left behind
    return process


def stop(run: Run, now: bool = False) -> None:
    """Ask the training process to finish its step, save and end; ``now`` kills it instead.

    A killed run keeps its last saved state and can be resumed from it.
    """
    if run.status()["state"] not in ACTIVE:
        return
    run.ask_to_stop()  # a process that is only starting reads it at its first step
    if now and run.alive():
        process = run.status().get("pid")
        # The lock is held, so whoever wrote the status still lives under this number.
        if isinstance(process, int) and process > 1 and process != os.getpid():
            os.kill(process, signal.SIGKILL)
