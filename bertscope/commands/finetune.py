"""``bertscope finetune``: a task on a checkpoint, alone or as a sweep; and trying one on a text."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path

from bertscope import launch, runs
from bertscope.commands.flags import add_settings, given
from bertscope.errors import BertScopeError
from bertscope.finetuning.config import SECTIONS, FinetuneConfig

#: Flags that are not called like their setting.
SHORT = {"data.valid": "valid-file", "data.test": "test-file"}
#: A grid's learning rates, as multiples of the default one: 2e-5, 3e-5 and 5e-5 for a base model.
BASE_GRID, SMALL_GRID = (2 / 3, 1.0, 5 / 3), (1 / 3, 1.0, 3.0)


def add_finetune(commands) -> None:
    """Add the command to the parser's."""
    parser = commands.add_parser(
        "finetune", help="teach a checkpoint a task: label sentences, pairs, words; answer questions",
        description="Put a head on a checkpoint and train both on a task. Ctrl-C finishes the step, "
                    "saves and ends; --resume goes on from there.",
        epilog="Examples:  bertscope finetune miniworld --task tokens --from demo\n"
               "           bertscope finetune reviews.csv --from books --label stars --test\n"
               "           bertscope finetune rte/ --from books --grid --seeds 3\n"
               "           bertscope finetune rte/ --from books --worth --curve 100 300 1000\n"
               "           bertscope finetune rte/ --check",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?", metavar="DATA", help="miniworld, a file, a folder with "
                                                                  "train, dev and test, or hf:NAME")
    parser.add_argument("--from", dest="starts", metavar="START", nargs="+",
                        help="a run (books), a run at a step (books@400), a checkpoint's folder or hub "
                             "name; random:NAME for its shape and vocabulary with random weights; "
                             "random for a tiny BERT with a vocabulary of the data (random). Several "
                             "are compared")
    parser.add_argument("--name", help="the run's name (default: start and data)")
    parser.add_argument("--resume", metavar="RUN", help="go on with this run")
    parser.add_argument("--background", action="store_true",
                        help="train in a process of its own and return at once")
    parser.add_argument("--test", action="store_true",
                        help="at the end, measure the best checkpoint on the test part, once")
    parser.add_argument("--check", action="store_true", help="only read the examples, and say what "
                                                             "was found")
    parser.add_argument("--baselines", action="store_true", help="only measure what needs no "
                                                                 "pretraining: linear models")
    parser.add_argument("--output", type=Path, metavar="CSV",
                        help="write a row for each run of a sweep to this file")
    sweep = parser.add_argument_group("sweeps: every combination is a run; called again, they go on")
    sweep.add_argument("--grid", action="store_true", help="three learning rates around the default, "
                                                           "each with --seeds seeds")
    sweep.add_argument("--learning-rates", type=float, nargs="+", metavar="RATE",
                       help="these learning rates instead")
    sweep.add_argument("--seeds", type=int, metavar="N", help="so many seeds of each (3 in a sweep)")
    sweep.add_argument("--curve", nargs="+", metavar="N", help="numbers of training examples, or all")
    sweep.add_argument("--worth", action="store_true",
                       help="begin with random weights, an early, a middle and the last checkpoint of "
                            "the run after --from")
    add_settings(parser, SECTIONS, SHORT, left_out={"data.source"})
    parser.set_defaults(command=finetune)


def finetune(args) -> int:
    """Run the command; returns the exit status."""
    for name, value in launch.TRAINER_THREADS.items():  # before torch is imported
        os.environ.setdefault(name, value)
    if args.resume is not None:
        if given(args) or args.source or args.starts or args.name:
            raise BertScopeError("--resume goes on with the run's own configuration; it takes no "
                                 "other setting.")
        _nothing_after_the_background(args)
        from bertscope.training.loop import train

        return _train(_resumed(args.resume), args, train)
    starts = args.starts or ["random"]
    config = FinetuneConfig().override(
        {"start": starts[0], **given(args), "data.source": args.source or "miniworld"})
    if args.check or args.baselines:
        return (_check if args.check else _baselines)(config)
    if args.grid or args.learning_rates or args.curve or args.worth or args.seeds is not None \
            or len(starts) > 1:
        if args.name or args.background:
            raise BertScopeError("A sweep names its runs itself and runs in the foreground: --name and "
                                 "--background cannot go with it.")
        return _sweep(config, starts, args)
    from bertscope.finetuning.data import read
    from bertscope.finetuning.launch import create, train_new

    if args.output:
        raise BertScopeError("--output goes with a sweep: a single run's numbers are in its metrics.jsonl.")
    _nothing_after_the_background(args)
    if args.background:
        read(config.data, config.training.seed)  # what is wrong with it is said here, not in a log
    return _train(create(config, args.name), args, train_new)


def _nothing_after_the_background(args) -> None:
    if args.background and args.test:
        raise BertScopeError("--test looks at the test part when training has ended, and --background does "
                             "not wait for that: give --resume NAME --test afterwards.")


def _resumed(name: str) -> runs.Run:
    run = runs.open_run(name)
    if run.kind != "finetuning":
        raise BertScopeError(f"Run {name!r} is no fine-tuning run: bertscope train --resume {name}.")
    run.clear_stop()
    return run


def _train(run: runs.Run, args, train: Callable[[runs.Run], None]) -> int:
    print(f"Run {run.name} in {run.path}")
    if args.background:
        launch.start(run)
        return 0
    if run.status()["state"] != "finished":
        train(run)
    from bertscope.training.machine import is_first

    return report(run, args.test) if is_first() else 0


def report(run: runs.Run, test: bool = False) -> int:
    """Say how a run ended and what it reached; returns the exit status."""
    from bertscope.finetuning import results

    status = run.status()
    print(f"{status['state'].capitalize()} at step {status['step']} "
          f"after {status.get('seconds', 0):.0f} s.")
    checkpoint, line = results.best(run)
    baselines = run.config_record().get("baselines", {})
    metric, task = results.metric_of(run), run.config_record().get("task")
    print(f"Validation, best at step {checkpoint.step}: {_said(line, 'eval_')}. Without learning: "
          f"{metric.replace('_', ' ')} {baselines.get(f'{task}_majority_{metric}', 0.0):.3f}.")
    if status["state"] == "stopped":
        print(f"Go on with: bertscope finetune --resume {run.name}")
    elif test and status["state"] == "finished":
        print(f"Test: {_said(results.test(run))}.")
    return 0 if status["state"] in ("finished", "stopped") else 1


def _said(numbers: dict, prefix: str = "") -> str:
    left_out = ("loss", "step", "examples", "at")
    return ", ".join(f"{name.replace('_', ' ')} {value:{'.0f' if name == 'order_errors' else '.3f'}}"
                     for name, value in
                     ((k.removeprefix(prefix), v) for k, v in numbers.items()
                      if k.startswith(prefix) and isinstance(v, float))
                     if name not in left_out and not name.endswith("_loss"))


def _check(config: FinetuneConfig) -> int:
    from bertscope.finetuning.data import read

    data = read(config.data, config.training.seed)
    print(f"{data.name}: {len(data.train):,} training, {len(data.valid):,} validation, "
          f"{len(data.test):,} test examples")
    if data.labels:
        print(f"{len(data.labels)} labels: {', '.join(data.labels[:40])}")
    print(*data.notes, sep="\n")
    return 0


def _baselines(config: FinetuneConfig) -> int:
    from bertscope.finetuning import baselines
    from bertscope.finetuning.data import read
    from bertscope.finetuning.tasks import build_task
    from bertscope.finetuning.work import spec_of

    data = read(config.data, config.training.seed)
    simplest = baselines.simplest(data, build_task(spec_of(config, data), None))
    found = {"commonest": {name.removeprefix(f"{data.task}_majority_"): value
                           for name, value in simplest.items()},
             "linear": baselines.linear(data)}
    if data.task == "tokens":
        found["by word"] = baselines.by_word(data, data.valid)
    for name, numbers in found.items():
        print(f"{name:12} {_said(numbers)}")
    return 0


def _sweep(config: FinetuneConfig, starts: list[str], args) -> int:
    from bertscope.finetuning import sweep

    if args.worth:
        if len(args.starts or ()) != 1:
            raise BertScopeError("--worth takes one run after --from.")
        starts = sweep.milestones(runs.open_run(starts[0]))
    rates = args.learning_rates or (_grid(starts[0]) if args.grid else ())
    found = sweep.Sweep(config, starts, [_examples(n) for n in args.curve or ()], rates,
                        3 if args.seeds is None else args.seeds)
    if found.seeds < 1:
        raise BertScopeError("--seeds must be at least 1.")
    if args.output and not args.output.parent.is_dir():  # said before the work rather than after it
        raise BertScopeError(f"{args.output} cannot be written: its folder does not exist.")
    made = sweep.train_all(found, lambda line: print(line, flush=True))
    table = sweep.frame(made)
    print(sweep.markdown(table))
    if args.test:
        tested = sweep.test_chosen(made, table)
        print("Test part, by what was chosen:", tested.drop(columns="run").to_string(
            index=False, float_format=lambda x: f"{x:.3f}"), sep="\n")
    if args.output:
        try:
            table.to_csv(args.output, index=False)
        except OSError as error:
            raise BertScopeError(f"{args.output} cannot be written: {error.strerror or error}.") from None
    return 0


def _examples(number: str) -> int | None:
    if number == "all":
        return None
    if not number.isdecimal() or not int(number):
        raise BertScopeError(f"--curve takes numbers of examples, or all, not {number!r}.")
    return int(number)


def _grid(start: str) -> list[float]:
    """Three learning rates for the size of the model that a sweep begins with."""
    import json

    from bertscope.config import ModelConfig
    from bertscope.finetuning.config import default_learning_rate, random_weights

    (_, name), width = random_weights(start), ModelConfig().hidden_size
    if name:
        try:
            folder = Path(runs.find_checkpoint(name))
            width = json.loads((folder / "config.json").read_text("utf-8"))["hidden_size"]
        except (OSError, ValueError, KeyError):
            width = 768  # a name on the hub
    rate = default_learning_rate(width)
    return [float(f"{rate * share:.0e}") for share in (BASE_GRID if width >= 512 else SMALL_GRID)]


def predict_task(path: Path | str, text: str, pair: str | None, most: int) -> bool:
    """Print what a fine-tuned checkpoint says of a text; False where it is none."""
    from bertscope.finetuning import predict
    from bertscope.finetuning.tasks import TaskSpec

    spec = predict.task_of(path)
    if spec is None:
        if pair is not None:
            raise BertScopeError("--pair goes with a fine-tuned checkpoint.")
        return False
    either = spec.task == "sentence" and TaskSpec.read(Path(path)) is None  # another program's says not which
    two = spec.task in ("pair", "question") or (either and pair is not None)
    if two != (pair is not None):
        raise BertScopeError(f"{path} is fine-tuned for the task {spec.task}, which reads "
                             + ("two texts: give the second one with --pair." if two else
                                "one text: leave --pair out."))
    model = predict.open_finetuned(path)
    if two and either:
        model = dataclasses.replace(model, spec=dataclasses.replace(spec, task="pair"))
    print(f"# {model.path}", file=sys.stderr)
    if spec.task == "tokens":
        for word in predict.tag(model, text):
            print(f"{word.word:20} {word.tag:12} {word.probability:.3f}")
    elif spec.task == "question":
        for span in predict.answer(model, text, pair or "")[:most]:
            print(f"{span.probability:.3f}  {span.text or '(no answer)'}")
    elif spec.numbers:
        print(f"{predict.estimate(model, text, pair):.3f}")
    else:
        for choice in predict.classify(model, text, pair)[:most]:
            print(f"{choice.probability:.3f}  {choice.label}")
    return True
