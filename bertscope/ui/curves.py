"""The curves of a run that is being trained: Altair charts, whose place on the page is kept when
their data grow (a Plotly chart is mounted anew, which flickers)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pandas as pd

from bertscope.ui import theme

#: Points a chart gets at most; a refresh then costs about 20 KB.
MAX_POINTS = 600
HEIGHT = 230


@dataclass(frozen=True)
class Panel:
    """One chart: a column of the training lines, one of the evaluations, horizontal references."""

    title: str
    train: str | None
    held_out: str | None = None
    references: tuple[tuple[str, str], ...] = ()  # (key in the run's baselines, label)
    format: str = ".2f"


#: An objective's name on the page, and whether its lines have the vocabulary's baselines.
OBJECTIVES = {
    "mlm": ("Masked-word", True), "clm": ("Next-word", True), "nsp": ("Next-sentence", False),
    "sop": ("Sentence-order", False), "rtd": ("Original-or-replaced", False)}

#: The tasks of fine-tuning, and their metrics' names on the page.
TASKS = ("sentence", "pair", "tokens", "question")
TASK_METRICS = {"accuracy": "Accuracy", "macro_f1": "Macro-F1", "exact_match": "Exact match", "f1": "F1",
                "pearson": "Pearson's correlation", "spearman": "Spearman's correlation"}


def panels(columns: Collection[str]) -> list[tuple[Panel, ...]]:
    """Accuracy and loss of every objective that the logged columns hold, in rows."""
    def logged(name: str) -> bool:
        return f"{name}_loss" in columns or f"eval_{name}_loss" in columns

    if (task := next(filter(logged, TASKS), None)) is not None:
        return [tuple(_task_metric(task, name) for name in TASK_METRICS if f"eval_{name}" in columns),
                (Panel("Loss", f"{task}_loss", f"eval_{task}_loss", format=".3f"),)]
    found = [name for name in OBJECTIVES if logged(name)]
    return [tuple(_accuracy(name) for name in found), tuple(_loss(name) for name in found)]


def _task_metric(task: str, name: str) -> Panel:
    """A fine-tuned run's metric on its validation part, beside always answering the commonest."""
    return Panel(TASK_METRICS[name], f"{task}_accuracy" if name == "accuracy" else None,
                 f"eval_{name}", ((f"{task}_majority_{name}", "commonest answer"),), "%")


def _accuracy(name: str) -> Panel:
    title, words = OBJECTIVES[name]
    references = (("unigram_accuracy", "most frequent piece"),
                  ("oracle_accuracy", "what the grammar allows")) if words else (
        (f"{name}_chance", "chance"), (f"{name}_oracle", "what the grammar allows"))
    return Panel(f"{title} accuracy", f"{name}_accuracy", f"eval_{name}_accuracy", references, "%")


def _loss(name: str) -> Panel:
    title, words = OBJECTIVES[name]
    references = (("unigram_loss", "unigram"),) if words else ((f"{name}_chance_loss", "chance"),)
    return Panel(f"{title} loss (nats)", f"{name}_loss", f"eval_{name}_loss", references,
                 ".2f" if words else ".3f")


OPTIMISER = (
    Panel("Learning rate", "learning_rate", format=".1e"),
    Panel("Gradient norm", "gradient_norm"),
    Panel("Tokens per second", "tokens_per_second", format="~s"),
)
AXES = {"steps": "step", "minutes": "minutes"}


def frame(lines: list[dict]) -> pd.DataFrame:
    """Logged lines as a table, with ``minutes``."""
    table = pd.DataFrame(lines)
    if "seconds" in table:
        table["minutes"] = table["seconds"] / 60
    return table


def thin(table: pd.DataFrame, most: int = MAX_POINTS) -> pd.DataFrame:
    """At most ``most`` rows at even distances, the last one always."""
    if len(table) <= most:
        return table
    every = -(-len(table) // most)
    kept = table.iloc[::every]
    return kept if kept.index[-1] == table.index[-1] else pd.concat([kept, table.iloc[-1:]])


def chart(panel: Panel, runs: dict[str, pd.DataFrame], baselines: dict, axis: str,
          log: bool = False, zoom: bool = False):
    """Training lines thin, held-out lines strong with points, references dashed.

    Args:
        runs: name -> table of :func:`frame`; the first is blue, the second orange.
        zoom: pan and zoom with the mouse; only of use while the data stand still.
    """
    import altair as alt

    x = alt.X(AXES[axis], type="quantitative", title=None,
              scale=alt.Scale(type="symlog" if log else "linear", nice=False, zero=False),
              axis=alt.Axis(tickCount=6, format=",d" if axis == "steps" else ".3~g", grid=False))
    y = {"axis": alt.Axis(format=panel.format, title=None, tickCount=5),
         "scale": _scale(alt, panel, runs, baselines)}
    layers = []
    for name, meaning in zip(runs, ("main", "other")):
        for column, held_out in ((panel.train, False), (panel.held_out, True)):
            layer = _line(alt, runs[name], column, name, held_out, meaning, x, y, panel)
            if layer is not None:
                layers.append(layer)
    layers += _references(alt, panel, _last(runs, panel), baselines, y)
    drawn = alt.layer(*layers) if layers else alt.Chart(pd.DataFrame({"x": []})).mark_point()
    drawn = drawn.properties(height=HEIGHT, title=alt.TitleParams(
        panel.title, anchor="start", fontSize=13, fontWeight=600))
    return drawn.interactive() if zoom and layers else drawn


def _scale(alt, panel: Panel, runs: dict[str, pd.DataFrame], baselines: dict):
    """Shares begin at nought and leave room for a label above the highest line."""
    if panel.format != "%":
        return alt.Scale(zero=False)
    columns = [c for c in (panel.train, panel.held_out) if c]
    values = [t[c].max() for t in runs.values() for c in columns if c in t]
    values += [baselines[key] for key, _ in panel.references if key in baselines]
    least = min((t[c].min() for t in runs.values() for c in columns if c in t), default=0.0)
    return alt.Scale(domain=[min(0.0, 1.1 * least), min(1.08, 1.12 * max(values, default=1.0))],
                     nice=False)  # a correlation may be below nought


def _last(runs: dict[str, pd.DataFrame], panel: Panel) -> float | None:
    """The newest value of the first run, to keep labels out of the curve's way."""
    table = next(iter(runs.values()))
    for column in (panel.held_out, panel.train):
        if column in table and table[column].notna().any():
            return float(table[column].dropna().iloc[-1])
    return None


def _line(alt, table, column, name, held_out, meaning, x, y, panel):
    if column is None or column not in table:
        return None
    rows = thin(table[table[column].notna()])
    if rows.empty:
        return None
    what = "held out" if held_out else "training"
    rows = rows[[c for c in ("step", "minutes", column) if c in rows]].assign(
        series=f"{name}, {what}")
    colour = theme.colour(meaning)
    single = panel.held_out is None  # no held-out line beside it: draw the training line strongly
    mark = alt.Chart(rows).mark_line(
        color=colour, strokeWidth=2 if held_out or single else 1.2,
        opacity=1 if held_out or single else 0.45, clip=True,
        point=alt.OverlayMarkDef(color=colour, filled=True, size=22) if held_out else False)
    return mark.encode(
        x=x, y=alt.Y(column, type="quantitative", **y),
        tooltip=[alt.Tooltip("series:N", title=" "), alt.Tooltip("step:Q", format=","),
                 alt.Tooltip(f"{column}:Q", format=panel.format.replace("%", ".1%"),
                             title=panel.title)])


def _references(alt, panel, last, baselines, y) -> list:
    """Dashed lines; a label stands at the end where the curve is not."""
    layers, grey = [], theme.colour("baseline")
    for key, label in panel.references:
        value = baselines.get(key)
        if not isinstance(value, (int, float)):
            continue
        base = alt.Chart(pd.DataFrame([{"y": float(value), "label": label}])).encode(
            y=alt.Y("y:Q", **y), tooltip=[
                alt.Tooltip("label:N", title=" "),
                alt.Tooltip("y:Q", format=panel.format.replace("%", ".1%"), title="value")])
        higher_is_better = panel.format == "%"
        left = last is None or (value > last) == higher_is_better
        layers.append(base.mark_rule(strokeDash=[5, 4], color=grey, strokeWidth=1.3))
        layers.append(base.mark_text(
            align="left" if left else "right", baseline="bottom", dx=4 if left else -4, dy=-3,
            color=grey, fontSize=11).encode(
                x=alt.value(0) if left else alt.value("width"), text="label:N"))
    return layers
