"""``bertscope runs``: what there is, and how it stands."""

from __future__ import annotations

from bertscope import runs
from bertscope.errors import BertScopeError


def add_runs(commands) -> None:
    commands.add_parser("runs", help="list the runs and how each stands").set_defaults(command=_runs)


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
