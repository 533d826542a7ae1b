"""Command-line flags made from the settings' dataclasses, so that they cannot drift apart."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping

from bertscope import settings


def add_settings(parser: argparse.ArgumentParser, sections: Mapping[str, type],
                 short: Mapping[str, str] = {}, left_out: Collection[str] = (),
                 brought: Collection[str] = (), note: str = "") -> None:
    """A flag for each field of each section; its destination is the dotted key.

    Args:
        short: flags that aren't called like their setting, by key.
        left_out: keys without a flag.
        brought: keys whose default may be another one, as ``note`` says.
    """
    for section, kind in sections.items():
        group = parser.add_argument_group(section)
        for knob in settings.knobs(kind):
            key = f"{section}.{knob['name']}"
            if key not in left_out:
                _add(group, key, short.get(key, knob["name"]), knob, note if key in brought else "")


def _add(group, key: str, name: str, knob: dict, note: str) -> None:
    default = "none" if knob["default"] is None else knob["default"]
    text = f"{knob['help']} ({default}{note})".replace("%", "%%")
    more = {"action": argparse.BooleanOptionalAction} if knob["type"] is bool else {
        "type": knob["type"], "choices": knob.get("choices"),
        "metavar": None if "choices" in knob else knob["type"].__name__.upper()}
    group.add_argument("--" + name.replace("_", "-"), dest=key, default=None, help=text, **more)


def given(args: argparse.Namespace) -> dict[str, object]:
    """The settings that the command line names, by dotted key."""
    return {key: value for key, value in vars(args).items() if "." in key and value is not None}
