"""Tasks × checkpoints × seeds: what is probed, in which order, and what is already there.

Every unit (a task, a checkpoint, a seed) is kept beside its run as soon as it is done, and so are the
encoder's vectors. Interrupted by an exception, by a cancel or by a power cut, the same call goes on
where it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bertscope import runs
from bertscope.analysis.activations import LoadedModel, load
from bertscope.analysis.cache import analysis_folder, cached_frame, kept_frame
from bertscope.analysis.loading import weights_fingerprint
from bertscope.analysis.probing.features import Store
from bertscope.analysis.probing.items import Items
from bertscope.analysis.probing.protocol import VERSION, Protocol
from bertscope.analysis.probing.result import Result
from bertscope.analysis.probing.sampling import hide, sample
from bertscope.analysis.probing.unit import Progress, Unit, probe_unit
from bertscope.analysis.probing.untrained import architecture, with_random_weights
from bertscope.errors import BertScopeError

#: Settings that decide nothing about a single unit.
_OF_THE_STUDY = ("random",)
OpenModel = Callable[[str | Path], LoadedModel]


@dataclass(frozen=True)
class Subject:
    """A checkpoint to probe: ``name`` for people, ``step`` where it is of a run."""

    name: str
    path: str | Path
    step: int | None = None

    @classmethod
    def of(cls, checkpoint: Subject | runs.Checkpoint | str | Path) -> Subject:
        """From a run's checkpoint, a path, or anything that ``runs.find_checkpoint`` understands."""
        if isinstance(checkpoint, Subject):
            return checkpoint
        if isinstance(checkpoint, runs.Checkpoint):
            return cls(_name(checkpoint.path), checkpoint.path, checkpoint.step)
        path = runs.find_checkpoint(str(checkpoint))
        found = runs.STEP.fullmatch(Path(path).name)
        return cls(_name(path) if found else str(checkpoint), path,
                   int(found[1]) if found else None)


def study(checkpoints: Sequence[Subject | runs.Checkpoint | str | Path], tasks: Sequence[Items],
          protocol: Protocol = Protocol(), seeds: Sequence[int] = (0,),
          progress: Progress | None = None, open_model: OpenModel = load) -> Result:
    """Probe each checkpoint for each task with each seed.

    A seed decides which training sentences are drawn, the labels of the control task, the order of
    the online code, where an MLP begins, and the random weights of the untrained model. The linear
    probe itself is convex and has none. Test items are the same for all seeds.

    Args:
        progress: ``(message, share)``, called often; what it raises cancels. Units that are done are
            kept.
        open_model: opens a checkpoint.

    Raises:
        BertScopeError: there is no such checkpoint, a task has too little to learn or to test, or a
            seed is negative or occurs twice.
    """
    subjects = [Subject.of(checkpoint) for checkpoint in checkpoints]
    _check(subjects, tasks, seeds)
    asked = [_Task(hide(items, 0) if protocol.hide else items, protocol, seeds) for items in tasks]
    work = _Work(asked, protocol, seeds, progress, open_model, len(subjects))
    found = Result(protocol, tuple(seeds), {task.items.task: task.items for task in asked})
    for subject in subjects:
        for key, unit in work.trained(subject):
            found.add(subject.name, subject.step, "trained", architecture(subject.path), key, unit)
            found.fingerprints[subject.name] = work.fingerprint(subject)
            found.paths[subject.name] = str(subject.path)
    if protocol.random:
        for subject in subjects:
            if architecture(subject.path) not in found.untrained:
                for key, unit in work.untrained(subject):
                    found.add("random weights", None, "random", architecture(subject.path), key, unit)
    if progress:
        progress("done", 1.0)
    return found


class _Task:
    """A task's items, and for each seed the places of those that it uses."""

    def __init__(self, items: Items, protocol: Protocol, seeds: Sequence[int]):
        self.items = items
        self.places = {seed: sample(items, protocol.most, seed) for seed in seeds}

    def texts(self, seeds: Sequence[int]) -> list:
        places = np.concatenate([self.places[seed] for seed in seeds])
        return [self.items.sentences[i] for i in np.unique(self.items.sentence[places])]


@dataclass
class _Work:
    tasks: list[_Task]
    protocol: Protocol
    seeds: Sequence[int]
    progress: Progress | None
    open_model: OpenModel
    subjects: int
    _done: int = 0
    _opened: dict[str, LoadedModel] = field(default_factory=dict)

    def trained(self, subject: Subject) -> Iterator[tuple[tuple[str, int], Unit]]:
        """``((task, seed), unit)``, from the disk where it is there."""
        fingerprint, folder = self.fingerprint(subject), analysis_folder(subject.path)
        yield from self._units(subject.name, fingerprint, folder, self.seeds,
                               lambda: self._open(subject))

    def untrained(self, subject: Subject) -> Iterator[tuple[tuple[str, int], Unit]]:
        """The same for the architecture with weights drawn by each seed."""
        folder, name = analysis_folder(subject.path), architecture(subject.path)
        for seed in self.seeds:
            def draw(seed=seed) -> LoadedModel:
                return with_random_weights(self._open(subject), seed)

            yield from self._units("random weights", f"{name}-{seed}", folder, [seed], draw)

    def _units(self, name: str, fingerprint: str, folder: Path, seeds: Sequence[int], opened):
        missing = [(task, seed) for task in self.tasks for seed in seeds
                   if self._kept(folder, self._key(fingerprint, task, seed)) is None]
        store = None
        for task in self.tasks:
            for seed in seeds:
                key = self._key(fingerprint, task, seed)
                unit = self._kept(folder, key)
                if unit is None:
                    store = store or self._filled(folder, opened(), missing, name)
                    unit = self._compute(folder, key, task, seed, store, name)
                self._done += 1
                yield (task.items.task, seed), unit

    def _filled(self, folder: Path, model: LoadedModel, missing, name: str) -> Store:
        """One pass of the encoder over the sentences of everything that is missing."""
        store = Store(folder / "features", model, self.protocol.word)
        texts = [text for task, seed in missing for text in task.texts([seed])]
        store.fill(texts, lambda message, share: self._tell(f"{name}: {message}", 0.4 * share))
        return store

    def _compute(self, folder, key, task: _Task, seed: int, store: Store, name: str) -> Unit:
        def told(message: str, share: float | None) -> None:
            label = f"{name}: {task.items.title}, {message}"
            self._tell(f"{label}, seed {seed}" if len(self.seeds) > 1 else label,
                       0.4 + 0.6 * (share or 0.0))

        unit = probe_unit(task.items, task.places[seed], store, self.protocol, seed, told)
        return Unit(cached_frame(folder, "probe_scores", key, lambda: unit.scores),
                    cached_frame(folder, "probe_answers", key, lambda: unit.answers))

    @staticmethod
    def _kept(folder: Path, key: dict) -> Unit | None:
        scores = kept_frame(folder, "probe_scores", key)
        answers = kept_frame(folder, "probe_answers", key) if scores is not None else None
        return Unit(scores, answers) if answers is not None else None

    def _key(self, fingerprint: str, task: _Task, seed: int) -> dict:
        asked = {k: v for k, v in self.protocol.to_dict().items() if k not in _OF_THE_STUDY}
        return {"version": VERSION, "checkpoint": fingerprint, "items": task.items.fingerprint,
                "task": task.items.task, "seed": seed, **asked}

    def _tell(self, message: str, share: float) -> None:
        if self.progress:
            every = len(self.tasks) * len(self.seeds) * (self.subjects + bool(self.protocol.random))
            self.progress(message, min(1.0, (self._done + share) / every))

    # -- the models --------------------------------------------------------------------------

    def fingerprint(self, subject: Subject) -> str:
        """SHA-256 of the weights."""
        return weights_fingerprint(subject.path)

    def _open(self, subject: Subject) -> LoadedModel:
        """The model; the one opened last stays open."""
        if str(subject.path) not in self._opened:
            self._opened = {str(subject.path): self.open_model(subject.path)}
        return self._opened[str(subject.path)]


def _check(subjects: Sequence[Subject], tasks: Sequence[Items], seeds: Sequence[int]) -> None:
    for values, what in ((subjects, "checkpoint"), (tasks, "task"), (seeds, "seed")):
        if not values:
            raise BertScopeError(f"Name at least one {what} to probe.")
    if min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise BertScopeError("Seeds are different whole numbers from 0 on.")
    for values, what in (([s.name for s in subjects], "checkpoint"), ([t.task for t in tasks], "task")):
        if len(set(values)) < len(values):
            raise BertScopeError(f"A {what} is named twice.")


def _name(path: Path | str) -> str:
    """``run@400`` for a run's checkpoint."""
    path = Path(path)
    found = re.fullmatch(r"step-0*(\d+)", path.name)
    return f"{path.parent.parent.name}@{found[1]}" if found else str(path)
