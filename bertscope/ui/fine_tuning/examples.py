"""Which examples a new run is trained on, and what is found when they are read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import frame, loaders
from bertscope.ui.fine_tuning import TASKS
from bertscope.ui.text import markdown, shorten

BUILT_IN, HERE, UPLOAD = "built-in example", "on this machine", "upload"
SOURCES = (BUILT_IN, HERE, UPLOAD)
ENDINGS = ("csv", "tsv", "jsonl", "ndjson", "json", "parquet", "conll", "conllu", "iob2", "bio", "txt",
           "xml")
MOST_MEGABYTES = 8
#: What stands in the built-in examples.
SAMPLES = {
    "sentence": "Is the sentence well formed? *Anna finds a boat.* or *Anna find a boat.*",
    "pair": "Does the second text answer the first? *Who came to the school?* – *Anna came in the "
            "morning.*",
    "tokens": "Who and what is spoken of? *Anna* is the hero, *the old boat* a thing.",
    "question": "Where in the paragraph is the answer? A fifth of the questions have none.",
}
#: Rows of the training part that are shown, and labels whose numbers are.
MOST_SHOWN, MOST_LABELS = 6, 40


def choose() -> dict[str, object] | None:
    """The settings of the data that are in sight; None, with a sentence, while a file is missing."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        where = st.segmented_control("Examples", SOURCES, default=BUILT_IN, required=True,
                                     key="ft.from") or BUILT_IN
        tasks = list(TASKS) if where == BUILT_IN else ["auto", *TASKS]
        key = "ft.example" if where == BUILT_IN else "ft.task"
        task = st.selectbox("Task", tasks, tasks.index("tokens") if where == BUILT_IN else 0, key=key,
                            format_func=_named, width=330)
    if where == BUILT_IN:
        st.caption(f":material/menu_book: *miniworld*, our made-up language. {SAMPLES[task]}")
        return {"data.source": "miniworld", "data.task": task}
    source = _path() if where == HERE else _uploaded()
    if source is None:
        return None
    return {"data.source": source, "data.task": task, **_columns()}


def _named(task: str) -> str:
    return "as the columns say" if task == "auto" else f"{task} · {TASKS[task][0]}"


def _path() -> str | None:
    path = st.text_input("A file, or a folder with train, dev and test", key="ft.path", max_chars=1000,
                         placeholder="reviews.csv, rte/, en_ewt/, squad.json").strip()
    if not path:
        st.caption(":material/folder_open: CSV, TSV, JSON lines, Parquet, CoNLL, CoNLL-U, SQuAD JSON; or "
                   "hf:NAME for a data set of the Hugging Face hub, with the package *datasets*. Give a path "
                   "to go on.")
    elif path == "miniworld":
        raise BertScopeError("That is the built-in example: choose it above.")
    return path or None


def _uploaded() -> str | None:
    """The file is kept among the runs, where the training finds it when it is resumed."""
    file = st.file_uploader("A file of examples", list(ENDINGS), key="ft_file",
                            max_upload_size=MOST_MEGABYTES)
    if file is None:
        st.caption(":material/upload_file: It is divided into training, validation and test parts by a "
                   "seed; what reads the same stays together.")
        return None
    from bertscope.finetuning import uploaded

    return str(uploaded.keep(file.getvalue(), file.name))


def _columns() -> dict[str, object]:
    """Columns by name; the others are found by what they are usually called."""
    asked = (("text", "Column of the text", "the text, the words, or the question"),
             ("pair", "of the second text", "the second text, or the paragraph"),
             ("label", "of the label", "the label, the words' tags, or the answers"))
    given = {}
    for column, (name, label, help_) in zip(st.columns(3), asked):
        value = column.text_input(label, key=f"ft.column.{name}", max_chars=200, placeholder="found by name",
                                  help=f"Which column is {help_}.").strip()
        if value:
            given[f"data.{name}"] = value
    return given


# -- what was found -----------------------------------------------------------------------------


def read(config):
    """The ``Dataset`` that a configuration names, kept while its files are the same.

    Raises:
        BertScopeError: it cannot be read, or has rows that cannot be used.
    """
    from bertscope.finetuning.data import read as read_examples

    key = ("examples", config.data, config.training.seed, _stamp(config.data))
    found = loaders.recent(key)
    if found is None:
        with st.spinner("Reading the examples …"):
            found = loaders.keep(key, lambda: read_examples(config.data, config.training.seed))
    return found


def _stamp(data) -> tuple[float, ...]:
    """When the files were last changed."""
    found = []
    for name in (data.source, data.valid, data.test):
        try:
            path = Path(name or "").expanduser()
            inside = list(path.iterdir())[:1000] if name and path.is_dir() else []
            found += [p.stat().st_mtime for p in (path, *inside)]
        except (OSError, RuntimeError, ValueError):
            found.append(0.0)
    return tuple(found)


def report(data) -> None:
    """What ``bertscope finetune --check`` says: parts, labels, what was guessed, found twice, left out."""
    row = st.container(horizontal=True)
    for label, part in (("Training", data.train), ("Validation", data.valid), ("Test", data.test)):
        row.metric(f"{label} examples", f"{len(part):,}", width=170)
    row.metric("Task", data.task, width=170)
    if data.labels:
        row.metric("Labels", f"{len(data.labels):,}", width=120)
    for note in data.notes:
        icon = "rule" if note.startswith(("Of the", "Left out")) else "info"
        st.caption(f":material/{icon}: {markdown(note)}")
    left, *right = frame.beside(2 if data.labels else 1, "ft_check")
    with left:
        st.markdown("**The first examples**")
        st.dataframe(_rows(data.train[:MOST_SHOWN]), hide_index=True, width="stretch", column_config={
            "text": st.column_config.Column(width="medium" if data.task == "pair" else None)})
    if right:
        with right[0]:
            st.markdown("**How often each label**")
            counts = _counts(data)
            st.dataframe(counts, hide_index=True, width="stretch", height=min(248, 38 + 35 * len(counts)))


def _rows(examples) -> list[dict]:
    made = []
    for example in examples:
        if hasattr(example, "words"):
            made.append({"words and tags": shorten(" ".join(
                word if tag == "O" else f"{word}/{tag}" for word, tag in zip(example.words, example.tags)),
                300)})
        elif hasattr(example, "question"):
            made.append({"question": shorten(example.question, 200),
                         "answer": " | ".join(a.text for a in example.answers) or "(none)",
                         "paragraph": shorten(example.context, 300)})
        else:
            pair = {"second text": shorten(example.pair, 200)} if example.pair is not None else {}
            made.append({"label": example.label, "text": shorten(example.text, 200), **pair})
    return made


def _counts(data) -> list[dict]:
    counted = {}
    for part in ("train", "valid", "test"):
        own = getattr(data, part)
        counted[part] = Counter(tag for e in own for tag in e.tags) if data.task == "tokens" \
            else Counter(e.label for e in own)
    common = sorted(data.labels, key=lambda label: -counted["train"][label])[:MOST_LABELS]
    return [{"label": label, **{part: counts[label] for part, counts in counted.items()}}
            for label in common]
