"""bertviz's views, fed with the layers, heads and decimals that are asked for, and nothing else."""

from __future__ import annotations

import streamlit as st

from bertscope.ui.attention import Look, reading
from bertscope.ui.frame import download

VIEWS = ("head", "model", "neuron")
#: Numbers of one page that are sent without being asked for.
EASY = {"head": 40_000, "model": 40_000, "neuron": 40_000}

EXPLANATION = r"""
*Head view*: lines between pieces, a colour for each head; double-click a colour to see it alone. Its
lines are as opaque as a weight divided by the number of heads shown: compare weights in the views of
ours. *Model view*: a small picture of lines for every head. *Neuron view*: how one weight comes about: the
query of the piece that looks, the key of each piece, their product neuron by neuron, its sum divided
by $\sqrt d$, and the softmax of these. Click the plus sign to open it.

bertviz sends weights as decimal text, which is why it is given only what you choose here. Its scripts are
part of the page; nothing is loaded from elsewhere, and pieces are text whatever they hold.

Vig 2019, *A Multiscale Visualization of Attention in the Transformer Model*.
"""


def show(look: Look) -> None:
    ours = reading.maps(look.chosen, look.text, look.pair)
    length, (count, heads) = len(ours.tokens), ours.weights.shape[:2]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        view = st.segmented_control("bertviz", VIEWS, default="head", key="bertviz", required=True,
                                    bind="query-params") or "head"
        shown = layers(view, count, heads * numbers(look, view, length))
        chosen = st.multiselect("Heads", [str(n) for n in range(1, heads + 1)], key="bertviz_heads",
                                bind="query-params", placeholder="all", width=240)
        decimals = st.number_input("Decimals", 1, 6, 3, key="decimals", bind="query-params", width=110)
    page = build(look, ours, view, shown, sorted(map(int, chosen)) or None, int(decimals))
    st.iframe(page)  # white in both themes: bertviz draws for a white page
    if chosen and view == "head":
        st.caption("The colours are, from left to right, heads " + ", ".join(sorted(chosen, key=int)) + ".")
    if look.other is not None:
        st.caption("bertviz shows one checkpoint at a time, the first one.")
    download(f"This view (HTML, {len(page) / 1e6:.1f} MB)", lambda: page,
             f"{look.chosen.stem}-{view}-view.html", "bertviz_html")


def numbers(look: Look, view: str, length: int) -> int:
    """How many numbers a head has in a page: weights, all and once more by direction of a pair, and of
    the neuron view also queries and keys."""
    weights = length ** 2 * (2 if look.pair else 1)
    if view != "neuron":
        return weights
    return weights + 2 * length * look.model.hidden_size // look.model.num_heads


def layers(view: str, count: int, each: int) -> list[int]:
    """Layers that are sent; by themselves as many as are easy."""
    most = max(1, min(count, EASY[view] // each))
    key = f"{view}_layers"
    kept = st.session_state.get(key)
    if kept is not None and not (isinstance(kept, (tuple, list)) and 1 <= kept[0] <= kept[1] <= count):
        del st.session_state[key]
    if count == 1:
        return [1]
    first, last = st.slider("Layers", 1, count, (1, most), key=key, bind="query-params", width=240)
    return list(range(first, last + 1))


def build(look: Look, ours, view: str, shown: list[int], heads: list[int] | None, decimals: int) -> str:
    from bertscope.analysis.bertviz_views import bertviz_page, neuron_page

    if view == "neuron":
        return neuron_page(look.model, look.text, look.pair, shown, heads, decimals)
    return bertviz_page(ours, view, shown, heads, decimals)
