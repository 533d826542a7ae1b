"""The settings of a pretraining run as flags, for ``train`` and ``plan``."""

from __future__ import annotations

import argparse

from bertscope.commands.flags import add_settings
from bertscope.config import RECIPES, SECTIONS
from bertscope.presets import CORPUS_DEFAULTS, SIZES

#: Flags that are shorter than their setting's name.
SHORT = {"corpus.source": "corpus"}
#: Settings that a recipe or a built-in corpus has defaults of its own for.
BROUGHT = {key for changes in (*RECIPES.values(), *CORPUS_DEFAULTS.values()) for key in changes}


def add_run_settings(parser: argparse.ArgumentParser) -> None:
    """``--size``, ``--recipe`` and a flag for each setting."""
    parser.add_argument("--size", choices=SIZES,
                        help="the model's layers and width, after Turc et al. 2019")
    parser.add_argument("--recipe", choices=RECIPES, default="bert",
                        help="what is trained (%(default)s)")
    add_settings(parser, SECTIONS, SHORT, brought=BROUGHT,
                 note="; recipes or built-in corpora bring their own")
