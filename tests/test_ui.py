"""The parts of the app that need no page: text, addresses, tables of texts, the time axis."""

import pandas as pd
import pytest

from bertscope.analysis.timeline import over_checkpoints, sample
from bertscope.errors import BertScopeError
from bertscope.runs import Checkpoint
from bertscope.ui import curves, uploads
from bertscope.ui.run_watch import duration
from bertscope.ui.selection import nearest, parse_spec, parse_step
from bertscope.ui.text import bounded, hover, markdown, plotly, shorten

HOSTILE = "<img src=x onerror=alert(1)> **b** `c` $x$ :red[d] [e](http://f) # g | h_i_"


def test_markdown_shows_every_character_as_itself():
    from markdown_it import MarkdownIt

    html = MarkdownIt("commonmark").render(markdown(HOSTILE))
    tags = html.replace("<p>", "").replace("</p>", "")
    assert "<" not in tags and ">" not in tags
    import html as unescape

    assert unescape.unescape(tags).strip() == HOSTILE
    for mark in "$:|":  # Streamlit's own extensions of Markdown
        assert markdown(mark) == "\\" + mark


def test_plotly_labels_are_no_markup():
    assert plotly("<b>x</b> & y") == "&lt;b&gt;x&lt;/b&gt; &amp; y"
    box = hover("<i>" + "word " * 500)
    assert box.count("<br>") == 6 and "<i>" not in box and box.endswith("…")


def test_text_is_bounded_by_refusal():
    assert bounded("  a b \n") == "a b" and bounded(None) == ""
    with pytest.raises(BertScopeError, match="20,001 characters"):
        bounded("x" * 20_001)
    assert shorten("abcdef", 4) == "abc…" and shorten("abcd", 4) == "abcd"


@pytest.mark.parametrize("text, spec", [
    ("demo@400", ("demo", 400)), ("demo", ("demo", None)), ("a@b@7", ("a@b", 7)),
    ("demo@", ("demo@", None)), ("demo@x", ("demo@x", None)), ("@5", ("", 5)),
    ("org/name", ("org/name", None)), ("x" * 9000, ("x" * 500, None))])
def test_a_second_checkpoint_in_the_address(text, spec):
    assert parse_spec(text) == spec


def test_steps_in_the_address():
    assert [parse_step(t) for t in ("0", "400", "-1", "4.5", "", None, "٣", "1" * 40)] \
        == [0, 400] + [None] * 6
    assert nearest([0, 1, 8, 100], 60) == 100 and nearest([0, 1, 8], 4) == 1


def test_a_sample_of_checkpoints_keeps_the_ends_and_what_is_asked_for():
    saved = [Checkpoint(step, None) for step in [0, 1, 2, 4, 8, *range(16, 500, 4)]]
    steps = [c.step for c in sample(saved, 12, always=(8, 20))]
    assert len(steps) == 12 and steps == sorted(set(steps))
    assert {0, 8, 20, 496} <= set(steps)
    assert sample(saved[:5], 12) == saved[:5]
    seen = []
    assert over_checkpoints(saved[:3], lambda c: 2 * c.step, lambda m, f: seen.append(f)) \
        == [(0, 0), (1, 2), (2, 4)]
    assert seen == [0, 1 / 3, 2 / 3]


def test_texts_come_as_lines_or_as_csv():
    assert list(uploads.table_of_texts("one\r\n\r\n two \rthree, four")["text"]) \
        == ["one", "two", "three, four"]
    table = uploads.table_of_texts('text,year\n"a, b",1990\n,1991\nc,2000\n')
    assert list(table["text"]) == ["a, b", "c"] and list(table["year"]) == [1990, 2000]
    assert list(uploads.table_of_texts("\ufefftext\na\nb")["text"]) == ["a", "b"]
    tabs = uploads.table_of_texts("label\ttext\n1\ta, b\n0\tc")
    assert list(tabs["text"]) == ["a, b", "c"] and list(tabs["label"]) == [1, 0]
    lines = uploads.table_of_texts('{"text": "a", "n": 1, "x": [2]}\n\n{"text": " "}\n{"text": "b"}')
    assert list(lines["text"]) == ["a", "b"] and list(lines.columns) == ["text", "n"]


@pytest.mark.parametrize("raw, part", [
    ("", "no text yet"), ("text,text\na,b", "same name"), ("x\n" * 10_001, "10,001 texts"),
    ('text,a\n"unclosed,1\n', "cannot be read"), ('{"text": 3}', "Line 1 has no text"),
    ('{"text": "a"}\n[1]', "Line 2"), ("{" * 99_999, "Line 1 is no JSON")])
def test_texts_that_cannot_be_drawn_are_refused_with_a_sentence(raw, part):
    with pytest.raises(BertScopeError, match=part):
        uploads.table_of_texts(raw)


def test_an_upload_is_bounded_and_decoded():
    for data in (b"\x89PNG\r\n\x1a\n\x00\x00", bytes(range(128, 256)), "naïve".encode("utf-16")):
        with pytest.raises(BertScopeError, match="UTF-8"):
            uploads.decode(data)
    assert uploads.decode("naïve".encode("latin-1")) == "na�ve"
    with pytest.raises(BertScopeError, match="9.0 MB"):
        uploads.decode(b"x" * 9_000_000)


def test_long_curves_are_thinned_to_a_bound_and_keep_their_ends():
    table = pd.DataFrame({"step": range(10_001)})
    thin = curves.thin(table)
    assert len(thin) <= curves.MAX_POINTS + 1
    assert thin["step"].iloc[0] == 0 and thin["step"].iloc[-1] == 10_000
    assert curves.thin(table[:10]).equals(table[:10])


def test_durations():
    assert [duration(s) for s in (0.4, 75, 3700, float("inf"))] \
        == ["0 s", "1 min 15 s", "1 h 1 min", "0 s"]


def test_a_downloaded_picture_has_the_theme_of_the_page_it_was_asked_for_on(monkeypatch):
    from concurrent.futures import ThreadPoolExecutor
    from types import SimpleNamespace

    from bertscope.ui import frame, theme
    from bertscope.ui.components import packed

    seen, given = SimpleNamespace(type="dark"), []
    monkeypatch.setattr(theme, "st", SimpleNamespace(context=SimpleNamespace(theme=seen)))
    monkeypatch.setattr(frame.st, "download_button", lambda label, make, **more: given.append(make))
    frame.download("Picture", lambda: packed.page("arcs.js", "", b"", "title"), "picture.html", "key")
    ground = f"background: {theme.colour('background')}".encode()
    seen.type = None  # the click comes in a thread of the server's, without a visitor
    with ThreadPoolExecutor(1) as server:
        assert ground in server.submit(given[0]).result()
    assert not theme.dark()


def test_downloaded_metrics_are_those_of_the_click_not_of_when_the_page_was_drawn(tmp_path, monkeypatch):
    import shutil

    from bertscope.presets import run_config
    from bertscope.runs import create_run
    from bertscope.ui import run_watch

    run, given = create_run("watched", run_config({}), tmp_path), []
    monkeypatch.setattr(run_watch, "download_csv", lambda frame, name, label: given.append(frame))
    run.append_metrics({"step": 10, "loss": 2.0})
    run_watch._details(run)
    run.append_metrics({"step": 20, "loss": 1.0})
    assert list(given[0]()["step"]) == [10, 20]
    shutil.rmtree(run.path)
    assert list(given[0]()["step"]) == [10]  # what was drawn, where the run is gone


def test_a_first_line_without_an_end_is_a_text_that_is_cut():
    table = uploads.table_of_texts("x" * 200_000 + "\nsecond")
    assert list(table["text"]) == ["x" * uploads.MAX_CHARACTERS, "second"]
