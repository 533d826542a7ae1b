"""Sentence score: how likely the model finds a whole text, and each piece and word of it."""

from __future__ import annotations

import math

import streamlit as st

from bertscope.ui import compared, frame, over_time, score_charts
from bertscope.ui.predict import Look, asked, scored
from bertscope.ui.text import markdown

EXPLANATION = r"""
BERT gives no probability of a sentence, but one of each piece when all others are seen. Each piece
is replaced by `[MASK]` in turn, and the logarithms are added, the *pseudo-log-likelihood*:

$$
\operatorname{PLL}(W) = \sum_{t} \ln P(w_t \mid W_{\setminus t}), \qquad
\operatorname{PPPL} = \exp\Big(-\tfrac{1}{N} \operatorname{PLL}(W)\Big)
$$

over the $N$ pieces of the text, without `[CLS]` and `[SEP]`. *Surprisal* is $-\log_2 P$, in bits:
0 is certain, 1 is a coin, and each bit more halves the probability. *Pseudo-perplexity* (PPPL) is the
number of equally likely pieces that would surprise as much. Guessing among all $V$ pieces of the
vocabulary costs $\log_2 V$ bits.

*Word by word*: the pieces of a rare word tell each other ("##ing" is easy after "play"), so such
words look too likely. Hiding the later pieces of a word together with each piece makes the word's
bits its surprisal given the other words, read from left to right.

Scores of texts of different length, or of models that cut text into other pieces, are not to be
compared: each piece more costs something.

Salazar et al. 2020, *Masked language model scoring*, section 2; word by word (PLL-word-l2r):
Kauf and Ivanova 2023.
"""

UNITS = ("pieces", "words")
#: Rows of the heat map: the most surprising pieces or words.
MOST_ROWS = 30


def show(look: Look) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        variant = scored.pick_way()
        words = st.segmented_control("Colour", UNITS, default=UNITS[0], required=True,
                                     key="score_unit", bind="query-params") == "words"
    here = both(look.chosen, look.model, look.encoded.text)
    if here is None:
        return
    sides = [(look.chosen, "main", here)]
    if beside := scored.second(look):
        with compared.aside(look.other):
            theirs = both(*beside, look.encoded.text)
            sides += [(look.other, "other", theirs)] if theirs else []
    most = scored.largest([found[variant] for *_, found in sides], words)
    for number, (choice, meaning, found) in enumerate(sides):
        st.markdown(headline(choice, found[variant], len(sides) > 1))
        scored.coloured(found[variant], meaning, most, f"score_{meaning}", words,
                        number == len(sides) - 1)
    for choice, _, found in sides:
        st.caption((f"{markdown(choice.label)}: " if len(sides) > 1 else "") + same_or_not(found))
    numbers(sides, look.chosen.stem)
    if look.chosen.run:
        learning(look, variant, words, here[variant])
    frame.explain(EXPLANATION)


def both(choice, model, text: str) -> dict | None:
    """The score in both ways; None while one of them is cancelled."""
    found = {variant: scored.score(choice, model, (text,), variant)
             for variant in scored.WAYS.values()}
    return {variant: scores[0] for variant, scores in found.items()} if all(found.values()) else None


def headline(choice, found, named: bool) -> str:
    """The score of one checkpoint, as Markdown."""
    pieces = len(found.places)
    return (f"##### {f'{markdown(choice.label)}: ' if named else ''}"
            f"pseudo-log-likelihood {signed(found.pll)} nats "
            f":gray[· {found.bits.sum():.1f} bits in {pieces:,} pieces · pseudo-perplexity "
            f"{perplexity(found):,.1f}]")


def signed(value: float) -> str:
    return f"{value:,.2f}".replace("-", "−")


def perplexity(found) -> float:
    from bertscope.analysis.scoring import pseudo_perplexity

    return pseudo_perplexity([found])


def same_or_not(here: dict) -> str:
    """What the two ways of hiding make of this text."""
    original, by_word = here["original"], here["word_l2r"]
    several = [w for w in original.words if len(w.pieces) > 1]
    if not several:
        return ":material/info: Every word of this text is one piece, so both ways of hiding give " \
               "the same."
    word = max(several, key=lambda w: by_word.words[original.words.index(w)].bits - w.bits)
    other = by_word.words[original.words.index(word)]
    return f":material/info: “{markdown(word.text)}” is cut into {len(word.pieces)} pieces: " \
           f"{word.bits:.1f} bits if each is hidden alone, {other.bits:.1f} if the later ones are " \
           "hidden with it."


def numbers(sides, stem: str) -> None:
    """Both ways and both checkpoints in one table, and every piece as CSV."""
    import pandas as pd

    names = {variant: way for way, variant in scored.WAYS.items()}
    table = pd.DataFrame([
        {"checkpoint": choice.label, "hidden": names[variant], "pieces": len(found.places),
         "PLL (natural log)": found.pll, "bits": float(found.bits.sum()),
         "bits per piece": float(found.bits.mean()), "pseudo-perplexity": perplexity(found)}
        for choice, _, ways in sides for variant, found in ways.items()])
    with st.expander("The numbers, in both ways", icon=":material/table:"):
        st.dataframe(table, hide_index=True, width="stretch", column_config={
            c: st.column_config.NumberColumn(format="%.3f") for c in table.columns[3:]})
    pieces = [{"checkpoint": choice.label, "variant": variant, "position": int(place),
               "piece": found.encoded.tokens[place], "word": found.encoded.word_ids[place],
               "log_probability": value, "surprisal_bits": bits}
              for choice, _, ways in sides for variant, found in ways.items()
              for place, value, bits in zip(found.places, found.log_probabilities, found.bits)]
    frame.download_csv(pd.DataFrame(pieces), f"{stem}-score")


# -- over the training ------------------------------------------------------------------------


def learning(look: Look, variant: str, words: bool, here) -> None:
    """The mean surprisal of a piece, and each piece's or word's, at the run's checkpoints."""
    import numpy as np
    import pandas as pd

    st.divider()
    if not over_time.wanted(look.chosen):
        return
    marks, text = asked.marks(look), look.encoded.text
    found = over_time.ask(look.chosen, lambda path, stamp: scored.at(path, stamp, (text,), variant)[0],
                          [step for step, _ in marks])
    found = [(step, one) for step, one in found if one.encoded.tokens == here.encoded.tokens]
    if not found:
        return
    steps = [step for step, _ in found]
    names, values = rows(here, [one for _, one in found], words)
    guess = math.log2(look.model.model.config.vocab_size)
    mean = pd.DataFrame({"step": steps, "bits": [float(one.bits.mean()) for _, one in found]})
    left, right = frame.beside(2, "score_learning")
    with left:
        st.altair_chart(score_charts.curve(
            mean, "Mean surprisal of a piece", marks, (guess, "guessing among all pieces")),
            key="score_curve", width="stretch")
    with right:
        kept = np.sort(np.argsort(-values.max(1), kind="stable")[:MOST_ROWS])
        figure = score_charts.bits_over_steps(
            values[kept], [names[i] for i in kept], steps,
            "Surprisal of each " + ("word" if words else "piece"), marks)
        frame.figure(figure, f"{look.chosen.run.name}-score-over-steps", "score_steps")
        if len(kept) < len(names):
            st.caption(f"The {MOST_ROWS} most surprising, of {len(names):,}.")
    table = pd.DataFrame([
        {"step": step, "variant": variant, "number": i, "text": name, "surprisal_bits": values[i, j]}
        for j, step in enumerate(steps) for i, name in enumerate(names)])
    frame.download_csv(table, f"{look.chosen.run.name}-score-over-steps")


def rows(here, scores, words: bool):
    """Names of the pieces or words, and their bits: [rows, scores]."""
    import numpy as np

    if words:
        names = [word.text for word in here.words]
        values = [[word.bits for word in one.words] for one in scores]
    else:
        names = [here.encoded.tokens[place] for place in here.places]
        values = [one.bits for one in scores]
    return [f"{i}: {name}" for i, name in enumerate(names, 1)], np.array(values).T
