"""What the model was fed: the real examples of one step, and their loss."""

from __future__ import annotations

import numpy as np
import streamlit as st

from bertscope.ui import frame, loaders, over_time, waiting
from bertscope.ui.components.piece_rows import piece_rows
from bertscope.ui.masking import Look, curves, marks, reading, runs_only, seen, steps
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown

#: Examples drawn at a time, and those whose loss is computed unasked.
DRAWN, MOST_EXAMPLES = 4, 256
CAUSAL = ("Each piece had to be predicted from those before it; below it −ln p(that), its loss. The "
          "mouse shows the checkpoint's guess.")


def show(look: Look) -> None:
    if not runs_only(look):
        return
    step = ask(look)
    if step is None:
        return
    feed = loaders.feed(look.chosen.run)
    with st.spinner("Making the examples again …"):
        found = waiting.kept(("fed", str(feed.run.path), feed.run.created, step),
                             lambda progress: _fed(feed, step, progress),
                             "the examples of this step")
    if found is None:
        return
    before = saved_before(look.chosen.run, step)
    st.markdown(summary(feed, found))
    rows = found.rows[:MOST_EXAMPLES]
    mine = reading.losses(before, rows, feed.tokenizer) if before else None
    if before is None:
        st.caption(":material/info: No checkpoint from before this step is left, so its loss is not "
                   "known.")
    theirs = reading.losses(look.other, rows, feed.tokenizer) if look.other else None
    said_losses(before, look.other, found, mine, theirs, step)
    first = draw(look, feed, found, mine, theirs)
    download(look, feed, found, mine, theirs)
    if mine:
        over_training(look, feed, found)
    words(look, feed, found, first, step)


def ask(look: Look) -> int | None:
    """The step: the one made from the chosen checkpoint, unless another is asked for. Another
    checkpoint brings its own."""
    from bertscope.analysis.feeding import steps_done

    last = steps_done(look.chosen.run)
    if last < 1:
        st.info("This run has not made a step yet.", icon=":material/hourglass_top:")
        return None
    default = min(look.chosen.checkpoint.step + 1, last)
    state, here = st.session_state, (look.chosen.name, look.chosen.checkpoint.step)
    if state.get("_fed_from", here) != here or state.get("fed", 1) > last:
        state["fed"] = default
    state["_fed_from"] = here
    with st.container(horizontal=True, vertical_alignment="bottom"):
        step = st.number_input(f"Step (of {last:,})", 1, last, default, key="fed",
                               bind="query-params", width=180)
        for label, to in (("the first", 1), ("the last", last)):
            st.button(label, key=f"fed_{to}", on_click=frame.set_state, kwargs={"fed": to})
    return int(step)


def _fed(feed, step: int, progress):
    from bertscope.analysis.feeding import fed

    return fed(feed, step, progress)


def saved_before(run, step: int) -> Choice | None:
    """The newest checkpoint that was saved before this step was made; None where it is deleted."""
    checkpoint = next((c for c in reversed(run.checkpoints()) if c.step < step), None)
    return checkpoint and Choice(run.name, run, checkpoint)


def summary(feed, found) -> str:
    """Where in the training the step is, and what it asked for, as Markdown."""
    rows = found.rows
    pieces = sum(map(len, rows))
    asked = pieces - len(rows) if feed.causal else sum(len(row.chosen) for row in rows)
    parts = f", in {feed.parts} micro-batches" if feed.parts > 1 else ""
    several = f" on {feed.processes} processes" if feed.processes > 1 else ""
    phase = " · the short examples that come first" if found.phase == 0 and len(feed.stages) > 1 \
        else ""
    pairs = [row.label for row in rows if row.label is not None]
    kind = {"nsp": "random", "sop": "swapped"}.get(feed.config.objective.pairs)
    return (f"**Step {found.step:,}** · epoch {found.epoch:,} (counted from 0), batch "
            f"{found.batch + 1:,} of {found.batches:,} · {len(rows):,} examples{parts}{several}, {pieces:,} pieces, "
            f"{asked:,} to predict ({asked / pieces:.1%})"
            + (f" · {sum(pairs):,} of {len(pairs):,} pairs {kind}" if pairs else "") + phase)


def said_losses(before: Choice | None, other, found, mine, theirs, step: int) -> None:
    from bertscope.analysis.place_losses import mean_loss

    if not mine:
        return
    apart = step - 1 - before.checkpoint.step
    text = (f"Loss by {markdown(before.label)}, "
            + ("which this step was made from" if not apart else
               f"the last one saved before, {apart:,} steps earlier")
            + f": **{mean_loss(mine):.3f}** nats for each place, without dropout")
    if theirs:
        text += f" · in brackets {markdown(other.label)}: **{mean_loss(theirs):.3f}**"
    if len(found.rows) > len(mine):
        text += f" · of the first {len(mine):,} examples"
    st.caption(text)


# -- the examples -----------------------------------------------------------------------------


def draw(look: Look, feed, found, mine, theirs) -> int:
    """Some of the examples; returns the number of the first one."""
    from bertscope.analysis.inputs import spans

    count, first = len(found.rows), 0
    if count > DRAWN:
        if st.session_state.get("from", 1) > count:
            st.session_state["from"] = 1
        first = st.number_input(f"Examples from (of {count:,})", 1, count, 1, DRAWN, key="from",
                                bind="query-params", width=180) - 1
    drawn = []
    for number in range(first, min(first + DRAWN, count)):
        row, index = found.rows[number], int(found.indices[number])
        tokens, shown = (steps.names(look_of(look, feed), ids) for ids in (row.ids, row.shown))
        own = mine[number] if mine and number < len(mine) else None
        second = theirs[number] if theirs and number < len(theirs) else None
        guesses = steps.names(look_of(look, feed), own.guess.clip(0)) if own else ()
        where = steps.origin(row, spans(found.source, found.epoch, index), feed.store,
                             lambda d: f"document {d + 1:,}")
        drawn.append((heading(number, row, where, own, found),
                      marks.targets(row, tokens, shown, own, second, guesses, feed.causal)))
    piece_rows(drawn, "fed_rows", () if feed.causal else marks.legend())
    st.caption(CAUSAL if feed.causal else
               "A framed piece was chosen: shown is what the model saw, → what it had to say, and "
               "below −ln p(that), its loss; the deeper the colour, the greater. The mouse shows the "
               "checkpoint's guess.")
    return first


def look_of(look: Look, feed) -> Look:
    """The same with the run's own tokenizer."""
    return Look(look.chosen, look.other, feed)


def heading(number: int, row, where: str, own, found) -> str:
    """A line above an example; plain text."""
    longest = found.source.objective.max_length
    parts = [f"{number + 1}", where, f"{len(row):,} pieces" + (
        "" if len(row) == longest else f" of at most {longest:,}")]
    if row.label is not None:
        parts.insert(1, steps.answer(row, found.source.objective.pairs))
    if own is not None and own.p_yes is not None:
        parts.append(f"P(that label) {own.p_yes if row.label == 0 else 1 - own.p_yes:.0%}")
    return " · ".join(parts)


def download(look: Look, feed, found, mine, theirs) -> None:
    """Every place that was asked for, as a table."""
    import pandas as pd

    from bertscope.analysis.inputs import pieces

    rows = []
    for number, row in enumerate(found.rows):
        places = np.arange(1, len(row)) if feed.causal else row.chosen
        names, shown = pieces(feed.tokenizer, row.ids[places]), pieces(feed.tokenizer,
                                                                       row.shown[places])
        for at, place in enumerate(places.tolist()):
            fate = int(row.fate[place])
            line = {"step": found.step, "example": number + 1, "part": int(found.part[number]) + 1,
                    "pair_label": row.label, "position": place, "piece": names[at],
                    "shown": shown[at], "became": marks.NAMES[fate] if fate >= 0 else ""}
            for key, losses in (("loss", mine), ("second_loss", theirs)):
                if losses and number < len(losses):
                    line[key] = float(losses[number].loss[place])
            rows.append(line)
    frame.download_csv(pd.DataFrame(rows), f"{look.chosen.run.name}-fed-step-{found.step}")


# -- over the training, and the words in it -----------------------------------------------------


@st.cache_data(max_entries=1000, show_spinner=False)
def _loss_at(path: str, stamp: float, run: str, created: float, step: int, _rows, _tokenizer,
             causal: bool) -> float:
    from pathlib import Path

    from bertscope.analysis.activations import load
    from bertscope.analysis.place_losses import mean_loss, place_losses

    generator = Path(path) / "generator"
    model = load(generator if generator.is_dir() else path)
    return mean_loss(place_losses(model, _rows, causal))


def over_training(look: Look, feed, found) -> None:
    """The loss of these very examples at the run's checkpoints."""
    import pandas as pd

    if not over_time.wanted(look.chosen):
        return
    rows, step = found.rows[:MOST_EXAMPLES], found.step
    answers = over_time.ask(look.chosen, lambda path, stamp: _loss_at(
        path, stamp, str(feed.run.path), feed.run.created, step, rows, feed.tokenizer, feed.causal))
    table = pd.DataFrame([{"step": at, "loss": loss, "of": "these examples"} for at, loss in answers])
    if table.empty:
        return
    st.altair_chart(curves.lines(table, "loss", "of", ["these examples"],
                                 f"Loss of the examples of step {step:,}, by each checkpoint (nats)",
                                 [(step, "main")]), key="fed_curve", width="stretch")
    st.caption("The line is when they were fed. A dent right after it would say that the examples "
               "themselves were learnt, and not the language.")
    frame.download_csv(table, f"{look.chosen.run.name}-step-{step}-loss")


def words(look: Look, feed, found, first: int, step: int) -> None:
    """How often the pieces that were asked for had been seen before this step."""
    st.markdown("**How often it had seen these pieces before**")
    ids = np.unique(np.concatenate([row.ids[row.source >= 0 if feed.causal else row.chosen]
                                    for row in found.rows[first: first + DRAWN]]))
    seen.table(look, feed, ids.tolist(), step - 1, "fed_seen")
