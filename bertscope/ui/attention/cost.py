"""What heads that are off cost on held-out texts, and how far a model can be pruned."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import compared, documents, frame, loaders, theme, waiting
from bertscope.ui.attention import Look, switches
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown, plotly

#: Held-out texts; more give narrower numbers and take longer.
TEXTS, STEPS = 200, 10


def show(look: Look, heads_off) -> None:
    """Losses with and without the heads that are off, then the curve."""
    if not look.model.has_mlm_head:
        return
    st.divider()
    st.markdown("##### On held-out texts")
    found = texts(look)
    if found is None:
        return
    losses(look, found, heads_off)
    curve(look, found, heads_off)


def texts(look: Look):
    """(texts or pairs, labels or None, their name): pairs where the checkpoint judges pairs."""
    model = look.model
    paired = model.has_nsp_head or model.has_sop_head
    parts = documents.parts(look.chosen, documents.asked(look.chosen))
    if parts is None:
        return None
    from bertscope.analysis.attention_sample import held_out_texts

    if not paired:
        return held_out_texts(parts.test, TEXTS), None, parts.name
    from bertscope.analysis.pair_head import SOP, question

    pairs, labels = labelled(held_out_texts(parts.test, TEXTS, pairs=True), question(model) == SOP)
    return pairs, labels, parts.name


def labelled(pairs: list[tuple[str, str]], order: bool) -> tuple[list, list[int]]:
    """Every other pair made false: swapped where ``order`` is asked for, else with the second text of
    the next such pair; with labels 0 (true) and 1."""
    odd = pairs[1::2]
    false = [(b, a) for a, b in odd] if order else \
        [(a, odd[(i + 1) % len(odd)][1]) for i, (a, _) in enumerate(odd)]
    found = list(pairs)
    found[1::2] = false
    return found, [i % 2 for i in range(len(found))]


def importance(look: Look):
    """Importance of each head by gradient, as ``value``; None while it is cancelled."""
    from bertscope.analysis.head_importance import head_importance_cached

    found = texts(look)
    if found is None:
        return None
    sampled, _, name = found
    table = waiting.kept(
        key_of("head importance", look.chosen, sampled),
        lambda progress: head_importance_cached(look.chosen.path, sampled, progress=progress,
                                                open_model=lambda _: loaders.model(look.chosen)),
        f"the importance of the heads of {look.chosen.label}")
    if table is None:
        return None
    st.caption(f"{markdown(look.chosen.label)}: over {len(sampled):,} texts of {markdown(name)}.")
    return table.assign(value=table["importance"])


def key_of(what: str, choice: Choice, sampled, *more) -> tuple:
    from bertscope.analysis.attention_sample import texts_digest

    return (what, choice.path, loaders.stamp(choice.path), texts_digest(sampled), *more)


# -- the losses, with and without -----------------------------------------------------------------------


def losses(look: Look, found, heads_off) -> None:
    sampled, labels, name = found
    before = loss(look, sampled, labels, [])
    after = loss(look, sampled, labels, heads_off) if heads_off and before else None
    if before is None:
        return
    st.caption(f"Over {before.places:,} masked pieces of {len(sampled):,} texts of {markdown(name)}.")
    numbers = [("Masked-word loss (nats)", "mlm", "{:.3f}", True), ("Masked words right", "accuracy",
                                                                   "{:.1%}", False)]
    if before.nsp is not None:
        numbers += [("Pair loss (nats)", "nsp", "{:.3f}", True), ("Pairs right", "nsp_accuracy", "{:.1%}",
                                                                  False)]
    for column, (label, field, form, less) in zip(frame.beside(len(numbers), "narrow_losses"), numbers):
        old = getattr(before, field)
        new = getattr(after, field) if after else None
        change = None if new is None else (f"{new - old:+.3f}" if less else f"{100 * (new - old):+.1f} points") \
            + " without them"
        column.metric(label, form.format(old if new is None else new), change,
                      delta_color="inverse" if less else "normal")


def loss(look: Look, sampled, labels, heads_off):
    """``head_ablation.Loss`` with heads off; None while it is cancelled."""
    from bertscope.analysis.head_ablation import held_out_loss, masked_sample
    from bertscope.analysis.head_gates import without_heads

    return waiting.kept(
        key_of("held-out loss", look.chosen, sampled, tuple(heads_off)),
        lambda progress: held_out_loss(without_heads(look.model, heads_off),
                                       masked_sample(look.model, sampled, labels), progress),
        f"the loss of {look.chosen.label}" + (" without them" if heads_off else ""))


# -- the curve ------------------------------------------------------------------------------------------


def curve(look: Look, found, heads_off) -> None:
    """The loss while heads go, the least important first."""
    if not st.toggle("Turn off more and more heads, the least important first", key="prune",
                     bind="query-params", help="Measures the loss about ten times."):
        return
    sampled, labels, _ = found
    curves = []
    for choice, meaning in ((look.chosen, "main"), (look.other, "other")):
        if choice is None:
            continue
        with compared.aside(choice):
            table, order = pruned(choice, sampled, labels)
            if table is not None:
                curves.append((choice, meaning, table, order))
    if not curves:
        return
    mine = None
    if heads_off and (after := loss(look, sampled, labels, heads_off)) is not None:
        share = switches.count(heads_off, look.model.num_heads)
        mine = share / (look.model.num_layers * look.model.num_heads), after.mlm
    frame.figure(prune_figure([(c.label, m, t) for c, m, t, _ in curves], mine),
                 f"{look.chosen.stem}-pruned", "prune_curve")
    st.caption("Where the curve stays flat, the heads to the left of it are not needed for this loss."
               + (" The cross: the heads that you turned off." if mine else ""))
    choice, _, table, order = curves[0]
    if choice == look.chosen:
        prune_buttons(order)
    import pandas as pd

    frame.download_csv(pd.concat([t.assign(checkpoint=c.label) for c, _, t, _ in curves]),
                       f"{look.chosen.stem}-pruned")


def prune_buttons(order: list[tuple[int, int]]) -> None:
    """Turn off the least important part of the heads, to see what it does to the sentence above."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Turn off the least important", width="content")
        for percent in (25, 50, 75):
            heads = order[:round(percent / 100 * len(order))]
            st.button(f"{percent} %", key=f"prune_{percent}", on_click=switches.put, args=(heads,),
                      help=switches.in_words(heads))


def pruned(choice: Choice, sampled, labels):
    """(curve, order), (None, None) while it is cancelled."""
    from bertscope.analysis.head_importance import (head_importance_cached, least_first,
                                                    prune_curve_cached)

    def compute(progress):
        def open_model(_):
            return loaders.model(choice)

        table = head_importance_cached(choice.path, sampled, progress=progress, open_model=open_model)
        order = least_first(table)
        return prune_curve_cached(choice.path, sampled, order, STEPS, labels=labels, progress=progress,
                                  open_model=open_model), order

    return waiting.kept(key_of("prune", choice, sampled), compute,
                        f"the curve of {choice.label}") or (None, None)


def prune_figure(curves, mine: tuple[float, float] | None):
    """Loss over the share of heads that are off.

    Args:
        curves: (checkpoint, meaning of its colour, table). mine: a point of its own.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    for label, meaning, table in curves:
        figure.add_scatter(
            x=table["share"], y=table["mlm"], mode="lines+markers", name=plotly(label),
            line={"color": theme.colour(meaning), "width": 2.5}, customdata=table["off"],
            hovertemplate="%{customdata} heads off: %{y:.3f} nats<extra>" + plotly(label) + "</extra>")
    if mine:
        figure.add_scatter(x=[mine[0]], y=[mine[1]], mode="markers", name="yours", marker={
            "symbol": "x", "size": 12, "color": theme.colour("text")},
            hovertemplate="yours: %{y:.3f} nats<extra></extra>")
    figure.update_xaxes(title="share of the heads that are off", tickformat=".0%", range=[-0.02, 1.02])
    figure.update_yaxes(title="masked-word loss (nats)")
    return theme.dress(figure, 360)
