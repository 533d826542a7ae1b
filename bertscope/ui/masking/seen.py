"""How often it saw a word: by a checkpoint, and over the training."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import compared, frame, loaders, theme, waiting
from bertscope.ui.masking import Look, curves, learning, runs_only
from bertscope.ui.selection import Choice
from bertscope.ui.text import bounded, markdown, shorten

MOST_PIECES, MOST_CURVES = 200, 8


def show(look: Look) -> None:
    if not runs_only(look):
        return
    feed, step = loaders.feed(look.chosen.run), look.chosen.checkpoint.step
    text = st.text_input("Words", examples(look), key="words_seen", bind="query-params",
                         max_chars=500, help="Each word is counted as its word pieces.")
    text = bounded(text, 500, "The line")
    ids = piece_ids(feed, text)
    if not ids:
        st.info("Type a word or some.", icon=":material/edit:")
        return
    if feed.tokenizer.unk_token_id in ids:
        st.caption(f":material/help: What is not in this run's vocabulary was read as "
                   f"{markdown(feed.tokenizer.unk_token)}, all of it alike.")
    if not table(look, feed, ids, step, "seen"):
        return
    vocabulary(look, feed, step)
    growth(look, feed, ids, step)


def examples(look: Look) -> str:
    """The words that the page's passages begin with."""
    from bertscope.ui import texts

    first = texts.passages(look.chosen)[0].split(".")[0]
    return " ".join(first.split()[:7])


def piece_ids(feed, text: str) -> list[int]:
    """The pieces of a text, each once, in order; what is spelled like a special piece is text."""
    from bertscope.analysis.encoding import TextEncoder

    encoder = TextEncoder(feed.tokenizer, 512, True, len(feed.tokenizer))
    return list(dict.fromkeys(encoder.backend.encode(encoder.clean(text),
                                                     add_special_tokens=False).ids))[:MOST_PIECES]


def exposure(look: Look, step: int):
    """The counts by a step, with a bar and a way to cancel; None while it is cancelled."""
    run = look.chosen.run
    return waiting.kept(("seen", str(run.path), run.created, step),
                        lambda progress: loaders.exposure(run, step, progress),
                        f"what was seen by step {step:,}")


def table(look: Look, feed, ids: list[int], step: int, key: str) -> bool:
    """Seen and asked for, piece by piece; whether there was something to show."""
    import pandas as pd

    counted = exposure(look, step)
    if counted is None:
        return False
    found = counted.of(ids)
    from bertscope.analysis.inputs import pieces

    rows = pd.DataFrame({"piece": pieces(feed.tokenizer, ids), "seen": found.seen,
                         "to predict": found.target})
    rows["per million"] = 1e6 * rows["seen"] / max(int(counted.seen.sum()), 1)
    if look.other and look.other.run and look.other.checkpoint and step == look.chosen.checkpoint.step:
        with compared.aside(look.other):
            rows.insert(2, f"by {shorten(look.other.label, 24)}", seen_by(look.other, rows["piece"]))
    rows = rows.sort_values("seen", ascending=False, kind="stable")
    st.dataframe(rows, hide_index=True, width=620, key=key,
                 height="content" if len(rows) < 12 else 420,
                 column_config={
                     **{name: st.column_config.NumberColumn(format="localized") for name in rows
                        if name.startswith("by ")},
                     "seen": st.column_config.NumberColumn("seen, times", format="localized"),
                     "to predict": st.column_config.NumberColumn("of these to predict",
                                                                 format="localized"),
                     "per million": st.column_config.NumberColumn(format="%.1f")})
    st.caption(f"By step {step:,}, in {int(counted.seen.sum()):,} pieces of text."
               + ("" if counted.exact else " **An estimate** from the corpus's frequencies: the run "
                  "was fed more than can be counted in half a minute."))
    frame.download_csv(rows, f"{look.chosen.run.name}-seen-by-{step}", key=f"csv_{key}")
    return True


def seen_by(other: Choice, pieces) -> list[int | None]:
    """How often another run had seen the pieces by its step; None for what its vocabulary lacks.

    Raises:
        BertScopeError: what it was fed is not known.
    """
    vocabulary = loaders.feed(other.run).tokenizer.get_vocab()
    counted = waiting.kept(("seen", str(other.run.path), other.run.created, other.checkpoint.step),
                           lambda progress: loaders.exposure(other.run, other.checkpoint.step, progress),
                           f"what {other.label} had seen")
    return [int(counted.seen[vocabulary[piece]]) if counted and piece in vocabulary else None
            for piece in pieces]


def vocabulary(look: Look, feed, step: int) -> None:
    """How much of the vocabulary was ever met."""
    counted = exposure(look, step)
    special = set(feed.tokenizer.all_special_ids)
    own = [i for i, piece in enumerate(feed.tokenizer.convert_ids_to_tokens(range(len(feed.tokenizer))))
           if i not in special and not str(piece).startswith("[unused")]
    found = counted.of(own)
    never, rare = int((found.seen == 0).sum()), int(((found.target < 10)).sum())
    st.caption(f"Of the {len(own):,} pieces of the vocabulary, {never:,} had not been seen at all by "
               f"then, and {rare:,} had been asked for fewer than ten times.")


def growth(look: Look, feed, ids: list[int], step: int) -> None:
    """Seen and asked for over the steps, for the first pieces."""
    import pandas as pd

    from bertscope.analysis.exposure import over_steps
    from bertscope.analysis.feeding import steps_done
    from bertscope.analysis.inputs import pieces

    last, ids = steps_done(look.chosen.run), ids[:MOST_CURVES]
    run = look.chosen.run
    found = waiting.kept(("seen over", str(run.path), run.created, last, tuple(ids)),
                         lambda progress: over_steps(feed, ids, last, progress),
                         "the curves over the steps")
    if found is None:
        return
    names = pieces(feed.tokenizer, ids)
    rows = pd.DataFrame([{"step": at.step, "piece": name, "seen": int(at.seen[number]),
                          "to predict": int(at.target[number])}
                         for at in found for number, name in enumerate(names)])
    what = st.segmented_control("Over the training", ["seen", "to predict"], default="seen",
                                required=True, key="seen_what", bind="query-params",
                                label_visibility="collapsed")
    st.altair_chart(curves.lines(rows, what or "seen", "piece", names,
                                 f"Times {what}, by step", learning.marked(look), format=",", log=True,
                                 colours=theme.categories(len(names))),
                    key="seen_curve", width="stretch")
    frame.download_csv(rows, f"{run.name}-seen-over-steps")


