"""Both sides: the same place predicted from what is left of it, right of it, and both."""

from __future__ import annotations

from types import SimpleNamespace

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.runs import list_runs
from bertscope.ui import charts, compared, frame, loaders, over_time, texts, waiting
from bertscope.ui.predict import Look, answers, asked
from bertscope.ui.selection import Choice, find_run
from bertscope.ui.text import markdown, shorten

EXPLANATION = r"""
*Left only* reads the sentence as if it ended at the place, *right only* as if it began there:
the other words are **cut off** before the model sees anything, `[CLS]`, the masked place and
`[SEP]` stay. (Hiding words from attention only would leave traces of them in what the other words
have read.) The model then reads the end of the text right after the place, and may well expect a
full stop there. On the right the place comes to stand first, so its position changes too. With
**all [MASK]** every piece of the other side becomes `[MASK]` instead: the place keeps its
position, and the model still sees how many pieces there are. Neither is what the model was trained
on: it mostly saw whole sentences with one piece in seven masked.

A **causal** model reads left to right and was trained to say the next piece, so *left only* is all
it ever has:

$$
p_{\text{both}}(w) = P(w_i \mid w_1 \ldots w_{i-1}, w_{i+1} \ldots w_n), \qquad
p_{\text{causal}}(w) = P(w_i \mid w_1 \ldots w_{i-1})
$$

Two models are compared by the text of the pieces, since their vocabularies may differ. A piece may
begin other words in one vocabulary than in another, so a fair comparison has the same vocabulary.

Devlin et al. 2019, sections 1 and 5.1 (*No NSP, left-to-right*).
"""

TITLES = {"left": "From the left only", "right": "From the right only", "both": "From both sides"}
WAYS = {"cut off": True, "all [MASK]": False}
#: Bars in each figure.
TOP = 8
NONE = "none"


def show(look: Look) -> None:
    body(look)
    frame.explain(EXPLANATION)


def body(look: Look) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        at = asked.place(look)
        way = st.segmented_control("The other side is", list(WAYS), default="cut off",
                                   required=True, key="sides_way", bind="query-params") or "cut off"
        causal = look.other if is_causal(look.other) else pick_causal(look)
    there = asked.second(look) if causal is None or causal is not look.other else None
    here = read(look, at, WAYS[way])
    theirs = read(there, asked.beside(look, there, at), WAYS[way]) if there else None
    if here is None:
        return
    reader = read_causal(look, causal, at) if causal else None
    nothing_there(look, at)
    true = asked.true_piece(look, at)
    piece = true or best(look, here["both"])
    summary(look, here, reader, piece)
    if theirs:
        summary(there, theirs, None, piece, named=True)
    bars(look, there, here, theirs, reader, true)
    frame.download_csv(rows(look, there, here, theirs, reader, true),
                       f"{look.chosen.stem}-sides")
    if look.chosen.run:
        learning(look, at, WAYS[way], causal if reader else None, here, true)


# -- asking -----------------------------------------------------------------------------------


def is_causal(choice: Choice | None) -> bool:
    """Whether the second checkpoint is a causal model, which stands in the fourth figure."""
    try:
        return bool(choice and choice.run and choice.run.kind == "pretraining"
                    and choice.run.config().recipe == "causal")
    except BertScopeError:
        return False


def pick_causal(look: Look) -> Choice | None:
    """A run of the causal recipe; where one read the same corpus, it is there by itself."""
    found = causal_runs()
    names = [run.name for run, _ in found]
    if not names:
        return None
    source = texts.corpus_of(look.chosen)
    same = [run.name for run, corpus in found if source and corpus == source]
    order = [*same[:1], NONE, *(name for name in names if name not in same[:1])]
    name = asked.pick("Beside it, a causal model", order, "sides_causal", width=280,
                      help="A run of the recipe *causal*: it reads from left to right only.")
    run = find_run(name) if name != NONE else None
    saved = run.checkpoints() if run else []
    return Choice(name, run, saved[-1]) if saved else None


def causal_runs() -> list:
    """Runs of the causal recipe that have a checkpoint, with their corpora."""
    found = []
    for run in list_runs():
        try:
            config = run.config()
        except BertScopeError:
            continue
        if config.recipe == "causal" and run.kind == "pretraining" and run.checkpoints():
            found.append((run, config.corpus.source))
    return found


def read(look: Look, at: int, cut: bool):
    """``{side: OneSide}``."""
    def ask(_):
        from bertscope.analysis.sides import sides

        return sides(look.model, look.encoded, look.masked, at, cut)

    return waiting.kept(("sides", *asked.where(look), at, cut), ask,
                        f"both sides by {look.chosen.label}")


def read_causal(look: Look, causal: Choice, at: int) -> SimpleNamespace | None:
    """The causal model and its answer; None, with a sentence, where it has none."""
    from bertscope.analysis.sides import left_to_right, same_vocabulary

    model = answer = None
    with compared.aside(causal):
        model = loaders.model(causal)
        answer = left_to_right(model, look.model, look.encoded, look.masked, at)
    if answer is None:
        return None
    notes = []
    if not same_vocabulary(model, look.model):
        notes.append("its vocabulary is another one; pieces are compared by their text")
    if any(i < at for i in look.masked):
        notes.append("it reads the other masks on the left as [MASK] too")
    if notes:
        st.caption(f":material/info: {markdown(causal.label)}: {markdown('; '.join(notes))}.")
    return SimpleNamespace(chosen=causal, model=model, answer=answer)


def nothing_there(look: Look, at: int) -> None:
    """A word about a place at an end of the text."""
    free = [i for i, special in enumerate(look.encoded.special) if not special]
    sides = [side for side, end in (("left", free[0]), ("right", free[-1])) if at == end]
    if len(sides) == 2:
        st.info("There is only this one piece, so there is nothing to take away: the three "
                "answers are one.", icon=":material/info:")
    elif sides:
        st.caption(f":material/info: Nothing stands {sides[0]} of this place, so the {sides[0]} "
                   "side alone tells nothing but that the text "
                   + ("begins" if sides[0] == "left" else "ends") + " here.")


# -- drawing ----------------------------------------------------------------------------------


def candidates(model, answer) -> list:
    """The most probable pieces, as rows of a chart."""
    import numpy as np

    return [SimpleNamespace(token=model.tokenizer.convert_ids_to_tokens(int(i)) or f"[{i}]",
                            probability=float(np.exp(answer.log_p[i])))
            for i in np.argsort(-answer.log_p, kind="stable")[:TOP]]


def best(look: Look, answer) -> str:
    return candidates(look.model, answer)[0].token


def probability(model, answer, piece: str) -> float | None:
    """P(piece), None where the vocabulary lacks it."""
    import numpy as np

    from bertscope.analysis.sides import piece_id

    index = piece_id(model, piece)
    return None if index is None else float(np.exp(answer.log_p[index]))


def summary(look: Look, here, reader, piece: str, named: bool = False) -> None:
    """One line: how probable the piece is from each side; of the second checkpoint by its name."""
    found = {side: probability(look.model, answer, piece) for side, answer in here.items()}
    parts = [f"{side} {p:.1%}" for side, p in found.items() if p is not None] \
        or ["not in its vocabulary"]
    if named:
        st.markdown(f"{markdown(look.chosen.label)}: " + " · ".join(parts))
        return
    if reader:
        p = probability(reader.model, reader.answer, piece)
        parts.append(f"causal {p:.1%}" if p is not None else
                     "causal: not in its vocabulary")
    st.markdown(f"##### P({markdown(piece)}): " + " · ".join(parts))


def bars(look: Look, there: Look | None, here, theirs, reader, true: str | None) -> None:
    """A figure for each way of reading, all on one scale."""
    drawn = [(look, here, "main")] + ([(there, theirs, "other")] if theirs else [])
    charted = {(meaning, side): candidates(one.model, answer)
               for one, found, meaning in drawn for side, answer in found.items()}
    if reader:
        charted["causal"] = candidates(reader.model, reader.answer)
    most = max(row.probability for found in charted.values() for row in found)
    st.caption(asked.colours_of(look, there if theirs else None)
               + (f" · grey: {markdown(reader.chosen.label)}" if reader else "")
               + " · ✓ the piece that was there · one scale for all")
    for one, found, meaning in drawn:
        columns = frame.beside(3 + (reader is not None), f"narrow_{meaning}")
        for column, (side, answer) in zip(columns, found.items()):
            with column:
                figure(TITLES[side], answer, charted[meaning, side], meaning, true, most,
                       f"{one.chosen.stem}-{side}")
        if reader and meaning == "main":
            with columns[-1]:
                figure("A causal model, left to right", reader.answer, charted["causal"],
                       "baseline", true, most, f"{reader.chosen.stem}-causal")


def figure(title: str, answer, rows, meaning: str, true, most: float, name: str) -> None:
    st.markdown(f"**{title}**")
    chart = charts.candidates(rows, meaning, true, most)
    chart.update_xaxes(range=[0, 1.5 * most])  # room for the numbers in a narrow column
    frame.figure(chart, name, f"sides_{meaning}_{title}")
    read = answer.tokens if answer.place < len(answer.tokens) else [*answer.tokens, "…?"]
    around = read[max(0, answer.place - 9):answer.place + 10]
    st.caption("reads " + markdown(("… " if answer.place > 9 else "")
                                   + shorten(" ".join(around), 150)
                                   + (" …" if answer.place + 10 < len(read) else "")))


def rows(look: Look, there, here, theirs, reader, true):
    import pandas as pd

    asked_of = [(look, side, answer) for side, answer in here.items()]
    asked_of += [(there, side, answer) for side, answer in (theirs or {}).items()]
    if reader:
        asked_of.append((reader, "causal", reader.answer))
    return pd.DataFrame([
        {"checkpoint": one.chosen.label, "context": side, "read": " ".join(answer.tokens),
         "true_piece": true, "probability_of_true_piece":
             probability(one.model, answer, true) if true else None,
         "candidate": row.token, "probability": row.probability}
        for one, side, answer in asked_of for row in candidates(one.model, answer)])


# -- over the training ------------------------------------------------------------------------


def learning(look: Look, at: int, cut: bool, causal: Choice | None, here, true: str | None) -> None:
    """P(word) from each side over the checkpoints, and the causal run's over its own."""
    import pandas as pd

    from bertscope.analysis.sides import SIDES, piece_id
    from bertscope.ui import theme

    st.divider()
    if not over_time.wanted(look.chosen):
        return
    words = list(dict.fromkeys([*([true] if true else []),
                                *(c.token for c in candidates(look.model, here["both"]))]))
    word = asked.pick("Word", words, "sides_word", width=200)
    index, marks = piece_id(look.model, word), asked.marks(look)
    if index is None:
        return
    path, stamp, text, masked = asked.where(look)
    found = over_time.ask(look.chosen, lambda p, s: answers.sides(p, s, text, masked, at, cut),
                          [step for step, _ in marks])
    names = {"left": "left only", "right": "right only", "both": "both sides"}
    table = [{"step": step, "context": names[side], "probability": float(row[index])}
             for step, answer in found for side, row in zip(SIDES, answer)]
    if causal:
        table += [{"step": step, "context": f"causal ({causal.name})", "probability": p}
                  for step, p in over_time.ask(causal, lambda p, s: answers.left_to_right(
                      p, s, path, stamp, text, masked, at, word))]
    if not table:
        return
    order = list(dict.fromkeys(row["context"] for row in table))
    one, two, three = (theme.categories(8)[i] for i in (4, 3, 0))
    colours = [one, two, three, theme.colour("baseline")][: len(order)]
    st.altair_chart(
        charts.over_steps(pd.DataFrame(table), "probability", "context", order,
                          f"P({word}) at place {at} over the training", marks,
                          strong="both sides", colours=colours),
        key="sides_learning", width="stretch")
    frame.download_csv(pd.DataFrame(table), f"{look.chosen.run.name}-sides-over-steps")
