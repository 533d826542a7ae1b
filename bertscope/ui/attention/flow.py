"""Flow: what raw weights hide, beside the raw weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from bertscope.ui import compared, frame, loaders, masks, theme
from bertscope.ui.attention import Look, evidence, flow_piece, flow_steps, reading
from bertscope.ui.attention.flow_data import by_pair, carried, gradients
from bertscope.ui.components import head_map
from bertscope.ui.components.tokens import token_bar
from bertscope.ui.predict.asked import pick
from bertscope.ui.text import markdown

ROLLOUT, CARRIED, GRADIENT, ONE = ("rollout", "what is carried", "attention × gradient", "one piece")
MEASURES = (ROLLOUT, CARRIED, GRADIENT, ONE)
ALL = "all heads"

EXPLANATION = r"""
Each of these mends one thing that raw weights hide; none of them explains a prediction.

**Rollout**: what a piece looks at in layer $l$ has itself been mixed in the layers below, and keeps a part of
itself by the residual path. With $\bar A_l$ the mean over heads,

$$
\tilde A_l = \tfrac12 \bar A_l + \tfrac12 I, \qquad R_l = \tilde A_l\, R_{l-1}, \quad R_0 = I
$$

and row $i$ of $R_l$ says how much of each input piece is in piece $i$ after layer $l$. *Maximum flow* asks
for the most that could flow from an input piece through the same network of weights. Abnar and Zuidema 2020.

**What is carried**: a head adds up $\alpha_{ij} f_h(x_j)$ with $f_h(x) = (x W_V + b_V) W_O$; a large weight on a
short vector carries little. Shown is $\lVert \alpha_{ij} f_h(x_j)\rVert$ for a head and
$\lVert \sum_h \alpha^h_{ij} f_h(x_j)\rVert$ for all heads of a layer. Kobayashi et al. 2020, equations 3 to 5.

**Attention × gradient**: $\alpha_{ij}\, \partial y / \partial \alpha_{ij}$ with $y = \log_2 P$ of the piece at the
masked place (or, for a pair, the log-odds of yes): to first order, what $y$ would lose without this weight. Green
speaks for the answer, purple against it. Summed over heads for *all heads*. Chefer et al. 2021; Barkan et al. 2021.
"""


@dataclass(frozen=True)
class Drawn:
    """A map beside the raw one: values [T, T], and how they are coloured."""

    raw: object
    values: object
    signed: bool = False


def show(look: Look) -> None:
    evidence.say()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        measure = st.segmented_control("Beside the raw weights", MEASURES, default=ROLLOUT, required=True,
                                       key="flow", bind="query-params") or ROLLOUT
        layer, head = where(look, measure)
    place = masked_place(look) if measure == GRADIENT and not by_pair(look) else None
    if measure == GRADIENT and place is None and not by_pair(look):
        return
    sides = [(look, "main")]
    if (there := other_side(look)) is not None:
        sides.append((there, "other"))
    if measure == ONE:
        flow_piece.show(sides, layer)
    else:
        pictures(sides, measure, layer, head, place)
    evidence.shares(look, place, measure == GRADIENT)
    if measure == GRADIENT:
        flow_steps.gradients(look, layer, place)
    else:
        flow_steps.shares(look, measure, layer, choose=measure != ONE)


def where(look: Look, measure: str) -> tuple[int, int | None]:
    """Layer (from 1) and head (from 1, None for all)."""
    count = look.model.num_layers
    if st.session_state.get("flow_layer") not in (None, *range(1, count + 1)):
        del st.session_state["flow_layer"]
    layer = st.slider("After layer" if measure in (ROLLOUT, ONE) else "Layer", 1, count, count,
                      key="flow_layer", bind="query-params", width=220) if count > 1 else 1
    if measure in (ROLLOUT, ONE):
        return layer, None
    head = pick("Head", [ALL, *(str(n) for n in range(1, look.model.num_heads + 1))], "flow_head", width=130)
    return layer, None if head == ALL else int(head)


def masked_place(look: Look) -> int | None:
    """The masked place whose prediction is asked about."""
    from bertscope.analysis.mlm_head import require_mlm_head

    require_mlm_head(look.model)
    encoded = look.encoded
    masked = masks.places(encoded)
    special = [i for i, s in enumerate(encoded.special) if s]
    token_bar(encoded.tokens, masked[:1], special, special + masks.typed(encoded), "flow_pieces",
              on_change=lambda: take_click(encoded, masked[:1]))
    if not masked:
        st.info("Click a piece to mask it: its prediction is what the gradient is of.",
                icon=":material/touch_app:")
        return None
    return masked[0]


def take_click(encoded, before: list[int]) -> None:
    """One place at a time: the one that was just clicked."""
    from bertscope.ui.components import tokens

    now = tokens.clicked("flow_pieces")
    masks.choose(encoded.text, sorted(set(now) - set(before)) or now)


def other_side(look: Look) -> Look | None:
    from bertscope.analysis.activations import encode

    if look.other is None:
        return None
    with compared.aside(look.other):
        model = loaders.model(look.other)
        return replace(look, chosen=look.other, other=None, model=model,
                       encoded=encode(model, look.text, look.pair))


# -- maps side by side ----------------------------------------------------------------------------------


def pictures(sides, measure: str, layer: int, head: int | None, place: int | None) -> None:
    found = []
    for look, key in sides:
        with compared.aside(look.chosen, key):
            found.append((look, key, drawn(look, measure, layer, head, place)))
    most = 1.0 if measure == ROLLOUT else max(float(abs(d.values).max()) for _, _, d in found) or 1.0
    name = f"layer {layer}" + (f", head {head}" if head else ", mean over heads")
    for look, key, one in found:
        if len(found) > 1:
            st.markdown(f"**{markdown(look.chosen.label)}**")
        left, right = frame.beside(2, f"flow_{key}")
        shown = as_read(look, place)
        stem = f"{look.chosen.stem}-layer-{layer}" + (f"-head-{head}" if head else "")
        with left:
            st.caption(f"Raw weights: {name}")
            head_map.head_map(message(shown, one.raw, f"{stem}-raw"), f"flow_raw_{key}")
        with right:
            st.caption(said(look, measure, layer, head, place))
            right_map = message(shown, one.values, f"{stem}-{measure.replace(' ', '-')}", most, one.signed)
            head_map.head_map(right_map, f"flow_{key}")
        if key == "main":
            with st.container(horizontal=True):
                frame.download("These numbers (CSV)", lambda one=one, shown=shown: table(shown, one),
                               f"{stem}-flow.csv", "flow_csv")
                frame.download("Picture (HTML)",
                               lambda right_map=right_map: head_map.as_page(right_map, f"{measure}, {name}"),
                               f"{stem}-flow.html", "flow_html")


def as_read(look: Look, place: int | None) -> list[str]:
    """The pieces as the model was given them."""
    return ["[MASK]" if i == place else token for i, token in enumerate(look.encoded.tokens)]


def message(tokens: list[str], values, name: str, most: float = 1.0, signed: bool = False) -> bytes:
    return head_map.data(values, tokens, tokens, theme.signed() if signed else theme.sequential(), name,
                         signed, most, legend=("against", "for") if signed else ("", ""))


def said(look: Look, measure: str, layer: int, head: int | None, place: int | None) -> str:
    if measure == ROLLOUT:
        return f"Rollout: how much of each input piece is in each piece after layer {layer}"
    if measure == CARRIED:
        return "What is carried: " + (f"head {head}" if head else "all heads together") \
            + ", the length of the vector"
    of = "the pair's log-odds" if place is None else f"P({markdown(look.encoded.tokens[place])})"
    return f"Attention × gradient of {of}, bits: " + (f"head {head}" if head else "summed over heads")


def drawn(look: Look, measure: str, layer: int, head: int | None, place: int | None) -> Drawn:
    from bertscope.analysis.attention import one_map

    if measure == CARRIED:
        found = carried(look)
        return Drawn(one_map(found.weights, layer, head),
                     one_map(found.heads, layer, head) if head else found.layers[layer - 1])
    if measure == GRADIENT:
        found = gradients(look, place)
        return Drawn(one_map(found.weights, layer, head), one_map(found.product, layer, head, total=True),
                     signed=True)
    from bertscope.analysis.attention_flow import rollout

    weights = reading.maps(look.chosen, look.text, look.pair).weights
    return Drawn(one_map(weights, layer), rollout(weights[:layer])[-1])


def table(tokens: list[str], one: Drawn) -> bytes:
    import pandas as pd

    count = len(tokens)
    return pd.DataFrame({
        "from": [i for i in range(count) for _ in range(count)],
        "from_piece": [t for t in tokens for _ in range(count)],
        "to": list(range(count)) * count, "to_piece": tokens * count,
        "weight": one.raw.ravel(), "value": one.values.ravel()}).to_csv(index=False).encode()
