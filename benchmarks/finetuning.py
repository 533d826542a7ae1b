"""BertScope's fine-tuning beside Hugging Face's ``Trainer``, on the same examples, in the same run.

    python benchmarks/finetuning.py [--data FOLDER] [--task sentence] [--size mini] [--seeds 3]

Both begin with the same checkpoint and use the same model class, batch size, learning rate, schedule,
epochs, dropout and threads; the peer is what a user of transformers writes: ``Trainer`` with
``DataCollatorWithPadding`` (or the one for tokens), examples in random order. Speed counts training
examples per second of training alone; validation and saving are left out on both sides. Each
measurement is a process of its own; ours and theirs take turns with each seed, and the scores on the
validation part after the last epoch stand beside each other.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bertscope.launch import TRAINER_THREADS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="miniworld")
    parser.add_argument("--task", default="auto", choices=("auto", "sentence", "pair", "tokens"))
    parser.add_argument("--size", default="tiny", help="of a model of random weights")
    parser.add_argument("--start", help="a checkpoint's folder instead")
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--most-train", type=int)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("WHO", "SEED"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        who, seed = args.one
        print(json.dumps({"ours": ours, "theirs": theirs}[who](args, int(seed))))
        return
    with tempfile.TemporaryDirectory() as folder:
        args.start = args.start or random_checkpoint(args, Path(folder))
        found = {"ours": [], "theirs": []}
        for seed in range(args.seeds):
            for who, own in found.items():
                own.append(in_a_process(who, seed, args))
                print(f"seed {seed}, {who:6}: {own[-1]['speed']:8.1f} examples/s, "
                      f"{own[-1]['metric']} {own[-1]['score']:.4f}, padding {own[-1]['padding']:.1%}",
                      flush=True)
    speed = {who: statistics.median(one["speed"] for one in own) for who, own in found.items()}
    score = {who: [one["score"] for one in own] for who, own in found.items()}
    print(f"{args.data}, {found['ours'][0]['train']:,} examples: {speed['ours']:,.1f} against "
          f"{speed['theirs']:,.1f} examples/s, ratio {speed['ours'] / speed['theirs']:.2f}")
    for who, own in score.items():
        spread = statistics.stdev(own) if len(own) > 1 else 0.0
        print(f"  {who:6} {statistics.fmean(own):.4f} ± {spread:.4f}")


def random_checkpoint(args, folder: Path) -> str:
    """A BERT of random weights of this size with a vocabulary of the training part."""
    from transformers.utils import logging

    from bertscope.config import RunConfig
    from bertscope.presets import sized
    from bertscope.corpus.tokenizer import train_tokenizer
    from bertscope.finetuning.start import texts
    from bertscope.models import build

    logging.disable_progress_bar()
    tokenizer = train_tokenizer(texts(examples(args, 0)), 4096, lowercase=True)
    shape = {f"model.{k}": v for k, v in sized(args.size).items()}
    build(RunConfig().override(shape), tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def in_a_process(who: str, seed: int, args) -> dict:
    command = [sys.executable, __file__, "--one", who, str(seed)]
    for name in ("data", "task", "start", "epochs", "batch_size", "learning_rate", "most_train"):
        if (value := getattr(args, name)) is not None:
            command += ["--" + name.replace("_", "-"), str(value)]
    done = subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, **TRAINER_THREADS})
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def settings(args, seed: int):
    from bertscope.finetuning.config import FinetuneConfig

    return FinetuneConfig().override({
        "start": args.start or "random", "data.source": args.data, "data.task": args.task,
        "data.most_train": args.most_train, "training.epochs": args.epochs,
        "training.batch_size": args.batch_size, "training.learning_rate": args.learning_rate,
        "training.seed": seed})


def examples(args, seed: int):
    from bertscope.finetuning.data import read

    return read(settings(args, seed).data, seed)


def ours(args, seed: int) -> dict:
    from bertscope.finetuning.launch import create
    from bertscope.training.loop import train

    with tempfile.TemporaryDirectory() as folder:
        run = create(settings(args, seed), "ours", Path(folder))
        train(run)
        record, lines = run.config_record(), run.metrics()
    logged = [line for line in lines if "tokens" in line]
    before = [0] + [line["tokens"] for line in logged]
    seconds = sum((line["tokens"] - b) / line["tokens_per_second"] for b, line in zip(before, logged))
    last = [line for line in lines if "eval_loss" in line][-1]
    seen = args.epochs * record["data"]["train"] * logged[-1]["step"] / record["steps"]
    return {"speed": seen / seconds, "score": last[f"eval_{record['metric']}"],
            "metric": record["metric"], "train": record["data"]["train"], "padding": padding(args, seed)}


def padding(args, seed: int) -> float:
    """The share of padding in an epoch of ours."""
    import numpy as np

    from bertscope.finetuning.batches import order

    lengths = np.array([len(f) for f in features(args, seed)[1]])
    updates = order(lengths, args.batch_size, 1, (seed, 0))
    return 1 - lengths.sum() / sum(len(u[0]) * lengths[u[0]].max() for u in updates)


def features(args, seed: int, part: str = "train"):
    """(the task, its features of a part): both sides read the same pieces."""
    from bertscope.analysis.loading import load
    from bertscope.finetuning.pieces import Cutter
    from bertscope.finetuning.tasks import build_task
    from bertscope.finetuning.work import spec_of

    data = examples(args, seed)
    loaded = load(args.start)
    task = build_task(spec_of(settings(args, seed), data),
                      Cutter(loaded.text_encoder, loaded.tokenizer.unk_token_id))
    return task, task.features(getattr(data, part))


def theirs(args, seed: int) -> dict:
    import numpy as np
    import torch
    from transformers import (
        AutoTokenizer, DataCollatorForTokenClassification, DataCollatorWithPadding, PrinterCallback,
        Trainer, TrainerCallback, TrainingArguments, set_seed)

    from bertscope.finetuning.heads import KINDS

    torch.set_flush_denormal(True)  # for both
    set_seed(seed)
    data = examples(args, seed)
    task, own = features(args, seed)
    valid = features(args, seed, "valid")[1]
    tokenizer = AutoTokenizer.from_pretrained(args.start)
    model = KINDS[data.task].from_pretrained(
        args.start, num_labels=len(data.labels) or 1, hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1)
    counted = {"pieces": 0, "places": 0}
    inner = (DataCollatorForTokenClassification if data.task == "tokens" else
             DataCollatorWithPadding)(tokenizer)

    def rows(found) -> list[dict]:
        return [{"input_ids": f.input_ids.tolist(), "token_type_ids": f.token_type_ids.tolist(),
                 "attention_mask": [1] * len(f), "labels": f.label.tolist()} for f in found]

    def collate(chosen):
        batch = inner(chosen)
        counted["pieces"] += int(batch["attention_mask"].sum())
        counted["places"] += batch["attention_mask"].numel()
        return batch

    class Stopwatch(TrainerCallback):
        def on_train_begin(self, *unused, **more):
            self.start = time.perf_counter()

        def on_train_end(self, *unused, **more):
            self.seconds = time.perf_counter() - self.start

    clock = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=model, data_collator=collate, train_dataset=rows(own), callbacks=[clock],
            args=TrainingArguments(
                output_dir=folder, per_device_train_batch_size=args.batch_size,
                per_device_eval_batch_size=64, num_train_epochs=args.epochs,
                learning_rate=args.learning_rate, warmup_steps=0.1, weight_decay=0.01,
                adam_epsilon=1e-6, max_grad_norm=1.0, save_strategy="no", logging_strategy="no",
                report_to=[], disable_tqdm=True, remove_unused_columns=False, seed=seed,
                use_cpu=not torch.cuda.is_available()))
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        share = 1 - counted["pieces"] / counted["places"]
        logits = trainer.predict(rows(valid)).predictions
    answers = task.answers(data.valid, valid, [np.asarray(row) for row in logits])
    return {"speed": args.epochs * len(data.train) / clock.seconds, "metric": task.metric,
            "score": task.metrics(data.valid, answers)[task.metric], "train": len(data.train),
            "padding": share}


if __name__ == "__main__":
    main()
