"""Packed examples against RoBERTa's description, and swapped pairs against ALBERT's."""

import numpy as np
import pytest
from test_pairs import layout, random_layout

from bertscope.errors import BertScopeError
from bertscope.objectives import plan_packed, plan_pairs


def packed(sentences, documents, scheme, length=32, chosen=None):
    chosen = np.arange(len(documents) - 1) if chosen is None else chosen
    return plan_packed(sentences, documents, chosen, length, scheme, np.random.default_rng(0))


def pieces(plan):
    return np.concatenate([np.arange(a, b) for a, b in plan.spans])


@pytest.mark.parametrize("scheme", ["full_sentences", "doc_sentences", "sentences"])
def test_every_piece_is_used_once_and_no_example_is_too_long(scheme):
    sentences, documents = random_layout(np.random.default_rng(1), 60)
    plan = packed(sentences, documents, scheme)
    assert sorted(pieces(plan)) == list(range(sentences[-1]))
    assert plan.lengths.max() <= 32 and plan.label is None
    assert plan.lengths.sum() == sentences[-1] + len(plan.spans) + len(plan)


def test_full_sentences_cross_documents_with_a_separator_and_doc_sentences_do_not():
    sentences, documents = layout([[4, 5], [6, 7], [3]])
    full, doc = (packed(sentences, documents, s) for s in ("full_sentences", "doc_sentences"))
    home = np.searchsorted(sentences[documents[1:]], doc.spans[:, 0], "right")
    assert len(doc) == 3 and sorted(home) == [0, 1, 2]
    assert len(full) == 1 and len(full.spans) == 3  # 25 pieces, three [SEP] and a [CLS]: 29
    assert full.lengths.tolist() == [29]


def test_sentences_are_whole_where_they_fit():
    sentences, documents = layout([[10, 10, 9, 8, 20, 31]])
    plan = packed(sentences, documents, "doc_sentences")
    assert [(b - a).item() for a, b in plan.spans] == [29, 28, 30, 1]  # 31 is cut at 30
    ends = set(sentences.tolist())
    assert all(b in ends for _, b in plan.spans[:2].tolist())


def test_one_sentence_at_a_time():
    sentences, documents = layout([[5, 6], [7]])
    plan = packed(sentences, documents, "sentences")
    assert sorted(plan.lengths.tolist()) == [7, 8, 9]


def test_only_chosen_documents_are_read():
    sentences, documents = random_layout(np.random.default_rng(2), 30)
    chosen = np.array([3, 4, 20])
    plan = packed(sentences, documents, "full_sentences", chosen=chosen)
    wanted = [range(sentences[documents[d]], sentences[documents[d + 1]]) for d in chosen]
    assert set(pieces(plan)) == {place for span in wanted for place in span}


def test_packing_leaves_little_room():
    sentences, documents = random_layout(np.random.default_rng(3), 300)
    plan = packed(sentences, documents, "full_sentences", length=128)
    assert plan.lengths.mean() > 0.9 * 128


def test_no_text_is_refused():
    with pytest.raises(BertScopeError, match="no text"):
        packed(np.array([0]), np.array([0]), "sentences")


def test_half_of_the_orders_are_swapped_and_neither_half_is_of_another_document():
    sentences, documents = random_layout(np.random.default_rng(4), 2000)
    pairs = plan_pairs(sentences, documents, np.arange(2000), 64, 0.0, np.random.default_rng(5),
                       "sop")
    share = pairs.label.mean()
    assert abs(share - 0.5) < 4 * np.sqrt(0.25 / len(pairs))
    swapped = pairs.label == 1
    first = np.where(swapped[:, None], np.stack([pairs.b_start, pairs.b_end], 1),
                     np.stack([pairs.a_start, pairs.a_end], 1))
    second = np.where(swapped[:, None], np.stack([pairs.a_start, pairs.a_end], 1),
                      np.stack([pairs.b_start, pairs.b_end], 1))
    assert (first[:, 1] <= second[:, 0]).all()
    starts = sentences[documents]
    home = np.searchsorted(starts, [first[:, 0], second[:, 0]], "right")
    assert (home[0] == home[1]).all()
    assert (pairs.lengths <= 64).all()


def test_order_can_be_learnt_from_one_document():
    sentences, documents = layout([[5] * 40])
    pairs = plan_pairs(sentences, documents, np.arange(1), 64, 0.1, np.random.default_rng(0), "sop")
    assert len(pairs) > 2
