"""``bertscope app`` and ``bertscope demo``: the pages."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from bertscope import launch, runs
from bertscope.errors import BertScopeError


def add_demo(commands) -> None:
    parser = commands.add_parser("demo", help="train the demo run in the background, open the app on it",
                                 description="Start the demo run (miniworld, recipe bert) unless it "
                                             "is there already, and serve the app.")
    parser.add_argument("--port", type=int, default=8501, help="the app's port (%(default)s)")
    parser.set_defaults(command=_demo)


def add_app(commands) -> None:
    parser = commands.add_parser("app", help="serve the app",
                                 description="Serve the app on this machine and print its address.")
    parser.add_argument("--port", type=int, default=8501, help="port (%(default)s)")
    parser.add_argument("--host", default="localhost", help="address to listen on (%(default)s)")
    parser.set_defaults(command=_app)


def _app(args) -> int:
    _require_free(args.port, args.host)
    return _serve(args.port, args.host)


def _demo(args) -> int:
    _require_free(args.port, "localhost")
    run = launch.demo_run()
    if run.status()["state"] in ("stopped", "interrupted", "failed") or not run.checkpoints() \
            and not run.alive():
        launch.start(run)
        print("The demo run is being trained in the background.")
    return _serve(args.port, "localhost", f"?run={run.name}")


def _serve(port: int, host: str, query: str = "") -> int:
    script = Path(__file__).resolve().parents[2] / "app.py"
    print(f"BertScope: http://{host}:{port}/{query}", flush=True)
    environment = {**os.environ, "BERTSCOPE_RUNS": str(runs.runs_root())}
    with subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", str(script), f"--server.port={port}",
             f"--server.address={host}", "--server.headless=true"],
            cwd=script.parent, env=environment) as server:
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())  # it would keep the port
        return server.wait()


def _require_free(port: int, host: str) -> None:
    """Before anything is started or printed: that the app can have its address.

    Raises:
        BertScopeError: another program has it, or it cannot be had.
    """
    if not 0 < port < 65536:
        raise BertScopeError(f"--port must be between 1 and 65535, not {port}.")
    for family, kind, _, _, address in _addresses(port, host):
        try:
            with socket.socket(family, kind) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise BertScopeError(f"The app cannot listen at {host}:{port} ({error.strerror}): choose "
                                     "another port with --port (make demo PORT=9000).") from None


def _addresses(port: int, host: str) -> list:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise BertScopeError(f"There is no machine called {host!r} to listen on.") from None
