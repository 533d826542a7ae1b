"""Every page opens a fine-tuned checkpoint like any other, and says what it has no head for."""

import pytest
from test_app import NAMES, after_the_first_visit, app, said  # after_the_first_visit: a fixture

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


def _panels(run):
    from bertscope.ui import curves

    return [p for row in curves.panels(curves.frame(run.metrics()).columns) for p in row]
