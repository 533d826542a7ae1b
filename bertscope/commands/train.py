"""``bertscope train``: pretrain a model, or resume a run."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from bertscope import launch, runs
from bertscope.commands.flags import given
from bertscope.commands.pretraining_flags import add_run_settings
from bertscope.config import RunConfig
from bertscope.errors import BertScopeError
from bertscope.presets import run_config


def add_train(commands) -> None:
    parser = commands.add_parser(
        "train", help="pretrain a model, or resume a run",
        description="Pretrain a model on a corpus. Ctrl-C finishes the step, saves and ends; "
                    "--resume goes on from there.",
        epilog="Examples:  bertscope train --corpus sotu --max-minutes 10\n"
               "           bertscope train --corpus books/ --name books --steps 500\n"
               "           bertscope train --resume books",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", help="the run's name (default: corpus and size)")
    parser.add_argument("--resume", metavar="RUN", help="go on with this run")
    parser.add_argument("--background", action="store_true",
                        help="train in a process of its own and return at once")
    parser.add_argument("--from-step", type=int, metavar="STEP",
                        help="with --resume: go back to this saved step first")
    add_run_settings(parser)
    parser.set_defaults(command=_train)


def _train(args) -> int:
    for name, value in launch.TRAINER_THREADS.items():  # before torch is imported
        os.environ.setdefault(name, value)
    changes = given(args)
    if args.from_step is not None and args.resume is None:
        raise BertScopeError("--from-step goes with --resume RUN.")
    if args.resume is not None:
        if changes or args.size or args.name:
            raise BertScopeError("--resume goes on with the run's own configuration; "
                                 "it takes no other setting.")
        run = runs.open_run(args.resume)
        run.clear_stop()
        if args.from_step is not None:
            run.go_back_to(args.from_step)
        elif run.status()["state"] == "finished":
            print(f"Run {run.name} is finished: there is nothing left to do.")
            return 0
    else:
        run = _new_run(args, run_config(changes, args.size, args.recipe))
    print(f"Run {run.name} in {run.path}")
    if args.background:
        launch.start(run)
        return 0
    from bertscope.training.loop import train
    from bertscope.training.machine import is_first

    train(run)
    return _report(run) if is_first() else 0


def _new_run(args, config: RunConfig) -> runs.Run:
    """Create the run; under torchrun the first process does, the others wait for it."""
    from bertscope.corpus.sources import require_source

    require_source(config.corpus.source)  # before a run is made of it
    kind = "" if config.recipe == "bert" else f"{config.recipe}-"
    stem = f"{Path(config.corpus.source).name}-{kind}{args.size or 'tiny'}"
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        name = runs.free_name(stem) if args.name is None else args.name
        return runs.create_run(name, config)
    from bertscope.training.distributed import create_together

    return create_together(args.name, stem, config)


def _report(run: runs.Run) -> int:
    status = run.status()
    print(f"{status['state'].capitalize()} at step {status['step']} "
          f"after {status.get('seconds', 0):.0f} s.")
    measured = [line for line in run.metrics() if "eval_loss" in line]
    if measured:
        said = [f"{name.upper()} accuracy {measured[-1][f'eval_{name}_accuracy']:.3f}"
                for name in run.config().objectives]
        said += [f"perplexity {value:.1f}" for key, value in measured[-1].items()
                 if key.endswith("_perplexity")]
        print(f"Held out: {', '.join(said)}.")
    if status["state"] == "stopped":
        print(f"Go on with: bertscope train --resume {run.name}")
    return 0 if status["state"] in ("finished", "stopped") else 1
