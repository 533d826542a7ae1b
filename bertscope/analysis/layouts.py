"""t-SNE and UMAP: maps that keep neighbourhoods. Small ones here, others in a process of their own.

Such a map takes from a second to some minutes and cannot be interrupted from within; a process can
be. UMAP is also not made for several threads at once, and compiles itself at its first use, so the
process is kept for the next map and ends when it was idle for long.
"""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np

from bertscope.analysis.principal import principal
from bertscope.errors import BertScopeError

#: A t-SNE of so many points takes a second or two.
SMALL = 400
#: To which PCA reduces before t-SNE and UMAP (van der Maaten and Hinton 2008, section 4.2: 30).
REDUCED = 50
Progress = Callable[[str, float | None], None]


def tsne(vectors: np.ndarray, dimensions: int = 2, seed: int = 0, start: np.ndarray | None = None,
         ) -> np.ndarray:
    """float64 [N, d] (van der Maaten and Hinton 2008; Barnes-Hut, 2014).

    The perplexity is 30, or a third of N - 1 where that is less. Without ``start`` it begins with
    the principal components (Kobak and Linderman 2021). With ``start``, a map [N, d] of the same
    texts, it goes on from there, without the early exaggeration that would tear it apart.
    """
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(vectors) - 1) / 3)
    more = {"init": "pca"}
    if start is not None:
        more = {"init": _scaled(start, 1.0), "early_exaggeration": 1.0, "max_iter": 500}
    model = TSNE(dimensions, perplexity=perplexity, random_state=seed, verbose=2, **more)
    return model.fit_transform(_reduced(vectors)).astype(np.float64)


def umap(vectors: np.ndarray, dimensions: int = 2, seed: int = 0, start: np.ndarray | None = None,
         ) -> np.ndarray:
    """float64 [N, d] (McInnes, Healy and Melville 2018): 15 neighbours, or N - 1 where that is
    less, minimal distance 0.1. It begins with the principal components, or with the map ``start``.

    Raises:
        BertScopeError: the package umap-learn is not installed.
    """
    try:
        from umap import UMAP
    except ImportError:
        raise BertScopeError("UMAP needs a package: pip install umap-learn.") from None
    reduced = _reduced(vectors)
    begin = principal(reduced, dimensions)[0] if start is None else np.asarray(start, np.float64)
    model = UMAP(n_neighbors=min(15, len(vectors) - 1), n_components=dimensions,
                 init=_scaled(begin, 3.0), random_state=seed, n_jobs=1, verbose=True)
    return model.fit_transform(reduced).astype(np.float64)


METHODS = {"tsne": tsne, "umap": umap}


def layout(vectors: np.ndarray, method: str, dimensions: int = 2, seed: int = 0,
           start: np.ndarray | None = None, progress: Progress | None = None) -> np.ndarray:
    """The map of N vectors by ``"tsne"`` or ``"umap"``, float64 [N, d].

    Args:
        vectors: [N, H], N >= 3.
        start: a map of the same N to begin with.
        progress: is called at least every half second; what it raises ends the work at once.

    Raises:
        BertScopeError: UMAP is not installed, or the work failed.
    """
    if method == "tsne" and len(vectors) <= SMALL:
        with open(os.devnull, "w") as silence:
            return quietly(tsne, silence, vectors, dimensions, seed, start)
    return _PROCESS.ask(vectors, method, dimensions, seed, start, progress or (lambda m, s: None))


def quietly(function, sink, *arguments):
    """Call, with what is printed going to ``sink``."""
    from contextlib import redirect_stderr, redirect_stdout

    with redirect_stdout(sink), redirect_stderr(sink):
        return function(*arguments)


def _reduced(vectors: np.ndarray) -> np.ndarray:
    """float32 [N, at most 50]: exact principal components where there are more numbers."""
    vectors = np.asarray(vectors, np.float64)
    if min(vectors.shape) > REDUCED:
        vectors = principal(vectors, REDUCED)[0]
    return vectors.astype(np.float32)


def _scaled(layout: np.ndarray, size: float) -> np.ndarray:
    """Centred, the first axis with this standard deviation; float32, as both methods want it."""
    centred = layout - layout.mean(0)
    spread = float(centred.std(axis=0).max())
    return (centred * (size / spread if spread else 1.0)).astype(np.float32)


# -- the process ------------------------------------------------------------------------------


class _Process:
    """One child at a time, asked in turn."""

    def __init__(self):
        self.child: subprocess.Popen | None = None
        self.turn = threading.Lock()

    def ask(self, vectors, method, dimensions, seed, start, progress: Progress) -> np.ndarray:
        while not self.turn.acquire(timeout=0.4):
            progress("another map is being made, this one is next", None)
        try:
            progress("starting", 0.0)
            return self._answer(vectors, method, dimensions, seed, start, progress)
        except OSError as error:
            self.end()
            raise BertScopeError(f"The process that makes maps has failed: {error}.") from None
        except BaseException as error:  # cancelled: the child must not go on
            if not isinstance(error, BertScopeError):
                self.end()
            raise
        finally:
            self.turn.release()

    def _answer(self, vectors, method, dimensions, seed, start, progress) -> np.ndarray:
        self._begin()
        vectors = np.ascontiguousarray(vectors, np.float32)
        head = {"method": method, "dimensions": dimensions, "seed": seed, "shape": vectors.shape,
                "start": start is not None}
        with io.BufferedWriter(io.FileIO(os.dup(self.child.stdin.fileno()), "w")) as send:
            send.write(json.dumps(head).encode() + b"\n" + vectors.tobytes())
            if start is not None:
                send.write(np.ascontiguousarray(start, np.float64).tobytes())
        said = {"message": "starting", "share": 0.0}
        pipe = self.child.stdout
        while "message" in said:
            progress(said["message"], said["share"])
            if select.select([pipe], [], [], 0.4)[0]:
                line = pipe.readline()
                if not line:
                    raise OSError("it ended, perhaps for want of memory")
                said = json.loads(line)
        if "error" in said:
            raise BertScopeError(said["error"])
        data = io.BufferedReader(io.FileIO(os.dup(pipe.fileno()))).read(
            8 * int(np.prod(said["shape"])))
        return np.frombuffer(data, np.float64).reshape(said["shape"]).copy()

    def _begin(self) -> None:
        """A child that is alive. Its pipes have no buffer, so that ``select`` sees what is there."""
        if self.child is not None and self.child.poll() is not None:
            self.end()
        if self.child is None:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "bertscope.analysis.layout_process"], bufsize=0,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def end(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child.stdin.close()
            self.child.stdout.close()
        self.child = None


_PROCESS = _Process()
