"""The views of the Predict page, a module each with one function ``show(look)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bertscope.ui.selection import Choice


@dataclass(frozen=True)
class Look:
    """What a view is given: the checkpoint, the second one, and the sentence with its masks.

    ``model`` is the opened ``LoadedModel`` of ``chosen``; ``other`` is not opened yet. ``encoded``
    is the sentence before masking, None for views that ask for their own texts; ``masked`` are the
    places to be masked in it.
    """

    chosen: Choice
    other: Choice | None
    model: Any
    encoded: Any = None
    masked: tuple[int, ...] = ()
