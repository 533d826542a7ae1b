"""Projections and similarities, against numpy and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from bertscope.analysis.embeddings import anisotropy, neighbours, project
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
    (cloud(), "umap", 2, "'pca' or 'tsne'"),
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
