"""Tasks, checkpoints and seeds together: kept, resumed, compared, written, done again."""

import ast
import dataclasses
import json
import re
import shutil
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bertscope.analysis import probing
from bertscope.analysis.activations import load
from bertscope.analysis.cache import analysis_folder
from bertscope.analysis.probing import Cell, Protocol, Subject
from bertscope.analysis.probing.items import PARTS, Items
from bertscope.analysis.probing.methods import methods
from bertscope.analysis.probing.report import latex, rows, save, tex
from bertscope.analysis.probing.request import Request, reproduce
from bertscope.analysis.probing.result import Result
from bertscope.analysis.probing.study import study
from bertscope.analysis.probing.tasks import items
from bertscope.analysis.probing.unit import Unit
from bertscope.cli import main
from bertscope.corpus.conllu import write_conllu
from bertscope.corpus.miniworld import gold_sentences
from bertscope.errors import BertScopeError
from bertscope.commands.probe import show
from bertscope.runs import open_run
from probe_stand_ins import gold_of

PROTOCOL = Protocol(max_train=300, max_validation=100, max_test=200)


@pytest.fixture(scope="module")
def gold():
    return gold_of(list(gold_sentences(40, 5)))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Annotated sentences in a file."""
    path = tmp_path_factory.mktemp("tree") / "tree.conllu"
    write_conllu(gold_sentences(30, 5), path)
    return str(path)


@pytest.fixture
def own_root(tiny_root, tmp_path, monkeypatch):
    """A copy of the trained run ``tiny`` that a test may write to."""
    root = tmp_path / "runs"
    shutil.copytree(tiny_root, root)
    shutil.rmtree(root / "tiny" / "analysis", ignore_errors=True)
    monkeypatch.setenv("BERTSCOPE_RUNS", str(root))
    return root


# -- a study ------------------------------------------------------------------------------------


def test_every_task_checkpoint_seed_and_layer_has_its_row(own_root, gold):
    saved = open_run("tiny").checkpoints()[-2:]
    tasks = [items(gold, "upos"), items(gold, "feat:Number")]
    found = study(saved, tasks, PROTOCOL, (0, 1))
    assert found.checkpoints == [f"tiny@{c.step}" for c in saved]
    counts = found.scores.groupby(["task", "weights"]).size().to_dict()
    # two checkpoints and one set of random weights, two seeds, three layers
    assert counts == {(t, w): n for t in ("upos", "feat:Number")
                      for w, n in (("trained", 12), ("random", 6))}
    assert found.scores["step"].dropna().unique().tolist() == [c.step for c in saved]
    assert found.random_for(found.checkpoints[0]) == found.random_for(found.checkpoints[1]) is not None
    means = found.scores.groupby(["task", "checkpoint", "layer"])["accuracy"].mean()
    for row in found.summary.itertuples():
        assert row.accuracy == pytest.approx(means[row.task, row.checkpoint, row.layer], abs=1e-9)
        assert row.low <= row.accuracy <= row.high
        if row.weights == "trained":
            assert row.random == pytest.approx(means[row.task, "random weights", row.layer])
    best = found.summary.groupby(["task", "checkpoint"])["best"].sum()
    assert (best >= 1).all()


def test_a_second_call_opens_no_model_and_a_changed_question_does(own_root, gold):
    opened = []

    def open_model(path):
        opened.append(str(path))
        return load(path)

    tasks, saved = [items(gold, "upos")], open_run("tiny").checkpoints()[-1:]
    first = study(saved, tasks, PROTOCOL, open_model=open_model)
    assert len(opened) == 1
    again = study(saved, tasks, PROTOCOL, open_model=open_model)
    assert len(opened) == 1 and again.scores.equals(first.scores)
    bare = dataclasses.replace(PROTOCOL, random=False)
    before = len(opened)
    study(saved, tasks, dataclasses.replace(bare, max_train=200), open_model=open_model)
    study(saved, tasks, bare, seeds=(3,), open_model=open_model)
    assert len(opened) == before + 2


def test_interrupted_it_goes_on_with_what_is_missing(own_root, gold, monkeypatch):
    class Cancelled(Exception):
        pass

    def cancel(message, share):
        if share > 0.6:
            raise Cancelled

    tasks = [items(gold, "upos"), items(gold, "feat:Number")]
    saved = open_run("tiny").checkpoints()[-2:]
    protocol = dataclasses.replace(PROTOCOL, random=False)
    with pytest.raises(Cancelled):
        study(saved, tasks, protocol, progress=cancel)
    done = sorted(analysis_folder(saved[0].path).glob("probe_scores-*.parquet"))
    assert len(done) == 2
    stamps = [path.stat().st_mtime_ns for path in done]
    seen = []
    whole = study(saved, tasks, protocol, progress=lambda message, share: seen.append(share))
    assert [path.stat().st_mtime_ns for path in done] == stamps
    assert len(whole.scores) == 12 and seen == sorted(seen) and seen[-1] == 1


def test_a_damaged_result_is_computed_again(own_root, gold):
    saved, tasks = open_run("tiny").checkpoints()[-1:], [items(gold, "upos")]
    protocol = dataclasses.replace(PROTOCOL, random=False)
    before = study(saved, tasks, protocol).scores
    for path in analysis_folder(saved[0].path).glob("probe_answers-*.parquet"):
        path.write_bytes(b"")
    assert study(saved, tasks, protocol).scores.equals(before)


def test_impossible_questions_are_refused(own_root, gold):
    saved, tasks = open_run("tiny").checkpoints()[-1:], [items(gold, "upos")]
    for change, sentence in (({"checkpoints": []}, "at least one checkpoint"),
                             ({"tasks": []}, "at least one task"), ({"seeds": ()}, "one seed"),
                             ({"seeds": (1, 1)}, "different"), ({"seeds": (-1,)}, "from 0 on"),
                             ({"checkpoints": saved * 2}, "named twice"),
                             ({"tasks": tasks * 2}, "named twice"),
                             ({"protocol": Protocol(layers=(7,))}, "no layer 7")):
        with pytest.raises(BertScopeError, match=sentence):
            study(**{"checkpoints": saved, "tasks": tasks, "protocol": PROTOCOL} | change)


def test_subjects_are_named_as_they_were_asked_for(own_root):
    newest = open_run("tiny").checkpoints()[-1]
    assert Subject.of("tiny") == Subject(f"tiny@{newest.step}", newest.path, newest.step)
    assert Subject.of("tiny@0").step == 0
    assert Subject.of(newest) == Subject.of("tiny") == Subject.of(Subject.of("tiny"))


# -- what may be said of it ---------------------------------------------------------------------


def made_up(accuracies: dict[str, list[float]], steps=None, items_=400, seeds=(0,), mix=()) -> Result:
    """A result whose layers of each checkpoint are right so often; ``mix`` scores of mixes."""
    lot = (np.random.default_rng(0).permutation(items_) + 0.5) / items_
    shares = [0.1, 0.2, 0.3, 0.4]
    task = Items("t", "A task", "word", [["a"]] * items_, np.arange(items_), [[[0, 1]]] * items_,
                 ["X"] * items_, ["test"] * items_)
    found = Result(Protocol(mix=bool(mix)), seeds, {"t": task})
    for number, (name, layers) in enumerate(accuracies.items()):
        for seed in seeds:
            columns = {f"layer_{layer}": np.where(lot < share, "X", "Y")
                       for layer, share in enumerate(layers)}
            columns |= {f"mix_{layer}": np.where(lot < share, "X", "Y")
                        for layer, share in enumerate(mix)}
            answers = pd.DataFrame({"item": range(items_), "sentence": range(items_), "type": "a",
                                    "seen": True, "gold": "X", **columns})
            scores = pd.DataFrame([
                {"mix": kind == "mix", "layer": int(layer), "accuracy": (said == "X").mean(),
                 "valid_accuracy": (said == "X").mean(), "centre": 1.5, "bits_from_uniform": 0.1,
                 "majority": 0.5, **({f"share_{n}": share for n, share in enumerate(shares)} if mix else {})}
                for key, said in columns.items() for kind, layer in [key.split("_")]])
            weights = "random" if name == "random weights" else "trained"
            found.add(name, steps[number] if steps else None, weights, "same", ("t", seed),
                      Unit(scores, answers))
    return found


def test_the_best_set_and_random_weights():
    found = made_up({"a": [0.6, 0.898, 0.9, 0.7], "random weights": [0.6, 0.55, 0.5, 0.5]})
    table = found.summary[found.summary["weights"] == "trained"].set_index("layer")
    assert table["best"].tolist() == [False, True, True, False]
    assert table["random"].tolist() == pytest.approx([0.6, 0.55, 0.5, 0.5], abs=0.05)
    assert table["above_random_p"][0] == 1 and table["above_random_p"][2] < 0.01
    assert (table["layer_0"] == table["accuracy"][0]).all()


def test_of_four_test_sentences_no_interval_and_no_best_layer():
    found = made_up({"a": [0.2, 0.9], "b": [0.4, 0.6]}, items_=4)
    table = found.summary
    assert table["low"].isna().all() and table["best"].all()
    assert not found.between_checkpoints("a", "b")["significant"].any()
    assert "nan" not in latex(found)


def test_of_few_test_sentences_it_is_said_that_intervals_are_rough(capsys):
    for sentences, said in ((4, "4 test sentences are too few"), (20, "Of 20 test sentences"), (40, "")):
        found = made_up({"a": [0.2, 0.9]}, items_=sentences)
        sizes = [f"{unit}_{part}" for unit in ("items", "sentences") for part in PARTS]
        found.scores[[*sizes, "classes", "without_vector"]] = sentences
        found.scores[["word_identity", "length_only"]] = np.nan
        show(found)
        for text in (capsys.readouterr().out, methods(found)):
            assert said in text and ("rough" in text or "too few" in text) == bool(said)


def test_two_checkpoints_are_compared_layer_by_layer():
    found = made_up({"a": [0.6, 0.8], "b": [0.6, 0.9]})
    table = found.between_checkpoints("a", "b").set_index("layer")
    assert table["difference"].tolist() == pytest.approx([0, 0.1], abs=0.03)
    assert table["significant"].tolist() == [False, True] and table["p"][0] == 1
    assert found.between("t", Cell("b", 1), Cell("a", 1))["difference"] < 0


def test_onsets_over_the_steps():
    found = made_up({"s0": [0.5, 0.2], "s10": [0.5, 0.2], "s100": [0.5, 0.8], "s1000": [0.5, 0.9]},
                    [0, 10, 100, 1000])
    table = found.onsets.set_index("layer")
    assert 10 == table["low"][1] < table["onset"][1] < table["high"][1] == 100
    assert np.isnan(table["onset"][0]) and table["chosen"].tolist() == [True, False]
    assert made_up({"s0": [0.5]}, [0]).onsets.empty


def test_the_expected_layer_is_hidden_where_nothing_is_gained():
    gained = made_up({"a": [0.5] * 4}, mix=[0.5, 0.9, 0.9, 0.9]).centres.iloc[0]
    assert gained["expected_layer"] == 1 == gained["low"] and gained["centre"] == 1.5
    parts = made_up({"a": [0.5] * 4}, mix=[0.5, 0.9, 0.8, 0.8]).mixes.set_index("layer")
    assert parts["weight"].tolist() == [0.1, 0.2, 0.3, 0.4] and np.isnan(parts["gain"][0])
    assert parts["gain"][1:].tolist() == pytest.approx([0.4, -0.1, 0])
    assert 0.3 < parts["gain_low"][1] < 0.4 < parts["gain_high"][1] < 0.5 and parts["gain_high"][2] < 0
    assert made_up({"a": [0.5]}).mixes.empty
    flat = made_up({"a": [0.5] * 4}, mix=[0.5, 0.51, 0.49, 0.505]).centres.iloc[0]
    assert np.isnan(flat["expected_layer"]) and flat["p"] > 0.05


def test_checkpoints_are_compared_on_the_items_that_both_have():
    found = made_up({"a": [0.9], "b": [0.5]})
    answers = found.answers("t", "b")
    found._answers["b", "t", 0] = answers[answers["item"] % 2 == 0]
    correct, sentence = found.correct("t", [Cell("a", 0), Cell("b", 0)])
    assert correct.shape == (2, 1, 200) and (sentence % 2 == 0).all()
    found._answers["b", "t", 0] = answers[:0]
    with pytest.raises(BertScopeError, match="in common"):
        found.correct("t", [Cell("a", 0)])


def test_confusions_and_errors_are_of_the_answers(own_root, gold):
    found = study(open_run("tiny").checkpoints()[-1:], [items(gold, "upos")],
                  dataclasses.replace(PROTOCOL, random=False), (0, 1))
    cell = Cell(found.checkpoints[0], 1)
    table = found.confusion("upos", cell)
    answers = [found.answers("upos", cell.checkpoint, seed) for seed in (0, 1)]
    assert table.to_numpy().sum() == sum(map(len, answers))
    right = sum((a["gold"] == a["layer_1"]).sum() for a in answers)
    assert sum(table.loc[label, label] for label in table.index if label in table.columns) == right
    errors, task = found.errors("upos", cell), found.tasks["upos"]
    assert len(errors) == (answers[0]["gold"] != answers[0]["layer_1"]).sum()
    for row in errors.itertuples():
        (start, end), = row.spans
        assert task.sentences[row.sentence][start:end] == [task.types[row.item]]
        assert task.labels[row.item] == row.gold != row.answered
    with pytest.raises(BertScopeError, match="no result for upos on nothing"):
        found.answers("upos", "nothing")


def test_the_notebooks_lines_in_the_documentation_are_true(own_root, tmp_path, tree):
    text = (Path(__file__).parents[1] / "docs" / "probing.md").read_text("utf-8")
    lines = re.search(r"From Python, the same:\n\n((?:    .*\n|\n)+)", text)[1]
    for asked, here in (('"demo"', '"tiny"'), ("en_ewt/", tree), ("demo@6000", "tiny@40"),
                        ('"upos/"', repr(str(tmp_path / "upos")))):
        assert asked in lines
        lines = lines.replace(asked, here)
    names: dict = {}
    exec(textwrap.dedent(lines), names)  # our own documentation, run as a reader would
    result = names["result"]
    for column in ("accuracy", "low", "selectivity", "codelength", "word_identity", "random", "best"):
        assert result.summary[column][result.summary["weights"] == "trained"].notna().all()
    assert (tmp_path / "upos" / "probing.json").is_file() and len(result.seeds) == 3


# -- files --------------------------------------------------------------------------------------


def test_all_files_of_a_result(own_root, tmp_path, tree):
    found = probing.probe("tiny", tree, ["feat:Number"], (0, 1), random=False, codelength=True,
                          max_train=200, max_validation=100, max_test=200)
    written = save(found, tmp_path / "out")
    assert sorted(path.name for path in written) == sorted(p.name for p in (tmp_path / "out").iterdir())
    parquet = pd.read_parquet(tmp_path / "out" / "scores.parquet")
    assert parquet["accuracy"].tolist() == found.scores["accuracy"].tolist()
    csv = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert csv["codelength"].tolist() == pytest.approx(found.scores["codelength"].tolist())
    kept = json.loads((tmp_path / "out" / "probing.json").read_text())
    assert kept["scores"][0]["accuracy"] == parquet["accuracy"][0]
    assert kept["request"]["data"] == tree and kept["seeds"] == [0, 1]
    assert kept["checkpoints"][0]["fingerprint"] == load(found.paths[found.checkpoints[0]]).fingerprint
    assert {"torch", "transformers", "bertscope"} <= set(kept["versions"])
    assert kept["tasks"][0]["provenance"]["source"] == "tree"
    save(found, tmp_path / "one.tex")
    assert (tmp_path / "one.tex").read_text() == latex(found)
    with pytest.raises(BertScopeError, match=".xls"):
        save(found, tmp_path / "one.xls")
    with pytest.raises(BertScopeError, match="cannot be written"):
        save(found, tmp_path / "no" / "where" / "one.csv")


def test_a_record_is_enough_to_do_it_again(own_root, tmp_path):
    """Also where nothing is kept any more; what has changed is told."""
    tree = tmp_path / "tree.conllu"
    write_conllu(gold_sentences(30, 5), tree)
    question = Request(("tiny",), str(tree), ("upos",), Protocol(max_train=200, max_test=200), (1,),
                       split_seed=2)
    save(question.answer(), tmp_path / "r.json")
    shutil.rmtree(own_root / "tiny" / "analysis")
    found, notes = reproduce(tmp_path / "r.json")
    assert notes == [] and found.seeds == (1,) and found.protocol.max_train == 200
    _damaged_records_are_refused(tmp_path / "r.json")
    write_conllu(gold_sentences(31, 5), tree)
    assert reproduce(tmp_path / "r.json")[1][0] == "The task upos is not what it was."


def _damaged_records_are_refused(path):
    whole = json.loads(path.read_text("utf-8"))
    cut = [{key: value for key, value in whole.items() if key != name}
           for name in ("scores", "tasks", "checkpoints")]
    odd = [{**whole, "scores": 5}, {**whole, "tasks": [5]}, {**whole, "checkpoints": [{"name": "a"}]}]
    odd += [{**whole, "request": {**whole["request"], name: value}} for name, value in (
        ("seeds", ["a"]), ("seeds", [1.5]), ("tasks", [[1]]), ("data", None), ("split_seed", "x"))]
    for record in cut + odd:
        path.with_name("damaged.json").write_text(json.dumps(record))
        with pytest.raises(BertScopeError, match="record of a probing"):
            reproduce(path.with_name("damaged.json"))
    path.with_name("old.json").write_text(json.dumps({**whole, "versions": None}))
    assert reproduce(path.with_name("old.json"))[1] == []


def test_one_task_may_be_given_by_its_name_alone(own_root, tree):
    found = probing.probe("tiny", tree, "upos", max_train=150, max_validation=100, max_test=100,
                          layers=[0], random=False)
    assert list(found.tasks) == ["upos"]


def test_where_nothing_can_be_written_nothing_is_computed(own_root, capsys, tree, tmp_path):
    for place in ("result.xls", "no/where/result.csv"):
        assert main(["probe", "tiny", "--data", tree, *SMALL, "--output", str(tmp_path / place)]) == 1
        said = capsys.readouterr()
        assert "written" in said.err and not said.out


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"request": null}', '{"request": {"magic": 1}}',
                                  '{"request": {"protocol": {}, "checkpoints": 3}}'])
def test_what_is_no_record_is_refused(tmp_path, text):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(BertScopeError, match="no record"):
        reproduce(tmp_path / "r.json")


def test_json_has_no_numbers_that_are_none():
    table = pd.DataFrame({"a": [np.nan, np.inf, 0.5], "b": pd.array([1, None, 3], dtype="Int64")})
    assert rows(table) == [{"a": None, "b": 1}, {"a": None, "b": None}, {"a": 0.5, "b": 3}]


def test_a_latex_table_marks_the_best_set():
    found = made_up({"a_b": [0.6, 0.9], "random weights": [0.5, 0.5]})
    lines = latex(found).splitlines()
    assert lines[0].startswith("% a_b;") and lines[1] == r"\begin{tabular}{lrr}"
    assert lines[3].endswith(r"\multicolumn{2}{c}{A task} \\")
    body = [line for line in lines if line[:1].isdigit()]
    assert len(body) == 2 and r"\textbf" not in body[0] and r"\textbf{" in body[1]
    accuracy = found.summary.iloc[1]["accuracy"]
    assert f"{100 * accuracy:.1f}" in body[1] and "Majority & 50.0" in "\n".join(lines)
    assert all(line.count("&") == 2 for line in body)
    with pytest.raises(BertScopeError, match="c was not probed"):
        latex(found, "c")


def test_nothing_in_a_title_has_a_meaning_for_latex():
    assert tex("50 % of_{x}\n\\input & $1 ~^#") == (
        r"50 \% of\_\{x\} \textbackslash{}input \& \$1 \textasciitilde{}\textasciicircum{}\#")


def test_the_methods_paragraph_says_what_was_done_and_nothing_else(own_root, tree):
    plain = probing.probe("tiny", tree, ["upos"], max_train=200, max_validation=100, max_test=100,
                          control=False, random=False)
    said = methods(plain)
    row = plain.scores.iloc[0]
    assert f"{row['items_train']} training" in said and "13 labels" in said
    for absent in ("Selectivity", "Codelength", "centre of gravity", "random weights,", "masked",
                   "Hewitt", "Voita", "Sellam"):
        assert absent not in said
    rich = probing.probe("tiny", tree, ["upos"], (0, 1), max_train=100, max_validation=50, max_test=50,
                         codelength=True, mix=True, hide=True, word="first")
    said = methods(rich)
    for there in ("Selectivity", "Voita and Titov 2020", "centre of gravity", "random weights",
                  "are masked", "2 seeds", "its first word piece", "Sellam et al. 2022. ",
                  "Tenney, Dipanjan Das"):
        assert there in said


# -- the command --------------------------------------------------------------------------------

SMALL = ["--max-train", "150", "--max-validation", "100", "--max-test", "100"]


def test_the_command_prints_and_writes(own_root, tmp_path, capsys, tree):
    assert main(["probe", "tiny", "--data", tree, "--task", "upos", "--control", "--mdl", *SMALL, "--output",
                 str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "Part of speech (UPOS) (upos)" in said and "majority" in said
    for head in ("selectivity", "bits", "compression", "random", "new words"):
        assert head in said
    table = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert f"{table['accuracy'][1]:.3f}" in said
    assert main(["probe", "--reproduce", str(tmp_path / "out" / "probing.json")]) == 0
    assert "Everything is as in the record." in capsys.readouterr().out


def test_two_checkpoints_and_a_mix_on_the_command_line(own_root, capsys, tree, tmp_path):
    assert main(["probe", "tiny@0", "tiny", "--data", tree, "--mix", "--no-baselines", *SMALL, "--output",
                 str(tmp_path)]) == 0
    mixes = pd.read_csv(tmp_path / "mix.csv")
    assert mixes.groupby("checkpoint")["weight"].sum().tolist() == pytest.approx([1, 1])
    said = capsys.readouterr().out
    first = " ".join(f"{weight:.2f}" for weight in mixes["weight"][:mixes["layer"].nunique()])
    assert f"weights {first}" in said
    assert "tiny@40 against tiny@0" in said and "layers 0 to" in said and "Expected layer" in said
    assert "random" not in said


def test_all_steps_on_the_command_line(own_root, capsys, tree):
    assert main(["probe", "tiny", "--data", tree, "--all-steps", "--layers", "0,2", "--no-baselines", *SMALL]) == 0
    said = capsys.readouterr().out
    steps = [c.step for c in open_run("tiny").checkpoints()]
    assert all(f"tiny@{step} " in said for step in steps) and "layer  2" in said
    assert "layer  1" not in said and "Half of the whole gain is reached" in said


def imported(path: Path) -> set[str]:
    """Modules of probing that one of them names, be it for type checkers only."""
    found = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)
             and (node.module or "").startswith(probing.__name__)]
    return {name for node in found for name in (node.module.split(".")[3:4] or [a.name for a in node.names])}


def test_no_module_of_probing_needs_one_that_needs_it():
    """What is understood only together is one module."""
    left = {path.stem: imported(path) for path in Path(probing.__file__).parent.glob("*.py")}
    assert {"result_tables", "measured"} <= left["result"]
    while ready := [name for name, needs in left.items() if not needs & set(left)]:
        for name in ready:
            del left[name]
    assert not left


def test_the_tasks_of_some_data(capsys, tree):
    assert main(["probe", "--tasks", "--data", tree]) == 0
    said = capsys.readouterr().out
    assert "upos" in said and "sent:depth" in said and "pair:coref" in said


@pytest.mark.parametrize("arguments, sentence", [
    ([], "Name a run"), (["tiny", "--seeds", "0"], "--seeds"), (["tiny", "--layers", "a"], "like 0-3,6"),
    (["tiny", "--layers", "5-2"], "like 0-3,6"),
    (["tiny", "--layers", "9"], "no layer 9"), (["tiny", "--task", "nothing"], "no task"),
    (["tiny", "--step", "1", "--all-steps"], "either"),
    (["tiny", "--step", "7"], "no checkpoint at step"),
    (["nobody", "--all-steps"], "no run called"), (["tiny", "--data", "nowhere"], "nowhere"),
    (["tiny", "--layers", "0", "--mix"], "leave out")])
def test_wrong_arguments_are_one_line(own_root, capsys, tree, arguments, sentence):
    assert main(["probe", *([] if "--data" in arguments else ["--data", tree]), *arguments]) == 1
    said = capsys.readouterr().err
    assert sentence in said and said.startswith("bertscope: ") and said.count("\n") == 1


def test_trees_and_what_is_used_on_the_command_line(own_root, tmp_path, capsys, tree):
    from bertscope.analysis.probing.amnesic import AmnesicConfig
    from bertscope.analysis.probing.kept_trees import amnesic_kept, structural_kept
    from bertscope.analysis.probing.sources import open_source
    from bertscope.analysis.probing.structural import StructuralConfig

    sizes = ["--max-train", "20", "--max-validation", "10", "--max-test", "10"]
    asked = ["probe", "tiny", "--data", tree, *sizes, "--output"]
    assert main([*asked, str(tmp_path / "out"), "--trees"]) == 0
    said = capsys.readouterr().out
    table = pd.read_csv(tmp_path / "out" / "trees.csv")
    words = (tmp_path / "out" / "methods.md").read_text("utf-8")
    assert "20 training sentences" in words and "random weights" in words and "at most 2000 epochs" in words
    assert "- John Hewitt and Christopher D. Manning. 2019." in words and "Elazar" not in words
    layers, _ = structural_kept(open_run("tiny").checkpoints()[-1].path, open_source(tree).gold,
                                StructuralConfig(max_train=20, max_valid=10, max_test=10), kept_only=True)
    trained = table[~table["checkpoint"].str.contains("random")]
    assert trained["uuas"].tolist() == pytest.approx(layers["uuas"].tolist())
    assert len(table) == 2 * len(layers) and table["best"].any() and f"{trained['uuas'][1]:.3f}" in said
    assert main([*asked, str(tmp_path / "used.csv"), "--amnesic", "--task", "upos"]) == 0
    said = capsys.readouterr().out
    assert "excess" in said and "Of 10 test sentences the intervals are rough" in said
    assert main([*asked, str(tmp_path / "used.md"), "--amnesic", "--task", "upos"]) == 0
    words = (tmp_path / "used.md").read_text("utf-8")
    assert "Part of speech (UPOS)" in words and "LEACE (Belrose et al. 2023)" in words
    assert "at most 20 training and 10 validation" in words and "- Yanai Elazar" in words
    small = AmnesicConfig(max_train=20, max_valid=10, max_test=10)
    kept = amnesic_kept(open_run("tiny").checkpoints()[-1].path, open_source(tree).items("upos"), small,
                        kept_only=True)
    assert kept is not None, "the sizes were not obeyed"
    used = pd.read_csv(tmp_path / "used.csv")
    assert (used["removed"] == "task").all() and len(used) == len(layers)
    assert (used["excess_low"] <= used["excess"]).all()
    table_file = tmp_path / "t.csv"
    table_file.write_text("text,label\n" + "".join(f"w{i} x,{i % 2}\n" for i in range(60)))
    for arguments, sentence in (["--trees", "--data", str(table_file)], "no trees"), (
            ["--trees", "--output", "x.json"], ".parquet"), (
            ["--trees", "--layers", "0"], "--layers is about a task's probe"), (
            ["--trees", "--task", "upos"], "--task is about"), (
            ["--amnesic", "--no-baselines"], "--no-baselines is about"), (
            ["--amnesic", "--mdl"], "--mdl is about"), (
            ["--amnesic", "--task", "upos", "--task", "xpos"], "one task at a time"):
        assert main(["probe", "tiny", *arguments]) == 1
        assert sentence in capsys.readouterr().err
