"""The logit lens: what the model would answer if it stopped after layer l.

The states of every layer are put through the model's own MLM head (nostalgebraist 2020,
*Interpreting GPT: the logit lens*, there for a causal model). BERT normalises after each layer, so
inner states come normalised and nothing is put before the head; where a family normalises before
its layers instead, inner states reach the head as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bertscope.analysis.activations import Encoded, LoadedModel, Progress, run
from bertscope.analysis.mlm_head import MOST_LOGITS, mlm_logits, require_mlm_head
from bertscope.analysis.predictions import hide


@dataclass(frozen=True)
class Lens:
    """The answers of layers 0 (embeddings) to L at P places; the last row is the model's own.

    *The final answer* of a place is the most probable piece after layer L. ``true_rank`` counts
    from 1, equal probabilities share the best rank; it is 0, and ``true_probability`` NaN, where
    the text itself said ``[MASK]``. ``kl_bits`` is the Kullback-Leibler divergence
    KL(layer L || layer l), 0 for layer L.
    """

    places: list[int]                # positions in the input
    originals: list[str]             # the pieces there, before masking
    tokens: list[list[str]]          # L+1 times P: the most probable piece
    probability: np.ndarray          # float64 [L+1, P], of that piece
    final: list[str]                 # P final answers
    final_probability: np.ndarray    # float64 [L+1, P], of the final answer
    true_rank: np.ndarray            # int64 [L+1, P]
    true_probability: np.ndarray     # float64 [L+1, P]
    entropy_bits: np.ndarray         # float64 [L+1, P], 0 ... log2 V
    kl_bits: np.ndarray              # float64 [L+1, P]
    first_leads: np.ndarray          # int64 [P]: the first layer with the final answer on top
    leads_from: np.ndarray           # int64 [P]: the layer from which it stays there


def lens(model: LoadedModel, encoded: Encoded, masked: Sequence[int],
         places: Sequence[int] | None = None, progress: Progress | None = None) -> Lens:
    """Read every layer's answer at some places of a text, pieces at ``masked`` hidden all at once.

    Args:
        places: the positions to read, the masked ones by default. A place that is not masked shows
            what becomes of a piece that the model sees.
        progress: told after each layer.

    Raises:
        BertScopeError: the checkpoint has no MLM head, or a position is not that of a word piece.
    """
    places = list(masked if places is None else places)
    original = encoded.input_ids[places]
    known = original != model.tokenizer.mask_token_id
    states = _states(model, encoded, masked, places)
    last = _log_p(model, states[-1])
    answer = last.argmax(1)
    found: dict[str, list] = {name: [] for name in ("top", "p", "final", "rank", "true", "entropy",
                                                    "kl")}
    rows = np.arange(len(places))
    for layer, state in enumerate(states):
        log_p = last if layer == len(states) - 1 else _log_p(model, state)
        p = np.exp(log_p)
        top, true = log_p.argmax(1), log_p[rows, original]
        found["top"].append(top)
        found["p"].append(p[rows, top])
        found["final"].append(p[rows, answer])
        found["true"].append(np.where(known, np.exp(true), np.nan))
        found["rank"].append(np.where(known, 1 + (log_p > true[:, None]).sum(1), 0))
        found["entropy"].append(-(p * log_p).sum(1) / np.log(2))
        found["kl"].append((np.exp(last) * (last - log_p)).sum(1) / np.log(2))
        if progress:
            progress(f"layer {layer} of {len(states) - 1}", (layer + 1) / len(states))
    table = {name: np.array(values) for name, values in found.items()}
    first, stays = _leads(table["top"] == answer)
    return Lens(places=places, originals=[encoded.tokens[i] for i in places],
                tokens=[[_token(model, i) for i in row] for row in table["top"]],
                probability=table["p"], final=[_token(model, i) for i in answer],
                final_probability=table["final"], true_rank=table["rank"],
                true_probability=table["true"], entropy_bits=table["entropy"],
                kl_bits=table["kl"], first_leads=first, leads_from=stays)


def layer_probabilities(model: LoadedModel, encoded: Encoded, masked: Sequence[int], place: int,
                        ) -> np.ndarray:
    """Every layer's whole distribution at one place: float32 [L+1, V].

    Raises:
        BertScopeError: as :func:`lens`.
    """
    states = _states(model, encoded, masked, [place])
    return np.exp(_log_p(model, states[:, 0])).astype(np.float32)


def _states(model: LoadedModel, encoded: Encoded, masked: Sequence[int], places: Sequence[int],
            ) -> np.ndarray:
    """float32 [L+1, P, H]."""
    require_mlm_head(model)
    return run(model, hide(model, encoded, masked), heads=False).hidden_states[:, places]


@torch.inference_mode()
def _log_p(model: LoadedModel, states: np.ndarray) -> np.ndarray:
    """Natural logarithms of the head's softmax for states [P, H]: float64 [P, V]."""
    most = max(1, MOST_LOGITS // model.model.config.vocab_size)
    parts = torch.from_numpy(states).to(model.device).split(most)
    return torch.cat([mlm_logits(model, part).double().log_softmax(-1).cpu()
                      for part in parts]).numpy()


def _leads(right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of bool [L+1, P], the last row True: the first True of each column, and where its last
    unbroken run of True begins."""
    wrong_last = len(right) - np.argmax(~right[::-1], axis=0)
    return right.argmax(0), np.where(right.all(0), 0, wrong_last)


def _token(model: LoadedModel, index: int) -> str:
    """A model's table may have more rows than its tokenizer has pieces."""
    return model.tokenizer.convert_ids_to_tokens(int(index)) or f"[{index}]"
