"""The same texts at several steps or layers as one sequence of maps, made so that points keep their
place as far as they can."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bertscope.analysis import layouts
from bertscope.analysis.alignment import Path, chained, jump, one_plane, outwards, same_size
from bertscope.analysis.embeddings import METHODS, trustworthiness, varies
from bertscope.analysis.principal import principal
from bertscope.errors import BertScopeError

#: Texts of which t-SNE or UMAP draws a map for every step.
MOST_NEIGHBOURING = 1000
Progress = Callable[[str, float | None], None]


def lay(steps: Sequence[np.ndarray], method: str = "pca", plane: bool = False, reference: int = -1,
        dimensions: int = 2, equal: bool = False, seed: int = 0, progress: Progress | None = None,
        ) -> Path:
    """Lay out N texts at S steps.

    PCA makes each step's own map and turns it onto its neighbour's, or with ``plane`` takes the one
    plane in which all steps together vary most. t-SNE and UMAP begin each map from its neighbour's
    and are turned as well. Both go outwards from the reference, whose map stays as it is.

    Args:
        steps: S arrays [N, H]; H may differ from step to step where ``plane`` is not asked for.
        reference: which step is laid first; -1 is the last.
        equal: draw every map in the same size; else sizes can be compared (by PCA).

    Raises:
        BertScopeError: fewer than three texts, or more than ``MOST_NEIGHBOURING`` for t-SNE and
            UMAP; values that are not finite; nothing varies at any step.
    """
    if method not in METHODS:
        raise BertScopeError(f"Vectors are projected by 'pca', 'tsne' or 'umap', not {method!r}.")
    steps = [np.asarray(step, np.float64) for step in steps]
    reference = reference % len(steps)
    _check(steps, method, dimensions)
    told = progress or (lambda message, share: None)
    kept = None
    if method == "pca" and plane:
        laid, kept = one_plane(steps, dimensions)
        before = after = jump(laid)
    else:
        maps = [np.zeros((len(steps[0]), dimensions)) for _ in steps]
        shares = [0.0] * len(steps)
        order = outwards(len(steps), reference)
        for done, place in enumerate(order):
            told(f"map {done + 1} of {len(steps)}", done / len(steps))
            if varies(steps[place]):
                near = _near(maps, order[:done], place)
                maps[place], shares[place] = _one(
                    steps[place], method, dimensions, seed, near,
                    lambda m, s: told(f"map {done + 1} of {len(steps)}, {m}",
                                      (done + (s or 0.0)) / len(steps)))
        if method == "pca":
            kept = shares
        before = jump(np.stack(maps))
        laid = chained(maps, reference)
        after = jump(laid)
    trust = tuple(trustworthiness(step, at) if varies(step) else float("nan")
                  for step, at in zip(steps, laid))
    return Path(same_size(laid) if equal else laid, tuple(kept) if kept is not None else None,
                trust, (before, after))


def farthest(coordinates: np.ndarray, count: int) -> list[int]:
    """The points of [S, N, d] that go the longest way, the longest first."""
    centred = coordinates - coordinates.mean(1, keepdims=True)
    way = np.sqrt((np.diff(centred, axis=0) ** 2).sum(2)).sum(0)
    return [int(i) for i in np.argsort(-way, kind="stable")[:count]]


def _one(vectors, method, dimensions, seed, near, progress) -> tuple[np.ndarray, float]:
    """A map, and the share of the variance that it holds (PCA)."""
    if method == "pca":
        made, shares = principal(vectors, dimensions)
        return made, sum(shares)
    return layouts.layout(vectors, method, dimensions, seed, near, progress), 0.0


def _near(maps, done: list[int], place: int) -> np.ndarray | None:
    """The map that is there already and next to ``place``, if it is of any use."""
    near = min(done, key=lambda other: abs(other - place), default=None)
    return maps[near] if near is not None and maps[near].any() else None


def _check(steps: list[np.ndarray], method: str, dimensions: int) -> None:
    count = len(steps[0])
    if count < 3:
        raise BertScopeError(f"This needs at least 3 texts; there are {count}.")
    if dimensions > min(count, *(step.shape[1] for step in steps)):
        raise BertScopeError(f"These vectors cannot be drawn in {dimensions} dimensions.")
    if method != "pca" and count > MOST_NEIGHBOURING:
        raise BertScopeError(f"t-SNE and UMAP draw the steps of {MOST_NEIGHBOURING:,} texts at "
                             f"most; there are {count:,}. Take fewer, or PCA.")
    if not all(np.isfinite(step).all() for step in steps):
        raise BertScopeError("Some vectors have values that are not finite: the training of this "
                             "checkpoint has diverged.")
    if not any(map(varies, steps)):
        raise BertScopeError("All of these texts have the same vector: there is nothing to spread "
                             "out.")
