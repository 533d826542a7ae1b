"""The Predict page's views of layers, sides, attributions and several masks, without a browser."""

import dataclasses
import html
import json
import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from test_app import (
    address, after_the_first_visit, app, figures, own_runs, runs, said)

from bertscope.ui import waiting

TEXT = "she was happy because the garden was big ."  # every word is one piece of the tiny vocabulary
VIEWS = {"lens": "Every layer", "sides": "Both sides", "words": "Which words mattered",
         "several": "Fill several"}


def view(name, **where):
    """A view of the tiny run; the second checkpoint and the masks may be in ``where``."""
    at = app("predict", **{"run": "tiny", "view": VIEWS[name], "text": TEXT, "mask": "3,6"} | where)
    assert not at.exception, at.exception
    return at


@pytest.fixture
def looked(tiny_run):
    """The newest checkpoint of the run and the text as its model reads it."""
    from bertscope.analysis import encode, load

    model = load(tiny_run.checkpoints()[-1].path)
    return model, encode(model, TEXT)


def components(at) -> list[dict]:
    return [json.loads(c.proto.json) for c in at.get("bidi_component")]


def shades(at) -> list[dict]:
    """The shaded texts."""
    return [c for c in components(at) if "pieces" in c]


# -- every view -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_draws_explains_and_can_be_downloaded(runs, name):
    at = view(name)
    assert not at.error and not at.warning, said(at)
    assert at.get("plotly_chart") or shades(at)
    assert "tiny · step 40" in said(at)
    assert at.get("download_button")
    assert len([e for e in at.expander if "How this is computed" in e.label]) == 1
    assert at.toggle(key="over_time").value


@pytest.mark.parametrize("name", VIEWS)
def test_a_second_checkpoint_beside_it(runs, name):
    at = view(name, vs="tiny@0")
    assert not at.error and not at.warning
    drawn = said(at) + json.dumps(figures(at)) + json.dumps(components(at))
    assert "step 40" in drawn and "step 0" in drawn


@pytest.mark.parametrize("name", VIEWS)
def test_a_second_checkpoint_that_cannot_fill_masks_is_one_sentence(runs, tmp_path, name):
    import transformers
    from tiny_models import save

    save(tmp_path / "bare", transformers.BertModel)
    at = view(name, vs=str(tmp_path / "bare"))
    assert not at.error and len(at.warning) == 1 and "no MLM head" in at.warning[0].value
    assert at.get("plotly_chart") or shades(at)


@pytest.mark.parametrize("name", VIEWS)
def test_a_checkpoint_of_others_has_no_time_axis(runs, tiny_run, name):
    at = view(name, run=str(tiny_run.checkpoints()[-1].path))
    assert not at.error and "over_time" not in [t.key for t in at.toggle]
    assert at.get("plotly_chart") or shades(at)


HOSTILE = ["[MASK]", "[MASK] [MASK]", "💥 🐕 👩‍👩‍👧", "cat", "<script>alert(1)</script> <b>the</b> dog $x$",
           "[SEP] [CLS] [PAD] dog", "的 كتاب คน"]


@pytest.mark.parametrize("name", VIEWS)
def test_any_text_has_a_designed_answer(runs, name):
    at = view(name)
    at.toggle(key="over_time").set_value(False)
    for text in HOSTILE:
        at.text_area(key="text").set_value(text).run()
        assert not at.exception and not at.error, (text, said(at))
    for spec in figures(at):
        assert "<script" not in json.dumps(spec)
    at.text_area(key="text").set_value("she was happy . " * 180).run()  # 720 words
    assert not at.exception and not at.error, said(at)
    assert "**cut** to the 48 pieces" in said(at)
    assert shades(at) or figures(at) or name == "several"
    at.text_area(key="text").set_value("she was happy . " * 2500).run()  # 10,000 words
    assert not at.exception and len(at.error) == 1
    assert re.search(r"\d characters.*at most 3.*000 are taken", at.error[0].value)


def test_html_in_the_text_is_shown_as_it_is(runs, tmp_path):
    import transformers
    from tiny_models import save

    save(tmp_path / "signs", transformers.BertForMaskedLM)  # its vocabulary has < and >
    for name in ("lens", "words", "sides"):
        at = view(name, run=str(tmp_path / "signs"), text="<b>the</b> <a> dog", mask="2",
                  lens_all="true")
        written = json.dumps([[s["layout"]["yaxis"], [t.get("text") for t in s["data"]],
                               [t.get("customdata") for t in s["data"]]] for s in figures(at)])
        assert "&lt;" in written or name != "lens"
        marks = written.replace("<b>", "").replace("</b>", "")  # bold names are ours
        assert "<" not in marks and ">" not in marks
        for shade in shades(at):
            assert "<" in [piece["token"] for piece in shade["pieces"]]  # set as text, not markup


# -- every layer ------------------------------------------------------------------------------


def test_every_layer_shows_what_the_library_says(runs, looked):
    from bertscope.analysis.lens import lens

    model, encoded = looked
    found = lens(model, encoded, [3, 6])
    at = view("lens")
    spec = figures(at)[0]["data"][0]
    shown = [[html.unescape(t) for t in row] for row in spec["text"]]
    assert shown == [[found.tokens[layer][place] for layer in range(model.num_layers + 1)]
                     for place in range(2)]
    for place, (first, p) in enumerate(zip(found.leads_from, found.final_probability[-1])):
        sentence = next(m.value for m in at.markdown if f"**Place {[3, 6][place]}**" in m.value)
        assert (f"({p:.0%})" if p >= 0.01 else f"({p:.2%})") in sentence
        assert ("embeddings on" if first == 0 else str(first)) in sentence
    at = view("lens", lens_show="distance", lens_all="true")
    spec = figures(at)[0]["data"][0]
    every = lens(model, encoded, [3, 6], range(1, len(encoded) - 1))
    assert spec["text"] == [[f"{v:.1f}" for v in row] for row in every.kl_bits.T]
    assert [row[-1] for row in spec["text"]] == ["0.0"] * (len(encoded) - 2)


def test_many_layers_stand_above_each_other(runs, tmp_path):
    import transformers
    from bertscope.analysis import encode, load
    from bertscope.analysis.lens import lens
    from tiny_models import save

    save(tmp_path / "deep", transformers.BertForMaskedLM, num_hidden_layers=9)
    model = load(tmp_path / "deep")
    found = lens(model, encode(model, "the cat sat on"), [2, 3])
    at = view("lens", run=str(tmp_path / "deep"), text="the cat sat on", mask="2,3")
    spec = figures(at)[0]
    assert [[html.unescape(t) for t in row] for row in spec["data"][0]["text"]] == found.tokens
    assert spec["layout"]["xaxis"]["ticktext"] == ["2: cat", "3: sat"]
    assert spec["layout"]["yaxis"]["ticktext"][::9] == ["embeddings", "layer 9"]


def test_a_word_through_the_layers_beside_random_weights(runs, looked, tiny_run):
    from bertscope.analysis import encode, load
    from bertscope.analysis.lens import layer_probabilities

    model, encoded = looked
    at = view("lens", place="6: garden", lens_word="garden")
    assert at.selectbox(key="place").value == "6: garden"
    curves, heat = figures(at)[1]["data"], figures(at)[2]["data"][0]
    garden = model.tokenizer.convert_tokens_to_ids("garden")
    expected = layer_probabilities(model, encoded, [3, 6], 6)[:, garden]
    assert [c["name"] for c in curves] == ["tiny · step 40", "random weights"]
    np.testing.assert_allclose(curves[0]["y"], expected, rtol=1e-4)
    assert np.abs(np.array(curves[1]["y"]) * model.model.config.vocab_size - 1).max() < 1.5
    first = load(tiny_run.checkpoints()[0].path)
    at.toggle(key="over_time").set_value(False).run()
    assert len(figures(at)) == 2
    start = layer_probabilities(first, encode(first, TEXT), [3, 6], 6)[:, garden]
    z = np.array(plain(heat["z"]))
    np.testing.assert_allclose(z[:, 0], start, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(z[:, -1], expected, rtol=1e-3, atol=1e-6)


def plain(values):
    """A Plotly array, which may be typed bytes."""
    if not isinstance(values, dict):
        return values
    import base64

    found = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    return found.reshape([int(n) for n in str(values.get("shape", "-1")).split(",")])


# -- both sides -------------------------------------------------------------------------------


def test_both_sides_show_what_the_library_says(runs, looked):
    from bertscope.analysis.sides import sides

    model, encoded = looked
    for way, cut in (("cut off", True), ("all [MASK]", False)):
        at = view("sides", sides_way=way, place="6: garden")
        found = sides(model, encoded, [3, 6], 6, cut)
        bars = figures(at)
        assert len(bars) == 3
        for spec, answer in zip(bars, found.values()):
            top = np.sort(np.exp(answer.log_p))[::-1][:8]
            np.testing.assert_allclose(plain(spec["data"][0]["x"])[::-1], top, rtol=1e-4)
        assert len({tuple(s["layout"]["xaxis"]["range"]) for s in bars}) == 1, "one scale"
        garden = model.tokenizer.convert_tokens_to_ids("garden")
        line = next(m.value for m in at.markdown if "P(garden)" in m.value.replace("\\", ""))
        for side, answer in found.items():
            assert f"{side} {np.exp(answer.log_p[garden]):.1%}" in line
        read = said(at).replace("\\", "")
        assert ("reads [CLS] [MASK] was big . [SEP]" in read) == cut


def test_a_place_at_the_end_and_a_text_of_one_piece_say_so(runs):
    assert "Nothing stands left" in said(view("sides", text=TEXT, mask="1"))
    assert "There is only this one piece" in said(view("sides", text="[MASK]", mask="1"))


@pytest.fixture
def causal(own_runs):
    from bertscope.presets import run_config
    from bertscope.runs import create_run
    from bertscope.training.loop import train

    run = create_run("reader", run_config({
        "corpus.documents": 60, "model.hidden_size": 32, "model.intermediate_size": 64,
        "training.steps": 4, "training.evaluation_examples": 32}, recipe="causal"), own_runs)
    train(run)
    return run


def test_the_headline_says_both_checkpoints(runs, looked):
    at = view("sides", mask="6", vs="tiny@0")
    (line,) = (m.value for m in at.markdown if m.value.startswith("tiny · step 0: left"))
    assert "both" in line


def test_a_causal_run_beside_them(causal, looked):
    from bertscope.analysis import load
    from bertscope.analysis.sides import left_to_right, same_vocabulary

    model, encoded = looked
    at = view("sides", mask="6")
    assert at.selectbox(key="sides_causal").value == "reader", "the same corpus"
    bars = figures(at)
    assert len(bars) == 4 and not at.warning
    reader = load(causal.checkpoints()[-1].path)
    assert not same_vocabulary(model, reader)
    assert "its vocabulary is another one" in said(at).replace("\\", "")
    top = np.sort(np.exp(left_to_right(reader, model, encoded, [6], 6).log_p))[::-1][:8]
    np.testing.assert_allclose(plain(bars[3]["data"][0]["x"])[::-1], top, rtol=1e-4)
    assert "causal" in next(m.value for m in at.markdown if m.value.startswith("##### P("))
    curve = json.dumps([json.loads(c.proto.spec) for c in at.get("vega_lite_chart")])
    assert "causal (reader)" in curve
    at.selectbox(key="sides_causal").set_value("none").run()
    assert len(figures(at)) == 3 and not at.exception
    at = view("sides", mask="6", vs="reader@2")  # as the second checkpoint it is the causal one, at its step
    assert len(figures(at)) == 4 and not at.warning and "grey: reader · step 2" in said(at).replace("\\", "")
    assert "read from left to right" in said(app("attention", run="reader"))
    assert address(view("sides", mask="3,6", place="6: garden", sides_causal="none"))["run"] == "tiny"
    assert "no MLM head" in said(app("predict", run="reader")) \
        or "causal model" in app("predict", run="reader").error[0].value


# -- which words mattered ---------------------------------------------------------------------


@pytest.mark.parametrize("address_, method", [
    ({}, ("occlusion", False)), ({"words_whole": "true"}, ("occlusion", True)),
    ({"words_method": "gradient × input"}, ("gradient",)),
    ({"words_method": "integrated gradients"}, ("integrated", "pad")),
    ({"words_method": "integrated gradients", "words_baseline": "[MASK]"}, ("integrated", "mask"))])
def test_the_scores_are_the_librarys(runs, looked, address_, method):
    from bertscope.ui.predict.answers import attribute

    model, encoded = looked
    garden = model.tokenizer.convert_tokens_to_ids("garden")
    found = attribute(model, encoded, [3, 6], 6, garden, method)
    at = view("words", place="6: garden", **address_)
    assert at.selectbox(key="words_target").value == "garden"
    (text,) = shades(at)
    labels = [piece["label"] for piece in text["pieces"]]
    for label, score in zip(labels, found.scores):
        assert label == "" if np.isnan(score) else float(label) == pytest.approx(score, abs=0.006)
    assert text["pieces"][6]["strong"] and text["pieces"][6]["token"] == "[MASK]"
    assert ("completeness error" in said(at)) == (method[0] == "integrated")
    assert "not explanations in full" in said(at)
    (spec,) = figures(at)
    last = plain(spec["data"][0]["z"])
    np.testing.assert_allclose(np.array(last)[:, -1], found.scores[~np.isnan(found.scores)],
                               rtol=1e-3, atol=1e-5)


def test_another_target_and_signed_colours(runs):
    at = view("words", place="6: garden")
    options = at.selectbox(key="words_target").options
    assert options[0] == "garden" and len(options) in (5, 6)
    at.selectbox(key="words_target").set_value(options[-1]).run()
    assert not at.exception and options[-1] in said(at).replace("\\", "")
    (text,) = shades(at)
    from bertscope.ui import theme

    for piece in text["pieces"]:
        if piece["colour"] and abs(float(piece["label"])) > 0.02:
            ends = {1: theme.signed()[2][1], -1: theme.signed()[0][1]}
            sign = np.sign(float(piece["label"]))

            def far(end, colour=piece["colour"]):
                return sum(abs(int(end[i:i + 2], 16) - int(colour[i:i + 2], 16)) for i in (1, 3, 5))

            assert far(ends[sign]) < far(ends[-sign])


def test_only_masks_means_that_nothing_can_matter(runs):
    at = view("words", text="[MASK] [MASK]", mask="1,2")
    assert not at.error and "nothing can matter" in said(at)


# -- several masks ----------------------------------------------------------------------------


def test_four_orders_as_the_library_fills_them(runs, looked):
    from bertscope.analysis.filling import ORDERS, fill

    model, encoded = looked
    masked = [2, 3, 6, 7]
    fillings = [fill(model, encoded, masked, order) for order in ORDERS]
    at = view("several", mask="2,3,6,7", several_order="most certain first")
    texts = shades(at)
    assert [[p["token"] for p in t["pieces"]] for t in texts] == [f.tokens for f in fillings]
    different = len({tuple(f.input_ids) for f in fillings})
    assert ("All orders come to the same" if different == 1 else f"{different} different") \
        in said(at)
    steps = at.dataframe[0].value
    last = fillings[-1]
    assert list(steps["place"]) == [s.place for s in last.steps]
    np.testing.assert_allclose(steps["probability"], [s.probability for s in last.steps], rtol=1e-4)
    assert "[MASK]" not in steps["text"].iloc[-1] and "[MASK]" in steps["text"].iloc[0]
    history = at.dataframe[1].value
    assert list(history.columns) == ["step", "per_place", "sentence"] and 40 in set(history["step"])


def test_one_mask_is_not_enough_and_a_click_helps(runs):
    at = view("several", mask="3")
    assert "two masks or more" in said(at) and not shades(at)
    at.button(key="several_more").click().run()
    assert not at.exception and address(at)["mask"] == "2,3,4" and len(shades(at)) == 4


def test_very_small_products_are_still_numbers():
    from bertscope.ui.predict.several import percent

    assert percent(np.log(0.25)) == "25.0%" and percent(np.log(2e-5)) == "2.0e-05"
    assert percent(-2000.0) == "e^-2,000"


# -- waiting ----------------------------------------------------------------------------------


def waits(seed):
    import streamlit as st

    from bertscope.ui import waiting

    def compute(progress):
        progress("half", 0.5)
        if st.session_state.get("interrupted"):
            st.stop()  # what a click anywhere does to a running script
        return 7

    st.write(f"answer {waiting.kept(('test', seed), compute, 'the thing')}")


def test_an_answer_that_takes_long_can_be_cancelled(monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    at = AppTest.from_function(waits, args=(1,))
    at.session_state["interrupted"] = True
    at.run()
    assert "answer" not in said(at) and at.button(key="cancel_the thing")
    at.session_state["interrupted"] = False
    at.button(key="cancel_the thing").click().run()
    assert "answer None" in said(at)
    at.run()
    assert "answer None" in said(at), "it does not begin again by itself"
    at.button(key="compute_the thing").click().run()
    assert "answer 7" in said(at) and not at.button


def test_a_quick_answer_shows_no_bar():
    at = AppTest.from_function(waits, args=(2,)).run()
    assert "answer 7" in said(at) and not at.button and not at.get("progress")
    at.session_state["interrupted"] = True
    assert "answer 7" in said(at.run()), "it is kept"


def test_colours_and_ink():
    from bertscope.ui import theme
    from bertscope.ui.components.shaded import Shade, ink

    scale = [[0, "#000000"], [0.5, "#102030"], [1, "#FFFFFF"]]
    assert [theme.shade(scale, s) for s in (-1, 0, 0.25, 0.5, 1, 2)] == \
        ["#000000", "#000000", "#081018", "#102030", "#FFFFFF", "#FFFFFF"]
    assert [ink(c) for c in ("#FFFFFF", "#000000", "#FFFF00", "#0000FF", None)] == \
        ["#000000", "#FFFFFF", "#000000", "#FFFFFF", None]
    assert dataclasses.asdict(Shade("x"))["colour"] is None
