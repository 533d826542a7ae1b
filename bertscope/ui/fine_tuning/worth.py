"""What pretraining is worth: the same task from random weights and from several checkpoints."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from bertscope import runs
from bertscope.ui import frame, loaders, theme
from bertscope.ui.fine_tuning import figures, sweeping, tuned_run
from bertscope.ui.fine_tuning.quality import metric_title, value_of
from bertscope.ui.probing.figures import intervals
from bertscope.ui.selection import Choice
from bertscope.ui.text import shorten

EXPLANATION = r"""
The same task, the same examples, the same head: only where the training begins differs. *Random weights*
are drawn anew with each seed, as the pretraining itself began; the others are an early, a middle and the
last checkpoint of one pretraining run. Every point is the mean of the best validation metric over the
seeds; the bar is its 95 % interval by Student's $t$ with $n - 1$ degrees of freedom,

$$
\bar x \pm t_{0.975,\,n-1}\, \frac{s}{\sqrt n}.
$$

Fewer examples are always part of more, and the seed decides which. Where several learning rates were
tried, the one with the best mean is shown, for each start its own. Hao et al. 2019 and Warstadt et al.
2020 (*Learning which features matter*) draw such curves; Dodge et al. 2020 on seeds.
"""

#: Metrics that are no shares.
CORRELATIONS = ("pearson", "spearman")
WIDE = "So few seeds leave intervals wider than what the metric can be; they are cut at the picture's edge."


def show(main: Choice, other: Choice | None) -> None:
    found = gathered()
    family = family_of(main)
    sweeping.progress()
    own = [group for group in found if group.family == family]
    if own or found:
        drawn(own + [group for group in found if group not in own])
    else:
        st.info("There is no sweep yet: it fine-tunes random weights, an early, a middle and the last "
                "checkpoint on more and more examples, and draws a line for each.",
                icon=":material/ssid_chart:")
    sweeping.form(main, family, bool(found))


def gathered() -> list:
    """``gathered.gather``, again when a run has ended, begun or gone."""
    from bertscope.finetuning.gathered import gather

    root, stamps = runs.runs_root(), []
    for place in sorted(root.glob("*/status.json")):
        with suppress(OSError):
            stamps.append((place.parent.name, place.stat().st_mtime_ns))
    with st.spinner("Looking for sweeps among the runs …"):
        return loaders.keep(("sweeps", str(root), tuple(stamps)), gather)


def family_of(main: Choice) -> str:
    """The pretraining run that the chosen checkpoint is of, or began with."""
    if (run := tuned_run(main)) is not None:
        from bertscope.finetuning.gathered import begun

        return begun(run).family
    return main.name


# -- the picture --------------------------------------------------------------------------------


def drawn(groups: list) -> None:
    from bertscope.finetuning import sweep

    titles = {str(number): named(group) for number, group in enumerate(groups)}
    if st.session_state.get("worth_which") not in (None, *titles):
        del st.session_state["worth_which"]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        which = st.selectbox("Sweep", list(titles), format_func=titles.get, key="worth_which", width=520)
        log = st.toggle("Logarithmic", True, key="worth_log", bind="query-params",
                        help="Of the numbers of examples: twice as many are always as far to the right.")
    group = groups[int(which or 0)]
    table = sweep.frame(group.made)
    means = sweep.summary(table)
    chosen = means[means["chosen"]]
    curves = [(begun.title, colour(begun, group.starts),
               chosen[chosen["start"] == begun.start].sort_values("examples")) for begun in group.starts]
    metric = str(table["metric"].iloc[0])
    st.markdown(headline(group, chosen, metric))
    seeds, form = int(chosen["seeds"].max()), "f" if metric in CORRELATIONS else "%"
    if table["examples"].nunique() > 1:
        figure = figures.worth(curves, metric_title(metric), bool(log), references(group, metric), form)
    else:  # one number of examples is no curve
        rows = [(begun.title, *own.iloc[0][["mean", "low", "high"]],
                 "main" if begun.step >= 0 else "baseline")
                for begun, (_, _, own) in zip(group.starts, curves)]
        figure = intervals(rows, metric_title(metric), (min(0.0, *(row[1] for row in rows)) - 0.02, 1.05),
                           ".1%" if form == "%" else ".2f", 140 + 44 * len(rows))
        figure.update_xaxes(tickformat=".0%" if form == "%" else ".1f")
        figure.update_yaxes(autorange=False, range=[len(rows) - 0.5, -0.5])
    frame.figure(figure, f"{group.family}-worth", "worth")
    st.caption(f"Mean and 95 % interval over {seeds} seed{'s' * (seeds != 1)}, of the best validation "
               "metric. " + ("One seed has no interval." if seeds == 1 else WIDE if wide(chosen) else ""))
    with st.expander("The numbers", icon=":material/table:"):
        shown = means.drop(columns=["chosen"]) if means["chosen"].all() else means
        st.dataframe(shown, hide_index=True, width="stretch", column_config={
            name: st.column_config.NumberColumn(format="%.3f") for name in ("mean", "sd", "low", "high")})
    with st.container(horizontal=True):
        frame.download_csv(means, f"{group.family}-worth", "Means (CSV)", key="worth_means")
        frame.download_csv(table, f"{group.family}-worth-runs", "Runs (CSV)", key="worth_runs")


def wide(chosen) -> bool:
    """Whether an interval leaves the picture."""
    return bool((chosen["high"] > 1.05).any() or (chosen["low"] < min(0.0, chosen["mean"].min()) - 0.02).any())


def named(group) -> str:
    data = group.config.data
    task = f", {data.task}" if data.source == "miniworld" else ""
    return f"{shorten(group.family or 'random', 40)} on {shorten(data.title, 40)}{task} " \
           f"({len(group.made)} runs)"


def colour(begun, starts: list) -> str:
    """Grey for random weights, then darker and darker."""
    if begun.step < 0:
        return theme.colour("baseline")
    trained = [s for s in starts if s.step >= 0]
    place = trained.index(begun) / max(1, len(trained) - 1) if len(trained) > 1 else 1.0
    return theme.shade(theme.sequential(), 0.4 + 0.5 * place)


def headline(group, chosen, metric: str) -> str:
    """The last checkpoint against random weights, where they differ most."""
    random, last = group.starts[0], group.starts[-1]
    both = {begun.start: chosen[chosen["start"] == begun.start].set_index("examples")
            for begun in (random, last)}
    shared = both[random.start].index.intersection(both[last.start].index)
    if random.step >= 0 or not len(shared):
        return f"##### {metric_title(metric)} by number of training examples"
    a, b = (both[begun.start].loc[shared, "mean"] for begun in (last, random))
    at = (a - b).abs().idxmax()
    return (f"##### With {int(at):,} examples: {metric_title(metric)} {value_of(metric, a[at])} with "
            f"pretraining, {value_of(metric, b[at])} without")


def references(group, metric: str) -> list[tuple[str, float]]:
    run = next(iter(group.made.values()))
    for name, value in run.config_record().get("baselines", {}).items():
        if name.endswith(f"_majority_{metric}"):
            return [(f"commonest answer {value_of(metric, value)}", float(value))]
    return []
