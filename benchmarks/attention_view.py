"""All attention heads in Chromium: BertScope's page beside bertviz on the same weights, in one run.

    python benchmarks/attention_view.py [--tokens 32 128 512] [--layers 12] [--heads 12]

A BERT of random weights reads a text of so many word pieces; the Attention page (all heads, and the open
head exactly) is opened, and opened again, and another head is chosen. The peer is bertviz's own head view and
model view, as it makes them, of the same weights; the scripts that it fetches from other hosts are handed to it
from this repository's files, so that it draws at all without a network.

Bytes: what comes by the web socket for the page, and the HTML file of bertviz (its scripts, and the app's own
files, which a browser keeps, not counted). Time, by the page's own clock: from the beginning of the navigation
until everything is drawn (Streamlit's own start in the browser, some half a second, is in it; its share
stands in the first line). *Again*: the weights are still kept by the server, so that it is sending and
drawing alone. *Entered*: the text is typed into the page that is open, as one goes on using it.
"""

from __future__ import annotations

import argparse
import base64
import functools
import http.server
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote

REPOSITORY = Path(__file__).resolve().parent.parent
FLAGS = ("--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync").split()
DRAWN = ".grid[data-drawn]", ".map[data-drawn]"
FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
#: From drawing into a canvas to seeing it, in seconds: one frame.
FRAME = 1 / 60
#: Bytes of a bertviz page that are still tried.
MOST_BYTES = 150_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[32, 128, 512])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--head-size", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a bertviz page")
    parser.add_argument("--alone", action="store_true", help="without bertviz")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    args = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        checkpoint = make_checkpoint(Path(folder) / "model", args)
        browser = playwright.chromium.launch(executable_path=args.chromium, args=FLAGS)
        print(f"{args.layers} x {args.heads} heads, Chromium {browser.version}, load of this machine "
              f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, median of {args.repetitions}")
        print(f"{'':28} {'pieces':>6} {'bytes':>12} {'first':>8} {'again':>8}   ratio of bytes, time")
        with serving(Path(folder)) as url:
            print(f"Streamlit's start in the browser, until the app's first words: {shell(browser, url):.2f} s")
            ours = {tokens: page(browser, url, checkpoint, tokens, args) for tokens in args.tokens}
        for tokens in args.tokens:
            report_ours(tokens, ours[tokens])
            for view in () if args.alone else ("head", "model"):
                theirs = bertviz(browser, checkpoint, Path(folder), view, tokens, args)
                report_theirs(view, tokens, theirs, ours[tokens])
        browser.close()


def make_checkpoint(folder: Path, args) -> Path:
    """A BERT of random weights, large enough that heads differ, and a vocabulary of a few words."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(0)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(200))]
    width = args.heads * args.head_size
    BertModel(BertConfig(
        vocab_size=len(vocabulary), hidden_size=width, num_hidden_layers=args.layers,
        num_attention_heads=args.heads, intermediate_size=4 * width, initializer_range=0.1,
        max_position_embeddings=max(512, *args.tokens))).save_pretrained(folder)
    BertTokenizerFast(vocab={w: i for i, w in enumerate(vocabulary)}).save_pretrained(folder)
    return folder


def text_of(tokens: int) -> str:
    return " ".join(f"w{i * i % 200}" for i in range(tokens - 2))


# -- BertScope's page -----------------------------------------------------------------------------------


class serving:
    """The app on a free port, with an empty folder of runs."""

    def __init__(self, folder: Path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = folder

    def __enter__(self) -> str:
        url = f"http://localhost:{self.port}/"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={self.port}",
             "--server.address=localhost"], cwd=REPOSITORY, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "BERTSCOPE_RUNS": str(self.folder / "runs")})
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{url}_stcore/health", timeout=2).read()
                return url
            except OSError:
                time.sleep(0.1)
        raise SystemExit("The app has not started within a minute.")

    def __exit__(self, *error) -> None:
        self.process.terminate()
        self.process.wait()


def page(browser, url: str, checkpoint: Path, tokens: int, args) -> dict:
    """Bytes and seconds of the first visit, of further ones (median), and of choosing another head."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    tab = context.new_page()
    session = context.new_cdp_session(tab)
    session.send("Network.enable")
    received: list[int] = []
    session.on("Network.webSocketFrameReceived", lambda event: received.append(
        len(base64.b64decode(event["response"]["payloadData"]))))
    address = f"{url}attention?run={quote(str(checkpoint))}&text="
    visit(tab, address + "w1")  # the model is opened, the app's files are in the browser's cache
    times, sizes = [], []
    for _ in range(args.repetitions + 1):
        received.clear()
        times.append(visit(tab, address + quote(text_of(tokens))))
        settle(tab)
        sizes.append(sum(received))
    entered = [enter(tab, text_of(tokens - number)) for number in range(1, args.repetitions + 1)]
    received.clear()
    clicked = choose(tab)
    settle(tab)
    context.close()
    return {"bytes": max(sizes), "first": times[0], "again": statistics.median(times[1:]),
            "entered": statistics.median(entered), "other": clicked, "other_bytes": sum(received)}


def shell(browser, url: str) -> float:
    """Seconds until a page of the app shows its title, its files being in the browser's cache."""
    tab = browser.new_context().new_page()
    for _ in range(3):
        tab.goto("about:blank")
        tab.goto(url, wait_until="commit")
        tab.wait_for_selector("h1")
        seconds = tab.evaluate("performance.now()") / 1000
    tab.context.close()
    return seconds


def visit(tab, address: str) -> float:
    tab.goto("about:blank")
    tab.goto(address, wait_until="commit")
    for selector in DRAWN:
        tab.wait_for_selector(selector, state="attached", timeout=600_000)
    return drawn(tab)


def drawn(tab, since: float = 0.0) -> float:
    """Seconds of the page's clock until both pictures were drawn after ``since``, a frame included."""
    while True:  # Playwright's own waiting for a function does not look into shadow roots
        times = [float(tab.locator(one).first.get_attribute("data-drawn")) for one in DRAWN]
        if min(times) > since:
            return max(times) / 1000 + FRAME
        time.sleep(0.05)


def enter(tab, text: str) -> float:
    """Put another text into the page that is open."""
    field = tab.get_by_label("Text", exact=True)
    field.fill(text)
    start = tab.evaluate("performance.now()")
    field.press("Control+Enter")
    seconds = drawn(tab, start) - start / 1000
    settle(tab)
    return seconds


def choose(tab) -> float:
    """Open the head below the first one, as by a click."""
    grid = tab.locator(".grid canvas")
    grid.focus()
    start = time.perf_counter()
    grid.press("ArrowDown")
    tab.wait_for_function("document.documentElement.dataset.bertscopeHead === '1-0'")
    tab.evaluate(FRAMES)
    return time.perf_counter() - start


def settle(tab) -> None:
    tab.wait_for_timeout(500)
    tab.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=600_000)
    tab.wait_for_timeout(500)


# -- bertviz --------------------------------------------------------------------------------------------


def bertviz(browser, checkpoint: Path, folder: Path, view: str, tokens: int, args) -> dict:
    """Bytes and seconds of a page that bertviz made; without seconds where it was not tried or did not
    end."""
    expected = args.layers * args.heads * tokens ** 2 * 2 * 21  # all in it twice, 21 characters a weight
    if expected > MOST_BYTES:
        return {"bytes": expected, "seconds": None, "why": "not tried"}
    html = make_page(checkpoint, view, tokens)
    (folder / f"{view}.html").write_text(html, encoding="utf-8")
    handler = functools.partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    tab = context.new_page()
    tab.route(re.compile("^https:"), give_scripts)
    try:
        start = time.perf_counter()
        tab.goto(f"http://127.0.0.1:{server.server_port}/{view}.html", timeout=1000 * args.timeout)
        tab.wait_for_selector("svg line", state="attached", timeout=1000 * args.timeout)
        tab.evaluate(FRAMES)
        seconds, why = time.perf_counter() - start, ""
    except Exception as error:  # playwright's: it took too long, or the tab died
        seconds, why = None, f"nothing in {args.timeout:.0f} s" if "imeout" in str(error) else "it crashed"
    finally:
        server.shutdown()
        server.server_close()
    context.close()
    return {"bytes": len(html.encode()), "seconds": seconds, "why": why}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *message) -> None:
        pass


def make_page(checkpoint: Path, view: str, tokens: int) -> str:
    """bertviz's own page, untouched."""
    import torch
    from bertviz import head_view, model_view

    from bertscope.analysis import attention_maps, load

    maps = attention_maps(load(checkpoint), text_of(tokens))
    assert len(maps.tokens) == tokens
    attention = [torch.from_numpy(layer)[None] for layer in maps.weights]
    return (head_view if view == "head" else model_view)(attention, maps.tokens, html_action="return").data


def give_scripts(route) -> None:
    """require.js, with jQuery and d3 inside it, from our files."""
    assets = REPOSITORY / "bertscope" / "analysis" / "assets"
    sources = [path.read_text("utf-8") for path in sorted(assets.glob("*.js"))]
    shim = "window.require = { config() {} }; window.requirejs = (names, f) => f(window.jQuery, window.d3);"
    route.fulfill(body="\n".join([*sources, shim]), content_type="text/javascript")


# -- the table ------------------------------------------------------------------------------------------


def report_ours(tokens: int, found: dict) -> None:
    print(f"{'BertScope, all heads':28} {tokens:6} {found['bytes']:12,} {found['first']:7.2f}s "
          f"{found['again']:7.2f}s   entered: {found['entered']:.2f} s, another head: "
          f"{found['other_bytes']:,} bytes, {found['other']:.2f} s", flush=True)


def report_theirs(view: str, tokens: int, found: dict, ours: dict) -> None:
    lighter = found["bytes"] / ours["bytes"]
    seconds = f"{found['seconds']:7.2f}s" if found["seconds"] else f"{'-':>8}"
    faster = f", {found['seconds'] / ours['again']:.1f} x" if found["seconds"] else f"; {found['why']}"
    print(f"{f'bertviz, {view} view':28} {tokens:6} {found['bytes']:12,} {seconds} {'':8}   "
          f"{lighter:.0f} x{faster}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
