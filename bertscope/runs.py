"""The run directory: the contract between the trainer and every view.

This is the only module that knows the layout::

    runs/<name>/
      config.json                 the configuration, library versions, corpus fingerprint; of a
                                  fine-tuned run also its kind and how its encoder was pretrained
      status.json                 state, step, total, heartbeat, message; replaced atomically
      metrics.jsonl               one line per logged step: what was learnt, the same whenever the
                                  configuration is; readers tolerate a torn last line
      clock.jsonl                 the seconds and tokens per second of those steps
      log.txt                     what the training process printed
      lock                        held by the training process for life (fcntl.lockf)
      STOP                        its presence asks the training process to stop
      checkpoints/step-00000400/  a standard Hugging Face directory
      state/step-00000400/        what resuming needs, for the last two of them
      analysis/                   cached results (Parquet)
      test.json                   a fine-tuned run's numbers on its test part, written once

Neither torch nor transformers is imported here, so a page that only lists runs paints at once.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bertscope.config import RunConfig
from bertscope.durable import published, write_atomically
from bertscope.errors import BertScopeError
from bertscope.settings import Settings

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
STEP = re.compile(r"step-(\d{8})")
#: States a training process writes; ``interrupted`` is what a reader infers from a free lock.
ACTIVE = ("preparing", "training", "stopping")
ENDED = ("finished", "stopped", "failed", "interrupted")


@dataclass(frozen=True)
class Checkpoint:
    """One saved step: ``path`` is a Hugging Face directory."""

    step: int
    path: Path


def runs_root() -> Path:
    """The folder of all runs: ``$BERTSCOPE_RUNS``, else ``runs`` in the working directory."""
    return Path(os.environ.get("BERTSCOPE_RUNS", "runs")).absolute()


def list_runs(root: Path | None = None) -> list[Run]:
    """Every run under ``root``, the newest first. A missing folder is an empty list."""
    root = root or runs_root()
    try:
        found = [Run(p) for p in root.iterdir()
                 if NAME.fullmatch(p.name) and (p / "config.json").is_file()]
    except OSError:
        return []
    return sorted(found, key=lambda run: run.created, reverse=True)


def open_run(name: str, root: Path | None = None) -> Run:
    """The run called ``name``.

    Raises:
        BertScopeError: the name is not a run's name, or no such run exists.
    """
    _check_name(name)
    run = Run((root or runs_root()) / name)
    if not (run.path / "config.json").is_file():
        raise BertScopeError(f"There is no run called {name!r}.")
    return run


def find_checkpoint(name: str, root: Path | None = None) -> Path | str:
    """What ``name`` means as a checkpoint: ``demo`` (the newest), ``demo@400``, a path, a hub name.

    Raises:
        BertScopeError: the run has no such step, or no checkpoint yet.
    """
    if Path(name).is_dir() and (Path(name) / "model.safetensors").exists():
        return Path(name)
    run_name, _, step = name.partition("@")
    run = Run((root or runs_root()) / run_name) if NAME.fullmatch(run_name) else None
    if run is None or not run.exists():
        return Path(name) if Path(name).exists() else name
    saved = run.checkpoints()
    if not saved:
        raise BertScopeError(f"Run {run.name!r} has no checkpoint yet.")
    if not step:
        return saved[-1].path
    for checkpoint in saved:
        if str(checkpoint.step) == step:
            return checkpoint.path
    raise BertScopeError(f"Run {run.name!r} has no checkpoint at step {step}; "
                         f"the newest is at {saved[-1].step}.")


def create_run(name: str, config: Settings, root: Path | None = None, **facts) -> Run:
    """Make the directory of a new run, in state ``preparing``, with ``facts`` in its record.

    Raises:
        BertScopeError: the name is unusable or taken.
    """
    _check_name(name)
    run = Run((root or runs_root()) / name)
    if run.exists() and not run.checkpoints() and run.status()["state"] == "failed":
        run.delete()  # it never began: its name is free
    try:
        run.path.mkdir(parents=True)
    except FileExistsError:
        raise BertScopeError(f"There is already a run called {name!r}; choose another name, or resume it.") from None
    except OSError as error:
        raise BertScopeError(f"The run's folder cannot be made: {error.strerror}.") from None
    run.checkpoints_path.mkdir()
    run.write_status(state="preparing", step=0, message="starting",
                     total=getattr(config.training, "steps", 0))
    run.write_config(config, **facts)  # last: its presence makes the folder a run
    return run


def free_name(stem: str, root: Path | None = None) -> str:
    """``stem``, or ``stem-2``, ``stem-3`` ... : the first name that is not taken."""
    stem = free_stem(stem)
    root, number, name = root or runs_root(), 1, stem
    while (root / name).exists():
        number += 1
        name = f"{stem}-{number}"
    return name


def free_stem(text: str) -> str:
    """``text`` (a path, a title) as the beginning of a run's name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[-50:].lstrip("-._") or "run"


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise BertScopeError(
            "A run's name has up to 64 letters, digits, dots, hyphens and underscores, "
            "and begins with a letter or digit.")


class Run:
    """A handle on one run directory. Reading never fails on a half-written file."""

    def __init__(self, path: Path):
        self.path = Path(path)
        self.name = self.path.name
        self.checkpoints_path = self.path / "checkpoints"
        self.state_path = self.path / "state"
        self.analysis_path = self.path / "analysis"
        self.log_path = self.path / "log.txt"

    # -- what a reader asks ---------------------------------------------------------------

    def exists(self) -> bool:
        return (self.path / "config.json").is_file()

    @property
    def created(self) -> float:
        try:
            return float(self.config_record().get("created", 0.0))
        except (BertScopeError, TypeError, ValueError):
            return 0.0

    def config_record(self) -> dict:
        """``config.json`` whole: ``config``, ``versions``, ``created``, ``corpus``."""
        try:
            record = json.loads((self.path / "config.json").read_text("utf-8"))
        except (OSError, ValueError):
            raise BertScopeError(f"The configuration of run {self.name!r} cannot be read.") from None
        if not isinstance(record, dict):
            raise BertScopeError(f"The configuration of run {self.name!r} cannot be read.")
        return record

    @property
    def kind(self) -> str:
        """``pretraining`` or ``finetuning``."""
        return "finetuning" if self.config_record().get("kind") == "finetuning" else "pretraining"

    def config(self) -> RunConfig:
        """How the encoder is, or was, pretrained: of a fine-tuned run, that of the run it began with.

        Raises:
            BertScopeError: it cannot be read, or it began with a checkpoint of somebody else.
        """
        record = self.config_record()
        values = record.get("pretraining" if self.kind == "finetuning" else "config")
        if not isinstance(values, dict):
            raise BertScopeError(f"How the encoder of run {self.name!r} was pretrained isn't known.")
        return RunConfig.from_dict(values)

    def settings(self) -> Settings:
        """The run's own settings: a ``RunConfig``, or a ``FinetuneConfig`` of a fine-tuned run."""
        if self.kind == "pretraining":
            return self.config()
        from bertscope.finetuning.config import FinetuneConfig

        return FinetuneConfig.from_dict(self.config_record().get("config", {}))

    def status(self) -> dict:
        """``{state, step, total, message, heartbeat, ...}``.

        A run that says it is active while nobody holds its lock was killed: its state is
        reported as ``interrupted``.
        """
        status = self._read_status()
        if status["state"] in ACTIVE and not self.alive():
            status = self._read_status()  # the process may have ended between the two looks
            # A process that was just launched has not taken the lock yet: give it time.
            launching = not status.get("locked") and time.time() - status["heartbeat"] < 30
            if status["state"] in ACTIVE and not launching:
                status["state"] = "interrupted"
        return status

    def _read_status(self) -> dict:
        status = {"state": "preparing", "step": 0, "total": 0, "message": "", "heartbeat": 0.0}
        try:
            read = json.loads((self.path / "status.json").read_text("utf-8"))
            status.update(read if isinstance(read, dict) else {})
        except (OSError, ValueError):
            pass
        return status

    def alive(self) -> bool:
        """Whether a training process holds the lock. Process numbers are never trusted."""
        try:
            with open(self.path / "lock", "r+") as handle:
                try:
                    fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    return True
                return False
        except OSError:
            return False

    def checkpoints(self) -> list[Checkpoint]:
        """Whole checkpoints in the order of their steps."""
        try:
            found = [(STEP.fullmatch(p.name), p) for p in self.checkpoints_path.iterdir()]
        except OSError:
            return []
        return sorted((Checkpoint(int(m[1]), p) for m, p in found if m), key=lambda c: c.step)

    def metrics(self) -> list[dict]:
        """The logged lines with their times. A torn or foreign line is passed over."""
        clock = {(line["step"], line.get("of")): line for line in self._lines("clock.jsonl")}
        lines = []
        for line in self._lines("metrics.jsonl"):
            of = "evaluation" if "eval_loss" in line else None
            times = clock.get((line["step"], of), {})
            lines.append({**{k: v for k, v in times.items() if k != "of"}, **line})
        return lines

    def _lines(self, name: str) -> list[dict]:
        try:
            raw = (self.path / name).read_bytes()
        except OSError:
            return []
        lines = []
        for line in raw[: raw.rfind(b"\n") + 1].splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and isinstance(record.get("step"), int):
                lines.append(record)
        return lines

    def test_result(self) -> dict | None:
        """``test.json``; None before the test part was looked at."""
        try:
            read = json.loads((self.path / "test.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return read if isinstance(read, dict) else None

    def log_tail(self, characters: int = 4000) -> str:
        try:
            with open(self.log_path, "rb") as handle:
                handle.seek(max(0, handle.seek(0, os.SEEK_END) - characters))
                return handle.read().decode("utf-8", "replace")
        except OSError:
            return ""

    # -- what the trainer writes ----------------------------------------------------------

    @contextmanager
    def lock(self, patience: float = 1.0):
        """Hold the run for life; released by the system however the process ends.

        ``lockf`` rather than ``flock``: the latter stays held by forked data workers.

        Raises:
            BertScopeError: another process holds it.
        """
        handle = open(self.path / "lock", "a+")
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    handle.close()
                    raise BertScopeError(f"Run {self.name!r} is being trained already.") from None
                time.sleep(0.05)  # a reader's probe holds it for an instant
        try:
            yield
        finally:
            handle.close()

    def write_config(self, config: Settings, **facts) -> None:
        """The configuration, and what became known since: corpus, baselines, versions."""
        try:
            known = self.config_record()
        except BertScopeError:
            known = {"created": time.time()}
        record = {**known, **facts, "config": config.to_dict()}
        write_atomically(self.path / "config.json", json.dumps(record, indent=2))

    def write_test_result(self, result: dict) -> None:
        write_atomically(self.path / "test.json", json.dumps(result, indent=2))

    def write_status(self, **values) -> None:
        record = {**self._read_status(), **values, "pid": os.getpid(), "heartbeat": time.time()}
        write_atomically(self.path / "status.json", json.dumps(record))

    def append_metrics(self, record: dict, **clock: float) -> None:
        """One line, in one write; what the clock says goes to a file of its own."""
        if clock:
            of = {"of": "evaluation"} if "eval_loss" in record else {}
            self._append("clock.jsonl", {"step": record["step"], **of, **clock})
        self._append("metrics.jsonl", record)

    def _append(self, name: str, record: dict) -> None:
        with open(self.path / name, "ab") as handle:
            handle.write((json.dumps(record) + "\n").encode())

    def truncate_metrics(self, step: int) -> None:
        """Forget lines after ``step``: a resumed run writes them again."""
        for name in ("metrics.jsonl", "clock.jsonl"):
            kept = [json.dumps(line) + "\n" for line in self._lines(name) if line["step"] <= step]
            write_atomically(self.path / name, "".join(kept))

    def tidy(self) -> None:
        """Remove what killed processes left half written; only for the holder of the lock."""
        for scratch in self.path.rglob(".*.partial"):
            shutil.rmtree(scratch) if scratch.is_dir() else scratch.unlink(missing_ok=True)

    def ask_to_stop(self) -> None:
        (self.path / "STOP").touch()

    def stop_asked(self) -> bool:
        return (self.path / "STOP").exists()

    def clear_stop(self) -> None:
        (self.path / "STOP").unlink(missing_ok=True)

    @contextmanager
    def new_checkpoint(self, step: int):
        """Yields a scratch folder; on success it is renamed into place, else removed."""
        with published(self.checkpoints_path / f"step-{step:08d}") as scratch:
            yield scratch

    @contextmanager
    def new_state(self, step: int):
        """As :meth:`new_checkpoint` for the resuming state; all but the last two are removed."""
        with published(self.state_path / f"step-{step:08d}") as scratch:
            yield scratch
        for old in self.states()[:-2]:
            shutil.rmtree(old.path, ignore_errors=True)

    def states(self) -> list[Checkpoint]:
        """What the run can be resumed from, in the order of the steps."""
        try:
            found = [(STEP.fullmatch(p.name), p) for p in self.state_path.iterdir()]
        except OSError:
            return []
        return sorted((Checkpoint(int(m[1]), p) for m, p in found if m), key=lambda s: s.step)

    def latest_state(self) -> Checkpoint | None:
        return next(reversed(self.states()), None)

    def go_back_to(self, step: int) -> None:
        """Forget the states after ``step``, so that resuming goes on from there.

        Raises:
            BertScopeError: there is no state of that step, or the run is being trained.
        """
        if self.alive():
            raise BertScopeError(f"Run {self.name!r} is being trained; stop it first.")
        steps = [state.step for state in self.states()]
        if not steps:
            raise BertScopeError(f"Run {self.name!r} has no saved state to go back to.")
        if step not in steps:
            raise BertScopeError(f"Run {self.name!r} can be resumed from step "
                                 f"{' or '.join(map(str, steps))} only, not from {step}.")
        for state in self.states():
            if state.step > step:
                shutil.rmtree(state.path)

    def delete(self) -> None:
        """Remove the whole directory.

        Raises:
            BertScopeError: it is being trained.
        """
        if self.alive():
            raise BertScopeError(f"Run {self.name!r} is being trained; stop it first.")
        shutil.rmtree(self.path, ignore_errors=True)
