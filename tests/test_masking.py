"""Masking against the paper's shares, over more than 100,000 pieces."""

import numpy as np
import pytest

from bertscope.objectives.masking import (
    KEEP, MASK, RANDOM, _run_lengths, mask_row, predictions_per_row)

V, CLS, SEP, MASK_ID, UNK, PAD = 1000, 2, 3, 4, 1, 0
ORDINARY = np.arange(5, V)


def draw(rng, length=128, **shares):
    ids = rng.integers(5, V, length)
    ids[0], ids[length // 2], ids[-1] = CLS, SEP, SEP
    words = np.where(ids >= 5, np.arange(length), -1)
    options = {"rate": 0.15, "mask_share": 0.8, "random_share": 0.1, **shares}
    return ids, mask_row(ids, words, ORDINARY, MASK_ID, rng=rng, **options)


def test_the_papers_shares_over_a_hundred_thousand_pieces():
    rng = np.random.default_rng(0)
    rows = [draw(rng) for _ in range(4000)]
    pieces = sum(len(ids) for ids, _ in rows)
    chosen = sum(len(m.positions) for _, m in rows)
    assert pieces > 500_000
    assert abs(chosen / pieces - 0.15) < 0.002  # 19 of 128: .1484
    fate = np.concatenate([m.fate for _, m in rows])
    for value, share in ((MASK, 0.8), (RANDOM, 0.1), (KEEP, 0.1)):
        deviation = np.sqrt(share * (1 - share) / len(fate))
        assert abs((fate == value).mean() - share) < 4 * deviation


def test_each_fate_does_what_it_says():
    rng = np.random.default_rng(1)
    unchanged_random = drawn = 0
    for _ in range(300):
        ids, m = draw(rng)
        assert (m.labels == ids[m.positions]).all()
        assert (m.input_ids[m.positions[m.fate == MASK]] == MASK_ID).all()
        assert (m.input_ids[m.positions[m.fate == KEEP]] == m.labels[m.fate == KEEP]).all()
        replaced = m.input_ids[m.positions[m.fate == RANDOM]]
        assert (replaced >= 5).all()  # never a special piece
        drawn, unchanged_random = drawn + len(replaced), unchanged_random + (
            replaced == m.labels[m.fate == RANDOM]).sum()
        rest = np.setdiff1d(np.arange(len(ids)), m.positions)
        assert (m.input_ids[rest] == ids[rest]).all()
    assert unchanged_random < 0.02 * drawn + 3  # equal to the original once in V draws


def test_special_pieces_are_never_chosen_and_places_are_ascending():
    rng = np.random.default_rng(2)
    for _ in range(500):
        ids, m = draw(rng, length=int(rng.integers(5, 128)))
        assert (m.labels >= 5).all()
        assert (np.diff(m.positions) > 0).all()
        assert len(m.positions) >= 1


def test_the_number_is_fixed_by_the_length():
    assert [predictions_per_row(n, 0.15) for n in (3, 10, 64, 128, 512)] == [1, 2, 10, 19, 77]
    rng = np.random.default_rng(3)
    assert {len(draw(rng)[1].positions) for _ in range(50)} == {19}


def test_every_place_is_equally_likely():
    rng = np.random.default_rng(4)
    counts = np.zeros(64)
    for _ in range(6000):
        ids, m = draw(rng, length=64)
        counts[m.positions] += 1
    inner = counts[(counts > 0)]
    assert len(inner) == 61
    assert abs(inner / 6000 - 10 / 61).max() < 5 * np.sqrt(10 / 61 * 51 / 61 / 6000)


def test_a_row_without_candidates_gives_nothing_to_predict():
    ids = np.array([CLS, SEP, SEP])
    m = mask_row(ids, np.full(3, -1), ORDINARY, MASK_ID, 0.15, 0.8, 0.1,
                 np.random.default_rng(0))
    assert len(m.positions) == 0 and (m.input_ids == ids).all()


def words_of(rng, length=128, mean=1.6):
    """Words of 1 to 4 pieces between special pieces."""
    words = np.cumsum(rng.random(length) < 1 / mean)
    words[[0, length // 2, length - 1]] = -1
    return words


def unit(rng, name, words):
    ids = np.where(words < 0, CLS, rng.integers(5, V, len(words)))
    return ids, mask_row(ids, words, ORDINARY, MASK_ID, 0.15, 0.8, 0.1, rng, name)


@pytest.mark.parametrize("name", ["word", "ngram", "span"])
def test_words_are_chosen_whole_and_never_more_than_allowed(name):
    rng = np.random.default_rng(3)
    share = []
    for _ in range(500):
        words = words_of(rng)
        _, m = unit(rng, name, words)
        chosen = set(words[m.positions])
        assert -1 not in chosen
        # A word cut by [SEP] counts as two: each side of it is whole.
        for word in chosen:
            places = np.flatnonzero(words == word)
            runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
            assert all(np.isin(run, m.positions).all() or not np.isin(run, m.positions).any()
                       for run in runs)
        share.append(len(m.positions) / len(words))
    assert max(share) <= predictions_per_row(128, 0.15) / 128
    assert np.mean(share) > 0.14


def test_a_row_of_one_long_word_is_still_predicted():
    words = np.array([-1] + [1] * 30 + [-1])
    _, m = unit(np.random.default_rng(0), "word", words)
    assert m.positions.tolist() == list(range(1, 31))


def test_ngram_lengths_are_alberts_and_span_lengths_spanberts():
    """p(n) = (1/n) / (1 + 1/2 + 1/3): .545, .273, .182; geometric(.2) clipped at 10 has mean 4.46
    (the clipped mass counted at 10; SpanBERT's 3.8 leaves longer ones out)."""
    rng = np.random.default_rng(4)
    grams = np.array(_run_lengths(200_000, "ngram", rng))
    assert np.allclose(np.bincount(grams)[1:] / len(grams), [6 / 11, 3 / 11, 2 / 11], atol=0.005)
    spans = np.array(_run_lengths(200_000, "span", rng))
    assert spans.min() == 1 and spans.max() == 10
    assert abs(spans.mean() - (1 - 0.8**10) / 0.2) < 0.03


def test_a_span_has_one_fate():
    rng = np.random.default_rng(5)
    fates = set()
    for _ in range(200):
        words = words_of(rng, mean=1.0)
        _, m = unit(rng, "span", words)
        runs = np.split(np.arange(len(m.positions)), np.flatnonzero(np.diff(m.positions) > 1) + 1)
        fates |= {len(set(m.fate[run])) for run in runs}
        assert sum(len(set(m.fate[run])) > 1 for run in runs) <= 2  # two spans side by side
    assert 1 in fates


def test_whole_words_keep_the_papers_shares():
    rng = np.random.default_rng(6)
    fate = np.concatenate([unit(rng, "word", words_of(rng))[1].fate for _ in range(3000)])
    for value, share in ((MASK, 0.8), (RANDOM, 0.1), (KEEP, 0.1)):
        assert abs((fate == value).mean() - share) < 4 * np.sqrt(share * (1 - share) / len(fate))
