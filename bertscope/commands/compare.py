"""``bertscope compare``: recipes side by side."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from bertscope import launch, runs


def add_compare(commands) -> None:
    parser = commands.add_parser(
        "compare", help="train recipes side by side and print one table",
        description="Train every recipe and option on the same text with the same budget and "
                    "several seeds, then print mean and spread of their held-out numbers. Stopped "
                    "and called again, it goes on where it stood.",
        epilog="Example:  bertscope compare --corpus miniworld --steps 2000 --seeds 3",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="miniworld", help="as for train (%(default)s)")
    parser.add_argument("--steps", type=int, default=2000, help="updates of each (%(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each (%(default)s)")
    parser.add_argument("--batch-tokens", type=int, default=2048,
                        help="word pieces per update (%(default)s)")
    parser.add_argument("--variants", help="only these, separated by semicolons, e.g. "
                                           "'bert; bert, static; roberta'")
    parser.add_argument("--probe", metavar="DATA", help="also probe parts of speech: miniworld, a "
                                                        ".conllu file or a folder of them")
    parser.add_argument("--output", type=Path, help="write each run's numbers to this CSV file")
    parser.set_defaults(command=_compare)


def _compare(args) -> int:
    for name, value in launch.TRAINER_THREADS.items():
        os.environ.setdefault(name, value)
    from bertscope.training import study

    named = {"names": [name.strip() for name in args.variants.split(";")]} if args.variants else {}
    frame = study.results(
        study.train_all(study.Study(args.corpus, args.steps, args.seeds, args.batch_tokens, **named)),
        _upos_probe(args.probe) if args.probe else None)
    print(study.table(frame))
    if args.output:
        frame.to_csv(args.output, index=False)
    return 0


def _upos_probe(data_name: str):
    """A function from a run to its mean test accuracy over layers 1 ... L: none is picked out."""
    from bertscope.analysis.probing.protocol import Protocol
    from bertscope.analysis.probing.sources import open_source
    from bertscope.analysis.probing.study import study

    items = open_source(data_name).items("upos")
    protocol = Protocol(max_train=4000, control=False, random=False)

    def accuracy(run: runs.Run) -> float:
        table = study([run.checkpoints()[-1]], [items], protocol).scores
        return float(table.loc[table["layer"] >= 1, "accuracy"].mean())

    return accuracy
