"""What each head does, turned off alone: a number for each, and the switches that these numbers stand on."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import loaders, theme, waiting
from bertscope.ui.attention import Look, cost, switches
from bertscope.ui.components import head_values
from bertscope.ui.text import markdown

PREDICTION, PAIR, IMPORTANCE = "this prediction", "this pair", "the loss (gradient)"


def effects(look: Look, masked: tuple[int, ...], measure: str):
    """(table with ``layer``, ``head`` and ``value``, whether it has a sign, what it says, its unit), None
    while it is cancelled or where this checkpoint cannot be asked, which is then said."""
    where = (look.chosen.path, loaders.stamp(look.chosen.path), look.text, look.pair)
    try:
        if measure == IMPORTANCE:
            table = cost.importance(look)
            return table if table is None else (table, False, "importance", "nats")
        if measure == PAIR:
            from bertscope.analysis.head_ablation import effect_of_each_head_on_pair

            found = waiting.kept(("heads off, pair", *where), lambda progress: effect_of_each_head_on_pair(
                look.model, look.text, look.pair, progress), f"each head of {look.chosen.label} off")
            return found if found is None else (found.assign(value=100 * found["change"]), True,
                                                "changes P(yes) by", "points")
        from bertscope.analysis.head_ablation import effect_of_each_head

        found = waiting.kept(("heads off", *where, masked), lambda progress: effect_of_each_head(
            look.model, look.encoded, masked, progress), f"each head of {look.chosen.label} off")
    except BertScopeError as error:
        st.warning(f"{markdown(look.chosen.label)}: {markdown(error)}", icon=":material/compare:")
        return None
    if found is None:
        return None
    known = found["surprisal"].notna().all()
    return (found.assign(value=found["surprisal" if known else "divergence"]), known,
            "adds" if known else "changes the answer by", "bits")


def board(look: Look, table, signed: bool, most: float, say: str, unit: str, heads_off, key: str) -> None:
    digits = 0 if unit == "points" else 2 if most >= 0.1 else 4
    sign = "+" if signed else ""

    def form(x: float) -> str:
        return f"{round(x, digits) + 0.0:{sign}.{digits}f}".replace("-", "−") if x == x else "–"

    heads = table[table["head"] > 0].sort_values(["layer", "head"])
    count = int(heads["head"].max())
    values = heads["value"].to_numpy(float).reshape(-1, count)
    whole = table[table["head"] == 0].sort_values("layer")["value"].to_numpy(float)
    has_layers = len(whole) == len(values)
    titles = [[f"turning {l}-{a} off {say} {form(x)} {unit}" for a, x in enumerate(row, 1)]
              for l, row in enumerate(values, 1)]
    layers = (whole if has_layers else [float("nan")] * len(values),
              [form(x) for x in whole] if has_layers else ["off"] * len(values),
              [f"turn all heads of layer {l} off" for l in range(1, len(values) + 1)])
    head_values.head_values(
        values, [[form(x) for x in row] for row in values], titles, (-most if signed else 0.0, most),
        theme.signed() if signed else theme.sequential(), f"switches_{key}",
        lambda: switches.take_click(f"switches_{key}", count), off=heads_off, layers=layers,
        legend=(f"{form(-most) if signed else 0}", f"{form(most)} {unit}"), switches=True)
