"""Sentence scores for the views: of the checkpoint on the page, and of a run's others, kept."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import compared, loaders, score_charts, theme, waiting
from bertscope.ui.components.shaded import Shade, shaded

#: What is hidden when a piece is asked for: the name in the address, and the variant.
WAYS = {"piece by piece": "original", "word by word": "word_l2r"}
#: The strongest colour is this many bits at least: what is smaller is next to no surprise.
LEAST_BITS = 4.0


def pick_way(key: str = "score_by") -> str:
    """The variant that a visitor chose."""
    way = st.segmented_control(
        "Hide", list(WAYS), default="piece by piece", required=True, key=key, bind="query-params",
        help="Piece by piece: each piece is hidden alone, so the other pieces of a rare word give it "
             "away. Word by word: the later pieces of its word are hidden with it.")
    return WAYS[way]


def score(choice, model, texts: tuple[str, ...], variant: str) -> list | None:
    """The ``Score`` of each text by a checkpoint that is open; None while it is cancelled.

    Raises:
        BertScopeError: a text cannot be scored as a whole.
    """
    from bertscope.analysis.scoring import score as ask

    way = next(name for name, value in WAYS.items() if value == variant)
    return waiting.kept(
        ("score", choice.path, loaders.stamp(choice.path), texts, variant),
        lambda progress: ask(model, texts, variant, progress),
        f"the score by {choice.label}, {way}")


@st.cache_data(max_entries=512, show_spinner=False)
def at(path: str, stamp: float, texts: tuple[str, ...], variant: str) -> list:
    """The same by one of a run's checkpoints."""
    from bertscope.analysis.scoring import score as ask

    return ask(loaders.one_of_many(path, stamp), texts, variant)


def second(look):
    """(choice, model) of the second checkpoint, None with a sentence where it cannot be asked."""
    from bertscope.analysis.mlm_head import require_mlm_head

    if look.other is None:
        return None
    with compared.aside(look.other):
        model = loaders.model(look.other)
        require_mlm_head(model)
        return look.other, model


def coloured(score, meaning: str, most: float, key: str, words: bool = False, legend: bool = True,
             strong=()) -> None:
    """The text, each piece or word on a colour that grows with its surprisal, up to ``most`` bits.

    ``strong`` are positions in the input that are framed.
    """
    scale = score_charts.scale(meaning)
    if words:
        parts = [(w.text, w.bits, " ".join(score.encoded.tokens[i] for i in w.pieces), w.pieces)
                 for w in score.words]
    else:
        parts = [(score.encoded.tokens[p], float(b), "", (int(p),))
                 for p, b in zip(score.places, score.bits)]
    shaded([Shade(text, f"{bits:.1f}", f"{text}: {bits:.2f} bits, P = {2 ** -bits:.3g}"
                  + (f" ({pieces})" if pieces and pieces != text else ""),
                  theme.shade(scale, bits / most), strong=any(p in strong for p in places))
            for text, bits, pieces, places in parts], key,
           ("0 bits: certain", [c for _, c in scale], f"{most:.1f} bits") if legend else None)


def largest(scores, words: bool = False) -> float:
    """The bits of the strongest colour: the same for all texts that are compared."""
    return max([LEAST_BITS, *(w.bits for s in scores for w in s.words)] if words else
               [LEAST_BITS, *(float(b) for s in scores for b in s.bits)])
