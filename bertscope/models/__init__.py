"""Recipe and shape -> a stock transformers model, and heads that compute only what the loss needs."""

from bertscope.models.build import build
from bertscope.models.heads import PretrainingLoss, PretrainingOutput

__all__ = ["PretrainingLoss", "PretrainingOutput", "build"]
