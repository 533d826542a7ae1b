"""Probing all layers: BertScope beside one encoder pass and one scikit-learn classifier per layer.

    python benchmarks/probing.py TREEBANK [--sentences 10000] [--growth]

The peer is what one writes first: for each layer a pass of transformers' own model over all sentences
(batches of 32, in the file's order), the mean of each word's pieces, ``StandardScaler`` and
``LogisticRegression`` with its default penalty. BertScope reads each sentence once, keeps the vectors,
and chooses the penalty of each layer on validation sentences, which the peer does not. Both probe parts
of speech, train and test on the same words and say how many they get right. Each measurement is a
process of its own, so that its peak memory is its own; the two take turns and medians are compared.
Weights are random (the cost does not depend on them); the vocabulary is trained on the treebank.
``--growth`` changes one property at a time, BertScope only.
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

GROWING = {"sentences": (1250, 2500, 5000, 10_000), "layers": (2, 4, 8), "width": (128, 256, 512)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="a treebank: a .conllu file, or a folder of them")
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--vocab-size", type=int, default=8192)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args)))
        return
    if args.growth:
        growth(args)
        return
    found: dict[str, list[dict]] = {"ours": [], "theirs": []}
    for _ in range(args.repetitions):
        for who, times in found.items():
            times.append(in_a_process(who, args))
    print(f"{args.sentences:,} sentences, {found['ours'][0]['words']:,} words, {args.layers} layers x "
          f"{args.width}, median of {args.repetitions}")
    for who, times in found.items():
        print(f"{who:7} {middle(times, 'seconds'):8.1f} s ({middle(times, 'reading'):.1f} s reading), "
              f"CPU {middle(times, 'cpu'):.1f} s, peak memory {middle(times, 'memory'):,.0f} MiB, "
              f"accuracy by layer " + " ".join(f"{a:.3f}" for a in times[0]["accuracy"]))
    print(f"ratio   {middle(found['theirs'], 'seconds') / middle(found['ours'], 'seconds'):8.2f} of "
          f"seconds, {middle(found['theirs'], 'cpu') / middle(found['ours'], 'cpu'):.2f} of CPU time")


def growth(args) -> None:
    print("| what | value | words | seconds | of these reading | peak memory, MiB |")
    print("|---|---:|---:|---:|---:|---:|")
    for what, values in GROWING.items():
        for value in values:
            changed = argparse.Namespace(**{**vars(args), "sentences": min(args.sentences, 2500),
                                            what: value})
            one = in_a_process("ours", changed)
            print(f"| {what} | {value:,} | {one['words']:,} | {one['seconds']:.1f} | "
                  f"{one['reading']:.1f} | {one['memory']:,.0f} |", flush=True)


def middle(found: list[dict], key: str) -> float:
    return statistics.median(one[key] for one in found)


def in_a_process(who: str, args) -> dict:
    command = [sys.executable, __file__, args.data, "--one", who]
    for name in ("sentences", "layers", "width", "vocab_size"):
        command += ["--" + name.replace("_", "-"), str(getattr(args, name))]
    done = subprocess.run(command, capture_output=True, text=True,
                          env={**TRAINER_THREADS, **os.environ})
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def measure(args) -> dict:
    """Seconds (reading, all), CPU seconds, memory and accuracies of one way, the model being there."""
    from bertscope.analysis.probing.gold import Gold, data
    from bertscope.analysis.probing.splits import split_by_document

    everything = data(args.data).sentences[:args.sentences]
    gold = Gold(*split_by_document(everything), "treebank")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BERTSCOPE_RUNS"] = folder
        checkpoint = make(everything, args, Path(folder) / "model")
        begin, cpu = time.perf_counter(), time.process_time()
        accuracy, reading = (ours if args.one == "ours" else theirs)(checkpoint, gold)
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return {"seconds": seconds, "reading": reading, "cpu": cpu, "accuracy": accuracy,
            "words": sum(len(s.words) for s in everything),
            "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def make(sentences, args, folder: Path) -> Path:
    """A model with random weights and a vocabulary of these sentences."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    from bertscope.corpus.tokenizer import train_tokenizer

    tokenizer = train_tokenizer([s.text for s in sentences], args.vocab_size, True)
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=args.width, initializer_range=0.05,
                        num_hidden_layers=args.layers, num_attention_heads=max(1, args.width // 64),
                        intermediate_size=4 * args.width, max_position_embeddings=512)
    BertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def ours(checkpoint: Path, gold) -> tuple[list[float], float]:
    from bertscope.analysis.probing import Protocol
    from bertscope.analysis.probing.study import study
    from bertscope.analysis.probing.tasks import items

    task = items(gold, "upos")
    times: list[tuple[float, bool]] = []
    whole = Protocol(control=False, random=False, **{
        f"max_{part}": len(places) for part, places in task.where.items()})
    found = study([checkpoint], [task], whole, progress=lambda message, share: times.append(
        (time.perf_counter(), "reading" in message)))
    last = max(when for when, reading in times if reading)
    return found.scores["accuracy"].tolist(), last - times[0][0]


def theirs(checkpoint: Path, gold) -> tuple[list[float], float]:
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(checkpoint).eval()
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    labels = [np.array([w.upos for s in part for w in s.words]) for part in (gold.train, gold.test)]
    accuracy, reading = [], 0.0
    for layer in range(model.config.num_hidden_layers + 1):
        begin = time.perf_counter()
        train, test = (vectors(model, tokenizer, part, layer) for part in (gold.train, gold.test))
        reading += time.perf_counter() - begin
        probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        probe.fit(train, labels[0])
        accuracy.append(float(probe.score(test, labels[1])))
    return accuracy, reading


def vectors(model, tokenizer, sentences, layer: int):
    """The mean of each word's pieces in one layer."""
    import numpy as np
    import torch

    found = []
    with torch.inference_mode():
        for start in range(0, len(sentences), 32):
            words = [[w.form for w in s.words] for s in sentences[start:start + 32]]
            encoded = tokenizer(words, is_split_into_words=True, padding=True, truncation=True,
                                return_tensors="pt")
            states = model(**encoded, output_hidden_states=True).hidden_states[layer].numpy()
            for row, sentence in enumerate(words):
                owner = np.array([-1 if w is None else w for w in encoded.word_ids(row)])
                found += [states[row, owner == w].mean(0) if (owner == w).any() else
                          np.zeros(states.shape[2], np.float32) for w in range(len(sentence))]
    return np.array(found)


if __name__ == "__main__":
    sys.exit(main())
