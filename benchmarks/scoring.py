"""Scoring minimal pairs: BertScope's batches beside one forward pass per masked sentence.

    python benchmarks/scoring.py PAIRS [--checkpoint demo | --size tiny mini] [--pairs 5]

PAIRS are BLiMP's files (a folder of JSON lines) or any other that ``bertscope score --pairs`` reads. The
peer is the loop that the paper's formula suggests, over transformers' own masked-language model: mask
a piece, run the model on that sentence, read one probability. A second peer, as in common scoring
libraries, runs the masked copies of one sentence together. All score the same sentences with the same
weights in the same process, taking turns; medians are compared. Without a checkpoint the weights are
random, large enough (0.1) that scores differ, and the vocabulary is trained on the pairs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bertscope.launch import TRAINER_THREADS

for name, value in TRAINER_THREADS.items():
    os.environ.setdefault(name, value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="minimal pairs")
    parser.add_argument("--checkpoint", help="a run, run@step or directory, instead of random weights")
    parser.add_argument("--size", nargs="+", default=["tiny", "mini"])
    parser.add_argument("--vocab-size", type=int, default=8192)
    parser.add_argument("--pairs", type=int, default=5, help="pairs of each paradigm (%(default)s)")
    parser.add_argument("--variant", default="original", choices=("original", "word_l2r"))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--threads", type=int, help="torch's (its own choice)")
    args = parser.parse_args()

    import torch

    from bertscope.corpus.pairs import read_pairs

    if args.threads:
        torch.set_num_threads(args.threads)
    everything = read_pairs(args.data)
    chosen = everything.first(args.pairs)
    sentences = [s for pair in chosen.pairs for s in (pair.good, pair.bad)]
    print(f"{len(sentences):,} sentences of {len(chosen.sizes)} paradigms, {args.variant}, "
          f"{torch.get_num_threads()} threads, median of {args.repetitions}")
    print(f"{'model':24} {'BertScope':>10} {'per sentence':>13} {'unbatched':>10} {'ratio':>6} "
          f"{'largest difference':>19}")
    with tempfile.TemporaryDirectory() as folder:
        for label, path in checkpoints(args, everything, Path(folder)):
            report(label, path, sentences, args)


def checkpoints(args, pairs, folder: Path):
    """(label, path) of each model that is measured."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    from bertscope.presets import sized
    from bertscope.corpus.tokenizer import train_tokenizer
    from bertscope.runs import find_checkpoint

    if args.checkpoint:
        yield Path(args.checkpoint).name, find_checkpoint(args.checkpoint)
        return
    tokenizer = train_tokenizer([s for p in pairs.pairs for s in (p.good, p.bad)], args.vocab_size, True)
    for size in args.size:
        torch.manual_seed(0)
        config = BertConfig(vocab_size=len(tokenizer), initializer_range=0.1,
                            max_position_embeddings=128, **sized(size))
        BertForMaskedLM(config).save_pretrained(folder / size)
        tokenizer.save_pretrained(folder / size)
        yield f"{size}, {config.num_hidden_layers} x {config.hidden_size}, random", folder / size


def report(label: str, path, sentences: list[str], args) -> None:
    import numpy as np
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    from bertscope.analysis.activations import load
    from bertscope.analysis.scoring import score

    ours, theirs = load(path), AutoModelForMaskedLM.from_pretrained(path).eval()
    tokenizer = AutoTokenizer.from_pretrained(path)
    theirs.to(ours.device)
    ways = {
        "ours": lambda some: [s.pll for s in score(ours, some, args.variant)],
        "sentence": lambda some: loop(theirs, tokenizer, some, args.variant, together=True),
        "unbatched": lambda some: loop(theirs, tokenizer, some, args.variant, together=False),
    }
    for way in ways.values():  # warm up
        way(sentences[:8])
    seconds, scores = {name: [] for name in ways}, {}
    for _ in range(args.repetitions):
        for name, way in ways.items():
            start = time.perf_counter()
            scores[name] = np.array(way(sentences))
            seconds[name].append(time.perf_counter() - start)
    speed = {name: len(sentences) / statistics.median(found) for name, found in seconds.items()}
    difference = np.abs(scores["ours"] - scores["unbatched"]).max()
    print(f"{label:24} {speed['ours']:8,.0f}/s {speed['sentence']:11,.0f}/s "
          f"{speed['unbatched']:8,.1f}/s {speed['ours'] / speed['unbatched']:6.1f} "
          f"{difference:19.1e}", flush=True)


def loop(model, tokenizer, sentences: list[str], variant: str, together: bool) -> list[float]:
    """The formula over transformers: the masked copies of a sentence together, or one by one."""
    import torch

    found = []
    with torch.inference_mode():
        for sentence in sentences:
            encoded = tokenizer(sentence, return_tensors="pt").to(model.device)
            ids, words = encoded["input_ids"][0], encoded.word_ids()
            places = [i for i, word in enumerate(words) if word is not None]
            rows = ids.repeat(len(places), 1)
            for row, place in zip(rows, places, strict=True):
                row[place] = tokenizer.mask_token_id
                later = place + 1
                while variant == "word_l2r" and words[later] == words[place]:
                    row[later] = tokenizer.mask_token_id
                    later += 1
            total = 0.0
            for start in range(0, len(rows), len(rows) if together else 1):
                batch = rows[start:] if together else rows[start:start + 1]
                logits = model(input_ids=batch).logits
                for number, row in enumerate(logits, start):
                    total += float(row[places[number]].log_softmax(-1)[ids[places[number]]])
            found.append(total)
    return found


if __name__ == "__main__":
    sys.exit(main())
