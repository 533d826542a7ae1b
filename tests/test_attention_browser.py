"""The Attention page in Chromium: clicks, arcs and sums, saved pictures, hostile pieces, no other host."""

import base64
import re
from pathlib import Path

import pytest
import tiny_models

from bertscope.analysis.activations import load
from bertscope.analysis.attention import attention_maps
from bertscope.runs import open_run
from test_attention import EVIL, evil_model
from test_attention_page import TEXT, VIEWS
from test_browser import CHROMIUM, Visit, chromium, server, visit

__all__ = ["Visit", "chromium", "server", "visit"]  # fixtures
pytestmark = pytest.mark.skipif(not Path(CHROMIUM).exists(),
                                reason="needs Debian's chromium (make test installs it)")
HERE = f"attention?run=tiny&text={TEXT.replace(' ', '+')}"


def received(page, act) -> int:
    """Bytes that come by the web socket while ``act()`` runs."""
    sizes = []
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.on("Network.webSocketFrameReceived", lambda event: sizes.append(
        len(base64.b64decode(event["response"]["payloadData"]))))
    act()
    session.detach()
    return sum(sizes)


def test_a_click_opens_a_head_and_hover_names_the_pieces(visit):
    v = visit()
    v.open(HERE)
    grid = v.page.locator(".grid canvas")
    box = grid.bounding_box()
    at = {"x": box["width"] * 0.8, "y": box["height"] * 0.8}
    grid.hover(position=at)
    assert re.fullmatch(r"head 2-4: \S+ → \S+\s+\d\.\d\d", v.page.locator(".grid .tip").inner_text())
    grid.click(position=at)
    v.page.wait_for_function("location.search.includes('head=2-4')")
    v.settle()
    v.page.get_by_text("Head 2-4", exact=True).wait_for()
    assert v.page.evaluate("document.documentElement.dataset.bertscopeHead") == "1-3"
    grid.focus()
    v.page.keyboard.press("ArrowUp")
    v.page.wait_for_function("location.search.includes('head=1-4')")
    v.check()


def test_the_open_heads_map_has_exact_weights_for_mouse_and_keyboard(visit, tiny_root):
    maps = attention_maps(load(open_run("tiny", tiny_root).checkpoints()[-1].path), TEXT)
    v = visit()
    v.open(HERE + "&head=1-2")
    canvas = v.page.locator(".map canvas")
    canvas.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown"):
        v.page.keyboard.press(key)
    row, column = 3, 0
    said = v.page.locator(".map .tip").inner_text()
    assert said.startswith(f"{maps.tokens[row]} → {maps.tokens[column]} ")
    assert float(said.split()[-1]) == pytest.approx(float(maps.weights[0, 1, row, column]), abs=6e-5)
    v.check()


def test_arcs_are_hovered_selected_summed_and_saved(visit, tiny_root, tmp_path):
    maps = attention_maps(load(open_run("tiny", tiny_root).checkpoints()[-1].path), TEXT)
    count = len(maps.tokens)
    v = visit()
    v.open(HERE + "&view=One+head&head=1-2&least=0")
    page = v.page
    paths = page.locator(".arcs g[fill=none] path")
    assert paths.count() == count * count
    pieces = page.locator(".arcs text[role=button]")
    assert pieces.all_text_contents() == maps.tokens * 2
    pieces.nth(2).hover()
    assert paths.count() == count
    pieces.nth(2).click()
    v.settle()
    pieces.nth(4).focus()
    page.keyboard.press("Enter")
    v.settle()
    page.mouse.move(0, 0)
    page.wait_for_function("/from=2(,|%2C)4/.test(location.search)")
    page.wait_for_timeout(300)
    assert paths.count() == 2 * count
    sums = maps.weights[0, 1][[2, 4]].sum(0)
    for label in page.locator(".arcs [data-sum]").all():
        side, place = label.get_attribute("data-sum").split()
        assert side == "to" and float(label.inner_html()) == pytest.approx(float(sums[int(place)]), abs=0.006)
    assert page.locator(".arcs [data-sum]").count() == int((sums >= 0.005).sum())

    # The picture goes along: SVG and PNG by the buttons, and a page that works alone.
    for kind in ("SVG", "PNG"):
        with page.expect_download() as saved:
            page.get_by_role("button", name=f"save this picture as {kind}").click()
        saved.value.save_as(tmp_path / f"picture.{kind.lower()}")
        assert saved.value.suggested_filename == f"tiny-step-40-head-1-2.{kind.lower()}"
    svg = (tmp_path / "picture.svg").read_text()
    assert svg.startswith("<svg") and svg.count("<path") == 2 * count and "[CLS]" in svg
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Picture (HTML)").click()
    saved.value.save_as(tmp_path / "picture.html")
    alone = v.context.new_page()
    asked = []
    alone.on("request", lambda request: asked.append(request.url))
    alone.goto((tmp_path / "picture.html").as_uri())
    alone.locator(".arcs text[role=button]").nth(1).click()  # one more, without any server
    alone.mouse.move(0, 0)
    assert alone.locator(".arcs g[fill=none] path").count() == 3 * count
    assert all(url.startswith(("file:", "data:")) for url in asked)
    v.check()


@pytest.fixture
def evil(tmp_path):
    evil_model(tmp_path / "evil")
    return tmp_path / "evil"


def test_hostile_pieces_stay_text_in_every_view(visit, evil):
    from urllib.parse import quote

    v = visit()
    text = quote(f"the {EVIL} sat on the mat")
    for name in VIEWS:
        more = "&flow=one+piece" if name == "Flow" else ""
        v.open(f"attention?run={quote(str(evil))}&docs=miniworld&sampled=50&text={text}"
               f"&pair={quote(EVIL)}+a+dog&from=2&mask=2&view={quote(name)}{more}")
        if name == "bertviz":
            v.page.frame_locator("iframe").locator("svg line").first.wait_for(state="attached")
            assert v.page.frame_locator("iframe").get_by_text(EVIL).count()
        if name == "One head":
            assert v.page.locator(".arcs text[role=button]", has_text=EVIL[:20]).count() == 4
        assert v.page.evaluate("window.pwned") is None
        assert all(frame.evaluate("window.pwned") is None for frame in v.page.frames)
        assert v.page.locator("img[src=x]").count() == 0
        v.check()


def test_a_long_text_on_many_heads_is_light(visit, tmp_path):
    """12 x 12 heads: what is sent stays below a megabyte, and a click sends one head."""
    size = dict(num_hidden_layers=12, num_attention_heads=12, hidden_size=24, max_position_embeddings=512)
    tiny_models.save(tmp_path / "many", **size)
    v = visit()
    v.open("attention?run=tiny&text=a")
    text = "+".join(["the", "cat", "sat", "on", "the", "mat", "and"] * 18)
    address = f"attention?run={tmp_path / 'many'}&text={text}"
    assert 0.5e6 < received(v.page, lambda: v.open(address)) < 1e6
    grid = v.page.locator(".grid canvas")
    box = grid.bounding_box()

    def click() -> None:
        grid.click(position={"x": box["width"] * 0.9, "y": box["height"] * 0.9})
        v.page.wait_for_function("/head=1[12]-1[12]/.test(location.search)")
        v.settle()

    assert received(v.page, click) < 0.2e6
    v.check()
