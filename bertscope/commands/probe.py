"""``bertscope probe``: what does each layer know, and when was it learnt?"""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from bertscope.analysis.probing.request import Request
    from bertscope.analysis.probing.result import Result

EPILOG = """Examples:
  bertscope probe demo
  bertscope probe demo --data en_ewt/ --task upos --task feat:Number@NOUN --seeds 3 --control --mdl
  bertscope probe demo --task sent:depth --all-steps --output depth/
  bertscope probe demo --data en_ewt/ --trees
  bertscope probe path/to/bert --data bigram_shift.txt --sentence cls
  bertscope probe --reproduce depth/probing.json
  bertscope probe --data en_ewt/ --tasks"""


def add_probe(commands) -> None:
    """Add the command to the parser's."""
    parser = commands.add_parser(
        "probe", help="what does each layer know? (part of speech, number ...)",
        description="Train classifiers on each layer's vectors and test them on held-out sentences, beside "
                    "baselines. Interrupted, the same command goes on where it was.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", nargs="*",
                        help="a run (demo), a run at a step (demo@400), a checkpoint directory or a hub "
                             "name; several are compared with the first")
    data = parser.add_argument_group("data")
    data.add_argument("--data", default="miniworld",
                      help="miniworld, a .conllu file, a table (.csv, .jsonl), a file of SentEval, or a "
                           "folder with train, dev and test (%(default)s)")
    data.add_argument("--task", action="append", dest="task", metavar="TASK",
                      help="upos, xpos, deprel, feat:NAME, pair:deprel, sent:depth ...; may be repeated "
                           "(upos; of a table its own)")
    data.add_argument("--tasks", action="store_true", help="list the tasks that the data can serve")
    for name, flag, most in (("training", "--max-train", "8000; 2000; 1000"),
                             ("validation", "--max-validation", "2000; 500; 200"),
                             ("test", "--max-test", "4000; 1000; 300")):
        data.add_argument(flag, type=int, metavar="N",
                          help=f"{name} items; with --trees, --amnesic {name} sentences ({most})")
    data.add_argument("--apart", action="store_true", help="keep word types apart between the parts")
    data.add_argument("--unique", action="store_true",
                      help="leave a sentence that is in two parts out of training or validation")
    data.add_argument("--split-seed", type=int, default=0, help="seed of the split (%(default)s)")
    what = parser.add_argument_group("representation and probe")
    what.add_argument("--layers", metavar="L", help="only these, 0 = embeddings: 0-3,6 (all)")
    what.add_argument("--word", choices=("mean", "first", "last"), default="mean",
                      help="a word's vector from its pieces (%(default)s)")
    what.add_argument("--sentence", choices=("cls", "mean", "max"), default="mean",
                      help="a sentence's vector (%(default)s)")
    what.add_argument("--masked", action="store_true",
                      help="hide each probed word behind [MASK]: what does its context tell?")
    what.add_argument("--mlp", action="store_true", help="one hidden layer instead of a linear probe")
    what.add_argument("--mix", action="store_true",
                      help="also a learnt mix of all layers, and of layers 0 to each")
    checks = parser.add_argument_group("controls and uncertainty")
    checks.add_argument("--seeds", type=int, default=1, metavar="N", help="so many seeds, 0 to N-1 "
                                                                         "(%(default)s)")
    checks.add_argument("--seed", type=int, default=0, help="the first seed (%(default)s)")
    checks.add_argument("--control", action="store_true", help="control tasks, for selectivity")
    checks.add_argument("--mdl", action="store_true", help="minimum description length (online code)")
    checks.add_argument("--baselines", action=argparse.BooleanOptionalAction, default=True,
                        help="also the same model with random weights (yes)")
    structure = parser.add_argument_group("instead of a task's probe").add_mutually_exclusive_group()
    structure.add_argument("--trees", action="store_true",
                           help="the structural probe: is the dependency tree in the layer's geometry?")
    structure.add_argument("--amnesic", action="store_true",
                           help="remove what each layer says of the task and watch the model's own loss")
    steps = parser.add_argument_group("over the training")
    steps.add_argument("--step", type=int, help="the run's checkpoint at this step")
    steps.add_argument("--all-steps", action="store_true", help="every checkpoint of the run")
    parser.add_argument("--output", type=Path, metavar="FILE_OR_FOLDER",
                        help="write .csv, .parquet, .json (reproduces the result), .tex or .md (methods); "
                             "a folder gets all of them")
    parser.add_argument("--reproduce", type=Path, metavar="JSON",
                        help="do again what a result's JSON file says, and compare")
    parser.set_defaults(command=probe)


def probe(args) -> int:
    """Run the command; returns the exit status."""
    if args.tasks:
        return _list_tasks(args)
    if args.reproduce:
        return _reproduce(args)
    asked = request(args)
    if args.trees or args.amnesic:
        return _structure(args, asked)
    _check_output(args)
    with _bar() as told:
        result = asked.answer(told)
    show(result)
    if args.output:
        from bertscope.analysis.probing.report import save

        print("Written: " + ", ".join(map(str, save(result, args.output))))
    return 0


def _structure(args, asked: Request) -> int:
    from bertscope.commands import probe_structure

    probe_structure.refuse_unused(args)
    paths = probe_structure.output(args.output, args.trees)
    with _bar() as told:
        table, said = probe_structure.tables(asked, args.trees, told, _sizes(args))
    probe_structure.show(table, args.trees)
    for path in paths:
        probe_structure.save(table, said, path)
    if paths:
        print("Written: " + ", ".join(map(str, paths)))
    return 0


def _check_output(args) -> None:
    if args.output:
        from bertscope.analysis.probing.report import writable

        writable(args.output)


def request(args) -> Request:
    """What the arguments ask.

    Raises:
        BertScopeError: they do not go together.
    """
    from bertscope.analysis.probing.protocol import Protocol
    from bertscope.analysis.probing.request import Request

    if not args.checkpoint:
        raise BertScopeError("Name a run or a checkpoint to probe.")
    if args.seeds < 1:
        raise BertScopeError("--seeds must be at least 1.")
    if args.all_steps and args.step is not None:
        raise BertScopeError("Give either --step or --all-steps.")
    names = [name if args.step is None else f"{name}@{args.step}" for name in args.checkpoint]
    return Request(
        tuple(names), str(args.data), tuple(args.task or ()),
        Protocol(probe="mlp" if args.mlp else "linear", word=args.word, sentence=args.sentence,
                 layers=_layers(args.layers), hide=args.masked, control=args.control,
                 codelength=args.mdl, mix=args.mix, random=args.baselines, **_sizes(args)),
        tuple(range(args.seed, args.seed + args.seeds)), args.all_steps, args.split_seed, args.apart,
        args.unique)


def _sizes(args) -> dict[str, int]:
    """The sizes that the command line names."""
    names = ("max_train", "max_validation", "max_test")
    return {name: value for name in names if (value := getattr(args, name)) is not None}


def _layers(text: str | None) -> tuple[int, ...] | None:
    """``0-3,6`` -> (0, 1, 2, 3, 6).

    Raises:
        BertScopeError: it is something else.
    """
    if text is None:
        return None
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", part)
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise BertScopeError(f"Layers are written like 0-3,6; {text!r} is not.")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return tuple(found)


def _list_tasks(args) -> int:
    from bertscope.analysis.probing.sources import open_source

    source = open_source(args.data, args.split_seed)
    print(f"# {source.name}: {source.note}")
    for task in source.offers(args.split_seed):
        print(f"{task.name:24} {task.title:44} {task.classes:>4} labels {task.words:>8,} items")
    return 0


def _reproduce(args) -> int:
    from bertscope.analysis.probing.report import save
    from bertscope.analysis.probing.request import reproduce

    _check_output(args)
    with _bar() as told:
        result, notes = reproduce(args.reproduce, told)
    show(result)
    print("\n".join(notes) if notes else "Everything is as in the record.")
    if args.output:
        save(result, args.output)
    return 1 if notes else 0


# -- what is printed --------------------------------------------------------------------------

#: Columns of the summary that are shown, where there are any: name, head.
SHOWN = (("accuracy", "accuracy"), ("low", "low"), ("high", "high"), ("macro_f1", "macro F1"),
         ("accuracy_new_types", "new words"), ("random", "random"), ("selectivity", "selectivity"),
         ("codelength", "bits"), ("compression", "compression"))


def show(result: Result) -> None:
    """Print a result: a table of layers for each checkpoint, or one of steps where there are many."""
    summary = result.summary
    for task, items in result.tasks.items():
        table = summary[summary["task"] == task]
        one = result.scores[result.scores["task"] == task].iloc[0]
        print(f"\n{items.title} ({task}): {int(one['items_train']):,} training, "
              f"{int(one['items_validation']):,} validation, {int(one['items_test']):,} test items, "
              f"{int(one['classes'])} labels, seeds {', '.join(map(str, result.seeds))}")
        first = table.iloc[0]
        known = [f"majority {first['majority']:.3f}"] + [
            f"{label} {first[name]:.3f}" for name, label in (
                ("word_identity", "most frequent label of each word"),
                ("length_only", "most frequent label of each length")) if first[name] == first[name]]
        print("Without a model: " + "; ".join(known))
        many = len(result.checkpoints) > 3
        (_show_steps if many else _show_layers)(result, table)
    _show_where_and_when(result)


def _show_layers(result: Result, table) -> None:
    from bertscope.analysis.probing.uncertainty import few

    for name in result.checkpoints:
        print(f"# {name}")
        for mix in (False, True):
            rows = table[(table["checkpoint"] == name) & (table["mix"] == mix)]
            shown = [(column, head) for column, head in SHOWN
                     if column in rows and rows[column].notna().any()]
            if len(rows):
                print("  ".join([f"{'layers 0 to' if mix else 'layer':>11}",
                                 *(f"{head:>11}" for _, head in shown)]))
            for _, row in rows.iterrows():
                cells = [f"{row[column]:>11,.0f}" if column == "codelength" else
                         f"{row[column]:>11.3f}" for column, _ in shown]
                best = " *" if row["best"] else ""
                print("  ".join([f"{row['layer']:>11}", *cells]) + best)
    print("* not significantly below the best layer")
    if note := few(result.sentences_tested(table.iloc[0]["task"])):
        print(note)
    first, *others = result.checkpoints
    for other in others:
        found = result.between_checkpoints(first, other)
        found = found[found["task"] == table.iloc[0]["task"]]
        said = ", ".join(f"{row.layer}: {row.difference:+.3f}"
                         + (f" [{row.low:+.3f}, {row.high:+.3f}]" if row.low == row.low else "")
                         + (" *" if row.significant else "") for row in found.itertuples())
        print(f"{other} against {first}, by layer (* significant after Holm's correction): {said}")


def _show_steps(result: Result, table) -> None:
    table = table[~table["mix"]]
    print("  ".join([f"{'checkpoint':>20}", *(f"layer {layer:>2}" for layer in result.layers)]))
    for name in [*result.checkpoints, *result.untrained.values()]:
        rows = table[table["checkpoint"] == name].set_index("layer")["accuracy"]
        print("  ".join([f"{name:>20}", *(f"{rows[layer]:>8.3f}" for layer in rows.index)]))


def _show_where_and_when(result: Result) -> None:
    if len(result.centres):
        print("\nExpected layer, centre of gravity and weights of the mix of all layers, and what each layer "
              "from 1 on adds to those below:")
        for row in result.centres.itertuples():
            where = "no significant gain over layer 0" if row.expected_layer != row.expected_layer \
                else f"{row.expected_layer:.2f} [{row.low:.2f}, {row.high:.2f}]"
            own = result.mixes[(result.mixes["task"] == row.task)
                               & (result.mixes["checkpoint"] == row.checkpoint)]
            print(f"  {row.task} on {row.checkpoint}: {where}; centre {row.centre:.2f}\n    weights "
                  + " ".join(f"{weight:.2f}" for weight in own["weight"]) + "\n    gains        "
                  + " ".join(f"{gain:+.3f}" for gain in own["gain"][1:]))
    if len(result.onsets):
        print("\nHalf of the whole gain is reached at step:")
        for row in result.onsets[result.onsets["chosen"]].itertuples():
            when = "no significant gain" if row.onset != row.onset else \
                f"{row.onset:,.0f} [{row.low:,.0f}, {row.high:,.0f}]"
            print(f"  {row.task}, layer {row.layer}: {when}")


@contextmanager
def _bar():
    from tqdm import tqdm

    with tqdm(total=1000, disable=not sys.stderr.isatty(), bar_format="{l_bar}{bar}", leave=False) as bar:
        def told(message: str, share: float | None) -> None:
            bar.set_description_str(message)
            bar.n = round(1000 * (share or 0.0))
            bar.refresh()

        yield told
