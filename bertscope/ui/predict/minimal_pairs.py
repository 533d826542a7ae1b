"""Minimal pairs: which of two sentences is likelier, and where; and how often over a file of them."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import compared, frame, looking, over_time, score_charts, texts
from bertscope.ui.predict import Look, asked, pair_file, scored
from bertscope.ui.text import bounded, markdown

EXPLANATION = r"""
Two sentences that differ in little, of which one is right: a model that knows the rule gives the
right one the higher pseudo-log-likelihood (PLL, see *Sentence score*). Nothing is trained for
this, and no label is seen. The difference in bits, $(\operatorname{PLL}(a) -
\operatorname{PLL}(b)) / \ln 2$, says how many times likelier $a$ is: $2^{\text{bits}}$ times. It
is a sum over places, so it can be said where it comes from: pieces that both sentences have may
count too, since each is told by what stands around it.

Over a file, *accuracy* is the share of pairs in which the good sentence is likelier; a tie counts
one half (published figures count it 0). Bars are 95 % intervals: Wilson 1927 for a paradigm, and
for the mean over paradigms, each counting the same, those combined (Zou and Donner 2008). A
phenomenon is the mean of its paradigms. Whether two checkpoints differ is asked of the pairs that
only one has right (McNemar's exact test).

A model that knows nothing is not at 50 % everywhere, because the longer sentence loses: compare
with step 0, not with the coin. And some pairs of every collection are wrong themselves: 100 % is
no aim.

Warstadt et al. 2020, *BLiMP*; masked models on it: Salazar et al. 2020; word by word: Kauf and
Ivanova 2023.
"""

OF = ("Two sentences", "A file of pairs")
ENGLISH = (("The laws of this country are just.", "The laws of this country is just.",
            "agreement across a noun"),
           ("These laws were passed by the congress.", "This laws were passed by the congress.",
            "this or these"),
           ("The treaty has been given to the senate.", "The treaty has been gave to the senate.",
            "given or gave"))


def show(look: Look) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        of = st.segmented_control("Of", OF, default=OF[0], required=True, key="pairs_of",
                                  bind="query-params")
        variant = scored.pick_way()
    if of == OF[1]:
        looking.what(look.chosen, look.model)
        pair_file.show(look, variant)
    else:
        two_sentences(look, variant)
    frame.explain(EXPLANATION)


# -- two sentences ----------------------------------------------------------------------------


@st.cache_data(show_spinner=False)
def _of_miniworld() -> list[tuple[str, str, str]]:
    """One pair of some paradigms: (good, bad, what it is about)."""
    from bertscope.corpus.miniworld.contrasts import contrasts

    found = {pair.paradigm: pair for pair in contrasts(3)}
    return [(found[name].good, found[name].bad, name.replace("_", " "))
            for name in ("verb_across_a_noun", "this_or_these", "his_or_her")]


def two_sentences(look: Look, variant: str) -> None:
    from bertscope.analysis.minimal_pairs import decisive, parts

    examples = _of_miniworld() if texts.corpus_of(look.chosen) == "miniworld" else list(ENGLISH)
    pair = ask(examples)
    if pair is None:
        return
    sides = score_sides(look, pair, variant)
    if sides is None:
        return
    compared = [(choice, meaning, scores, parts(*scores)) for choice, meaning, scores in sides]
    for choice, meaning, scores, found in compared:
        st.markdown(headline(choice, found, decisive(found), len(compared) > 1))
    left, right = frame.beside(2, "pair")
    most = scored.largest([s for *_, scores, _ in compared for s in scores])
    with left:
        for choice, meaning, scores, found in compared:
            if len(compared) > 1:
                st.caption(markdown(choice.label))
            for number, score in enumerate(scores):
                differs = {place for part in found if not part.same
                           for place in (part.first, part.second)[number]}
                scored.coloured(score, meaning, most, f"pair_{meaning}_{number}", strong=differs,
                                legend=number == 1)
        st.caption("Below each piece its surprisal in bits; framed is what differs.")
    with right:
        draw_parts(compared, look.chosen.stem)
    if look.chosen.run:
        learning(look, pair, variant)


def ask(examples) -> tuple[str, str] | None:
    """The two sentences; None where one is missing."""
    most = texts.MAX_SENTENCE
    columns = frame.beside(2, "pair_texts")
    pair = []
    for column, key, label, example in zip(columns, ("first", "second"),
                                           ("First sentence", "Second sentence"), examples[0]):
        with column:
            pair.append(bounded(st.text_input(label, example, key=key, max_chars=most,
                                              bind="query-params"), most, f"The {key} sentence"))
    frame.try_this(*((name, lambda a=a, b=b: frame.set_state(first=a, second=b))
                     for a, b, name in examples))
    if not all(pair):
        st.info("Type two sentences, or take one of the experiments.", icon=":material/edit:")
        return None
    return pair[0], pair[1]


def score_sides(look: Look, pair, variant: str):
    """[(choice, meaning of its colour, the two scores)]; None while cancelled."""
    here = scored.score(look.chosen, look.model, pair, variant)
    if here is None:
        return None
    looking.what(look.chosen, look.model, *(score.encoded for score in here))
    sides = [(look.chosen, "main", here)]
    if beside := scored.second(look):
        with compared.aside(look.other):
            theirs = scored.score(*beside, pair, variant)
            sides += [(look.other, "other", theirs)] if theirs else []
    return sides


def headline(choice, found, best, named: bool) -> str:
    """Which sentence is likelier, by how much, and what decides it; as Markdown."""
    margin = sum(part.bits for part in found)
    said = f"##### {f'{markdown(choice.label)}: ' if named else ''}"
    if best is None:
        return said + "both are equally likely :gray[(the model reads the same pieces)]"
    which, other = ("first", "second") if margin > 0 else ("second", "first")
    said += f"the {which} sentence is likelier than the {other}, by {abs(margin):.1f} bits " \
            f":gray[({times(margin)})]"
    texts_of = [f"“{markdown(text)}”" if text else "nothing" for text in best.texts]
    there = texts_of[0] if best.same else f"{texts_of[0]} against {texts_of[1]}"
    return f"{said}  \nMost of it at {there}: {abs(best.bits):.1f} bits."


def times(bits: float) -> str:
    """``2^bits`` in words, to two digits."""
    ratio = 2 ** min(abs(bits), 40.0)
    if ratio < 10:
        return f"{ratio:.1f} times"
    return f"{'more than ' if abs(bits) > 40 else ''}{float(f'{ratio:.2g}'):,.0f} times"


def draw_parts(compared, stem: str) -> None:
    """The difference as a sum over places. A second checkpoint that cuts the sentences otherwise has
    bars of its own."""
    import pandas as pd

    names = [[part.texts for part in found] for *_, found in compared]
    together = all(n == names[0] for n in names)
    for number, group in enumerate([compared] if together else [[one] for one in compared]):
        found = group[0][-1]
        figure = score_charts.contributions(
            [part.texts for part in found],
            [(choice.label, meaning, [part.bits for part in its])
             for choice, meaning, _, its in group],
            [i for i, part in enumerate(found) if not part.same])
        frame.figure(figure, f"{stem}-pair", f"pair_parts_{number}")
    frame.download_csv(pd.DataFrame([
        {"checkpoint": choice.label, "first": part.texts[0], "second": part.texts[1],
         "bits_for_the_first": part.bits}
        for choice, *_, found in compared for part in found]), f"{stem}-pair")


def learning(look: Look, pair, variant: str) -> None:
    """How much likelier the first sentence is, at each of the run's checkpoints."""
    import pandas as pd

    from bertscope.analysis.minimal_pairs import parts

    st.divider()
    if not over_time.wanted(look.chosen):
        return
    marks = asked.marks(look)
    found = over_time.ask(look.chosen, lambda path, stamp: scored.at(path, stamp, pair, variant),
                          [step for step, _ in marks])
    if not found:
        return
    table = pd.DataFrame({"step": [step for step, _ in found],
                          "bits": [sum(p.bits for p in parts(*scores)) for _, scores in found]})
    st.altair_chart(score_charts.curve(table, "How much likelier the first sentence is", marks,
                                       (0.0, "equally likely")), key="pair_curve", width="stretch")
    frame.download_csv(table, f"{look.chosen.run.name}-pair-over-steps")
