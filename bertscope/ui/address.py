"""The address as a visitor brings it, before any widget has read it."""

from __future__ import annotations

import math
import re

import streamlit as st

_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?[eE]\+?\d+")


def tidy() -> None:
    """Drop numbers beyond all numbers, like ``draw=1e999``, once a visit: Streamlit's own fields for whole
    numbers end with a traceback on them, where they quietly pass over any other nonsense."""
    if st.session_state.setdefault("_tidied", False):
        return
    st.session_state["_tidied"] = True
    endless = [key for key, value in st.query_params.items()
               if _NUMBER.fullmatch(value) and math.isinf(float(value))]
    for key in endless:
        del st.query_params[key]
    if endless:
        st.rerun()
