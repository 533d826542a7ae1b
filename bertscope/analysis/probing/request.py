"""One question in a file: data, tasks, checkpoints, protocol and seeds, to be asked again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bertscope import runs
from bertscope.analysis.activations import load
from bertscope.analysis.probing.protocol import Protocol
from bertscope.analysis.probing.result import Result
from bertscope.analysis.probing.sources import open_source
from bertscope.analysis.probing.study import OpenModel, Subject, study
from bertscope.analysis.probing.unit import Progress
from bertscope.errors import BertScopeError


@dataclass(frozen=True)
class Request:
    """What ``bertscope probe`` is asked: see ``study`` and ``sources.open_source``.

    Attributes:
        checkpoints: runs (``demo``), steps (``demo@400``), directories, hub names.
        data: ``miniworld``, a treebank, a table, a file of SentEval.
        tasks: their names; empty for ``upos``, or of a table its own.
        every_step: all checkpoints of the runs named, instead of their newest.
        split_seed: of the split and of what tasks draw.
        apart: no word type in two parts.
        unique: no sentence in two parts, word for word.
    """

    checkpoints: tuple[str, ...]
    data: str = "miniworld"
    tasks: tuple[str, ...] = ()
    protocol: Protocol = field(default_factory=Protocol)
    seeds: tuple[int, ...] = (0,)
    every_step: bool = False
    split_seed: int = 0
    apart: bool = False
    unique: bool = False

    def subjects(self) -> list[Subject]:
        """The checkpoints that are meant.

        Raises:
            BertScopeError: there is no such run, or it has no checkpoint yet.
        """
        if not self.every_step:
            return [Subject.of(name) for name in self.checkpoints]
        found = [Subject.of(saved) for name in self.checkpoints
                 for saved in runs.open_run(name).checkpoints()]
        return found or _refuse(f"Run {self.checkpoints[0]!r} has no checkpoint yet.")

    def answer(self, progress: Progress | None = None, open_model: OpenModel = load) -> Result:
        """Open the data and probe: a ``Result`` whose record holds this request.

        Raises:
            BertScopeError: of ``open_source``, ``tasks.items`` and ``study``.
        """
        subjects = self.subjects()
        source = open_source(self.data, self.split_seed, self.unique)
        tasks = [source.items(task, self.split_seed, self.apart) for task in self.tasks or (None,)]
        found = study(subjects, tasks, self.protocol, self.seeds, progress, open_model)
        found.request = self.to_dict()
        return found

    def to_dict(self) -> dict:
        """JSON values."""
        return {**vars(self), "checkpoints": list(self.checkpoints), "tasks": list(self.tasks),
                "seeds": list(self.seeds), "protocol": self.protocol.to_dict()}

    @classmethod
    def from_dict(cls, values: dict) -> Request:
        """The inverse of ``to_dict``.

        Raises:
            BertScopeError: it is no request.
        """
        try:
            found = cls(**{**values, "protocol": Protocol.from_dict(values["protocol"]),
                           **{name: tuple(values[name]) for name in ("checkpoints", "tasks", "seeds")}})
        except (TypeError, KeyError, AttributeError):
            raise BertScopeError("This is no record of a probing.") from None
        for entries, kind in ((found.checkpoints, str), (found.tasks, str), (found.seeds, int),
                              ([found.data], str), ([found.split_seed], int)):
            if not all(isinstance(entry, kind) for entry in entries):
                raise BertScopeError("This is no record of a probing.")
        return found


def probe(checkpoints: str | Sequence[str], data: str | Path = "miniworld", tasks: str | Sequence[str] = (),
          seeds: Sequence[int] = (0,), progress: Progress | None = None, *, every_step: bool = False,
          split_seed: int = 0, apart: bool = False, unique: bool = False, **protocol) -> Result:
    """What each layer of one or several checkpoints knows: see ``Request`` for the arguments.

    Args:
        protocol: settings of ``Protocol`` by name, for example ``max_train=20000, mix=True``.

    Raises:
        BertScopeError: there is no such checkpoint, data, task or setting.
    """
    names = (checkpoints,) if isinstance(checkpoints, str) else tuple(map(str, checkpoints))
    tasks = (tasks,) if isinstance(tasks, str) else tasks
    return Request(names, str(data), tuple(tasks), Protocol.from_dict(protocol), tuple(seeds),
                   every_step, split_seed, apart, unique).answer(progress)


def reproduce(path: str | Path, progress: Progress | None = None, open_model: OpenModel = load,
              ) -> tuple[Result, list[str]]:
    """Ask again what a record (``report.record``) holds, and say what is different now.

    Returns:
        The result, and a sentence for each checkpoint, task or number that is not as it was.

    Raises:
        BertScopeError: the file cannot be read or is no record; as ``Request.answer``.
    """
    from bertscope.analysis.probing.report import record

    before = _read(path)
    question = Request.from_dict(before["request"])
    made = {what: _entries(before, what, ("name", "fingerprint")) for what in ("checkpoints", "tasks")}
    scores = _entries(before, "scores", ("accuracy",))
    found = question.answer(progress, open_model)
    now = json.loads(json.dumps(record(found)))
    notes = []
    for what in ("checkpoints", "tasks"):
        names = {entry["name"]: entry["fingerprint"] for entry in now[what]}
        for entry in made[what]:
            if names.get(entry["name"]) != entry["fingerprint"]:
                notes.append(f"The {what[:-1]} {entry['name']} is not what it was.")
    if len(scores) != len(now["scores"]) or not notes and any(
            a["accuracy"] != b["accuracy"] for a, b in zip(scores, now["scores"])):
        versions = before.get("versions")
        notes.append("The accuracies differ from those in the record; its versions are "
                     + ", ".join(f"{k} {v}" for k, v in versions.items()) + "."
                     if isinstance(versions, dict) else "The accuracies differ from those in the record.")
    return found, notes


def _entries(record: dict, what: str, keys: Sequence[str]) -> list[dict]:
    """A list of a record.

    Raises:
        BertScopeError: it is not there, or an entry lacks a key.
    """
    found = record.get(what)
    if not isinstance(found, list) or not all(
            isinstance(entry, dict) and set(keys) <= set(entry) for entry in found):
        raise BertScopeError(f"This record of a probing is damaged: there should be {what} in it.")
    return found


def _read(path: str | Path) -> dict:
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise BertScopeError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise BertScopeError(f"{path} is no record of a probing.") from None
    if not isinstance(found, dict) or not isinstance(found.get("request"), dict):
        raise BertScopeError(f"{path} is no record of a probing made by a request.")
    return found


def _refuse(sentence: str):
    raise BertScopeError(sentence)
