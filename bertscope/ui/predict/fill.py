"""Fill the mask: what the model puts in each masked place, and since when."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import charts, frame, loaders, masks, over_time
from bertscope.ui.predict import Look
from bertscope.ui.text import markdown


def show(look: Look) -> None:
    from bertscope.analysis.predictions import predict

    chosen, other, encoded, masked = look.chosen, look.other, look.encoded, list(look.masked)
    top = st.session_state.get("top", 8)
    here = predict(look.model, encoded, masked, top)
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
        show_learning(look, here)


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


def show_learning(look, here) -> None:
    """The probability of the leading words and of the true one, over the checkpoints."""
    import pandas as pd

    chosen, other, encoded, masked = look.chosen, look.other, look.encoded, look.masked
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
