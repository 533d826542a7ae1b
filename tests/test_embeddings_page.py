"""The Embeddings page: five views, any text, any checkpoint."""

import base64
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tiny_models
import transformers
from bertscope.runs import open_run
from bertscope.ui.embeddings import figures
from test_app import address, after_the_first_visit, app, figures as drawn, own_runs, runs, said
from test_browser import CHROMIUM, chromium, server, visit

__all__ = ["after_the_first_visit", "chromium", "own_runs", "runs", "server", "visit"]  # fixtures
MEAN = "mean of pieces"
HOSTILE = "<img src=x onerror=alert(1)> </script> **b** $x$"


def fine(at):
    assert not at.exception, at.exception[0].message
    assert not at.error, at.error[0].value
    return at


def plain(at) -> str:
    return said(at).replace("\\", "")


def array(values) -> np.ndarray:
    """Numbers of a Plotly specification, which may be packed."""
    if isinstance(values, dict):
        flat = np.frombuffer(base64.b64decode(values["bdata"]), np.dtype(values["dtype"]))
        return flat.reshape([int(n) for n in str(values.get("shape", flat.size)).split(",")])
    return np.array(values, float)


def points(spec) -> np.ndarray:
    """The points of a map in the order of their numbers, [N, 2 or 3]."""
    found = {}
    for trace in spec["data"]:
        if trace["mode"] == "markers" and "line" not in trace.get("marker", {}):
            columns = [array(trace[axis]) for axis in "xyz" if axis in trace]
            found.update(zip(array(trace["customdata"]).astype(int).tolist(), zip(*columns)))
    return np.array([found[number] for number in sorted(found)])


def reset() -> None:
    """The results that the server keeps for all visitors."""
    from bertscope.ui import loaders

    loaders._recent().clear()


def paste(at, text: str):
    at.segmented_control(key="texts_from").set_value("texts of my own").run()
    at.text_area(key="pasted").set_value(text).run()
    return fine(at)


# -- the map ----------------------------------------------------------------------------------


def test_the_map_is_the_librarys_and_says_what_it_holds(runs, tiny_run):
    from bertscope.analysis.activations import load, pool
    from bertscope.analysis.embeddings import project
    from bertscope.analysis.gallery import labelled_texts

    at = fine(app("embeddings", run="tiny", pooling=MEAN, layer="1", texts_limit="60"))
    texts = list(labelled_texts("miniworld", 60)["text"])
    vectors = pool(load(tiny_run.checkpoints()[-1].path), texts, 1, "mean")
    expected = project(vectors)
    (spec,) = drawn(at)
    np.testing.assert_allclose(np.abs(points(spec)), np.abs(expected.coordinates), atol=1e-3)
    assert f"trustworthiness {expected.trustworthiness:.2f}" in plain(at)
    assert f"{expected.explained[0]:.0%} of the variance" in spec["layout"]["xaxis"]["title"]["text"]
    assert f"holds {sum(expected.explained):.0%}" in plain(at)


def test_raw_cls_has_a_banner_and_the_mean_has_none(runs):
    assert "[CLS] is no sentence vector" in plain(fine(app("embeddings", run="tiny", texts_limit="20")))
    assert "[CLS] is no sentence" not in plain(fine(app("embeddings", run="tiny", pooling=MEAN,
                                                        texts_limit="20")))


def test_search_rings_the_texts_and_lists_them(runs):
    from bertscope.analysis.gallery import labelled_texts

    texts = labelled_texts("miniworld", 300)["text"]
    word = next(w for w in texts[0].split() if len(w) > 6)
    hits = texts.str.contains(word, case=False, regex=False)
    at = fine(app("embeddings", run="tiny", pooling=MEAN, search=word.upper()))
    ring = drawn(at)[0]["data"][-1]
    assert ring["name"] == f"found ({hits.sum()})" and ring["marker"]["symbol"] == "circle-open"
    assert set(array(ring["customdata"]).astype(int)) == set(np.flatnonzero(hits))
    assert f"{hits.sum()} texts gathered" in plain(at)
    assert list(at.dataframe[0].value["text"]) == list(texts[hits])
    at = fine(app("embeddings", run="tiny", search="zzzz<b>"))
    assert "No text holds “zzzz<b>”" in plain(at)


def test_the_point_in_the_address_has_its_nearest_in_all_dimensions(runs, tiny_run):
    from bertscope.analysis.activations import load, pool
    from bertscope.analysis.embeddings import neighbours
    from bertscope.analysis.gallery import labelled_texts

    at = fine(app("embeddings", run="tiny", pooling=MEAN, point="7"))
    texts = list(labelled_texts("miniworld", 300)["text"])
    expected = neighbours(pool(load(tiny_run.checkpoints()[-1].path), texts, 2, "mean"), 7, 8)
    shown = at.dataframe[0].value
    assert list(shown["text"]) == [texts[i] for i, _ in expected]
    np.testing.assert_allclose(shown["cosine"], [c for _, c in expected], atol=1e-5)
    assert "also among the 8 nearest on the map" in plain(at)
    at.button(key="clear_point").click().run()
    assert not fine(at).dataframe
    for bad in ("-1", "99999", "1e3", "٣", "9" * 5000):
        assert not fine(app("embeddings", run="tiny", point=bad, texts_limit="20")).dataframe


@pytest.mark.parametrize("pooling, more", [("a word", {"word": "the"}), ("a place", {"piece": "-1"})])
def test_any_piece_and_what_lacks_it_is_said(runs, pooling, more):
    at = fine(app("embeddings", run="tiny", pooling=pooling, **more))
    assert len(points(drawn(at)[0])) >= 250
    at = app("embeddings", run="tiny", pooling="a word", word="zebra")
    assert not at.exception and "None of these texts" in at.error[0].value
    assert "Type the word" in plain(fine(app("embeddings", run="tiny", pooling="a word")))


def test_in_space_and_with_a_second_checkpoint_turned_onto_the_first(runs):
    at = fine(app("embeddings", run="tiny", pooling=MEAN, axes="3-D", step="40", vs="tiny@16"))
    first, second = drawn(at)
    assert first["data"][0]["type"] == "scatter3d"
    a, b = points(first), points(second)
    u, _, vt = np.linalg.svd(b.T @ a)
    np.testing.assert_allclose(u @ vt, np.eye(3), atol=1e-3)  # nothing is left to be turned
    ranges = [spec["layout"]["scene"]["xaxis"]["range"] for spec in (first, second)]
    assert ranges[0] == ranges[1]  # one scale


def test_a_second_checkpoint_of_another_family(runs, tmp_path):
    tiny_models.save(tmp_path / "albert", transformers.AlbertForPreTraining, family="albert")
    at = fine(app("embeddings", run="tiny", pooling=MEAN, vs=str(tmp_path / "albert"), point="3",
                  layer="2", texts_limit="60"))
    assert len(drawn(at)) == 2 and len(at.dataframe) == 2
    for view in ("Movement", "One word", "Layers", "Input tables"):
        at.segmented_control(key="view").set_value(view).run()
        fine(at)
    fine(app("embeddings", run=str(tmp_path / "albert"), view="Input tables"))


def test_hostile_texts_and_labels_stay_text(runs):
    at = app("embeddings", run="tiny", pooling=MEAN, point="1")
    text = f'text,<b>kind</b>\n"{HOSTILE}",<i>a</i>\n"{HOSTILE} two",b\nthe sea,b\nthe farm,b'
    at = paste(at, text)
    spec = json.dumps(drawn(at))
    assert "<img" not in spec and "<i>" not in spec and "&lt;img" in spec
    assert "\\<img src\\=x onerror\\=alert\\(1\\)\\>" in said(at)
    for view in ("Movement", "One word", "Layers"):
        at.segmented_control(key="view").set_value(view).run()
        assert not at.exception
        assert "<img" not in json.dumps(drawn(at))


def test_a_file_of_labels(runs):
    at = app("embeddings", run="tiny", pooling=MEAN, texts_from="texts of my own")
    rows = [{"text": f"the {word} is in the garden", "n": n, "odd": "yes" if n % 2 else "no"}
            for n, word in enumerate("dog cow boat book cup stove sink net oar bed".split())]
    data = "\n".join(json.dumps(row) for row in rows).encode()
    at.file_uploader(key="texts_file").upload("mine.jsonl", data, "application/json").run()
    assert set(fine(at).selectbox(key="colour").options) == {"n", "odd"}
    at.selectbox(key="colour").set_value("odd").run()
    assert {t["name"] for t in drawn(fine(at))[0]["data"]} == {"yes", "no"}


def test_cancelled_work_waits_for_a_click(runs):
    reset()
    at = app("embeddings", run="tiny", pooling=MEAN)
    from bertscope.ui import loaders

    key = next(k for k in loaders._recent() if k[0] == "vectors")
    reset()
    at.session_state["_cancelled"] = {key}
    at.run()
    assert not fine(at).get("plotly_chart")
    at.button(key="compute_Reading the texts").click().run()
    assert drawn(fine(at))


# -- groups -----------------------------------------------------------------------------------


def test_a_lasso_becomes_a_list_with_its_labels(runs):
    from streamlit.testing.v1 import AppTest

    def page():
        import pandas as pd
        import streamlit as st
        from bertscope.ui.embeddings import group, sources

        table = pd.DataFrame({"text": [f"text {n}" for n in range(9)], "kind": list("aaabbbccc")})
        st.session_state["map_main"] = {"selection": {"points": [
            {"customdata": n} for n in (1, 2, 4, 4, 99, None)]}}
        gathered = group.selected("map_main", 9)
        side = {"choice": type("C", (), {"stem": "run"})(), "layer": 2}
        import numpy as np

        group.show(sources.Texts(table, ["kind"], None), gathered, np.arange(9), side,
                   np.zeros((9, 2)), "kind", "texts")

    at = AppTest.from_function(page).run(timeout=60)
    assert not at.exception
    assert "**3 texts gathered** of 9" in said(at)
    assert "kind: a 67% (of all: 33%) · b 33% (of all: 33%)" in said(at)
    assert list(at.dataframe[0].value["text"]) == ["text 1", "text 2", "text 4"]


@pytest.mark.parametrize("count, dimensions, kind", [
    (50, 2, "scatter"), (figures.MANY + 1, 2, "scattergl"), (50, 3, "scatter3d")])
def test_many_points_are_drawn_by_webgl(count, dimensions, kind, monkeypatch):
    monkeypatch.setattr("bertscope.ui.theme.dark", lambda: False)
    values = pd.Series(["a", "b"]).repeat(count).iloc[::2].reset_index(drop=True)[:count]
    figure = figures.cloud(np.random.default_rng(0).normal(size=(count, dimensions)), values, "kind",
                           ["x"] * count, range(count), found=[1, 2], picked=3)
    assert {trace.type for trace in figure.data[:-2]} == {kind}
    assert sum(len(trace.x) for trace in figure.data) == count + 3


# -- movement ---------------------------------------------------------------------------------


def test_the_movement_over_the_checkpoints_stands_still_where_nothing_moves(runs, tiny_run):
    at = fine(app("embeddings", run="tiny", view="Movement", pooling=MEAN, texts_limit="60",
                  step="16"))
    assert "60 texts at 9 steps · each map turned onto its neighbour's, outwards from step 16" in \
        plain(at)
    assert len(drawn(at)) == 2  # the map, and what it holds
    at.segmented_control(key="along").set_value("through the layers").run()
    assert "60 texts at 3 layers" in plain(fine(at))


def test_frames_are_the_aligned_maps_and_the_slider_begins_at_the_chosen_step(runs, monkeypatch):
    from bertscope.analysis.alignment import jump
    from bertscope.ui.embeddings import moving, sources

    monkeypatch.setattr("bertscope.ui.theme.dark", lambda: False)
    random = np.random.default_rng(0)
    laid = np.cumsum(random.normal(size=(4, 30, 2)), axis=0)
    table = pd.DataFrame({"text": [f"<b>{n}" for n in range(40)], "kind": list("ab") * 20})
    numbers = np.arange(5, 35)
    side = {"steps": [0, 8, 64, 512], "reference": 2, "numbers": numbers}
    figure = moving.animation(laid, side, sources.Texts(table, ["kind"], None), "kind",
                              figures.boxes(table["text"]), [0, 7], "training step", False)
    assert [frame.name for frame in figure.frames] == ["0", "8", "64", "512"]
    assert figure.layout.sliders[0].active == 2 and len(figure.layout.updatemenus[0].buttons) == 2
    a, b = (np.flatnonzero(table["kind"][numbers] == kind) for kind in "ab")
    order = [a, b] if figure.data[0].name == "a" else [b, a]
    for s, frame in enumerate(figure.frames):
        for trace, rows in zip(frame.data, [*order, [0, 7]]):
            np.testing.assert_allclose(np.stack([trace.x, trace.y], 1), laid[s][rows], atol=1e-5)
    trail = figure.data[2]
    np.testing.assert_allclose(np.stack([trail.x, trail.y], 1), laid[:, 0], atol=1e-5)
    assert "<b>" not in figure.to_json()
    rows = moving.table(laid, side, sources.Texts(table, ["kind"], None), "training step")
    assert len(rows) == 120 and rows["text"][31] == "<b>6" and rows["training step"][31] == 8
    np.testing.assert_allclose(rows[["map x", "map y"]].to_numpy().reshape(4, 30, 2), laid, atol=1e-5)
    assert jump(laid) > 1


def test_a_path_can_be_played_offline(runs):
    at = fine(app("embeddings", run="tiny", view="Movement", texts_limit="30",
                  keep="one plane for all"))
    spec = drawn(at)[0]
    assert len(spec["frames"]) == 9 and "one plane for all, nothing is turned" in plain(at)
    labels = [b["label"] for b in spec["layout"]["updatemenus"][0]["buttons"]]
    assert labels == ["▶", "❚❚"] and len(spec["layout"]["sliders"][0]["steps"]) == 9


# -- one word, layers, tables -----------------------------------------------------------------


def test_one_word_in_many_contexts(runs):
    at = fine(app("embeddings", run="tiny", view="One word", target="saw", sense="part of speech"))
    text = plain(at)
    assert "uses of “saw” in sentences of" in text
    titles = [spec["layout"].get("title", {}).get("text", "") for spec in drawn(at)]
    assert "Same part of speech among the 5 nearest" in titles and "Mean cosine, raw" in titles
    grid = drawn(at)[-1]["data"][0]
    assert grid["type"] == "heatmap" and array(grid["z"]).shape == (3, 9)
    assert {t["name"] for t in drawn(at)[0]["data"]} == {"NOUN", "VERB"}
    assert "<b>saw</b>" in json.dumps(drawn(at)[0])
    at = app("embeddings", run="tiny", view="One word", target="zebra")
    assert not at.exception and "“zebra” is not in" in at.error[0].value


def test_the_words_of_ones_own_texts(runs):
    at = app("embeddings", run="tiny", view="One word", target="bank")
    text = "text,sense\n" + "\n".join(f"the bank {word} it,{sense}" for word, sense in zip(
        "lent took gave held had was is sat ran hid".split(), "mmmmmrrrrr"))
    at = paste(at, text)
    assert "10 uses of “bank” in your texts" in plain(at)


def test_the_word_to_begin_with_is_one_of_the_texts_that_are_looked_at(runs):
    at = fine(app("embeddings", run="tiny", view="One word"))
    assert at.text_input(key="target").value == "saw" and "uses of “saw”" in plain(at)
    at.segmented_control(key="texts_from").set_value("texts of my own").run()
    at = fine(paste(at, "\n".join(f"the river {word} Deep, it is." for word in "was is ran lay sat bit hid had".split())))
    assert at.text_input(key="target").value == "river" and "8 uses of “river” in your texts" in plain(at)
    at = fine(at.text_input(key="target").set_value("deep").run())
    assert address(at)["target"] == "deep" and "8 uses of “deep”" in plain(at)
    at.segmented_control(key="texts_from").set_value("from the corpus").run()  # what was asked for stays
    assert "“deep” is not in" in plain(at) or "uses of “deep”" in plain(at)
    at = fine(at.button(key="try_1").click().run())
    assert "uses of “light”" in plain(at)


def test_words_that_are_offered_have_many_contexts(tmp_path):
    from bertscope.analysis import contexts

    texts = ["The river, was WIDE.", "a river is", "wide mountains rise", "a river river"]
    assert contexts.frequent_words(texts, 4) == ["river", "a", "wide", "mountains"]
    treebank = tmp_path / "t.conllu"
    treebank.write_text("".join(
        f"# text = {text}\n" + "".join(f"{i}\t{w}\t{w}\tNOUN\t_\t_\t{max(0, i - 1)}\tdep\t_\t_\n"
                                      for i, w in enumerate(text.split(), 1)) + "\n"
        for text in ("rivers flow", "rivers rise", "winds blow")))
    assert contexts.offered_words(str(treebank))[0] == "rivers"  # annotated, but no word of two kinds


def test_how_often_a_piece_was_seen_needs_the_corpus_which_is_made_again(own_runs):
    run = open_run("tiny", own_runs)
    run.write_config(run.config(), corpus={**run.config_record()["corpus"], "path": "/gone"})
    at = app("embeddings", run="tiny", view="Input tables")
    assert "is no longer here" in plain(at) and not at.exception
    at = fine(at.button(key="prepare_again").click().run())
    assert "Rank correlation" in plain(at)


def test_layers_over_steps_and_alike(runs):
    reset()
    at = fine(app("embeddings", run="tiny", view="Layers", values="standardised", step="40",
                  vs="tiny@0"))
    specs = {spec["layout"].get("title", {}).get("text", ""): spec for spec in drawn(at)}
    assert len(specs["Mean cosines"]["data"]) == 6  # three curves of two checkpoints
    cka = array(specs["CKA between layers"]["data"][0]["z"])
    assert cka.shape == (3, 3) and (cka < 0.999).all()  # of two checkpoints: no diagonal of ones
    steps = array(specs["CKA between checkpoints, layer 2"]["data"][0]["z"])
    np.testing.assert_allclose(np.diag(steps), 1, atol=1e-5)
    np.testing.assert_allclose(steps, steps.T, atol=1e-5)
    at = fine(app("embeddings", run="tiny", view="Layers"))
    alone = next(s for s in drawn(at) if s["layout"]["title"]["text"] == "CKA between layers")
    np.testing.assert_allclose(np.diag(array(alone["data"][0]["z"])), 1, atol=1e-5)


def test_input_tables(runs, tiny_run):
    from bertscope.analysis import input_table
    from bertscope.analysis.activations import load

    at = fine(app("embeddings", run="tiny", view="Input tables", of_piece="the", step="40",
                  vs="tiny@0"))
    model = load(tiny_run.checkpoints()[-1].path)
    found = input_table.tables(model)
    near = input_table.nearest_pieces(found, input_table.piece_number(model, "the"), 12)
    assert list(at.dataframe[0].value["piece"]) == [found.names[i] for i, _ in near]
    positions = drawn(at)[0]["data"][0]
    np.testing.assert_allclose(array(positions["z"]), input_table.position_similarity(found),
                               atol=1e-5)
    assert len(at.get("vega_lite_chart")) == 2 and "Rank correlation" in plain(at)
    at = app("embeddings", run="tiny", view="Input tables", of_piece="☃")
    assert not at.exception and "no piece for" in at.error[0].value


# -- by hand ----------------------------------------------------------------------------------


@pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="needs Debian's chromium")
def test_a_group_is_drawn_around_and_a_saved_movement_plays_without_the_app(visit, tmp_path):
    v = visit()
    v.open(f"embeddings?run=tiny&pooling={MEAN.replace(' ', '+')}&texts_limit=60")
    v.page.locator(".modebar-btn[data-val=lasso]").click()
    box = v.page.locator(".stPlotlyChart .nsewdrag").first.bounding_box()
    corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98), (0.02, 0.02)]
    for number, (x, y) in enumerate(corners):
        v.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=5)
        if not number:
            v.page.mouse.down()
    v.page.mouse.up()
    v.page.get_by_text("60 texts gathered").wait_for(timeout=30_000)
    v.open("embeddings?run=tiny&view=Movement&texts_limit=30")
    with v.page.expect_download() as download:
        v.page.get_by_role("button", name="Figure (HTML)").click()
    download.value.save_as(tmp_path / "path.html")
    v.check()
    page = v.context.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "path.html").as_uri())
    state = "document.querySelector('.js-plotly-plot')._fullLayout.sliders[0].active"
    page.wait_for_function(f"{state} === 8")  # the chosen step, the last
    page.locator(".updatemenu-button").first.click()
    page.wait_for_function(f"{state} > 0 && {state} < 8")
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked), asked


# -- states -----------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["Map", "Movement", "One word", "Layers"])
def test_too_few_texts_are_a_sentence(runs, view):
    at = app("embeddings", run="tiny", view=view, target="cat")
    at.segmented_control(key="texts_from").set_value("texts of my own").run()
    assert not at.exception and "Paste some texts" in said(at)
    at.text_area(key="pasted").set_value("the cat").run()
    assert not at.exception and (at.error or "at least" in said(at))


@pytest.mark.parametrize("asked", [
    {"layer": "99"}, {"layer": "x"}, {"method": "isomap"}, {"axes": "4-D"}, {"pooling": "<b>"},
    {"view": "nowhere"}, {"colour": "<i>"}, {"texts_limit": "-5"}, {"piece": "0",
                                                                    "pooling": "a place"}])
def test_addresses_that_say_nothing_are_passed_over(runs, asked):
    at = fine(app("embeddings", run="tiny", **asked))
    assert at.get("plotly_chart")


def test_a_run_whose_corpus_is_gone(own_runs):
    record = own_runs / "tiny" / "config.json"
    config = json.loads(record.read_text())
    config["config"]["corpus"]["source"] = "/no/such/corpus"
    record.write_text(json.dumps(config))
    for view in ("Map", "Movement", "Layers", "One word"):
        at = app("embeddings", run="tiny", view=view)
        assert not at.exception
        assert "cannot be read" in said(at) or at.error or "Type a word" in said(at)


def test_vectors_are_kept_beside_the_run(own_runs):
    reset()
    fine(app("embeddings", run="tiny"))
    analysis = own_runs / "tiny" / "analysis"
    kept = {path: path.stat().st_mtime_ns for path in analysis.glob("vectors-*.npy")}
    assert len(kept) == 1
    reset()
    at = fine(app("embeddings", run="tiny", layer="1"))
    assert drawn(at) and set(analysis.glob("vectors-*.npy")) == set(kept)
    shutil.rmtree(analysis)
    reset()
    assert drawn(fine(app("embeddings", run="tiny", layer="1")))
    assert address(at)["run"] == "tiny"
