"""The form of a new fine-tuning run. Its fields are made from ``FinetuneConfig``, so they cannot drift."""

from __future__ import annotations

import streamlit as st

from bertscope import runs
from bertscope.errors import BertScopeError
from bertscope.finetuning.config import SECTIONS, FinetuneConfig, default_learning_rate
from bertscope.ui import frame, run_form
from bertscope.ui.fine_tuning import empty, examples, starting
from bertscope.ui.frame import show_error
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown

EXPLANATION = r"""
A new *head*, one linear layer, is put on the encoder, and both are trained on the task's examples
(Devlin et al. 2019, section 3.2):

$$
P(y \mid x) = \operatorname{softmax}(W\,h + b)
$$

**A label** is read off the pooled state of `[CLS]`; of a pair the model reads `[CLS] A [SEP] B [SEP]`.
**Tags** are read off each word's first piece (section 5.3). **An answer** in a paragraph is the
span from piece $i$ to piece $j$ with the largest $S\cdot h_i + E\cdot h_j$; a long paragraph is read in
overlapping windows (sections 4.2 and 4.3). A *mix* feeds the head
$\gamma \sum_l \operatorname{softmax}(w)_l\, h_l$ of all layers (Peters et al. 2018, equation 1).

The learning rate's default is $3\cdot10^{-5}\,(768/H)^2$ for a width of $H$: the paper's for a base
model, more for smaller ones. The best checkpoint is the one with the best metric on the *validation*
part; the *test* part is looked at once, at the end.
"""

#: Fields that have a place of their own above *More settings*, or are chosen there.
IN_SIGHT = ("data.source", "data.task", "data.text", "data.pair", "data.label", "data.skip_bad",
            "head.layer", "training.epochs", "training.learning_rate", "training.batch_size",
            "training.seed")


def show(main: Choice, other: Choice | None) -> None:
    empty.first_time(main)
    frame.try_this(*experiments())
    st.markdown("##### A new fine-tuning run")
    try:
        start = _start(main, other)
        data = examples.choose()
        if data is None:
            return
        width, layers = starting.shape(start)
        base = FinetuneConfig().override({"start": start, **data})
        changes = _main_numbers(width, layers)
        with st.expander("More settings", icon=":material/tune:"):
            changes |= run_form.more(SECTIONS, base.to_dict(), IN_SIGHT, "ft.more")
        config = base.override(changes)
    except BertScopeError as error:
        show_error(error)
        return
    _end(config)


def _end(config: FinetuneConfig) -> None:
    """The name, *Start*, and what is found in the examples."""
    from bertscope.finetuning.launch import stem

    skip = st.session_state.get("_ft_bad") == config.data and st.checkbox(
        "Leave bad rows out", key="ft.skip", help="Rows that cannot be used are left out, and how many "
                                                  "is said. Without this nothing is trained.")
    if skip:
        config = config.override({"data.skip_bad": True})
    free = runs.free_name(stem(config))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input("Name", key="ft.name", placeholder=free, max_chars=64, width=320)
        started = st.button("Start fine-tuning", type="primary", icon=":material/play_arrow:",
                            key="ft_start")
        if st.button("Check the data", icon=":material/rule:", key="ft_check",
                     help="Reads the examples: parts, labels, what stands in two parts, and rows that "
                          "cannot be used."):
            st.session_state["_ft_checked"] = _asked(config)
    try:
        if started:
            examples.read(config)  # what is wrong with it is said here, and no run is made
            starting.start(config, name.strip() or free)
        if st.session_state.get("_ft_checked") == _asked(config):
            examples.report(examples.read(config))
    except BertScopeError as error:
        show_error(error)
        if "--skip-bad" in str(error) and not skip:
            if st.session_state.get("_ft_bad") != config.data:
                st.session_state["_ft_bad"] = config.data
                st.session_state["_ft_checked"] = _asked(config)
                st.rerun()


def _asked(config: FinetuneConfig) -> tuple:
    """What the examples depend on; that bad rows are left out is asked in the same breath."""
    return config.override({"data.skip_bad": False}).data, config.training.seed


# -- where it begins ----------------------------------------------------------------------------


def _start(main: Choice, other: Choice | None) -> str:
    found = starting.starts(main, other)
    if st.session_state.get("ft.start") not in (None, *found):
        del st.session_state["ft.start"]
    chosen = st.selectbox("Starting point", list(found), format_func=found.get, key="ft.start",
                          help="The checkpoint of the sidebar by default; random weights tell what "
                               "pretraining is worth.")
    if other is not None:
        st.caption(f":material/compare: {markdown(main.label)} and {markdown(other.label)} are both "
                   "offered; fine-tune both the same way, and compare them in *How good*.")
    return chosen


def _main_numbers(width: int, layers: int) -> dict[str, object]:
    """Epochs, learning rate, batch, layer and seed; the learning rate's default follows the width."""
    training, rate = FinetuneConfig().training, default_learning_rate(width)
    line, each = st.container(horizontal=True, vertical_alignment="bottom"), {"width": 160}
    changes: dict[str, object] = {
        "training.epochs": line.number_input(
            "Epochs", 0.01, 10_000.0, training.epochs, 1.0, key="ft.epochs", format="%g",
            help="Passes over the training part.", **each)}
    given = line.number_input(
        "Learning rate", 1e-7, 1.0, rate, rate / 10, format="%.1e", key=f"ft.rate.{width}",
        help=f"The peak; warm-up before it, linear decay after. {rate:g} is the default for a width of "
             f"{width:,}.", **each)
    if given != rate:
        changes["training.learning_rate"] = given
    changes["training.batch_size"] = line.number_input(
        "Batch size", 1, 65_536, training.batch_size, 8, key="ft.batch", help="Examples per update.", **each)
    options = ["last", *map(str, range(1, layers)), "mix"]
    if st.session_state.get("ft.layer") not in (None, *options):
        del st.session_state["ft.layer"]
    changes["head.layer"] = line.selectbox(
        "Layer for the head", options, key="ft.layer", format_func=_layer,
        help="Which layer feeds the head. Those above a numbered one are cut off; a mix learns how much "
             "of each to take.", **each)
    changes["training.seed"] = line.number_input(
        "Seed", 0, 2**31 - 1, training.seed, 1, key="ft.seed",
        help="Decides the head's first weights, the order, and dropout. Several seeds tell how much is "
             "chance.", **each)
    return changes


def _layer(name: str) -> str:
    return {"last": "the last", "mix": "a mix of all"}.get(name, f"layer {name}")


def experiments() -> list:
    """Runs worth making: a label, and what fills the form in."""
    def fill(**values) -> None:
        st.session_state.update({"view": "New", **{f"ft.{k}": v for k, v in values.items()}})

    return [
        ("tags for words", lambda: fill(**{"from": examples.BUILT_IN, "example": "tokens"})),
        ("the same from random weights", lambda: fill(start=starting.random_of(_chosen()))),
        ("train the head alone", lambda: fill(**{"more.head.freeze_layers": starting.shape(_chosen())[1]})),
    ]


def _chosen() -> str:
    """The starting point of the form as it stands."""
    return st.session_state.get("ft.start") or "random"
