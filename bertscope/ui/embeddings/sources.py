"""Which texts are looked at, and at which place of each: the controls that the views share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import loaders, texts, uploads, waiting
from bertscope.ui.embeddings import Look
from bertscope.ui.text import markdown, shorten

CORPUS, OWN, TASK = "from the corpus", "texts of my own", "of the task, with its labels"
CLS, MEAN, WORD, PIECE = "[CLS]", "mean of pieces", "a word", "a place"
TASK_TEXTS = 1000
PLACEHOLDER = "text,label\nthe cat sleeps,animal\n…"


@dataclass(frozen=True)
class Texts:
    """``table``: a DataFrame with ``text``; ``labels``: its columns that are worth a colour;
    ``corpus``: the source's name, None for texts of one's own."""

    table: Any
    labels: list[str]
    corpus: str | None

    @property
    def rows(self) -> tuple[str, ...]:
        return tuple(self.table["text"])


def row():
    """A line of widgets."""
    return st.container(horizontal=True, vertical_alignment="bottom")


def where(look: Look, line) -> tuple[str | None, int]:
    """(the corpus's name, texts at most) or (None, 0) for others (``given``); the widgets go into
    ``line``."""
    corpus = texts.corpus_of(look.chosen)
    places = [TASK] * bool(tuned(look)) + [CORPUS] * bool(corpus) + [OWN]
    with line:
        chosen = st.segmented_control("Texts", places, default=places[0], key="texts_from",
                                      required=True, bind="query-params") or places[0]
        if chosen != CORPUS:
            return None, 0
        limit = st.number_input("at most", 20, uploads.MAX_TEXTS, 300, 100, key="texts_limit",
                                width=130, bind="query-params")
    return corpus, int(limit)


def choose(look: Look, line) -> Texts | None:
    """The texts and their labels, or None while there is nothing to draw."""
    corpus, limit = where(look, line)
    if corpus is None:
        return given(look)
    try:
        found = waiting.kept(("labelled texts", corpus, limit),
                             lambda progress: labelled(corpus, limit, progress),
                             "Reading the corpus")
        return Texts(*found, corpus) if found else None
    except BertScopeError as error:
        unreadable(error)
        return None


def labelled(corpus: str, limit: int, progress):
    """``gallery.labelled_texts`` and the columns that are worth a colour."""
    from bertscope.analysis import gallery

    table = gallery.labelled_texts(corpus, limit, progress=progress)
    return table, gallery.label_columns(table)


def unreadable(error: BertScopeError) -> None:
    st.warning(f"The run's corpus cannot be read: {markdown(error)}", icon=":material/folder_off:")


def given(look: Look) -> Texts | None:
    """Texts that are not of the run's corpus."""
    return of_the_task(look) if st.session_state.get("texts_from") == TASK else own()


def tuned(look: Look):
    """The run that was fine-tuned on labelled sentences, or None; the second one's where the first is
    the checkpoint that it began with."""
    for choice in (look.chosen, look.other):
        run = choice and choice.run
        if run and run.kind == "finetuning" and run.config_record().get("task") == "sentence":
            return run
    return None


def of_the_task(look: Look) -> Texts | None:
    """What a fine-tuned run was validated on, then what it was trained on."""
    from bertscope.finetuning.results import labelled_texts

    run = tuned(look)
    try:
        table = labelled_texts(run, TASK_TEXTS)
    except BertScopeError as error:
        st.warning(markdown(error), icon=":material/folder_off:")
        return None
    return Texts(table, ["label", "part"], None)


def own() -> Texts | None:
    """What was pasted, or a file."""
    left, right = st.columns([2, 1])
    pasted = left.text_area("One text a line, or CSV with a column *text*", key="pasted",
                            height=130, max_chars=200_000, placeholder=PLACEHOLDER)
    file = right.file_uploader("or a file", ["txt", "csv", "tsv", "jsonl"], key="texts_file",
                               max_upload_size=uploads.MAX_BYTES // 1_000_000,
                               help="A text a line; or columns, one of them called text, the others "
                                    "are labels; or an object a line.")
    raw = uploads.decode(file.getvalue()) if file else pasted
    if not raw.strip():
        st.info("Paste some texts, at least three, or upload a file.", icon=":material/edit:")
        return None
    from bertscope.analysis import gallery

    table = uploads.table_of_texts(raw)
    return Texts(table, gallery.label_columns(table.assign(document=0)), None)


# -- which layer, which place -----------------------------------------------------------------


def layer(look: Look) -> int:
    """The layer's slider; the last layer by default."""
    most = look.model.num_layers
    if st.session_state.get("layer", 0) > most:
        st.session_state["layer"] = most
    return int(st.slider("Layer", 0, most, most, key="layer", width=170, bind="query-params"))


def place(look: Look, default: str = CLS):
    """The vector's place, a ``vectors.Place``; None while a word is to be typed."""
    from bertscope.analysis.vectors import Place

    how = st.segmented_control("Vector", [CLS, MEAN, WORD, PIECE], default=default, key="pooling",
                               required=True, bind="query-params") or default
    if how == WORD:
        word = st.text_input("Word", key="word", max_chars=100, width=130, bind="query-params",
                             placeholder="the", help="Its first place in each text.")
        return Place("word", word.strip()) if word.strip() else None
    if how == PIECE:
        number = st.number_input("Piece", -500, 500, 1, key="piece", width=110, bind="query-params",
                                 help="1 is the first piece after [CLS], -1 the last.")
        return Place("piece", piece=int(number) or 1)
    return Place("cls" if how == CLS else "mean")


def label(found: Texts, key: str = "colour") -> str | None:
    """Which label colours the points; those of very many names are offered last."""
    names = sorted(found.labels, key=lambda name: many_names(found.table[name]))
    if not names:
        return None
    return st.selectbox("Colour", names, key=key, width=150, bind="query-params",
                        format_func=lambda name: shorten(name, 40))


def search() -> str:
    """What is searched in the texts."""
    return st.text_input("Search", key="search", max_chars=200, width=190, bind="query-params",
                         placeholder="highlight texts with …").strip()


def many_names(values) -> bool:
    """Whether a colour each would be too many."""
    return values.dtype.kind not in "if" and values.nunique() > 12


def warn_of_cls(look: Look, at) -> None:
    """[CLS] of a model that was not fine-tuned is often taken for a sentence vector."""
    run = look.chosen.run
    if at is None or at.how != "cls" or sentence_model(look.chosen.path) \
            or (run and run.kind == "finetuning"):
        return
    model = look.model
    taught = "only the question whether two texts belong together trained it directly" \
        if model.has_nsp_head or model.has_sop_head else \
        "nothing in this checkpoint's pretraining asked anything of it"
    st.warning(f"**[CLS] is no sentence vector before fine-tuning**: {taught}. For likeness of "
               "meaning, BERT-base's raw [CLS] reached a rank correlation of .29, averaged GloVe "
               "vectors .61 (Reimers and Gurevych 2019, table 1).", icon=":material/warning:")


def sentence_model(path: str) -> bool:
    """Whether a checkpoint says that it was tuned for sentence vectors (sentence-transformers)."""
    from pathlib import Path

    return (Path(path) / "modules.json").is_file()


# -- what was read ----------------------------------------------------------------------------


def said_of(look: Look, rows, missing: int) -> None:
    """Which texts were cut, and how many do not have the place."""
    from bertscope.analysis.vectors import count_cut

    (cut,) = loaders.keep(("cut", look.model.fingerprint, rows),
                          lambda: [count_cut(look.model, rows)])
    if cut:
        st.caption(f":material/content_cut: {cut:,} of {len(rows):,} texts are longer than the "
                   f"{look.model.max_length:,} pieces that the model reads at once, and are cut.")
    if missing:
        st.caption(f":material/info: {missing:,} of {len(rows):,} texts have no such place, and are "
                   "left out.")
