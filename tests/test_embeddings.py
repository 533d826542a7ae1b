"""Projections and similarities, against numpy and closed forms."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest
import tiny_models
from bertscope.analysis import array_cache, layouts
from bertscope.analysis.activations import encode, load, pool, run
from bertscope.analysis.embeddings import (
    anisotropy, label_agreement, nearest_on_map, neighbours, project, trustworthiness)
from bertscope.analysis.vectors import Place, count_cut, kept_vectors, text_vectors
from bertscope.errors import BertScopeError


def cloud(count=40, size=12, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(count, size)) * np.linspace(3, 0.2, size) + 5


def clusters(count=25, size=70):
    """Three tight groups far apart, with the group of each point."""
    random = np.random.default_rng(1)
    centres = np.eye(3, size) * 20
    label = np.repeat(np.arange(3), count)
    return centres[label] + random.normal(size=(3 * count, size)) * 0.5, label


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_pca_is_the_singular_value_decomposition(dimensions):
    vectors = cloud()
    result = project(vectors.astype(np.float32), "pca", dimensions)
    centred = vectors - vectors.mean(0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    expected = (u * s)[:, :dimensions]
    signs = np.sign((expected * result.coordinates).sum(0))
    np.testing.assert_allclose(result.coordinates, expected * signs, atol=1e-4)
    np.testing.assert_allclose(result.explained, (s ** 2 / (s ** 2).sum())[:dimensions], rtol=1e-5)


def test_a_flat_cloud_is_kept_whole():
    random = np.random.default_rng(0)
    flat = random.normal(size=(30, 2)) @ random.normal(size=(2, 9))
    result = project(flat, "pca")
    assert sum(result.explained) == pytest.approx(1)
    assert result.trustworthiness == pytest.approx(1)
    np.testing.assert_allclose(distances(result.coordinates), distances(flat), atol=1e-8)


def distances(points):
    return np.linalg.norm(points[:, None] - points[None], axis=-1)


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_groups_stay_groups(method):
    vectors, label = clusters()
    result = project(vectors, method)
    assert result.coordinates.shape == (75, 2)
    between = distances(result.coordinates)
    np.fill_diagonal(between, np.inf)
    assert (label[between.argmin(1)] == label).all()
    assert result.trustworthiness > 0.6
    assert (result.explained is None) == (method == "tsne")


def test_tsne_keeps_neighbours_that_pca_loses():
    vectors = np.random.default_rng(3).normal(size=(120, 10))
    assert project(vectors, "tsne").trustworthiness > project(vectors, "pca").trustworthiness + 0.1


def test_a_seed_decides():
    vectors = cloud()
    one, same = (project(vectors, "tsne", seed=3).coordinates for _ in range(2))
    np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize("method", ["pca", "tsne"])
@pytest.mark.parametrize("vectors", [cloud(3), cloud(4), cloud(5, 2), cloud(3).repeat(4, axis=0)],
                         ids=["three", "four", "narrow", "duplicates"])
def test_small_and_repeated(method, vectors):
    result = project(vectors, method)
    assert np.isfinite(result.coordinates).all() and result.coordinates.shape == (len(vectors), 2)
    assert 0 <= result.trustworthiness <= 1


@pytest.mark.parametrize(("vectors", "method", "dimensions", "sentence"), [
    (cloud(2), "pca", 2, "at least 3 texts; there are 2"),
    (np.zeros((0, 4)), "tsne", 2, "there are 0"),
    (np.full((5, 4), np.nan), "pca", 2, "not finite"),
    (np.where(np.eye(5, 4) > 0, np.inf, 0), "tsne", 2, "not finite"),
    (np.ones((5, 4)), "pca", 2, "the same vector"),
    (np.ones((5, 4)), "tsne", 2, "the same vector"),
    (cloud(), "isomap", 2, "'pca', 'tsne' or 'umap'"),
    (cloud(), "pca", 4, "cannot be drawn in 4 dimensions"),
    (cloud(9, 1), "pca", 2, "cannot be drawn in 2 dimensions"),
])
def test_what_cannot_be_projected(vectors, method, dimensions, sentence):
    with pytest.raises(BertScopeError, match=sentence):
        project(vectors, method, dimensions)


def test_neighbours_by_brute_force():
    vectors = cloud() - 5
    for index in (0, 7, 39):
        cosine = [float(v @ vectors[index] / np.linalg.norm(v) / np.linalg.norm(vectors[index]))
                  for v in vectors]
        order = sorted((i for i in range(40) if i != index), key=lambda i: -cosine[i])
        found = neighbours(vectors, index, 6)
        assert [i for i, _ in found] == order[:6]
        np.testing.assert_allclose([c for _, c in found], [cosine[i] for i in order[:6]], atol=1e-9)
    assert len(neighbours(vectors, 0, 1000)) == 39 and neighbours(vectors, 0, 0) == []
    assert neighbours([[1, 0], [0, 0], [2, 0]], 0, 2) == [(2, 1.0), (1, 0.0)]
    with pytest.raises(BertScopeError, match="no vector 40"):
        neighbours(vectors, 40)


def test_anisotropy_of_known_clouds():
    assert anisotropy(np.ones((50, 4)) * np.arange(1, 51)[:, None]) == pytest.approx(1)
    assert anisotropy(np.eye(4)) == 0
    assert anisotropy(np.array([[1, 0], [-1, 0]])) == -1
    isotropic = np.random.default_rng(0).normal(size=(3000, 20))
    # The mean of 1000 cosines of standard deviation 1 / sqrt(20).
    assert abs(anisotropy(isotropic)) < 5 / np.sqrt(20 * 1000)
    shifted = isotropic + 2
    expected = pairwise_mean(shifted[:300])
    assert anisotropy(shifted[:300]) == pytest.approx(expected, abs=0.02)
    assert anisotropy(shifted[:40], pairs=1000) == pytest.approx(pairwise_mean(shifted[:40]))
    with pytest.raises(BertScopeError, match="at least 2"):
        anisotropy(np.ones((1, 3)))


def pairwise_mean(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    return (cosine.sum() - len(unit)) / (len(unit) * (len(unit) - 1))


# -- how far a map can be trusted -------------------------------------------------------------


@pytest.mark.parametrize("count, size, k", [(4, 3, 1), (30, 8, 5), (613, 20, 5), (613, 20, 12)])
def test_trustworthiness_is_scikit_learns(count, size, k):
    from sklearn.manifold import trustworthiness as reference

    random = np.random.default_rng(count)
    vectors, drawn = random.normal(size=(count, size)) + 50, random.normal(size=(count, 2))
    for coordinates in (drawn, vectors[:, :2], vectors[:, :3]):
        assert trustworthiness(vectors, coordinates, k) == pytest.approx(
            reference(vectors, coordinates, n_neighbors=k), abs=1e-12)


def test_a_sample_of_points_is_near_to_all_of_them():
    vectors = np.random.default_rng(5).normal(size=(1500, 6))
    whole = trustworthiness(vectors, vectors[:, :2])
    assert trustworthiness(vectors, vectors[:, :2], sample=500) == pytest.approx(whole, abs=0.02)
    assert 0.6 < whole < 0.95


def test_near_on_the_map_and_near_in_truth():
    vectors, label = clusters()
    share, chance = label_agreement(vectors, label)
    assert share == 1 and chance == pytest.approx(24 / 74)
    mixed = np.random.default_rng(0).permutation(label)
    assert abs(label_agreement(vectors, mixed)[0] - chance) < 0.1
    points = np.array([[0, 0], [3, 0], [1, 0], [0, 2], [0, 0]], float)
    assert nearest_on_map(points, 0, 3) == [4, 2, 3]
    assert nearest_on_map(points, 1, 9) == [2, 0, 4, 3]


def test_label_agreement_by_a_slow_loop():
    random = np.random.default_rng(2)
    vectors, label = random.normal(size=(23, 4)), random.choice(["a", "b", "c"], 23)
    right = [label[j] == label[i] for i in range(23) for j, _ in neighbours(vectors, i, 5)]
    assert label_agreement(vectors, label)[0] == pytest.approx(np.mean(right))


# -- t-SNE and UMAP ---------------------------------------------------------------------------


def test_umap_is_seeded_keeps_groups_and_goes_on_from_a_map():
    pytest.importorskip("umap")
    vectors, label = clusters(12, 20)
    told = []
    one = project(vectors, "umap", seed=3, progress=lambda m, share: told.append(m))
    same = project(vectors, "umap", seed=3)
    np.testing.assert_array_equal(one.coordinates, same.coordinates)
    between = distances(one.coordinates)
    np.fill_diagonal(between, np.inf)
    assert (label[between.argmin(1)] == label).all()
    assert any("UMAP" in message for message in told)
    other = project(vectors, "umap", seed=4)
    assert not np.allclose(one.coordinates, other.coordinates)
    # The groups stay where they are if the layout goes on from another's mirror image.
    mirrored = one.coordinates * [-1, 1]
    on = project(vectors, "umap", seed=3, start=mirrored).coordinates
    near, far = ([np.array([points[label == g].mean(0) for g in range(3)]) for points in
                  (on, target)] for target in (mirrored, one.coordinates))
    assert apart(*near) < apart(*far)
    assert project(vectors[:, :8], "umap", dimensions=3).coordinates.shape == (36, 3)
    for small in (cloud(3), cloud(4), cloud(3).repeat(4, axis=0)):
        assert np.isfinite(project(small, "umap").coordinates).all()


def apart(first, second):
    """How far two centred sets of points are apart, relative to their size."""
    first, second = ((m - m.mean(0)) / (m - m.mean(0)).std() for m in (first, second))
    return float(((first - second) ** 2).sum())


def test_tsne_goes_on_from_a_map():
    vectors, _ = clusters(20, 30)
    before = project(vectors, "tsne").coordinates
    mirrored = before * [1, -1]
    after = project(vectors + 0.01, "tsne", start=mirrored).coordinates
    assert apart(after, mirrored) < 0.2 * apart(after, before)


def test_a_map_in_the_other_process_is_the_same_and_can_be_cancelled(monkeypatch):
    vectors = cloud(60)
    here = project(vectors, "tsne", seed=1).coordinates
    monkeypatch.setattr(layouts, "SMALL", 10)
    told = []
    there = project(vectors, "tsne", seed=1, progress=lambda m, s: told.append(s)).coordinates
    np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-3)
    assert told == sorted(told) and told[-1] > 0.5

    def stop(message, share):
        if share > 0:
            raise KeyboardInterrupt

    child = layouts._PROCESS.child
    with pytest.raises(KeyboardInterrupt):
        project(cloud(3000, 40), "tsne", progress=stop)
    assert child.returncode is not None and layouts._PROCESS.child is None
    with pytest.raises(BertScopeError, match="cannot draw"):  # and the next one is asked anew
        layouts.layout(np.full((30, 4), np.nan), "tsne")
    layouts._PROCESS.end()


def test_the_other_process_ends_with_its_parent():
    script = ("import os, numpy as np; from bertscope.analysis import layouts; layouts.SMALL = 1;"
              "layouts.layout(np.random.default_rng(0).normal(size=(20, 3)), 'tsne');"
              "print(layouts._PROCESS.child.pid, flush=True); os._exit(1)")
    pid = int(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and os.path.exists(f"/proc/{pid}") and \
            ") Z" not in open(f"/proc/{pid}/stat").read():
        time.sleep(0.1)
    assert not os.path.exists(f"/proc/{pid}") or ") Z" in open(f"/proc/{pid}/stat").read()


# -- vectors of texts, kept on disk -----------------------------------------------------------

TEXTS = ["the cat sat on the mat .", "A dog walked", "unbelievable ! The dog played on the house",
         "states of america", "Dog"]


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tmp_path / "runs"))
    tiny_models.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("how", ["cls", "mean"])
def test_vectors_are_those_of_pool_on_every_layer(checkpoint, how, monkeypatch):
    monkeypatch.setattr("bertscope.analysis.vectors.CHUNK", 2)
    told = []
    vectors = text_vectors(checkpoint, TEXTS, Place(how), lambda m, s: told.append((m, s)))
    assert vectors.shape == (4, 5, 16) and vectors.dtype == np.float32
    model = load(checkpoint)
    for layer in range(4):
        np.testing.assert_allclose(vectors[layer], pool(model, TEXTS, layer, how), atol=1e-5)
    assert told[-1] == ("5 of 5 texts", 1.0) and [s for _, s in told] == sorted(s for _, s in told)


def test_a_word_or_a_piece_is_found_by_its_place_in_the_text(checkpoint):
    model = load(checkpoint)
    states = [run(model, encode(model, text), heads=False).hidden_states for text in TEXTS]
    dog = text_vectors(checkpoint, TEXTS, Place("word", " DOG "))
    assert np.isnan(dog[:, [0, 3]]).all()
    for row, pieces in ((1, [2]), (2, None), (4, [1])):
        if pieces is None:
            pieces = [encode(model, TEXTS[2]).tokens.index("dog")]
        np.testing.assert_allclose(dog[:, row], states[row][:, pieces].mean(1), atol=1e-5)
    parts = text_vectors(checkpoint, TEXTS, Place("word", "unbelievable"))
    np.testing.assert_allclose(parts[:, 2], states[2][:, 1:4].mean(1), atol=1e-5)  # un ##believ ##able
    assert encode(model, TEXTS[2]).tokens[1:4] == ["un", "##believ", "##able"]
    second = text_vectors(checkpoint, TEXTS, Place("piece", piece=2))
    last = text_vectors(checkpoint, TEXTS, Place("piece", piece=-1))
    assert np.isnan(second[:, 4]).all()
    np.testing.assert_allclose(second[:, 0], states[0][:, 2], atol=1e-5)
    np.testing.assert_allclose(last[:, 1], states[1][:, -2], atol=1e-5)
    spans = text_vectors(checkpoint, TEXTS[:2], [(4, 7), (2, 5)])
    np.testing.assert_allclose(spans[:, 0], states[0][:, 2], atol=1e-5)
    np.testing.assert_allclose(spans[:, 1], states[1][:, 2], atol=1e-5)


def test_what_is_kept_is_not_computed_again(checkpoint, tmp_path, caplog):
    def never(path):
        raise AssertionError("opened again")

    assert kept_vectors(checkpoint, TEXTS, Place("mean")) is None
    first = text_vectors(checkpoint, TEXTS, Place("mean"))
    assert not first.flags.writeable
    first = first.copy()
    again = text_vectors(checkpoint, TEXTS, Place("mean"), open_model=never)
    np.testing.assert_array_equal(first, again)
    moved = tmp_path / "elsewhere"
    checkpoint.rename(moved)  # the weights decide, not the name
    np.testing.assert_array_equal(text_vectors(moved, TEXTS, Place("mean"), open_model=never), first)
    for texts, place in ((TEXTS[::-1], Place("mean")), (TEXTS, Place("cls")),
                         (TEXTS, Place("piece")), (TEXTS, [(0, 1)] * 5)):
        assert kept_vectors(moved, texts, place) is None
    (file,) = (tmp_path / "runs" / ".analysis").glob("*.npy")
    file.write_bytes(file.read_bytes()[:-100])
    np.testing.assert_array_equal(text_vectors(moved, TEXTS, Place("mean")), first)
    assert "computed again" in caplog.text


def test_cancelling_leaves_nothing_behind(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr("bertscope.analysis.vectors.CHUNK", 2)

    def stop(message, share):
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        text_vectors(checkpoint, TEXTS, Place("cls"), stop)
    assert list((tmp_path / "runs" / ".analysis").iterdir()) == []
    assert kept_vectors(checkpoint, TEXTS, Place("cls")) is None


def test_where_nothing_can_be_kept_the_vectors_come_all_the_same(checkpoint, tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / ".analysis").write_text("a file where the folder should be")
    vectors = text_vectors(checkpoint, TEXTS, Place("cls"))
    np.testing.assert_allclose(vectors[2], pool(load(checkpoint), TEXTS, 2, "cls"), atol=1e-5)


def test_a_folder_keeps_so_much_and_forgets_the_oldest(tmp_path, monkeypatch):
    monkeypatch.setattr(array_cache, "MOST_BYTES", 10_000)

    def keep(number):
        return array_cache.cached_array(tmp_path, "vectors", {"n": number}, lambda: (
            (1000,), lambda array: array.__setitem__(slice(None), number)))

    assert keep(0)[0] == 0
    (tmp_path / "probe-x.parquet").write_bytes(b"x" * 50_000)  # not ours to remove
    keep(1)
    os.utime(next(tmp_path.glob("vectors-*.npy")))
    for file in tmp_path.glob("*.npy"):
        os.utime(file, (1, 1 + ("vectors" in file.name)))
    array_cache.kept_array(tmp_path, "vectors", {"n": 0})  # looked at: younger now
    keep(2)
    kept = [array_cache.kept_array(tmp_path, "vectors", {"n": n}) is not None for n in range(3)]
    assert kept == [True, False, True] and (tmp_path / "probe-x.parquet").exists()


def test_texts_that_have_nothing_there(checkpoint):
    with pytest.raises(BertScopeError, match="None of these texts"):
        text_vectors(checkpoint, TEXTS, Place("word", "zebra"))
    vectors = text_vectors(checkpoint, ["cat", " ", "dog"], Place("cls"))
    assert np.isnan(vectors[:, 1]).all() and np.isfinite(vectors[:, [0, 2]]).all()
    for how, more in (("max", {}), ("word", {"word": " "}), ("piece", {"piece": 0})):
        with pytest.raises(BertScopeError):
            Place(how, **more)


def test_cut_texts_are_counted_as_encoding_cuts_them(checkpoint):
    model = load(checkpoint)
    texts = ["cat " * n for n in (1, 37, 38, 39, 500)] + ["", "[SEP]" * 3]
    assert count_cut(model, texts) == sum(encode(model, t).truncated for t in texts if t.strip())
    assert count_cut(model, texts) == 2


def test_weights_that_have_diverged(checkpoint):
    import torch
    from safetensors.torch import load_file, save_file

    weights = load_file(checkpoint / "model.safetensors")
    weights["bert.encoder.layer.1.output.dense.weight"][:] = torch.nan
    save_file(weights, checkpoint / "model.safetensors", {"format": "pt"})
    with pytest.raises(BertScopeError, match="diverged"):
        text_vectors(checkpoint, TEXTS, Place("cls"))
