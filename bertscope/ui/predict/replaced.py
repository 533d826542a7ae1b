"""Which pieces were replaced: ELECTRA's discriminator, on what its generator puts into the masks."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import charts, compared, frame, loaders, over_time, theme
from bertscope.ui.predict import Look
from bertscope.ui.predict.over_training import second_step
from bertscope.ui.text import markdown, plotly

EXPLANATION = r"""
ELECTRA learns from every piece, not from 15 % of them. A small *generator*, trained as a masked language
model, fills the masked places with samples of its own predictions; the *discriminator* reads the filled
text and says of each piece whether it is what the text had:

$$
P(\text{piece } t \text{ was replaced}) = \sigma(w^\top h_t)
$$

A sample that happens to be the right piece counts as original. Most pieces are original, so a
discriminator that calls every piece original is right about nine times in ten: look at the replaced
ones. Masking no piece asks about the text as it is.

Clark et al. 2020, *ELECTRA*, section 3.1.
"""


def show(look: Look) -> None:
    from bertscope.analysis.replaced import p_replaced

    filled, replaced = filled_text(look)
    p = p_replaced(look.model, filled)
    st.markdown(reading(filled, replaced))
    there = second(look, filled)
    frame.figure(bars(filled, replaced, p, there), f"{look.chosen.stem}-replaced", "replaced")
    table = [{"place": i, "original": look.encoded.tokens[i], "shown": filled.tokens[i],
              "replaced": i in replaced, "p_replaced": float(p[i])} for i in range(len(filled))]
    import pandas as pd

    frame.download_csv(pd.DataFrame(table), f"{look.chosen.stem}-replaced")
    if look.chosen.run:
        learning(look, filled, replaced)
    frame.explain(EXPLANATION)


def filled_text(look: Look):
    """The text with the generator's samples in the masks, and the places that are different."""
    from bertscope.analysis.replaced import fill

    generator = look.chosen.with_part("generator")
    if not look.masked or generator is look.chosen:
        if look.masked:
            st.caption("There is no generator beside this checkpoint: the text is read as it is.")
        return look.encoded, set()
    draw = int(st.number_input("Draw", 1, 10_000, 1, key="draw", bind="query-params", width=130,
                               help="Another number, another sample of the generator."))
    filled = fill(loaders.model(generator), look.encoded, look.masked, draw)
    return filled, {i for i in look.masked if filled.input_ids[i] != look.encoded.input_ids[i]}


def reading(filled, replaced: set[int]) -> str:
    """The filled text with its replaced pieces marked, as Markdown."""
    pieces = [f":orange-background[**{markdown(t)}**]" if i in replaced else markdown(t)
              for i, t in enumerate(filled.tokens) if not filled.special[i]]
    return "The discriminator reads: " + " ".join(pieces)


def second(look: Look, filled):
    """The second checkpoint's probabilities for the same pieces; None where it has none."""
    from bertscope.analysis.replaced import p_replaced

    if not look.other:
        return None
    with compared.aside(look.other):
        model = loaders.model(look.other)
        if model.tokenizer.get_vocab() != look.model.tokenizer.get_vocab():
            raise BertScopeError("it has another vocabulary")
        return p_replaced(model, filled)


def bars(filled, replaced: set[int], p, there):
    """P(replaced) of each piece; what was replaced has an outline."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for values, meaning, name in ((p, "main", "chosen"), (there, "other", "second")):
        if values is not None:
            figure.add_bar(
                x=list(range(len(filled))), y=values, name=name,
                marker={"color": theme.colour(meaning), "line": {
                    "color": theme.colour("text"),
                    "width": [2.5 if i in replaced else 0 for i in range(len(filled))]}},
                customdata=[plotly(t) for t in filled.tokens],
                hovertemplate="%{customdata}: %{y:.3f}<extra></extra>")
    figure.update_xaxes(tickvals=list(range(len(filled))), tickangle=-50, showgrid=False,
                        ticktext=[f"<b>{plotly(t)}</b>" if i in replaced else plotly(t)
                                  for i, t in enumerate(filled.tokens)])
    figure.update_yaxes(range=[0, 1], tickformat=".0%", title="P(replaced)")
    return theme.dress(figure, 320, showlegend=there is not None, dragmode=False)


def learning(look: Look, filled, replaced: set[int]) -> None:
    """Mean P(replaced) over the replaced pieces and over the others, at each checkpoint."""
    import pandas as pd

    st.divider()
    if not over_time.wanted(look.chosen):
        return
    ids, shown = tuple(map(int, filled.input_ids)), tuple(sorted(replaced))
    same = second_step(look)
    answers = over_time.ask(
        look.chosen, lambda path, stamp: loaders.p_replaced(path, stamp, look.encoded.text, ids),
        (same,) if same is not None else ())
    groups = {"replaced pieces": shown, "original pieces": tuple(
        i for i in range(len(filled)) if i not in replaced and not filled.special[i])}
    rows = [{"step": step, "pieces": name, "p_replaced": float(p[list(places)].mean())}
            for step, p in answers for name, places in groups.items() if places]
    if not rows:
        return
    marks = [(look.chosen.checkpoint.step, "main")]
    if same is not None:
        marks.append((same, "other"))
    table = pd.DataFrame(rows)
    names = [name for name, places in groups.items() if places]
    st.altair_chart(charts.over_steps(table, "p_replaced", "pieces", names,
                                      "Mean P(replaced) over the training", marks, full=True),
                    key="learning", width="stretch")
    frame.download_csv(table, f"{look.chosen.run.name}-replaced-over-steps")
