"""Step by step: from two texts to what BERT is trained on."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import frame, loaders, looking
from bertscope.ui.components.piece_rows import piece_rows
from bertscope.ui.masking import Look, embeddings, learning, marks, reading, settings
from bertscope.ui.text import markdown


#: Sentences that are drawn; a page has only so much room.
MOST_SENTENCES = 40


@st.cache_data(max_entries=64, show_spinner=False)
def _store(path: str, stamp: float, texts: tuple[str, ...], _model):
    from bertscope.analysis.inputs import read_texts

    return read_texts(_model, texts)


def source(look: Look, asked: settings.Settings):
    """(store, examples) of the typed texts."""
    from bertscope.analysis.inputs import examples

    store = _store(look.chosen.path, loaders.stamp(look.chosen.path), asked.texts, look.model)
    return store, examples(store, look.model.tokenizer, asked.objective, asked.scheme, asked.seed)


def show(look: Look) -> None:
    asked = settings.ask(look.chosen, look.model)
    if not any(asked.texts):
        st.info("Type a text above, or take one of the experiments.", icon=":material/edit:")
        return
    looking.what(look.chosen, look.model)
    differs = asked.differs()
    if differs:
        st.caption(":material/tune: Not as this run was trained: " + ", ".join(differs) + ".")
    store, examples = source(look, asked)
    _sentences(look, store)
    try:
        examples.plan(asked.epoch)
    except BertScopeError as error:  # the trainer's own reason
        st.warning(f"{markdown(error)} Type more, or let *text 1 as A, text 2 as B* make the example.",
                   icon=":material/rule:")
        return
    row, index = _example(look, asked, store, examples)
    tokens, shown = (names(look, ids) for ids in (row.ids, row.shown))
    _input(row, tokens, asked)
    st.subheader("4 · The vectors of each piece, added up", anchor=False)
    embeddings.show(look, row, tokens, shown)
    _chosen(row, tokens, asked)
    _fates(look, row, tokens, shown, asked)
    _loss(look, row, tokens, shown)
    _download(look, row, tokens, shown, asked.epoch, index)
    if look.chosen.run:
        learning.show(look, row)


def names(look: Look, ids) -> list[str]:
    from bertscope.analysis.inputs import pieces

    return pieces(look.model.tokenizer, ids)


# -- the steps --------------------------------------------------------------------------------


def _sentences(look: Look, store) -> None:
    st.subheader("1 and 2 · Sentences, and their word pieces", anchor=False)
    st.caption("A text is split into sentences, and each word into pieces of the vocabulary. A piece "
               "with ## goes on with the word before it.")
    rows, sentence = [], 0
    for number, document in zip(store.numbers, store.documents):
        for place, text in enumerate(document, start=1):
            ids = store.ids[store.sentence_offsets[sentence]: store.sentence_offsets[sentence + 1]]
            cells = marks.plain(names(look, ids), [False] * len(ids))
            rows.append((f"Text {number + 1}, sentence {place}: {text}", cells))
            sentence += 1
    piece_rows(rows[:MOST_SENTENCES], "sentences")
    if len(rows) > MOST_SENTENCES:
        st.caption(f"{len(rows) - MOST_SENTENCES:,} further sentences are not drawn.")
    tokenizer = look.model.tokenizer
    unknown = int((store.ids == tokenizer.unk_token_id).sum()) if tokenizer.unk_token else 0
    if unknown:
        st.caption(f":material/help: {unknown:,} of the pieces are {markdown(tokenizer.unk_token)}: "
                   "what stands there is not in this model's vocabulary.")
    if (store.ids == tokenizer.mask_token_id).any():
        st.caption(":material/info: [MASK] in your text is the mask piece itself: it is hidden by "
                   "you, and never chosen. (In a corpus, these characters are text.)")


def _example(look: Look, asked: settings.Settings, store, examples):
    """Which of the epoch's examples is looked at, and the line that says what it is."""
    from bertscope.analysis.inputs import made, spans
    from bertscope.objectives.examples import STATIC_COPIES

    count = len(examples.plan(asked.epoch))
    paired = examples.plan(asked.epoch).label is not None
    st.subheader("3 · [CLS] A [SEP] B [SEP]" if paired else "3 · [CLS] and [SEP] around them",
                 anchor=False)
    if st.session_state.get("example", 1) > count:
        st.session_state["example"] = count
    index = 0
    if count > 1:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            index = st.number_input(f"Example (of {count:,} in this epoch)", 1, count, 1,
                                    key="example", bind="query-params", width=230) - 1
    row = made(examples, asked.epoch, [index])[0]
    found = spans(examples, asked.epoch, index)
    st.markdown(f"**{answer(row, asked.scheme)}** · " + markdown(
        origin(row, found, store, lambda document: f"text {store.numbers[document] + 1}")))
    if asked.objective.masking == "static":
        st.caption(f"Static: this is copy {asked.epoch % STATIC_COPIES + 1} of {STATIC_COPIES}; the "
                   f"same comes again every {STATIC_COPIES} epochs.")
    return row, index


def answer(row, scheme: str) -> str:
    """What the pair is, in words."""
    if row.label is None:
        return "no pair"
    return {("nsp", 0): "B follows A (label 0)", ("nsp", 1): "B is random (label 1)",
            ("sop", 0): "A and B in order (label 0)", ("sop", 1): "A and B swapped (label 1)",
            }.get((scheme, row.label), "A and B as typed")


def origin(row, found, store, of) -> str:
    """Where an example's text comes from and what was cut off; ``of`` names a document."""
    def part(span) -> str:
        before = int(store.document_offsets[span.document])
        first, last = span.first - before + 1, span.last - before + 1
        which = f"sentence {first:,}" if first == last else f"sentences {first:,} to {last:,}"
        cut = span.cut_front + span.cut_back
        return f"{of(span.document)}, {which}" + (f" ({cut:,} pieces cut off)" if cut else "")

    parts = [part(span) for span in found[:4]]
    if row.label is not None:
        parts = [f"{name}: {text}" for name, text in zip("AB", parts)]
    return " · ".join(parts) + (" …" if len(found) > 4 else "")


def _input(row, tokens, asked: settings.Settings) -> None:
    st.caption("Below each piece: its segment and its position. [CLS] stands for the whole, [SEP] "
               f"ends a part. {len(row):,} pieces of at most {asked.objective.max_length:,}.")
    piece_rows([("", marks.places(row, tokens))], "places")


def _chosen(row, tokens, asked: settings.Settings) -> None:
    from bertscope.objectives.masking import predictions_per_row

    rate, picked = asked.objective.mask_rate, len(row.chosen)
    st.subheader(f"5 · Which {100 * rate:g} % are chosen", anchor=False)
    wanted = predictions_per_row(len(row), rate)
    text = (f"{100 * rate:g} % of {len(row):,} pieces (special ones are counted, but never chosen) "
            f"is {len(row) * rate:.2f}, rounded {wanted:,}.")
    if not rate:
        text = "None: a causal model reads the text as it is, and predicts every piece of it."
    elif not picked:
        text = "None: special pieces, unknown ones among them, are never chosen."
    elif asked.objective.mask_unit != "piece":
        text += (" Whole words are chosen, as many as fit: "
                 f"**{picked:,}** pieces here. What belongs together is joined.")
    st.caption(text)
    st.button("Draw again", icon=":material/casino:", key="next_epoch_here",
              on_click=settings.next_epoch)
    piece_rows([("", marks.chosen(row, tokens, asked.objective.mask_unit))], "chosen")


def _fates(look: Look, row, tokens, shown, asked: settings.Settings) -> None:
    objective = asked.objective
    if not objective.mask_rate:
        st.subheader("6 · Nothing is hidden", anchor=False)
        st.caption("A causal model sees the text itself, each place what stands left of it.")
        return
    kept = max(0.0, 1 - objective.mask_share - objective.random_share)
    st.subheader(f"6 · {100 * objective.mask_share:g} / {100 * objective.random_share:g} / "
                 f"{100 * kept:.4g}: what became of each", anchor=False)
    st.caption("This is what the model sees. "
               + ("A span's pieces share their fate." if objective.mask_unit == "span" else
                  "Each chosen piece draws its own fate."))
    piece_rows([("", marks.fates(row, tokens, shown))], "fates", marks.legend())
    if reading.recipe(look.chosen) == "electra":
        st.caption("ELECTRA: its generator fills the chosen places with samples, and the "
                   "discriminator then tells, of every piece, whether it was replaced. The loss below "
                   "is the generator's.")


def _loss(look: Look, row, tokens, shown) -> None:
    st.subheader("7 · What counts in the loss", anchor=False)
    causal = reading.recipe(look.chosen) == "causal"
    if not causal and not len(row.chosen):
        st.caption("Nothing: this example has no piece that is chosen.")
        return
    mine = reading.losses(look.chosen, [row], look.model.tokenizer)
    theirs = reading.losses(look.other, [row], look.model.tokenizer) if look.other else None
    text = "Every piece is predicted from those before it, as they stand in its input. " if causal \
        else "Only the chosen places are asked for; all others help, and cost nothing. "
    if mine:
        from bertscope.analysis.place_losses import mean_loss

        text += (f"Below each: the piece that was there and −ln p of it by "
                 f"{markdown(look.chosen.label)} (the deeper the colour, the greater); their mean, "
                 f"the loss, is **{mean_loss(mine):.3f}** nats.")
        if theirs:
            text += f" In brackets: {markdown(look.other.label)}, **{mean_loss(theirs):.3f}**."
    st.caption(text)
    guesses = names(look, mine[0].guess.clip(0)) if mine else ()
    piece_rows([("", marks.targets(row, tokens, shown, mine and mine[0], theirs and theirs[0],
                                   guesses, causal and mine is not None))], "targets")
    if mine and mine[0].p_yes is not None:
        right = mine[0].p_yes if row.label == 0 else 1 - mine[0].p_yes
        st.caption(f"The pair's loss comes beside it: −ln of the {right:.1%} that the head for pairs "
                   "gives to the true label.")


def _download(look: Look, row, tokens, shown, epoch: int, index: int) -> None:
    import pandas as pd

    table = pd.DataFrame({"position": range(len(row)), "piece": tokens, "shown": shown,
                          "segment": row.token_type_ids, "word": row.words,
                          "became": [marks.NAMES[f] if f >= 0 else "" for f in row.fate.tolist()]})
    frame.download_csv(table, f"{look.chosen.stem}-example-{epoch}-{index + 1}")
