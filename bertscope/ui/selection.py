"""What a page looks at: a run at a step, or somebody else's checkpoint. No streamlit here.

The address of a page holds it as ``?run=demo&step=400`` or ``?run=demo&follow=1``, and
``&vs=demo@0`` for the second checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from bertscope.errors import BertScopeError
from bertscope.runs import ACTIVE, Checkpoint, Run, open_run

MAX_NAME = 500


@dataclass(frozen=True)
class Choice:
    """``name`` is a run's, a directory or a hub name. ``part`` is a folder within the checkpoint that
    holds a second model: ELECTRA's ``generator``."""

    name: str
    run: Run | None = None
    checkpoint: Checkpoint | None = None
    part: str = ""

    @property
    def path(self) -> str | None:
        """The directory (or hub name) to load, None while a run has no checkpoint."""
        if self.run:
            return self.folder(self.checkpoint) if self.checkpoint else None
        return str(Path(self.name) / self.part) if self.part else self.name or None

    def folder(self, checkpoint: Checkpoint) -> str:
        """The same part of another checkpoint of the run."""
        return str(checkpoint.path / self.part)

    def with_part(self, part: str) -> Choice:
        """The part of this checkpoint, or the checkpoint itself where it has no such folder."""
        inside = self.path is not None and (Path(self.path) / part / "config.json").is_file()
        return replace(self, part=part) if inside else self

    @property
    def is_directory(self) -> bool:
        return self.run is None and Path(self.name).is_dir()

    @property
    def label(self) -> str:
        """``demo · step 400``, or the last part of a path."""
        if self.run and self.checkpoint:
            return f"{self.run.name} · step {self.checkpoint.step:,}{self._part}"
        return self.name if self.run else self.name.rstrip("/").rsplit("/", 1)[-1] + self._part

    @property
    def _part(self) -> str:
        return f" · {self.part}" if self.part else ""

    @property
    def stem(self) -> str:
        """The beginning of the names of downloaded files."""
        if self.run and self.checkpoint:
            return f"{self.run.name}-step-{self.checkpoint.step}"
        return self.label

    @property
    def active(self) -> bool:
        return bool(self.run) and self.run.status()["state"] in ACTIVE


def find_run(name: str) -> Run | None:
    try:
        return open_run(name)
    except BertScopeError:
        return None


def parse_step(text: str | None) -> int | None:
    """A step from the address; None where it is absent or no number."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else None


def parse_spec(text: str) -> tuple[str, int | None]:
    """``demo@400`` -> ``("demo", 400)``; without a step the newest is meant."""
    name, at, step = text[:MAX_NAME].rpartition("@")
    if at and parse_step(step) is not None:
        return name, parse_step(step)
    return text[:MAX_NAME], None


def nearest(steps: list[int], wanted: int) -> int:
    """The saved step that is closest to ``wanted``."""
    return min(steps, key=lambda step: (abs(step - wanted), step))
