"""Settings as plain dataclasses: to JSON and back, from dotted keys, each field with its help line.

The command line and the pages' forms are made from these fields and cannot drift from them.
Unknown keys are errors.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import types
import typing
from dataclasses import field

from bertscope.errors import BertScopeError


def knob(default, help: str, **limits):
    """A field with its help line and limits (``min``, ``max``, ``choices``)."""
    return field(default=default, metadata={"help": help, **limits})


class Settings:
    """A dataclass of sections (dataclasses of plain values) that goes to JSON and back."""

    def check(self) -> None:
        """Conditions between fields; a section may have such a method too.

        Raises:
            BertScopeError: one is not met.
        """

    def to_dict(self) -> dict:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict):
        """The inverse of :meth:`to_dict`. Missing keys take defaults.

        Raises:
            BertScopeError: a key is unknown, or a value has the wrong type or is out of range.
        """
        return _build(cls, values, "", cls)

    def override(self, changes: dict[str, object]):
        """A copy with dotted keys changed, e.g. ``{"training.steps": 500}``."""
        values = self.to_dict()
        for key, value in changes.items():
            *path, leaf = key.split(".")
            place = values
            for part in path:
                place = place.get(part) if isinstance(place, dict) else None
            if not isinstance(place, dict) or leaf not in place:
                raise BertScopeError(f"There is no setting called {key!r}.{_meant(key, type(self))}")
            place[leaf] = value
        return self.from_dict(values)


def knobs(section: type) -> list[dict]:
    """The fields of one section as ``{name, type, default, help, ...limits}``, for forms and flags."""
    hints = typing.get_type_hints(section)
    return [
        {"name": f.name, "type": _plain(hints[f.name])[0], "optional": _plain(hints[f.name])[1],
         "default": f.default, **f.metadata}
        for f in dataclasses.fields(section)
        if not dataclasses.is_dataclass(hints[f.name])
    ]


def _meant(key: str, settings: type) -> str:
    """" Did you mean ...?", where a setting of a like name exists."""
    known = []
    for outer in dataclasses.fields(settings):
        inner = outer.default_factory
        known += [f"{outer.name}.{f.name}" for f in dataclasses.fields(inner)] \
            if dataclasses.is_dataclass(inner) else [outer.name]
    near = difflib.get_close_matches(key, known, 1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _plain(hint) -> tuple[type, bool]:
    """``int | None`` -> ``(int, True)``; ``int`` -> ``(int, False)``."""
    if isinstance(hint, types.UnionType):
        (inner,) = [arg for arg in typing.get_args(hint) if arg is not type(None)]
        return inner, True
    return hint, False


def _build(cls: type, values: object, path: str, settings: type):
    if not isinstance(values, dict):
        raise BertScopeError(f"The configuration's {path or 'top level'} must be an object.")
    hints = typing.get_type_hints(cls)
    unknown = sorted(set(values) - set(hints))
    if unknown:
        raise BertScopeError(f"There is no setting called {path + unknown[0]!r}."
                             f"{_meant(path + unknown[0], settings)}")
    built = {}
    for f in dataclasses.fields(cls):
        if f.name not in values:
            continue
        hint, value, key = hints[f.name], values[f.name], path + f.name
        if dataclasses.is_dataclass(hint):
            built[f.name] = _build(hint, value, key + ".", settings)
        else:
            built[f.name] = _check(key, value, *_plain(hint), f.metadata)
    made = cls(**built)
    if hasattr(made, "check"):
        made.check()
    return made


def _check(key: str, value, kind: type, optional: bool, limits) -> object:
    if value is None:
        if optional:
            return None
        raise BertScopeError(f"{key} needs a value.")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BertScopeError(f"{key} must be of type {kind.__name__}, not {json.dumps(value, default=str)}.")
    if kind is float and not math.isfinite(value):
        raise BertScopeError(f"{key} must be a finite number.")
    if "choices" in limits and value not in limits["choices"]:
        raise BertScopeError(f"{key} must be one of {', '.join(limits['choices'])}, not {value!r}.")
    if "min" in limits and value < limits["min"]:
        raise BertScopeError(f"{key} must be at least {limits['min']:g}, not {value:g}.")
    if "max" in limits and value > limits["max"]:
        raise BertScopeError(f"{key} must be at most {limits['max']:g}, not {value:g}.")
    return value
