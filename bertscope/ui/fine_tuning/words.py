"""Which words mattered for what a fine-tuned checkpoint says of a text."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import compared, frame, loaders, theme, waiting
from bertscope.ui.components.shaded import Shade, shaded
from bertscope.ui.fine_tuning import Look
from bertscope.ui.predict.words import LEAST_BITS, completeness, largest, number
from bertscope.ui.text import markdown, shorten

EXPLANATION = r"""
The answer is the label (tag, span) with the highest probability; probabilities are a softmax of the
head's numbers, of an answer in a paragraph over its 20 best spans in all windows.

**Which words mattered.** All scores are in bits of $\log_2 P(\text{answer})$: $+1$ doubles the
probability. *Gradient × input* follows the slope at each piece's embedding, $s_j = x_j \cdot \partial
\log_2 P / \partial x_j$ (Shrikumar et al. 2016). *Integrated gradients* averages the slope on the
straight way from a baseline $b$, the same input with `[PAD]` for every piece:

$$
s_j = (x_j - b_j) \cdot \int_0^1 \frac{\partial \log_2 P(b + \alpha (x - b))}{\partial x_j}\, d\alpha,
\qquad \sum_j s_j = \log_2 P(x) - \log_2 P(b)
$$

The second equation is *completeness*; how far the computed sum misses it is the *completeness error*, and
points are added until it is below 1 % (Sundararajan et al. 2017; computed with Captum). Of an answer $P$
is here that of its first piece times that of its last, in the window that is shown. Scores say how
this one number answers to changes of single pieces, not how the model came to it.
"""

METHODS = {"integrated gradients": "integrated", "gradient × input": "gradient"}
#: Choices of a word, a label or a span at most.
MOST_CHOICES = 200


def show(look: Look, sides: list, text: str, pair: str) -> None:
    st.divider()
    st.markdown("##### Which words mattered?")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        asked = pick(look, sides[0][2], text, pair)
        method = st.segmented_control("Method", list(METHODS), default=next(iter(METHODS)), required=True,
                                      key="try_method", bind="query-params") or next(iter(METHODS))
    if asked is None:
        return
    example, target, title = asked
    drawn = []
    for choice, meaning, model in sides:
        with compared.aside(choice):
            found = scores(choice, model, example, target, METHODS[method])
            if found is not None:
                drawn.append((choice, meaning, found))
    if not drawn:
        return
    least = LEAST_BITS if not look.spec.numbers else 1e-6
    most = max(least, *(largest(found.attribution) for *_, found in drawn))
    for choice, meaning, found in drawn:
        draw(look, choice, meaning, found, most, title, len(drawn))
    frame.download_csv(rows(drawn, title), f"{look.chosen.stem}-attribution", "Scores (CSV)",
                       key="attribution_csv")


# -- asking -------------------------------------------------------------------------------------


def pick(look: Look, model, text: str, pair: str):
    """(example, ``attribution.Target``, what it is called) of what is asked about."""
    from bertscope.finetuning import predict
    from bertscope.finetuning.attribution import Target
    from bertscope.finetuning.data.examples import Labelled, Question, Tagged

    labels = list(look.spec.labels)
    if look.spec.task == "question":
        spans = {(s.start, s.end): s.text or "no answer" for s in predict.answer(model, text, pair)}
        chosen = choose("What speaks for", list(spans), lambda span: shorten(spans[span], 60), "try_label")
        return Question(text, pair, ()), Target(span=chosen), spans[chosen]
    if look.spec.task == "tokens":
        found = predict.tag(model, text)
        named = [i for i, w in enumerate(found) if w.tag != "O"] or [0]
        order = [*named, *(i for i in range(len(found)) if i not in named)][:MOST_CHOICES]
        word = choose("Word", order, lambda i: f"{i + 1}: {shorten(found[i].word, 30)}", "try_word")
        likely = [found[word].tag, *(label for label in labels if label != found[word].tag)]
        label = choose("What speaks for", likely[:MOST_CHOICES], str, "try_label")
        words = tuple(w.word for w in found)
        return (Tagged(words, ("",) * len(words)), Target(labels.index(label), word),
                f"{label} at “{found[word].word}”")
    second = pair if look.spec.task == "pair" else None
    if look.spec.numbers:
        return Labelled(text, 0.0, second), Target(), "a larger number"
    likely = [c.label for c in predict.classify(model, text, second)][:MOST_CHOICES]
    label = choose("What speaks for", likely, str, "try_label")
    return Labelled(text, "", second), Target(labels.index(label)), label


def choose(title: str, options: list, shown, key: str):
    """A box whose choice is forgotten where another text does not offer it."""
    if st.session_state.get(key) not in (None, *options):
        del st.session_state[key]
    return st.selectbox(title, options, format_func=lambda option: str(shown(option)), key=key, width=300)


def scores(choice, model, example, target, method: str):
    """``attribution.Explained`` by one checkpoint; None while it is cancelled."""
    from bertscope.finetuning.attribution import explain

    key = ("finetuned attribution", choice.path, loaders.stamp(choice.path), example, target, method)
    return waiting.kept(key, lambda progress: explain(model, example, target, method, progress),
                        f"scores by {choice.label}")


# -- drawing ------------------------------------------------------------------------------------


def draw(look: Look, choice, meaning: str, found, most: float, title: str, of: int) -> None:
    import numpy as np

    own, unit = found.attribution, "" if look.spec.numbers else " bits"
    of_what = "P(first) · P(last)" if look.spec.task == "question" else "P"
    said = f"{own.log2_p:.3f}" if look.spec.numbers else f"{of_what} = {2 ** own.log2_p:.1%}"
    name = f"{markdown(choice.label)}, " if of > 1 else ""
    st.markdown(f"**What speaks for {markdown(title)}** :gray[{name}{said}]")
    scale, pieces = theme.signed(), []
    for i, (token, score) in enumerate(zip(found.tokens, own.scores)):
        scored = not np.isnan(score) and not found.special[i]
        pieces.append(Shade(
            token, number(score) if scored else "",
            f"{token}: {score:+.3f}{unit}" if scored else token,
            theme.shade(scale, 0.5 + score / most / 2) if scored else None,
            faint=bool(found.special[i]), strong=look.spec.task in ("tokens", "question")
            and i in found.places))
    legend = (f"−{most:.2f}{unit}: speaks against it", [c for _, c in scale],
              f"+{most:.2f}{unit}: speaks for it") if of == 1 or meaning == "other" else None
    shaded(pieces, f"try_words_{meaning}", legend)
    if own.difference is not None:
        completeness(own, unit)


def rows(drawn, title: str):
    import pandas as pd

    return pd.DataFrame([
        {"checkpoint": choice.label, "answer": title, "position": i, "piece": token, "score": score,
         "log2_p": found.attribution.log2_p, "difference_to_baseline": found.attribution.difference,
         "completeness_error": found.attribution.error, "gradients": found.attribution.steps}
        for choice, _, found in drawn
        for i, (token, score) in enumerate(zip(found.tokens, found.attribution.scores))])
