"""The form of a new run. Its fields are made from ``bertscope.config``, so they cannot drift."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from bertscope import launch, runs
from bertscope.config import SECTIONS, RunConfig
from bertscope.errors import BertScopeError
from bertscope.presets import SIZES, run_config
from bertscope.settings import knobs
from bertscope.ui import loaders, sidebar
from bertscope.ui.frame import show_error
from bertscope.ui.text import markdown

OWN = "text of my own"
CORPORA = {
    "miniworld": "miniworld · a generated language, with exact gold",
    "sotu": "sotu · messages of the US presidents, 1790 to today",
    "pydocs": "pydocs · the English of Python's documentation",
    OWN: "a file or folder of my own",
}
RECIPES = {
    "bert": "BERT · masked words, next sentences",
    "roberta": "RoBERTa · masked words alone, packed text",
    "albert": "ALBERT · shared layers, sentence order",
    "electra": "ELECTRA · which words were replaced?",
    "deberta": "DeBERTa · disentangled attention (without its mask decoder)",
    "causal": "causal · the next word, left to right",
}
#: Fields that have a place of their own above *More settings*.
IN_SIGHT = ("corpus.source", "training.steps", "training.max_minutes", "training.batch_size",
            "training.learning_rate", "objective.max_length")


def form() -> None:
    """Draw the form; *Start* makes the run, starts it and shows it."""
    chosen = _in_sight()
    if chosen is None:
        return
    source, size, changes = chosen
    try:
        base = run_config({"corpus.source": source}, size, changes["recipe"])
        changes |= _main_numbers(base)
        with st.expander("More settings", icon=":material/tune:"):
            changes |= _more(base, source, size)
        config = base.override(changes)
    except BertScopeError as error:
        show_error(error)
        return
    kind = "" if config.recipe == "bert" else f"{config.recipe}-"
    stem = f"{source.rstrip('/').rsplit('/', 1)[-1]}-{kind}{size}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input("Name", key="new.name", placeholder=runs.free_name(stem), max_chars=64,
                             width=320)
        if st.button("Start training", type="primary", icon=":material/play_arrow:",
                     key="new.start"):
            _start(name.strip() or runs.free_name(stem), config)
        if st.button("What will it cost?", icon=":material/calculate:", key="new.plan",
                     help="Counts parameters, memory and operations, and measures a few steps."):
            st.session_state["_planned"] = config
    if st.session_state.get("_planned") == config:
        _costs(config)


def _costs(config: RunConfig) -> None:
    """What the training will take, measured in a few steps by the app's own process."""
    try:
        cost = loaders.cost(config)
    except BertScopeError as error:
        show_error(error)
        return
    row = st.container(horizontal=True)
    for label, value, help_ in (
            ("Parameters", f"{sum(cost.parameters.values()):,}",
             ", ".join(f"{part} {n:,}" for part, n in cost.parameters.items())),
            ("Memory", f"{sum(cost.memory.values()) / 2**20:,.0f} MiB",
             ", ".join(f"{part} {n / 2**20:,.1f}" for part, n in cost.memory.items())),
            ("MFLOP a token", f"{cost.flops_per_token / 1e6:,.1f}",
             "Forward and backward, at the full length."),
            ("Attention", f"{cost.attention_share:.0%}",
             "The share of the operations that attention's two products take: with twice the "
             "length they double."),
            ("Pieces / s here", f"{cost.tokens_per_second:,.0f}",
             "Word pieces per second. The app lets trainers go first, so training is faster."),
            ("All of it", f"{cost.seconds / 60:,.1f} min", None)):
        row.metric(label, value, help=help_, width=128)


def experiments() -> list:
    """Runs worth making: a label, and what fills the form in."""
    def fill(corpus: str, size: str = "tiny", minutes: float | None = None, recipe: str = "bert",
             **more) -> None:
        values = {"train_view": "New run", "new.corpus": corpus, "new.size": size, "new.recipe": recipe,
                  "new.until": "minutes" if minutes else "steps"}
        if minutes:
            values[f"new.{recipe}.{corpus}.minutes"] = minutes
        values |= {f"new.{recipe}.{corpus}.{size}.{key}": value for key, value in more.items()}
        st.session_state.update(values)

    return [
        ("presidents' speeches for ten minutes", lambda: fill("sotu", minutes=10.0)),
        ("hide 40 % of the words instead of 15",
         lambda: fill("miniworld", **{"objective.mask_rate": 0.4})),
        ("the same layers, reading left to right only",
         lambda: fill("miniworld", recipe="causal")),
        ("four layers instead of two", lambda: fill("miniworld", "mini")),
    ]


def _start(name: str, config: RunConfig) -> None:
    from bertscope.corpus.sources import require_source

    try:
        require_source(config.corpus.source)
        run = runs.create_run(name, config)
        launch.start(run)
    except BertScopeError as error:
        show_error(error)
        return
    st.session_state["_open_run"] = run.name  # taken over before the widgets of the next rerun
    st.rerun()


def open_started_run() -> None:
    """Point the sidebar at the run that *Start* made; called before the sidebar is drawn."""
    if name := st.session_state.pop("_open_run", None):
        sidebar.choose(name)
        st.session_state["train_view"] = "Watch"


def _in_sight() -> tuple[str, str, dict] | None:
    """Corpus, recipe and size; None while a path of one's own is still missing."""
    left, middle, right = st.columns([4, 4, 2])
    corpus = left.selectbox("Corpus", list(CORPORA), format_func=CORPORA.get, key="new.corpus")
    recipe = middle.selectbox("Recipe", list(RECIPES), format_func=RECIPES.get, key="new.recipe",
                              help="All go through one loop; what differs is under More settings.")
    size = right.selectbox("Size", list(SIZES), format_func=_size_label, key="new.size",
                           help="The small BERTs of Turc et al. 2019, and the two originals.")
    source = corpus
    if corpus == OWN:
        source = st.text_input(
            "Path on the machine that runs BertScope", key="new.path", max_chars=1000,
            placeholder="books/ or notes.txt",
            help="Text files (a paragraph or sentence a line, an empty line between documents), "
                 "folders of them, JSON lines, CoNLL-U.").strip()
        if not source:
            st.caption("Give a path to go on.")
            return None
    return source, size, {"recipe": recipe}


def _size_label(name: str) -> str:
    shape = SIZES[name]
    return f"{name} ({shape['num_hidden_layers']} × {shape['hidden_size']})"


def _main_numbers(base: RunConfig) -> dict:
    """How long, batch, learning rate and length; defaults follow the corpus."""
    scope = f"new.{base.recipe}.{base.corpus.source}"
    columns = st.columns(5)
    until = columns[0].segmented_control("Train for", ["steps", "minutes"], default="steps",
                                         key="new.until", required=True)
    changes: dict[str, object] = {}
    if until == "minutes":
        changes["training.max_minutes"] = columns[1].number_input(
            "Minutes", 0.1, 100_000.0, 3.0, 1.0, key=f"{scope}.minutes")
    else:
        changes["training.steps"] = columns[1].number_input(
            "Steps", 1, 100_000_000, base.training.steps, 100, key=f"{scope}.steps")
    changes["training.batch_size"] = columns[2].number_input(
        "Batch size", 1, 65_536, base.training.batch_size, 8, key=f"{scope}.batch",
        help="Examples per update.")
    changes["training.learning_rate"] = columns[3].number_input(
        "Learning rate", 1e-7, 1.0, base.training.learning_rate, 1e-4, format="%.1e",
        key=f"{scope}.rate", help="The peak; warm-up before it, linear decay after.")
    changes["objective.max_length"] = columns[4].number_input(
        "Length", 16, 4096, base.objective.max_length, 16, key=f"{scope}.length",
        help="Word pieces per example, special pieces included.")
    return changes


def _more(base: RunConfig, source: str, size: str) -> dict:
    """A field for every other setting."""
    return more(SECTIONS, base.to_dict(), IN_SIGHT, f"new.{base.recipe}.{source}.{size}")


def more(sections: dict[str, type], values: dict, in_sight: Collection[str], scope: str) -> dict:
    """A field for every setting that is not ``in_sight``; what differs from ``values``, by dotted key.

    Args:
        scope: what the fields' keys begin with.
    """
    changes: dict[str, object] = {}
    for section, kind in sections.items():
        st.markdown(f"**{section.capitalize()}**")
        fields = [k for k in knobs(kind) if f"{section}.{k['name']}" not in in_sight]
        columns = st.columns(3)
        for number, knob in enumerate(fields):
            key = f"{section}.{knob['name']}"
            with columns[number % 3]:
                value = _field(knob, values[section][knob["name"]], f"{scope}.{key}")
            if value != values[section][knob["name"]]:
                changes[key] = value
    return changes


def _field(knob: dict, value, key: str):
    """One setting as the widget that fits its type."""
    label, help_ = knob["name"].replace("_", " "), markdown(knob["help"])
    if "choices" in knob:
        choices = knob["choices"]
        return st.selectbox(label, choices, choices.index(value), key=key, help=help_)
    if knob["type"] is bool:
        return st.checkbox(label, value, key=key, help=help_)
    if knob["type"] is str:
        typed = st.text_input(label, value or "", key=key, help=help_, max_chars=1000)
        return typed.strip() or None
    step = {"format": "%g", "step": None} if knob["type"] is float else {"step": 1}
    return st.number_input(label, knob.get("min"), knob.get("max"), value, key=key, help=help_,
                           placeholder="none", **step)
