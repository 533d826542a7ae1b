"""Replay my sentence: who led at a masked place as the training went on, and what changed most."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import charts, frame, loaders, over_time, theme
from bertscope.ui.predict import Look
from bertscope.ui.text import markdown, plotly, shorten

LEADERS = 5
MEASURES = ("probability", "rank")


def show(look: Look, place, own: dict[int, str]) -> None:
    """The leaders at each checkpoint, the curves of some words, and the largest changes.

    Args:
        place: a ``MaskPrediction``. own: words of the user's, ``{piece's id: piece}``.
    """
    from bertscope.analysis import replay

    st.divider()
    st.markdown("##### How this was learnt")
    if not over_time.wanted(look.chosen):
        return
    same = second_step(look)
    text, masked = look.encoded.text, tuple(look.masked)
    answers = over_time.ask(
        look.chosen, lambda path, stamp: loaders.distribution(path, stamp, text, masked,
                                                              place.position),
        (same,) if same is not None else ())
    if not answers:
        return
    name = look.model.tokenizer.convert_ids_to_tokens
    words = dict(own) or {c.id: c.token for c in place.candidates[:4]}
    true = int(look.encoded.input_ids[place.position]) if place.rank_of_original else None
    if true is not None:
        words.setdefault(true, place.original)
    st.markdown(since(replay, answers, words))
    left, right = frame.beside(2, "replay")
    with left:
        table = replay.leaders(answers, LEADERS)
        table["piece"] = [name(i) or f"[{i}]" for i in table.id]
        frame.figure(strip(table, place.original if true is not None else None,
                           look.chosen.checkpoint.step, same),
                     f"{look.chosen.run.name}-replay", "replay_strip")
    with right:
        curves(look, replay.followed(answers, words), place, list(words.values()), same)
    changes(look, answers, same, name)


def second_step(look: Look) -> int | None:
    """The step of the second checkpoint where it is of the same run."""
    other = look.other
    of_same = other is not None and other.run is not None and other.checkpoint is not None \
        and other.run.name == look.chosen.run.name
    return other.checkpoint.step if of_same else None


def since(replay, answers, words: dict[int, str]) -> str:
    """Which of the words leads, and since when; as Markdown."""
    last = answers[-1][0]
    for index, word in words.items():
        step = replay.learnt_at(answers, index)
        if step is not None:
            return f"**{markdown(word)}** leads from step **{step:,}** on :gray[(to step {last:,})]"
    return f":gray[None of these words leads at step {last:,}.]"


def strip(table, true: str | None, here: int, there: int | None):
    """Rows are steps, columns ranks; a cell holds the piece, its colour the probability."""
    import plotly.graph_objects as go

    steps = sorted(table.step.unique())
    grid = table.pivot(index="step", columns="rank", values=["piece", "probability"]).loc[steps]
    pieces, values = grid["piece"].to_numpy(), grid["probability"].to_numpy(float)
    texts = [[f"<b>{plotly(shorten(p, 12))}</b> ✓" if p == true else plotly(shorten(p, 12))
              for p in row] for row in pieces]
    figure = go.Figure(go.Heatmap(
        z=values, text=texts, texttemplate="%{text}", customdata=[[plotly(p) for p in row]
                                                                  for row in pieces],
        x=[f"rank {rank}" for rank in grid["piece"].columns], y=list(range(len(steps))), zmin=0, zmax=1,
        colorscale=theme.sequential(), xgap=2, ygap=2, showscale=False, textfont={"size": 12},
        hovertemplate="%{customdata}: %{z:.3f}<extra></extra>"))
    marks = {here: "◀ ", there: "◁ "}
    figure.update_yaxes(tickvals=list(range(len(steps))), autorange="reversed", showgrid=False,
                        ticktext=[f"{marks.get(step, '')}{step:,}" for step in steps],
                        title={"text": "training step", "standoff": 14})
    figure.update_xaxes(side="top", showgrid=False, fixedrange=True)
    return theme.dress(figure, 60 + 25 * len(steps), dragmode=False)


def curves(look: Look, table, place, words: list[str], same: int | None) -> None:
    measure = st.segmented_control("Curve", MEASURES, default="probability", required=True,
                                   key="measure", bind="query-params",
                                   label_visibility="collapsed") or "probability"
    marks = [(look.chosen.checkpoint.step, "main")]
    if same is not None:
        marks.append((same, "other"))
    title = f"{measure.capitalize()} at place {place.position} over the training"
    st.altair_chart(charts.over_steps(table, measure, "piece", words, title, marks,
                                      strong=place.original, ranks=measure == "rank"),
                    key="learning", width="stretch")
    frame.download_csv(table, f"{look.chosen.run.name}-predictions-over-steps")


def changes(look: Look, answers, same: int | None, name) -> None:
    """What changed most between two of the checkpoints, sorted."""
    from bertscope.analysis import replay

    found = dict(answers)
    here = look.chosen.checkpoint.step
    before, after = sorted((here, same if same is not None else answers[0][0]))
    if before == after or before not in found or after not in found:
        return
    table = replay.most_changed(found[before], found[after])
    table.insert(0, "piece", [name(int(i)) or f"[{i}]" for i in table.id])
    distance = replay.total_variation(found[before], found[after])
    st.markdown(f"**What changed most** from step {before:,} to step {after:,} "
                f":gray[· total variation distance {distance:.2f} of 1]")
    percent = {column: f"{{:{sign}.2%}}" for column, sign in
               (("before", ""), ("after", ""), ("change", "+"))}
    st.dataframe(table.drop(columns="id").style.format(percent), hide_index=True, width=760,
                 column_config={"rank_before": "rank before", "rank_after": "rank after"})
