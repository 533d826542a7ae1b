"""Pretraining as the loop's work: a corpus, a recipe's model and its losses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from bertscope.corpus import prepare
from bertscope.corpus.store import split_documents
from bertscope.errors import BertScopeError
from bertscope.models import build, build_loss, parts
from bertscope.objectives.examples import evaluation_batches
from bertscope.runs import Run
from bertscope.training.checkpoints import load_weights
from bertscope.training.data import batches, phases
from bertscope.training.evaluation import evaluate, oracle_accuracy, unigram_baseline
from bertscope.training.optimizer import build_optimizer
from bertscope.training.progress import Position
from bertscope.training.work import Progress, Total


class Pretraining:
    """See :class:`bertscope.training.work.Work`. The loss is a module of its own, so that the
    wrapped forward does only that."""

    stalled = "the held-out loss no longer fell"

    def __init__(self, run: Run, progress: Progress):
        self.config = config = run.config()
        self.training, self.weights = config.training, config.objectives
        self.corpus = prepare(config.read_corpus, run.path.parent, progress)
        store, self.tokenizer = self.corpus.store, self.corpus.tokenizer
        self.train_documents, self.held_out = split_documents(
            len(store.document_offsets) - 1, config.corpus.held_out)
        self.stages = phases(config, store, self.train_documents, self.tokenizer)
        self.heldout_batches = list(evaluation_batches(
            store, self.held_out, self.tokenizer, config.objective,
            self.training.evaluation_examples, 64)) if len(self.held_out) > 1 else []
        self.model = build(config, self.tokenizer)
        if self.training.init_from:
            _begin_with(self.model, self.training.init_from)
        if self.training.gradient_checkpointing:
            for part in parts(self.model).values():
                part.activation_checkpointing_enable()
        self.loss_module = build_loss(config, self.model)

    def optimizer(self) -> torch.optim.Optimizer:
        return build_optimizer(self.model, self.training)

    def batches(self, position: Position, rank: int, processes: int, ahead: bool):
        return batches(self.stages, position, self.config, rank, processes, ahead)

    def starts_over(self, step: int) -> bool:
        return any(step == phase.end for phase in self.stages)

    def evaluate(self, tensors: Callable, total: Total, rank: int, processes: int) -> dict:
        """Each process on its share of the batches."""
        if not self.heldout_batches:
            return {}
        share = self.heldout_batches[rank::processes]
        return evaluate(self.loss_module, share, tensors, self.weights, total)

    def judged(self, measured: dict) -> float:
        return measured["eval_loss"]

    def save(self, folder: Path) -> None:
        for name, part in parts(self.model).items():
            part.save_pretrained(folder / name)
            self.tokenizer.save_pretrained(folder / name)

    def load(self, folder: Path) -> None:
        load_weights(self.model, folder)

    def facts(self) -> dict:
        store, causal = self.corpus.store, self.config.recipe == "causal"
        baselines = {}
        if self.heldout_batches:
            baselines = unigram_baseline(store, self.held_out, self.heldout_batches,
                                         len(self.tokenizer), causal)
            if store.oracle is not None and not causal:
                baselines["oracle_accuracy"] = oracle_accuracy(store.oracle, self.heldout_batches)
        return {
            "baselines": baselines,
            "corpus": {
                "fingerprint": self.corpus.fingerprint, "path": str(self.corpus.path),
                "documents": len(store.document_offsets) - 1,
                "sentences": len(store.sentence_offsets) - 1, "tokens": len(store.ids),
                "train_documents": len(self.train_documents),
                "held_out_documents": len(self.held_out)},
        }


def _begin_with(model: nn.Module, folder: str) -> None:
    try:
        load_weights(model, Path(folder))
    except Exception as error:
        raise BertScopeError(f"training.init_from: the weights of {folder} are not those of this "
                             f"recipe and shape ({str(error).splitlines()[0]}).") from error
