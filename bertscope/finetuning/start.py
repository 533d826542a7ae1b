"""Where fine-tuning begins: a checkpoint's encoder, or the same of random weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from bertscope import runs
from bertscope.analysis.loading import LoadedModel, load
from bertscope.config import ModelConfig, RunConfig
from bertscope.errors import BertScopeError
from bertscope.finetuning.config import FinetuneConfig, random_weights
from bertscope.finetuning.data import Dataset
from bertscope.finetuning.heads import body, depth, new_model, task_config
from bertscope.finetuning.tasks import TaskSpec
from bertscope.models import build, parts

#: Vocabulary and longest input of a model that is made for the task.
VOCABULARY, MOST_PIECES = 4096, 128


@dataclass
class Started:
    """A model with the task's head, what reads texts for it, and sentences on how it was made."""

    model: nn.Module
    loaded: LoadedModel
    facts: dict


def origin(start: str, root: Path) -> dict:
    """What a run's record keeps of where it began: ``path``, and ``pretraining`` of a run of ours.

    Raises:
        BertScopeError: the run has no such checkpoint.
    """
    _, name = random_weights(start)
    if not name:
        return {"path": None}
    path = runs.find_checkpoint(name, root)
    path = path.absolute() if isinstance(path, Path) else path
    if (run := run_of(path)) is None:
        return {"path": str(path)}
    try:
        return {"path": str(path), "pretraining": run.config().to_dict()}
    except BertScopeError:
        return {"path": str(path)}


def run_of(path: str | Path) -> runs.Run | None:
    """The run that a checkpoint's folder belongs to."""
    folder = Path(path).absolute()
    run = runs.Run(folder.parent.parent)
    return run if runs.STEP.fullmatch(folder.name) and run.exists() else None


def begin(config: FinetuneConfig, path: str | None, data: Dataset, spec: TaskSpec, scratch: Path,
          ) -> Started:
    """The model that a run begins with.

    Args:
        path: the checkpoint, None where there is none.
        scratch: a folder for the vocabulary of a model that is made for the task.

    Raises:
        BertScopeError: the checkpoint cannot be opened, or has too few layers.
    """
    seed, (random, _) = config.training.seed, random_weights(config.start)
    if path is None:
        path = _tiny(data, scratch, seed)
    loaded = load(path)
    model = new_model(task_config(loaded.model.config, spec, config.head.dropout), spec, seed)
    encoder = _redrawn(loaded, path, seed) if random else loaded.model.base_model
    kept = _copy(encoder, body(model), model.config.num_hidden_layers, config.head.reinit_layers)
    if spec.numbers:
        _begin_at_the_mean(model, data)
    facts = {"random": random, "fingerprint": None if random else loaded.fingerprint,
             "layers": model.config.num_hidden_layers, "encoder_layers": loaded.num_layers}
    if spec.task in ("sentence", "pair"):
        facts["pooler"] = "random" if random or not any("pooler" in n for n in kept) else "pretrained"
    return Started(model, loaded, facts)


def _copy(encoder: nn.Module, into: nn.Module, layers: int, reinit: int) -> set[str]:
    """Copy an encoder's weights but those of the topmost ``reinit`` layers and, with these, the
    pooler; returns the names."""
    if reinit > layers:
        raise BertScopeError(f"head.reinit_layers is {reinit}, but the encoder has {layers} layers.")
    wanted = set(into.state_dict())
    first = layers - reinit + 1 if reinit else layers + 2
    kept = {name: tensor for name, tensor in encoder.state_dict().items()
            if name in wanted and depth("." + name, layers) < first}
    into.load_state_dict(kept, strict=False)
    return set(kept)


def _redrawn(loaded: LoadedModel, path: str, seed: int) -> nn.Module:
    """The encoder as its own recipe would begin it, with this seed."""
    run = run_of(path)
    try:
        config = run.config() if run else None
    except BertScopeError:
        config = None
    if config is None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return type(loaded.model)(loaded.model.config).base_model
    return parts(build(config.override({"training.seed": seed}), loaded.tokenizer))[""].base_model


def _tiny(data: Dataset, scratch: Path, seed: int) -> str:
    """A tiny BERT of random weights with a vocabulary of the training part, as a checkpoint."""
    from bertscope.corpus.tokenizer import train_tokenizer

    tokenizer = train_tokenizer(texts(data), VOCABULARY, lowercase=True)
    config = RunConfig(model=ModelConfig(initializer_range=0.05, positions="sinusoidal"))
    config = config.override({"objective.max_length": MOST_PIECES, "training.seed": seed})
    build(config, tokenizer).save_pretrained(scratch)
    tokenizer.save_pretrained(scratch)
    return str(scratch)


def texts(data: Dataset):
    """All texts of the training part."""
    for example in data.train:
        if data.task == "tokens":
            yield " ".join(example.words)
        elif data.task == "question":
            yield example.question
            yield example.context
        else:
            yield example.text
            yield example.pair or ""


def _begin_at_the_mean(model: nn.Module, data: Dataset) -> None:
    """A number is first guessed as the mean: the head need not learn how large it is."""
    mean = sum(e.label for e in data.train) / len(data.train)
    last = [m for m in model.modules() if isinstance(m, nn.Linear) and m.out_features == 1][-1]
    with torch.no_grad():
        last.bias.fill_(mean)
