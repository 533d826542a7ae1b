"""The command line: ``bertscope train | finetune | probe | demo | app | runs | corpus``.

Each command is a few lines over the library; torch is imported only by those that need it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from bertscope import config as settings
from bertscope import launch, runs
from bertscope.errors import BertScopeError
from bertscope.finetune_command import add_finetune, predict_task
from bertscope.flags import add_settings, given
from bertscope.probe_command import add_probe
from bertscope.score_command import add_score

SECTIONS = {
    "corpus": settings.CorpusConfig,
    "model": settings.ModelConfig,
    "objective": settings.ObjectiveConfig,
    "training": settings.TrainingConfig,
}
#: Flags that are shorter than their setting's name.
SHORT = {"corpus.source": "corpus"}
#: Settings that a recipe or a built-in corpus has defaults of its own for.
BROUGHT = {key for changes in (*settings.RECIPES.values(), *settings.CORPUS_DEFAULTS.values())
           for key in changes}


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
    _add_train(commands)
    _add_plan(commands)
    _add_compare(commands)
    add_finetune(commands)
    add_probe(commands)
    _add_predict(commands)
    add_score(commands)
    demo = commands.add_parser("demo", help="train the demo run in the background, open the app on it",
                               description="Start the demo run (miniworld, recipe bert) unless it "
                                           "is there already, and serve the app.")
    demo.add_argument("--port", type=int, default=8501, help="the app's port (%(default)s)")
    demo.set_defaults(command=_demo)
    app = commands.add_parser("app", help="serve the app",
                              description="Serve the app on this machine and print its address.")
    app.add_argument("--port", type=int, default=8501, help="port (%(default)s)")
    app.add_argument("--host", default="localhost", help="address to listen on (%(default)s)")
    app.set_defaults(command=_app)
    listing = commands.add_parser("runs", help="list the runs and how each stands")
    listing.set_defaults(command=_runs)
    corpus = commands.add_parser("corpus", help="write miniworld with its gold as CoNLL-U",
                                 description="Write miniworld's text with its exact annotation.")
    corpus.add_argument("output", type=Path, help="the .conllu file to write")
    corpus.add_argument("--documents", type=int, default=200, help="how many (%(default)s)")
    corpus.add_argument("--seed", type=int, default=1, help="which ones (%(default)s); training uses 0")
    corpus.set_defaults(command=_corpus)
    return parser


# -- train ------------------------------------------------------------------------------------


def _add_train(commands) -> None:
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
    parser.add_argument("--size", choices=settings.SIZES,
                        help="the model's layers and width, after Turc et al. 2019")
    parser.add_argument("--recipe", choices=settings.RECIPES, default="bert",
                        help="what is trained (%(default)s)")
    parser.add_argument("--from-step", type=int, metavar="STEP",
                        help="with --resume: go back to this saved step first")
    _add_knobs(parser)
    parser.set_defaults(command=_train)


def _add_plan(commands) -> None:
    parser = commands.add_parser(
        "plan", help="what would this training cost?",
        description="Count parameters, memory and operations of a configuration, and measure a few "
                    "steps of it on this machine. Takes the settings of 'train'.",
        epilog="Example:  bertscope plan --size mini --max-length 512")
    parser.add_argument("--size", choices=settings.SIZES, help="the model's layers and width")
    parser.add_argument("--recipe", choices=settings.RECIPES, default="bert",
                        help="what is trained (%(default)s)")
    _add_knobs(parser)
    parser.set_defaults(command=_plan)


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.0f} seconds"


def _add_compare(commands) -> None:
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


def _add_knobs(parser) -> None:
    add_settings(parser, SECTIONS, SHORT, brought=BROUGHT,
                 note="; recipes or built-in corpora bring their own")


def _plan(args) -> int:
    for name, value in launch.TRAINER_THREADS.items():
        os.environ.setdefault(name, value)
    from bertscope.training.cost import plan

    config = run_config(given(args), args.size, args.recipe)
    cost = plan(config)
    training = config.training
    how_long = f"{training.max_minutes:g} minutes" if training.max_minutes else \
        f"{training.steps:,} steps"
    print(f"{config.recipe}, {config.model.num_hidden_layers} layers x {config.model.hidden_size}, "
          f"a vocabulary of {config.corpus.vocab_size:,}\n{how_long} of "
          f"{training.batch_tokens or training.batch_size * config.objective.max_length:,} word pieces, "
          f"examples of {config.objective.max_length}")
    for title, parts, form in (("parameters", cost.parameters, "{:,}".format),
                               ("memory", cost.memory, lambda n: f"{n / 2**20:,.1f} MiB")):
        print(f"\n{title:24}{form(sum(parts.values())):>16}")
        for name, number in parts.items():
            print(f"  {name:22}{form(number):>16}")
    print(f"\nper token               {cost.flops_per_token / 1e6:>12,.2f} MFLOP, forward and backward"
          f"\n  of these              {cost.attention_share:>12.1%} double with twice the length (attention)"
          f"\nspeed on {cost.device:15}{cost.tokens_per_second:>12,.0f} tokens per second"
          f"\nthe whole training      {_duration(cost.seconds):>20}")
    return 0


def run_config(changes: dict[str, object], size: str | None = None, recipe: str = "bert",
               ) -> settings.RunConfig:
    """A configuration from what was asked for, over the recipe's and the corpus's own defaults."""
    asked = {k: v for k, v in changes.items() if v is not None}
    # "tiny" is the default shape, which a corpus may refine.
    shape = {} if size in (None, "tiny") else {
        f"model.{k}": v for k, v in settings.sized(size).items()}
    if "training.init_from" in asked:
        shape = settings.shape_of(str(asked["training.init_from"]))
    defaults = settings.defaults(recipe, str(asked.get("corpus.source", "miniworld")))
    return settings.RunConfig().override({**defaults, **shape, **asked})


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

    train(run)
    return _report(run) if not int(os.environ.get("RANK", "0")) else 0


def _new_run(args, config: settings.RunConfig) -> runs.Run:
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


# -- predict ----------------------------------------------------------------------------------


def _add_predict(commands) -> None:
    parser = commands.add_parser(
        "predict", help="fill in [MASK] with a checkpoint; label a text with a fine-tuned one",
        epilog='Examples:  bertscope predict demo "the [MASK] is very old."\n'
               '           bertscope predict demo-miniworld-pair "who came?" --pair "Anna came."',
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="a run, a run at a step (demo@400), a directory or a hub name")
    parser.add_argument("text", help="a sentence with [MASK] in it; for a fine-tuned checkpoint the "
                                     "text, or the question")
    parser.add_argument("--pair", help="the second text, or the paragraph, for a fine-tuned one")
    parser.add_argument("-k", type=int, default=5, help="candidates for each place (%(default)s)")
    parser.set_defaults(command=_predict)


def _predict(args) -> int:
    from bertscope.analysis.activations import encode, load
    from bertscope.analysis.predictions import predict

    if args.k < 1:
        raise BertScopeError("-k must be at least 1.")
    path = runs.find_checkpoint(args.checkpoint)
    if predict_task(path, args.text, args.pair, args.k):
        return 0
    model = load(path)
    encoded = encode(model, args.text)
    masked = [i for i, piece in enumerate(encoded.input_ids)
              if piece == model.tokenizer.mask_token_id]
    if not masked:
        raise BertScopeError("There is no [MASK] in the text; write it where a word is to be "
                             "guessed, as in \"the [MASK] is very old\".")
    print(f"# {model.path}", file=sys.stderr)
    for place in predict(model, encoded, masked, args.k):
        print("  ".join(f"{c.token} {c.probability:.3f}" for c in place.candidates))
    return 0


# -- app and demo -----------------------------------------------------------------------------


def _app(args) -> int:
    return _serve(args.port, args.host)


def _demo(args) -> int:

    run = demo_run()
    if run.status()["state"] in ("stopped", "interrupted", "failed") or not run.checkpoints() \
            and not run.alive():
        launch.start(run)
        print("The demo run is being trained in the background.")
    return _serve(args.port, "localhost", f"?run={run.name}")


def demo_run() -> runs.Run:
    """The run ``demo``, made if it is not there yet."""
    try:
        return runs.open_run("demo")
    except BertScopeError:
        return runs.create_run("demo", run_config({}))


def _serve(port: int, host: str, query: str = "") -> int:
    script = Path(__file__).resolve().parent.parent / "app.py"
    print(f"BertScope: http://{host}:{port}/{query}", flush=True)
    environment = {**os.environ, "BERTSCOPE_RUNS": str(runs.runs_root())}
    return subprocess.call(
        [sys.executable, "-m", "streamlit", "run", str(script), f"--server.port={port}",
         f"--server.address={host}", "--server.headless=true"],
        cwd=script.parent, env=environment)


def _runs(args) -> int:
    for run in runs.list_runs():
        status, saved = run.status(), run.checkpoints()
        print(f"{run.name:30} {status['state']:12} step {status['step']:>7}"
              f"  {len(saved):>3} checkpoints{_tuned(run)}")
    return 0


def _tuned(run: runs.Run) -> str:
    """What a fine-tuned run is for."""
    try:
        record = run.config_record()
    except BertScopeError:
        return ""
    if record.get("kind") != "finetuning":
        return ""
    data = record.get("data", {}).get("name") or record.get("config", {}).get("data", {}).get("source")
    return f"  fine-tuned on {data}"


def _corpus(args) -> int:
    from bertscope.corpus.conllu import write_conllu
    from bertscope.corpus.miniworld import gold_sentences

    if args.documents < 1 or args.seed < 0:
        raise BertScopeError("--documents must be at least 1 and --seed at least 0.")
    try:
        write_conllu(gold_sentences(args.documents, args.seed), args.output)
    except OSError as error:
        raise BertScopeError(f"{args.output} cannot be written: {error.strerror}.") from None
    print(f"{args.documents} documents in {args.output}")
    return 0
