"""Try a fine-tuned checkpoint on a text: labels, tags over words, the answer in a paragraph.

Any checkpoint of transformers with a head for one of the tasks can be opened, ours or others'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import nn

from bertscope.analysis.loading import LoadedModel, load
from bertscope.errors import BertScopeError
from bertscope.finetuning.batches import by_length, collate
from bertscope.finetuning.data.examples import Example, Labelled, Question, Tagged
from bertscope.finetuning.heads import (
    KINDS, fastest, load_model_weights, logits_of, new_model, task_config)
from bertscope.finetuning.pieces import Cutter
from bertscope.finetuning.tasks import Span, TaskSpec, build_task

_ARCHITECTURES = {"ForSequenceClassification": "sentence", "ForTokenClassification": "tokens",
                  "ForQuestionAnswering": "question"}
#: Inputs of a batch.
ROWS = 64


@dataclass(frozen=True)
class Finetuned:
    """A model with a task's head. Shared between threads: never change it.

    ``loaded`` is the same checkpoint as the other views open it, without the head.
    """

    path: str
    spec: TaskSpec
    model: nn.Module = field(repr=False)
    loaded: LoadedModel = field(repr=False)

    @property
    def task(self):
        """Cuts examples into pieces and reads answers off logits."""
        return build_task(self.spec, Cutter(self.loaded.text_encoder,
                                            self.loaded.tokenizer.unk_token_id, self.spec.max_length))


@dataclass(frozen=True, slots=True)
class Choice:
    """A label with its probability."""

    label: str
    probability: float


@dataclass(frozen=True, slots=True)
class TaggedWord:
    """A word, ``text[start:end]``, with its likeliest tag."""

    word: str
    start: int
    end: int
    tag: str
    probability: float


def task_of(path: str | Path) -> TaskSpec | None:
    """What a checkpoint's folder is fine-tuned for; None for any other. Opens no weights."""
    import json

    folder = Path(path)
    if (spec := TaskSpec.read(folder)) is not None:
        return spec
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        name = (config.get("architectures") or [""])[0]
        task = next((t for end, t in _ARCHITECTURES.items() if name.endswith(end)), None)
        if task is None:
            return None
        if task == "question":
            return TaskSpec(task, unanswered=True)
        known = config.get("id2label") or {}
        labels = tuple(str(known[k]) for k in sorted(known, key=int)) or ("LABEL_0", "LABEL_1")
        return TaskSpec(task, () if task == "sentence" and len(labels) == 1 else labels)
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def open_finetuned(path: str | Path, device: str | None = None) -> Finetuned:
    """Open a fine-tuned checkpoint with its head.

    Raises:
        BertScopeError: it cannot be opened, or has no head for a task.
    """
    loaded = load(path, device)
    spec = task_of(path)
    if spec is None:
        raise BertScopeError(f"{path} has no head for a task: it is not fine-tuned.")
    config = task_config(loaded.model.config, spec if spec.layer == "mix" else
                         TaskSpec(spec.task, spec.labels))
    try:
        if spec.layer == "mix":
            model = new_model(config, spec, 0)
            load_model_weights(model, Path(path))
        else:
            model = KINDS[spec.task].from_pretrained(
                str(path), config=config, attn_implementation=fastest(config), dtype=torch.float32,
                use_safetensors=True, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # whatever a stranger's file provokes
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        raise BertScopeError(f"The head of {path} cannot be opened: {reason}") from error
    return Finetuned(str(path), spec, model.to(loaded.device).eval().requires_grad_(False), loaded)


@torch.no_grad()
def answers(model: Finetuned, examples: Sequence[Example],
            progress: Callable[[float], None] | None = None, ranked: bool = False):
    """What the task says of each example: probabilities [N, C], numbers [N], probabilities of the
    words' tags (a list of [W, C]), or spans (with ``ranked`` a list of the best ones for each)."""
    task = model.task
    features = task.features(examples)
    found: list = [None] * len(features)
    done = 0
    for rows in by_length(features, ROWS):
        batch = collate(model.spec.task, [features[i] for i in rows],
                        model.loaded.tokenizer.pad_token_id)
        tensors = {name: None if array is None else torch.from_numpy(array).to(model.loaded.device)
                   for name, array in batch.inputs.items() if name != "labels"}
        logits = logits_of(model.model, model.spec, **tensors).float().cpu().numpy()
        for row, own in zip(rows, logits):
            found[row] = own
        done += len(rows)
        if progress:
            progress(done / len(features))
    return (task.ranked if ranked else task.answers)(examples, features, found)


def classify(model: Finetuned, text: str, pair: str | None = None) -> list[Choice]:
    """Labels for a text, or a pair of texts, the likeliest first.

    Raises:
        BertScopeError: a text is empty, or the checkpoint is for another task.
    """
    _require(model, ("sentence", "pair"), text, pair)
    if model.spec.numbers:
        raise BertScopeError("This checkpoint predicts a number, not a label.")
    (chances,) = answers(model, [Labelled(text, "", _second(model, pair))])
    return [Choice(model.spec.labels[i], float(chances[i])) for i in np.argsort(-chances)]


def estimate(model: Finetuned, text: str, pair: str | None = None) -> float:
    """The number that is predicted for a text, or a pair of texts.

    Raises:
        BertScopeError: as :func:`classify`.
    """
    _require(model, ("sentence", "pair"), text, pair)
    if not model.spec.numbers:
        raise BertScopeError("This checkpoint predicts a label, not a number.")
    return float(answers(model, [Labelled(text, 0.0, _second(model, pair))])[0])


def tag(model: Finetuned, text: str) -> list[TaggedWord]:
    """A tag for each word of a text, words as the tokenizer's own splitting has them.

    Raises:
        BertScopeError: the text is empty, or the checkpoint is for another task.
    """
    _require(model, ("tokens",), text)
    (pieces,) = model.task.cutter.texts([text], whole=True)
    spans: dict[int, list[int]] = {}
    for word, (start, end) in zip(pieces.words.tolist(), pieces.offsets.tolist()):
        spans.setdefault(word, [start, end])[1] = end
    places = [(start, end) for start, end in spans.values() if text[start:end].strip()] \
        or [(0, len(text))]
    words = tuple(text[start:end] for start, end in places)
    (chances,) = answers(model, [Tagged(words, ("",) * len(words))])
    best = chances.argmax(1)
    return [TaggedWord(word, start, end, model.spec.labels[b], float(own[b]))
            for word, (start, end), own, b in zip(words, places, chances, best)]


def answer(model: Finetuned, question: str, context: str) -> list[Span]:
    """Answers to a question from a paragraph, the one that is given first; ``""`` is no answer.

    Raises:
        BertScopeError: a text is empty, or the checkpoint is for another task.
    """
    _require(model, ("question",), question, context)
    return answers(model, [Question(question, context, ())], ranked=True)[0]


def _require(model: Finetuned, tasks: tuple[str, ...], text: str, pair: str | None = None) -> None:
    if model.spec.task not in tasks:
        raise BertScopeError(f"This checkpoint is fine-tuned for the task {model.spec.task}.")
    needs_two = model.spec.task in ("pair", "question")
    if needs_two and (pair is None or not pair.strip()):
        raise BertScopeError(f"Task {model.spec.task} needs two texts; the second one is empty.")
    if not text.strip():
        raise BertScopeError("The text is empty: type at least one word.")


def _second(model: Finetuned, pair: str | None) -> str | None:
    return pair if model.spec.task == "pair" else None
