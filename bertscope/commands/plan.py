"""``bertscope plan``: what would this training cost?"""

from __future__ import annotations

import os

from bertscope import launch
from bertscope.commands.flags import given
from bertscope.commands.pretraining_flags import add_run_settings
from bertscope.presets import run_config


def add_plan(commands) -> None:
    parser = commands.add_parser(
        "plan", help="what would this training cost?",
        description="Count parameters, memory and operations of a configuration, and measure a few "
                    "steps of it on this machine. Takes the settings of 'train'.",
        epilog="Example:  bertscope plan --size mini --max-length 512")
    add_run_settings(parser)
    parser.set_defaults(command=_plan)


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
          f"a vocabulary of {config.corpus.vocab_size:,}, on {config.corpus.source}\n{how_long} of "
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


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.0f} seconds"
