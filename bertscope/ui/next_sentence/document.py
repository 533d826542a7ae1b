"""A document, sentence by sentence: where does the model see it go on, and where does it break?"""

from __future__ import annotations

import random

import streamlit as st

from bertscope.ui import frame, loaders, looking, over_time, texts, waiting
from bertscope.ui.next_sentence import Look, figures
from bertscope.ui.text import bounded, markdown, shorten

#: Characters of a document; some 15,000 English words.
MOST_CHARACTERS = 100_000
EXPLANATION = r"""
The text is split into sentences; a line break ends one too. At each boundary the head is asked the
question that it was trained on, with the sentence before it as A and the one behind it as B (or
two or three on each side, joined):

$$
P_i = P(\text{B follows A} \mid A = \dots s_{i-1} s_i,\; B = s_{i+1} s_{i+2} \dots)
$$

The fuller the colour, the surer it is that the text goes on; where the strip fades into the page,
it sees a break. Where two texts are longer than the model
reads, what is nearest to the boundary is kept. In training most pairs fill the model's whole
length, so a single short sentence on each side is less than it is used to.

Two documents one after the other show what it goes by: does it find the place where the subject
changes? Then shuffle the sentences of one: if the answers stay high, it does not mind the order.

The task: Devlin et al. 2019, section 3.1. Splitting: sentencex of the Wikimedia Foundation.
"""


def show(look: Look) -> None:
    from bertscope.analysis.boundaries import MOST_SENTENCES, sentences_of

    readings = texts.readings(look.chosen)
    text = texts.area(st, "A document", "document", "\n".join(readings), 190,
                      max_chars=MOST_CHARACTERS + 1,
                      help=f"Up to {MOST_CHARACTERS:,} characters. Each line is at least one "
                          "sentence; longer lines are split.")
    frame.try_this(*experiments(readings))
    text = bounded(text, MOST_CHARACTERS, "The document")
    if not text:
        st.info("Paste a text of at least two sentences, or take one of the experiments.",
                icon=":material/edit:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        around = st.segmented_control("Sentences on each side", [1, 2, 3], default=1, required=True,
                                      key="around", bind="query-params") or 1
    whole = sentences_of(look.model, text)
    sentences = whole[:MOST_SENTENCES]
    looking.what(look.chosen, look.model)
    answers = []
    for choice, model, question, _ in look.sides:
        found = ask(choice, model, sentences, around)
        if found is not None:
            answers.append((choice, question, found))
    if len(answers) < len(look.sides):
        return
    notes(look, whole, sentences, answers[0][2].cut)
    show_strip(look, sentences, answers, around)
    if look.chosen.run:
        show_learning(look, sentences, around)


def experiments(readings: list[str]) -> list:
    one, two = (reading.splitlines() for reading in readings)
    mixed = list(one)
    random.Random(1).shuffle(mixed)
    halves = [*one[:len(one) // 2 + 1], *two[:len(two) // 2 + 1]]
    made = [("one document", one), ("two documents, one after the other", halves),
            ("its sentences shuffled", mixed), ("the last sentence first", one[::-1])]
    return [(label, lambda lines=lines: frame.set_state(document="\n".join(lines)))
            for label, lines in made]


def ask(choice, model, sentences: list[str], around: int):
    from bertscope.analysis.boundaries import boundaries

    key = ("boundaries", choice.path, loaders.stamp(choice.path), tuple(sentences), around)
    return waiting.kept(key, lambda progress: boundaries(model, sentences, around, progress),
                        f"the boundaries by {choice.label}")


def notes(look: Look, whole: list[str], sentences: list[str], cut: int) -> None:
    said = f"{len(sentences):,} sentences, {len(sentences) - 1:,} boundaries."
    if len(whole) > len(sentences):
        said = (f"The first {len(sentences):,} of {len(whole):,} sentences, "
                f"{len(sentences) - 1:,} boundaries.")
    if cut:
        said += (f" At {cut:,} of them the texts are longer than the {look.model.max_length} pieces "
                 "that the model reads; what is nearest to the boundary is kept.")
    st.caption(said)


def show_strip(look: Look, sentences: list[str], answers, around: int) -> None:
    import numpy as np
    import pandas as pd

    _, question, first = answers[0]
    lowest = int(first.p_next.argmin())
    breaks = int((first.p_next < 0.5).sum())
    st.markdown(f"##### “{question.yes}” at {len(first.p_next) - breaks:,} of "
                f"{len(first.p_next):,} boundaries :gray[· least between sentences {lowest + 1} and "
                f"{lowest + 2}: {first.p_next[lowest]:.1%}]")
    pairs = list(zip(sentences, sentences[1:]))
    frame.figure(figures.boundaries([(c.label, found.p_next) for c, _, found in answers], pairs),
                 f"{look.chosen.stem}-boundaries", "boundary_strip")
    table = pd.DataFrame({"sentence": range(1, len(sentences) + 1)})
    for choice, _, found in answers:
        table[choice.label] = np.append(found.p_next, np.nan)
    table["text"] = sentences
    percent = {choice.label: st.column_config.ProgressColumn(
        "goes on" if len(answers) == 1 else shorten(choice.label, 22),
        format="percent", min_value=0.0, max_value=1.0, width="small",
        help=f"{markdown(choice.label)}, “{question.yes}”: A ends with this sentence, B begins with the next one")
        for choice, question, _ in answers}
    st.dataframe(table, hide_index=True, width="stretch", height=min(520, 38 + 35 * len(table)),
                 column_config={"sentence": st.column_config.NumberColumn("", width="small"), **percent})
    frame.download_csv(table.assign(sentences_on_each_side=around),
                       f"{look.chosen.stem}-boundaries")


def show_learning(look: Look, sentences: list[str], around: int) -> None:
    """Boundary × step, for the run and for a second one."""
    import numpy as np
    import pandas as pd

    st.divider()
    if not over_time.wanted(look.chosen):
        return
    runs = {look.chosen.run.name: look.chosen}
    if look.other and look.other.run and look.other.checkpoint:
        runs.setdefault(look.other.run.name, look.other)
    columns = frame.beside(2, "boundary_steps") if len(runs) > 1 else [st.container()]
    rows = [f"{i}|{i + 1}" for i in range(1, len(sentences))]
    hovers = [f"{shorten(a, 50)} | {shorten(b, 50)}" for a, b in zip(sentences, sentences[1:])]
    table = []
    for column, (name, choice) in zip(columns, runs.items()):
        with column:
            answers = over_time.ask(choice, lambda path, stamp: loaders.p_at_boundaries(
                path, stamp, tuple(sentences), around))
            if not answers:
                continue
            st.caption(f"{markdown(name)}: every boundary (rows) at every step (columns)")
            grid = np.stack([found for _, found in answers], axis=1)
            frame.figure(figures.over_steps(grid, rows, [step for step, _ in answers], "boundary",
                                            hovers), f"{name}-boundaries-over-steps",
                         f"boundary_steps_{name}")
        table += [{"run": name, "step": step, "boundary": row, "p_next": float(p)}
                  for step, found in answers for row, p in zip(rows, found)]
    if table:
        frame.download_csv(pd.DataFrame(table), f"{look.chosen.run.name}-boundaries-over-steps")
