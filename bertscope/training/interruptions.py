"""How a training ends before its time: a signal, a wish to stop, a failure."""

from __future__ import annotations

import signal
import sys
import traceback
from contextlib import contextmanager, suppress

from bertscope.errors import BertScopeError
from bertscope.runs import Run


class Stopped(Exception):
    """Somebody asked the run to stop before it had begun."""


@contextmanager
def failures_noted(run: Run, main: bool):
    """A failure's sentence goes to the status, a defect's traceback to the log as well."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, OSError) and not run.path.is_dir():
            raise BertScopeError(f"The folder of run {run.name!r} was deleted: its training ends.") \
                from None
        if main and not isinstance(error, Stopped):
            known = isinstance(error, BertScopeError)
            if not known and not isinstance(error, KeyboardInterrupt):
                traceback.print_exc()
            message = str(error) if known else f"{type(error).__name__}: {error}"
            with suppress(OSError):  # a full disk takes no status either
                run.write_status(state="failed", message=message)
        raise


@contextmanager
def stop_signals():
    """The first SIGINT or SIGTERM sets a flag; a second SIGINT interrupts at once."""
    stop = {"asked": False}

    def ask(number, frame):
        if stop["asked"] and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop["asked"] = True
        print("Finishing this step and saving ...", file=sys.stderr)

    try:
        before = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread, as in a notebook's worker: no signals there
        before = {}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
