"""A result for others: CSV, Parquet, a record in JSON, a LaTeX table, a paragraph on methods."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from bertscope.analysis.probing import classifier, codelength, mlp, softmax
from bertscope.analysis.probing.methods import methods
from bertscope.analysis.probing.protocol import VERSION
from bertscope.analysis.probing.result import Result
from bertscope.analysis.probing.uncertainty import ALPHA, RESAMPLES
from bertscope.analysis.probing.versions import versions
from bertscope.errors import BertScopeError

#: What a row of the LaTeX table can hold, and its head.
COLUMNS = {"accuracy": "Accuracy", "selectivity": "Selectivity", "compression": "Compression",
           "random": "Random weights"}


def record(result: Result) -> dict:
    """JSON values: what was asked, of what, with what, and every number; enough to do it again."""
    return {
        "bertscope_probing": VERSION,
        "request": result.request,
        "protocol": result.protocol.to_dict(),
        "seeds": list(result.seeds),
        "versions": versions(),
        "checkpoints": [{"name": name, "step": result.step(name), "path": result.paths[name],
                         "fingerprint": result.fingerprints[name]} for name in result.checkpoints],
        "tasks": [{"name": name, "title": items.title, "kind": items.kind, "labels": items.classes,
                   "fingerprint": items.fingerprint, "available": items.sizes,
                   "provenance": items.provenance} for name, items in result.tasks.items()],
        "settings": {
            "strengths": list(classifier.STRENGTHS), "path_items": classifier.PATH_ITEMS,
            "tolerance": softmax.TOLERANCE, "mlp": {"hidden": mlp.HIDDEN, "rate": mlp.RATE,
                                                    "batch": mlp.BATCH, "decays": list(mlp.DECAYS)},
            "fractions": list(codelength.FRACTIONS)},
        "uncertainty": {"unit": "sentence and seed", "resamples": RESAMPLES, "confidence": 0.95,
                        "interval": "percentiles, widened by t over sentences",
                        "correction": "Holm", "alpha": ALPHA},
        "scores": rows(result.scores),
        "summary": rows(result.summary),
        "centres": rows(result.centres),
        "mixes": rows(result.mixes),
        "onsets": rows(result.onsets),
    }


def rows(table: pd.DataFrame) -> list[dict]:
    """A table as JSON values; what is missing or not finite is None."""
    return [{key: _plain(value) for key, value in row.items()} for row in table.to_dict("records")]


def _plain(value):
    if value is None or value is pd.NA:
        return None
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def latex(result: Result, checkpoint: str | None = None) -> str:
    """A table for a paper (booktabs): layers in rows, for each task accuracy with its interval, and
    what else was measured; the baselines under them. The best set is bold.

    Args:
        checkpoint: one of ``result.checkpoints``, the last by default.

    Raises:
        BertScopeError: it was not probed.
    """
    name = checkpoint or result.checkpoints[-1]
    if name not in result.checkpoints:
        raise BertScopeError(f"{name} was not probed.")
    table = result.summary
    table = table[(table["checkpoint"] == name) & ~table["mix"]]
    shown = [column for column in COLUMNS if column in table and table[column].notna().any()]
    tasks = list(result.tasks)
    lines = [f"% {_comment(name)}; bold: not significantly below the best layer (Holm, "
             f"alpha = {ALPHA}); in brackets 95 % intervals",
             r"\begin{tabular}{l" + "r" * len(shown) * len(tasks) + "}", r"\toprule",
             " & ".join(["", *(rf"\multicolumn{{{len(shown)}}}{{c}}{{{tex(result.tasks[t].title)}}}"
                               for t in tasks)]) + r" \\",
             " & ".join(["Layer", *(COLUMNS[c] for _ in tasks for c in shown)]) + r" \\", r"\midrule"]
    for layer in sorted(set(table["layer"])):
        cells = [str(layer)]
        for task in tasks:
            row = table[(table["task"] == task) & (table["layer"] == layer)].iloc[0]
            cells += [_cell(row, column) for column in shown]
        lines.append(" & ".join(cells) + r" \\")
    lines.append(r"\midrule")
    for column, label in (("majority", "Majority"), ("word_identity", "Word identity"),
                          ("length_only", "Length only")):
        if column in table and table[column].notna().any():
            cells = [label]
            for task in tasks:
                value = table[table["task"] == task][column].iloc[0]
                cells += [_percent(value), *[""] * (len(shown) - 1)]
            lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _cell(row: pd.Series, column: str) -> str:
    if column == "compression":
        return "" if math.isnan(row[column]) else f"{row[column]:.2f}"
    if column != "accuracy":
        return _percent(row[column])
    value = f"{100 * row['accuracy']:.1f}"
    value = rf"\textbf{{{value}}}" if row["best"] else value
    known = row["low"] == row["low"]
    return rf"{value} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]" if known else value


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.1f}"


def tex(text: str) -> str:
    """Text in which nothing has a meaning for LaTeX."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
               **{mark: "\\" + mark for mark in "&%$#_{}"}}
    return "".join(special.get(mark, mark) for mark in " ".join(text.split()))


def _comment(text: str) -> str:
    return " ".join(text.split())


def to_json(result: Result) -> str:
    """``record`` as text."""
    return json.dumps(record(result), indent=1, ensure_ascii=False, allow_nan=False)


#: What can be written, by the file's ending.
WRITERS: dict[str, Callable[[Result, Path], None]] = {
    ".csv": lambda result, path: result.scores.to_csv(path, index=False),
    ".parquet": lambda result, path: result.scores.to_parquet(path, index=False),
    ".json": lambda result, path: _write(path, to_json(result)),
    ".tex": lambda result, path: _write(path, latex(result)),
    ".md": lambda result, path: _write(path, methods(result)),
}
#: What a folder gets: name and writer's ending.
FILES = {"scores.csv": ".csv", "scores.parquet": ".parquet", "probing.json": ".json",
         "table.tex": ".tex", "methods.md": ".md"}


def save(result: Result, path: str | Path) -> list[Path]:
    """Write one file, as its ending says (.csv, .parquet, .json, .tex, .md), or all into a folder,
    with ``summary.csv`` and, of a mix, ``mix.csv``.

    Raises:
        BertScopeError: it cannot be written, or the ending is none of these.
    """
    path = writable(path)
    try:
        if path.suffix:
            WRITERS[path.suffix](result, path)
            return [path]
        path.mkdir(parents=True, exist_ok=True)
        for name, ending in FILES.items():
            WRITERS[ending](result, path / name)
        tables = {"summary.csv": result.summary, **({"mix.csv": result.mixes} if len(result.mixes) else {})}
        for name, table in tables.items():
            table.to_csv(path / name, index=False)
        return [path / name for name in (*FILES, *tables)]
    except OSError as error:
        raise BertScopeError(f"{path} cannot be written: {error.strerror or error}.") from None


def writable(path: str | Path) -> Path:
    """The path, if ``save`` knows what to write there: to be asked before hours of work.

    Raises:
        BertScopeError: the ending is unknown, or a file's folder is not there.
    """
    path = Path(path)
    if path.suffix and path.suffix not in WRITERS:
        raise BertScopeError(f"A result is written as {', '.join(WRITERS)}, or into a folder; not as "
                             f"{path.suffix}.")
    if path.suffix and not path.parent.is_dir():
        raise BertScopeError(f"{path} cannot be written: there is no folder {path.parent}.")
    return path


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
