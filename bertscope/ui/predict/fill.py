"""Fill the mask: what the model puts in each masked place, words of one's own, and since when."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import charts, compared, frame, loaders
from bertscope.ui.predict import Look, asked, over_training
from bertscope.ui.text import markdown

#: Words that are compared at once.
MOST_WORDS = 8

EXPLANATION = r"""
The chosen pieces are replaced by `[MASK]`, all at once, and the MLM head gives a distribution
over the whole vocabulary for each place $i$:

$$
p(w \mid \text{text}) = \operatorname{softmax}_w\big(E\,\operatorname{LN}(\operatorname{gelu}(
W h_i + b)) + c\big)
$$

with the last layer's hidden state $h_i$ and the word embeddings $E$. *Rank* is the true piece's
place among all pieces, *surprisal* $-\log_2 p(\text{true piece})$, *entropy*
$-\sum_w p(w)\log_2 p(w)$, both in bits: 0 bits of entropy is certainty. What changed most is
sorted by $|p_\text{after}(w) - p_\text{before}(w)|$; half of its sum over all pieces is the total
variation distance.

Devlin et al. 2019, section 3.1 (task 1). Clicking on a word to mask it was shown by Google PAIR's
*What have language models learned?*
"""


def show(look: Look) -> None:
    from bertscope.analysis.predictions import predict

    masked = list(look.masked)
    top = st.session_state.get("top", 8)
    here = predict(look.model, look.encoded, masked, top)
    there = second(look, top) if look.other else None
    st.caption("Blue: " + markdown(look.chosen.label)
               + (f" · orange: {markdown(look.other.label)}" if there else "")
               + " · ✓ the piece that was there")
    for number, place in enumerate(here):
        show_place(place, there[number] if there else None, number)
    table = as_table(here, look.chosen) + (as_table(there, look.other) if there else [])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input("Candidates", 3, 50, 8, key="top", width=130, bind="query-params")
        import pandas as pd

        frame.download_csv(pd.DataFrame(table), f"{look.chosen.stem}-predictions")
    place = which_place(here)
    words = own_words(look, place)
    if look.chosen.run:
        how_often_seen(look, place, words)
        over_training.show(look, place, words)
    frame.explain(EXPLANATION)


def second(look: Look, top: int):
    """The second checkpoint's answers for the same characters; None where it has none."""
    from bertscope.analysis.activations import encode
    from bertscope.analysis.predictions import predict

    with compared.aside(look.other):
        model = loaders.model(look.other)
        theirs = encode(model, look.encoded.text)
        return predict(model, theirs, asked.transferred(look, theirs), top)


def show_place(here, there, number: int) -> None:
    """One masked place: bars of this checkpoint, and of the second one beside them."""
    columns = frame.beside(2, f"place_{number}") if there else [st.container(width=760)]
    most = max(c.probability for place in (here, there) if place for c in place.candidates)
    for column, place, meaning in zip(columns, (here, there), ("main", "other")):
        with column:
            st.markdown(headline(place))
            chart = charts.candidates(place.candidates, meaning, place.original, most)
            frame.figure(chart, f"prediction-{place.position}", f"place_{number}_{meaning}")


def headline(place) -> str:
    """What the bars are of, as Markdown."""
    text = f"**Place {place.position}**"
    if place.rank_of_original is not None:
        text += (f" “{markdown(place.original)}” · **rank {place.rank_of_original:,}** · "
                 f"surprisal {place.surprisal_bits:.1f} bits")
    return f"{text} :gray[· entropy {place.entropy_bits:.1f} bits]"


def as_table(places, choice) -> list[dict]:
    return [{"checkpoint": choice.label, "place": p.position, "true_piece": p.original,
             "rank_of_true_piece": p.rank_of_original, "candidate": c.token,
             "probability": c.probability} for p in places for c in p.candidates]


# -- one place, and words of one's own --------------------------------------------------------


def which_place(here):
    """The place that the rest of the page is about."""
    if len(here) == 1:
        return here[0]
    names = [f"{p.position}: {p.original}" for p in here]
    if st.session_state.get("place") not in names:
        st.session_state["place"] = names[0]
    return here[names.index(st.segmented_control(
        "Place", names, required=True, key="place", bind="query-params"))]


def own_words(look: Look, place) -> dict[int, str]:
    """Words that the user compares, as ``{piece's id: piece}``; what cannot be compared is said."""
    from bertscope.analysis.predictions import log_probabilities, rate, typed_candidates

    asked = st.text_input(
        "Compare words of your own in this place", "", key="words", bind="query-params",
        max_chars=200, placeholder="he, she, they",
        help="Separated by commas: the probability of each, here and over the training.")
    words = list(dict.fromkeys(w for part in asked[:200].split(",") if (w := part.strip())))
    if not words:
        return {}
    typed = typed_candidates(look.model, look.encoded, place.position, words[:MOST_WORDS])
    for candidate in typed:
        if candidate.id is None:
            st.caption(not_one_piece(candidate))
    known = {candidate.id: candidate.token for candidate in typed if candidate.id is not None}
    if known:
        log_p = log_probabilities(look.model, look.encoded, look.masked)
        rated = rate(log_p[look.masked.index(place.position)], known)
        st.markdown(" · ".join(f"**{markdown(known[index])}** {p:.2%}, rank {rank:,}"
                               for index, p, rank in rated))
    return known


def how_often_seen(look: Look, place, words: dict[int, str]) -> None:
    """How often the run had met these words by this step, and had to predict them."""
    from bertscope.ui.masking.seen import exposure

    if not st.toggle("How often had it seen these words by this step?", key="seen",
                     bind="query-params"):
        return
    shown = dict(words) or {c.id: c.token for c in place.candidates}
    if place.rank_of_original is not None:
        shown.setdefault(int(look.encoded.input_ids[place.position]), place.original)
    try:
        counts = exposure(look, look.chosen.checkpoint.step)
    except BertScopeError as error:
        frame.show_error(error)
        return
    if counts is None:
        return
    found, about = counts.of(list(shown)), "" if counts.exact else "about "
    import pandas as pd

    st.dataframe(pd.DataFrame({"piece": list(shown.values()), "seen": found.seen,
                               "had to be predicted": found.target}), hide_index=True, width=420)
    st.caption(f"In all examples up to step {counts.step:,}: {about}{counts.seen.sum():,} pieces.")


def not_one_piece(candidate) -> str:
    """Why a word has no probability in one place, as Markdown."""
    word, pieces = markdown(candidate.word), candidate.pieces
    if len(pieces) > 1 and not candidate.unknown:
        return (f":material/info: “{word}” is {len(pieces)} pieces in this vocabulary "
                f"({markdown(' '.join(pieces))}); one mask stands for one piece.")
    return f":material/help: “{word}” is not in this model's vocabulary."
