"""What a training example is: sentence pairs, masks, and batches of them.

Everything here is numpy on the token store: no torch, no model. The same functions make the
trainer's batches and the pictures of them.
"""

from bertscope.objectives.examples import Batch, Examples, Rows
from bertscope.objectives.masking import Masked, mask_rows, predictions_per_row
from bertscope.objectives.packing import plan_packed
from bertscope.objectives.pairs import Pairs, plan_pairs
from bertscope.objectives.plan import Plan

__all__ = ["Batch", "Examples", "Masked", "Pairs", "Plan", "Rows", "mask_rows",
           "plan_packed", "plan_pairs", "predictions_per_row"]
