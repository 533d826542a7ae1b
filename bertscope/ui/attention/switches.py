"""Which heads are turned off: in the session, and in the address as ``&off=1-2,3-0`` (0: a whole layer)."""

from __future__ import annotations

import re

import streamlit as st

from bertscope.ui.components import head_values

PARAMETER = "off"
MOST = 400
_HEAD = re.compile(r"(\d{1,3})-(\d{1,3})")


def off(layers: int, heads: int) -> list[tuple[int, int]]:
    """Layer and head, from 1; heads that the checkpoint does not have are left out. At the first visit
    the address decides."""
    kept = st.session_state.get("_off")
    if kept is None:
        kept = _parse(st.query_params.get(PARAMETER, ""))
    found = sorted({(l, a) for l, a in kept if 1 <= l <= layers and 0 <= a <= heads})[:MOST]
    st.session_state["_off"] = found
    value = ",".join(f"{l}-{a}" for l, a in found)
    if value and st.query_params.get(PARAMETER) != value:
        st.query_params[PARAMETER] = value
    elif not value and PARAMETER in st.query_params:
        del st.query_params[PARAMETER]
    return found


def toggle(head: tuple[int, int], heads: int) -> None:
    """Turn a head, or a layer (head 0), off or on again. In a layer that is off, a click on a head turns
    that one on and leaves the others off."""
    layer, number = head
    now = set(st.session_state.get("_off") or [])
    if number == 0:
        now = {h for h in now if h[0] != layer} if (layer, 0) in now else \
            {h for h in now if h[0] != layer} | {(layer, 0)}
    elif (layer, 0) in now:
        now = now - {(layer, 0)} | {(layer, a) for a in range(1, heads + 1) if a != number}
    else:
        now ^= {head}
    st.session_state["_off"] = sorted(now)


def take_click(key: str, heads: int) -> None:
    head = head_values.clicked(key)
    if head is not None:
        toggle(head, heads)


def put(heads: list[tuple[int, int]]) -> None:
    """For callbacks: exactly these are off."""
    st.session_state["_off"] = list(heads)


def count(heads_off: list[tuple[int, int]], heads: int) -> int:
    """How many heads that is."""
    return sum(heads if a == 0 else 1 for _, a in heads_off)


def in_words(heads_off: list[tuple[int, int]]) -> str:
    names = [f"all of layer {l}" if a == 0 else f"{l}-{a}" for l, a in heads_off[:12]]
    return ", ".join(names) + (f" and {len(heads_off) - 12} more" if len(heads_off) > 12 else "")


def _parse(text: str) -> list[tuple[int, int]]:
    return [(int(found[1]), int(found[2])) for part in text[:4000].split(",")
            if (found := _HEAD.fullmatch(part))]
