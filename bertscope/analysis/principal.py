"""Principal components, which maps are drawn along and begin with."""

from __future__ import annotations

import numpy as np


def principal(vectors: np.ndarray, count: int) -> tuple[np.ndarray, list[float]]:
    """The first principal components: scores, float64 [N, count], and each one's share of the
    variance (Pearson 1901). Exact: by the covariance where there are many more vectors than
    numbers, else by the singular values."""
    from sklearn.decomposition import PCA

    many = len(vectors) > 4 * vectors.shape[1]
    pca = PCA(count, svd_solver="covariance_eigh" if many else "full")
    coordinates = pca.fit_transform(np.asarray(vectors, np.float64))
    return coordinates, [float(share) for share in pca.explained_variance_ratio_]
