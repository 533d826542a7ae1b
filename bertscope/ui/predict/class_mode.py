"""Class: the audience guesses the masked word first; then the model's guesses while it learnt."""

from __future__ import annotations

from collections import Counter

import streamlit as st

from bertscope.ui import charts, frame, loaders, looking, texts
from bertscope.ui.predict import Look
from bertscope.ui.text import markdown

#: Guesses of one class, and characters of one guess.
MOST_GUESSES, LONGEST = 200, 40
SHOWN = 5
MASK = "[MASK]"

EXPLANATION = """
The sentences are held-out ones where the corpus has such. Everybody's guess is collected before the
model's is shown: what one expects after having seen the answer is no guess. The model's are those of
an early, a middle and the chosen checkpoint, for the same sentence and the same mask; ✓ marks
the word that was there. A guess of several pieces cannot stand in one mask and has no probability.

After the in-browser BERT lesson of bert.dataglanz.com, which asks for *your* guess first.
"""


def show(look: Look) -> None:
    sentence = choose(look)
    if sentence:
        play(look, *sentence)
    frame.explain(EXPLANATION)


def play(look: Look, text: str, answer) -> None:
    masked = text[:answer[0]] + MASK + text[answer[1]:] if answer else text
    st.markdown(f"#### {markdown(masked).replace(markdown(MASK), ':blue-background[ **?** ]', 1)}")
    guesses = collect(masked)
    if not st.toggle("Reveal", key="reveal", bind="query-params"):
        st.caption("Collect guesses, then reveal the model's.")
        return
    reveal(look, text, answer, guesses)


# -- the sentence -----------------------------------------------------------------------------


def choose(look: Look) -> tuple[str, tuple[int, int] | None] | None:
    """The text and the characters of its hidden word; None for these where [MASK] was typed."""
    examples = texts.fills(look.chosen)
    with st.expander("The teacher's own sentence (fold this in before the class looks)"):
        own = st.text_input("A sentence with one word as [MASK]", key="own", bind="query-params",
                            max_chars=texts.MAX_SENTENCE)
    if own.strip():
        if own.count(MASK) != 1:
            st.info("Write [MASK] for exactly one word of the sentence.", icon=":material/edit:")
            return None
        return own.strip(), None
    if not examples:
        st.info("There is no sentence to guess in: write one above.", icon=":material/edit:")
        return None
    number = st.number_input("Sentence", 1, len(examples), 1, key="item", bind="query-params",
                             width=130, on_change=_hide)
    example = examples[number - 1]
    return example.text, (example.start, example.end)


def _hide() -> None:
    st.session_state["reveal"] = False


# -- the guesses ------------------------------------------------------------------------------


def collect(masked: str) -> Counter:
    """The guesses for this sentence, kept in the session."""
    kept = st.session_state.setdefault("_guesses", {})
    guesses: Counter = kept.setdefault(masked, Counter())
    with st.form("guess", clear_on_submit=True, border=False):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input("A guess, or several with commas", key="guess", max_chars=500)
            st.form_submit_button("Add", on_click=_take, args=(guesses,),
                                  icon=":material/add:")
    if guesses:
        st.markdown("Your guesses: " + " · ".join(
            f"**{markdown(word)}**" + (f" × {count}" if count > 1 else "")
            for word, count in guesses.most_common(20)))
    return guesses


def _take(guesses: Counter) -> None:
    for part in str(st.session_state.get("guess", ""))[:500].split(","):
        word = " ".join(part.split())[:LONGEST].lower()
        if word and sum(guesses.values()) < MOST_GUESSES:
            guesses[word] += 1


# -- the model's ------------------------------------------------------------------------------


def reveal(look: Look, text: str, answer, guesses: Counter) -> None:
    from bertscope.analysis.activations import encode
    from bertscope.analysis.predictions import predict, typed_candidates
    from bertscope.ui import masks

    encoded = encode(look.model, text)
    places = masks.covering(encoded, *answer) if answer else masks.typed(encoded)
    looking.what(look.chosen, look.model, encoded)
    if len(places) != 1:
        st.info(f"The hidden word is {len(places)} pieces in this model's vocabulary: every one of "
                "them is a mask, and the first is shown.", icon=":material/info:")
    if not places:
        return
    typed = typed_candidates(look.model, encoded, places[0], list(guesses)[:20])
    ids = {c.id: c.word for c in typed if c.id is not None}
    stages = {choice.label: loaders.model(choice) for choice in moments(look)}
    columns = frame.beside(len(stages), "class")
    rows = []
    for column, (label, model) in zip(columns, stages.items()):
        place = predict(model, encoded, places, SHOWN)[0]
        true = place.original if answer else None
        with column:
            st.markdown(f"**{markdown(label)}**")
            frame.figure(charts.candidates(place.candidates, "main", true, 1.0),
                         f"class-{label}", f"class_{label}")
        rows.append(ranks(model, encoded, places, ids, label))
    table(rows, guesses, typed)


def moments(look: Look) -> list:
    """An early, a middle and the chosen checkpoint of the run; of others' the one there is."""
    from bertscope.ui.selection import Choice

    run, here = look.chosen.run, look.chosen.checkpoint
    if run is None:
        return [look.chosen]
    saved = [c for c in run.checkpoints() if c.step <= here.step]
    picked = {len(saved) // 4, len(saved) // 2, len(saved) - 1}
    return [Choice(run.name, run, saved[i], look.chosen.part) for i in sorted(picked)]


def ranks(model, encoded, places, ids: dict[int, str], label: str) -> dict:
    """Each guess's probability and rank at one checkpoint."""
    from bertscope.analysis.predictions import log_probabilities, rate

    log_p = log_probabilities(model, encoded, places)[0]
    return {"checkpoint": label, **{ids[i]: f"{p:.1%} (rank {rank:,})"
                                    for i, p, rank in rate(log_p, ids)}}


def table(rows: list[dict], guesses: Counter, typed) -> None:
    import pandas as pd

    from bertscope.ui.predict.fill import not_one_piece

    if not guesses:
        return
    st.markdown("**What the model thinks of your guesses**")
    frame_of = pd.DataFrame(rows).set_index("checkpoint")
    if len(frame_of.columns):
        st.dataframe(frame_of.T, width="stretch")
    for candidate in typed:
        if candidate.id is None:
            st.caption(not_one_piece(candidate))
