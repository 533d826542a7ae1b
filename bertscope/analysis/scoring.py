"""How likely a masked language model finds a whole sentence, and each piece and word of it.

A masked model gives no probability of a sentence, but one of each piece given all others. Their
product is the *pseudo-likelihood* (Salazar et al. 2020, section 2, after Besag 1975):

    PLL(W) = sum over t of log P(w_t | W without w_t)

with the natural logarithm, over the pieces of the text; [CLS] and [SEP] are no part of it. A rare
word of several pieces gets too good a score that way, for each of its pieces is told by the others:
``word_l2r`` therefore also hides the later pieces of the same word (Kauf and Ivanova 2023,
"PLL-word-l2r"), so that the word's pieces multiply to its probability given the other words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bertscope.analysis.activations import Encoded, LoadedModel, Progress, encode, run_at
from bertscope.analysis.mlm_head import MOST_LOGITS, mlm_logits, require_mlm_head
from bertscope.analysis.predictions import hide
from bertscope.errors import BertScopeError

VARIANTS = ("original", "word_l2r")


@dataclass(frozen=True)
class Word:
    """A word as the tokenizer splits words: ``text`` and its surprisal, the sum of its pieces'."""

    text: str
    pieces: tuple[int, ...]   # positions in the input
    bits: float


@dataclass(frozen=True)
class Score:
    """One sentence's pseudo-log-likelihood, piece by piece (N pieces, special tokens not counted)."""

    encoded: Encoded
    variant: str
    places: np.ndarray              # int64 [N], positions in ``encoded``
    log_probabilities: np.ndarray   # float64 [N], natural logarithms

    @property
    def pll(self) -> float:
        """Natural logarithm; 0 would be certainty."""
        return float(self.log_probabilities.sum())

    @property
    def bits(self) -> np.ndarray:
        """The surprisal of each piece, minus its log2 probability: float64 [N]."""
        return -self.log_probabilities / math.log(2)

    @property
    def words(self) -> list[Word]:
        """The same by word, in order."""
        groups: dict[int, list[int]] = {}
        for number, place in enumerate(self.places):
            groups.setdefault(self.encoded.word_ids[place], []).append(number)
        return [self._word(numbers) for numbers in groups.values()]

    def _word(self, numbers: list[int]) -> Word:
        places = [int(self.places[n]) for n in numbers]
        start, end = self.encoded.offsets[places[0]][0], self.encoded.offsets[places[-1]][1]
        text = self.encoded.pair if self.encoded.segments[places[0]] else self.encoded.text
        return Word(text[start:end].strip(), tuple(places), float(self.bits[numbers].sum()))


def score(model: LoadedModel, texts: Sequence[str], variant: str = "original",
          progress: Progress | None = None) -> list[Score]:
    """The scores of many sentences, in batches over all their masked copies.

    Args:
        variant: ``"original"`` (Salazar et al.) or ``"word_l2r"`` (Kauf and Ivanova).
        progress: what it raises ends the computation and passes through.

    Raises:
        BertScopeError: the checkpoint has no MLM head, another variant, or a text that cannot be
            scored as a whole (:func:`readable`), named by its number.
    """
    require_mlm_head(model)
    inputs = []
    for number, text in enumerate(texts, 1):
        try:
            inputs.append(readable(model, text))
        except BertScopeError as error:
            raise BertScopeError(f"Text {number}: {error}" if len(texts) > 1 else str(error)
                                 ) from None
    return score_encoded(model, inputs, variant, progress)


def readable(model: LoadedModel, text: str) -> Encoded:
    """The text as the model reads it, if every word of it can be scored.

    Raises:
        BertScopeError: it is empty, it says [MASK], or it is longer than the model reads at once:
            the score of a part is not comparable to that of a whole.
    """
    encoded = encode(model, text)
    if encoded.truncated:
        raise BertScopeError(f"The text is longer than the {model.max_length:,} pieces that this "
                             "model reads at once: it has no score as a whole.")
    if (encoded.input_ids[~encoded.special] == model.tokenizer.mask_token_id).any():
        raise BertScopeError("The text says [MASK]: a sentence with a gap has no score. Put a word "
                             "in its place.")
    return encoded


def score_encoded(model: LoadedModel, inputs: Sequence[Encoded], variant: str = "original",
                  progress: Progress | None = None) -> list[Score]:
    """The same for texts that are encoded already. Equal masked sentences are computed once.

    Raises:
        BertScopeError: no MLM head, another variant, or weights that are not finite.
    """
    require_mlm_head(model)
    if variant not in VARIANTS:
        raise BertScopeError(f"A score is of the variant {' or '.join(VARIANTS)}, not {variant!r}.")
    plan = _Plan(model, inputs, variant)
    found = _answers(model, plan, progress)
    scores, start = [], 0
    for encoded in inputs:
        places = np.flatnonzero(~encoded.special)
        scores.append(Score(encoded, variant, places, found[start:start + len(places)]))
        start += len(places)
    return scores


def pseudo_perplexity(scores: Sequence[Score]) -> float:
    """exp(minus the mean log-probability of a piece): Salazar et al. 2020, section 2.

    N counts the pieces of the texts without [CLS] and [SEP]; comparable between models that cut
    text into the same pieces only. NaN without any piece.
    """
    pieces = sum(len(s.log_probabilities) for s in scores)
    return math.exp(-sum(s.pll for s in scores) / pieces) if pieces else math.nan


def hidden_with(encoded: Encoded, place: int, variant: str) -> list[int]:
    """The places that are masked when the piece at ``place`` is asked for, itself first."""
    word = encoded.word_ids[place]
    later = range(place + 1, len(encoded)) if variant == "word_l2r" else ()
    return [place, *(i for i in later if encoded.word_ids[i] == word)]


# -- inside -----------------------------------------------------------------------------------


class _Plan(Sequence):
    """The different masked sentences of many texts, as a sequence that makes each when asked.

    Two sentences that differ in one word are the same sentence once that word is masked.
    """

    def __init__(self, model: LoadedModel, inputs: Sequence[Encoded], variant: str):
        self.model, self.inputs = model, inputs
        self.rows: list[tuple[int, list[int]]] = []   # the input, what is masked in it
        self.asked: list[list[tuple[int, int]]] = []  # of each row: (number of the answer, piece)
        known: dict[tuple[bytes, bytes], int] = {}
        answer = 0
        for number, encoded in enumerate(inputs):
            for place in np.flatnonzero(~encoded.special).tolist():
                self.rows.append((number, hidden_with(encoded, place, variant)))
                row = self[-1]
                key = (row.input_ids.tobytes(), row.token_type_ids.tobytes())
                if known.setdefault(key, len(self.asked)) == len(self.asked):
                    self.asked.append([])
                else:
                    self.rows.pop()
                self.asked[known[key]].append((answer, int(encoded.input_ids[place])))
                answer += 1
        self.answers = answer

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> Encoded:
        number, masked = self.rows[row]
        return hide(self.model, self.inputs[number], masked)

    @property
    def places(self) -> list[int]:
        """Where each row is asked: its first masked piece."""
        return [masked[0] for _, masked in self.rows]


def _answers(model: LoadedModel, plan: _Plan, progress: Progress | None) -> np.ndarray:
    """The log-probability of each asked piece: float64 [answers], in the order of the texts."""
    found = np.zeros(plan.answers)
    most = max(1, MOST_LOGITS // model.model.config.vocab_size)

    def told(_, share: float | None) -> None:
        if progress:
            done = round((share or 0.0) * len(plan))
            progress(f"{done:,} of {len(plan):,} masked sentences", share)

    for indices, states in run_at(model, plan, plan.places, told):
        for start in range(0, len(indices), most):
            asked = [(k, *one) for k, row in enumerate(indices[start:start + most])
                     for one in plan.asked[row]]
            rows, answers, pieces = map(list, zip(*asked, strict=True))
            with torch.inference_mode():
                logits = mlm_logits(model, states[start:start + most])
                log_p = logits[rows, pieces] - logits.logsumexp(-1)[rows]
            found[answers] = log_p.double().cpu().numpy()
    if not np.isfinite(found).all():
        raise BertScopeError("The weights of this checkpoint give values that are not finite: its "
                             "training has diverged.")
    return found
