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
    """The task's box; a task that these data do not have is forgotten."""
    names = [offer.name for offer in offers]
    titles = {offer.name: f"{offer.title} · {offer.classes:,} labels" for offer in offers}
    if st.session_state.get("task") not in (None, *names):
        del st.session_state["task"]
    return st.selectbox("Task", names, format_func=titles.get, key="task", width=380,
                        bind="query-params")


def ask(offers: list, named: bool) -> Asked:
    """All settings in two lines, most of them in a box that opens.

    Args:
        named: whether the view is about one task.
    """
    from bertscope.analysis.probing.protocol import Protocol

    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = task(offers) if named else st.session_state.get("task") or offers[0].name
        kind = next((offer.kind for offer in offers if offer.name == chosen), "word")
        size = st.segmented_control("Training items", list(SIZES), default="2,000", required=True,
                                    key="probe_size", bind="query-params") or "2,000"
        hide = st.toggle("Hide the word", key="hide_word", bind="query-params",
                         disabled=kind != "word",
                         help="Each probed word is masked when its vector is read: what does the "
                              "context alone tell about it?")
        with st.popover("How to probe", icon=":material/tune:"):
            values = _more()
    train, validation, test = SIZES[size]
    controls = values["controls"]
    protocol = Protocol(
        probe=PROBES[values["probe"]], word=values["word"], sentence=values["sentence"],
        max_train=train, max_validation=validation, max_test=test,
        hide=bool(hide) and kind == "word", control=SELECTIVITY in controls,
        codelength=CODELENGTH in controls, random=RANDOM in controls, mix=MIX in controls)
    return Asked(chosen, protocol, tuple(range(values["seeds"])), values["apart"])


def _more() -> dict:
    from bertscope.analysis.probing.reading import SENTENCE_POOLING, WORD_POOLING

    probe = st.segmented_control(
        "Probe", list(PROBES), default=next(iter(PROBES)), required=True, key="probe_kind",
        bind="query-params", help="The smallest classifier first: what it finds lies open. One with "
                                  "a hidden layer finds more, and remembers more by itself.")
    controls = st.pills(
        "Beside every number", CONTROLS, selection_mode="multi", default=[SELECTIVITY, RANDOM],
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
