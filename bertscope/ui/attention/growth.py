"""Over training: when did a head become what it is, which relation did it come to follow, and what
changed between two checkpoints?"""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from bertscope.analysis import timeline
from bertscope.errors import BertScopeError
from bertscope.ui import frame, loaders, over_time, sidebar, theme, waiting
from bertscope.ui.attention import Look, changes, gold, head_figures, reading, sample, values
from bertscope.ui.attention.statistics import in_plain, is_share
from bertscope.ui.components import head_map
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown

#: Gold sentences that are read at each checkpoint.
SENTENCES = 150

EXPLANATION = r"""
The statistics of *What is this head?*, of the same texts at up to 16 of the run's checkpoints (more of them
early, where most is learnt). A *jump* is the largest change of a head's number from one of these checkpoints to
the next; a click on one goes to the checkpoint after it. The maps are those of the text above, before and
after.

*Its best relation* is, at each checkpoint, the dependency relation in which the head is furthest above the best
fixed offset, on gold sentences. Having the best of some relations flatters it: what the first checkpoint, with
random weights, reaches is chance.

*How much a head changed* between two checkpoints is the mean Jensen–Shannon divergence of its rows on the
same texts, in bits: 0 is the same, 1 has nothing in common. Heads are compared by their number, which is only
meaningful within a run (or from the same start).

The probe over time of attention: Chen et al. 2023, *Sudden Drops in the Loss*; head statistics: Clark et al. 2019.
"""


def show(look: Look) -> None:
    if look.chosen.run is None:
        st.info("This checkpoint belongs to no run of BertScope, so there is nothing to see it grow from. "
                "With a second checkpoint (in the sidebar) the two are compared.",
                icon=":material/timeline:")
    found = sample.ask(look, default="50")
    if found is None:
        return
    texts, _ = found
    with st.container(horizontal=True, vertical_alignment="bottom"):
        slot = st.container(width=220)
        head = values.which(look.model.num_layers, look.model.num_heads)
    if look.chosen.run is not None:
        curves(look, texts, head, slot)
    if look.other is not None:
        changes.show(look, texts, head)
    elif look.chosen.run is not None:
        st.caption("To see which heads changed most between two checkpoints, switch on *Compare with "
                   "another* in the sidebar.")


def checkpoints(look: Look) -> list:
    same = second_step(look)
    return timeline.sample(look.chosen.run.checkpoints(), over_time.MOST_CHECKPOINTS,
                           (look.chosen.checkpoint.step, *([same] if same is not None else [])))


def second_step(look: Look) -> int | None:
    """The step of the second checkpoint where it is of the same run."""
    other = look.other
    same = other is not None and other.run is not None and other.checkpoint is not None \
        and other.run.name == look.chosen.run.name
    return other.checkpoint.step if same else None


def marks(look: Look) -> list[tuple[int, str]]:
    same = second_step(look)
    return [(look.chosen.checkpoint.step, "main")] + ([(same, "other")] if same is not None else [])


# -- a number of each head, over the steps --------------------------------------------------------------


def curves(look: Look, texts: list, head: tuple[int, int], slot) -> None:
    from bertscope.analysis.attention_sample import texts_digest
    from bertscope.analysis.head_development import largest_jumps, statistics_over_time
    from bertscope.analysis.head_statistics import STATISTICS

    saved = checkpoints(look)
    if len(saved) < 2:
        st.info("The run has one checkpoint so far: there is nothing to compare it with.",
                icon=":material/timeline:")
        return
    table = waiting.kept(
        ("heads over time", str(look.chosen.run.path), look.chosen.run.created,
         tuple(c.step for c in saved), texts_digest(texts)),
        lambda progress: statistics_over_time(saved, texts, progress, opener),
        f"the heads at {len(saved)} checkpoints")
    if table is None:
        return
    damaged = [f"{c.step:,}" for c in saved if c.step not in set(table["step"])]
    if damaged:
        st.caption(f"Left out, because they cannot be read: step {', '.join(damaged)}.")
    names = [name for name in STATISTICS if table[name].notna().any()]
    if st.session_state.get("statistic") not in (None, *names):
        del st.session_state["statistic"]
    name = slot.selectbox("Statistic", names, names.index("previous"), key="statistic", bind="query-params",
                          format_func=in_plain)
    left, right = frame.beside(2, "growth")
    with left:
        st.altair_chart(head_figures.over_steps(
            table, name, f"{in_plain(name)}: head {head[0]}-{head[1]} strong, all others thin", head,
            marks(look), is_share(name)), key="growth_curve", width="stretch")
        frame.download_csv(table, f"{look.chosen.run.name}-heads-over-steps")
    with right:
        jumps(largest_jumps(table, [name]), name)
    mine = largest_jumps(table)
    mine = mine[(mine["layer"] == head[0]) & (mine["head"] == head[1])]
    if len(mine):
        birth(look, head, mine.iloc[0])
    relations(look, saved, head)


def opener(path):
    return loaders.one_of_many(str(path), loaders.stamp(str(path)))


def jumps(table, name: str) -> None:
    """The largest jumps of all heads; a click goes to the checkpoint after one."""
    import pandas as pd

    if table.empty:
        st.caption("Nothing changes.")
        return
    shown = pd.DataFrame({
        "head": [f"{l}-{a}" for l, a in zip(table["layer"], table["head"])],
        "from step": table["before"].astype(int), "to step": table["after"].astype(int),
        "change": [f"{100 * x:+.0f} points" if is_share(name) else f"{x:+.1f}" for x in table["change"]]})
    st.markdown(f"**Largest jumps of “{in_plain(name)}”**")
    st.caption("Click a row to go to the checkpoint after the jump.")
    st.dataframe(shown, hide_index=True, width="stretch", height=min(36 * (len(shown) + 1) + 3, 290),
                 key="jumps", selection_mode="single-row", on_select=lambda: take_jump(shown))


def take_jump(shown) -> None:
    rows = st.session_state["jumps"]["selection"]["rows"]
    if rows and rows[0] < len(shown):
        row = shown.iloc[rows[0]]
        go(int(row["to step"]), row["head"])


def go(step: int, head: str) -> None:
    st.session_state["head"] = head
    sidebar.go_to(step)


def birth(look: Look, head: tuple[int, int], jump) -> None:
    """The head's own largest jump, with its map of the text before and after."""
    before, after = int(jump["before"]), int(jump["after"])
    statistic = str(jump["statistic"])
    st.markdown(f"##### Head {head[0]}-{head[1]} changed most from step {before:,} to step {after:,}")
    change = f"{100 * abs(jump['change']):.0f} percentage points" if is_share(statistic) else \
        f"{abs(jump['change']):.1f} {'bits' if statistic == 'entropy' else 'pieces'}"
    st.markdown(f"“{in_plain(statistic)}” went {'up' if jump['change'] > 0 else 'down'} by {change}, "
                f"{jump['share']:.0%} of the whole range of that number over all heads and steps: by this "
                "share different numbers are compared.")
    saved = {c.step: c for c in look.chosen.run.checkpoints()}
    for column, step in zip(frame.beside(2, "birth"), (before, after)):
        with column:
            choice = replace(look.chosen, checkpoint=saved[step])
            st.button(f"Step {step:,}", icon=":material/arrow_forward:", key=f"go_{step}", type="tertiary",
                      on_click=go, args=(step, f"{head[0]}-{head[1]}"), help="Go to this checkpoint.")
            one_map(look, choice, head, step)


def one_map(look: Look, choice: Choice, head: tuple[int, int], step: int) -> None:
    try:
        maps = reading.maps(choice, look.text, look.pair)
    except BertScopeError as error:
        st.caption(markdown(error))
        return
    head_map.head_map(head_map.data(
        maps.weights[head[0] - 1, head[1] - 1], maps.tokens, maps.tokens, theme.sequential(),
        f"{choice.stem}-head-{head[0]}-{head[1]}", legend=("weight", "")), f"birth_{step}")


# -- its best relation ----------------------------------------------------------------------------------


def relations(look: Look, saved: list, head: tuple[int, int]) -> None:
    if not st.toggle("Which relation does it follow, and since when? (gold sentences)", key="growth_gold",
                     bind="query-params"):
        return
    from bertscope.analysis.head_development import best_relation, relations_over_time
    from bertscope.analysis.probing.gold import fingerprint

    parts = gold.ask()
    if parts is None:
        return
    sentences = parts[1][:SENTENCES]
    table = waiting.kept(
        ("relations over time", str(look.chosen.run.path), look.chosen.run.created,
         tuple(c.step for c in saved), fingerprint(sentences)),
        lambda progress: relations_over_time(saved, sentences, progress=progress, open_model=opener),
        f"relations at {len(saved)} checkpoints")
    if table is None:
        return
    best = best_relation(table, *head)
    if best.empty:
        st.info("No relation has enough dependents in these sentences.", icon=":material/rule:")
        return
    last = best.iloc[-1]
    st.markdown(f"At the end, head {head[0]}-{head[1]} is furthest above a fixed offset for "
                f"**{markdown(last.relation)}** ({last.direction}): {last.accuracy:.0%} against "
                f"{last.offset_accuracy:.0%}.")
    mine = table[(table["relation"] == last.relation) & (table["direction"] == last.direction)]
    st.altair_chart(head_figures.over_steps(
        mine, "accuracy", f"{last.relation}, {last.direction}: accuracy of every head", head, marks(look),
        True, (float(last.offset_accuracy), "best fixed offset")), key="growth_relation", width="stretch")
    frame.download_csv(best, f"{look.chosen.run.name}-head-{head[0]}-{head[1]}-relations")
