"""The views *Sentence score* and *Minimal pairs* of the Predict page, and ``bertscope score``."""

import json
import math

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from test_app import (
    address, after_the_first_visit, app, figures, own_runs, runs, said)

from bertscope.cli import main
from bertscope.corpus.pairs import built_in

TEXT = "she was watching the <b>garden</b> ."
FILE = {"view": "Minimal pairs", "pairs_of": "A file of pairs"}
ON_DISK = {**FILE, "pairs_from": "file or folder on this machine"}


def view(**where) -> AppTest:
    at = app("predict", **{"run": "tiny"} | where)
    assert not at.exception, at.exception
    return at


def shaded(at) -> list[dict]:
    """The coloured texts."""
    found = [json.loads(c.proto.json) for c in at.get("bidi_component")]
    return [c for c in found if "pieces" in c]


@pytest.fixture
def scores(tiny_run):
    """Scores by the library of the newest checkpoint and of the untrained one."""
    from bertscope.analysis.activations import load
    from bertscope.analysis.scoring import score

    saved = tiny_run.checkpoints()

    def of(texts, variant="original", which=-1):
        return score(load(saved[which].path), texts, variant)

    return of


@pytest.fixture
def few(tmp_path):
    """A CSV file of pairs: two of one paradigm, one of another that the model cannot read."""
    path = tmp_path / "mine.csv"
    path.write_text("good,bad,paradigm\nthe garden was big .,the garden were big .,number\n"
                    "she was <i>happy</i> .,her was <i>happy</i> .,number\n"
                    f"{'garden ' * 60},the garden,long\n")
    return path


# -- sentence score ---------------------------------------------------------------------------


def test_the_score_is_the_librarys_in_both_ways(runs, scores):
    for way, variant in (("piece by piece", "original"), ("word by word", "word_l2r")):
        at = view(view="Sentence score", text=TEXT, score_by=way)
        (expected,) = scores([TEXT], variant)
        assert f"pseudo-log-likelihood −{-expected.pll:,.2f} nats" in said(at)
        assert f"{math.exp(-expected.log_probabilities.mean()):,.1f}" in said(at)
        (text,) = shaded(at)
        assert [p["token"] for p in text["pieces"]] == expected.encoded.tokens[1:-1]
        assert [p["label"] for p in text["pieces"]] == [f"{b:.1f}" for b in expected.bits]
        table = at.dataframe[0].value
        assert table["PLL (natural log)"].tolist() == pytest.approx(
            [scores([TEXT], v)[0].pll for v in ("original", "word_l2r")], abs=1e-4)
    assert address(at)["score_by"] == "word by word"
    assert "is cut into" in said(at) and at.get("download_button")
    assert len(at.get("vega_lite_chart")) == 1 and len(figures(at)) == 1  # over the checkpoints
    assert len([e for e in at.expander if "How this is computed" in e.label]) == 1


def test_words_and_a_second_checkpoint_on_one_scale(runs, scores):
    at = view(view="Sentence score", text=TEXT, score_unit="words", vs="tiny@0")
    here, there = shaded(at)
    ours, theirs = scores([TEXT])[0], scores([TEXT], which=0)[0]
    assert [p["label"] for p in here["pieces"]] == [f"{w.bits:.1f}" for w in ours.words]
    assert [p["label"] for p in there["pieces"]] == [f"{w.bits:.1f}" for w in theirs.words]
    most = max(w.bits for s in (ours, theirs) for w in s.words)
    assert there["legend"][2] == f"{most:.1f} bits" and not here["legend"]
    assert f"−{-theirs.pll:,.2f} nats" in said(at)
    (grid,) = figures(at)
    assert [label.split(": ", 1)[1] for label in grid["layout"]["yaxis"]["ticktext"]] == \
        [w.text.replace("<", "&lt;").replace(">", "&gt;") for w in ours.words]


@pytest.mark.parametrize(("text", "why"), [
    ("the [MASK] was big", "a sentence with a gap"), ("[MASK]", "a sentence with a gap"),
    ("garden " * 100, "longer than the 48 pieces")])
def test_a_text_without_a_score_is_a_sentence(runs, text, why):
    at = view(view="Sentence score", text=text)
    assert why in at.error[0].value.replace("\\", "")


@pytest.mark.parametrize("text", ["", "   ", "💥 猫 <script>", "[SEP]"])
def test_odd_texts_have_a_designed_answer(runs, text):
    at = view(view="Sentence score")
    at.text_area(key="text").set_value(text).run()
    assert not at.exception and not at.error
    assert shaded(at) or "Type a sentence" in said(at)


def test_a_second_checkpoint_without_a_head_is_said(runs, tmp_path):
    import transformers
    from tiny_models import save

    save(tmp_path / "bare", transformers.BertModel)
    for name in ("Sentence score", "Minimal pairs"):
        at = view(view=name, vs=str(tmp_path / "bare"))
        assert "no MLM head" in at.warning[0].value and len(shaded(at)) >= 1


# -- two sentences ----------------------------------------------------------------------------


def test_which_of_two_sentences_and_where(runs, scores):
    first, second = "the garden was big .", "the garden were big ."
    at = view(view="Minimal pairs", first=first, second=second, vs="tiny@0")
    a, b = scores([first, second])
    margin = (a.pll - b.pll) / math.log(2)
    winner = "first" if margin > 0 else "second"
    assert f"the {winner} sentence is likelier" in said(at) and f"{abs(margin):.1f} bits" in said(at)
    texts = shaded(at)
    assert len(texts) == 4  # two sentences, two checkpoints
    strong = [[p["token"] for p in t["pieces"] if p["strong"]] for t in texts]
    assert "".join(strong[0]).replace("##", "") and strong[0] != strong[1] and strong[:2] == strong[2:]
    spec = figures(at)[0]
    bars = [trace for trace in spec["data"] if trace["type"] == "bar"]
    assert len(bars) == 2 and len(at.get("vega_lite_chart")) == 1
    from bertscope.analysis.minimal_pairs import parts

    assert bars[0]["text"] == [f"{p.bits:+.1f}" for p in parts(a, b)]


def test_equal_sentences_and_missing_ones(runs):
    at = view(view="Minimal pairs", first="the garden", second="the garden")
    assert "both are equally likely" in said(at)
    at.text_input(key="second").set_value(" ").run()
    assert not at.exception and "Type two sentences" in said(at)
    at.button(key="try_1").click().run()
    assert not at.exception and "sentence is likelier" in said(at)
    assert at.text_input(key="second").value.split()[0] == "these" or "these" in \
        at.text_input(key="second").value + at.text_input(key="first").value
    at.text_input(key="first").set_value("the [MASK]").run()
    assert not at.exception and "a sentence with a gap" in at.error[0].value


# -- a file of pairs --------------------------------------------------------------------------


def test_miniworlds_pairs_at_once_with_the_untrained_model_beside(own_runs, monkeypatch):
    from bertscope.ui.predict import pair_file

    monkeypatch.setattr(pair_file, "_built_in", lambda: built_in(20))
    at = view(**FILE, vs="tiny@16")
    assert not at.error
    (spec,) = figures(at)
    assert [t["name"] for t in spec["data"]] == ["tiny · step 40", "tiny · step 16", "tiny · step 0"]
    assert all(len(t["x"]) == len(built_in(1).sizes) for t in spec["data"])
    text = said(at)
    assert "Before any training (step 0)" in text and "If both were equally good" in text
    assert "95 % interval" in text
    kept = list((own_runs / "tiny" / "analysis").glob("pairs-*.parquet"))
    assert len(kept) == 3 * 7
    at.segmented_control(key="pairs_rows").set_value("phenomena").run()
    assert not at.exception and len(figures(at)[0]["data"][0]["x"]) == 4


def test_a_file_on_this_machine_over_the_checkpoints(own_runs, few, scores):
    at = view(**ON_DISK, pairs_path=str(few), pairs_over="true")
    assert not at.error
    (spec,) = figures(at)
    good = scores(["the garden was big .", "she was <i>happy</i> ."])
    bad = scores(["the garden were big .", "her was <i>happy</i> ."])
    right = sum(g.pll > b.pll for g, b in zip(good, bad))
    assert spec["data"][0]["x"][0] == right / 2
    assert "1 pairs are left out" in said(at) and "longer than the 48 pieces" in said(at)
    assert len(at.get("vega_lite_chart")) == 1
    assert address(at)["pairs_over"] == "true"
    few.write_text("good,bad\nonly this\n")
    at.run()
    assert not at.exception and "line 2: two columns" in at.error[0].value.replace("\\", "")


def test_ties_are_said(own_runs, tmp_path):
    (tmp_path / "ties.tsv").write_text("猫 .\t犬 .\nthe garden .\tthe garden .\n")
    at = view(**ON_DISK, pairs_path=str(tmp_path / "ties.tsv"))
    assert "2 of 2 pairs are ties" in said(at) and "50.0% right" in said(at)


def test_an_uploaded_file_and_one_that_is_none(runs):
    at = view(**FILE, pairs_from="upload")
    line = {"sentence_good": "the garden was big .", "sentence_bad": "the garden were big .",
            "UID": "<b>agr</b>", "linguistics_term": "agreement"}
    at.file_uploader(key="pairs_file").upload("x.jsonl", json.dumps(line).encode(), "text/plain").run()
    assert not at.exception and not at.error
    assert figures(at)[0]["layout"]["yaxis"]["ticktext"] == ["&lt;b&gt;agr&lt;/b&gt;"]
    at.file_uploader(key="pairs_file").upload("x.jsonl", b"\xff{", "text/plain").run()
    assert not at.exception and "line 1: this is not UTF-8" in at.error[0].value.replace("\\", "")


def test_paths_that_lead_nowhere_and_pairs_that_cannot_be_read(runs, tmp_path):
    assert "Give a path" in said(view(**ON_DISK))
    at = view(**ON_DISK, pairs_path="/nowhere/<b>x")
    assert "no file or folder of pairs" in at.error[0].value.replace("\\", "")
    (tmp_path / "long.csv").write_text(f"{'garden ' * 60},{'house ' * 60}\n")
    at = view(**ON_DISK, pairs_path=str(tmp_path / "long.csv"))
    assert "none of these pairs" in at.error[0].value


def test_large_work_waits_for_a_click_and_is_kept_when_cancelled(own_runs, few, monkeypatch):
    from bertscope.analysis import minimal_pairs
    from bertscope.ui import waiting
    from bertscope.ui.predict import pair_results

    monkeypatch.setattr(pair_results, "EASY", 0)
    monkeypatch.setattr(minimal_pairs, "BLOCK", 1)
    where = {**ON_DISK, "pairs_path": str(few)}
    at = view(**where)
    assert not figures(at) and at.button(key="pairs_score").label.startswith("Score 3 pairs")

    class Cancelled(Exception):
        pass

    real = waiting.kept

    def cancelled(key, compute, name):
        """What a click on Cancel does: the computation ends where it next draws."""
        def progress(message, share):
            if share and share >= 0.6:
                raise Cancelled
        try:
            return compute(progress)
        except Cancelled:
            return None

    monkeypatch.setattr(waiting, "kept", cancelled)
    at.button(key="pairs_score").click().run()
    assert not at.exception, at.exception
    assert "1 of 3 pairs are scored" in said(at) or "2 of 3 pairs are scored" in said(at)
    assert "step 0" not in json.dumps(figures(at)), "nothing more is begun after a cancel"
    monkeypatch.setattr(waiting, "kept", real)
    at = view(**where)
    label = at.button(key="pairs_score").label
    assert label.startswith("Score 1 pairs") or label.startswith("Score 2 pairs")
    at.button(key="pairs_score").click().run()
    assert not at.exception and len(figures(at)[0]["data"]) == 2


# -- the command line -------------------------------------------------------------------------


@pytest.fixture
def command(tiny_root, monkeypatch, capsys):
    monkeypatch.setenv("BERTSCOPE_RUNS", str(tiny_root))

    def run(*arguments):
        status = main(["score", *map(str, arguments)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_the_command_scores_a_sentence(command, scores, tmp_path):
    (expected,) = scores(["she was happy ."], "word_l2r")
    out = tmp_path / "s.csv"
    status, text, _ = command("tiny", "she was happy .", "--variant", "word_l2r", "--output", out)
    assert status == 0 and f"PLL {expected.pll:.4f}" in text
    assert pd.read_csv(out).log_probability.tolist() == pytest.approx(
        expected.log_probabilities.tolist(), abs=1e-5)
    status, text, _ = command("tiny", "she was happy .", "--step", 0)
    assert f"PLL {scores(['she was happy .'], which=0)[0].pll:.4f}" in text


def test_the_command_compares_pairs_over_all_steps(command, few, tiny_run, tmp_path):
    out = tmp_path / "p.csv"
    status, text, _ = command("tiny", "--pairs", few, "--all-steps", "--output", out)
    steps = [c.step for c in tiny_run.checkpoints()]
    assert status == 0 and all(f"step {step:>8,}" in text for step in steps)
    table = pd.read_csv(out)
    assert table.step.unique().tolist() == steps and table.left_out.sum() == len(steps)
    status, text, _ = command("tiny", "--pairs", few, "--most", 1)
    assert status == 0 and "Mean over paradigms" in text and "1 pairs are left out" in text


@pytest.mark.parametrize(("arguments", "why"), [
    (("tiny",), "either a sentence or --pairs"),
    (("tiny", "a", "--pairs", "b"), "either a sentence or --pairs"),
    (("tiny", "a", "--step", "3"), "no checkpoint at step 3"),
    (("none", "a", "--all-steps"), "none"),
    (("tiny", "--pairs", "nowhere"), "no file or folder"),
    (("tiny", "--pairs", "miniworld", "--most", "0"), "at least 1"),
    (("tiny", "the [MASK]"), "a gap")])
def test_the_commands_mistakes_are_one_line(command, arguments, why):
    status, _, text = command(*arguments)
    assert status == 1 and why in text and text.count("\n") == 1


def test_a_first_line_of_unknown_names_is_said_and_can_be_chosen(runs, command, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("right,wrong\nthe garden was big .,the garden were big .\nshe was big .,her was big .\n")
    at = view(**ON_DISK, pairs_path=str(path))
    assert "is taken for the names of the columns" in said(at) and scored(at) == 2
    at = at.segmented_control(key="pairs_first").set_value("a pair").run()
    assert not at.exception and "is taken for a pair" in said(at) and scored(at) == 3
    status, text, _ = command("tiny", "--pairs", path)
    assert status == 0 and "is taken for the names of the columns" in text


def scored(at) -> int:
    """How many pairs the first checkpoint was asked, from the table of numbers."""
    (table,) = (frame.value for frame in at.dataframe if "accuracy" in frame.value)
    return int(table[table.checkpoint == table.checkpoint[0]]["pairs"].sum())
