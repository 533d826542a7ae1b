"""Flow over the training: when did a piece begin to take from [CLS], from [SEP], from this other piece?"""

from __future__ import annotations

import streamlit as st

from bertscope.ui import charts, frame, loaders, over_time, theme
from bertscope.ui.attention import Look
from bertscope.ui.attention.flow_data import by_pair, target_of
from bertscope.ui.masking import curves
from bertscope.ui.predict.asked import marks, pick
from bertscope.ui.text import markdown, shorten

KINDS = "all, by kind"


@st.cache_data(max_entries=512, show_spinner=False)
def _sources(path: str, stamp: float, text: str, pair: str | None, piece: int, layer: int):
    from bertscope.analysis.activations import encode
    from bertscope.analysis.flow_sources import sources

    model = loaders.one_of_many(path, stamp)
    return sources(model, encode(model, text, pair), piece, layer)


@st.cache_data(max_entries=512, show_spinner=False)
def _gradients(path: str, stamp: float, text: str, pair: str | None, layer: int, place: int | None,
               target: int | None):
    from bertscope.analysis.activations import encode
    from bertscope.analysis.flow_sources import gradient_sources

    model = loaders.one_of_many(path, stamp)
    return gradient_sources(model, encode(model, text, pair), layer, place, target)


def shares(look: Look, account: str, layer: int, choose: bool) -> None:
    """The sources of one piece, by an account, at the run's checkpoints.

    Args:
        choose: ask for the piece here; else the view has done so.
    """
    if not asked(look):
        return
    from bertscope.analysis.flow_sources import CARRIED, RAW, ROLLOUT, kinds

    account = {"rollout": ROLLOUT, "what is carried": CARRIED}.get(account, ROLLOUT)
    names = names_of(look)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        piece = names.index(pick("Of which piece", names, "flow_piece", width=190) if choose
                            else st.session_state["flow_piece"])
        source = pick("Taken from", [KINDS, *names], "flow_from", width=190,
                      help="All pieces by kind, or one of them, then by each account.")
    found = over_time.ask(look.chosen, lambda path, stamp: _sources(
        path, stamp, look.text, look.pair, piece, layer), [step for step, _ in marks(look)])
    if source == KINDS:
        groups = kinds(look.encoded, piece)
        rows = summed(((step, shown[account]) for step, shown in found if account in shown), groups, "share")
        order = list(groups)
        title = f"{account}: sources of piece {names[piece]} after layer {layer}"
    else:
        rows = [{"step": step, "source": name, "share": float(values[names.index(source)])}
                for step, shown in found for name, values in shown.items()]
        order = [RAW, ROLLOUT, CARRIED]
        title = f"Share of piece {source} in piece {names[piece]} after layer {layer}"
    draw(look, rows, order, title[:1].upper() + title[1:], "share")


def gradients(look: Look, layer: int, place: int | None) -> None:
    """What the weights on each kind of piece speak for the answer, at the run's checkpoints."""
    if not asked(look):
        return
    from bertscope.analysis.flow_sources import kinds

    target = None if by_pair(look) else target_of(look, place)
    found = over_time.ask(look.chosen, lambda path, stamp: _gradients(
        path, stamp, look.text, look.pair, layer, place, target), [step for step, _ in marks(look)])
    groups = kinds(look.encoded, place)
    draw(look, summed(found, groups, "bits"), list(groups),
         f"Bits that layer {layer}'s weights on … speak for the answer", "bits")


def asked(look: Look) -> bool:
    """Whether the curve is wanted; a checkpoint of others has no training to look back on."""
    if look.chosen.run is None or len(look.chosen.run.checkpoints()) < 2:
        return False
    st.divider()
    return over_time.wanted(look.chosen)


def names_of(look: Look) -> list[str]:
    return [f"{i}: {shorten(token, 30)}" for i, token in enumerate(look.encoded.tokens)]


def summed(answers, groups: dict[str, list[int]], value: str) -> list[dict]:
    from bertscope.analysis.flow_sources import by_kind

    return [{"step": step, "source": name, value: total}
            for step, values in answers for name, total in by_kind(values, groups).items()]


def draw(look: Look, rows: list[dict], order: list[str], title: str, value: str) -> None:
    import pandas as pd

    from bertscope.analysis.flow_sources import ITSELF

    if not rows:
        st.caption(":material/info: This account is not known for this architecture.")
        return
    table = pd.DataFrame(rows)
    order = [name for name in order if name in set(table["source"])]
    if value == "share":
        chart = charts.over_steps(table, value, "source", order, title, marks(look), full=ITSELF in order,
                                  colours=theme.categories(len(order)))
    else:
        chart = curves.lines(table, value, "source", order, title, marks(look), zero=True)
    st.altair_chart(chart, key="flow_steps", width="stretch")
    st.caption(f"Of “{markdown(shorten(look.text, 80))}”. [CLS] and [SEP] are no words of it: much weight on "
               "[SEP] is taken for a way of doing nothing (Clark et al. 2019, section 3.2)." if value == "share" else
               "Above 0, the weights on these pieces speak for the answer; below, against it.")
    frame.download_csv(table, f"{look.chosen.run.name}-flow-over-steps", key="flow_steps_csv")
