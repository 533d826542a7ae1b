"""The views of the Masking page, a module each with one function ``show(look)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bertscope.ui.selection import Choice


@dataclass(frozen=True)
class Look:
    """What a view is given: the checkpoint, opened, and the second one, which is not opened yet."""

    chosen: Choice
    other: Choice | None
    model: Any
