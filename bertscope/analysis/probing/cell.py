"""What is compared in probing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """What is compared: a layer, or a mix up to it, of one checkpoint (or of random weights)."""

    checkpoint: str
    layer: int
    mix: bool = False

    @property
    def column(self) -> str:
        return f"{'mix' if self.mix else 'layer'}_{self.layer}"
