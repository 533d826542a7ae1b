"""Sentence pairs against the original algorithm, written out naively."""

import numpy as np
import pytest

from bertscope.errors import BertScopeError
from bertscope.objectives.pairs import _truncate, plan_pairs


def layout(documents: list[list[int]]):
    """Offsets of documents given as lists of sentence lengths."""
    sentences = np.concatenate([[0], np.cumsum([n for d in documents for n in d])])
    return sentences, np.concatenate([[0], np.cumsum([len(d) for d in documents])])


def random_layout(rng, documents=300):
    return layout([[int(n) for n in rng.integers(3, 30, rng.integers(2, 25))]
                   for _ in range(documents)])


def plan(sentences, documents, *, max_length=64, short=0.1, seed=0, chosen=None):
    chosen = np.arange(len(documents) - 1) if chosen is None else np.asarray(chosen)
    return plan_pairs(sentences, documents, chosen, max_length, short,
                      np.random.default_rng(seed))


def naive_truncate(a, b, room):
    """Lengths after the original's ``truncate_seq_pair``."""
    while a + b > room:
        if a > b:
            a -= 1
        else:
            b -= 1
    return a, b


def test_truncation_lengths_equal_the_originals_loop():
    rng = np.random.default_rng(1)
    a, b = rng.integers(1, 90, 3000), rng.integers(1, 90, 3000)
    zero = np.zeros_like(a)
    a0, a1, b0, b1 = _truncate(zero, a, zero, b, 61, rng)
    expected = [naive_truncate(x, y, 61) for x, y in zip(a, b)]
    assert [(int(x), int(y)) for x, y in zip(a1 - a0, b1 - b0)] == expected
    # Front or back with probability one half each.
    dropped, front = (a - (a1 - a0)).sum(), a0.sum()
    assert abs(front / dropped - 0.5) < 4 * 0.5 / np.sqrt(dropped)


def test_half_of_the_pairs_are_random_and_lengths_fit():
    sentences, documents = random_layout(np.random.default_rng(2), 2000)
    pairs = plan(sentences, documents)
    assert pairs.lengths.sum() > 100_000
    share = pairs.label.mean()
    assert abs(share - 0.5) < 3 * 0.5 / np.sqrt(len(pairs))
    assert (pairs.lengths <= 64).all()
    assert (pairs.a_end > pairs.a_start).all() and (pairs.b_end > pairs.b_start).all()


def document_of(piece, sentences, documents):
    return np.searchsorted(documents, np.searchsorted(sentences, piece, "right") - 1, "right") - 1


def test_true_pairs_are_neighbours_and_random_ones_are_from_another_document():
    sentences, documents = random_layout(np.random.default_rng(3))
    pairs = plan(sentences, documents, max_length=10_000, short=0.0)  # nothing is truncated
    true = pairs.label == 0
    assert (pairs.a_end[true] == pairs.b_start[true]).all()
    home = document_of(pairs.a_start, sentences, documents)
    other = document_of(pairs.b_start, sentences, documents)
    assert (home[true] == other[true]).all()
    assert (home[pairs.label == 1] != other[pairs.label == 1]).all()
    assert (home == document_of(pairs.a_end - 1, sentences, documents)).all()
    assert (other == document_of(pairs.b_end - 1, sentences, documents)).all()


def test_unused_sentences_are_put_back():
    """With nothing truncated, every sentence but a document's last is used as A or true B once."""
    sentences, documents = random_layout(np.random.default_rng(4), 50)
    pairs = plan(sentences, documents, max_length=40, short=0.0)
    wide = plan(sentences, documents, max_length=100_000, short=0.0)
    spans = sorted([(s, e) for s, e in zip(wide.a_start, wide.a_end)]
                   + [(s, e) for s, e, r in zip(wide.b_start, wide.b_end, wide.label) if not r])
    covered = np.zeros(sentences[-1], int)
    for start, end in spans:
        covered[start:end] += 1
    assert covered.max() == 1
    missing = np.flatnonzero(covered == 0)
    lone = {int(sentences[d - 1]) for d in documents[1:]}  # first piece of each last sentence
    starts = {int(sentences[np.searchsorted(sentences, p, "right") - 1]) for p in missing}
    assert starts <= lone
    assert len(pairs) > len(wide)


def test_a_tenth_of_the_documents_is_cut_short():
    sentences, documents = layout([[10] * 40] * 1500)
    full, short = plan(sentences, documents, short=0.0), plan(sentences, documents, short=1.0)
    assert (full.lengths == 64).mean() > 0.9
    assert (short.lengths < 60).mean() > 0.5


def test_only_the_chosen_documents_are_used():
    sentences, documents = random_layout(np.random.default_rng(5), 60)
    chosen = [3, 7, 8, 30, 59]
    pairs = plan(sentences, documents, chosen=chosen)
    for start in (pairs.a_start, pairs.b_start):
        assert set(document_of(start, sentences, documents)) <= set(chosen)


def test_one_long_sentence_is_truncated_not_dropped():
    sentences, documents = layout([[500, 5, 6], [4, 900], [7, 7]])
    pairs = plan(sentences, documents)
    assert (pairs.lengths <= 64).all() and len(pairs) >= 3


@pytest.mark.parametrize("documents", [[[5, 6, 7]], [[5], [6], [7]]])
def test_what_cannot_be_paired_is_refused(documents):
    with pytest.raises(BertScopeError):
        plan(*layout(documents))


def test_plans_repeat_with_the_seed():
    sentences, documents = random_layout(np.random.default_rng(6), 40)
    one, two, other = (plan(sentences, documents, seed=s) for s in (1, 1, 2))
    assert all((getattr(one, f) == getattr(two, f)).all() for f in vars(one))
    assert len(one) != len(other) or (one.a_start != other.a_start).any()
