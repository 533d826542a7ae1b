"""Masking against the paper's shares, over more than 100,000 pieces."""

from types import SimpleNamespace

import numpy as np
import pytest

from bertscope.objectives.keys import CHOICE, FATE, uniforms
from bertscope.objectives.masking import (
    KEEP, MASK, RANDOM, mask_rows, predictions_per_row, run_lengths)

V, CLS, SEP, MASK_ID, UNK, PAD = 1000, 2, 3, 4, 1, 0
ORDINARY = np.arange(5, V)


def mask_row(ids, words, rng, unit="piece", rate=0.15, mask_share=0.8, random_share=0.1):
    """One row through ``mask_rows``, without its filler."""
    objective = SimpleNamespace(mask_rate=rate, mask_share=mask_share, random_share=random_share,
                                mask_unit=unit)
    draws = {}
    m = mask_rows(ids[None], words[None], np.array([len(ids)]), ORDINARY, MASK_ID, objective,
                  lambda stream: draws.setdefault(stream, rng.random((1, len(ids)))))
    real = m.labels[0] >= 0
    return SimpleNamespace(input_ids=m.input_ids[0], positions=m.positions[0][real],
                           labels=m.labels[0][real], fate=m.fate[0][real])


def draw(rng, length=128, **shares):
    ids = rng.integers(5, V, length)
    ids[0], ids[length // 2], ids[-1] = CLS, SEP, SEP
    return ids, mask_row(ids, np.where(ids >= 5, np.arange(length), -1), rng, **shares)


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
    m = mask_row(ids, np.full(3, -1), np.random.default_rng(0))
    assert len(m.positions) == 0 and (m.input_ids == ids).all()


def words_of(rng, length=128, mean=1.6):
    """Words of 1 to 4 pieces between special pieces."""
    words = np.cumsum(rng.random(length) < 1 / mean)
    words[[0, length // 2, length - 1]] = -1
    return words


def unit(rng, name, words):
    ids = np.where(words < 0, CLS, rng.integers(5, V, len(words)))
    return ids, mask_row(ids, words, rng, name)


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
    grams = run_lengths(rng.random(200_000), "ngram")
    assert np.allclose(np.bincount(grams)[1:] / len(grams), [6 / 11, 3 / 11, 2 / 11], atol=0.005)
    spans = run_lengths(rng.random(200_000), "span")
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


def test_rows_do_not_depend_on_their_neighbours():
    """A row's masks are the same alone, in a batch, and beside longer rows."""
    rng = np.random.default_rng(7)
    ids = rng.integers(5, V, (3, 40))
    words = np.tile(np.arange(40), (3, 1))
    words[0, 20:] = -1  # padding
    lengths = np.array([20, 40, 40])
    for unit in ("piece", "word", "span"):
        objective = SimpleNamespace(mask_rate=0.15, mask_share=0.8, random_share=0.1, mask_unit=unit)

        def masked(rows, width):
            return mask_rows(ids[rows, :width], words[rows, :width], lengths[rows], ORDINARY, MASK_ID,
                             objective, lambda s: uniforms(1, 0, s, np.array(rows) + 9, width))

        together, alone = masked([0, 1, 2], 40), masked([0], 20)
        assert (together.input_ids[0, :20] == alone.input_ids[0]).all()
        kept = together.labels[0] >= 0
        assert (together.positions[0][kept] == alone.positions[0][alone.labels[0] >= 0]).all()


def test_keyed_numbers_are_uniform_and_independent():
    numbers = uniforms(3, 1, CHOICE, np.arange(2000), 128)
    assert numbers.min() >= 0 and numbers.max() < 1
    counts = np.histogram(numbers, 100, (0, 1))[0]
    expected = numbers.size / 100
    assert ((counts - expected) ** 2 / expected).sum() < 150  # chi-square with 99: mean 99, sd 14
    other = uniforms(3, 1, FATE, np.arange(2000), 128)
    limit = 4 / np.sqrt(numbers.size)
    for a, b in ((numbers, other), (numbers[:, 1:], numbers[:, :-1]), (numbers[1:], numbers[:-1]),
                 (numbers, uniforms(4, 1, CHOICE, np.arange(2000), 128)),
                 (numbers, uniforms(3, 2, CHOICE, np.arange(2000), 128))):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < limit
    some = uniforms(3, 1, CHOICE, np.array([7, 1999]), 50)
    assert (some == numbers[[7, 1999], :50]).all()


def test_keyed_numbers_are_splitmix64s():
    """The published sequence of seed 1234567 begins with these (Vigna's splitmix64.c)."""
    from unittest.mock import patch

    with patch("bertscope.objectives.keys._key", return_value=1234567):
        found = uniforms(0, 0, 0, np.array([0]), 3)[0]
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert found.tolist() == [(n >> 11) * 2.0**-53 for n in known]
