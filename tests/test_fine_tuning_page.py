"""The Fine-tuning page: what a view shows is the library's, and every state has a sentence."""

import ast
import json
import re
import shutil
import time
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from conftest import REPOSITORY
from test_app import NAMES, address, after_the_first_visit, app, figures, own_runs, said

from bertscope.finetuning import outcome, predict, results, sweep
from bertscope.finetuning.config import SECTIONS, FinetuneConfig
from bertscope.finetuning.launch import create
from bertscope.runs import list_runs, open_run
from bertscope.training.loop import train

__all__ = ["after_the_first_visit", "own_runs"]  # fixtures
SMALL = {"data.most_train": 64, "data.most_valid": 24, "data.most_test": 16, "training.epochs": 2.0,
         "training.batch_size": 16, "training.threads": 1, "training.log_every": 1}
RUNS = {"tags": {"data.task": "tokens"}, "pairs": {"data.task": "pair"},
        "wellformed": {"data.task": "sentence"},
        "answers": {"data.task": "question", "data.most_train": 12, "data.most_valid": 6},
        "tags-random": {"data.task": "tokens", "start": "random:tiny"},
        "tags-early": {"data.task": "tokens", "start": "tiny@20"},
        "tags-few": {"data.task": "tokens", "data.most_train": 32},
        "tags-random-few": {"data.task": "tokens", "start": "random:tiny", "data.most_train": 32},
        "tags-cut": {"data.task": "tokens", "head.layer": "1"},
        "tags-mix": {"data.task": "tokens", "head.layer": "mix"}}


@pytest.fixture(scope="module")
def root(tiny_root, tmp_path_factory):
    """Runs fine-tuned from the tiny pretrained one, for each task, and a sweep of two numbers."""
    folder = tmp_path_factory.mktemp("tuned") / "runs"
    shutil.copytree(tiny_root / "tiny", folder / "tiny", ignore=shutil.ignore_patterns("analysis"))
    (folder.parent / "numbers.csv").write_text("text,label\n" + "\n".join(
        f"{'the cat sleeps' if i % 2 else 'a dog runs'} {i},{(i % 2) * 3 + i / 100:.2f}" for i in range(80)))
    numbers = {"numbers": {"data.source": str(folder.parent / "numbers.csv")}}
    for name, changes in (RUNS | numbers).items():
        train(create(FinetuneConfig().override({"start": "tiny", **SMALL, **changes}), name, folder))
    return folder


@pytest.fixture
def runs(root, monkeypatch):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(root))
    return root


def page(**more):
    at = app("fine_tuning", **more)
    assert not at.exception, at.exception
    return at


def plain(at) -> str:
    return said(at).replace("\\", "")


def components(at) -> list:
    return [json.loads(c.proto.json) for c in at.get("bidi_component")]


def finished(run, seconds: float = 180) -> str:
    deadline = time.monotonic() + seconds
    while run.status()["state"] not in ("finished", "failed") and time.monotonic() < deadline:
        time.sleep(0.3)
    return run.status()["state"]


# -- new ----------------------------------------------------------------------------------------


def test_the_form_has_a_field_for_every_setting(runs):
    from bertscope.ui.fine_tuning import new

    at = page(run="tiny")
    keys = {str(w.key) for kind in (at.number_input, at.text_input, at.checkbox, at.selectbox)
            for w in kind if w.key}
    values = FinetuneConfig().to_dict()
    for section in SECTIONS:
        for name in values[section]:
            assert f"{section}.{name}" in new.IN_SIGHT or f"ft.more.{section}.{name}" in keys
    assert at.selectbox(key="ft.start").value == "tiny@40"
    assert at.number_input(key="ft.rate.32").value == 0.02


@pytest.mark.parametrize("run, begun", [("tiny", "tiny@40"), ("tags-early", "tiny@20"),
                                        ("tags-random", "random:tiny")])
def test_an_experiment_fills_the_form_in(runs, run, begun):
    at = page(run=run, view="New")
    assert at.selectbox(key="ft.start").value == begun
    at.button(key="try_1").click().run()
    assert not at.exception and at.selectbox(key="ft.start").value == "random:tiny"
    at.button(key="try_2").click().run()
    assert at.number_input(key="ft.more.head.freeze_layers").value == 2


def test_nothing_fine_tuned_yet_and_the_example_by_one_click(own_runs, monkeypatch):
    from bertscope import launch

    started = []
    monkeypatch.setattr(launch, "start", lambda run: started.append(run.name))
    at = page(run="tiny")
    assert "No model is fine-tuned here yet" in plain(at)
    for name in ("How good", "Try it", "What changed inside", "Watch"):
        at = page(run="tiny", view=name)
        assert "is not fine-tuned: this view" in plain(at) and not at.error
    at.button(key="ft_example").click().run()
    assert not at.exception and not at.error
    assert started == ["tiny-40-miniworld-tokens"] and address(at)["run"] == started[0]
    run = open_run(started[0], own_runs)
    assert run.settings().start == "tiny@40" and run.settings().data.task == "tokens"
    assert "Its first checkpoint" in plain(at) or "starting" in plain(at) or "preparing" in plain(at)


def test_from_the_form_to_the_end(own_runs):
    at = page(run="tiny")
    at.selectbox(key="ft.example").set_value("sentence")
    at.number_input(key="ft.more.data.most_train").set_value(32)
    at.number_input(key="ft.more.data.most_valid").set_value(16)
    at.number_input(key="ft.epochs").set_value(1.0)
    at.selectbox(key="ft.layer").set_value("1")
    at.text_input(key="ft.name").set_value("mine").run()
    at.button(key="ft_start").click().run()
    assert not at.exception and not at.error
    run = open_run("mine", own_runs)
    settings = run.settings()
    assert (settings.data.task, settings.data.most_train, settings.head.layer) == ("sentence", 32, "1")
    assert settings.training.learning_rate is None
    assert finished(run) == "finished", run.log_tail()
    at.run()
    assert not at.exception and "finished" in plain(at)
    assert [m.label for m in at.metric][:2] == ["Accuracy", "Macro-F1"]
    at.button(key="delete").click().run()
    at.button(key="delete_yes").click().run()
    assert not at.exception and not run.exists()


def test_a_bad_setting_is_a_sentence_and_starts_nothing(own_runs):
    at = page(run="tiny")
    at.text_input(key="ft.name").set_value("../x").run()
    at.button(key="ft_start").click().run()
    assert not at.exception and "A run's name" in at.error[0].value.replace("\\", "")
    assert [run.name for run in list_runs(own_runs)] == ["tiny"]


def test_checking_says_what_the_command_line_says(runs, tmp_path):
    from bertscope.finetuning.data import read

    at = page(run="tiny")
    at.selectbox(key="ft.example").set_value("pair").run()
    at.button(key="ft_check").click().run()
    assert not at.exception and not at.error
    data = read(FinetuneConfig().override({"data.task": "pair"}).data)
    shown = {m.label: m.value for m in at.metric}
    assert shown["Training examples"] == f"{len(data.train):,}" and shown["Labels"] == "2"
    assert all(note in plain(at) for note in data.notes)
    counts = next(d.value for d in at.dataframe if "train" in d.value)
    assert counts["train"].sum() == len(data.train) and counts["test"].sum() == len(data.test)


def test_without_labels_the_first_examples_have_the_whole_width(runs):
    widths = {}
    for task in ("pair", "question"):
        at = page(run="tiny")
        at.selectbox(key="ft.example").set_value(task).run()
        at.button(key="ft_check").click().run()
        assert not at.exception and ("How often each label" in plain(at)) == (task == "pair")
        widths[task] = [round(column.weight, 2) for column in at.columns]
    assert widths["pair"][-2:] == [0.5, 0.5] and widths["question"][-1:] == [1.0]


def test_bad_rows_are_named_and_left_out_only_if_the_user_says_so(runs, tmp_path):
    rows = [f"a cat {i},{'xy'[i % 2]}" for i in range(40)]
    (tmp_path / "d.csv").write_text("text,label\n" + "\n".join([*rows[:5], ",x", *rows[5:]]))
    at = page(run="tiny")
    at.segmented_control(key="ft.from").set_value("on this machine").run()
    assert "Give a path" in plain(at)
    at.text_input(key="ft.path").set_value(str(tmp_path / "d.csv")).run()
    at.button(key="ft_check").click().run()
    assert not at.exception and "d.csv, line 7" in at.error[0].value.replace("\\", "")
    before = {run.name for run in list_runs(runs)}
    at.button(key="ft_start").click().run()
    assert at.error and {run.name for run in list_runs(runs)} == before
    at.checkbox(key="ft.skip").check().run()
    assert not at.error and "Left out as unusable: 1 rows" in plain(at)
    at.text_input(key="ft.column.label").set_value("nope").run()
    at.button(key="ft_check").click().run()
    assert not at.exception and "no column 'nope'" in at.error[0].value.replace("\\", "")


def test_an_uploaded_file_is_kept_for_the_training(runs):
    at = page(run="tiny")
    at.segmented_control(key="ft.from").set_value("upload").run()
    rows = "\n".join(f"a cat {i},{'xy'[i % 2]}" for i in range(40)).encode()
    at.file_uploader(key="ft_file").upload("../my <b>data.csv", b"text,label\n" + rows, "text/csv").run()
    at.button(key="ft_check").click().run()
    assert not at.exception and not at.error
    assert {m.label: m.value for m in at.metric}["Training examples"] == "32"
    kept = list((runs / ".uploads").glob("*/*"))
    assert [path.name for path in kept] == ["my-b-data.csv"]
    at.file_uploader(key="ft_file").upload("bad.parquet", b"\xff\xfe nothing", "text/csv").run()
    at.button(key="ft_check").click().run()
    assert not at.exception and at.error


# -- how good -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tags", "pairs", "wellformed", "answers", "tags-mix"])
def test_metrics_errors_and_calibration_are_the_librarys(runs, name):
    run = open_run(name)
    checkpoint = run.checkpoints()[-1]
    at = page(run=name, step=str(checkpoint.step))
    assert not at.error and address(at).get("view") in (None, "How good")
    found = outcome.outcome(predict.open_finetuned(checkpoint.path), results.data_of(run))
    metric = results.metric_of(run)
    assert f"{found.metrics[metric]:.1%} on" in plain(at)
    error = outcome.calibration_error(found.table["probability"], found.table["right"])
    assert f"Calibration error {error:.1%}" in plain(at)
    names = [trace.get("name") for spec in figures(at) for trace in spec["data"]]
    always = "never answering" if name == "answers" else "commonest answer"
    assert {always, "linear model", "calibrated"} <= set(names)
    heat = [s for s in figures(at) if s["data"][0]["type"] == "heatmap"]
    assert bool(heat) == (name != "answers")
    listed = at.dataframe[-1].value
    assert list(listed["predicted"]) == [p or "(no answer)" for p in found.errors["predicted"]][:500]
    assert f"{len(found.errors):,} of {len(found.table):,}" in plain(at)


def test_numbers_are_drawn_against_gold_and_have_no_calibration(runs):
    run = open_run("numbers")
    checkpoint = run.checkpoints()[-1]
    at = page(run="numbers", step=str(checkpoint.step), view="How good")
    assert not at.error
    found = outcome.outcome(predict.open_finetuned(checkpoint.path), results.data_of(run))
    assert f"Pearson's correlation {found.metrics['pearson']:.3f} on" in plain(at)
    assert "Calibration error" not in plain(at) and "The largest errors" in plain(at)
    assert {"exact", "linear model"} <= {t.get("name") for s in figures(at) for t in s["data"]}
    at = page(run="numbers", view="Try it", sentence_text="the cat sleeps")
    assert not at.error
    expected = predict.estimate(predict.open_finetuned(checkpoint.path), "the cat sleeps")
    assert at.metric[0].value == f"{expected:.3f}"


def test_a_second_checkpoint_of_the_same_task_stands_beside_and_another_is_left_out(runs):
    at = page(run="tags", vs="tags-random@8", view="How good")
    assert not at.error
    names = [trace.get("name") for spec in figures(at) for trace in spec["data"]]
    assert any("tags-random" in str(name) for name in names)
    assert any(c.startswith("predicted by") for c in at.dataframe[-1].value.columns)
    for other in ("pairs", "tiny"):
        at = page(run="tags", vs=other, view="How good")
        assert not at.error and "is not fine-tuned for the same task" in plain(at)


def test_the_test_part_is_looked_at_once(root, runs, tmp_path, monkeypatch):
    shutil.copytree(root, tmp_path / "copy")
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tmp_path / "copy"))
    run = open_run("tags")
    at = page(run="tags", view="How good")
    assert "Test part" not in plain(at) and run.test_result() is None
    at.button(key="test_once").click().run()
    assert not at.exception and not at.error
    result = run.test_result()
    assert result is not None and f"F1 {result['f1']:.1%}" in plain(at)
    assert "test_once" not in [b.key for b in at.button]


def test_examples_that_changed_are_a_sentence(runs, tmp_path, root):
    rows = [f"a cat {i},{'xy'[i % 2]}" for i in range(60)]
    (tmp_path / "d.csv").write_text("text,label\n" + "\n".join(rows))
    config = FinetuneConfig().override({"start": "tiny", **SMALL, "data.source": str(tmp_path / "d.csv")})
    run = create(config, "changed", root)
    try:
        train(run)
        (tmp_path / "d.csv").write_text("text,label\n" + "\n".join(rows[1:]))
        for view in ("How good", "Try it", "What changed inside"):
            at = page(run="changed", view=view)
            assert "no longer those" in plain(at) or view == "Try it"
            assert view != "Try it" or "Try this" not in plain(at)  # no examples are left to try
    finally:
        run.delete()


# -- try it -------------------------------------------------------------------------------------


def test_a_label_with_its_probability_and_which_words_mattered(runs):
    run = open_run("pairs")
    text, second = "who came to the <b>school</b> ?", "anna came in the morning ."
    at = page(run="pairs", view="Try it", pair_text=text, pair_pair=second)
    assert not at.error
    best = predict.classify(predict.open_finetuned(run.checkpoints()[-1].path), text, second)[0]
    assert f"{best.label} :gray[{best.probability:.1%}]" in plain(at)
    assert re.search(r"completeness error \d", plain(at))
    pieces = next(c for c in components(at) if c and "pieces" in c)["pieces"]
    assert pieces[0]["token"] == "[CLS]" and any(p["label"] for p in pieces)
    at.segmented_control(key="try_method").set_value("gradient × input").run()
    assert not at.exception and not re.search(r"completeness error \d", plain(at))
    at.text_area(key="pair_pair").set_value("  ").run()
    assert not at.exception and "at least one word" in plain(at)


def test_tags_over_words(runs):
    run = open_run("tags")
    at = page(run="tags", view="Try it", tokens_text="Anna found a boat 中文 💥 .")
    assert not at.error
    found = predict.tag(predict.open_finetuned(run.checkpoints()[-1].path), "Anna found a boat 中文 💥 .")
    shown = next(c for c in components(at) if c and "pieces" in c)["pieces"]
    assert [p["token"] for p in shown] == [w.word for w in found]
    assert [p["label"] for p in shown] == ["" if w.tag == "O" else w.tag for w in found]


def test_an_answer_is_marked_in_its_paragraph(runs):
    run = open_run("answers")
    data = results.data_of(run).valid[0]
    at = page(run="answers", view="Try it", question_text=data.question, question_pair=data.context)
    assert not at.error
    best = predict.answer(predict.open_finetuned(run.checkpoints()[-1].path), data.question, data.context)[0]
    row = next(c for c in components(at) if isinstance(c, list))[0]
    assert "".join(row["words"]) == data.context and row["between"] == ""
    assert [row["words"][i] for i in row["places"]] == ([best.text] if best.text else [])
    assert "P(first) · P(last) =" in plain(at)


@pytest.mark.parametrize("text", ["\u0000\ud7ff 💥 ###", "x" * 2900, "[MASK] [CLS] <script>", "a\n\nb"])
@pytest.mark.parametrize("run, key", [("tags", "tokens_text"), ("wellformed", "sentence_text")])
def test_any_text_gets_a_designed_answer(runs, run, key, text):
    at = page(run=run, view="Try it")
    at.text_area(key=key).set_value(text).run()
    assert not at.exception and not at.error


# -- what pretraining is worth --------------------------------------------------------------------


def test_the_sweep_among_the_runs_is_drawn(runs):
    from bertscope.finetuning.gathered import gather

    group = next(g for g in gather() if len(g.made) == 5)
    assert [b.title for b in group.starts] == ["random weights", "step 20", "step 40"]
    means = sweep.summary(sweep.frame(group.made))
    at = page(run="tiny", view="What pretraining is worth")
    assert not at.error
    (spec,) = figures(at)
    lines = {t["name"]: t for t in spec["data"]}
    assert list(lines) == ["random weights", "step 20", "step 40"]
    own = means[means["start"] == "random:tiny"].sort_values("examples")
    assert spec["layout"]["yaxis"]["range"] == [-0.02, 1.05]  # F1 is a share, whatever Student's t says
    assert ("wider than what the metric can be" in plain(at)) == bool(
        (means["low"] < -0.02).any() or (means["high"] > 1.05).any())
    shown = at.dataframe[0].value
    assert sorted(shown["mean"]) == pytest.approx(sorted(means["mean"]))
    assert len(own) == 2 and "2 seeds" not in plain(at)


def test_the_numbers_of_a_sweep_are_read_or_refused():
    from bertscope.errors import BertScopeError
    from bertscope.ui.fine_tuning.sweeping import rates_of, sizes_of

    assert sizes_of("300, 30 all") == [30, 300, None]
    for bad in ("", "few", "-3", "0", "1.5", "٣", "1 2 3 4 5 6 7 8 9"):
        with pytest.raises(BertScopeError):
            sizes_of(bad)
    assert rates_of("") == [] and rates_of("1e-3, 3e-4 .001") == [3e-4, 1e-3]
    for bad in ("fast", "0", "-1e-3", "2", "nan", "inf", ",".join(f"{n}e-5" for n in range(1, 10))):
        with pytest.raises(BertScopeError):
            rates_of(bad)


def test_a_sweep_is_started_shown_and_cancelled(own_runs):
    from bertscope.finetuning.planned import listed

    at = page(run="tiny", view="What pretraining is worth")
    assert "There is no sweep yet" in plain(at)
    at.text_input(key="ft.worth.sizes").set_value("20, 40")
    at.number_input(key="ft.worth.seeds").set_value(1)
    at.text_input(key="ft.worth.rates").set_value("1e-3, 3e-3").run()
    assert "16 runs" in plain(at) and "--learning-rates 0.001 0.003 --seeds 1" in at.code[-1].value
    at.text_input(key="ft.worth.rates").set_value("").run()
    at.button(key="worth_start").click().run()
    assert not at.exception and not at.error
    (plan,) = listed(own_runs)
    try:
        assert plan.alive() and plan.progress().total == 8
        assert "worth_stop" in [b.key for b in at.button]
        at.button(key="worth_stop").click().run()
        deadline = time.monotonic() + 120
        while plan.alive() and time.monotonic() < deadline:
            time.sleep(0.2)
        assert not plan.alive() and plan.progress().done < 8
        at.run()
        assert "worth_resume" in [b.key for b in at.button] and "stopped" in plain(at)
        at.button(key="worth_forget").click().run()
        assert not at.exception and not listed(own_runs) and "worth_resume" not in [b.key for b in at.button]
    finally:
        if plan.path.is_dir():
            plan.stop()


@pytest.mark.parametrize("alive, done, again", [(False, 1, False), (False, 0, True), (True, 1, True)])
def test_the_page_is_drawn_anew_with_each_run_of_a_sweep(runs, monkeypatch, alive, done, again):
    """What the fragment knew when the page was drawn, beside how far the sweep is now."""
    from bertscope.finetuning import planned
    from bertscope.finetuning.sweep import Sweep
    from bertscope.ui.fine_tuning import sweeping

    plan = planned.plan(Sweep(FinetuneConfig(), seeds=2))
    try:
        monkeypatch.setattr(planned.Planned, "progress", lambda self: planned.Progress(1, 2, None))
        monkeypatch.setattr(sweeping.st, "rerun", lambda: (_ for _ in ()).throw(InterruptedError))
        with pytest.raises(InterruptedError) if again else nullcontext():
            sweeping._progress(str(plan.path), alive, done)
    finally:
        plan.forget()


# -- what changed inside --------------------------------------------------------------------------


def test_before_and_after_by_layer(runs):
    from bertscope.analysis import load
    from bertscope.finetuning.changes import weight_distance

    run = open_run("tags")
    at = page(run="tags", view="What changed inside")
    assert not at.error
    text = plain(at)
    assert "Before: tiny · step 40" in text.replace("*", "")
    before, after = (load(r.checkpoints()[-1].path) for r in (open_run("tiny"), run))
    expected = weight_distance(before, after)
    spec = next(s for s in figures(at) if "weights move" in s["layout"]["title"]["text"])
    shown = spec["data"][0]["y"]
    assert shown == pytest.approx(expected["distance"].tolist())
    links = {link.proto.page: link.proto.query_string for link in at.get("page_link")}
    step = run.checkpoints()[-1].step
    assert links["attention"] == f"run=tags&vs=tiny%4040&step={step}" and len(links) == 3


@pytest.mark.parametrize("other, drawn", [("tags-few", 2), ("tags-early", 1), ("tags-random", 1)])
def test_only_what_began_there_is_drawn_with_how_far_it_moved(runs, other, drawn):
    at = page(run="tags", view="What changed inside", vs=other)
    assert not at.error and ("it began with another checkpoint" in plain(at)) == (drawn == 1)
    spec = next(s for s in figures(at) if "weights move" in s["layout"]["title"]["text"])
    assert len(spec["data"]) == drawn


def test_layers_that_share_their_weights_are_one_point():
    from bertscope.ui.fine_tuning.inside import layer_names

    assert layer_names(2, 12) == ["embeddings", "all layers"]
    assert layer_names(2, 1) == layer_names(2) == ["embeddings", "layer 1"]


def test_layers_that_were_cut_off_are_not_compared(runs):
    at = page(run="tags-cut", view="What changed inside", vs="tags", inside_vectors="[CLS]")
    assert not at.error
    for spec in figures(at)[:2]:
        assert spec["layout"]["xaxis"]["ticktext"] == ["embeddings", "layer 1"]


def test_a_run_from_random_weights_is_compared_with_its_own_beginning(runs):
    at = page(run="tags-random", view="What changed inside")
    assert not at.error and "tags-random · step 0" in plain(at)


# -- all views ------------------------------------------------------------------------------------


def test_every_view_explains_itself_and_none_needs_a_run(runs, tmp_path):
    import transformers
    from tiny_models import save

    save(tmp_path / "labels", transformers.BertForSequenceClassification, num_labels=3)
    for view in ("New", "Watch", "How good", "Try it", "What pretraining is worth", "What changed inside"):
        at = page(run=str(tmp_path / "labels"), view=view)
        assert not at.error, view
        assert "How this is computed" in [e.label for e in at.expander][-1]
    at = page(run=str(tmp_path / "labels"), view="Try it", sentence_text="the cat")
    assert "LABEL" in plain(at)


def test_the_page_is_among_the_others():
    assert "fine_tuning" in NAMES


def test_first_paint_imports_no_torch(runs):
    import os
    import subprocess
    import sys

    from conftest import REPOSITORY

    code = ("import sys; from streamlit.testing.v1 import AppTest; from streamlit.runtime.pages_manager "
            "import PagesManager; from bertscope.ui import loaders\n"
            "loaders.warm_up = lambda: None\n"
            "begin = PagesManager.__init__\n"
            "def init(self, *a, **k):\n"
            "    PagesManager.uses_pages_directory = False\n    begin(self, *a, **k)\n"
            "PagesManager.__init__ = init\n"
            "at = AppTest.from_file('app.py', default_timeout=60)\n"
            "at.query_params['run'] = 'tiny'; at.run()\n"
            "at.switch_page('pages/fine_tuning.py').run(); assert not at.exception, at.exception\n"
            "assert at.button(key='ft_start'); print('torch' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True,
                          env={**os.environ, "BERTSCOPE_RUNS": str(runs)})
    assert done.stdout.strip().splitlines()[-1:] == ["False"], done.stdout + done.stderr


def test_a_correlation_may_be_below_0_and_is_no_percentage():
    from bertscope.ui.fine_tuning import figures as drawn

    table = pd.DataFrame({"examples": [10, 20], "mean": [-0.3, 0.5], "low": [-2.0, 0.4], "high": [1.4, 0.6],
                          "seeds": 2})
    axis = drawn.worth([("a", "#000", table)], "r", True, form="f").layout.yaxis
    assert axis.range == (-0.32, 1.05) and axis.tickformat == ".1f"
    assert drawn.worth([("a", "#000", table)], "F1", True).layout.yaxis.tickformat == ".0%"


def test_the_reliability_figure_survives_one_bin():
    from bertscope.ui.fine_tuning import figures as drawn

    table = outcome.reliability(np.array([1.0, 1.0]), np.array([True, True]))
    assert len(drawn.reliability([("a", "main", table)], 0.5).data) == 3
    assert isinstance(table, pd.DataFrame)


@pytest.mark.parametrize("view", ["New", "Watch", "How good", "Try it", "What pretraining is worth",
                                  "What changed inside"])
def test_a_run_that_is_gone_is_said_to_be_so(runs, view):
    """Deleted in another tab, or a link that is old."""
    at = page(run="tags-gone", view=view)
    assert not at.exception and "There is no run called tags-gone" in plain(at)
    assert "is not fine-tuned" not in plain(at)


@pytest.mark.parametrize("drawn, follow", [(["status"], True), (None, False)])
def test_following_ends_where_the_user_moves_the_slider_not_where_the_browser_lags(monkeypatch, drawn, follow):
    """With a fragment's request comes the step of before the sidebar moved on."""
    from bertscope.ui import sidebar

    state = {"follow": True, "step": 20}
    monkeypatch.setattr(sidebar.st, "session_state", state)
    monkeypatch.setattr(sidebar, "get_script_run_ctx", lambda: SimpleNamespace(fragment_ids_this_run=drawn))
    sidebar._step_changed("")
    assert state["follow"] is follow


@pytest.mark.parametrize("folder", ["bertscope/finetuning", "bertscope/ui/fine_tuning"])
def test_no_modules_import_one_another_in_a_circle(folder):
    """Imports within functions count: they only hide a circle."""
    needs = {}
    for file in (REPOSITORY / folder).rglob("*.py"):
        name = ".".join(file.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
        needs[name] = {found for node in ast.walk(ast.parse(file.read_text()))
                       if isinstance(node, ast.ImportFrom) and node.module
                       for found in (node.module, *(f"{node.module}.{a.name}" for a in node.names))}
    while free := [name for name, own in needs.items() if not (own - {name}) & set(needs)]:
        for name in free:
            del needs[name]
    assert not needs
