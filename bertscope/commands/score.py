"""``bertscope score``: a sentence's pseudo-log-likelihood, or accuracy on minimal pairs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bertscope import runs
from bertscope.errors import BertScopeError


def add_score(commands) -> None:
    """Add the command to the parser's."""
    parser = commands.add_parser(
        "score", help="how likely is a sentence? which of two? (BLiMP)",
        description="Score a whole sentence by masking each piece in turn, or compare the sentences "
                    "of minimal pairs.",
        epilog='Examples:  bertscope score demo "the cow is dirty."\n'
               "           bertscope score demo --pairs miniworld --all-steps\n"
               "           bertscope score books@500 --pairs blimp/ --most 100 --output blimp.csv",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="a run (demo), a run at a step (demo@400), "
                                           "a checkpoint directory or a hub name")
    parser.add_argument("text", nargs="?", help="a sentence to score, before any option")
    parser.add_argument("--pairs", metavar="FILE_OR_FOLDER",
                        help="minimal pairs: BLiMP's JSON lines, CSV or TSV (good, bad, paradigm), a "
                             "folder of them, or miniworld")
    parser.add_argument("--most", type=int, metavar="N",
                        help="at most the first N pairs of each paradigm (all)")
    steps = parser.add_mutually_exclusive_group()
    steps.add_argument("--step", type=int, help="the run's checkpoint at this step")
    steps.add_argument("--all-steps", action="store_true", help="every checkpoint of the run")
    parser.add_argument("--variant", choices=("original", "word_l2r"), default="original",
                        help="mask one piece (original), or also the later pieces of its word "
                             "(%(default)s)")
    parser.add_argument("--output", type=Path, metavar="CSV", help="write the numbers to this file")
    parser.set_defaults(command=score)


def score(args) -> int:
    """Run the command; returns the exit status."""
    if (args.text is None) == (args.pairs is None):
        raise BertScopeError("Give either a sentence or --pairs FILE_OR_FOLDER.")
    if args.most is not None and args.most < 1:
        raise BertScopeError("--most must be at least 1.")
    ask = _sentence if args.pairs is None else _pairs
    table = ask(args, _checkpoints(args))
    if args.output:
        try:
            table.to_csv(args.output, index=False)
        except OSError as error:
            raise BertScopeError(f"{args.output} cannot be written: {error.strerror}.") from None
    return 0


def _checkpoints(args) -> list[tuple[int | None, Path | str]]:
    """(step, path) of each checkpoint asked for; the step is None for those of others."""
    if not args.all_steps:
        name = args.checkpoint if args.step is None else f"{args.checkpoint}@{args.step}"
        found = runs.find_checkpoint(name)
        step = runs.STEP.fullmatch(Path(found).name)
        return [(int(step[1]) if step else None, found)]
    saved = runs.open_run(args.checkpoint).checkpoints()
    if not saved:
        raise BertScopeError(f"Run {args.checkpoint!r} has no checkpoint yet.")
    return [(checkpoint.step, checkpoint.path) for checkpoint in saved]


def _sentence(args, checkpoints):
    """Print a sentence's score, and its pieces where one checkpoint is asked for."""
    import pandas as pd

    from bertscope.analysis.activations import load
    from bertscope.analysis.scoring import pseudo_perplexity
    from bertscope.analysis.scoring import score as scores_of

    rows = []
    for step, path in checkpoints:
        (found,) = scores_of(load(path), [args.text], args.variant)
        summary = f"PLL {found.pll:.4f}  pseudo-perplexity {pseudo_perplexity([found]):,.2f}"
        print(f"step {step:>8,}  {summary}" if args.all_steps else f"# {path}\n{summary}")
        tokens = [found.encoded.tokens[place] for place in found.places]
        if not args.all_steps:
            for token, bits in zip(tokens, found.bits, strict=True):
                print(f"{bits:8.2f} bits  {token}")
        rows += [{"step": step, "variant": args.variant, "piece": token, "log_probability": value,
                  "surprisal_bits": bits}
                 for token, value, bits in zip(tokens, found.log_probabilities, found.bits)]
    return pd.DataFrame(rows)


def _pairs(args, checkpoints):
    """Print accuracies: by paradigm where one checkpoint is asked for, else a line for each."""
    import pandas as pd

    from bertscope.analysis.activations import load
    from bertscope.analysis.cache import analysis_folder
    from bertscope.analysis.minimal_pairs import evaluate
    from bertscope.analysis.pair_accuracy import accuracies, mean_accuracy
    from bertscope.corpus.pairs import read_pairs

    pairs = read_pairs(args.pairs).first(args.most)
    for note in pairs.notes:
        print(note)
    print(f"{len(pairs):,} pairs of {len(pairs.sizes):,} paradigms from {pairs.name}, {args.variant}",
          flush=True)
    tables = []
    for step, path in checkpoints:
        with _bar("" if step is None else f"step {step:,}") as told:
            found = accuracies(evaluate(load(path), pairs, args.variant, analysis_folder(path), told))
        mean, low, high = mean_accuracy(found)
        whole = f"{mean:.3f} [{low:.3f}, {high:.3f}]"
        if args.all_steps:
            print(f"step {step:>8,}  mean over paradigms {whole}", flush=True)
        else:
            print(f"# {path}")
            print(found.drop(columns="phenomenon").to_string(
                index=False, float_format=lambda x: f"{x:.3f}"))
            print(f"Mean over paradigms {whole}, a tie counting one half.")
        if found["left_out"].sum():
            print(f"{found['left_out'].sum():,} pairs are left out: the model cannot read a sentence "
                  "of them as a whole.")
        tables.append(found.assign(step=step, variant=args.variant))
    return pd.concat(tables, ignore_index=True)


@contextmanager
def _bar(name: str) -> Iterator:
    from tqdm import tqdm

    with tqdm(total=100, disable=not sys.stderr.isatty(), bar_format="{l_bar}{bar}", leave=False) as bar:
        def show(message: str, share: float | None) -> None:
            bar.set_description_str(f"{name} {message}".strip())
            bar.n = round(100 * (share or 0.0))
            bar.refresh()

        yield show
