"""What has to be known of a task to use a fine-tuned checkpoint; kept beside its weights."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

FILE = "finetuning.json"


@dataclass(frozen=True)
class TaskSpec:
    """``labels`` in the order of the logits; none where numbers or answers are predicted."""

    task: str
    labels: tuple[str, ...] = ()
    layer: str = "last"
    max_length: int | None = None
    stride: int | None = None
    longest_answer: int = 30
    unanswered: bool = False        # whether a question may have no answer
    no_answer_margin: float = 0.0

    @property
    def numbers(self) -> bool:
        """Whether a number is predicted."""
        return self.task in ("sentence", "pair") and not self.labels

    def write(self, folder: Path) -> None:
        """As ``finetuning.json``."""
        (folder / FILE).write_text(json.dumps(dataclasses.asdict(self), indent=1), "utf-8")

    @classmethod
    def read(cls, folder: Path) -> TaskSpec | None:
        """What ``write`` wrote; None where the file is missing or another program's."""
        try:
            values = json.loads((folder / FILE).read_text("utf-8"))
            return cls(**{**values, "labels": tuple(values["labels"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None
