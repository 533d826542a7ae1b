"""Uploaded examples: kept once, and no longer than something needs them."""

import os
import time

import pytest

from bertscope.errors import BertScopeError
from bertscope.finetuning import planned, uploaded
from bertscope.finetuning.config import FinetuneConfig
from bertscope.finetuning.launch import create
from bertscope.finetuning.sweep import Sweep


def aged(place, days: float):
    then = time.time() - days * 86_400
    os.utime(place, (then, then))
    return place


def of(place) -> FinetuneConfig:
    return FinetuneConfig().override({"data.source": str(place)})


def test_the_same_file_is_kept_once_under_a_plain_name(tmp_path):
    first = uploaded.keep(b"text,label\n", "../my <b>data.csv", tmp_path)
    assert first.name == "my-b-data.csv" and first.read_bytes() == b"text,label\n"
    assert first.parent.parent == tmp_path / ".uploads"
    aged(first, 3)
    assert uploaded.keep(b"text,label\n", "../my <b>data.csv", tmp_path) == first
    assert time.time() - first.stat().st_mtime < 60  # in use again
    assert [p.name for p in first.parent.iterdir()] == [first.name]


def test_what_a_run_or_a_sweep_names_stays_and_the_rest_goes_after_a_day(tmp_path):
    trained, swept, old, young = (
        aged(uploaded.keep(text, "d.csv", tmp_path), 0.9) for text in (b"a", b"b", b"c", b"d"))
    create(of(trained), "trained", tmp_path)
    planned.plan(Sweep(of(swept)), tmp_path)
    for place in (trained, swept, old):
        aged(place, 9)
    uploaded.keep(b"e", "d.csv", tmp_path)
    assert trained.is_file() and swept.is_file() and young.is_file() and not old.parent.exists()


def test_all_of_them_together_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(uploaded, "MOST_BYTES", 250)
    places = [aged(uploaded.keep(bytes([n]) * 100, "d.csv", tmp_path), 0.5 - n / 100) for n in range(4)]
    create(of(places[3]), "trained", tmp_path)
    new = uploaded.keep(b"x" * 400, "d.csv", tmp_path)
    assert [place.is_file() for place in (*places, new)] == [False, True, True, True, True]


def test_a_folder_that_takes_no_file_is_a_sentence(tmp_path):
    (tmp_path / ".uploads").write_text("in the way")
    with pytest.raises(BertScopeError, match="cannot be kept"):
        uploaded.keep(b"a", "d.csv", tmp_path)
