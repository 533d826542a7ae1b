"""Recipe and shape -> a stock transformers model, and losses that compute only what they need."""

from bertscope.models.build import Electra, build, parts
from bertscope.models.heads import MaskedLoss, Measured, NextTokenLoss, ReplacedTokenLoss, build_loss

__all__ = ["Electra", "MaskedLoss", "Measured", "NextTokenLoss", "ReplacedTokenLoss", "build",
           "build_loss", "parts"]
