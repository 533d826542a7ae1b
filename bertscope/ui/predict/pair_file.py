"""A file of minimal pairs: accuracy on each paradigm, for the checkpoint, the second, and over time."""

from __future__ import annotations

import streamlit as st

from bertscope.analysis import timeline
from bertscope.errors import BertScopeError
from bertscope.ui import frame, loaders, over_time, score_charts, waiting
from bertscope.ui.predict import Look, asked, scored
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown

SOURCES = ("miniworld's grammar", "file or folder on this machine", "upload")
SIZES = {"100": 100, "300": 300, "all": None}
#: Operations that are a matter of seconds on one core: so much is computed without being asked.
EASY = 4e11
#: Rows of the table of pairs that a model has wrong.
MOST_WRONG = 200
MEAN = "mean over paradigms"


def show(look: Look, variant: str) -> None:
    pairs = source()
    if pairs is None:
        return
    table = evaluated(look.chosen, look.model, pairs, variant,
                      easy(look.chosen, look.model, pairs))
    if table.empty:
        return
    if table.good.isna().all():
        raise BertScopeError(f"This model can read none of these pairs as a whole. {table.left_out[0]}")
    whole = len(table) == len(pairs)
    sides = [(look.chosen, "main", table)] + (others(look, pairs, variant) if whole else [])
    from bertscope.analysis.minimal_pairs import accuracies

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
        return _read(path, _stamp(path)).first(SIZES[most])
    file = st.file_uploader("BLiMP's JSON lines, CSV or TSV (good, bad, paradigm)",
                            ["jsonl", "csv", "tsv"], key="pairs_file", max_upload_size=64)
    return None if file is None else _parsed(file.name, file.getvalue()).first(SIZES[most])


@st.cache_resource(show_spinner="Making sentences …")
def _built_in():
    from bertscope.corpus.pairs import built_in

    return built_in()


@st.cache_resource(max_entries=3, show_spinner="Reading the pairs …")
def _read(path: str, stamp: float):
    from bertscope.corpus.pairs import read_pairs

    return read_pairs(path)


@st.cache_resource(max_entries=3, show_spinner="Reading the pairs …")
def _parsed(name: str, data: bytes):
    from bertscope.corpus.pairs import parse_pairs

    return parse_pairs(name, data)


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


# -- scoring ----------------------------------------------------------------------------------


def evaluated(choice: Choice, model, pairs, variant: str, unasked: bool = True):
    """The table of ``minimal_pairs.evaluate``; of what is done, while it waits or was cancelled.

    What others than the chosen checkpoint say is ``unasked``: it follows on a click for that one.
    """
    from bertscope.analysis.cache import analysis_folder
    from bertscope.analysis.minimal_pairs import evaluate

    key = ("pairs", choice.path, loaders.stamp(choice.path), pairs.digest, variant)
    folder = analysis_folder(choice.path)
    if loaders.recent(key) is None and not unasked:
        done = evaluate(model, pairs, variant, folder, kept_only=True)
        started = st.session_state.setdefault("_pairs_started", set())
        if len(done) < len(pairs) and key not in started:
            place = st.empty()
            if not place.button(f"Score {len(pairs) - len(done):,} pairs with {markdown(choice.label)}",
                                type="primary", icon=":material/play_arrow:", key="pairs_score"):
                return partly(done, pairs)
            place.empty()
            started.add(key)
    found = waiting.kept(
        key, lambda progress: evaluate(model, pairs, variant, folder, progress),
        f"the scores of {len(pairs):,} pairs by {markdown(choice.label)}")
    if found is None:
        return partly(evaluate(model, pairs, variant, folder, kept_only=True), pairs)
    return found


def partly(done, pairs):
    """Say how much of it there is."""
    if 0 < len(done) < len(pairs):
        st.caption(f":material/hourglass_top: {len(done):,} of {len(pairs):,} pairs are scored; the "
                   "numbers are of these.")
    return done


def easy(choice: Choice, model, pairs) -> bool:
    """Whether it is quick enough to be done unasked, and nothing is training beside it.

    A layer costs about 24 H² operations a piece; a sentence of n pieces is read n times.
    """
    sentences = [s for pair in pairs.pairs[:200] for s in (pair.good, pair.bad)]
    square = sum((1.3 * len(s.split()) + 3) ** 2 for s in sentences) / len(sentences)
    return not choice.active and EASY > \
        2 * len(pairs) * square * 24 * model.num_layers * model.hidden_size ** 2


def others(look: Look, pairs, variant: str) -> list:
    """The second checkpoint, and the run's first one as what the model knew before any training."""
    found = []
    if beside := scored.second(look):
        try:
            table = evaluated(*beside, pairs, variant)
            if table.good.notna().any():
                found.append((look.other, "other", table))
            elif len(table):
                scored.warn(look.other, "it can read none of these pairs as a whole.")
        except BertScopeError as error:
            scored.warn(look.other, error)
    first = look.chosen.run.checkpoints()[0] if look.chosen.run else None
    known = [look.chosen.checkpoint] + ([look.other.checkpoint] if look.other else [])
    if first and first.step == 0 and first not in known:
        choice = Choice(look.chosen.name, look.chosen.run, first)
        try:
            table = evaluated(choice, loaders.one_of_many(choice.path, loaders.stamp(choice.path)),
                              pairs, variant)
            if table.good.notna().any():
                found.append((choice, "baseline", table))
        except BertScopeError as error:
            scored.warn(choice, error)
    return found


# -- showing ----------------------------------------------------------------------------------


def headline(found) -> str:
    from bertscope.analysis.minimal_pairs import mean_accuracy

    lines = []
    for choice, meaning, table in found:
        mean, low, high = mean_accuracy(table)
        if meaning == "baseline":
            lines.append(f":gray[Before any training (step 0): {mean:.1%}, a coin: 50 %]")
            continue
        label = f"{markdown(choice.label)}: " if len(found) > 1 else ""
        lines.append(f"##### {label}{mean:.1%} right :gray[({MEAN}, {len(table):,} of them; 95 % "
                     f"interval {low:.1%} to {high:.1%})]")
    return "\n\n".join(lines)


def notes(table, pairs, sides) -> None:
    """Ties, pairs that are left out, and whether two checkpoints really differ."""
    from bertscope.analysis.minimal_pairs import compare

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
        st.caption(f":material/compare: Only {markdown(sides[0][0].label)} has {said.only_first:,} pairs "
                   f"right, only {markdown(second[0].label)} {said.only_second:,}. If both were equally "
                   f"good, so uneven a division had a probability of {sure}.")


def draw(found) -> None:
    """Accuracies by paradigm, or by phenomenon where there are some."""
    from bertscope.analysis.minimal_pairs import by_phenomenon

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
    found = over_checkpoints(look.chosen, saved, pairs, variant)
    rows = [row for step, table in found for row in series(step, table)]
    if not rows:
        return
    table = pd.DataFrame(rows)
    st.altair_chart(score_charts.accuracy_over_steps(table, MEAN, "Accuracy over the training", marks),
                    key="pairs_curve", width="stretch")
    frame.download_csv(table, f"{look.chosen.run.name}-minimal-pairs-over-steps")


def over_checkpoints(chosen: Choice, saved, pairs, variant: str) -> list:
    """[(step, accuracies)]: of all, or of those that were done before it was cancelled."""
    from bertscope.analysis.cache import analysis_folder
    from bertscope.analysis.minimal_pairs import accuracies, evaluate

    def key(checkpoint) -> tuple:
        path = str(checkpoint.path)
        return ("accuracies", path, loaders.stamp(path), pairs.digest, variant)

    def all_of_them(progress) -> dict:
        done = {}
        for number, checkpoint in enumerate(saved):
            def told(message: str, share: float | None) -> None:
                progress(f"step {checkpoint.step:,}: {message}",
                         (number + (share or 0.0)) / len(saved))

            try:
                done[checkpoint.step] = loaders.keep(key(checkpoint), lambda: accuracies(evaluate(
                    loaders.one_of_many(*key(checkpoint)[1:3]), pairs, variant,
                    analysis_folder(checkpoint.path), told)))
            except BertScopeError:
                damaged.append(checkpoint.step)
        return done

    damaged: list[int] = []
    found = waiting.kept(("over", *map(key, saved)), all_of_them,
                         f"the scores of {len(pairs):,} pairs at {len(saved)} checkpoints")
    if damaged:
        st.caption("Left out, because they cannot be read: step "
                   + ", ".join(f"{step:,}" for step in damaged) + ".")
    if found is None:
        found = {c.step: loaders.recent(key(c)) for c in saved}
    return [(step, table) for step, table in found.items() if table is not None]


def series(step: int, table) -> list[dict]:
    """The mean over paradigms and, where they are few, the phenomena's accuracies at a step."""
    from bertscope.analysis.minimal_pairs import by_phenomenon, mean_accuracy

    rows = [(MEAN, *mean_accuracy(table))]
    rows += [(r.phenomenon, r.accuracy, r.low, r.high) for r in by_phenomenon(table).itertuples()]
    return [{"step": step, "series": name, "accuracy": mean, "low": low, "high": high}
            for name, mean, low, high in rows if mean == mean]
