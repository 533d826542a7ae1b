"""The Probing page: what a view shows is the library's, and what cannot be shown is said in a sentence."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from test_app import address, after_the_first_visit, app, figures, own_runs, runs, said

from bertscope.analysis.probing.protocol import Protocol
from bertscope.analysis.probing.request import Request
from bertscope.analysis.probing.cell import Cell
from bertscope.analysis.probing.sources import open_source
from bertscope.analysis.probing.study import Subject, study
from bertscope.corpus.conllu import write_conllu
from bertscope.corpus.miniworld import gold_sentences
from bertscope.errors import BertScopeError
from bertscope.runs import open_run
from bertscope.ui.probing import data, exports, layers, results, tree_figures
from bertscope.ui.probing.figures import _runs, intervals, onsets, step_ticks, layers as draw_layers

__all__ = ["after_the_first_visit", "own_runs", "runs"]  # fixtures
SIZES = {"max_train": 2000, "max_validation": 1000, "max_test": 2000}  # the page's smallest


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    path = tmp_path_factory.mktemp("gold") / "gold.conllu"
    write_conllu(gold_sentences(40, 3), path)
    return path


def page(treebank, **more):
    at = app("probing", **{"run": "tiny", "gold_from": "on this machine", "gold": str(treebank)} | more)
    assert not at.exception, at.exception
    return at


def asked(path, steps=(40,), task="upos", **protocol):
    """The same question put to the library."""
    saved = {c.step: c for c in open_run("tiny").checkpoints()}
    source = open_source(path)
    return study([Subject(f"tiny · step {s}", saved[s].path, s) for s in steps],
                 [source.items(task)], Protocol(**SIZES, **protocol))


def plain(at) -> str:
    return said(at).replace("\\", "")


def values(trace, axis="y") -> np.ndarray:
    """Numbers of a Plotly trace, which may be packed."""
    found = trace[axis]
    if isinstance(found, dict):
        import base64

        array = np.frombuffer(base64.b64decode(found["bdata"]), found["dtype"])
        return array.reshape([int(n) for n in found["shape"].split(",")]) if "shape" in found else array
    return np.array(found)


def components(at) -> list:
    return [json.loads(c.proto.json) for c in at.get("bidi_component")]


def test_the_curve_its_best_set_and_its_baselines_are_the_librarys(runs, treebank):
    at = page(treebank, step="40")
    found = asked(treebank).summary
    trained, random = (found[found.weights == name] for name in ("trained", "random"))
    (spec,) = figures(at)
    drawn = {trace["name"]: values(trace) for trace in spec["data"]}
    assert drawn["tiny · step 40"] == pytest.approx(trained.accuracy.to_numpy())
    assert drawn["random weights"] == pytest.approx(random.accuracy.to_numpy())
    shaded = [(shape["x0"], shape["x1"]) for shape in spec["layout"]["shapes"]
              if shape["type"] == "rect"]
    best = trained.layer[trained.best].tolist()
    covered = [layer for layer in trained.layer if any(a < layer < b for a, b in shaded)]
    assert covered == best
    first, text = trained.iloc[0], plain(at)
    for name, value in (("layer 0", first.layer_0), ("word identity", first.word_identity),
                        ("majority", first.majority)):
        assert f"{name} {value:.1%}" in text
    assert layers.said(best) in text
    assert "tiny · step 40 · BERT, 2 layers" in text


def test_two_checkpoints_share_one_scale_and_their_difference_is_tested(runs, treebank):
    at = page(treebank, step="40", vs="tiny@0")
    (spec,) = figures(at)
    assert [trace["name"] for trace in spec["data"]] == ["tiny · step 40", "tiny · step 0",
                                                         "random weights"]
    found = asked(treebank, (40, 0)).between_checkpoints("tiny · step 0", "tiny · step 40")
    text = plain(at)
    assert "tiny · step 40 against tiny · step 0" in text
    better = found.layer[found.significant & (found.difference > 0)].tolist()
    worse = found.layer[found.significant & (found.difference < 0)].tolist()
    for name, those in (("better", better), ("worse", worse)):
        assert (f"significantly {name}" in text) == bool(those)
        assert not those or f"significantly {name} in {layers.said(those)}" in text
    assert ("no layer differs" in text) == (not better and not worse)


def test_controls_can_be_chosen_and_an_insignificant_gain_has_no_expected_layer(runs, treebank):
    at = page(treebank, step="40", controls=["description length", "expected layer"],
              probe_value="compression")
    assert not at.error
    found = asked(treebank, control=False, codelength=True, mix=True, random=False)
    spec, mix = figures(at)
    weights, gains = (values(trace) for trace in mix["data"])
    assert weights == pytest.approx(found.mixes.weight.to_numpy()) and weights.sum() == pytest.approx(1)
    assert gains[1:] == pytest.approx(found.mixes.gain[1:].to_numpy())
    single = found.summary[~found.summary["mix"]]
    assert values(spec["data"][0]) == pytest.approx(single.compression.to_numpy())
    centre, text = found.centres.iloc[0], plain(at)
    if pd.isna(centre.expected_layer):
        assert "No expected layer" in text and "Expected layer " not in text
    else:
        assert f"Expected layer {centre.expected_layer:.2f}" in text


def test_mistakes_are_shown_with_their_word_marked_and_never_interpreted(runs, treebank, tmp_path):
    text = treebank.read_text("utf-8")
    (tmp_path / "evil.conllu").write_text(text.replace("\tthe\t", "\t<b>$x$&</b>\t"), "utf-8")
    at = page(tmp_path / "evil.conllu", step="40", view="Errors", probe_layer="1", controls=[""])
    found = asked(tmp_path / "evil.conllu")
    wrong = found.errors("upos", Cell("tiny · step 40", 1))
    (rows,) = components(at)
    assert len(rows) == min(15, len(wrong)) > 0
    items = found.tasks["upos"]
    for row, error in zip(rows, wrong.itertuples()):
        assert row["words"] == list(items.sentences[error.sentence])
        assert row["places"] == list(range(*error.spans[0]))
        assert row["label"] == f"{error.gold} → {error.answered}"
    assert any("<b>$x$&</b>" in row["words"] for row in rows)
    (spec,) = figures(at)
    counts = found.confusion("upos", Cell("tiny · step 40", 1))
    assert len(spec["layout"]["xaxis"]["ticktext"]) == len(set(counts.index) | set(counts.columns))
    assert f"Layer 1 gets {len(wrong):,} of" in plain(at)


def test_the_map_over_the_training_is_the_accuracy_at_each_checkpoint(runs, treebank):
    at = page(treebank, step="40", view="Over training", order="Dependency relation",
              probe_steps="12")
    steps = [c.step for c in open_run("tiny").checkpoints()]
    found = asked(treebank, steps, control=False, random=False)
    spec = figures(at)[0]
    grid = values(spec["data"][0], "z")
    table = found.summary.pivot(index="layer", columns="step", values="accuracy")
    assert grid == pytest.approx(table.to_numpy(float))
    assert spec["data"][0]["x"] == [f"{step:,}" for step in steps]
    onset = found.onsets[found.onsets.chosen].iloc[0]
    text = plain(at)
    assert ("has no onset" in text) == bool(pd.isna(onset.onset))
    if pd.notna(onset.onset):
        assert f"step {onset.onset:,.0f}" in text
    assert address(at)["order"] == "Dependency relation"


def test_what_takes_minutes_waits_for_a_click_and_is_found_again(own_runs, treebank, monkeypatch):
    monkeypatch.setattr(results, "EASY", 0)
    at = page(treebank, step="40")
    assert not figures(at)
    (button,) = [b for b in at.button if b.key.startswith("compute_")]
    button.click().run()
    assert len(figures(at)) == 1
    from bertscope.ui import loaders

    loaders._recent().clear()
    assert len(figures(page(treebank, step="40"))) == 1  # from the disk, without a click


def test_a_live_run_is_probed_at_its_new_checkpoints_only_if_asked(own_runs, treebank, monkeypatch):
    monkeypatch.setattr(results, "EASY", 0)
    at = page(treebank, step="40", view="Over training")
    assert not figures(at)
    at = page(treebank, step="40", view="Over training", probe_live="true")
    assert figures(at)


def test_tasks_side_by_side_leave_out_expected_layers_that_mean_nothing(runs, treebank):
    at = page(treebank, step="40", view="Tasks",
              tasks=["Part of speech (UPOS)", "Dependency relation"])
    assert not figures(at)
    at.button(key=[b.key for b in at.button if b.key.startswith("compute_")][0]).click().run()
    assert not at.exception and not at.error
    text, (table,) = plain(at), at.dataframe
    assert len(table.value) == 2 and set(table.value["task"]) == {"Part of speech (UPOS)",
                                                                "Dependency relation"}
    without = table.value[table.value["expected layer"].isna()]
    for task in without.task:
        assert task in text.split("Without an expected layer")[1]
    (figure,) = figures(at)
    marks = {trace["name"]: values(trace, "x") for trace in figure["data"]}
    assert sorted(marks["centre of gravity"]) == pytest.approx(sorted(table.value["centre of gravity"]))
    assert "checkpoint" not in table.value


def test_trees_are_drawn_over_the_gold_ones(runs, treebank):
    at = page(treebank, step="40", view="Trees", tree_random="false")
    assert not figures(at)
    at.button(key=[b.key for b in at.button if b.key.startswith("compute_")][0]).click().run()
    assert not at.exception and not at.error
    curve, tree = figures(at)
    from bertscope.analysis.probing.kept_trees import structural_kept
    from bertscope.analysis.probing.structural import StructuralConfig, chosen
    from bertscope.analysis.probing.tree_peak import best_layers

    config = StructuralConfig(max_train=300, max_valid=100, max_test=200)
    made, edges = structural_kept(open_run("tiny").checkpoints()[-1].path, open_source(treebank).gold,
                                  config, kept_only=True)
    assert values(curve["data"][0]) == pytest.approx(made.uuas.to_numpy())
    best = int(made.loc[made.uuas.idxmax()].layer)
    plateau = best_layers(edges, chosen(open_source(treebank).gold, config)["test"])
    verb = "are" if len(plateau) > 1 else "is"
    assert best in plateau and f"{layers.said(plateau)} {verb} best" in plain(at)
    own = edges[(edges.layer == best) & (edges.sentence == 0)]
    names = {trace["name"] for trace in tree["data"] if trace["x"]}
    assert ("recovered, not in the gold tree" in names) == bool((~own.gold).any())
    assert f"{int(own.gold.sum())} of " in plain(at)
    assert "structural probe (Hewitt and Manning 2019)" in at.code[0].value
    assert "random weights" not in at.code[0].value
    sizes = {name: len(part) for name, part in chosen(open_source(treebank).gold, config).items()}
    assert (f"{sizes['training']} training, {sizes['validation']} validation and {sizes['test']} test"
            in plain(at))


def test_what_the_model_uses_is_the_amnesic_result(runs, treebank, monkeypatch):
    from bertscope.analysis.probing.amnesic import AmnesicConfig
    from bertscope.analysis.probing.kept_trees import amnesic_kept
    from bertscope.ui.probing import use

    monkeypatch.setitem(use.SIZES, "300", (60, 20, 30))
    at = page(treebank, step="40", view="Use")
    assert not figures(at)  # it takes a minute: it waits for a click
    at.button(key=[b.key for b in at.button if b.key.startswith("compute_")][0]).click().run()
    assert not at.exception and not at.error
    config = AmnesicConfig("leace", max_train=60, max_valid=20, max_test=30)
    table = amnesic_kept(open_run("tiny").checkpoints()[-1].path, open_source(treebank).items("upos"),
                         config, kept_only=True)  # what the page computed and kept
    own = table[table.removed == "task"]
    (figure,) = figures(at)
    drawn = [trace for trace in figure["data"] if trace.get("name") == "tiny · step 40"]
    assert values(drawn[0]) == pytest.approx(own.excess.to_numpy())
    needed = own.layer[own.excess_low > 0].tolist()
    text = plain(at)
    assert (f"costs more than chance in {layers.said(needed)}" if needed else
            "in no layer does removing it cost more") in text
    assert "- Yanai Elazar" in at.code[0].value
    assert f"measured on {int(own.sentences.max())} test sentences" in text
    assert ("rough" in text) == bool(own.sentences.min() < 30)
    assert at.dataframe[0].value["mlm"].tolist() == pytest.approx(table.mlm.tolist())


def test_a_table_asks_its_own_question_and_has_no_trees(runs, tmp_path):
    rows = ["text,label"] + [f"the {a} sees the {b} {i},{'x' if i % 2 else 'y'}"
                             for i, (a, b) in enumerate([("dog", "cat"), ("bird", "king")] * 60)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(rows))
    at = page(path, step="40")
    assert not at.error and figures(at)
    assert "length alone" in plain(at)
    assert "A table has no trees" in plain(page(path, step="40", view="Trees"))
    assert "choose a task about words" in plain(page(path, step="40", view="Use"))
    path.write_text("\n".join(rows + ["only one field"]))
    at = page(path, step="40")
    assert f"line {len(rows) + 1}" in at.error[0].value.replace("\\", "")


def test_nothing_is_asked_of_a_missing_or_a_strange_file(runs, tmp_path):
    at = app("probing", run="tiny", gold_from="on this machine")
    assert not at.exception and "Your own question" in said(at)
    for name, content in (("a.txt", b"no table"), ("b.jsonl", b"{"), ("c.conllu", b"\xff\xfe")):
        (tmp_path / name).write_bytes(content)
        at = page(tmp_path / name)
        assert at.error and not figures(at)
    for view in ("Layers", "Tasks", "Over training", "Errors", "Trees", "Use"):
        assert "How this is computed" in app("probing", run="tiny", gold_from="upload",
                                             view=view).expander[-1].label


def test_a_record_holds_the_question_and_asked_again_it_gives_the_same(runs, treebank, monkeypatch):
    """The exports: the request in a result is what ``bertscope probe`` would be asked."""
    from bertscope.ui.probing import data
    from bertscope.ui.selection import Choice

    run = open_run("tiny")
    choice = Choice("tiny", run, run.checkpoints()[-1])
    source = open_source(treebank)
    monkeypatch.setattr(data, "named", lambda: str(treebank))
    monkeypatch.setattr(results, "opener", lambda look: results.loaders.model(choice) and (
        lambda path: results.loaders.model(choice)))
    asked = SimpleNamespace(protocol=Protocol(**SIZES), seeds=(0,), apart=False)
    found = results._study(None, [choice], [source.items("upos")], asked, None)
    again = Request.from_dict(found.request).answer()
    assert again.scores.accuracy.tolist() == found.scores.accuracy.tolist()
    assert pd.read_parquet(io.BytesIO(exports.parquet(found.summary))).accuracy.tolist() \
        == found.summary.accuracy.tolist()


def test_runs_of_layers_and_their_names():
    assert _runs([4, 1, 2]) == [(1, 2), (4, 4)]
    assert layers.said([3]) == "layer 3"
    assert layers.said([1, 2]) == "layers 1 and 2"
    assert layers.said([0, 1, 2]) == "layers 0 to 2"
    assert layers.said([1, 3, 4]) == "layers 1, 3 and 4"


def test_a_drawn_tree_has_the_arcs_of_both_trees_and_escaped_words(monkeypatch):
    monkeypatch.setattr(tree_figures.theme, "dark", lambda: False)
    figure = tree_figures.trees(["<b>a</b>", "b", "c"], {(0, 1), (1, 2)}, {"here": {(0, 1), (0, 2)}}, 1)
    arcs = {trace.name: sum(x is None for x in trace.x) for trace in figure.data}
    assert arcs == {"gold tree": 2, "recovered": 1, "recovered, not in the gold tree": 1}
    assert [note.text for note in figure.layout.annotations] == ["&lt;b&gt;a&lt;/b&gt;", "<b>b</b>", "c"]
    by_name = {trace.name: trace for trace in figure.data}
    assert by_name["recovered"].x[0] == 0 and by_name["recovered"].x[-2] == 1


def test_a_changed_sibling_is_read_again(tmp_path):
    import os

    for part in ("train", "dev", "test"):
        write_conllu(gold_sentences(3, 3), tmp_path / f"x-{part}.conllu")
    named = str(tmp_path / "x-train.conllu")
    before = data.stamp(named)
    os.utime(tmp_path / "x-test.conllu", (before + 10, before + 10))
    assert data.stamp(named) == before + 10 == data.stamp(str(tmp_path))
    assert data.stamp(str(tmp_path / "nix.conllu")) == data.stamp("\0") == 0


def curve(values) -> pd.DataFrame:
    """A curve without intervals."""
    return pd.DataFrame({"layer": range(len(values)), "value": values, "low": np.nan, "high": np.nan})


def test_no_share_is_above_100_percent_and_losses_have_short_ticks():
    for whole in (True, False):
        figure = draw_layers([("a", "main", "solid", curve([0.86, 0.999]))], [], "accuracy", whole)
        assert 1 < figure.layout.yaxis.range[1] < 1.021  # no room for a tick above 100 %
    figure = draw_layers([("a", "main", "solid", curve([-0.2, 1.1]))], [], "nats", form=".3f")
    assert figure.layout.yaxis.tickformat == ".3~f"


def test_onsets_stand_at_the_logarithm_of_the_step_and_are_named_by_it():
    figure = onsets([("layer 0", 0.0, 0.0, 64.0, "main"), ("layer 1", 300.0, 64.0, 1024.0, "main")], "step")
    assert figure.data[0].x == pytest.approx(np.log1p([0, 300]))
    assert figure.data[0].error_x.arrayminus == pytest.approx(np.log1p([0, 300]) - np.log1p([0, 64]))
    assert figure.layout.xaxis.ticktext == ("0", "1", "10", "100", "1,000")
    assert figure.layout.xaxis.tickvals == pytest.approx(np.log1p([0, 1, 10, 100, 1000]))
    assert step_ticks(64, 1024) == [100, 200, 500, 1000] and step_ticks(61, 63.7) == [61]


def test_centres_of_gravity_stand_beside_the_expected_layers():
    rows = [("a", 1.0, 0.8, 1.2, "main"), ("b", np.nan, np.nan, np.nan, "main"),
            ("a", 0.5, 0.4, 0.6, "other"), ("b", 0.7, 0.4, 0.6, "other")]
    figure = intervals(rows, "layer", beside=[("a", 0.9, "main"), ("b", 0.3, "main")],
                       called={"main": ("here", "here, too"), "other": ("there", "there, too")})
    assert [(trace.name, trace.showlegend is not False) for trace in figure.data] == [
        ("here", True), ("here, too", True), ("there", True)]
    assert figure.data[1].x == (0.9, 0.3) and figure.data[1].y == (-0.12, 0.88)


def test_a_loss_is_not_called_an_insignificant_gain():
    assert layers.no_gain(SimpleNamespace(gain=-0.05, p=0.001)) == "-5.0%, no significant gain"
    assert layers.no_gain(SimpleNamespace(gain=0.01, p=0.4)) == "+1.0%, no significant gain (p = 0.40)"


def test_baselines_at_one_height_share_one_label():
    table = pd.DataFrame({"layer": [0, 1], "value": [0.4, 0.6], "low": [0.3, 0.5], "high": [0.5, 0.7]})
    figure = draw_layers([("a", "main", "solid", table)],
                         [("layer 0", 0.4), ("word identity", 0.5), ("majority", 0.5)], "accuracy")
    written = [note.text for note in figure.layout.annotations]
    assert written == ["layer 0 40.0%", "word identity, majority 50.0%"]


def test_names_of_baselines_that_are_near_do_not_cover_each_other():
    figure = draw_layers([("a", "main", "solid", curve([0.3, 0.9]))],
                         [("low", 0.5), ("middle", 0.51), ("high", 0.52), ("alone", 0.7)], "accuracy")
    placed = {note.text.split()[0]: (note.xanchor, note.yanchor) for note in figure.layout.annotations}
    assert placed == {"alone": ("right", "bottom"), "high": ("right", "bottom"), "middle": ("right", "top"),
                      "low": ("left", "bottom")}


def test_an_uploaded_tables_question_is_called_after_it():
    rows = "text,label\n" + "".join(f"word {i},{'ab'[i % 2]}\n" for i in range(60))
    found = data.uploaded("a/my <b>reviews$.csv", rows.encode())
    assert found.name == "my <b>reviews$.csv" and found.items().title == "my _b_reviews_"
    with pytest.raises(BertScopeError, match="^There is no row in reviews"):
        data.uploaded("reviews.csv", b"text,label\n")
