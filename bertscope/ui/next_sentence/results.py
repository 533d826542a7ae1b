"""Scores of many pairs for the page: found in the cache on disk, or computed with a bar and a way
to cancel."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from bertscope.ui import documents, waiting
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown

#: A model up to this many parameters is asked without being told to; it takes some seconds.
EASY = 3_000_000


@dataclass(frozen=True)
class Test:
    """The pairs of a test, as the chosen checkpoint reads them. ``digest`` is of all their texts,
    ``longer`` says at how many places they were cut."""

    name: str
    key: str
    sentences: int
    parts: object
    anchors: list
    documents: object     # int [N], the document of each anchor
    longer: int
    digest: str


def test(choice: Choice, model, source: str, count: int, seed: int, sentences: int) -> Test | None:
    """The pairs, from the documents that ``source`` names (``ui.documents``); None where the user has
    cancelled.

    Raises:
        BertScopeError: there are no such documents, or too few.
    """
    import numpy as np

    from bertscope.analysis import coherence

    parts = documents.parts(choice, source)
    if parts is None:
        return None
    tokenizer = model.tokenizer.backend_tokenizer.to_str()
    reads = hashlib.sha256(f"{model.max_length} {tokenizer}".encode()).hexdigest()[:16]

    def make(progress) -> Test:
        whole = coherence.draw(parts.test, count, seed, sentences)
        anchors, longer = coherence.as_read(model, whole, progress)
        texts = json.dumps([coherence.VERSION, coherence.pairs_of(anchors)])
        return Test(parts.name, f"{parts.key} {reads}", sentences, parts, anchors,
                    np.array([anchor.document for anchor in anchors]), longer,
                    hashlib.sha256(texts.encode()).hexdigest()[:32])

    return waiting.kept(("coherence", parts.key, reads, count, seed, sentences), make, "the pairs")


# -- scores -----------------------------------------------------------------------------------


def scores(choice: Choice, model, pairs: Test, unasked: bool):
    """A checkpoint's score of every pair, [N, 4]; None while it waits for a click."""
    return _columns(_obtain(*_place(choice, model, pairs), f"Test {choice.label}",
                            lambda progress: _score(model, pairs, progress), unasked))


def score_checkpoint(choice: Choice, pairs: Test, progress) -> None:
    """Score the pairs by another checkpoint of a run, and keep the result."""
    from bertscope.analysis.activations import load
    from bertscope.analysis.cache import cached_frame

    model = load(choice.path)
    cached_frame(*_place(choice, model, pairs), lambda: _score(model, pairs, progress))


def over_checkpoints(choice: Choice, pairs: Test) -> dict:
    """What is known of the run's checkpoints on these pairs: ``{step: [N, 4]}``."""
    from bertscope.analysis.cache import analysis_folder, list_cached

    saved = {c.step for c in choice.run.checkpoints()}
    return {key["step"]: _columns(table)
            for key, table in list_cached(analysis_folder(choice.path), "coherence")
            if key.get("step") in saved and key.get("texts") == pairs.digest}


def baseline(choice: Choice, model, pairs: Test, unasked: bool):
    """The bag of words' scores [N, 4] and what was chosen for it; (None, None) while it waits.

    It reads the texts as cut for ``model``, and is trained on texts that are cut alike.

    Raises:
        BertScopeError: there are too few documents to train it on.
    """
    from bertscope.analysis.cache import analysis_folder
    from bertscope.analysis.topic_baseline import VERSION

    key = {"version": VERSION, "texts": pairs.digest, "trained_on": pairs.key,
           "sentences": pairs.sentences}

    def compute(progress):
        import pandas as pd

        from bertscope.analysis.coherence import KINDS, pairs_of
        from bertscope.analysis.topic_baseline import fit

        fitted = fit(pairs.parts.train, pairs.parts.valid, 0, pairs.sentences,
                     model.text_encoder.nearest, progress)
        found = fitted.p_next(pairs_of(pairs.anchors)).reshape(-1, len(KINDS))
        return pd.DataFrame(found, columns=list(KINDS)).assign(
            features=fitted.features, C=fitted.C, valid_accuracy=fitted.valid_accuracy)

    table = _obtain(analysis_folder(choice.path), "topics", key, "Learn the bag of words", compute,
                    unasked)
    return (None, None) if table is None else (_columns(table), table.iloc[0])


def _place(choice: Choice, model, pairs: Test) -> tuple:
    """(folder, kind, key) of a checkpoint's scores."""
    from bertscope.analysis.cache import analysis_folder

    return analysis_folder(choice.path), "coherence", {
        "texts": pairs.digest, "model": model.fingerprint,
        "step": choice.checkpoint.step if choice.checkpoint else None}


def _score(model, pairs: Test, progress):
    import pandas as pd

    from bertscope.analysis.coherence import KINDS, model_scores

    return pd.DataFrame(model_scores(model, pairs.anchors, progress), columns=list(KINDS))


def _columns(table):
    from bertscope.analysis.coherence import KINDS

    return None if table is None else table[list(KINDS)].to_numpy(float)


def _obtain(folder, kind: str, key: dict, name: str, compute: Callable, unasked: bool):
    """The table, from the cache or computed now; None while it waits for a click."""
    from bertscope.analysis.cache import cached_frame

    def absent():
        raise LookupError

    try:
        return cached_frame(folder, kind, key, absent)
    except LookupError:
        pass
    stopped, mark = st.session_state.setdefault("_stopped_tests", set()), json.dumps([kind, key])
    place = st.empty()
    if (not unasked or mark in stopped) and not place.button(
            markdown(name), type="primary", icon=":material/play_arrow:", key=f"do_{kind}_{name}",
            help="Takes seconds for a tiny model, minutes for a base one."):
        return None
    stopped.discard(mark)
    with place.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, text="starting")
        # Any click interrupts a running script; this one says that it shall not begin again.
        st.button("Cancel", icon=":material/close:", key=f"cancel_{kind}_{name}",
                  on_click=stopped.add, args=(mark,))
    table = cached_frame(folder, kind, key, lambda: compute(lambda message, share: bar.progress(
        min(max(share or 0.0, 0.0), 1.0), text=f"{name}: {message}")))
    place.empty()
    return table
