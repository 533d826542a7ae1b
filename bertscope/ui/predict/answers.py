"""What the views ask of a run's checkpoints, kept: the time axis asks many, again and again.

Each answer belongs to a checkpoint as it is (``path``, ``stamp``), a text, and its masked places.
"""

from __future__ import annotations

import streamlit as st


def _opened(path: str, text: str):
    from bertscope.analysis.activations import encode, load

    model = load(path)
    return model, encode(model, text)


@st.cache_data(max_entries=64, show_spinner=False)
def layers(path: str, stamp: float, text: str, masked: tuple[int, ...], place: int):
    """P(piece) at one place after every layer: float32 [L+1, V]."""
    from bertscope.analysis.lens import layer_probabilities

    return layer_probabilities(*_opened(path, text), masked, place)


@st.cache_data(max_entries=128, show_spinner=False)
def sides(path: str, stamp: float, text: str, masked: tuple[int, ...], place: int, cut: bool):
    """P(piece) from the left, the right and both: float32 [3, V]."""
    import numpy as np

    from bertscope.analysis.sides import SIDES
    from bertscope.analysis.sides import sides as ask

    found = ask(*_opened(path, text), masked, place, cut)
    return np.exp([found[side].log_p for side in SIDES]).astype(np.float32)


@st.cache_data(max_entries=128, show_spinner=False)
def left_to_right(path: str, stamp: float, model: str, model_stamp: float, text: str,
                  masked: tuple[int, ...], place: int, piece: str) -> float | None:
    """P(piece) by a causal checkpoint at a place of ``model``'s input; None for a piece that it
    lacks."""
    import numpy as np

    from bertscope.analysis.activations import load
    from bertscope.analysis.sides import left_to_right as ask
    from bertscope.analysis.sides import piece_id

    causal = load(path)
    found = ask(causal, *_opened(model, text), masked, place)
    index = piece_id(causal, piece)
    return None if index is None else float(np.exp(found.log_p[index]))


@st.cache_data(max_entries=256, show_spinner=False)
def attribution(path: str, stamp: float, text: str, masked: tuple[int, ...], place: int,
                target: int, method: tuple):
    """:func:`attribute` by one checkpoint."""
    return attribute(*_opened(path, text), masked, place, target, method)


def attribute(model, encoded, masked, place: int, target: int, method: tuple, progress=None):
    """An ``Attribution``; ``method`` is ("occlusion", whole words), ("gradient",) or
    ("integrated", baseline)."""
    from bertscope.analysis import attribution as ways

    if method[0] == "occlusion":
        return ways.occlusion(model, encoded, masked, place, target, method[1], progress)
    if method[0] == "gradient":
        return ways.gradient_x_input(model, encoded, masked, place, target)
    return ways.integrated_gradients(model, encoded, masked, place, target, method[1], progress)


@st.cache_data(max_entries=256, show_spinner=False)
def fillings(path: str, stamp: float, text: str, masked: tuple[int, ...]):
    """``[(Filling, the text with it)]`` for every order, by one checkpoint."""
    return fill(*_opened(path, text), masked)


def fill(model, encoded, masked, progress=None) -> list:
    from bertscope.analysis.filling import ORDERS, filled_text
    from bertscope.analysis.filling import fill as one

    def told(number: int):
        return progress and (lambda message, share: progress(
            message, (number + (share or 0.0)) / len(ORDERS)))

    found = [one(model, encoded, masked, order, told(n)) for n, order in enumerate(ORDERS)]
    return [(filling, filled_text(encoded, filling)) for filling in found]
