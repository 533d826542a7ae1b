"""Fill several: the same masks filled at once, and one after another, in three orders."""

from __future__ import annotations

import math

import streamlit as st

from bertscope.ui import charts, frame, masks, over_time, theme, waiting
from bertscope.ui.components.shaded import Shade, shaded
from bertscope.ui.predict import Look, answers, asked
from bertscope.ui.text import markdown, shorten

EXPLANATION = r"""
**All at once**: one pass; each place gets its own most probable piece, as if it were alone. BERT is
trained that way: masked pieces are guessed independently of each other. So two guesses that are
good alone need not go together.

**One after another**: the model reads what it has put and guesses again, from left to right, from
right to left, or at the place where it is the most certain (its best piece the most probable of
all). Each guess is then given by the earlier ones, and another order may end elsewhere: BERT has no
single distribution over sentences that all orders agree on.

*As filled* is the product of the probabilities when each piece was put. Orders put different
questions, so these are not comparable between them. The *joint pseudo-probability* asks the finished
text one question, whatever the order was:

$$
\tilde P = \prod_{i \in M} P(w_i \mid \text{all other pieces, the other fillings among them})
$$

the pseudo-likelihood of Salazar et al. 2020 over the filled places $M$ alone. It is no probability of
the sentence: it does not sum to 1 over all fillings. Special pieces are never put in.

Devlin et al. 2019, section 3.1; the independence of masked pieces: Yang et al. 2019 (XLNet), section
2.1; BERT as a generator: Wang and Cho 2019; most certain first: Ghazvininejad et al. 2019.
"""


def show(look: Look) -> None:
    body(look)
    frame.explain(EXPLANATION)


def body(look: Look) -> None:
    if len(look.masked) < 2:
        too_few(look)
        return
    there = asked.second(look)
    here = read(look)
    theirs = read(there) if there else None
    if here is None:
        return
    verdict(here)
    order = st.segmented_control("Step by step", [f.order for f, _ in here],
                                 default=here[1][0].order, required=True, key="several_order",
                                 bind="query-params")
    drawn = [(look, here, "main")] + ([(there, theirs, "other")] if theirs else [])
    columns = frame.beside(2, "several") if theirs else [st.container()]
    for column, (one, found, meaning) in zip(columns, drawn):
        with column:
            if theirs:
                st.markdown(f"**{markdown(one.chosen.label)}**")
            sentences(one, found, meaning)
            steps(one, next(f for f, _ in found if f.order == order), meaning)
    frame.download_csv(rows(drawn), f"{look.chosen.stem}-several")
    if look.chosen.run:
        learning(look, order)


def too_few(look: Look) -> None:
    """One mask has no order."""
    st.info("This view needs two masks or more. Click another piece.", icon=":material/touch_app:")
    free = [i for i, special in enumerate(look.encoded.special)
            if not special and i not in look.masked]
    if free:
        near = sorted(sorted(free, key=lambda i: abs(i - look.masked[0]))[:2])
        st.button("Mask its neighbours", icon=":material/science:", key="several_more",
                  on_click=masks.choose, args=(look.encoded.text, [*near, *look.masked]))


def read(look: Look):
    """``[(Filling, the text with it)]``, an entry for each order; None while it is cancelled."""
    return waiting.kept(("several", *asked.where(look)), lambda progress: answers.fill(
        look.model, look.encoded, look.masked, progress), f"fillings by {look.chosen.label}")


# -- drawing ----------------------------------------------------------------------------------


def verdict(found) -> None:
    """Whether the order matters here."""
    different = len({tuple(f.input_ids.tolist()) for f, _ in found})
    if different == 1:
        st.markdown("##### All orders come to the same sentence")
        return
    best, _ = max(found, key=lambda pair: pair[0].pseudo_log_likelihood)
    st.markdown(f"##### The order matters: {different} different sentences "
                f":gray[(the likeliest in itself: {best.order})]")


def percent(log_p: float) -> str:
    """A product of probabilities, however small."""
    p = math.exp(log_p)
    return f"{p:.1%}" if p >= 0.001 else f"{p:.1e}" if p else f"e^{log_p:,.0f}"


def sentences(look: Look, found, meaning: str) -> None:
    """The resulting texts; what was put in is coloured by how probable it was then."""
    scale = theme.sequential()
    for number, (filling, _) in enumerate(found):
        st.markdown(f"**{filling.order}** :gray[· as filled {percent(filling.log_product)} · joint "
                    f"pseudo-probability {percent(filling.pseudo_log_likelihood)}]")
        put = {s.place: s for s in filling.steps}
        legend = ("0 %", [c for _, c in scale], "probability 100 % when it was put") \
            if number == len(found) - 1 else None
        shaded([Shade(token, f"{put[i].probability:.0%}" if i in put else "",
                      f"{look.encoded.tokens[i]} was there · {put[i].probability:.2%}"
                      if i in put else "",
                      theme.shade(scale, put[i].probability) if i in put else None,
                      faint=bool(look.encoded.special[i]))
                for i, token in enumerate(filling.tokens)],
               f"several_{meaning}_{number}", legend)


def steps(look: Look, filling, meaning: str) -> None:
    """A row for each filling of one order, with the text as it then stood."""
    import pandas as pd

    st.markdown(f"**Step by step, {filling.order}**")
    st.dataframe(pd.DataFrame(step_rows(look, filling)), hide_index=True, width="stretch",
                 key=f"several_steps_{meaning}", column_config={
                     "probability": st.column_config.NumberColumn(format="percent"),
                     "entropy_bits": st.column_config.NumberColumn("entropy before (bits)",
                                                                   format="%.2f"),
                     "was": "what was there", "text": st.column_config.TextColumn(
                         "the text then", width="large")})


def step_rows(look: Look, filling) -> list[dict]:
    tokens = ["[MASK]" if i in look.masked else token
              for i, token in enumerate(look.encoded.tokens)]
    found = []
    for number, step in enumerate(filling.steps, start=1):
        tokens[step.place] = step.token
        read = [t for t, special in zip(tokens, look.encoded.special) if not special]
        found.append({"step": number, "place": step.place, "put": step.token,
                      "was": look.encoded.tokens[step.place], "probability": step.probability,
                      "entropy_bits": step.entropy_bits, "text": shorten(" ".join(read), 400)})
    return found


def rows(drawn):
    import pandas as pd

    return pd.DataFrame([
        {"checkpoint": look.chosen.label, "order": filling.order, "sentence": text,
         "log_product": filling.log_product,
         "pseudo_log_likelihood": filling.pseudo_log_likelihood, **row}
        for look, found, _ in drawn for filling, text in found
        for row in step_rows(look, filling)])


# -- over the training ------------------------------------------------------------------------


def learning(look: Look, order: str) -> None:
    """How well the fillings go together, and what they were, at each of the run's checkpoints."""
    import pandas as pd

    st.divider()
    if not over_time.wanted(look.chosen):
        return
    marks = asked.marks(look)
    found = over_time.ask(look.chosen, lambda path, stamp: answers.fillings(
        path, stamp, look.encoded.text, look.masked), [step for step, _ in marks])
    if not found:
        return
    table = [{"step": step, "order": filling.order, "sentence": text,
              "pseudo_log_likelihood": filling.pseudo_log_likelihood,
              "per_place": math.exp(filling.pseudo_log_likelihood / len(filling.steps))}
             for step, answer in found for filling, text in answer]
    frame_of = pd.DataFrame(table)
    st.altair_chart(
        charts.over_steps(frame_of, "per_place", "order", [f.order for f, _ in found[0][1]],
                          "Joint pseudo-probability over the training, per place (geometric mean)",
                          marks, strong=order),
        key="several_learning", width="stretch")
    with st.expander(f"What it put at each step, {order}", icon=":material/history_edu:"):
        st.dataframe(frame_of.loc[frame_of["order"] == order, ["step", "per_place", "sentence"]],
                     hide_index=True, width="stretch", key="several_history", column_config={
                         "per_place": st.column_config.NumberColumn("per place",
                                                                    format="percent")})
    frame.download_csv(frame_of, f"{look.chosen.run.name}-several-over-steps")
