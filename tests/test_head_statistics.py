"""What heads do over a sample: planted heads with answers by hand, a slow reference, scipy."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from bertscope.analysis import attention_sample, head_distances, head_statistics
from bertscope.analysis.activations import encode, load
from bertscope.analysis.attention import attention_maps, head_summary
from bertscope.analysis.attention_sample import (attention_batches, encode_texts, held_out_texts,
                                                 texts_digest)
from bertscope.errors import BertScopeError
from planted_heads import beside, mixed, on, own_text, plant, uniform
from scipy.spatial.distance import jensenshannon

TEXTS = ["the cat sat on the mat.", "a dog", ("the cats walked, on a mat.", "a new house sat on it!"),
         "united states of america"]
PAIR = [("the cat sat on a mat of the new house", "a dog walked on the house of a cat")]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    tiny_models.save(folder)
    return load(folder, device="cpu")


# -- the sample -------------------------------------------------------------------------------


def test_batches_are_each_texts_own_maps_however_they_are_padded(model, monkeypatch):
    monkeypatch.setattr(attention_sample, "MOST_WEIGHTS", 2 * 12 * 15 ** 2)
    found, sizes, told = {}, [], []
    for batch in attention_batches(model, encode_texts(model, TEXTS), lambda *a: told.append(a)):
        sizes.append(len(batch))
        found |= dict(batch)
    assert max(sizes) > 1 and len(sizes) > 1 and told[-1] == ("4 of 4 texts", 1.0)
    for number, text in enumerate(TEXTS):
        alone = attention_maps(model, *([text] if isinstance(text, str) else text)).weights
        np.testing.assert_allclose(found[number], alone, atol=1e-6)


def test_whatever_progress_raises_ends_the_work(model, monkeypatch):
    monkeypatch.setattr(attention_sample, "MOST_WEIGHTS", 1)

    def stop(_, share):
        if share > 0.4:
            raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        head_statistics.head_statistics(model, TEXTS, stop)


def test_texts_without_attention_are_refused_in_words(model, tmp_path):
    with pytest.raises(BertScopeError, match="no text to look at"):
        head_statistics.head_statistics(model, [])
    with pytest.raises(BertScopeError, match="Text 2: .*empty"):
        head_statistics.head_statistics(model, ["a", " "])
    tiny_models.save(tmp_path, transformers.FNetForPreTraining, family="fnet")
    with pytest.raises(BertScopeError, match="no attention weights"):
        head_statistics.head_statistics(load(tmp_path, device="cpu"), ["a dog"])


def test_a_digest_tells_texts_from_pairs():
    assert texts_digest(["a", "b"]) != texts_digest([("a", "b")]) != texts_digest(["ab"])
    assert texts_digest(["a", ("b", "c")]) == texts_digest(["a", ["b", "c"]])


def test_held_out_texts_are_neighbours_from_all_documents():
    documents = [[f"{name}{i}" for i in range(4)] for name in "abc"] + [["..."]]
    singles, pairs = held_out_texts(documents, 5), held_out_texts(documents, 7, pairs=True)
    assert len(set(singles)) == 5 and {text[0] for text in singles[:3]} == set("abc")
    assert all(a[0] == b[0] and int(b[1]) == int(a[1]) + 1 for a, b in pairs) and len(pairs) == 7
    assert held_out_texts(documents, 9, pairs=True)[:7] == pairs
    assert len(held_out_texts(documents, 99)) == 12
    with pytest.raises(BertScopeError, match="neighbouring"):
        held_out_texts([["a"], []], 5, pairs=True)


# -- statistics -------------------------------------------------------------------------------


def test_statistics_of_planted_heads(model, monkeypatch):
    planted = plant(monkeypatch, head_statistics, model,
                    [uniform, beside(-1), beside(0), beside(1), on("[CLS]"), on("[SEP]"), on("."),
                     own_text])
    # [CLS] the cat . [SEP]   and   [CLS] a [SEP] dog . cat [SEP]
    table = head_statistics.head_statistics(planted, ["the cat.", ("a", "dog. cat")])
    assert table["layer"].tolist() == [1] * 8 and table["head"].tolist() == list(range(1, 9))
    assert set(table["rows"]) == {12}
    even, previous, same, following, to_cls, to_sep, to_stop, own = table.to_dict("records")

    def close(row, **expected):
        for name, value in expected.items():
            assert row[name] == pytest.approx(value, abs=1e-6), name

    close(even, cls=(5 / 5 + 7 / 7) / 12, sep=(1 + 2) / 12, punctuation=2 / 12,
          previous=(4 / 5 + 6 / 7) / 10, self=2 / 12, next=(4 / 5 + 6 / 7) / 10,
          # In the pair "a" is alone; dog, ".", cat have three of their own and one of the other.
          same_segment=(1 / 7 + 3 * 3 / 7) / 4, other_segment=(3 / 7 + 3 * 1 / 7) / 4,
          entropy=(5 * np.log2(5) + 7 * np.log2(7)) / 12,
          distance=(np.abs(np.subtract.outer(range(5), range(5))).mean() * 5
                    + np.abs(np.subtract.outer(range(7), range(7))).mean() * 7) / 12,
          vertical=0, diagonal=0, either=0, block=0)
    close(previous, previous=1, self=2 / 12, next=0, entropy=0, distance=10 / 12)
    close(same, previous=0, self=1, next=0, distance=0)
    close(following, previous=0, self=2 / 12, next=1, distance=10 / 12)
    close(to_cls, cls=1, sep=0, punctuation=0, distance=(10 + 21) / 12)
    close(to_sep, cls=0, sep=1, entropy=7 / 12)
    close(to_stop, cls=0, sep=0, punctuation=1, other_segment=1 / 4, same_segment=3 / 4)
    close(own, block=1, same_segment=(1 / 3 + 3 * 3 / 4) / 4, other_segment=0)


def test_patterns_of_planted_heads(model, monkeypatch):
    following, separators = beside(1), on("[SEP]")
    planted = plant(monkeypatch, head_statistics, model,
                    [separators, on("[CLS]"), following, beside(-1), mixed(following, separators),
                     own_text, uniform, mixed(uniform, separators, uniform), on("on", "dog")])
    table = head_statistics.head_statistics(planted, PAIR)
    assert table["pattern"].tolist() == [
        "vertical", "vertical", "diagonal", "diagonal", "vertical+diagonal", "block",
        "heterogeneous", "heterogeneous", "heterogeneous"]
    # One third of its weight is on [SEP], two thirds are even: m = 1/3 + 2/3 u.
    assert table["vertical"][7] == pytest.approx(1 / 3, abs=1e-6)
    # Without pairs nothing is said of segments, and everything else holds.
    table = head_statistics.head_statistics(planted, [PAIR[0][0]])
    assert table["block"].isna().all() and table["same_segment"].isna().all()
    assert table["pattern"].tolist()[:5] == ["vertical"] * 2 + ["diagonal"] * 2 + [
        "vertical+diagonal"]


def test_statistics_are_the_mean_of_each_texts_own(model):
    """Against ``head_summary``, which was written and tested apart, weighted by rows."""
    table = head_statistics.head_statistics(model, TEXTS)
    maps = [attention_maps(model, *([text] if isinstance(text, str) else text)) for text in TEXTS]
    rows = np.array([len(m.tokens) for m in maps])
    each = [head_summary(m) for m in maps]
    for name in ("cls", "sep", "self", "entropy", "distance"):
        expected = np.average([t[name] for t in each], axis=0, weights=rows)
        np.testing.assert_allclose(table[name], expected, atol=1e-6)
    for name in ("previous", "next"):
        expected = np.average([t[name] for t in each], axis=0, weights=rows - 1)
        np.testing.assert_allclose(table[name], expected, atol=1e-6)


@pytest.mark.parametrize("family", ["roberta", "albert", "electra", "distilbert"])
def test_other_families_have_statistics(tmp_path, family):
    tiny_models.save(tmp_path, transformers.AutoModelForMaskedLM, family=family)
    table = head_statistics.head_statistics(load(tmp_path, device="cpu"), TEXTS)
    assert len(table) == 12 and table["entropy"].between(0, 6).all()
    assert (table["cls"] > 0).all() and (table["sep"] > 0).all()


def test_punctuation_is_seen_in_every_tokenizers_marks():
    assert all(map(head_statistics.is_punctuation, [".", "##,", "Ġ(", "▁!", "..."]))
    assert not any(map(head_statistics.is_punctuation, ["##s", "Ġ", "▁", "a.", "", "$", "##"]))


def test_kept_by_weights_and_texts(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tmp_path / "runs"))
    tiny_models.save(tmp_path / "a")
    opened = []

    def open_model(path):
        opened.append(path)
        return load(path, device="cpu")

    ask = head_statistics.head_statistics_cached
    assert ask(tmp_path / "a", TEXTS, kept_only=True) is None
    first = ask(tmp_path / "a", TEXTS, open_model=open_model)
    again = ask(tmp_path / "a", TEXTS, open_model=open_model)
    assert len(opened) == 1
    assert first.equals(again) and first.equals(ask(tmp_path / "a", TEXTS, kept_only=True))
    ask(tmp_path / "a", TEXTS[:1], open_model=open_model)
    assert len(opened) == 2
    tiny_models.save(tmp_path / "a", seed=1)
    assert not ask(tmp_path / "a", TEXTS, open_model=open_model).equals(first)


# -- distances --------------------------------------------------------------------------------


def test_distances_are_scipys(model, monkeypatch):
    texts = TEXTS[:3]
    monkeypatch.setattr(attention_sample, "MOST_WEIGHTS", 1)
    found = head_distances.head_distances(model, texts, rows=99)
    maps = [attention_maps(model, *([text] if isinstance(text, str) else text)).weights
            for text in texts]
    expected = np.zeros((12, 12))
    for a in range(12):
        for b in range(12):
            values = [jensenshannon(m.reshape(12, *m.shape[2:])[a], m.reshape(12, *m.shape[2:])[b],
                                    axis=1, base=2) ** 2 for m in maps]
            expected[a, b] = np.concatenate(values).mean()
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert (np.diag(found) == 0).all() and (found == found.T).all()


def test_distances_of_planted_heads(model, monkeypatch):
    planted = plant(monkeypatch, head_distances, model,
                    [beside(1), beside(1), on("[CLS]"), mixed(beside(1), on("[CLS]"))])
    found = head_distances.head_distances(planted, ["the cat sat on the mat"], rows=99)
    # 8 rows, 6 of which look at different pieces; half and half against either is .311 bits.
    half = -(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25)) - 0.5
    np.testing.assert_allclose(found, np.array([
        [0, 0, 1, half], [0, 0, 1, half], [1, 1, 0, half], [half, half, half, 0]]), atol=1e-6)
    sampled = head_distances.head_distances(planted, ["the cat sat on the mat"], rows=3)
    assert (sampled == head_distances.head_distances(planted, ["the cat sat on the mat"], 3)).all()


def test_the_map_keeps_plane_distances_and_can_be_turned():
    points = np.random.default_rng(0).normal(size=(6, 2))
    squared = ((points[:, None] - points[None]) ** 2).sum(-1)
    made = head_distances.head_map(squared)
    again = ((made.points[:, None] - made.points[None]) ** 2).sum(-1)
    np.testing.assert_allclose(again, squared, atol=1e-9)
    assert made.shown == pytest.approx(1)
    turned = head_distances.head_map(squared, like=points)
    np.testing.assert_allclose(turned.points, points - points.mean(0), atol=1e-9)
    # A simplex of four points: two of its three equal axes are kept.
    assert head_distances.head_map(1 - np.eye(4)).shown == pytest.approx(2 / 3)
    assert head_distances.head_map(np.zeros((1, 1))).points.tolist() == [[0, 0]]
    assert head_distances.head_map(np.zeros((3, 3))).shown == 1


def test_the_map_of_real_divergences_has_no_negative_axis(model):
    found = head_distances.head_distances(model, TEXTS, rows=4)
    centre = np.eye(12) - 1 / 12
    assert np.linalg.eigvalsh(-centre @ found @ centre).min() > -1e-9


def test_heads_that_changed_most_come_first(model, tmp_path):
    changed = tiny_models.save(tmp_path)
    with torch.no_grad():  # only head 2-3 gets another query, everything after layer 2 moves little
        changed.bert.encoder.layer[1].attention.self.query.weight[8:12] *= -1
    changed.save_pretrained(tmp_path)
    other = load(tmp_path, device="cpu")
    table = head_distances.changed_heads(model, other, TEXTS)
    assert table["divergence"].is_monotonic_decreasing and len(table) == 12
    values = table.set_index(["layer", "head"])["divergence"]
    assert (values[1] == 0).all() and (values[2].drop(3) == 0).all() and values[2, 3] > 0.05
    maps = [attention_maps(m, "a dog").weights[1, 2] for m in (model, other)]
    alone = head_distances.changed_heads(model, other, ["a dog"]).set_index(["layer", "head"])
    assert alone["divergence"][2, 3] == pytest.approx(
        (jensenshannon(*maps, axis=1, base=2) ** 2).mean(), abs=1e-6)


def test_other_pieces_or_heads_cannot_be_compared(model, tmp_path):
    tiny_models.save(tmp_path / "small", num_attention_heads=2)
    with pytest.raises(BertScopeError, match="3 layers with 4 heads each, the other 3 with 2"):
        head_distances.changed_heads(model, load(tmp_path / "small", device="cpu"), TEXTS)
    cut = dataclasses.replace(model, text_encoder=load(tmp_path / "small", "cpu").text_encoder)
    assert encode(cut, "a").tokens == encode(model, "a").tokens
    cut.text_encoder.max_length = 5
    with pytest.raises(BertScopeError, match="different pieces"):
        head_distances.changed_heads(model, cut, TEXTS)


def test_distances_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tmp_path / "runs"))
    for name, seed in (("a", 0), ("b", 1)):
        tiny_models.save(tmp_path / name, seed=seed)
    found = head_distances.head_distances_cached(tmp_path / "a", TEXTS)
    assert (found == head_distances.head_distances_cached(tmp_path / "a", TEXTS,
                                                          kept_only=True)).all()
    assert head_distances.head_distances_cached(tmp_path / "b", TEXTS, kept_only=True) is None
    table = head_distances.changed_heads_cached(tmp_path / "a", tmp_path / "b", TEXTS)
    assert table.equals(head_distances.changed_heads_cached(tmp_path / "a", tmp_path / "b", TEXTS,
                                                            kept_only=True))
