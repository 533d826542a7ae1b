"""The texts that statistics of heads are taken over: documents that the checkpoint was not trained on."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import documents
from bertscope.ui.attention import Look
from bertscope.ui.text import markdown

SIZES = {"50": 50, "200": 200, "800": 800}
KINDS = ("sentences", "pairs")


def ask(look: Look, kinds: bool = True, default: str = "200") -> tuple[list, str] | None:
    """The texts (strings, or pairs of them) and whose they are; None while they are being read.

    Args:
        kinds: let the visitor choose between sentences and pairs; else sentences.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        source = documents.ask(look.chosen)
        kind = st.segmented_control("Texts", KINDS, default=KINDS[0], required=True, key="texts",
                                    bind="query-params",
                                    help="Pairs are two neighbouring sentences: only they can tell a "
                                         "head that stays within its text.") if kinds else KINDS[0]
        size = st.segmented_control("How many", list(SIZES), default=default, required=True,
                                    key="sampled", bind="query-params")
    return texts(look, source, SIZES[size or default], kind == "pairs")


def texts(look: Look, source: str, count: int, pairs: bool) -> tuple[list, str] | None:
    from bertscope.analysis.attention_sample import held_out_texts

    parts = documents.parts(look.chosen, source)
    if parts is None:
        return None
    found = held_out_texts(parts.test, count, pairs=pairs)
    st.caption(f"Over {len(found):,} {'pairs of sentences' if pairs else 'sentences'} of "
               f"{markdown(parts.name)}.")
    return found, parts.name
