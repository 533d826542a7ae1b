"""Cached results: found by key, whole or not at all."""

import threading

import numpy as np
import pandas as pd
import pytest

from bertscope import runs
from bertscope.analysis.cache import analysis_folder, cached_frame, list_cached
from bertscope.config import RunConfig

KEY = {"checkpoint": "abc", "step": 4, "task": "upos"}
FRAME = pd.DataFrame({"layer": [0, 1], "accuracy": [0.5, 0.75], "word": ["naïve", None]})


class Compute:
    """Counts how often it is asked."""

    def __init__(self, frame=FRAME):
        self.frame, self.calls = frame, 0

    def __call__(self):
        self.calls += 1
        return self.frame


def test_a_result_is_computed_once_and_comes_back_the_same(tmp_path):
    compute = Compute()
    first = cached_frame(tmp_path / "analysis", "probe", KEY, compute)
    again = cached_frame(tmp_path / "analysis", "probe", dict(reversed(KEY.items())), compute)
    assert compute.calls == 1
    pd.testing.assert_frame_equal(first, again)
    assert first["accuracy"].tolist() == [0.5, 0.75] and first["word"][0] == "naïve"
    assert [p.name for p in (tmp_path / "analysis").iterdir() if p.suffix != ".parquet"] == []


def test_a_flipped_bit_is_computed_again(tmp_path):
    """Numbers that are not compressed would else come back as other numbers."""
    numbers = pd.DataFrame({"accuracy": np.random.default_rng(0).random(4000)})
    cached_frame(tmp_path, "probe", KEY, Compute(numbers))
    path, = tmp_path.glob("*.parquet")
    whole = path.read_bytes()
    compute = Compute(numbers)
    for place in range(200, 20_000, 1999):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1:])
        pd.testing.assert_frame_equal(cached_frame(tmp_path, "probe", KEY, compute), numbers)
    assert compute.calls == 10


@pytest.mark.parametrize("change", [{"step": 5}, {"step": "4"}, {"more": None}])
def test_another_key_is_another_result(tmp_path, change):
    compute = Compute()
    cached_frame(tmp_path, "probe", KEY, compute)
    cached_frame(tmp_path, "probe", {**KEY, **change}, compute)
    assert compute.calls == 2


def test_a_key_with_a_tuple_is_found_again(tmp_path):
    compute = Compute()
    for _ in range(2):
        cached_frame(tmp_path, "probe", {"layers": (1, 2)}, compute)
    assert compute.calls == 1


def test_damage_at_any_place_is_computed_again(tmp_path):
    whole = _file(tmp_path)
    raw = whole.read_bytes()
    for size in range(0, len(raw), 97):
        whole.write_bytes(raw[:size])
        compute = Compute()
        frame = cached_frame(tmp_path, "probe", KEY, compute)
        assert compute.calls == 1 and frame["layer"].tolist() == [0, 1]
        assert whole.read_bytes() != raw[:size]
    whole.write_bytes(b"\0" * len(raw))
    assert list_cached(tmp_path, "probe") == []


def test_a_file_of_another_key_under_this_name_is_not_believed(tmp_path):
    mine = _file(tmp_path)
    other = tmp_path / "other"
    cached_frame(other, "probe", {**KEY, "step": 9}, Compute(FRAME * 2))
    mine.write_bytes(next(other.iterdir()).read_bytes())
    compute = Compute()
    assert cached_frame(tmp_path, "probe", KEY, compute)["accuracy"].tolist() == [0.5, 0.75]
    assert compute.calls == 1


def test_what_compute_raises_passes_and_nothing_is_left(tmp_path):
    def cancelled():
        raise InterruptedError("cancelled")

    with pytest.raises(InterruptedError):
        cached_frame(tmp_path / "analysis", "probe", KEY, cancelled)
    assert not (tmp_path / "analysis").exists()


def test_a_folder_that_cannot_be_made_costs_the_keeping_only(tmp_path, caplog):
    (tmp_path / "file").write_text("no folder")
    for folder in (tmp_path / "file", tmp_path / "deleted-run" / "analysis"):
        frame = cached_frame(folder, "probe", KEY, Compute())
        assert frame["layer"].tolist() == [0, 1]
        assert list_cached(folder, "probe") == []
    assert "cannot be kept" in caplog.text
    assert not (tmp_path / "deleted-run").exists()


def test_listing_gives_every_key_of_a_kind(tmp_path):
    for step in (1, 2, 4):
        cached_frame(tmp_path, "probe", {**KEY, "step": step}, Compute(FRAME.assign(step=step)))
    cached_frame(tmp_path, "other", KEY, Compute())
    (tmp_path / "probe-damaged.parquet").write_bytes(b"PAR1")
    (tmp_path / ".probe-x.parquet.1.partial").write_bytes(b"")
    found = list_cached(tmp_path, "probe")
    assert [(key["step"], int(frame["step"].iloc[0])) for key, frame in found] == [
        (1, 1), (2, 2), (4, 4)]
    assert list_cached(tmp_path / "missing", "probe") == []


def test_many_writers_at_once_leave_one_whole_result(tmp_path):
    frame = pd.DataFrame({"x": np.arange(20_000)})
    seen = []

    def work():
        seen.append(cached_frame(tmp_path, "probe", KEY, lambda: frame)["x"].sum())

    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert seen == [frame["x"].sum()] * 8
    assert [p.suffix for p in tmp_path.iterdir()] == [".parquet"]


def test_results_of_a_run_lie_in_the_run_and_others_beside_the_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tmp_path / "runs"))
    run = runs.create_run("demo", RunConfig())
    with run.new_checkpoint(4) as scratch:
        (scratch / "config.json").write_text("{}")
    assert analysis_folder(run.checkpoints()[0].path) == run.analysis_path
    assert analysis_folder(str(run.checkpoints()[0].path)) == run.analysis_path
    elsewhere = tmp_path / "runs" / ".analysis"
    lookalike = tmp_path / "mine" / "checkpoints" / "step-00000004"
    lookalike.mkdir(parents=True)
    for other in ("google-bert/bert-base-uncased", tmp_path, run.path, lookalike):
        assert analysis_folder(other) == elsewhere
    cached_frame(elsewhere, "probe", KEY, Compute())
    assert len(list_cached(elsewhere, "probe")) == 1
    assert [r.name for r in runs.list_runs()] == ["demo"]


def test_the_runs_folder_is_made_for_a_first_result(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tmp_path / "new" / "runs"))
    folder = analysis_folder("somebody/elses-bert")
    cached_frame(folder, "probe", KEY, Compute())
    assert len(list_cached(folder, "probe")) == 1


def _file(folder):
    cached_frame(folder, "probe", KEY, Compute())
    return next(folder.glob("probe-*.parquet"))
