"""The tally: what chance did over many examples, against what it should do."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import frame, loaders, theme, waiting
from bertscope.ui.masking import Look, marks, settings, steps
from bertscope.ui.text import markdown

CORPUS, TYPED = "the run's corpus", "the typed texts, epoch after epoch"
NAMES = {"mask": "shown as [MASK]", "random": "shown as a random piece", "kept": "left as it is",
         "pair": "pairs random or swapped"}


def show(look: Look) -> None:
    sources = [CORPUS, TYPED] if look.chosen.run else [TYPED]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        where = st.segmented_control("Examples of", sources, default=sources[0], required=True,
                                     key="tally_of", bind="query-params") or sources[0]
        count = st.number_input("How many", 100, 10_000, 2000, 100, key="tally_count",
                                bind="query-params", width=130)
    asked = settings.ask(look.chosen, look.model, typed=where == TYPED, epochs=False)
    if where == CORPUS and asked.scheme == "typed":
        st.info("A corpus has no text 1 and text 2: choose what makes an example of it.",
                icon=":material/rule:")
        return
    shares = counted(look, asked, where, int(count))
    if shares is not None:
        draw(look, asked, shares)


def counted(look: Look, asked: settings.Settings, where: str, count: int):
    """The shares; None where there is nothing to draw from yet."""
    from bertscope.analysis import inputs, mask_tally

    if where == CORPUS:
        feed = loaders.feed(look.chosen.run)
        documents = mask_tally.some_documents(feed.store, feed.documents)
        examples = inputs.Examples(feed.store, documents, feed.tokenizer, asked.objective, asked.seed)
        key, said = (str(look.chosen.run.path), look.chosen.run.created), \
            f"{len(documents):,} of the {len(feed.documents):,} documents that this run trains on"
    elif any(asked.texts):
        _, examples = steps.source(look, asked)
        key, said = (look.chosen.path, loaders.stamp(look.chosen.path), asked.texts), "the two texts"
    else:
        st.info("Type a text above.", icon=":material/edit:")
        return None
    examples.plan(0)  # what the trainer cannot use, it says at once
    found = waiting.kept(("tally", key, asked.scheme, asked.objective, asked.seed, count),
                         lambda progress: _count(examples, asked, count, progress), "the tally")
    if found is None:
        return None
    shares, number = found
    st.caption(f"{number:,} examples, of {markdown(said)}, seed {asked.seed}."
               + (" Static masking has only ten copies; after them the same comes again."
                  if asked.objective.masking == "static" and number < count else ""))
    return shares


def _count(examples, asked: settings.Settings, count: int, progress):
    from bertscope.analysis import mask_tally

    rows = []
    for row in mask_tally.many_epochs(examples, count):
        rows.append(row)
        if len(rows) % 64 == 0:
            progress(f"{len(rows):,} of {count:,} examples", len(rows) / count)
    rows = rows[:count]
    return mask_tally.tally(rows, asked.objective, len(examples.ordinary_ids)), len(rows)


def draw(look: Look, asked: settings.Settings, shares) -> None:
    import pandas as pd

    by_name = {share.name: share for share in shares}
    chosen = by_name["chosen"]
    st.markdown(f"**{chosen.share:.2%}** of {chosen.of:,} pieces were chosen, where "
                f"the rate is {100 * chosen.theory:g} %. This is no matter of chance: each example's length "
                "fixes the number, rounded, and at least one"
                + ("." if asked.objective.mask_unit == "piece" else
                   "; words that no longer fit are left out."))
    drawn = [by_name[name] for name in NAMES if name in by_name and by_name[name].of]
    if not chosen.count:
        st.info("Nothing is chosen, so nothing is left to chance.", icon=":material/rule:")
        return
    frame.figure(figure(drawn), "masking-tally", "tally")
    what = "decisions, one for all pieces of a span" if asked.objective.mask_unit == "span" \
        else "chosen pieces"
    outside = [NAMES[s.name] for s in drawn if not s.low <= s.theory <= s.high]
    st.caption(f"A dot is how far the share that was counted is from the share it should be (0), the "
               f"line its 95 % interval by chance. Of {by_name['mask'].of:,} {what}. "
               + (f"Outside of its interval: {', '.join(outside)}; one in twenty is by chance alone."
                  if outside else "0 is within every interval."))
    hit = by_name["hit"]
    if hit.of:
        st.caption(f"Of {hit.of:,} random pieces {hit.count:,} happened to be the original again; "
                   f"one in {1 / hit.theory:,.0f} is expected.")
    table = pd.DataFrame([{"what": s.name, "count": s.count, "of": s.of, "share": s.share,
                           "theory": s.theory, "low": s.low, "high": s.high} for s in shares])
    frame.download_csv(table, f"{look.chosen.stem}-masking-tally")


def figure(shares):
    """A row for each share: how far it is from the theory, with its interval."""
    import plotly.graph_objects as go

    colours = [marks.colour(0), marks.colour(1), marks.colour(2), theme.colour("baseline")]
    chart, rows = go.Figure(), list(range(len(shares)))[::-1]
    for row, share, colour in zip(rows, shares, colours):
        chart.add_scatter(
            x=[100 * (share.share - share.theory)], y=[row], mode="markers",
            marker={"color": colour, "size": 11},
            error_x={"type": "data", "symmetric": False, "color": colour, "thickness": 3, "width": 8,
                     "array": [100 * (share.high - share.share)],
                     "arrayminus": [100 * (share.share - share.low)]},
            hovertemplate=f"{share.count:,} of {share.of:,}<extra>{NAMES[share.name]}</extra>")
    most = 100 * max(max(s.high - s.theory, s.theory - s.low) for s in shares)
    chart.add_vline(0, line={"color": theme.colour("text"), "width": 1.5})
    chart.update_yaxes(tickvals=rows, showgrid=False, zeroline=False, range=[-0.5, len(shares) - 0.5],
                       ticktext=[f"{NAMES[s.name]}: {100 * s.theory:.4g} %<br><b>{s.share:.2%}</b> "
                                 f"[{s.low:.2%}, {s.high:.2%}]" for s in shares])
    chart.update_xaxes(range=[-1.25 * most, 1.25 * most], zeroline=False, fixedrange=True,
                       title="counted − should be, in percentage points")
    return theme.dress(chart, 90 + 66 * len(shares), showlegend=False, dragmode=False)
