"""Vectors of words and sentences: read once, kept on disk, found again."""

import os

import numpy as np
import pytest
import tiny_models

from bertscope.analysis import activations
from bertscope.analysis.probing import features, shards
from bertscope.analysis.probing.features import Features, Store
from bertscope.analysis.probing.items import Items
from bertscope.analysis.probing.reading import OWN, SENTENCE_POOLING, read, rows_of
from bertscope.errors import BertScopeError
from probe_stand_ins import Planted, by_type, invented_items

TEXTS = [["the", "cat", "walked", "."], ["unbelievable", "!"], ["a", "\u200b", "dog"],
         "the united states of america", [], ["mat"] * 60]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    tiny_models.save(folder)
    return activations.load(folder)


def words_of(sentences, spans=None, kind="word", parts=None, **columns) -> Items:
    """Items over all words of some sentences, or at given (sentence, spans)."""
    places = [(s, [[w, w + 1]]) for s, words in enumerate(sentences) for w in range(len(words))] \
        if spans is None else spans
    return Items("task", "Task", kind, sentences, [s for s, _ in places], [p for _, p in places],
                 ["X"] * len(places), parts or ["train"] * len(places), **columns)


# -- one pass of the encoder --------------------------------------------------------------------


@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
def test_words_are_as_word_states_reads_them(tiny, pooling):
    """Another implementation: word by word, in single precision."""
    lists = [text for text in TEXTS if not isinstance(text, str)]
    ours, cut = read(tiny, lists, pooling)
    theirs, (sentence, word) = activations.word_states(tiny, lists, pooling)
    starts = np.cumsum([0, *map(rows_of, lists)])
    rows = starts[sentence] + OWN + word
    assert ours.dtype == np.float16
    assert np.abs(ours[:, rows] - theirs).max() < 0.01
    without = np.setdiff1d(np.concatenate([starts[i] + OWN + np.arange(len(lists[i]))
                                           for i in range(len(lists))]), rows)
    assert np.isnan(ours[:, without]).all() and len(without) == 1 + 60 - (tiny.max_length - 2)
    assert cut == [False, False, False, False, True]


def test_sentences_are_as_pool_reads_them(tiny):
    texts = ["the cat walked.", "the united states of america"]
    ours, _ = read(tiny, texts)
    for layer in (0, 3):
        for place, how in ((0, "cls"), (1, "mean")):
            theirs = activations.pool(tiny, texts, layer, how)
            assert np.abs(ours[layer, place::OWN] - theirs).max() < 0.01
        for number, text in enumerate(texts):
            states = activations.run(tiny, activations.encode(tiny, text)).hidden_states[layer]
            most = ours[layer, number * OWN + SENTENCE_POOLING.index("max")]
            assert np.abs(most - states[1:-1].max(0)).max() < 0.01


def test_a_sentence_without_a_piece_has_nothing(tiny):
    ours, _ = read(tiny, [["\u200b"], [""]])
    assert np.isnan(ours).all()


def test_values_that_are_not_finite_are_refused(tmp_path):
    model = tiny_models.save(tmp_path)
    model.bert.encoder.layer[1].output.dense.weight.data.fill_(float("nan"))
    model.save_pretrained(tmp_path)
    with pytest.raises(BertScopeError, match="diverged"):
        read(activations.load(tmp_path), [["the", "cat"]])


# -- kept on disk -------------------------------------------------------------------------------


def test_each_sentence_is_read_once_for_all_tasks_and_layers(monkeypatch, tmp_path):
    planted = Planted(monkeypatch, tmp_path, 3, 8, by_type(8, 3))
    items = invented_items(60)
    some = items.select([i for i in range(len(items)) if items.labels[i] == "NOUN"])
    for wanted in (some, items, items):
        made = Features(wanted, planted.store)
        for layer in range(3):
            expected = [planted.vector(layer, word) for word in wanted.types]
            assert np.abs(made.matrix(layer) - expected).max() < 0.01
    used = {" ".join(items.sentences[i]) for i in items.sentence}
    assert len(planted.seen) == len(used) and set(planted.seen) == used


def test_half_precision_on_disk_without_pickle(monkeypatch, tmp_path):
    planted = Planted(monkeypatch, tmp_path, 2, 8, by_type(8, 2))
    items = invented_items(60)
    store = planted.store
    Features(items, store)
    files = list(store.folder.iterdir())
    assert files and all(path.suffix == ".safetensors" for path in files)
    rows = sum(rows_of(items.sentences[i]) for i in set(items.sentence.tolist()))
    size = sum(path.stat().st_size for path in files)
    assert rows * 2 * 8 * 2 < size < rows * 2 * 8 * 2 + 100_000


def test_other_weights_and_other_pooling_have_vectors_of_their_own(monkeypatch, tmp_path):
    planted = Planted(monkeypatch, tmp_path, 1, 8, by_type(8))
    items = invented_items(60)
    Features(items, planted.store)
    before = len(planted.seen)
    Features(items, Store(planted.store.folder, planted.model, "first"))
    assert len(planted.seen) == 2 * before
    planted.model.fingerprint = "other"
    Features(items, planted.store)
    assert len(planted.seen) == 3 * before


def test_interrupted_it_goes_on_after_the_last_whole_shard(monkeypatch, tmp_path):
    class Cancelled(Exception):
        pass

    planted = Planted(monkeypatch, tmp_path, 1, 8, by_type(8))
    items = invented_items(200)
    monkeypatch.setattr(features, "SHARD_BYTES", 40 * 11 * 8 * 2)   # about forty sentences

    def cancel(message, share):
        if share > 0.5:
            raise Cancelled

    with pytest.raises(Cancelled):
        Features(items, planted.store, progress=cancel)
    first = set(planted.seen)
    planted.seen.clear()
    Features(items, planted.store)
    again = first & set(planted.seen)
    assert 0 < len(again) <= 40 and len(first | set(planted.seen)) == len(set(map(
        " ".join, (items.sentences[i] for i in items.sentence))))


def test_a_damaged_shard_is_made_again(monkeypatch, tmp_path):
    planted = Planted(monkeypatch, tmp_path, 1, 8, by_type(8))
    items = invented_items(60)
    expected = Features(items, planted.store).matrix(0)
    for path in planted.store.folder.glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-100])
    assert np.array_equal(Features(items, planted.store).matrix(0), expected)


def test_a_flipped_bit_in_a_shard_is_no_silent_wrong_number(monkeypatch, tmp_path):
    planted = Planted(monkeypatch, tmp_path, 2, 8, by_type(8, layers=2))
    items = invented_items(60)
    expected = Features(items, planted.store).matrix(0)
    path, = planted.store.folder.glob("*.safetensors")
    bits = bytearray(path.read_bytes())
    bits[-len(bits) // 8] ^= 1   # in the vectors of the last layer
    path.write_bytes(bits)
    Features(items, Store(planted.store.folder, planted.model)).matrix(0)
    with pytest.raises(BertScopeError, match="damaged on the disk"):
        Features(items, Store(planted.store.folder, planted.model)).matrix(1)
    planted.seen.clear()
    assert np.array_equal(Features(items, Store(planted.store.folder, planted.model)).matrix(0), expected)
    assert planted.seen


def test_the_folder_is_bounded_and_the_oldest_go(monkeypatch, tmp_path):
    planted = Planted(monkeypatch, tmp_path, 1, 8, by_type(8))
    sets = [invented_items(60, seed=seed) for seed in range(4)]
    Features(sets[0], planted.store)
    one = sum(path.stat().st_size for path in planted.store.folder.iterdir())
    for items in sets[1:]:
        Features(items, Store(planted.store.folder, planted.model, most=int(2.5 * one)))
    assert sum(path.stat().st_size for path in planted.store.folder.iterdir()) <= 2.5 * one
    planted.seen.clear()
    Features(sets[3], planted.store)
    assert not planted.seen
    Features(sets[0], planted.store)
    assert planted.seen


def test_more_than_there_is_room_for_is_refused(monkeypatch, tmp_path):
    planted = Planted(monkeypatch, tmp_path, 1, 8, by_type(8))
    store = Store(tmp_path / "analysis" / "features", planted.model, most=1000)
    with pytest.raises(BertScopeError, match="probe fewer items"):
        Features(invented_items(60), store)
    assert not planted.seen


def test_a_folder_that_cannot_be_written_costs_the_keeping_only(monkeypatch, tmp_path, caplog):
    planted = Planted(monkeypatch, tmp_path, 1, 8, by_type(8))
    (tmp_path / "file").write_text("")
    items = invented_items(60)
    made = Features(items, Store(tmp_path / "file" / "features", planted.model))
    assert np.abs(made.matrix(0) - [planted.vector(0, word) for word in items.types]).max() < 0.01
    assert "cannot be kept" in caplog.text


def test_vectors_removed_while_in_use_are_a_sentence(monkeypatch, tmp_path):
    planted = Planted(monkeypatch, tmp_path, 1, 8, by_type(8))
    made = Features(invented_items(60), planted.store)
    for path in planted.store.folder.iterdir():
        path.unlink()
    with pytest.raises(BertScopeError, match="begin again"):
        made.matrix(0)


def test_what_a_killed_process_left_is_swept(tmp_path):
    left = tmp_path / ".x.safetensors.partial"
    left.write_bytes(b"")
    os.utime(left, (0, 0))
    assert shards.make_room(tmp_path, 1, set()) and not left.exists()


# -- from sentences to items --------------------------------------------------------------------


@pytest.mark.parametrize("pooling, expected", [("mean", [1.5, 2.0]), ("first", [1, 1]),
                                               ("last", [2, 3])])
def test_a_span_of_words(monkeypatch, tmp_path, pooling, expected):
    planted = Planted(monkeypatch, tmp_path, 1, 4, lambda layer, word: np.full(4, float(word)))
    items = words_of([["1", "2", "3"], ["9"]], [(0, [[0, 2]]), (0, [[0, 3]]), (1, [[0, 1]])])
    made = Features(items, Store(planted.store.folder, planted.model, pooling)).matrix(0)
    assert made.tolist() == [[v] * 4 for v in [*expected, 9]]


def test_a_pair_is_its_two_spans_one_after_the_other(monkeypatch, tmp_path):
    planted = Planted(monkeypatch, tmp_path, 1, 4, lambda layer, word: np.full(4, float(word)))
    items = words_of([["1", "2", "3"]], [(0, [[2, 3], [0, 2]])], kind="pair")
    assert Features(items, planted.store).matrix(0).tolist() == [[3] * 4 + [1.5] * 4]


@pytest.mark.parametrize("pooling, value", [("cls", 0), ("mean", 1), ("max", 2)])
def test_a_sentence_has_three_vectors(monkeypatch, tmp_path, pooling, value):
    planted = Planted(monkeypatch, tmp_path, 1, 4, by_type(4),
                      lambda layer, text: np.array([0, 1, 2])[:, None] + 10 * (text == "b"))
    items = words_of(["a", "b"], [(0, []), (1, [])], kind="sentence")
    made = Features(items, planted.store, pooling).matrix(0)
    assert made.tolist() == [[value] * 4, [value + 10] * 4]


def test_rows_in_any_order_and_items_without_a_vector(monkeypatch, tmp_path):
    planted = Planted(monkeypatch, tmp_path, 2, 4, lambda layer, word: np.full(
        4, np.nan if word == "?" else layer + float(word)))
    made = Features(words_of([["1", "?", "3"], ["4"]]), planted.store)
    assert made.readable.tolist() == [True, False, True, True]
    assert made.matrix(1, np.array([3, 0])).tolist() == [[5] * 4, [2] * 4]


def test_unknown_poolings_are_refused(monkeypatch, tmp_path):
    planted = Planted(monkeypatch, tmp_path, 1, 4, by_type(4))
    with pytest.raises(BertScopeError, match="'mean', 'first' or 'last'"):
        Store(tmp_path, planted.model, "sum")
    with pytest.raises(BertScopeError, match="'cls', 'mean' or 'max'"):
        Features(invented_items(60), planted.store, "sum")


# -- items --------------------------------------------------------------------------------------


@pytest.mark.parametrize("change, sentence", [
    ({"kind": "letter"}, "not 'letter'"), ({"labels": ["X", ""]}, "without a label"),
    ({"parts": ["train", "dev"]}, "called 'dev'"), ({"parts": ["train", "test"]}, "in two parts"),
    ({"sentence": [0, 1]}, "not there"), ({"spans": [[[0, 1]], [[1, 3]]]}, "not in its sentence"),
    ({"spans": [[[0, 1]], [[1, 1]]]}, "not in its sentence"), ({"types": ["a"]}, "unequal length")])
def test_columns_that_do_not_fit_are_refused(change, sentence):
    columns = {"task": "t", "title": "T", "kind": "word", "sentences": [["a", "b"]],
               "sentence": [0, 0], "spans": [[[0, 1]], [[1, 2]]], "labels": ["X", "Y"],
               "parts": ["train", "train"]}
    assert len(Items(**columns)) == 2
    with pytest.raises(BertScopeError, match=sentence):
        Items(**columns | change)


def test_the_fingerprint_of_items_changes_with_all_that_decides_a_result():
    def made(**change):
        columns = {"sentences": [["a", "b"], ["c"]], "spans": [(0, [[0, 1]]), (1, [[0, 1]])],
                   "types": ["a", "c"]} | change
        return words_of(columns.pop("sentences"), **columns).fingerprint

    others = [made(sentences=[["a", "x"], ["c"]]), made(spans=[(0, [[1, 2]]), (1, [[0, 1]])]),
              made(types=["a", "d"]), made(parts=["train", "test"])]
    assert made() == made() and len({made(), *others}) == 5
    assert made(documents=["x", "y"]) == made()
