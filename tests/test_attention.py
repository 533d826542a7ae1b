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
from bertscope.analysis.attention import (AttentionMaps, attention_maps, bertviz_page, by_words,
                                          head_summary, merge_pieces, quantised_grid)
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


def test_quantised_grid():
    maps = random_maps()
    maps.weights[2, 1, 0, :3] = [0, 1, 0.25]
    grid = quantised_grid(maps)
    assert len(grid) == maps.weights.size
    levels = np.frombuffer(grid, np.uint8).reshape(maps.weights.shape)
    assert levels[2, 1, 0, :3].tolist() == [0, 255, 128]
    np.testing.assert_allclose((levels / 255) ** 2, maps.weights, atol=0.004)


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


def test_single_texts_have_no_directions():
    maps = random_maps(segments=[0] * 8)
    assert len(data_of(bertviz_page(maps, "head"))["attention"]) == 1


def test_layers_and_heads_are_numbered_from_1():
    maps = random_maps()
    model = data_of(bertviz_page(maps, "model", layers=[2, 3], heads=[4]))
    assert (model["include_layers"], model["include_heads"]) == ([2, 3], [4])
    np.testing.assert_allclose(model["attention"][0]["attn"], maps.weights[1:, 3:], atol=0.00051)
    head = data_of(bertviz_page(maps, "head", layers=[3], heads=[1, 4]))
    assert (head["include_layers"], head["heads"]) == ([3], [0, 3])  # indices into all heads
    np.testing.assert_allclose(head["attention"][0]["attn"], maps.weights[2:], atol=0.00051)
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


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_both_views_in_chromium():
    playwright = pytest.importorskip("playwright.sync_api")
    maps = random_maps(tokens=[*TOKENS[:-1], EVIL])
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for view, lines in (("head", 4 * 64), ("model", 3 * 4 * 64)):
            page = browser.new_page()
            trouble, requests = [], []
            page.on("pageerror", lambda error: trouble.append(str(error)))
            page.on("console", lambda m: m.type in ("error", "warning") and trouble.append(m.text))
            page.on("request", lambda request: requests.append(request.url))
            page.set_content(bertviz_page(maps, view))
            page.wait_for_selector("svg line", state="attached")
            assert page.locator("svg line").count() == lines
            assert page.evaluate("window.pwned") is None and page.locator("img").count() == 0
            assert trouble == [] and requests == []
            if view == "head":
                assert page.locator("svg text", has_text=EVIL).count() == 2
                assert page.locator("#layer option").all_inner_texts() == ["1", "2", "3"]
                page.select_option("#layer", "3")
                page.select_option("#filter", "4")  # from the second text to the first
                assert page.locator("svg line").count() == 4 * 16
        browser.close()
