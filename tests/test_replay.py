"""One place over checkpoints, against numbers worked out by hand."""

import numpy as np
import pytest

from bertscope.analysis import replay

ANSWERS = [(0, np.array([0.25, 0.25, 0.25, 0.25])), (10, np.array([0.1, 0.6, 0.2, 0.1])),
           (20, np.array([0.1, 0.3, 0.5, 0.1])), (30, np.array([0.0, 0.7, 0.3, 0.0])),
           (40, np.array([0.05, 0.9, 0.05, 0.0]))]


def test_leaders_and_ranks():
    table = replay.leaders(ANSWERS, 2)
    assert table[table.step == 20].id.tolist() == [2, 1]
    assert table[table.step == 0].id.tolist() == [0, 1], "equals come in the vocabulary's order"
    assert table["rank"].tolist() == [1, 2] * 5
    assert len(replay.leaders(ANSWERS, 9)) == 20
    assert replay.rank(ANSWERS[1][1], 0) == 3 == replay.rank(ANSWERS[1][1], 3)


def test_when_a_word_was_learnt():
    assert replay.learnt_at(ANSWERS, 1) == 30, "it led at 10, lost at 20, and leads since 30"
    assert replay.learnt_at(ANSWERS, 2) is None
    assert replay.learnt_at(ANSWERS[:3], 2) == 20


def test_followed():
    table = replay.followed(ANSWERS, {2: "dog"})
    assert table.probability.tolist() == [0.25, 0.2, 0.5, 0.3, 0.05]
    assert table["rank"].tolist() == [1, 2, 1, 2, 2] and set(table.piece) == {"dog"}


def test_what_changed_most():
    table = replay.most_changed(ANSWERS[1][1], ANSWERS[2][1], 3)
    assert table.id.tolist() == [1, 2, 0]
    assert table.change.tolist() == pytest.approx([-0.3, 0.3, 0.0])
    assert table.rank_before.tolist() == [1, 2, 3] and table.rank_after.tolist() == [2, 1, 3]
    assert replay.total_variation(ANSWERS[1][1], ANSWERS[2][1]) == pytest.approx(0.3)
    assert replay.total_variation(ANSWERS[0][1], ANSWERS[0][1]) == 0
