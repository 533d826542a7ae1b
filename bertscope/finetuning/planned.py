"""A sweep in a process of its own: planned, started, watched, stopped, gone on with.

Its folder, ``.sweeps/<digest>`` among the runs, has ``plan.json``, the log, and as a run's folder a lock,
held while it is being trained, and ``STOP``. How far it is stands in its runs.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bertscope import launch
from bertscope.durable import write_atomically
from bertscope.errors import BertScopeError
from bertscope.finetuning import sweep
from bertscope.finetuning.config import FinetuneConfig
from bertscope.runs import ACTIVE, Run, runs_root

FOLDER = ".sweeps"
STOPPED = "The sweep was stopped; started again, it goes on where it was."


@dataclass(frozen=True)
class Progress:
    """``done`` of ``total`` runs are finished; ``now`` is the one that is being trained."""

    done: int
    total: int
    now: Run | None

    @property
    def share(self) -> float:
        """Of the whole, the running run's own share among it."""
        own = 0.0 if self.now is None else float(self.now.status().get("fraction") or 0.0)
        return min(1.0, (self.done + min(max(own, 0.0), 1.0)) / max(1, self.total))


class Planned:
    """A handle on a sweep's folder."""

    def __init__(self, path: Path):
        self.folder = Run(path)  # its lock, its log and its STOP are like a run's
        self.path = self.folder.path

    def sweep(self) -> sweep.Sweep:
        """The plan.

        Raises:
            BertScopeError: it cannot be read.
        """
        try:
            values = json.loads((self.path / "plan.json").read_text("utf-8"))
            return sweep.Sweep(**{**values, "config": FinetuneConfig.from_dict(values["config"])})
        except (OSError, ValueError, TypeError, KeyError):
            raise BertScopeError(f"The plan of the sweep {self.path.name} cannot be read.") from None

    def runs(self) -> dict[sweep.Cell, Run]:
        """Those of its runs that there are."""
        root, plan, found = self.path.parent.parent, self.sweep(), {}
        for cell in plan.cells():
            run = Run(root / sweep.name_of(cell, plan.config_of(cell)))
            if run.exists():
                found[cell] = run
        return found

    def alive(self) -> bool:
        """Whether a process holds its lock."""
        return self.folder.alive()

    def progress(self) -> Progress:
        """How far it is, from the states of its runs."""
        known = self.runs()
        states = {cell: run.status()["state"] for cell, run in known.items()}
        now = next((known[cell] for cell, state in states.items() if state in ACTIVE), None)
        return Progress(sum(state == "finished" for state in states.values()),
                        sum(1 for _ in self.sweep().cells()), now)

    def start(self, patience: float = 30.0) -> None:
        """Train what isn't trained yet, in a process of its own; returns when that holds the lock.

        Raises:
            BertScopeError: it is being trained already, or the process ended at once.
        """
        if self.alive():
            raise BertScopeError("This sweep is being trained already.")
        self.folder.clear_stop()
        process, deadline = launch.apart("bertscope.finetuning.planned", self.folder), \
            time.monotonic() + patience
        while not self.alive() and time.monotonic() < deadline:
            if process.poll() is not None:
                if process.returncode:
                    raise BertScopeError(f"The sweep ended at once: {self.said() or 'its log is empty'}")
                return
            time.sleep(0.05)

    def stop(self) -> None:
        """Ask the running run to finish its step and save, and the sweep to end after it."""
        self.folder.ask_to_stop()
        if (now := self.progress().now) is not None:
            launch.stop(now)

    def forget(self) -> None:
        """Remove the plan and its log; the runs stay.

        Raises:
            BertScopeError: it is being trained.
        """
        if self.alive():
            raise BertScopeError("This sweep is being trained; stop it first.")
        shutil.rmtree(self.path, ignore_errors=True)

    def said(self) -> str:
        """The last line of the log."""
        lines = self.folder.log_tail().strip().splitlines()
        return lines[-1][:300] if lines else ""

    def train(self) -> None:
        """What the process does.

        Raises:
            BertScopeError: it was stopped, or a run cannot be trained.
        """
        def said(line: str) -> None:
            if self.folder.stop_asked():
                raise BertScopeError(STOPPED)
            print(line, flush=True)

        with self.folder.lock():
            sweep.train_all(self.sweep(), said)
            print("All runs are finished.", flush=True)


def plan(wanted: sweep.Sweep, root: Path | None = None) -> Planned:
    """The folder of a sweep: the same for the same sweep.

    Raises:
        BertScopeError: it has no seed, or the folder cannot be made.
    """
    if wanted.seeds < 1:
        raise BertScopeError("A sweep needs at least one seed.")
    values = {"config": wanted.config.to_dict(), "starts": list(wanted.starts),
              "examples": list(wanted.examples), "learning_rates": list(wanted.learning_rates),
              "seeds": wanted.seeds}
    text = json.dumps(values, indent=1, sort_keys=True)
    path = (root or runs_root()) / FOLDER / hashlib.sha256(text.encode()).hexdigest()[:16]
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_atomically(path / "plan.json", text)
    except OSError as error:
        raise BertScopeError(f"The sweep's folder cannot be made: {error.strerror}.") from None
    return Planned(path)


def listed(root: Path | None = None) -> list[Planned]:
    """All planned sweeps, the last planned first."""
    try:
        found = [path for path in ((root or runs_root()) / FOLDER).iterdir()
                 if (path / "plan.json").is_file()]
        return [Planned(path) for path in
                sorted(found, key=lambda path: (path / "plan.json").stat().st_mtime, reverse=True)]
    except OSError:
        return []


def main() -> int:
    """``python -m bertscope.finetuning.planned FOLDER``."""
    try:
        Planned(Path(sys.argv[1])).train()
    except BertScopeError as error:
        print(error, file=sys.stderr, flush=True)
        return 0 if str(error) == STOPPED or "was stopped" in str(error) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
