"""ELECTRA's own question: which pieces of a text have been replaced (Clark et al. 2020, section 3.1)?

A discriminator gives each piece the probability that it is not the one the text had. In training the
replacements are samples of a small generator, an MLM that is trained beside it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from bertscope.analysis.activations import Encoded, LoadedModel, forward
from bertscope.analysis.predictions import log_probabilities
from bertscope.errors import BertScopeError


def p_replaced(model: LoadedModel, encoded: Encoded) -> np.ndarray:
    """The probability that each piece was replaced: float64 [T], the sigmoid of the head's logits.

    Raises:
        BertScopeError: the checkpoint is no discriminator, or its weights are not finite.
    """
    if not model.has_rtd_head:
        raise BertScopeError("This checkpoint has no RTD head: only ELECTRA's discriminators say "
                             "which pieces were replaced.")
    logits = forward(model, [encoded]).logits[0].double().cpu().numpy()
    if not np.isfinite(logits).all():
        raise BertScopeError("The weights of this checkpoint give values that are not finite: its "
                             "training has diverged.")
    return 1 / (1 + np.exp(-logits))


def fill(generator: LoadedModel, encoded: Encoded, masked: Sequence[int], seed: int) -> Encoded:
    """The text with a sample of the generator's distribution at each masked place.

    As in training all places are masked at once and filled independently; a sample may be the piece
    that was there.

    Raises:
        BertScopeError: the generator has no MLM head, or a place is not that of a word piece.
    """
    rng = np.random.default_rng(seed)
    ids = encoded.input_ids.copy()
    for place, log_p in zip(masked, log_probabilities(generator, encoded, masked), strict=True):
        p = np.exp(log_p)
        ids[place] = rng.choice(len(p), p=p / p.sum())
    tokens = list(encoded.tokens)
    for place in masked:
        tokens[place] = generator.tokenizer.convert_ids_to_tokens(int(ids[place])) or \
            f"[{ids[place]}]"
    return dataclasses.replace(encoded, input_ids=ids, tokens=tokens)
