"""Shared fixtures: a tiny run, really trained, that the tests of the app look at."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
REPOSITORY = Path(__file__).resolve().parent.parent
TINY = ("--documents=150 --vocab-size=400 --hidden-size=32 --intermediate-size=64 "
        "--max-length=48 --batch-size=16 --steps=40 --log-every=4 --evaluate-every=20 "
        "--checkpoint-every=20 --evaluation-examples=64 --threads=1").split()


@pytest.fixture(scope="session")
def tiny_root(tmp_path_factory):
    """A folder of runs with the finished run ``tiny`` in it (miniworld, 40 steps)."""
    root = tmp_path_factory.mktemp("tiny") / "runs"
    subprocess.run([sys.executable, "-m", "bertscope", "train", "--name", "tiny", *TINY],
                   cwd=REPOSITORY, env={**os.environ, "BERTSCOPE_RUNS": str(root)}, check=True,
                   capture_output=True, timeout=300)
    return root


@pytest.fixture
def tiny_run(tiny_root):
    from bertscope.runs import open_run

    return open_run("tiny", tiny_root)
