"""The process that makes maps for ``layouts``: vectors in by the standard input, a map out.

It ends when its parent is gone, or when it was asked nothing for ten minutes.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys
import threading
import time

import numpy as np

IDLE_SECONDS = 600
#: What t-SNE and UMAP print as they go on: "Iteration 250: error", "12%|####".
_ITERATION = re.compile(r"Iteration (\d+): error")
_EPOCHS = re.compile(r"(\d+)%\|")
ITERATIONS = 1000
LOADING = {"tsne": "loading t-SNE", "umap": "loading UMAP, which compiles itself at its first use"}


class Listener:
    """A file for what a method prints; passes on how far it is."""

    def __init__(self, say):
        self.say = say

    def write(self, text: str) -> int:
        for found in _ITERATION.finditer(text):
            self.say({"message": f"iteration {found[1]} of about {ITERATIONS:,}",
                      "share": min(int(found[1]) / ITERATIONS, 1.0)})
        for found in _EPOCHS.finditer(text):
            self.say({"message": "moving the points", "share": int(found[1]) / 100})
        return len(text)

    def flush(self) -> None:
        pass


def main() -> None:
    out, parent = os.fdopen(os.dup(1), "wb"), os.getppid()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()

    def say(line: dict, data: bytes = b"") -> None:
        out.write(json.dumps(line).encode() + b"\n" + data)
        out.flush()

    while select.select([sys.stdin.buffer], [], [], IDLE_SECONDS)[0]:
        line = sys.stdin.buffer.readline()
        if not line:
            return
        answer(json.loads(line), sys.stdin.buffer, say)


def answer(asked: dict, pipe, say) -> None:
    """Make one map and say it, or what went wrong."""
    from bertscope.analysis import layouts
    from bertscope.errors import BertScopeError

    rows, columns = asked["shape"]
    vectors = np.frombuffer(pipe.read(4 * rows * columns), np.float32).reshape(rows, columns)
    start = None
    if asked["start"]:
        dimensions = asked["dimensions"]
        start = np.frombuffer(pipe.read(8 * rows * dimensions), np.float64).reshape(rows, dimensions)
    say({"message": LOADING[asked["method"]], "share": 0.0})
    try:
        made = layouts.quietly(layouts.METHODS[asked["method"]], Listener(say), vectors,
                                asked["dimensions"], asked["seed"], start)
    except BertScopeError as error:
        say({"error": str(error)})
        return
    except Exception as error:  # whatever a library makes of strange vectors
        say({"error": f"{asked['method']} cannot draw these vectors: {error}"})
        return
    made = np.ascontiguousarray(made, np.float64)
    say({"shape": made.shape}, made.tobytes())


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


if __name__ == "__main__":
    main()
