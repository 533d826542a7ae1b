"""A file of minimal pairs: accuracy on each paradigm, for the checkpoint, the second, and over time."""

from __future__ import annotations

import streamlit as st

from bertscope.analysis import timeline
from bertscope.errors import BertScopeError
from bertscope.ui import frame, over_time, score_charts
from bertscope.ui.predict import Look, asked, pair_results
from bertscope.ui.text import markdown

SOURCES = ("miniworld's grammar", "file or folder on this machine", "upload")
SIZES = {"100": 100, "300": 300, "all": None}
#: What the first line of a table is, where its names of columns are not known.
FIRST_LINE = {"as it looks": None, "names of columns": True, "a pair": False}
#: Rows of the table of pairs that a model has wrong.
MOST_WRONG = 200
#: Files of a folder of which it is said how their first line was read.
MOST_NOTES = 5
MEAN = "mean over paradigms"


def show(look: Look, variant: str) -> None:
    pairs = source()
    if pairs is None:
        return
    table = pair_results.evaluated(look.chosen, look.model, pairs, variant,
                                   pair_results.easy(look.chosen, look.model, pairs))
    if table.empty:
        return
    if table.good.isna().all():
        raise BertScopeError(f"This model can read none of these pairs as a whole. {table.left_out[0]}")
    whole = len(table) == len(pairs)
    sides = [(look.chosen, "main", table)] \
        + (pair_results.others(look, pairs, variant) if whole else [])
    from bertscope.analysis.pair_accuracy import accuracies

    found = [(choice, meaning, accuracies(rows)) for choice, meaning, rows in sides]
    st.markdown(headline(found))
    notes(table, pairs, sides)
    draw(found)
    numbers(found, sides, look.chosen.stem)
    wrong(table)
    if look.chosen.run:
        learning(look, pairs, variant)


# -- which pairs ------------------------------------------------------------------------------


def source():
    """A ``PairSet``, or None while a file is still missing."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        where = st.segmented_control("Pairs from", SOURCES, default=SOURCES[0], required=True,
                                     key="pairs_from", bind="query-params")
        most = st.segmented_control("Of each paradigm", list(SIZES), default="100", required=True,
                                    key="pairs_most", bind="query-params",
                                    help="The first so many pairs. More take longer and give "
                                         "narrower intervals.")
    if where == SOURCES[0]:
        st.caption("Sentences that the grammar of *miniworld* makes, and the same with one word made "
                   "wrong. For real English take BLiMP's files.")
        return _built_in().first(SIZES[most])
    if where == SOURCES[1]:
        path = st.text_input("BLiMP's JSON lines, CSV or TSV (good, bad, paradigm), or a folder of them",
                             key="pairs_path", bind="query-params", max_chars=1000,
                             placeholder="blimp/ or my_pairs.csv").strip()
        if not path:
            st.info("Give a path. A CSV needs two columns, the good sentence and the bad one.",
                    icon=":material/folder_open:")
            return None
        return told(lambda names: _read(path, _stamp(path), names)).first(SIZES[most])
    file = st.file_uploader("BLiMP's JSON lines, CSV or TSV (good, bad, paradigm)",
                            ["jsonl", "csv", "tsv"], key="pairs_file", max_upload_size=64)
    if file is None:
        return None
    return told(lambda names: _parsed(file.name, file.getvalue(), names)).first(SIZES[most])


def told(read):
    """``read(names)``, a ``PairSet``, and what was guessed of it, with a switch for who knows better."""
    found = read(None)
    if not found.notes:
        return found
    asked = st.segmented_control("The first line is", list(FIRST_LINE), default="as it looks",
                                 required=True, key="pairs_first", bind="query-params")
    found = read(FIRST_LINE[asked])
    for note in found.notes[:MOST_NOTES]:
        st.caption(f":material/info: {markdown(note)}")
    if len(found.notes) > MOST_NOTES:
        st.caption(f"And so on for {len(found.notes) - MOST_NOTES:,} more files.")
    return found


@st.cache_resource(show_spinner="Making sentences …")
def _built_in():
    from bertscope.corpus.pairs import built_in

    return built_in()


@st.cache_resource(max_entries=3, show_spinner="Reading the pairs …")
def _read(path: str, stamp: float, names: bool | None):
    from bertscope.corpus.pairs import read_pairs

    return read_pairs(path, names)


@st.cache_resource(max_entries=3, show_spinner="Reading the pairs …")
def _parsed(name: str, data: bytes, names: bool | None):
    from bertscope.corpus.pairs import parse_pairs

    return parse_pairs(name, data, names)


def _stamp(path: str) -> float:
    """When a file, or the files of a folder, were last changed."""
    from itertools import islice
    from pathlib import Path

    try:
        place = Path(path).expanduser()
        inside = islice(place.iterdir(), 1000) if place.is_dir() else ()
        return max([place.stat().st_mtime, *(f.stat().st_mtime for f in inside)])
    except (OSError, ValueError, RuntimeError):
        return 0.0


# -- showing ----------------------------------------------------------------------------------


def headline(found) -> str:
    from bertscope.analysis.pair_accuracy import mean_accuracy

    lines = []
    for choice, meaning, table in found:
        mean, low, high = mean_accuracy(table)
        if meaning == "baseline":
            lines.append(f":gray[Before any training (step 0): {mean:.1%}, a coin: 50 %]")
            continue
        label = f"{markdown(choice.label)}: " if len(found) > 1 else ""
        of = f"{MEAN}, {len(table):,} of them; " if len(table) > 1 else ""
        lines.append(f"##### {label}{mean:.1%} right :gray[({of}95 % interval {low:.1%} to "
                     f"{high:.1%})]")
    return "\n\n".join(lines)


def notes(table, pairs, sides) -> None:
    """Ties, pairs that are left out, and whether two checkpoints really differ."""
    from bertscope.analysis.pair_accuracy import compare

    ties = int((table.good == table.bad).sum())
    if ties:
        st.caption(f":material/balance: {ties:,} of {len(table):,} pairs are ties: the model reads the "
                   "same pieces in both sentences, as where a word is not in its vocabulary. Each "
                   "counts one half.")
    left = table[table.left_out != ""]
    if len(left):
        st.caption(f":material/content_cut: {len(left):,} pairs are left out. "
                   f"{markdown(left.left_out.iloc[0])}")
    second = next((s for s in sides if s[1] == "other"), None)
    if second:
        said = compare(table, second[2])
        sure = "less than 0.001" if said.p_value < 0.001 else f"{said.p_value:.3f}"
        st.caption(f":material/compare: {said.only_first:,} pairs are right with "
                   f"{markdown(sides[0][0].label)} only, {said.only_second:,} with "
                   f"{markdown(second[0].label)} only. If both were equally good, so uneven a "
                   f"division had a probability of {sure}.")


def draw(found) -> None:
    """Accuracies by paradigm, or by phenomenon where there are some."""
    from bertscope.analysis.pair_accuracy import by_phenomenon

    table = found[0][2]
    grouped = 1 < table.phenomenon.replace("", None).nunique() < len(table)
    by = st.segmented_control("Rows", ("paradigms", "phenomena"), default="paradigms", required=True,
                              key="pairs_rows", bind="query-params") if grouped else "paradigms"
    column = "paradigm" if by == "paradigms" else "phenomenon"
    shown = [(choice.label, meaning, rows if by == "paradigms" else by_phenomenon(rows))
             for choice, meaning, rows in found]
    chart = score_charts.accuracies(shown, column)
    frame.figure(chart, f"{found[0][0].stem}-minimal-pairs", "pairs_accuracy")


def numbers(found, sides, stem: str) -> None:
    import pandas as pd

    everything = pd.concat([rows.assign(checkpoint=choice.label) for choice, _, rows in found],
                           ignore_index=True)
    with st.expander("The numbers", icon=":material/table:"):
        st.dataframe(everything[["checkpoint", *found[0][2].columns]], hide_index=True,
                     width="stretch", column_config={
                         c: st.column_config.NumberColumn(format="%.3f")
                         for c in ("accuracy", "low", "high")})
    with st.container(horizontal=True):
        frame.download_csv(everything, f"{stem}-minimal-pairs", "CSV of paradigms")
        each = pd.concat([rows.assign(checkpoint=choice.label) for choice, _, rows in sides])
        frame.download_csv(each, f"{stem}-each-pair", "CSV of every pair")


def wrong(table) -> None:
    """The pairs that are most wrong, by how much."""
    import math

    bad = table[table.good < table.bad]
    if bad.empty:
        return
    with st.expander(f"The {len(bad):,} pairs that it has wrong", icon=":material/rule:"):
        bits = (bad.bad - bad.good) / math.log(2)
        worst = bad.assign(**{"bits for the bad one": bits}).nlargest(MOST_WRONG, "bits for the bad one")
        st.dataframe(worst[["paradigm", "sentence_good", "sentence_bad", "bits for the bad one"]],
                     hide_index=True, width="stretch", column_config={
                         "bits for the bad one": st.column_config.NumberColumn(format="%.1f")})


# -- over the training ------------------------------------------------------------------------


def learning(look: Look, pairs, variant: str) -> None:
    """The accuracy at the run's checkpoints."""
    import pandas as pd

    st.divider()
    marks = asked.marks(look)
    saved = timeline.sample(look.chosen.run.checkpoints(), over_time.MOST_CHECKPOINTS,
                            [step for step, _ in marks])
    if not st.toggle(f"Show how this was learnt, over {len(saved)} checkpoints", key="pairs_over",
                     bind="query-params",
                     help="Scores all pairs with each. What is done is kept, also if it is cancelled."):
        return
    found = pair_results.over_checkpoints(look.chosen, saved, pairs, variant)
    rows = [row for step, table in found for row in series(step, table)]
    if not rows:
        return
    table = pd.DataFrame(rows)
    st.altair_chart(score_charts.accuracy_over_steps(table, MEAN, "Accuracy over the training", marks),
                    key="pairs_curve", width="stretch")
    frame.download_csv(table, f"{look.chosen.run.name}-minimal-pairs-over-steps")


def series(step: int, table) -> list[dict]:
    """The mean over paradigms and, where there are several, the phenomena's accuracies at a step."""
    from bertscope.analysis.pair_accuracy import by_phenomenon, mean_accuracy

    rows = [(MEAN, *mean_accuracy(table))]
    groups = by_phenomenon(table)
    if len(groups) > 1:
        rows += [(r.phenomenon, r.accuracy, r.low, r.high) for r in groups.itertuples()]
    return [{"step": step, "series": name, "accuracy": mean, "low": low, "high": high}
            for name, mean, low, high in rows if mean == mean]
