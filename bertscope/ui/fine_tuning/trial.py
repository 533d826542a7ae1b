"""Try it: what a fine-tuned checkpoint says of a text, and which words mattered."""

from __future__ import annotations

from types import SimpleNamespace

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import charts, compared, frame, looking, over_time, texts, theme
from bertscope.ui.components.marked import Marked, marked
from bertscope.ui.components.shaded import Shade, shaded
from bertscope.ui.fine_tuning import Look, about, asked, words
from bertscope.ui.predict import figures
from bertscope.ui.text import bounded, markdown, shorten

EXPLANATION = words.EXPLANATION

#: Characters of a paragraph at most; labels whose bars are drawn; answers that are listed.
MOST_PARAGRAPH, MOST_BARS, MOST_ANSWERS = 20_000, 12, 6
FIELDS = {"sentence": ("Text", ""), "pair": ("First text", "Second text"), "tokens": ("Text", ""),
          "question": ("Question", "Paragraph")}


def show(look: Look) -> None:
    model = asked.opened(look.chosen)
    about(look, model.loaded)
    known = examples(look)
    first = known[0][1:] if known else ("Anna found a boat .", "Who found a boat ?")
    labels = FIELDS[look.spec.task]
    columns = st.columns([2, 3]) if labels[1] else [st]
    keys = [f"{look.spec.task}_{name}" for name in ("text", "pair")]  # a task's texts fit no other task
    text = texts.area(columns[0], labels[0], keys[0], first[0], 90)
    pair = texts.area(columns[1], labels[1], keys[1], first[1], 90 if look.spec.task == "pair" else 150) \
        if labels[1] else ""
    frame.try_this(*((shorten(title, 48), lambda own=own: frame.set_state(**dict(zip(
        keys if labels[1] else keys[:1], own)))) for title, *own in known[:3]))
    text = bounded(text, texts.MAX_SENTENCE, f"The {labels[0].lower()}")
    pair = bounded(pair, MOST_PARAGRAPH, f"The {labels[1].lower()}")
    if not text or (labels[1] and not pair):
        st.info("Type at least one word" + (" into both fields." if labels[1] else "."),
                icon=":material/edit:")
        return
    from bertscope.analysis.activations import encode

    looking.unknown(model.loaded, encode(model.loaded, text, second(look, pair)))
    sides = opened(look)
    DRAW[look.spec.task](look, sides, text, pair)
    over_training(look, text, pair)
    words.show(look, sides, text, pair)


def examples(look: Look) -> list[tuple[str, str, str]]:
    """(what it is called, text, second text) of some validation examples of different labels; none where
    they are gone."""
    if look.run is None:
        return []
    try:
        found = asked.data(look.run).valid[:400]
    except BertScopeError:
        return []
    chosen: dict[object, tuple[str, str, str]] = {}
    if look.spec.task == "tokens":  # many kinds of tags first
        for example in found:
            text = " ".join(example.words)
            chosen.setdefault(len(set(example.tags)), (text, text, ""))
        return [chosen[count] for count in sorted(chosen, reverse=True)]
    if look.spec.task == "question":
        for example in found:
            chosen.setdefault((bool(example.answers), example.question.split()[0].lower()),
                              (example.question, example.question, example.context))
        return list(chosen.values())
    for example in found:
        chosen.setdefault(example.label, (f"{example.label}: {example.pair or example.text}", example.text,
                                          example.pair or ""))
    return list(chosen.values())


def opened(look: Look) -> list:
    """[(choice, meaning, Finetuned)]; a second checkpoint that cannot be opened becomes a sentence."""
    return compared.each(look.sides, lambda choice, _: asked.opened(choice))


def second(look: Look, pair: str) -> str | None:
    return pair if look.spec.task in ("pair", "question") else None


# -- a label or a number ------------------------------------------------------------------------


def labelled(look: Look, sides: list, text: str, pair: str) -> None:
    from bertscope.finetuning import predict

    if look.spec.numbers:
        row = st.container(horizontal=True)
        for choice, _, model in sides:
            row.metric(markdown(choice.label), f"{predict.estimate(model, text, second(look, pair)):.3f}",
                       width=240)
        return
    found = [(choice, meaning, predict.classify(model, text, second(look, pair)))
             for choice, meaning, model in sides]
    best = found[0][2][0]
    st.markdown(f"##### {markdown(best.label)} :gray[{best.probability:.1%}]")
    for column, (choice, meaning, choices) in zip(frame.beside(len(found), "try"), found):
        with column:
            if len(found) > 1:
                st.markdown(f"**{markdown(choice.label)}**")
            bars = [SimpleNamespace(token=shorten(c.label, 40), probability=c.probability)
                    for c in choices[:MOST_BARS]]
            frame.figure(charts.candidates(bars, meaning, None, 1.0), f"{choice.stem}-labels",
                         f"try_{meaning}")
    if len(found[0][2]) > MOST_BARS:
        st.caption(f"The {MOST_BARS} likeliest of {len(found[0][2]):,} labels.")
    table([{"checkpoint": choice.label, "label": c.label, "probability": c.probability}
           for choice, _, choices in found for c in choices], look)


def table(rows: list[dict], look: Look) -> None:
    import pandas as pd

    frame.download_csv(pd.DataFrame(rows), f"{look.chosen.stem}-answer", "Answer (CSV)", key="answer_csv")


# -- tags over words ----------------------------------------------------------------------------


def tagged(look: Look, sides: list, text: str, pair: str) -> None:
    from bertscope.finetuning import predict

    kinds = list(dict.fromkeys(kind(label) for label in look.spec.labels if label != "O"))
    colours = dict(zip(kinds, theme.categories(len(kinds))))
    rows = []
    for choice, meaning, model in sides:
        found = predict.tag(model, text)
        if len(sides) > 1:
            st.markdown(f"**{markdown(choice.label)}**")
        shaded([Shade(word.word, "" if word.tag == "O" else shorten(word.tag, 14),
                      f"{word.word}: {word.tag}, {word.probability:.1%}",
                      None if word.tag == "O" else colours[kind(word.tag)]) for word in found],
               f"tags_{meaning}")
        rows += [{"checkpoint": choice.label, "word": w.word, "start": w.start, "end": w.end, "tag": w.tag,
                  "probability": w.probability} for w in found]
    least = min(rows, key=lambda row: row["probability"])
    st.caption(f"The mouse shows how sure it is; least of “{markdown(least['word'])}” "
               f"({markdown(least['tag'])}, {least['probability']:.0%})."
               + (" Words without a colour are O: nothing." if "O" in look.spec.labels else ""))
    table(rows, look)


def kind(tag: str) -> str:
    """``B-HERO`` and ``I-HERO`` have one colour."""
    return tag[2:] if tag[:2] in ("B-", "I-", "E-", "S-") else tag


# -- an answer in a paragraph -------------------------------------------------------------------


def answered(look: Look, sides: list, text: str, pair: str) -> None:
    from bertscope.finetuning import predict

    rows, found = [], []
    for choice, meaning, model in sides:
        spans = predict.answer(model, text, pair)
        found.append((choice, meaning, spans))
        best = spans[0]
        parts = [pair[:best.start], pair[best.start:best.end], pair[best.end:]] if best.text else [pair]
        rows.append(Marked(parts, [1] if best.text else [], shorten(best.text, 80) or "no answer here",
                           f"{best.probability:.1%} · {choice.label}", between=""))
    marked(rows, "try_answer")
    st.markdown("**Other answers that it considered**")
    for column, (choice, meaning, spans) in zip(frame.beside(len(found), "try"), found):
        bars = [SimpleNamespace(token=shorten(s.text, 48) or "no answer", probability=s.probability)
                for s in [spans[0], *sorted(spans[1:], key=lambda s: -s.probability)][:MOST_ANSWERS]]
        with column:
            frame.figure(charts.candidates(bars, meaning, None, 1.0), f"{choice.stem}-answers",
                         f"try_{meaning}")
    table([{"checkpoint": choice.label, "answer": s.text, "start": s.start, "end": s.end, "score": s.score,
            "probability": s.probability} for choice, _, spans in found for s in spans], look)


DRAW = {"sentence": labelled, "pair": labelled, "tokens": tagged, "question": answered}


# -- over the training --------------------------------------------------------------------------


@st.cache_data(max_entries=256, show_spinner=False)
def at_step(path: str, stamp: float, text: str, pair: str | None):
    """What one checkpoint says: probabilities [C], a number, [W, C] of words, or (answer, probability)."""
    from bertscope.finetuning import predict

    model = asked.small(path, stamp)
    if model.spec.task == "question":
        best = predict.answer(model, text, pair or "")[0]
        return best.text, best.probability
    if model.spec.task == "tokens":
        return [(w.word, w.tag, w.probability) for w in predict.tag(model, text)]
    if model.spec.numbers:
        return predict.estimate(model, text, pair)
    return {c.label: c.probability for c in predict.classify(model, text, pair)}


def over_training(look: Look, text: str, pair: str) -> None:
    """The same text at each of the run's checkpoints."""
    import pandas as pd

    if look.run is None or len(look.run.checkpoints()) < 2 or not over_time.wanted(look.chosen):
        return
    found = over_time.ask(look.chosen, lambda path, stamp: at_step(path, stamp, text, second(look, pair)))
    marks = [(look.chosen.checkpoint.step, "main")]
    if not found:
        return
    if look.spec.task == "question":
        st.dataframe(pd.DataFrame([{"step": step, "answer": own[0] or "no answer", "probability": round(own[1], 3)}
                                   for step, own in found]), hide_index=True, width="stretch",
                     column_config={"probability": st.column_config.NumberColumn(format="percent")})
    elif look.spec.task == "tokens":
        word_steps(look, found, marks)
    elif look.spec.numbers:
        st.line_chart(pd.DataFrame({"step": [s for s, _ in found], "number": [v for _, v in found]}),
                      x="step", y="number", height=240)
    else:
        last = found[-1][1]
        order = sorted(last, key=last.get, reverse=True)[:8]
        rows = [{"step": step, "probability": own[label], "label": label} for step, own in found
                for label in order]
        st.altair_chart(charts.over_steps(pd.DataFrame(rows), "probability", "label", order,
                                          "Probability of each label, over the steps", marks, full=True),
                        key="try_steps", width="stretch")


def word_steps(look: Look, found: list, marks: list) -> None:
    """Words × steps: how sure it is of the tag that the chosen checkpoint gives, where it gives it."""
    import numpy as np

    now = dict(found)[look.chosen.checkpoint.step] if look.chosen.checkpoint.step in dict(found) \
        else found[-1][1]
    shown = [i for i, (_, tag, _) in enumerate(now) if tag != "O"][:24] or list(range(min(24, len(now))))
    shown.reverse()  # the first word on top
    values = np.array([[own[i][2] if own[i][1] == now[i][1] else 0.0 for _, own in found] for i in shown])
    names = [f"{now[i][0]}: {now[i][1]}" for i in shown]
    frame.figure(figures.over_steps(values, names, [step for step, _ in found],
                                    "How sure it is of these tags, over the steps (0: another tag)",
                                    marks), f"{look.chosen.run.name}-tags-over-steps", "try_steps")
