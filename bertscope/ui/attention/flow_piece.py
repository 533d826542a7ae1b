"""One piece: how much of each input piece is in it, by four accounts."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import frame, loaders, theme
from bertscope.ui.attention import Look, reading
from bertscope.ui.attention.flow_data import carried, where_is
from bertscope.ui.attention.flow_steps import names_of
from bertscope.ui.components import head_map
from bertscope.ui.predict.asked import pick
from bertscope.ui.text import markdown


def show(sides, layer: int) -> None:
    """What of the input is in one piece after a layer, by four accounts."""
    import pandas as pd

    look = sides[0][0]
    names = names_of(look)
    piece = names.index(pick("Of which piece", names, "flow_piece", width=220))
    rows = []
    for one, key in sides:
        if piece >= len(one.encoded):
            st.caption(f"{markdown(one.chosen.label)} has no piece {piece}.")
            continue
        if len(sides) > 1:
            st.markdown(f"**{markdown(one.chosen.label)}**")
        accounts = of_piece(one, piece, layer)
        tokens = one.encoded.tokens
        head_map.head_map(head_map.data(
            list(accounts.values()), list(accounts), tokens, theme.sequential(),
            f"{one.chosen.stem}-piece-{piece}", largest=44), f"flow_piece_{key}")
        rows += [{"checkpoint": one.chosen.label, "account": name, "place": j, "piece": token,
                  "value": float(v)} for name, values in accounts.items()
                 for j, (token, v) in enumerate(zip(tokens, values))]
    st.caption(f"How much of each input piece (columns) is in piece {markdown(names[piece])} after layer "
               f"{layer}, by each account (rows). Maximum flows need not sum to 1.")
    frame.download_csv(pd.DataFrame(rows), f"{look.chosen.stem}-piece-{piece}")


def of_piece(look: Look, piece: int, layer: int) -> dict:
    from bertscope.analysis.attention import one_map
    from bertscope.analysis.attention_flow import MOST_FLOW_PIECES, attention_flow, rollout

    weights = reading.maps(look.chosen, look.text, look.pair).weights
    found = {"raw, this layer": one_map(weights, layer)[piece],
             "rollout": rollout(weights[:layer])[-1][piece]}
    if weights.shape[-1] <= MOST_FLOW_PIECES:
        key = ("flow", *where_is(look), piece, layer)
        found["maximum flow"] = loaders.keep(
            key, lambda: attention_flow(weights, piece, layer=layer))
    else:
        st.caption(f"Maximum flow is left out: it is computed for {MOST_FLOW_PIECES} pieces at most.")
    try:
        sizes = carried(look).layers[layer - 1, piece]
        found["carried, this layer"] = sizes / max(float(sizes.sum()), 1e-12)
    except BertScopeError as error:
        st.caption(markdown(error))
    return found
