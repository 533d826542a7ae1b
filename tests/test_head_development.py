"""Heads over a run's checkpoints: by hand on planted tables, and on really trained ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from bertscope.analysis import head_development
from bertscope.analysis.activations import load
from bertscope.analysis.attention_sample import held_out_texts
from bertscope.analysis.head_development import (best_head, best_relation, largest_jumps,
                                                 largest_relation_jumps, relations_over_time,
                                                 statistics_over_time)
from bertscope.analysis.head_distances import changed_heads, changed_heads_cached
from bertscope.analysis.head_relations import ALL, DIRECTIONS, relation_counts
from bertscope.analysis.head_statistics import STATISTICS, head_statistics
from bertscope.corpus.miniworld import generate, gold_sentences
from bertscope.errors import BertScopeError
from bertscope.runs import Checkpoint

FORK, BACK = DIRECTIONS
TEXTS = held_out_texts([document.texts for document in generate(4, 5)], 6, pairs=True)
SENTENCES = list(gold_sentences(3, 5))


# -- by hand ----------------------------------------------------------------------------------


def statistics(**columns) -> pd.DataFrame:
    """Two heads at steps 0, 10, 20; the table is shuffled, as no order is promised."""
    table = pd.DataFrame({"step": [0, 0, 10, 10, 20, 20], "layer": 1, "head": [1, 2] * 3,
                          **dict.fromkeys(STATISTICS, 0.5), **columns})
    return table.sample(frac=1, random_state=0)


def test_the_jump_is_the_largest_step_of_each_head():
    table = statistics(previous=[0.1, 0.2, 0.2, 0.2, 0.9, 0.1], entropy=[4, 4, 1, 3.9, 0.9, 3],
                       other_segment=np.nan)
    found = largest_jumps(table)
    assert set(found["statistic"]) == {"previous", "entropy"} and len(found) == 4
    first = found.set_index(["statistic", "head"])
    assert first.loc[("entropy", 1), ["before", "after", "change"]].tolist() == [0, 10, -3]
    assert first.loc[("entropy", 2), ["before", "after"]].tolist() == [10, 20]
    assert first.loc[("previous", 1), ["before", "after"]].tolist() == [10, 20]
    assert first.loc[("previous", 1), "change"] == pytest.approx(0.7)
    assert first.loc[("previous", 1), "share"] == pytest.approx(0.7 / 0.8)
    assert first.loc[("previous", 2), "change"] == pytest.approx(-0.1)
    assert found["share"].is_monotonic_decreasing
    assert (found.iloc[0]["statistic"], found.iloc[0]["head"]) == ("entropy", 1)
    assert largest_jumps(table, ["previous"])["statistic"].unique().tolist() == ["previous"]


def test_nothing_jumps_without_a_second_step():
    assert largest_jumps(statistics(previous=range(6)).query("step == 0")).empty
    assert largest_jumps(statistics()).empty
    assert list(largest_jumps(statistics())) == ["layer", "head", "statistic", "before", "after",
                                                 "change", "share"]


def relations() -> pd.DataFrame:
    rows = [(step, relation, direction, 1, head, accuracy, arcs, offset)
            for relation, direction, head, arcs, offset, curve in [
                ("det", FORK, 1, 100, 0.5, (0.4, 0.5, 0.9)), ("det", FORK, 2, 100, 0.5, (0.45, 0.2, 0.1)),
                ("det", BACK, 1, 100, 0.5, (0.1, 0.6, 0.3)), ("obj", FORK, 1, 50, 0.2, (0.3, 0.25, 0.5)),
                ("rare", FORK, 1, 3, 0.0, (1, 0, 1)), (ALL, FORK, 1, 153, 0.1, (0.9, 0.9, 0.9))]
            for step, accuracy in zip((0, 10, 20), curve)]
    return pd.DataFrame(rows, columns=["step", "relation", "direction", "layer", "head", "accuracy",
                                       "arcs", "offset_accuracy"]).sample(frac=1, random_state=1)


def test_a_heads_best_relation_and_a_relations_best_head():
    mine = best_relation(relations(), 1, 1)
    assert mine["step"].tolist() == [0, 10, 20]
    assert mine["relation"].tolist() == ["obj", "det", "det"]
    assert mine["direction"].tolist() == [FORK, BACK, FORK]
    np.testing.assert_allclose(mine["margin"], [0.1, 0.1, 0.4])
    assert best_relation(relations(), 1, 1, fewest=1)["relation"].tolist()[0] == "rare"
    of_det = best_head(relations(), "det")
    assert of_det["head"].tolist() == [2, 1, 1] and of_det["accuracy"].tolist() == [0.45, 0.6, 0.9]
    assert of_det["direction"].tolist() == [FORK, BACK, FORK]
    jumps = largest_relation_jumps(relations())
    assert jumps.iloc[0].tolist()[:6] == ["det", BACK, 1, 1, 0, 10]
    assert jumps.iloc[1].tolist()[:6] == ["det", FORK, 1, 1, 10, 20]
    assert "rare" not in set(jumps["relation"])


# -- a trained run ----------------------------------------------------------------------------


def test_over_a_runs_checkpoints(tiny_run, monkeypatch):
    checkpoints = tiny_run.checkpoints()[:1] + tiny_run.checkpoints()[-1:]
    opened, told = [], []

    def open_model(path):
        opened.append(path)
        return load(path, device="cpu")

    assert statistics_over_time(checkpoints, TEXTS, kept_only=True).empty
    table = statistics_over_time(checkpoints, TEXTS, lambda *a: told.append(a), open_model)
    steps = [checkpoint.step for checkpoint in checkpoints]
    assert table["step"].unique().tolist() == steps and len(opened) == 2
    for checkpoint in checkpoints:
        own = table[table["step"] == checkpoint.step].drop(columns="step").reset_index(drop=True)
        pd.testing.assert_frame_equal(own, head_statistics(load(checkpoint.path, "cpu"), TEXTS))
    assert told[0] == (f"step {steps[0]:,}: opening", 0.0) and told[-1][1] == 1.0
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    again = statistics_over_time(checkpoints, TEXTS, open_model=open_model)
    assert len(opened) == 2 and again.equals(table)
    jumps = largest_jumps(table)
    assert set(jumps["before"]) == {steps[0]} and set(jumps["after"]) == {steps[1]}
    assert len(jumps) > len(table)  # every statistic of every head moved in 40 steps


def test_relations_over_a_runs_checkpoints(tiny_run):
    checkpoints = tiny_run.checkpoints()[-1:]
    table = relations_over_time(checkpoints, SENTENCES)
    counts = relation_counts(load(checkpoints[0].path, "cpu"), SENTENCES)
    np.testing.assert_allclose(table["accuracy"], counts.heads["right"] / counts.heads["arcs"])
    best = counts.offsets.groupby("relation")["right"].max() / counts.offsets.groupby(
        "relation")["arcs"].first()
    assert (table.groupby("relation")["offset_accuracy"].first() == best).all()
    mine = best_relation(table, 1, 1)
    assert mine["step"].tolist() == [checkpoints[0].step] and mine["relation"][0] != ALL


def test_a_cancelled_computation_keeps_what_is_done(tiny_run):
    texts, saved = TEXTS[:3], tiny_run.checkpoints()
    checkpoints = [saved[0], saved[-1]]  # the first step of a warm-up changes no weight

    def stop(message, _):
        if message.startswith(f"step {checkpoints[1].step}:"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        statistics_over_time(checkpoints, texts, stop)
    kept = statistics_over_time(checkpoints, texts, kept_only=True)
    assert kept["step"].unique().tolist() == [checkpoints[0].step]


def test_a_damaged_checkpoint_is_left_out(tiny_run, tmp_path):
    saved = tiny_run.checkpoints()
    bad = Checkpoint(saved[0].step + 1, tmp_path)  # an empty folder
    table = statistics_over_time([saved[0], bad, saved[-1]], TEXTS[:3])
    assert table["step"].unique().tolist() == [saved[0].step, saved[-1].step]
    with pytest.raises(BertScopeError):
        statistics_over_time([bad], TEXTS[:3])


def test_two_checkpoints_of_a_run(tiny_run):
    first, last = tiny_run.checkpoints()[0], tiny_run.checkpoints()[-1]
    table = changed_heads_cached(first.path, last.path, TEXTS)
    pd.testing.assert_frame_equal(
        table, changed_heads(load(first.path, "cpu"), load(last.path, "cpu"), TEXTS))
    assert (table["divergence"] > 0).all()
    assert (changed_heads(load(last.path, "cpu"), load(last.path, "cpu"), TEXTS)["divergence"]
            == 0).all()


def test_no_checkpoint_is_an_empty_table():
    assert head_development.statistics_over_time([], TEXTS).empty
    assert relations_over_time([Checkpoint(1, "nowhere")][:0], SENTENCES).empty
