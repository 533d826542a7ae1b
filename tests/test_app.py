"""The app without a browser: every page, its designed states, the form, hostile addresses."""

import html
import json
import os
import shutil
import time

import pytest
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

from bertscope.runs import list_runs, open_run
from bertscope.ui.frame import PAGES
from conftest import REPOSITORY

NAMES = ("train", "masking", "predict", "next_sentence", "attention", "embeddings", "probing",
         "fine_tuning")


@pytest.fixture(autouse=True)
def after_the_first_visit(monkeypatch):
    """AppTest forgets at each run what a server knows after its first: that app.py navigates."""
    begin = PagesManager.__init__

    def init(self, *args, **options):
        PagesManager.uses_pages_directory = False
        begin(self, *args, **options)

    monkeypatch.setattr(PagesManager, "__init__", init)


def app(page="train", **address) -> AppTest:
    """The app after its first run, on a page, at an address."""
    at = AppTest.from_file(str(REPOSITORY / "app.py"), default_timeout=120)
    for key, value in address.items():
        at.query_params[key] = value
    if page == "train":
        return at.run()
    # A page is entered from the first one; the address stays, as in a browser.
    at.run()
    return at.switch_page(f"{PAGES}/{page}.py").run()


def said(at: AppTest) -> str:
    """All sentences on the page and in the sidebar."""
    kinds = (at.markdown, at.caption, at.info, at.warning, at.error, at.title, at.success)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def address(at: AppTest) -> dict[str, str]:
    return {key: value[0] if isinstance(value, list) else value
            for key, value in at.query_params.items()}


def figures(at: AppTest) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


def bar_charts(at: AppTest) -> list[dict]:
    return [figure for figure in figures(at) if figure["data"][0]["type"] == "bar"]


@pytest.fixture
def runs(tiny_root, monkeypatch):
    """The app looks at the folder with the run ``tiny``."""
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tiny_root))
    return tiny_root


@pytest.fixture
def own_runs(tiny_root, tmp_path, monkeypatch):
    """A folder of runs of the test's own, with a copy of ``tiny``."""
    root = tmp_path / "runs"
    shutil.copytree(tiny_root / "tiny", root / "tiny", ignore=shutil.ignore_patterns("analysis"))
    monkeypatch.setenv("BERTSCOPE_RUNS", str(root))
    return root


@pytest.fixture
def no_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tmp_path / "none"))
    return tmp_path / "none"


# -- every page -------------------------------------------------------------------------------


@pytest.mark.parametrize("page", NAMES)
def test_every_page_has_something_to_show_at_once(runs, page):
    at = app(page, run="tiny")
    assert not at.exception and not at.error, at.exception or at.error
    drawn = {"train": "vega_lite_chart", "attention": "bidi_component",
             "fine_tuning": "number_input"}.get(page, "plotly_chart")  # its first view is a form
    assert at.get(drawn), f"nothing is drawn on {page}"
    assert address(at)["run"] == "tiny" and address(at)["follow"] == "1"
    assert "How this is computed" in [e.label for e in at.expander][-1]


@pytest.mark.parametrize("page", NAMES[1:])
def test_every_page_takes_a_second_checkpoint(runs, page):
    at = app(page, run="tiny", step="40", vs="tiny@0")
    assert not at.exception and not at.error
    assert address(at)["vs"] == "tiny@0" and address(at)["step"] == "40"
    text = said(at) + json.dumps(figures(at))
    assert "step 0" in text and "step 40" in text


@pytest.mark.parametrize("page", NAMES)
def test_without_a_run_every_page_offers_the_demo(no_runs, page):
    at = app(page)
    assert not at.exception and not at.error
    assert "There is no model yet" in said(at)
    assert at.button(key="start_demo").label == "Start the demo"


@pytest.mark.parametrize("page", NAMES[1:])
def test_a_run_without_a_checkpoint_says_how_it_stands(own_runs, page):
    shutil.rmtree(own_runs / "tiny" / "checkpoints")
    at = app(page, run="tiny")
    assert not at.exception
    assert "has no checkpoint" in said(at)


# -- addresses --------------------------------------------------------------------------------


@pytest.mark.parametrize("page", NAMES)
@pytest.mark.parametrize("asked, part", [
    ({"run": "gone"}, "There is no run called gone|nothing to watch"),
    ({"run": "../../nowhere"}, "There is no run called|nothing to watch"),
    ({"run": "tiny", "step": "<b>9"}, "which is no step"),
    ({"run": "tiny", "step": "33"}, "no checkpoint at step 33; this is step 32"),
    ({"run": "tiny", "vs": "elsewhere@3"}, "second checkpoint, elsewhere|"),
])
def test_a_stale_or_hostile_address_becomes_a_sentence(runs, page, asked, part):
    at = app(page, **asked)
    assert not at.exception
    text = said(at).replace("\\", "")
    assert any(p in text for p in part.split("|")), text


@pytest.mark.parametrize("page, asked", [
    *((page, {key: value}) for page in NAMES for key in ("view", "show") for value in ("Of yesterday", "")),
    ("train", {"axis": ""}), ("predict", {"view": "Every layer", "lens_show": ""}),
    ("predict", {"view": "Both sides", "sides_way": ""}), ("predict", {"measure": "", "top": "1e999"}),
    ("predict", {"view": "Which words mattered", "words_method": ""}),
    ("attention", {"view": "Flow", "flow": "", "flow_layer": "1e999"}),
    ("attention", {"view": "Does it matter?", "measure": ""}), ("attention", {"view": "bertviz", "bertviz": ""}),
    ("next_sentence", {"view": "Topic or coherence?", "places": "100", "draw": "1e999"}),
    ("embeddings", {"layer": "99", "method": "", "pooling": "nonsense", "texts_limit": "1e999"}),
    ("masking", {"show": "Tally", "tally_count": "", "draw": "-1e999"}),
])
def test_what_no_widget_takes_is_passed_over(runs, page, asked):
    at = app(page, run="tiny", **asked)
    assert not at.exception and not at.error


def test_a_link_alone_never_looks_on_the_hub(runs, monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "snapshot_download",
                        lambda *a, **k: pytest.fail("asked the hub"))
    at = app("predict", run="bert-base-uncased")
    assert not at.exception
    assert "Look for it on the Hugging Face hub" in [b.label for b in at.button]


def test_a_run_that_is_deleted_under_the_page(own_runs):
    at = app("predict", run="tiny")
    shutil.rmtree(own_runs / "tiny")
    at.run()
    assert not at.exception and "There is no run called tiny" in said(at)
    at.switch_page(f"{PAGES}/train.py").run()
    assert not at.exception


@pytest.mark.parametrize("state, words", [("training", "1 min 15 s so far · 20 s left"),
                                          ("stopped", "1 min 15 s so far"),
                                          ("finished", "1 min 15 s in all")])
def test_what_a_finished_training_took_is_not_so_far(state, words):
    from bertscope.ui.run_watch import _progress_text

    left = 20.0 if state == "training" else 0.0
    status = {"state": state, "step": 4, "total": 8, "seconds": 75.0, "eta_seconds": left}
    assert _progress_text(status) == f"step 4 of 8 · {words}"


def test_the_slider_ends_following_and_the_toggle_begins_it_again(runs):
    at = app("predict", run="tiny")
    at.select_slider(key="step").set_value(4).run()
    assert address(at)["step"] == "4" and "follow" not in address(at)
    assert "step 4" in said(at)
    at.toggle(key="follow").set_value(True).run()
    assert at.select_slider(key="step").value == 40 and "step" not in address(at)


@pytest.mark.parametrize("lag, follows", [(60.0, True), (0.0, False)])
def test_a_click_just_as_a_checkpoint_appears_does_not_end_following(own_runs, monkeypatch, lag, follows):
    """The browser sends the slider's step with every click, and may not know yet that it has moved."""
    from bertscope.ui import sidebar

    monkeypatch.setattr(sidebar, "LAG_SECONDS", lag)
    newest = open_run("tiny").checkpoints()[-1].path
    hidden = shutil.move(newest, own_runs / "hidden")
    at = app("masking", run="tiny")
    before = at.select_slider(key="step").value
    shutil.move(hidden, newest)
    at.run()
    assert at.select_slider(key="step").value == 40 != before
    at.select_slider(key="step").set_value(before).run()
    assert not at.exception and ("follow" in address(at)) is follows
    assert at.select_slider(key="step").value == (40 if follows else before)


def test_comparing_begins_with_the_untrained_model(runs):
    at = app("predict", run="tiny")
    at.toggle(key="vs_on").set_value(True).run()
    assert not at.exception
    assert address(at)["vs"] == "tiny@0"


# -- checkpoints of others, and damaged ones --------------------------------------------------


def test_missing_heads_are_sentences_and_the_other_pages_work(runs, tmp_path):
    import transformers
    from tiny_models import save

    save(tmp_path / "bare", transformers.BertModel)
    for page, part in (("predict", "no MLM head"), ("next_sentence", "no NSP head")):
        at = app(page, run=str(tmp_path / "bare"))
        assert not at.exception and any(part in e.value for e in at.error)
    at = app("attention", run=str(tmp_path / "bare"))
    assert not at.exception and not at.error and at.get("bidi_component")


def test_a_damaged_checkpoint_is_named_and_left_out_of_the_curve(own_runs):
    run = open_run("tiny", own_runs)
    weights = run.checkpoints()[-1].path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    at = app("predict", run="tiny")
    assert not at.exception and "damaged" in at.error[0].value
    at = app("predict", run="tiny", step="32")
    assert not at.exception and not at.error
    assert "cannot be read: step 40" in said(at)


# -- the pages' own controls ------------------------------------------------------------------


def test_predict_shows_what_the_library_says(runs, tiny_run):
    from bertscope.analysis import encode, load, predict

    text = "the <b>dog</b> sees a cat ."
    at = app("predict", run="tiny", text=text, mask="2,5")
    assert not at.exception and not at.error
    model = load(tiny_run.checkpoints()[-1].path)
    expected = predict(model, encode(model, text), [2, 5], 8)
    bars = bar_charts(at)
    assert len(bars) == 2
    for spec, place in zip(bars, expected):
        labels = spec["layout"]["yaxis"]["ticktext"][::-1]
        shown = [label.removeprefix("<b>").removesuffix("</b> ✓") for label in labels]
        assert shown == [html.escape(c.token, quote=False) for c in place.candidates]
        assert [f"{c.probability:.1%}" for c in place.candidates] == spec["data"][0]["text"][::-1]
    component = json.loads(at.get("bidi_component")[0].proto.json)
    assert component["masked"] == [2, 5] and component["tokens"][0] == "[CLS]"


def test_typed_masks_and_empty_text(runs):
    at = app("predict", run="tiny", text="a [MASK] sleeps")
    assert address(at)["mask"] == "2" and len(bar_charts(at)) == 1
    at.text_area(key="text").set_value("   ").run()
    assert not at.exception and "Type a sentence" in said(at)
    at.text_area(key="text").set_value("\u0000\ud7ff 💥 ###").run()
    assert not at.exception


def test_an_experiment_masks_its_word(runs):
    at = app("predict", run="tiny")
    at.button(key="try_1").click().run()
    assert not at.exception and not at.error
    component = json.loads(at.get("bidi_component")[0].proto.json)
    text, label = at.text_area(key="text").value, at.button(key="try_1").label.replace("\\", "")
    start = label.index("[MASK]")
    answer = text[start:len(text) - len(label[start + 6:])]
    masked = "".join(component["tokens"][i].removeprefix("##") for i in component["masked"])
    assert masked == answer.lower()


def test_next_sentence_exchanges_its_texts(runs):
    at = app("next_sentence", run="tiny", a="the cat sleeps .", b="it is tired .")
    at.button(key="try_2").click().run()
    assert at.text_area(key="a").value == "it is tired ." and not at.exception
    assert at.text_area(key="b").value == "the cat sleeps ."
    at.text_area(key="b").set_value("").run()
    assert not at.exception and "at least one word" in said(at)


def test_embeddings_of_pasted_texts(runs):
    at = app("embeddings", run="tiny")
    at.segmented_control(key="texts_from").set_value("texts of my own").run()
    assert not at.exception and "Paste some texts" in said(at)
    texts = "text,kind\n<b>a</b> cat,x\na dog,<i>y</i>\nthe sea,x"
    at.text_area(key="pasted").set_value(texts).run()
    assert not at.exception and not at.error
    (spec,) = figures(at)
    assert {trace["name"] for trace in spec["data"]} == {"x", "&lt;i&gt;y&lt;/i&gt;"}
    at.text_area(key="pasted").set_value("only one").run()
    assert not at.exception and "at least 3 texts" in said(at)


def test_probing_reads_a_file_and_keeps_its_result(own_runs, tmp_path):
    from bertscope.corpus.conllu import write_conllu
    from bertscope.corpus.miniworld import gold_sentences

    write_conllu(gold_sentences(40, 3), tmp_path / "gold.conllu")
    where = {"run": "tiny", "gold_from": "on this machine"}
    at = app("probing", **where, gold=str(tmp_path / "gold.conllu"))
    assert not at.exception and not at.error
    (spec,) = figures(at)
    assert {trace["name"] for trace in spec["data"]} == {"tiny · step 40", "random weights"}
    analysis = own_runs / "tiny" / "analysis"
    before = set(analysis.glob("probe_scores-*.parquet"))
    at.run()
    assert before and set(analysis.glob("probe_scores-*.parquet")) == before
    at = app("probing", **where, gold=str(tmp_path / "none.conllu"))
    assert not at.exception and "no gold annotation" in at.error[0].value


def test_an_uploaded_treebank_and_a_file_that_is_none(runs, tmp_path):
    from bertscope.corpus.conllu import write_conllu
    from bertscope.corpus.miniworld import gold_sentences

    write_conllu(gold_sentences(30, 4), tmp_path / "gold.conllu")
    at = app("probing", run="tiny", gold_from="upload")
    uploader = at.file_uploader(key="gold_file")
    uploader.upload("mine.conllu", (tmp_path / "gold.conllu").read_bytes(), "text/plain").run()
    assert not at.exception and not at.error and figures(at)
    at.file_uploader(key="gold_file").upload("bad.conllu", b"\xff\xfe not a treebank",
                                             "text/plain").run()
    assert not at.exception and at.error


# -- the training page ------------------------------------------------------------------------


def test_the_form_has_a_field_for_every_setting(no_runs):
    from bertscope.config import RunConfig
    from bertscope.ui import run_form

    at = app("train")
    keys = {str(w.key) for kind in (at.number_input, at.text_input, at.checkbox, at.selectbox)
            for w in kind if w.key}
    for section, values in RunConfig().to_dict().items():
        for name in values if isinstance(values, dict) else ():
            key = f"{section}.{name}"
            assert key in run_form.IN_SIGHT or f"new.bert.miniworld.tiny.{key}" in keys


def test_an_experiment_fills_the_form_in(runs):
    at = app("train", run="tiny")
    at.button(key="try_1").click().run()
    assert not at.exception
    assert at.number_input(key="new.bert.miniworld.tiny.objective.mask_rate").value == 0.4
    at.button(key="try_0").click().run()
    assert at.selectbox(key="new.corpus").value == "sotu"
    assert at.number_input(key="new.bert.sotu.minutes").value == 10.0


def test_a_bad_setting_is_a_sentence_and_starts_nothing(no_runs):
    at = app("train")
    at.number_input(key="new.bert.miniworld.tiny.model.num_attention_heads").set_value(3).run()
    assert not at.exception and "multiple of" in at.error[0].value.replace("\\", "")
    assert not list_runs(no_runs)
    at.number_input(key="new.bert.miniworld.tiny.model.num_attention_heads").set_value(2).run()
    at.text_input(key="new.name").set_value("../x").run()
    at.button(key="new.start").click().run()
    assert not at.exception and "A run's name" in at.error[0].value.replace("\\", "")


def test_a_run_is_started_watched_and_deleted(no_runs):
    at = app("train")
    for key, value in (("corpus.documents", 120), ("model.hidden_size", 32),
                       ("model.intermediate_size", 64), ("training.evaluation_examples", 32)):
        at.number_input(key=f"new.bert.miniworld.tiny.{key}").set_value(value)
    at.number_input(key="new.bert.miniworld.steps").set_value(6)
    at.text_input(key="new.name").set_value("mine").run()
    at.button(key="new.start").click().run()
    assert not at.exception and not at.error
    assert address(at)["run"] == "mine"
    run = open_run("mine", no_runs)
    assert run.config().training.steps == 6 and run.config().corpus.documents == 120
    deadline = time.monotonic() + 120
    while run.status()["state"] not in ("finished", "failed") and time.monotonic() < deadline:
        time.sleep(0.5)
    assert run.status()["state"] == "finished", run.log_tail()
    at.run()
    assert not at.exception and "finished" in said(at)
    at.button(key="delete").click().run()
    assert run.exists(), "nothing is deleted before it is confirmed"
    at.button(key="delete_yes").click().run()
    assert not at.exception and not run.exists()
    assert "There is no model yet" in said(at)


def test_an_interrupted_run_says_so_and_offers_to_resume(own_runs):
    run = open_run("tiny", own_runs)
    run.write_status(state="training", step=30, locked=True)
    at = app("train", run="tiny")
    assert not at.exception and "ended without a word" in said(at)
    assert at.button(key="resume").label == "Resume"


def test_a_recipe_brings_its_own_settings_and_says_what_it_costs(no_runs):
    at = app("train")
    at.selectbox(key="new.recipe").set_value("electra").run()
    assert not at.exception
    assert at.selectbox(key="new.electra.miniworld.tiny.objective.pairs").value == "full_sentences"
    assert at.number_input(key="new.electra.miniworld.tiny.objective.mask_share").value == 0.85
    at.button(key="new.plan").click().run()
    assert not at.exception and not at.error
    shown = {metric.label: metric.value for metric in at.metric}
    assert int(shown["Parameters"].replace(",", "")) > 100_000 and "min" in shown["All of it"]
    at.selectbox(key="new.recipe").set_value("roberta").run()
    assert not at.metric, "a plan belongs to the settings it was made for"
    at.selectbox(key="new.roberta.miniworld.tiny.objective.pairs").set_value("nsp").run()
    assert not at.exception and "has no head" in at.error[0].value.replace("\\", "")


@pytest.mark.parametrize("recipe", ["electra", "causal", "albert"])
def test_every_page_copes_with_every_recipe(no_runs, recipe):
    from bertscope.presets import run_config
    from bertscope.runs import create_run
    from bertscope.training.loop import train

    run = create_run("other", run_config({
        "corpus.documents": 60, "model.hidden_size": 32, "model.intermediate_size": 64,
        "training.steps": 4, "training.evaluation_examples": 32}, recipe=recipe), no_runs)
    train(run)
    for page in NAMES:
        at = app(page, run="other")
        assert not at.exception, page
    at = app("predict", run="other")
    assert bool(at.error) == (recipe == "causal"), "ELECTRA's generator fills masks"


def test_a_port_that_is_taken_is_said_before_anything_is_started(tmp_path, monkeypatch, capsys):
    import socket

    from bertscope.cli import main

    monkeypatch.setenv("BERTSCOPE_RUNS", str(tmp_path / "none"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for command in (["demo"], ["app", "--host", "127.0.0.1"]):
            assert main([*command, "--port", str(port)]) == 1
    said = capsys.readouterr()
    assert said.err.count(f":{port} (Address already in use): choose another port") == 2
    assert not said.out and not (tmp_path / "none").exists()
    assert main(["app", "--port", "70000"]) == 1 and "between 1 and 65535" in capsys.readouterr().err


def test_the_app_ends_with_its_command_and_leaves_its_port(tmp_path):
    """``kill`` of ``bertscope app`` ends the server that it started."""
    import signal
    import socket
    import subprocess
    import sys
    import urllib.request

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "bertscope", "app", "--host", "127.0.0.1", "--port", str(port)],
        env={**os.environ, "BERTSCOPE_RUNS": str(tmp_path / "runs")}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    finally:
        process.kill()
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5)
