"""Whole words: WordPiece's, and those of a text without spaces."""

import numpy as np
import pytest
from transformers import BertTokenizer

from bertscope.config import ObjectiveConfig
from bertscope.corpus.document import Document
from bertscope.corpus.store import build_store
from bertscope.objectives import Examples

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CHINESE = "我们喜欢学习自然语言处理。"
ENGLISH = "isn't play ##ing ##s dogs . cat"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    pieces = [*SPECIAL, *sorted(set(CHINESE)), "isn", "'", "t", "play", "##ing", "##s", "dogs", ".",
              "cat", "b", "##ert", "2020"]
    return BertTokenizer(vocab={piece: i for i, piece in enumerate(pieces)})


def documents(*texts):
    return [Document(sentences=list(text), meta={}) for text in texts]


def words(store, tokenizer, document=0):
    examples = Examples(store, np.arange(store.documents), tokenizer,
                        ObjectiveConfig(max_length=48, pairs="doc_sentences"), seed=0)
    plan = examples.plan(0)
    home = np.searchsorted(store.sentence_offsets[store.document_offsets[1:]],
                           plan.spans[plan.offsets[:-1], 0], "right")
    rows = examples.rows(0, np.flatnonzero(home == document))
    pieces = tokenizer.convert_ids_to_tokens(rows.input_ids[0])
    numbers = examples.words(rows)[0]
    found = {}
    for piece, number in zip(pieces, numbers):
        if number >= 0:
            found.setdefault(number, []).append(piece)
    assert all(number < 0 for piece, number in zip(pieces, numbers) if piece in SPECIAL)
    return list(found.values())


def test_wordpiece_marks_what_goes_on(tokenizer, tmp_path):
    store = build_store(documents(["isn't playings dogs."], ["cat"]), tokenizer, tmp_path / "s")
    assert store.word_starts is None
    assert words(store, tokenizer) == [["isn"], ["'"], ["t"], ["play", "##ing", "##s"], ["dogs"], ["."]]


def test_chinese_words_are_a_segmenters(tokenizer, tmp_path):
    import rjieba

    store = build_store(documents([CHINESE], ["cat"]), tokenizer, tmp_path / "s")
    expected = [list(word) for word in rjieba.cut(CHINESE)]
    assert max(map(len, expected)) > 1
    assert words(store, tokenizer) == expected


def test_both_in_one_corpus_whichever_comes_first(tokenizer, tmp_path):
    store = build_store(documents(["playing dogs", "cat"], [CHINESE, "playing 2020"]), tokenizer,
                        tmp_path / "s")
    assert words(store, tokenizer, 0) == [["play", "##ing"], ["dogs"], ["cat"]]
    found = words(store, tokenizer, 1)
    assert found[-2:] == [["play", "##ing"], ["2020"]] and ["我", "们"] in found


def test_a_piece_after_a_special_one_begins_a_word(tokenizer, tmp_path):
    """A pair that was cut within a word: its second part has no first."""
    store = build_store(documents(["cat playing", "playing cat"], ["dogs dogs", "cat cat"]), tokenizer,
                        tmp_path / "s")
    examples = Examples(store, np.arange(2), tokenizer, ObjectiveConfig(max_length=48), seed=0)
    rows = examples.rows(0, np.arange(len(examples.plan(0))))
    rows.input_ids[:, 1] = tokenizer.convert_tokens_to_ids("##ing")
    assert (examples.words(rows)[:, 1] > 0).all() and (examples.words(rows)[:, 0] == -1).all()


def test_masks_hide_whole_chinese_words(tokenizer, tmp_path):
    store = build_store(documents(*[[CHINESE] * 3] * 30), tokenizer, tmp_path / "s")
    examples = Examples(store, np.arange(30), tokenizer, ObjectiveConfig(
        max_length=48, pairs="doc_sentences", mask_unit="word"), seed=1)
    indices = np.arange(len(examples.plan(0)))
    rows, batch = examples.rows(0, indices), examples.batch(0, indices)
    numbers = examples.words(rows)
    for row, positions, labels in zip(numbers, batch.masked_lm_positions, batch.masked_lm_labels):
        chosen = positions[labels >= 0]
        assert all(np.isin(np.flatnonzero(row == row[place]), chosen).all() for place in chosen)
