"""Tokens per second of BertScope's trainer beside Hugging Face's own, in the same run.

    python benchmarks/training.py [--steps 30] [--size tiny]

The peer is ``BertForPreTraining`` with dense logits in ``transformers.Trainer``, fed the very same
batches: same model, same masks, same optimiser settings. Both are warmed up first, then timed in
turn three times; the ratio of the medians is printed, with and without dropout.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from functools import partial

from bertscope.launch import TRAINER_THREADS

os.environ.update(TRAINER_THREADS)  # for both, before torch is loaded

import numpy as np
import torch
from accelerate import Accelerator
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from bertscope.config import ModelConfig, ObjectiveConfig, RunConfig, sized
from bertscope.models import PretrainingLoss, build
from bertscope.objectives import Batch, Examples
from bertscope.training.loop import update
from bertscope.training.optimizer import build_optimizer


class Vocabulary:
    """Only what the example builder asks of a tokenizer: no text is needed to measure speed."""

    cls_token_id, sep_token_id, pad_token_id, mask_token_id = 2, 3, 0, 4
    all_special_ids = [0, 1, 2, 3, 4]

    def __init__(self, size: int):
        self.size = size

    def __len__(self) -> int:
        return self.size

    def get_vocab(self) -> dict[str, int]:
        return {str(i): i for i in range(self.size)}


class Text:
    """Random pieces in sentences of 20, documents of 40 sentences."""

    def __init__(self, vocab_size: int, documents: int = 400):
        rng = np.random.default_rng(0)
        self.ids = rng.integers(5, vocab_size, documents * 40 * 20)
        self.sentence_offsets = np.arange(0, len(self.ids) + 1, 20)
        self.document_offsets = np.arange(0, documents * 40 + 1, 40)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--vocab-size", type=int, default=8192)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--max-length", type=int, default=128)
    args = parser.parse_args()
    accelerator = Accelerator()
    tokenizer = Vocabulary(args.vocab_size)
    objective = ObjectiveConfig(max_length=args.max_length, short_seq_prob=0.0)
    text = Text(args.vocab_size)
    examples = Examples(text, np.arange(400), tokenizer, objective, seed=0)
    order = examples.order(0, args.batch_size)
    full = [examples.batch(0, indices) for indices in order]
    full = [b for b in full if b.attention_mask is None
            and b.input_ids.shape[1] == args.max_length][: args.steps]
    tokens = sum(b.tokens for b in full)
    print(f"{args.size}, {args.vocab_size} pieces, batch {args.batch_size} x {args.max_length}, "
          f"{len(full)} steps, {accelerator.device}, {torch.get_num_threads()} threads")
    for dropout in (0.1, 0.0):
        shape = ModelConfig(**sized(args.size), dropout=dropout)
        model = partial(build, shape, tokenizer, args.max_length, seed=0)
        ours, theirs = [], []
        for repetition in range(4):
            ours.append(tokens / train_ours(model(), full, accelerator))
            theirs.append(tokens / train_peer(model(), full, accelerator.device.type))
        a, b = statistics.median(ours[1:]), statistics.median(theirs[1:])
        print(f"dropout {dropout}: BertScope {a:,.0f} tokens/s, "
              f"Trainer with dense logits {b:,.0f} tokens/s, ratio {a / b:.2f}")


def train_ours(model, batches: list[Batch], accelerator: Accelerator) -> float:
    """Seconds for the batches in the trainer's own update."""
    loss_module, optimizer = accelerator.prepare(
        PretrainingLoss(model).train(), build_optimizer(model, RunConfig().training))
    start = time.perf_counter()
    for batch in batches:
        update(accelerator, loss_module, optimizer, [batch], clip=1.0)
    if accelerator.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def train_peer(model, batches: list[Batch], device: str) -> float:
    """Seconds for the same batches in ``transformers.Trainer``, from its first step to its last."""
    rows = [row for batch in batches for row in dense_rows(batch)]
    clock = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=folder, per_device_train_batch_size=len(batches[0].input_ids),
                max_steps=len(batches), learning_rate=1e-3, weight_decay=0.01, max_grad_norm=1.0,
                save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True,
                use_cpu=device == "cpu", optim="adamw_torch_fused"),
            train_dataset=rows, callbacks=[clock])
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return clock.seconds


def dense_rows(batch: Batch) -> list[dict]:
    """The batch as ``BertForPreTraining`` wants it: labels everywhere, -100 where none."""
    labels = np.full(batch.input_ids.size, -100)
    labels[batch.masked_index] = batch.masked_labels
    labels = labels.reshape(batch.input_ids.shape)
    return [{"input_ids": ids, "token_type_ids": segments, "labels": row,
             "next_sentence_label": int(label)}
            for ids, segments, row, label in zip(batch.input_ids, batch.token_type_ids, labels,
                                                 batch.next_sentence_label)]


class Stopwatch(TrainerCallback):
    """Times the steps alone, not the Trainer's own beginning and end."""

    def on_train_begin(self, *args, **kwargs):
        self.start = time.perf_counter()

    def on_train_end(self, *args, **kwargs):
        self.seconds = time.perf_counter() - self.start


if __name__ == "__main__":
    main()
