"""Predict: which word pieces does the model expect in the places that are masked?"""

import streamlit as st

from bertscope.ui import charts, frame, loaders, masks, over_time, texts
from bertscope.ui.components.tokens import token_bar
from bertscope.ui.text import bounded, markdown

EXPLANATION = r"""
The chosen pieces are replaced by `[MASK]`, all at once, and the MLM head gives a distribution
over the whole vocabulary for each place $i$:

$$
p(w \mid \text{text}) = \operatorname{softmax}_w\big(E\,\operatorname{LN}(\operatorname{gelu}(
W h_i + b)) + c\big)
$$

with the last layer's hidden state $h_i$ and the word embeddings $E$. *Rank* is the true piece's
place among all pieces, *surprisal* $-\log_2 p(\text{true piece})$, *entropy*
$-\sum_w p(w)\log_2 p(w)$, both in bits: 0 bits of entropy is certainty.

Devlin et al. 2019, section 3.1 (task 1). Clicking on a word to mask it was shown by Google PAIR's
*What have language models learned?*
"""


def main() -> None:
    chosen, other = frame.checkpoints()
    model = loaders.model(chosen)
    from bertscope.analysis.activations import encode
    from bertscope.analysis.predictions import predict, require_mlm_head

    require_mlm_head(model)  # before any text is asked for
    examples = texts.fills(chosen)
    text = st.text_area("Text", examples[0].text if examples else "", key="text", height=72,
                        bind="query-params", max_chars=texts.MAX_SENTENCE,
                        help="Click pieces below to mask them; you can also write [MASK].")
    frame.try_this(*((f"{e.masked}", lambda e=e: masks.use(e.text, (e.start, e.end)))
                     for e in examples[:3]))
    text = bounded(text, texts.MAX_SENTENCE)
    if not text:
        st.info("Type a sentence above, or take one of the experiments.", icon=":material/edit:")
        return
    encoded = encode(model, text)
    about = next(((e.start, e.end) for e in examples if e.text == text), None)
    masked = masks.places(encoded, about)
    special = [i for i, s in enumerate(encoded.special) if s]
    token_bar(encoded.tokens, masked, special, special + masks.typed(encoded), "pieces",
              on_change=lambda: masks.take_click("pieces", encoded.text))
    if encoded.truncated:
        st.caption(f"Cut to the {model.max_length} pieces that this model reads at once.")
    if not masked:
        st.info("Click a piece to mask it.", icon=":material/touch_app:")
        return
    top = st.session_state.get("top", 8)
    here = predict(model, encoded, masked, top)
    there = second(other, encoded, masked, top) if other else None
    st.caption("Blue: " + markdown(chosen.label)
               + (f" · orange: {markdown(other.label)}" if there else "")
               + " · ✓ the piece that was there")
    for number, place in enumerate(here):
        show_place(place, there[number] if there else None, number)
    table = as_table(here, chosen) + (as_table(there, other) if there else [])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input("Candidates", 3, 50, 8, key="top", width=130)
        import pandas as pd

        frame.download_csv(pd.DataFrame(table), f"{chosen.stem}-predictions")
    if chosen.run:
        show_learning(chosen, other, encoded, masked, here)


def second(other, encoded, masked, top):
    """The second checkpoint's answers for the same characters; None where it has none."""
    from bertscope.analysis.activations import encode
    from bertscope.analysis.predictions import predict
    from bertscope.errors import BertScopeError

    try:
        model = loaders.model(other)
        theirs = encode(model, encoded.text)
        places = masks.transfer(encoded, masked, theirs)
        found = predict(model, theirs, places, top)
    except BertScopeError as error:
        st.warning(f"{markdown(other.label)}: {markdown(error)}", icon=":material/compare:")
        return None
    if len(found) != len(masked):
        st.warning("The second checkpoint's tokenizer cuts the masked words into other pieces, "
                   "so the two cannot be put side by side.", icon=":material/compare:")
        return None
    return found


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
                 f"surprisal {place.surprisal_bits:.1f}")
    return f"{text} :gray[· entropy {place.entropy_bits:.1f} bits]"


def as_table(places, choice) -> list[dict]:
    return [{"checkpoint": choice.label, "place": p.position, "true_piece": p.original,
             "rank_of_true_piece": p.rank_of_original, "candidate": c.token,
             "probability": c.probability} for p in places for c in p.candidates]


def show_learning(chosen, other, encoded, masked, here) -> None:
    """The probability of the leading words and of the true one, over the checkpoints."""
    import pandas as pd

    st.divider()
    if not over_time.wanted(chosen):
        return
    which = 0
    if len(masked) > 1:
        names = [f"{p.position}: {p.original}" for p in here]
        which = names.index(st.segmented_control("Place", names, default=names[0], required=True,
                                                 key="learning_place") or names[0])
    same = other is not None and other.run is not None and other.run.name == chosen.run.name \
        and other.checkpoint is not None
    answers = over_time.ask(
        chosen, lambda path, stamp: loaders.distributions(path, stamp, encoded.text, tuple(masked)),
        (other.checkpoint.step,) if same else ())
    place = here[which]
    words = {c.id: c.token for c in place.candidates[:4]}
    if place.rank_of_original is not None:
        words.setdefault(int(encoded.input_ids[place.position]), place.original)
    rows = [{"step": step, "piece": token, "probability": float(found[which][index])}
            for step, found in answers for index, token in words.items()]
    if not rows:
        return
    marks = [(chosen.checkpoint.step, "main")]
    if same:
        marks.append((other.checkpoint.step, "other"))
    st.altair_chart(
        charts.over_steps(pd.DataFrame(rows), "probability", "piece", list(words.values()),
                          f"Probability at place {place.position} over the training", marks,
                          strong=place.original),
        key="learning", width="stretch")
    frame.download_csv(pd.DataFrame(rows), f"{chosen.run.name}-predictions-over-steps")


with frame.page("Predict", "Which word does the model expect in a place that it cannot see?"):
    main()
frame.explain(EXPLANATION)
