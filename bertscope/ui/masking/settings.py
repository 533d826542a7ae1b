"""The texts and the settings of the Masking page: the run's own to begin with, all in the address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from bertscope.config import ObjectiveConfig
from bertscope.errors import BertScopeError
from bertscope.ui import frame, texts
from bertscope.ui.selection import Choice
from bertscope.ui.text import MAX_TEXT, bounded

#: What the fields offer, and the trainer's words for it.
SCHEMES = {"NSP pairs": "nsp", "SOP pairs": "sop", "packed across documents": "full_sentences",
           "packed within a document": "doc_sentences", "single sentences": "sentences",
           "text 1 as A, text 2 as B": "typed"}
UNITS = {"word pieces": "piece", "whole words": "word", "n-grams": "ngram", "spans": "span"}
MASKING = {"dynamic": "dynamic", "static": "static"}
HELP = {
    "scheme": "NSP: B follows A, or is random half of the time. SOP: A and B are exchanged half of "
              "the time. Packed: whole sentences until the length is reached (RoBERTa).",
    "unit": "A word piece; all pieces of a word; one to three words (ALBERT); a span of up to ten "
            "words (SpanBERT). Words of Chinese are those of a segmenter.",
    "masking": "Dynamic draws anew in every epoch; static has ten copies with fixed masks, as the "
               "original."}
TEXTS = ("text1", "text2")
#: Where a checkpoint of others reads more, an example is cut here: a page has only so much room.
LONGEST = 128
LAST_EPOCH = 9999


@dataclass(frozen=True)
class Settings:
    """What an example is made of: two texts, how, with which seed, and which example it is."""

    texts: tuple[str, str]
    scheme: str
    objective: ObjectiveConfig
    seed: int
    epoch: int
    #: What the run itself has; None for checkpoints of others.
    own: Any = None

    def differs(self) -> list[str]:
        """The settings that are not the run's, in words."""
        if self.own is None:
            return []
        own, here = self.own, self.objective
        pairs = [("pair scheme", own.pairs, self.scheme), ("unit", own.mask_unit, here.mask_unit),
                 ("masking", own.masking, here.masking), ("rate", own.mask_rate, here.mask_rate),
                 ("share of [MASK]", own.mask_share, here.mask_share),
                 ("share of random pieces", own.random_share, here.random_share),
                 ("length", own.max_length, here.max_length)]
        return [name for name, theirs, ours in pairs if theirs != ours]


def ask(chosen: Choice, model, typed: bool = True, epochs: bool = True) -> Settings:
    """Draw the fields; the values of widgets are in the address by themselves.

    Args:
        typed: ask for the texts. epochs: ask for the epoch.

    Raises:
        BertScopeError: a text is too long, or the shares add up to more than 1.
    """
    own, seed = of_run(chosen)
    first = defaults(own, model)
    _begin(chosen, first)
    written = _texts(chosen, model) if typed else ("", "")
    st.markdown("**How the examples are made**"
                + (" :gray[· as this run's trainer does, unless you change it]" if own else ""))
    values = _fields(first, model)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        epoch = 0
        if epochs:
            epoch = st.number_input(
                "Epoch", 0, LAST_EPOCH, 0, key="epoch", bind="query-params", width=130,
                help="A pass through all the text. Pairs and masks are drawn by the seed, the epoch "
                     "and the example's number, by nothing else.")
            st.button("Draw again: the next epoch", icon=":material/casino:", key="next_epoch",
                      type="primary", on_click=next_epoch)
        if own:
            st.button("As the run does", icon=":material/restart_alt:", key="as_run",
                      on_click=frame.set_state, kwargs=first)
    from bertscope.analysis.inputs import objective

    made = objective(values["scheme"], mask_unit=values["unit"], masking=values["masking"],
                     mask_rate=values["rate"] / 100, mask_share=values["mask_share"] / 100,
                     random_share=values["random_share"] / 100, max_length=values["longest"],
                     short_seq_prob=own.short_seq_prob if own else 0.1)
    return Settings(written, values["scheme"], made, seed, int(epoch), own)


def of_run(chosen: Choice) -> tuple[ObjectiveConfig | None, int]:
    """The run's own objective and seed; (None, 0) for checkpoints of others."""
    if chosen.run is None:
        return None, 0
    try:
        config = chosen.run.config()
    except BertScopeError:
        return None, 0
    return config.objective, config.training.seed


def defaults(own: ObjectiveConfig | None, model) -> dict[str, object]:
    """What the fields say until somebody changes them: the run's own settings, else BERT's."""
    known = own or ObjectiveConfig()
    pairs = own.pairs if own else "nsp" if model.has_nsp_head else "full_sentences"
    shares = {key: round(100 * getattr(known, name), 2) for key, name in (
        ("rate", "mask_rate"), ("mask_share", "mask_share"), ("random_share", "random_share"))}
    longest = min(model.max_length, own.max_length if own else LONGEST)
    return {"scheme": _named(SCHEMES, pairs), "unit": _named(UNITS, known.mask_unit),
            "masking": _named(MASKING, known.masking), **shares, "longest": max(16, longest)}


def _begin(chosen: Choice, first: dict[str, object]) -> None:
    """Settings and texts belong to a run: another one begins with its own. At the first visit the
    address decides."""
    before = st.session_state.get("_masking_of")
    if before not in (None, chosen.name):
        frame.set_state(**first, **dict(zip(TEXTS, texts.passages(chosen))))
    st.session_state["_masking_of"] = chosen.name


def _texts(chosen: Choice, model) -> tuple[str, str]:
    examples = texts.passages(chosen)
    for column, key, label, example in zip(st.columns(2), TEXTS, ("Text 1", "Text 2"), examples):
        column.text_area(label, example, key=key, height=110, bind="query-params",
                         max_chars=MAX_TEXT,  # a longer one than is taken gets a sentence
                         help="A text stands for a document. It may have many sentences.")
    acts = [("one sentence each", _one_sentence_each), ("a long word", _long_word)]
    if "的" in model.tokenizer.get_vocab():
        acts.append(("Chinese, by whole words", _chinese))
    acts.append(("spans of words", lambda: frame.set_state(unit=_named(UNITS, "span"))))
    frame.try_this(*acts)
    return tuple(bounded(st.session_state[key], texts.MAX_SENTENCE, name)
                 for key, name in zip(TEXTS, ("Text 1", "Text 2")))


def _fields(first: dict[str, object], model) -> dict:
    found = {}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for key, label, options, width in (("scheme", "What makes an example", SCHEMES, 260),
                                           ("unit", "Chosen at a time", UNITS, 160),
                                           ("masking", "Masks", MASKING, 150)):
            found[key] = options[st.selectbox(
                label, list(options), list(options).index(first[key]), key=key, width=width,
                bind="query-params", help=HELP[key])]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for key, label, least, most in (("rate", "Chosen, %", 0.0, 90.0),
                                        ("mask_share", "of these [MASK], %", 0.0, 100.0),
                                        ("random_share", "random, %", 0.0, 100.0)):
            found[key] = st.number_input(label, least, most, float(first[key]), 1.0, key=key,
                                         bind="query-params", format="%g", width=150)
        found["longest"] = st.number_input(
            "Pieces at most", 16, max(16, min(model.max_length, 4096)), first["longest"],
            key="longest", bind="query-params", width=150,
            help="Of an example, special pieces included.")
    return found


def _named(options: dict[str, str], value: str) -> str:
    """What the fields call a word of the trainer's."""
    return next(name for name, known in options.items() if known == value)


# -- experiments ------------------------------------------------------------------------------


def next_epoch() -> None:
    """Draw again; for callbacks."""
    epoch = st.session_state.get("epoch", 0)
    st.session_state["epoch"] = (epoch + 1) % (LAST_EPOCH + 1)


def _one_sentence_each() -> None:
    frame.set_state(text1="The boy found a small dog.", text2="It was hungry and afraid.",
                    scheme=_named(SCHEMES, "typed"))


def _long_word() -> None:
    frame.set_state(text1="He told an unbelievable story about internationalization.", text2="",
                    scheme=_named(SCHEMES, "typed"), unit=_named(UNITS, "word"))


def _chinese() -> None:
    from bertscope.analysis.gallery import CHINESE_PASSAGES

    frame.set_state(text1=CHINESE_PASSAGES[0], text2=CHINESE_PASSAGES[1],
                    unit=_named(UNITS, "word"))
