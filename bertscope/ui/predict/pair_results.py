"""Scores of a file of pairs for the page: kept, computed with a bar, or as far as they were done."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import compared, loaders, waiting
from bertscope.ui.predict import Look, scored
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown

#: Operations that are a matter of seconds on one core: so much is computed without being asked.
EASY = 4e11


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
        f"the scores of {len(pairs):,} pairs by {choice.label}")
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
        with compared.aside(look.other):
            table = evaluated(*beside, pairs, variant)
            if table.good.notna().any():
                found.append((look.other, "other", table))
            elif len(table):
                raise BertScopeError("it can read none of these pairs as a whole.")
    first = look.chosen.run.checkpoints()[0] if look.chosen.run else None
    known = [look.chosen.checkpoint] + ([look.other.checkpoint] if look.other else [])
    if first and first.step == 0 and first not in known:
        choice = Choice(look.chosen.name, look.chosen.run, first)
        with compared.aside(choice):
            table = evaluated(choice, loaders.one_of_many(choice.path, loaders.stamp(choice.path)),
                              pairs, variant)
            if table.good.notna().any():
                found.append((choice, "baseline", table))
    return found


def over_checkpoints(chosen: Choice, saved, pairs, variant: str) -> list:
    """[(step, accuracies)]: of all, or of those that were done before it was cancelled."""
    from bertscope.analysis.cache import analysis_folder
    from bertscope.analysis.minimal_pairs import evaluate
    from bertscope.analysis.pair_accuracy import accuracies

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
