"""Many texts through a model for their attention: what is looked at, batch by batch, and never kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import torch

    from bertscope.analysis.activations import Encoded, LoadedModel, Progress

#: One text, or a pair (A, B) that is read as [CLS] A [SEP] B [SEP].
Text = str | tuple[str, str]


def texts_digest(texts: Sequence[Text]) -> str:
    """24 hex digits of what the texts are; a pair differs from its texts joined."""
    raise NotImplementedError


def held_out_texts(documents: Sequence[Sequence[str]], count: int, seed: int = 0, pairs: bool = False,
                   ) -> list[Text]:
    """Sentences spread over documents, or neighbouring sentences as pairs (A, B).

    Args:
        documents: each a sequence of sentences, such as ``held_out.of_run(run).test``.
        count: texts at most; a larger count begins with the smaller one's.

    Raises:
        BertScopeError: there is no such text.
    """
    raise NotImplementedError


def encode_texts(model: LoadedModel, texts: Sequence[Text]) -> list[Encoded]:
    """The texts as the model reads them.

    Raises:
        BertScopeError: there is none, or one has nothing to read (named by its place).
    """
    raise NotImplementedError


def attention_batches(model: LoadedModel, inputs: Sequence[Encoded], progress: Progress | None = None,
                      ) -> Iterator[list[tuple[int, torch.Tensor]]]:
    """The weights of all heads for many inputs; a batch's memory is bounded.

    Yields:
        (the input's number, float32 [L, A, T, T] on the CPU, rows sum to 1) of each input of a batch.
        Drop them before asking for the next.

    Raises:
        BertScopeError: the architecture has no such weights, or they are not finite. Whatever
            ``progress`` raises ends the work.
    """
    raise NotImplementedError
