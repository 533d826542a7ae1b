"""Every page opens a fine-tuned checkpoint like any other, and says what it has no head for."""

import base64

import numpy as np
import pytest
from test_app import NAMES, after_the_first_visit, app, figures, said  # after_the_first_visit: a fixture

from bertscope.finetuning.config import FinetuneConfig
from bertscope.finetuning.launch import create
from bertscope.training.loop import train


@pytest.fixture(scope="module")
def tuned(tiny_root):
    """A run fine-tuned from the tiny pretrained one, kept beside it."""
    config = FinetuneConfig().override({
        "start": "tiny", "data.task": "pair", "data.most_train": 32, "data.most_valid": 16,
        "training.epochs": 1.0, "training.threads": 1, "training.log_every": 1})
    run = create(config, "tuned-pages", tiny_root)
    train(run)
    yield run
    run.delete()


@pytest.mark.parametrize("page", NAMES)
def test_every_page_opens_a_fine_tuned_checkpoint(tuned, tiny_root, monkeypatch, page):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tiny_root))
    at = app(page, run=tuned.name)
    assert not at.exception, at.exception
    assert not [e for e in at.error if "Traceback" in str(e.value)]
    if page == "train":
        assert {"Accuracy", "Loss"} <= {chart.title for chart in _panels(tuned)}
    if page == "next_sentence":
        assert "head" in said(at)  # there's none, and a sentence says so


def test_the_map_takes_its_texts_and_labels_from_the_task(tiny_root, monkeypatch):
    from bertscope.finetuning.results import data_of

    monkeypatch.setenv("BERTSCOPE_RUNS", str(tiny_root))
    config = FinetuneConfig().override({
        "start": "tiny", "data.task": "sentence", "data.most_train": 30, "data.most_valid": 20,
        "training.epochs": 1.0, "training.threads": 1})
    run = create(config, "tuned-sentence", tiny_root)
    try:
        train(run)
        data = data_of(run)
        for address in ({"run": run.name}, {"run": "tiny", "vs": run.name}):  # before and after
            at = app("embeddings", **address)
            assert not at.exception and not at.error and not at.warning[1:]
            points = [trace for spec in figures(at)[:1] for trace in spec["data"]]
            assert {trace["name"] for trace in points} >= set(data.labels)
            assert sum(len(numbers(trace["x"])) for trace in points) == 50
    finally:
        run.delete()


def numbers(packed):
    """Plotly's packed numbers."""
    return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"]) \
        if isinstance(packed, dict) else packed


def _panels(run):
    from bertscope.ui import curves

    return [p for row in curves.panels(curves.frame(run.metrics()).columns) for p in row]
