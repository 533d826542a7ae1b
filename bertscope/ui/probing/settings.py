"""How is asked: the task, the probe, which vectors, and what every number is compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

#: Items of the training, validation and test parts at most.
SIZES = {"2,000": (2000, 1000, 2000), "8,000": (8000, 2000, 4000), "30,000": (30_000, 5000, 10_000)}
PROBES = {"logistic regression": "linear", "one hidden layer": "mlp"}
SELECTIVITY, CODELENGTH, RANDOM, MIX = ("selectivity", "description length", "random weights",
                                        "expected layer")
CONTROLS = (SELECTIVITY, CODELENGTH, RANDOM, MIX)
#: The box's values before anybody opens it.
START = {"probe": "logistic regression", "controls": [SELECTIVITY, RANDOM], "word": "mean",
         "sentence": "mean", "seeds": 1, "apart": False}


@dataclass(frozen=True)
class Asked:
    """``protocol`` (``probing.protocol.Protocol``) and what lies outside of it."""

    task: str
    protocol: Any
    seeds: tuple[int, ...]
    apart: bool

    def alone(self) -> Asked:
        """The probe and nothing beside it: what curves over checkpoints are made of."""
        plain = replace(self.protocol, control=False, codelength=False, random=False, mix=False)
        return replace(self, protocol=plain, seeds=self.seeds[:1])


def task(offers: list) -> str:
    """The task's box; a task that these data do not have is forgotten. The address holds its title."""
    titles = {offer.name: offer.title for offer in offers}
    if st.session_state.get("task") not in (None, *titles):
        del st.session_state["task"]
    return st.selectbox("Task", list(titles), format_func=titles.get, key="task", width=330,
                        bind="query-params")


#: What a view can be asked about.
TASK, SIZE, HIDE, HOW = "task", "size", "hide", "how"


def ask(offers: list, parts: tuple[str, ...]) -> Asked:
    """The settings in a line, most of them in a box that opens.

    Args:
        parts: those that the view is about; the others are as they were, or as they begin.
    """
    from bertscope.analysis.probing.protocol import Protocol

    state, line = st.session_state, st.container(horizontal=True, vertical_alignment="bottom")
    with line:
        names = [offer.name for offer in offers]
        chosen = task(offers) if TASK in parts else \
            state["task"] if state.get("task") in names else names[0]
        kind = next(offer.kind for offer in offers if offer.name == chosen)
        size = _size() if SIZE in parts else next(iter(SIZES))
        hide = _hide(kind) if HIDE in parts else False
        values = dict(START)
        if HOW in parts:
            with st.popover("How to probe", icon=":material/tune:"):
                values = _more()
    train, validation, test = SIZES[size]
    controls = values["controls"]
    protocol = Protocol(
        probe=PROBES[values["probe"]], word=values["word"], sentence=values["sentence"],
        max_train=train, max_validation=validation, max_test=test,
        hide=hide, control=SELECTIVITY in controls, codelength=CODELENGTH in controls,
        random=RANDOM in controls, mix=MIX in controls)
    return Asked(chosen, protocol, tuple(range(values["seeds"])), values["apart"])


def _size() -> str:
    return st.segmented_control("Training items", list(SIZES), default=next(iter(SIZES)),
                                required=True, key="probe_size", bind="query-params") \
        or next(iter(SIZES))


def _hide(kind: str) -> bool:
    on = st.toggle("Hide the word", key="hide_word", bind="query-params", disabled=kind != "word",
                   help="Each probed word is masked when its vector is read: what does the context "
                        "alone tell about it?")
    return bool(on) and kind == "word"


def _more() -> dict:
    from bertscope.analysis.probing.reading import SENTENCE_POOLING, WORD_POOLING

    probe = st.segmented_control(
        "Probe", list(PROBES), default=next(iter(PROBES)), required=True, key="probe_kind",
        bind="query-params", help="The smallest classifier first: what it finds lies open. One with "
                                  "a hidden layer finds more, and remembers more by itself.")
    controls = st.pills(
        "Beside every number", CONTROLS, selection_mode="multi", default=START["controls"],
        key="controls", bind="query-params",
        help="Majority, word identity and layer 0 are always there. *Selectivity*: what the probe "
             "does better than on labels drawn at random for each word. *Description length*: how "
             "few bits tell the labels. *Random weights*: the same model untrained. *Expected "
             "layer*: where new information comes in (trains as many probes again).")
    word = st.segmented_control("A word is, of its pieces, the", list(WORD_POOLING), default="mean",
                                required=True, key="word_pooling", bind="query-params")
    sentence = st.segmented_control("A sentence is", list(SENTENCE_POOLING), default="mean",
                                    required=True, key="sentence_pooling", bind="query-params",
                                    format_func=lambda name: "[CLS]" if name == "cls" else name)
    seeds = st.slider("Seeds", 1, 5, 1, key="probe_seeds", bind="query-params",
                      help="Each draws other training sentences; all are tested on the same ones.")
    apart = st.toggle("No word type in two parts", key="types_apart", bind="query-params",
                      help="Words of the test part do not occur among the training words: nothing can "
                           "be remembered of them.")
    return {"probe": probe or next(iter(PROBES)), "controls": list(controls or ()),
            "word": word or "mean", "sentence": sentence or "mean", "seeds": int(seeds),
            "apart": bool(apart)}
