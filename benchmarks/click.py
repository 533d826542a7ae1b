"""How long a click on a word piece takes until the answer is drawn, in Chromium.

    python benchmarks/click.py RUN [--clicks 15]

Starts the app on the runs there are, opens Predict on the run's newest checkpoint, and masks one piece
after the other. Timed by the page's own clock from the click event to the new place's headline (rank,
surprisal, entropy) in the document; and from before Playwright moves its mouse, which takes long by itself,
until nothing is computed any more, the curve over the checkpoints among it.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

CHROMIUM = "/usr/bin/chromium"
ROOT = Path(__file__).resolve().parent.parent
#: In the page: when a piece was clicked, and when a headline of another place was there.
CLOCK = """() => {
  window.clicked = window.answered = null;
  const places = () => [...document.querySelectorAll('strong')].map(e => e.textContent)
    .filter(text => text.startsWith('Place ')).join();
  const before = places();
  addEventListener('click', event => { window.clicked ??= performance.now(); }, {capture: true, once: true});
  const watch = new MutationObserver(() => {
    if (window.clicked === null || places() === before) return;
    window.answered = performance.now();
    watch.disconnect();
  });
  watch.observe(document.body, {subtree: true, childList: true, characterData: true});
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("--clicks", type=int, default=15)
    args = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}",
         "--server.headless=true"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"})
    try:
        wait_for(port)
        answered, settled = measure(f"http://localhost:{port}/predict?run={args.run}", args.clicks)
    finally:
        server.terminate()
    for name, seconds in (("answer drawn", answered), ("page at rest", settled)):
        print(f"{name}: median {1000 * statistics.median(seconds):.0f} ms, "
              f"from {1000 * min(seconds):.0f} to {1000 * max(seconds):.0f}, {len(seconds)} clicks")


def wait_for(port: int) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://localhost:{port}/_stcore/health", timeout=2).read()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("The app did not start.")


def measure(url: str, clicks: int) -> tuple[list[float], list[float]]:
    from playwright.sync_api import sync_playwright

    answered, settled = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(url)
        at_rest = '[data-testid="stApp"][data-test-script-state="notRunning"]'
        page.get_by_text("Place ").first.wait_for(timeout=120_000)
        page.wait_for_selector(at_rest, timeout=120_000)
        pieces = page.locator(".pieces button:not(.special)")
        shown = [i for i in range(pieces.count())
                 if pieces.nth(i).get_attribute("aria-pressed") == "false"]
        for number in range(clicks):
            index = shown[number % len(shown)]
            headline = page.locator("strong", has_text=re.compile(f"^Place {index + 1}$"))
            page.evaluate(CLOCK)
            begin = time.perf_counter()
            pieces.nth(index).click()
            headline.first.wait_for(timeout=60_000)
            answered.append(page.evaluate("window.answered - window.clicked") / 1000)
            page.wait_for_timeout(50)
            page.wait_for_selector(at_rest, timeout=60_000)
            settled.append(time.perf_counter() - begin)
            pieces.nth(index).click()  # shown again, so that every click is like the first
            headline.first.wait_for(state="detached", timeout=60_000)
            page.wait_for_selector(at_rest, timeout=60_000)
        browser.close()
    return answered, settled


if __name__ == "__main__":
    main()
