"""``bertscope COMMAND``: which commands there are, and how an error is said."""

from __future__ import annotations

import argparse
import os
import sys

from bertscope.commands.compare import add_compare
from bertscope.commands.corpus import add_corpus
from bertscope.commands.finetune import add_finetune
from bertscope.commands.listing import add_runs
from bertscope.commands.plan import add_plan
from bertscope.commands.predict import add_predict
from bertscope.commands.probe import add_probe
from bertscope.commands.score import add_score
from bertscope.commands.serve import add_app, add_demo
from bertscope.commands.train import add_train
from bertscope.errors import BertScopeError

#: In the order in which the help lists them.
COMMANDS = (add_train, add_plan, add_compare, add_finetune, add_probe, add_predict, add_score, add_demo,
            add_app, add_runs, add_corpus)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status. Errors the user can mend are one line on stderr."""
    parser = _parser()
    args = parser.parse_args(arguments)
    # Two torch processes on few cores must not spin against each other.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        return args.command(args) or 0
    except BertScopeError as error:
        print(f"bertscope: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bertscope: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bertscope", description="Pretrain a small BERT and watch it learn.",
        epilog="Runs are kept in ./runs; set BERTSCOPE_RUNS to keep them elsewhere.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in COMMANDS:
        add(commands)
    return parser
