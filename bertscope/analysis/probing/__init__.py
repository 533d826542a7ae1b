"""Probing: what can be read from each layer, and when in the training did it get there?

    from bertscope.analysis import probing

    result = probing.probe("demo", "en_ewt/", ["upos"], seeds=(0, 1, 2), codelength=True)
    result.summary          # by layer: accuracy, interval, selectivity, bits, baselines, best set
    probing.save(result, "upos/")

A task is ``Items``; ``open_source`` makes them of treebanks and tables. ``study.study`` probes any Items
by a ``Protocol``. The names below are imported when they are first used.
"""

from __future__ import annotations

import importlib

_WHERE = {
    "cell": ("Cell",),
    "gold": ("Gold", "data"),
    "items": ("Items",),
    "protocol": ("Protocol",),
    "report": ("record", "save"),
    "request": ("Request", "probe", "reproduce"),
    "result": ("Result",),
    "sources": ("Source", "open_source"),
    "splits": ("split_by_document",),
    "study": ("Subject",),
    "tasks": ("TaskInfo", "available_tasks", "title"),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str):
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
