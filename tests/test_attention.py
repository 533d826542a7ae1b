"""Attention maps, statistics of heads with known answers, and bertviz's pages in Chromium."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from bertscope.analysis.activations import load
from bertscope.analysis.attention import (AttentionMaps, attention_maps, by_words, difference,
                                          head_summary, merge_pieces, one_map, part, places, share_of,
                                          summed)
from bertscope.analysis.attention_pictures import pooled, quantise, side, thumbnails
from bertscope.analysis.bertviz_views import bertviz_page, neuron_page
from bertscope.analysis.neurons import queries_and_keys
from bertscope.errors import BertScopeError

TOKENS = ["[CLS]", "the", "cat", "[SEP]", "a", "dog", "##s", "[SEP]"]
SEGMENTS = [0, 0, 0, 0, 1, 1, 1, 1]
WORD_IDS = [None, 0, 1, None, 2, 3, 3, None]
EVIL = "</script><img src=x onerror=window.pwned=1>"


def maps_of(*heads, tokens=TOKENS, segments=SEGMENTS, word_ids=WORD_IDS) -> AttentionMaps:
    """One layer of the heads that are given."""
    return AttentionMaps(list(tokens), np.array([heads], np.float32), list(segments), word_ids)


def random_maps(layers=3, heads=4, tokens=TOKENS, segments=SEGMENTS, word_ids=WORD_IDS):
    weights = np.random.default_rng(0).gamma(0.3, size=(layers, heads, len(tokens), len(tokens)))
    weights /= weights.sum(-1, keepdims=True)
    return AttentionMaps(list(tokens), weights.astype(np.float32), list(segments), word_ids)


def test_maps_are_those_of_transformers(tmp_path):
    tiny_models.save(tmp_path)
    reference = transformers.BertModel.from_pretrained(tmp_path, attn_implementation="eager").eval()
    inputs = tiny_models.tokenizer()("the cats sat", "a dog", return_tensors="pt")
    with torch.no_grad():
        expected = torch.stack(reference(**inputs, output_attentions=True).attentions)[:, 0]
    maps = attention_maps(load(tmp_path, device="cpu"), "the cats sat", "a dog")
    np.testing.assert_allclose(maps.weights, expected, atol=1e-6)
    assert maps.tokens == ["[CLS]", "the", "cat", "##s", "sat", "[SEP]", "a", "dog", "[SEP]"]
    assert maps.segments == [0] * 6 + [1] * 3
    assert by_words(maps).tokens == ["[CLS]", "the", "cats", "sat", "[SEP]", "a", "dog", "[SEP]"]


# -- numbers ----------------------------------------------------------------------------------


def test_head_summary_of_known_heads():
    size = len(TOKENS)
    uniform = np.full((size, size), 1 / size)
    identity = np.eye(size)
    previous = np.eye(size, k=-1)
    previous[0, 0] = 1
    following = np.eye(size, k=1)
    following[-1, -1] = 1
    to_cls = np.zeros((size, size))
    to_cls[:, 0] = 1
    to_separators = np.zeros((size, size))
    to_separators[:, [3, 7]] = 0.5
    table = head_summary(maps_of(uniform, identity, previous, following, to_cls, to_separators))
    assert table["layer"].tolist() == [1] * 6 and table["head"].tolist() == [1, 2, 3, 4, 5, 6]
    uniform, identity, previous, following, to_cls, to_separators = table.to_dict("records")

    def close(row, **expected):
        for name, value in expected.items():
            assert row[name] == pytest.approx(value, abs=1e-6), name

    mean_distance = np.abs(np.subtract.outer(range(size), range(size))).mean()
    close(uniform, entropy=3, distance=mean_distance, cls=1 / 8, sep=2 / 8, previous=1 / 8,
          self=1 / 8, next=1 / 8)
    close(identity, entropy=0, distance=0, cls=1 / 8, sep=2 / 8, previous=0, self=1, next=0)
    close(previous, entropy=0, distance=7 / 8, previous=1, self=1 / 8, next=0)
    close(following, entropy=0, distance=7 / 8, previous=0, self=1 / 8, next=1)
    close(to_cls, entropy=0, distance=28 / 8, cls=1, sep=0)
    close(to_separators, entropy=1, cls=0, sep=1)
    assert head_summary(maps_of(identity_of(1), tokens=["[CLS]"], segments=[0], word_ids=[None])
                        )["next"].tolist() == [0]


def identity_of(size: int) -> np.ndarray:
    return np.eye(size)


def test_head_summary_has_a_row_for_each_head():
    table = head_summary(random_maps(layers=2, heads=3))
    assert list(zip(table["layer"], table["head"], strict=True)) == \
        [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    weights = random_maps(layers=2, heads=3).weights[1, 0]
    rows = [-sum(w * np.log2(w) for w in row if w > 0) for row in weights.astype(float)]
    assert table["entropy"][3] == pytest.approx(np.mean(rows), rel=1e-5)


def test_pieces_merge_by_hand():
    """[CLS] play ##ing cat: to a word the sum, from a word the mean."""
    weights = np.array([[.4, .2, .3, .1],
                        [.1, .5, .2, .2],
                        [.3, .1, .4, .2],
                        [.2, .2, .2, .4]])
    merged, groups = merge_pieces(weights, [None, 0, 0, 1])
    assert groups == [[0], [1, 2], [3]]
    np.testing.assert_allclose(merged, [[.4, .5, .1],
                                        [.2, .6, .2],
                                        [.2, .4, .4]])


def test_merged_rows_sum_to_one_and_specials_stay_apart():
    maps = random_maps()
    words = by_words(maps)
    assert words.tokens == ["[CLS]", "the", "cat", "[SEP]", "a", "dogs", "[SEP]"]
    assert words.segments == [0, 0, 0, 0, 1, 1, 1]
    assert words.weights.shape == (3, 4, 7, 7)
    np.testing.assert_allclose(words.weights.sum(-1), 1, atol=1e-6)
    # Two special tokens side by side are two words.
    assert merge_pieces(np.eye(3), [None, None, 0])[1] == [[0], [1], [2]]
    with pytest.raises(ValueError, match="which pieces"):
        by_words(AttentionMaps(["a"], np.ones((1, 1, 1, 1), np.float32), [0]))


# -- parts, sums, differences -----------------------------------------------------------------


def test_a_limit_on_the_weights_says_how_much_text_fits(tmp_path, monkeypatch):
    tiny_models.save(tmp_path)
    monkeypatch.setattr("bertscope.analysis.attention.MOST_WEIGHTS", 3 * 4 * 25)
    model = load(tmp_path, device="cpu")
    assert attention_maps(model, "the cat sat").weights.shape == (3, 4, 5, 5)
    with pytest.raises(BertScopeError, match="12 heads on 6 word pieces .* to 5 pieces"):
        attention_maps(model, "the cat sat on")


def test_places_by_direction_without_specials_and_in_a_window():
    maps = random_maps()  # [CLS] the cat [SEP] | a dog ##s [SEP]
    assert places(maps) == ([*range(8)], [*range(8)])
    assert places(maps, "A to B") == ([0, 1, 2, 3], [4, 5, 6, 7])
    assert places(maps, "B to A", hide_special=True) == ([4, 5, 6], [1, 2])
    assert places(maps, "within B", start=5) == ([5, 6, 7], [5, 6, 7])
    assert places(maps, start=2, end=4) == ([2, 3], [2, 3])
    with pytest.raises(BertScopeError, match="no such pieces"):
        places(maps_of(identity_of(2), tokens=["a", "b"], segments=[0, 0], word_ids=[0, 1]), "A to B")
    with pytest.raises(BertScopeError, match="A direction is one of"):
        places(maps, "up")


def test_parts_sums_shares_and_differences():
    maps, other = random_maps(), random_maps()
    other.weights = np.roll(other.weights, 1, axis=1)
    rows, columns = [4, 6], [0, 1, 2]
    by_hand = [[maps.weights[2, 1, i, j] for j in columns] for i in rows]
    np.testing.assert_array_equal(part(maps, (2, 1), rows, columns), by_hand)
    np.testing.assert_allclose(difference(maps, other).weights, maps.weights - other.weights)
    assert not difference(maps, maps).weights.any()
    looks = [sum(float(maps.weights[2, 1, i, j]) for i in rows) for j in range(8)]
    np.testing.assert_allclose(summed(maps.weights[2, 1], rows), looks)
    looked_at = [sum(float(maps.weights[2, 1, i, j]) for j in columns) for i in range(8)]
    np.testing.assert_allclose(summed(maps.weights[2, 1], columns, looked_at=True), looked_at)
    np.testing.assert_array_equal(one_map(maps.weights, 3, 2), maps.weights[2, 1])
    by_hand = sum(maps.weights[2, a].astype(float) for a in range(4))
    np.testing.assert_allclose(one_map(maps.weights, 3, total=True), by_hand, rtol=1e-6)
    np.testing.assert_allclose(one_map(maps.weights, 3), by_hand / 4, rtol=1e-6)
    assert share_of([[1, -3], [2, 2]], [1]) == pytest.approx(5 / 8) and share_of([[0.0]], [0]) == 0
    with pytest.raises(BertScopeError, match="other pieces or other heads"):
        difference(maps, random_maps(layers=2))


# -- pictures ---------------------------------------------------------------------------------


def test_bytes_hold_a_weight_to_four_thousandths():
    weights = np.array([0, 1, 0.25, *np.random.default_rng(0).random(5000) ** 3], np.float32)
    levels = quantise(weights)
    assert levels.dtype == np.uint8 and levels[:3].tolist() == [0, 255, 128]
    np.testing.assert_allclose((levels / 255) ** 2, weights, atol=0.004)
    both = np.concatenate([weights, -weights])
    part = quantise(both, signed=True) / 127.5 - 1
    np.testing.assert_allclose(np.sign(part) * part ** 2, both, atol=0.008)
    assert quantise(np.array([0.0, 1.0, -1.0]), signed=True).tolist() == [128, 255, 0]


def test_thumbnails_are_what_merging_the_pieces_of_words_gives():
    """With equal groups of whole pieces: to a group the sum, from it the mean (Clark et al.)."""
    weights = random_maps().weights
    merged, _ = merge_pieces(weights, [0, 0, 1, 1, 2, 2, 3, 3])
    np.testing.assert_allclose(thumbnails(weights, 4, 4), merged, atol=1e-6)
    np.testing.assert_array_equal(thumbnails(weights, 8, 8), weights)


@pytest.mark.parametrize("size", [3, 5, 7])
def test_thumbnails_with_parts_of_pieces(size):
    weights = random_maps().weights
    small = thumbnails(weights, size, size)
    assert small.shape == (3, 4, size, size)
    np.testing.assert_allclose(small.sum(-1), 1, atol=1e-6)
    fine = np.repeat(np.repeat(weights, size, -1) / size, size, -2)  # every piece in `size` parts
    merged, _ = merge_pieces(fine, [i // 8 for i in range(8 * size)])
    np.testing.assert_allclose(small, merged, atol=1e-6)
    uniform = np.full((1, 8, 8), 1 / 8)
    np.testing.assert_allclose(thumbnails(uniform, size, size), 1 / size, rtol=1e-6)
    np.testing.assert_allclose(pooled(np.arange(8.0), 8, -1), np.arange(8))
    np.testing.assert_allclose(pooled(np.array([3.0, 2, 6]), 2, -1), [4, 7])


def test_small_maps_stay_below_their_budget():
    assert side(32, 144) == 32 and side(512, 4) == 230
    for heads in (144, 384, 16):
        assert heads * side(512, heads) ** 2 <= 800_000 < heads * (side(512, heads) + 1) ** 2 \
            or side(512, heads) == 230


# -- bertviz ----------------------------------------------------------------------------------


def data_of(page: str) -> dict:
    """The only copy of what bertviz draws."""
    (found,) = re.findall(r"const params = (\{.*\}); // template marker", page)
    assert "<" not in found and "&" not in found  # nothing that HTML could read
    return json.loads(found)


@pytest.mark.parametrize("view", ["head", "model"])
def test_page_holds_the_weights_once_and_loads_nothing(view):
    maps = random_maps()
    page = bertviz_page(maps, view)
    data = data_of(page)
    assert len(data["attention"]) == 5  # all, and four directions between the two texts
    everything = data["attention"][0]
    np.testing.assert_allclose(everything["attn"], maps.weights, atol=0.00051)
    assert everything["left_text"] == TOKENS and data["include_layers"] == [1, 2, 3]
    assert max(len(number) for number in re.findall(r"0\.\d+", json.dumps(data))) <= 5
    first_to_second = data["attention"][3]["attn"]
    np.testing.assert_allclose(first_to_second, maps.weights[:, :, :4, 4:], atol=0.00051)
    assert "PYTHON_PARAMS" not in page and page == bertviz_page(maps, view)
    loads = re.findall(r"""(?:\bsrc|\bhref|url|import)\s*[=(:]\s*["']?\s*(?:https?:)?//""", page)
    assert not loads and "cdnjs" not in page and "require.config" not in page
    assert "default-src 'none'" in page and "background: white" in page


def test_as_many_decimals_as_are_asked_for():
    maps = random_maps()
    (coarse, _), (fine, _) = ((data_of(page := bertviz_page(maps, "head", decimals=n))
                               ["attention"][0]["attn"], page) for n in (1, 6))
    np.testing.assert_allclose(coarse, maps.weights, atol=0.051)
    np.testing.assert_allclose(fine, maps.weights, atol=0.00000051)


def test_single_texts_have_no_directions():
    maps = random_maps(segments=[0] * 8)
    assert len(data_of(bertviz_page(maps, "head"))["attention"]) == 1


def test_layers_and_heads_are_numbered_from_1():
    maps = random_maps()
    model = data_of(bertviz_page(maps, "model", layers=[2, 3], heads=[4]))
    assert (model["include_layers"], model["include_heads"]) == ([2, 3], [4])
    np.testing.assert_allclose(model["attention"][0]["attn"], maps.weights[1:, 3:], atol=0.00051)
    head = data_of(bertviz_page(maps, "head", layers=[3], heads=[1, 4]))
    assert (head["include_layers"], head["heads"]) == ([3], None)  # all that it was given
    np.testing.assert_allclose(head["attention"][0]["attn"], maps.weights[2:, [0, 3]], atol=0.00051)
    for wrong in ({"layers": [0]}, {"layers": [4]}, {"heads": [5]}):
        with pytest.raises(BertScopeError, match="they are numbered 1 to"):
            bertviz_page(maps, "model", **wrong)


@pytest.mark.parametrize(("view", "most"), [("head", 64), ("model", 32)])
def test_too_many_pieces_for_a_view(view, most):
    def maps(count):
        return random_maps(1, 1, ["x"] * count, [0] * count, None)

    assert bertviz_page(maps(most), view)
    with pytest.raises(BertScopeError, match=f"can draw {most} word pieces .* has {most + 1}:"):
        bertviz_page(maps(most + 1), view)
    with pytest.raises(BertScopeError, match="'head' and a 'model' view"):
        bertviz_page(maps(3), "neuron")


@pytest.mark.parametrize("view", ["head", "model"])
@pytest.mark.parametrize("token", [EVIL, "</script x", "<!--<script ", "\\", '"', "\u2028", "&lt;",
                                   "TOK00000KOT", "PYTHON_PARAMS", "\\1\\g<0>"])
def test_tokens_stay_text(view, token):
    page = bertviz_page(random_maps(tokens=[*TOKENS[:-1], token]), view)
    if not token.startswith(("TOK", "PYTHON")):  # these are plain letters
        assert token not in page or len(token) == 1 or token == "&lt;"
    assert data_of(page)["attention"][0]["left_text"] == [*TOKENS[:-1], token]


# -- the neuron view --------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "albert", "distilbert"])
def test_queries_and_keys_are_those_that_transformers_computes(tmp_path, family):
    tiny_models.save(tmp_path, transformers.AutoModelForMaskedLM, family=family)
    model = load(tmp_path, device="cpu")
    found = queries_and_keys(model, "the cats sat")
    reference = transformers.AutoModel.from_pretrained(tmp_path, attn_implementation="eager").eval()
    outputs: dict[str, list] = {"query": [], "key": []}
    for name, module in reference.named_modules():
        for wanted, short in (("query", "q_lin"), ("key", "k_lin")):
            if name.endswith((f".{wanted}", f".{short}")):
                module.register_forward_hook(
                    lambda m, i, output, kept=outputs[wanted]: kept.append(output[0].detach()))
    with torch.no_grad():
        given = {"input_ids": torch.tensor(found.encoded.input_ids[None])}
        weights = reference(**given, output_attentions=True).attentions
    for ours, theirs in ((found.queries, outputs["query"]), (found.keys, outputs["key"])):
        assert ours.shape == (3, 4, len(found.encoded), 4)
        for layer, states in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(np.concatenate(layer, -1), states, atol=1e-5)
    np.testing.assert_allclose(found.weights, torch.cat(weights), atol=1e-5)


def test_weights_of_more_than_queries_and_keys_have_no_neuron_view(tmp_path):
    tiny_models.save(tmp_path, transformers.AutoModelForMaskedLM, family="deberta-v2")
    with pytest.raises(BertScopeError, match="not made of a query and a key alone"):
        queries_and_keys(load(tmp_path, device="cpu"), "the cats sat")


def neuron_data(page: str) -> dict:
    (found,) = re.findall(r"window.bertviz_params = (\{.*\})", page)
    assert "<" not in found and "&" not in found
    return json.loads(found)


def test_the_neuron_view_has_the_layers_heads_and_digits_asked_for(tmp_path):
    evil_model(tmp_path)
    model = load(tmp_path, device="cpu")
    page = neuron_page(model, f"the {EVIL} sat", "a dog", layers=[3, 1], heads=[2, 4], decimals=4)
    data = neuron_data(page)["attention"]
    found = queries_and_keys(model, f"the {EVIL} sat", "a dog")
    assert data["all"]["left_text"] == found.encoded.tokens and EVIL in found.encoded.tokens
    for name, values in (("attn", found.weights), ("queries", found.queries), ("keys", found.keys)):
        np.testing.assert_allclose(data["all"][name], values[[2, 0]][:, [1, 3]], atol=0.000051)
    np.testing.assert_allclose(data["ab"]["attn"], found.weights[[2, 0]][:, [1, 3], :5, 5:],
                               atol=0.000051)
    assert ".text([3, 1][i])" in page and ".text([2, 4][i])" in page  # as the menus name them
    assert EVIL not in page and "cdnjs" not in page and "require.config" not in page
    assert "default-src 'none'" in page
    assert neuron_page(model, "the cat") == neuron_page(model, "the cat")
    for wrong, said in (({"layers": [4]}, "no layer 4"), ({"heads": [0]}, "no head 0")):
        with pytest.raises(BertScopeError, match=said):
            neuron_page(model, "the cat", **wrong)


def evil_model(folder):
    """A checkpoint whose vocabulary holds a piece that would like to be a script."""
    size = len(tiny_models.VOCABULARY)
    tiny_models.save(folder, vocab_size=size + 1)
    tokenizer = tiny_models.tokenizer()
    tokenizer.add_tokens([EVIL])
    tokenizer.save_pretrained(folder)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_the_views_in_chromium(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api")
    maps = random_maps(tokens=[*TOKENS[:-1], EVIL])
    evil_model(tmp_path)
    neuron = neuron_page(load(tmp_path, device="cpu"), f"{EVIL} the cat", "a dog")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for view, lines in (("head", 4 * 64), ("model", 3 * 4 * 64), ("neuron", 64)):
            page = browser.new_page()
            trouble, requests = [], []
            page.on("pageerror", lambda error: trouble.append(str(error)))
            page.on("console", lambda m: m.type in ("error", "warning") and trouble.append(m.text))
            page.on("request", lambda request: requests.append(request.url))
            page.set_content(neuron if view == "neuron" else bertviz_page(maps, view))
            page.wait_for_selector("svg line", state="attached")
            drawn = page.locator("#collapsed line" if view == "neuron" else "svg line")
            assert drawn.count() == lines
            assert page.evaluate("window.pwned") is None and page.locator("img").count() == 0
            assert trouble == [] and requests == []
            if view == "neuron":
                assert page.locator("#collapsed text", has_text=EVIL).count() == 2
                assert page.locator("#layer option").all_inner_texts() == ["1", "2", "3"]
                assert page.locator("#att_head option").all_inner_texts() == ["1", "2", "3", "4"]
                page.select_option("#filter", "ba")
                page.select_option("#att_head", "2")
                assert page.locator("#collapsed line").count() == 3 * 5
            if view == "head":
                assert page.locator("svg text", has_text=EVIL).count() == 2
                assert page.locator("#layer option").all_inner_texts() == ["1", "2", "3"]
                page.select_option("#layer", "3")
                page.select_option("#filter", "4")  # from the second text to the first
                assert page.locator("svg line").count() == 4 * 16
        browser.close()
