"""That weights are not explanations, said plainly, with the evidence a click away."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import frame
from bertscope.ui.attention import Look, flow_data
from bertscope.ui.text import markdown


def say() -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(":material/warning: **Weights are not explanations.** They say where a head reads, not why "
                    "the model answers what it answers.", width="stretch")
        with st.popover("The evidence", icon=":material/gavel:"):
            st.markdown(
                "- Other weights can give the same answer, and weights often disagree with what gradients or "
                "leaving words out say (Jain and Wallace 2019; Serrano and Smith 2019).\n"
                "- What else could be meant by *explanation*, and when weights do matter: Wiegreffe and "
                "Pinter 2019.\n"
                "- A large weight on a short vector carries next to nothing, as for `[SEP]` (Kobayashi et al. "
                "2020; Clark et al. 2019, section 3.2).\n"
                "- Most heads can be turned off with little loss (Michel et al. 2019; Voita et al. 2019).\n\n"
                "See it on this checkpoint: turn heads off, and compare the shares at the bottom of this page.")
            st.button("Turn heads off", icon=":material/toggle_off:", on_click=frame.set_state,
                      kwargs={"view": "Does it matter?"}, key="evidence_off")


def shares(look: Look, place: int | None, gradient: bool) -> None:
    """How much of the raw weights, of what is carried, and of the gradients goes to special pieces and
    punctuation, in this text."""
    import pandas as pd

    from bertscope.analysis.attention import share_of
    from bertscope.analysis.head_statistics import is_punctuation

    encoded = look.encoded
    groups = {"[CLS], [SEP]": [i for i, s in enumerate(encoded.special) if s],
              "punctuation": [i for i, t in enumerate(encoded.tokens)
                              if not encoded.special[i] and is_punctuation(t)]}
    groups["words"] = [i for i in range(len(encoded)) if not any(i in g for g in groups.values())]
    try:
        found = flow_data.carried(look)
        maps = {"of the raw weights": found.weights, "of what is carried": found.layers}
        if gradient:
            maps["of attention × gradient (its size)"] = flow_data.gradients(look, place).product
    except BertScopeError as error:
        st.caption(markdown(error))
        return
    table = pd.DataFrame([{"share": name, **{group: share_of(values, columns)
                                             for group, columns in groups.items()}}
                          for name, values in maps.items()])
    st.markdown("**Who gets how much, in this text, over all layers and heads**")
    st.dataframe(table.style.format({g: "{:.1%}" for g in groups}), hide_index=True, width=640,
                 column_config={"share": ""})
