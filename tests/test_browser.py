"""The app in Chromium, as a person uses it: every page on a really trained run, in both themes.

Screenshots are left in ``test-results``.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from bertscope.runs import open_run
from conftest import REPOSITORY

CHROMIUM = "/usr/bin/chromium"
pytestmark = pytest.mark.skipif(not Path(CHROMIUM).exists(),
                                reason="needs Debian's chromium (make test installs it)")
PAGES = {"masking": "Masking", "predict": "Predict", "next_sentence": "Next sentence",
         "attention": "Attention", "embeddings": "Embeddings", "probing": "Probing", "fine_tuning": "Fine-tuning",
         "": "Train"}
FLAGS = ("--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync").split()
#: Streamlit asks for these below the page's own path first, and then where they are.
BENIGN = re.compile(r"/(_stcore/health|_stcore/host-config|host-config|health)$")
RESULTS = REPOSITORY / "test-results"


class Server:
    """``streamlit run app.py`` on a free port, in a folder of runs."""

    def __init__(self, root: Path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://localhost:{self.port}/"
        self.root, self.log = root, root.parent / f"server-{self.port}.log"
        self.start()

    def start(self) -> None:
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={self.port}",
                 "--server.address=localhost", "--server.headless=true"],
                cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, "BERTSCOPE_RUNS": str(self.root), "OMP_NUM_THREADS": "1",
                     "PYTHONFAULTHANDLER": "1"})
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{self.url}_stcore/health", timeout=2).read()
                return
            except OSError:
                alive = time.monotonic() < deadline and self.process.poll() is None
                assert alive, self.log.read_text()
                time.sleep(0.1)

    def stop(self) -> None:
        """End it; where it hangs, what every thread was doing is written into its log."""
        self.process.terminate()
        try:
            self.process.wait(60)  # a busy machine
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait()
            RESULTS.mkdir(exist_ok=True)
            shutil.copy(self.log, RESULTS)


@pytest.fixture(scope="module")
def server(tiny_root):
    server = Server(tiny_root)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A page that notes every complaint of the console and every foreign request."""

    def __init__(self, browser, server, width=1280, theme="light"):
        self.server, self.complaints, self.foreign = server, [], []
        self.context = browser.new_context(viewport={"width": width, "height": 900},
                                           color_scheme=theme)
        self.page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._request)
        self.page.on("websocket", self._request)

    def _console(self, message) -> None:
        if message.type == "error" and not BENIGN.search(message.location.get("url", "")):
            self.complaints.append(f"{message.text} {message.location}")

    def _request(self, request) -> None:
        if not request.url.startswith(("data:", "blob:", self.server.url,
                                       self.server.url.replace("http", "ws", 1))):
            self.foreign.append(request.url)

    def open(self, address: str) -> None:
        self.page.goto(self.server.url + address)
        self.settle()

    def settle(self) -> None:
        """Until the script has run and nothing is being computed."""
        self.page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]',
                                    timeout=120_000)
        self.page.wait_for_timeout(300)
        self.page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]',
                                    timeout=120_000)
        self.page.wait_for_timeout(300)

    def picture(self, name: str) -> None:
        """The whole page, not only what the window shows."""
        size = self.page.viewport_size
        height = self.page.evaluate(
            "Math.max(...[...document.querySelectorAll('[data-testid=stMain], "
            "[data-testid=stSidebarContent]')].map(e => e.scrollHeight))")
        self.page.set_viewport_size({"width": size["width"], "height": min(height, 4000)})
        self.page.wait_for_timeout(500)
        RESULTS.mkdir(exist_ok=True)
        self.page.screenshot(path=RESULTS / f"{name}.png")
        self.page.set_viewport_size(size)

    def check(self) -> None:
        assert self.page.get_by_test_id("stException").count() == 0, \
            self.page.get_by_test_id("stException").first.inner_text()
        assert not self.complaints, self.complaints
        assert not self.foreign, self.foreign


@pytest.fixture
def visit(chromium, server):
    visits = []

    def make(**more):
        visits.append(Visit(chromium, more.pop("server", server), **more))
        return visits[-1]

    yield make
    for made in visits:
        made.context.close()


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("width, theme", [(1280, "light"), (800, "dark")])
def test_every_page_works_and_asks_nobody_else(visit, page, width, theme):
    # The first page of the new server is not the first page of the app: see ui/frame.py.
    v = visit(width=width, theme=theme)
    v.open(f"{page}?run=tiny&step=40&vs=tiny@0")
    from playwright.sync_api import expect

    expect(v.page.get_by_role("heading", name=PAGES[page], exact=True)).to_be_visible()
    drawn = v.page.locator("[data-testid=stNumberInput]" if page == "fine_tuning" else  # a form
                           ".stPlotlyChart .main-svg, [data-testid=stVegaLiteChart] canvas, "
                           "[data-testid=stVegaLiteChart] svg, .grid[data-drawn] canvas").first
    expect(drawn).to_be_visible(timeout=120_000)
    v.page.get_by_text("How this is computed").click()
    v.settle()
    assert v.page.locator(".katex-error").count() == 0, "a formula cannot be set"
    v.picture(f"{page or 'train'}-{width}-{theme}")
    v.check()
    assert v.page.get_by_test_id("stAlertContentError").count() == 0
    overflow = v.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth - "
                               "document.querySelector('[data-testid=stMain]').clientWidth")
    assert overflow <= 1, "the page is wider than its window"


def count_charts(v: Visit, count: int) -> None:
    """One chart of candidates for each masked place."""
    v.page.wait_for_function(f"document.querySelectorAll("
                             f"'[class*=st-key-place_] .stPlotlyChart').length === {count}",
                             timeout=120_000)


def test_clicking_pieces_masks_them_and_the_address_keeps_it(visit):
    v = visit()
    v.open("predict?run=tiny&text=the+dog+sees+a+cat+.&mask=2")
    count_charts(v, 1)
    v.page.get_by_role("button", name="cat", exact=True).or_(
        v.page.locator(".pieces button").nth(-3)).first.click()
    count_charts(v, 2)
    v.settle()
    address = v.page.url
    assert re.search(r"mask=2(,|%2C)\d", address)
    again = visit()
    again.open(address.removeprefix(v.server.url))
    count_charts(again, 2)
    # A second click shows the piece again; the keyboard works as well.
    masked = again.page.locator(".pieces button[aria-pressed=true]").nth(1)
    masked.focus()
    again.page.keyboard.press("Enter")
    count_charts(again, 1)
    v.check()
    again.check()


def test_figures_on_one_scale_have_one_width_in_a_narrow_window(visit):
    v = visit(width=800)
    v.open("predict?run=tiny&view=Both%20sides&text=the%20cat%20sleeps%20.")
    v.page.wait_for_selector('[class*="st-key-sides_main_"]')
    v.settle()
    boxes = [chart.bounding_box() for chart in v.page.locator('[class*="st-key-sides_main_"]').all()]
    assert len(boxes) == 3 and boxes[0]["y"] < boxes[2]["y"]  # the third is below the first
    assert max(b["width"] for b in boxes) - min(b["width"] for b in boxes) < 1
    v.check()


def test_a_point_of_the_map_shows_its_neighbours(visit):
    v = visit()
    v.open("embeddings?run=tiny")
    point = v.page.locator(".stPlotlyChart .scatterlayer .point").nth(20)
    point.wait_for(state="attached", timeout=180_000)
    box = point.bounding_box()
    v.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    v.page.get_by_text("nearest on the map").first.wait_for(timeout=120_000)
    v.check()


def test_training_from_the_form_to_the_end(visit, tmp_path):
    """Start, watch the curves grow in place, close the server, come back, stop, resume, delete."""
    server = Server(tmp_path / "runs")
    try:
        v = visit(server=server)
        v.open("")
        page = v.page
        page.get_by_label("Steps", exact=True).fill("100000")
        page.get_by_label("Name", exact=True).fill("mine")
        page.get_by_text("More settings").click()
        for label, value in (("documents", "120"), ("hidden size", "32"),
                             ("evaluate every", "20"), ("log every", "2")):
            page.get_by_label(label, exact=True).fill(value)
            page.keyboard.press("Enter")
            v.settle()
        page.get_by_role("button", name="Start training").click()
        page.locator("[data-testid=stVegaLiteChart]").first.wait_for(timeout=180_000)
        run = open_run("mine", server.root)

        # The chart's place on the page is kept while its data grow: nothing flickers.
        page.evaluate("document.querySelector('[data-testid=stVegaLiteChart]').dataset.mark = 1")
        before = len(run.metrics())
        page.wait_for_timeout(6000)
        assert len(run.metrics()) > before
        assert page.locator("[data-testid=stVegaLiteChart][data-mark='1']").count() == 1
        v.picture("training-live")
        v.check()

        # The server ends; the training goes on; the same address finds it again.
        server.stop()
        assert run.alive()
        server.start()
        again = visit(server=server)
        again.open("?run=mine")
        again.page.get_by_role("button", name="Stop", exact=True).click()
        page = again.page
        page.get_by_text("stopped · step").wait_for(timeout=180_000)
        again.settle()
        assert run.status()["state"] == "stopped"
        page.get_by_role("button", name="Resume").click()
        page.get_by_text("training · step").wait_for(timeout=180_000)
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_text("stopped · step").wait_for(timeout=180_000)
        again.settle()
        page.get_by_role("button", name="Delete").click()
        page.get_by_role("button", name="Delete it").click()
        page.get_by_text("There is no model yet").wait_for(timeout=120_000)
        assert not run.path.exists()
        again.check()
    finally:
        from bertscope import launch
        from bertscope.runs import list_runs

        for run in list_runs(server.root):
            launch.stop(run, now=True)
        server.stop()
        shutil.rmtree(server.root, ignore_errors=True)
