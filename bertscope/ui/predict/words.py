"""Which words mattered: what one prediction rests on, in three ways of asking."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import compared, frame, over_time, theme, waiting
from bertscope.ui.components.shaded import Shade, shaded
from bertscope.ui.predict import Look, answers, asked, figures
from bertscope.ui.text import markdown

EXPLANATION = r"""
All scores are in bits of $\log_2 P(\text{target})$ at the chosen place: $+1$ doubles the
probability, $-1$ halves it.

**Leave one out** replaces a piece (or a whole word) by `[MASK]` and asks again: the score is how
much $\log_2 P$ falls. Real effects, of one change at a time; two words that say the same cover for
each other. Zeiler and Fergus 2014; Li, Monroe and Jurafsky 2016.

**Gradient × input** follows the slope at the word's embedding $x_j$, a guess of the same from one
pass: $s_j = x_j \cdot \partial \log_2 P / \partial x_j$. Slopes mislead where the model is sure of
itself. Shrikumar et al. 2016.

**Integrated gradients** averages the slope on the straight way from a baseline $b$, here the same
input with the embedding of `[PAD]` or of `[MASK]` for every piece that can be seen:

$$
s_j = (x_j - b_j) \cdot \int_0^1 \frac{\partial \log_2 P(b + \alpha (x - b))}{\partial x_j}\,
d\alpha, \qquad \sum_j s_j = \log_2 P(x) - \log_2 P(b)
$$

The second equation is *completeness*; how far the computed sum misses it is the *completeness
error*, and points are added until it is below 1 %. Another baseline asks another question and
gives other scores. Sundararajan et al. 2017; computed with Captum (Kokhlikyan et al. 2020).
"""

METHODS = {"leave one out": "occlusion", "gradient × input": "gradient",
           "integrated gradients": "integrated"}
BASELINES = {"[PAD]": "pad", "[MASK]": "mask"}
#: Rows of the heat map over the training: the pieces with the largest scores.
MOST_PIECES = 24
#: The strongest colour is this many bits at least: what is smaller is next to nothing.
LEAST_BITS = 0.25


def show(look: Look) -> None:
    body(look)
    frame.explain(EXPLANATION)


def body(look: Look) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        at = asked.place(look)
        target = pick_target(look, at)
        method = pick_method()
    there = asked.second(look)
    here = read(look, at, target, method)
    if here is None:
        return
    theirs = read_second(look, there, at, target, method) if there else None
    st.markdown(headline(look, at, target, here))
    drawn = [(look, here, "main")] + ([(there, theirs, "other")] if theirs else [])
    most = max(LEAST_BITS, *(largest(one) for _, one, _ in drawn))
    for one, found, meaning in drawn:
        draw(one, found, at if one is look else asked.beside(look, there, at), most, meaning,
             len(drawn))
    st.caption(":material/info: Scores are not explanations in full: they say how this one number "
               "answers to changes of single pieces, not how the model came to it, and the three "
               "methods need not agree.")
    frame.download_csv(rows(drawn, target), f"{look.chosen.stem}-attribution")
    if look.chosen.run:
        learning(look, at, target, method, here)


# -- asking -----------------------------------------------------------------------------------


def pick_target(look: Look, at: int) -> str:
    """The piece whose probability is asked about: the true one, or one of the candidates."""
    from bertscope.analysis.predictions import predict

    place = predict(look.model, look.encoded, list(look.masked), 5)[look.masked.index(at)]
    true = asked.true_piece(look, at)
    found = {c.token: f"{c.token}  ({c.probability:.1%})" for c in place.candidates}
    options = list(dict.fromkeys([*([true] if true else []), *found]))
    return asked.pick("What speaks for", options, "words_target", width=220,
                      help="The piece that was there, and what the model would rather put.")


def pick_method() -> tuple:
    """A method as ``answers.attribute`` takes it."""
    name = st.segmented_control("Method", list(METHODS), default="leave one out", required=True,
                                key="words_method", bind="query-params") or "leave one out"
    if METHODS[name] == "occlusion":
        return ("occlusion", st.toggle("Whole words", key="words_whole", bind="query-params",
                                       help="Leave out all pieces of a word at once."))
    if METHODS[name] == "gradient":
        return ("gradient",)
    baseline = st.segmented_control("Baseline", list(BASELINES), default="[PAD]", required=True,
                                    key="words_baseline", bind="query-params") or "[PAD]"
    return ("integrated", BASELINES[baseline])


def read(look: Look, at: int, target: str, method: tuple):
    """The ``Attribution`` of a checkpoint; None while it is cancelled."""
    from bertscope.analysis.sides import piece_id

    index = piece_id(look.model, target)
    if index is None:
        raise BertScopeError(f"{look.chosen.label} has no piece {target!r} in its vocabulary.")
    return waiting.kept(
        ("attribution", *asked.where(look), at, index, method),
        lambda progress: answers.attribute(look.model, look.encoded, look.masked, at, index, method,
                                           progress), f"scores by {look.chosen.label}")


def read_second(look: Look, there: Look, at: int, target: str, method: tuple):
    with compared.aside(look.other):
        return read(there, asked.beside(look, there, at), target, method)


# -- drawing ----------------------------------------------------------------------------------


def largest(found) -> float:
    """The largest score's size, 0 where there is none."""
    import numpy as np

    return float(np.nanmax(np.abs(found.scores), initial=0.0))


def headline(look: Look, at: int, target: str, found) -> str:
    """What is asked, as Markdown."""
    return f"##### What speaks for “{markdown(target)}” at place {at}? " \
           f":gray[P = {2 ** found.log2_p:.1%}]"


def draw(look: Look, found, at: int, most: float, meaning: str, of: int) -> None:
    """The text, coloured by the scores, and what holds for the whole of it."""
    import numpy as np

    if of > 1:
        st.markdown(f"**{markdown(look.chosen.label)}** :gray[P = {2 ** found.log2_p:.1%}]")
    scale = theme.signed()
    pieces = []
    for i, (token, score) in enumerate(zip(look.encoded.tokens, found.scores)):
        scored = not np.isnan(score)
        hidden = i in look.masked
        pieces.append(Shade(
            "[MASK]" if hidden else token, number(score) if scored else "",
            f"{token}: {score:+.3f} bits" if scored else f"{token}: not asked about",
            theme.shade(scale, 0.5 + score / most / 2) if scored else None,
            faint=bool(look.encoded.special[i]), strong=i == at))
    legend = (f"−{most:.2f} bits: speaks against it", [c for _, c in scale],
              f"+{most:.2f} bits: speaks for it") if of == 1 or meaning == "other" else None
    shaded(pieces, f"words_{meaning}", legend)
    if np.isnan(found.scores).all():
        st.info("There is no other piece that the model sees, so nothing can matter.",
                icon=":material/info:")
    elif found.difference is not None:
        completeness(found)


def number(score: float) -> str:
    """Two decimals with a sign, and no sign where nothing is left."""
    text = f"{score:+.2f}"
    return "0" if float(text) == 0 else text


def completeness(found, unit: str = " bits") -> None:
    """Integrated gradients: the sum, what it should be, and the error."""
    import numpy as np

    share = found.error / abs(found.difference) if found.difference else 0.0
    said = f"Sum of the scores {np.nansum(found.scores):+.3f}{unit}, difference to the baseline " \
           f"{found.difference:+.3f}{unit}: **completeness error {share:.2%}** with {found.steps} " \
           "gradients."
    if found.complete:
        st.caption(said)
    else:
        st.warning(said + " That is more than 1 %: the way from the baseline is too crooked here "
                   "for these scores to be trusted.", icon=":material/warning:")


def rows(drawn, target: str):
    import pandas as pd

    return pd.DataFrame([
        {"checkpoint": look.chosen.label, "target": target, "position": i, "piece": token,
         "masked": i in look.masked, "bits": score, "log2_p_target": found.log2_p,
         "difference_to_baseline": found.difference, "completeness_error": found.error,
         "gradients": found.steps}
        for look, found, _ in drawn
        for i, (token, score) in enumerate(zip(look.encoded.tokens, found.scores))])


# -- over the training ------------------------------------------------------------------------


def learning(look: Look, at: int, target: str, method: tuple, here) -> None:
    """The scores of the pieces at each of the run's checkpoints."""
    import numpy as np
    import pandas as pd

    from bertscope.analysis.sides import piece_id

    scored = np.flatnonzero(~np.isnan(here.scores))
    if not len(scored):
        return
    st.divider()
    if not over_time.wanted(look.chosen):
        return
    index, marks = piece_id(look.model, target), asked.marks(look)
    found = over_time.ask(look.chosen, lambda path, stamp: answers.attribution(
        path, stamp, look.encoded.text, look.masked, at, index, method), [s for s, _ in marks])
    if not found:
        return
    scores = np.stack([answer.scores for _, answer in found], axis=1)
    sizes = np.abs(scores[scored]).max(1)
    kept = np.sort(scored[np.argsort(-sizes, kind="stable")[:MOST_PIECES]])
    if len(kept) < len(scored):
        st.caption(f"The {MOST_PIECES} pieces with the largest scores, of {len(scored):,}.")
    names = [f"{i}: {look.encoded.tokens[i]}" for i in kept]
    figure = figures.over_steps(scores[kept], names, [s for s, _ in found],
                                f"What speaks for {target} at place {at}, over the training",
                                marks, signed=True, unit=" bits")
    frame.figure(figure, f"{look.chosen.run.name}-attribution-over-steps", "words_steps")
    table = [{"step": step, "position": i, "piece": look.encoded.tokens[i],
              "bits": answer.scores[i], "log2_p_target": answer.log2_p}
             for step, answer in found for i in scored]
    frame.download_csv(pd.DataFrame(table), f"{look.chosen.run.name}-attribution-over-steps")
