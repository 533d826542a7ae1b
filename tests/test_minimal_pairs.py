"""Minimal pairs: reading files of them, which sentence wins and where, accuracy and its interval."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tiny_models
from bertscope.analysis import minimal_pairs
from bertscope.analysis.activations import load
from bertscope.analysis.cache import list_cached
from bertscope.analysis.minimal_pairs import decisive, evaluate, parts, score_pairs
from bertscope.analysis.pair_accuracy import (
    accuracies, by_phenomenon, compare, mean_accuracy, wilson)
from bertscope.analysis.scoring import score
from bertscope.corpus.miniworld import generate
from bertscope.corpus.miniworld.contrasts import PARADIGMS, contrasts
from bertscope.corpus.pairs import Pair, PairSet, built_in, parse_pairs, read_pairs
from bertscope.errors import BertScopeError

BLIMP = Path(__file__).resolve().parents[2] / "shared" / "data" / "blimp"
PAIRS = (Pair("the cat sat .", "the cat sits .", "p", "f"),
         Pair("a dog walked on the mat", "a dog walking on the mat", "p", "f"),
         Pair("the cat", "the cat", "q", "f"),              # identical
         Pair("猫 sat", "犬 sat", "q", "f"),                  # both unknown: a tie
         Pair("cat " * 60, "the cat", "r"),                 # too long for the model
         Pair("united states of america", "united states america", "r"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    tiny_models.save(folder)
    return load(folder, device="cpu")


# -- files ------------------------------------------------------------------------------------


def line(good="a cat .", bad="a cats .", **more) -> bytes:
    return json.dumps({"sentence_good": good, "sentence_bad": bad, **more}).encode() + b"\n"


def test_blimps_lines():
    data = line(UID="agr_1", linguistics_term="agr", pairID="0", simple_LM_method=True) \
        + b"\n" + line("x  y", "z\u2028", UID=None)
    found = parse_pairs("agr.jsonl", data)
    assert found.pairs == (Pair("a cat .", "a cats .", "agr_1", "agr"), Pair("x y", "z", "agr", ""))
    assert found.sizes == {"agr_1": 1, "agr": 1} and len(found) == 2


@pytest.mark.parametrize(("name", "text"), [
    ("p.csv", 'good,bad,paradigm\n"a, b",c,k\nd,e,l\n'),
    ("p.csv", '\ufeff"a, b",c,k\r\nd,e,l\r\n'),
    ("p.tsv", "a, b\tc\tk\nd\te\tl\n"),
    ("p.TSV", "paradigm\tsentence_bad\tsentence_good\nk\tc\ta, b\nl\te\td"),
])
def test_tables_with_and_without_names(name, text):
    assert parse_pairs(name, text.encode()).pairs == (Pair("a, b", "c", "k"), Pair("d", "e", "l"))


LONGER = "a cat sleeps,a cats sleeps\nthe dog is old,the dog are old\n"


@pytest.mark.parametrize(("first", "names"), [
    ("right,wrong", True), ("Satz 1,Falsch", True),
    ("dogs bark,dogs barks", False),  # the shortest pair of all, but the same word is in both
    ("right now,wrong now", False), ("Yes.,No.", False), ("one two three,four five six", False),
])
def test_a_first_line_of_unknown_names_is_told_by_its_words(first, names):
    found = parse_pairs("p.csv", (first + "\n" + LONGER).encode())
    assert len(found) == 3 - names
    (note,) = found.notes
    assert ("is taken for the names of the columns" in note) is names and "first column is the good" in note
    assert f"“{first.split(',')[0]}”" in note
    for asked in (True, False):  # the visitor knows better
        assert len(parse_pairs("p.csv", (first + "\n" + LONGER).encode(), asked)) == 3 - asked


def test_names_that_are_known_need_no_note():
    for first in ("good,bad", "Good sentence,Bad-sentence", "Correct,Incorrect"):
        found = parse_pairs("p.csv", (first + "\n" + LONGER).encode())
        assert len(found) == 2 and not found.notes
    turned = parse_pairs("p.csv", b"incorrect,correct\na cats sleeps,a cat sleeps\n")
    assert turned.pairs == (Pair("a cat sleeps", "a cats sleeps", "p"),)
    assert not parse_pairs("p.jsonl", line()).notes


def test_a_pair_without_a_paradigm_is_of_its_files():
    assert parse_pairs("mine.csv", b"a,b\n").pairs == (Pair("a", "b", "mine"),)


@pytest.mark.parametrize(("name", "data", "why"), [
    ("x.jsonl", line() + b"{broken", "x.jsonl, line 2: this is no JSON object"),
    ("x.jsonl", b"[1, 2]\n", "line 1: this is no JSON object"),
    ("x.jsonl", b"[" * 200_000, "line 1: this is no JSON object"),
    ("x.jsonl", b'{"sentence_good": ' + b"1" * 6000 + b"}", "line 1: this is no JSON object"),
    ("x.jsonl", line() + line() + b"\xff\xfe\n", "line 3: this is not UTF-8"),
    ("x.jsonl", b'{"sentence_good": "a"}\n', "line 1: there is no bad sentence"),
    ("x.jsonl", line(good="  "), "line 1: there is no good sentence"),
    ("x.jsonl", line(good=["a"]), "line 1: good is no text"),
    ("x.jsonl", line(UID=7), "line 1: paradigm is no text"),
    ("x.jsonl", line(UID="u" * 101), "line 1: paradigm has 101 characters"),
    ("x.jsonl", line(bad="b" * 1001), "line 1: bad has 1,001 characters"),
    ("x.jsonl", line(bad="the [MASK] sat"), r"line 1: the bad sentence says \[MASK\]"),
    ("x.csv", b'a,b\n"c,d\n', "x.csv, line 2: unexpected end of data"),
    ("x.csv", b"good,bad\na,b\njust one\n", "line 3: two columns are expected.* with a comma"),
    ("x.tsv", b"just one\n", "line 1: two columns are expected.* with a tab"),
    ("x.csv", b"good,paradigm\na,b\n", "line 2: there is no bad sentence"),
    ("x.jsonl", b"\n \n", "x.jsonl is empty"), ("x.csv", b"", "is empty"),
    ("x.csv", b"good,bad\n", "is empty"),
])
def test_what_is_no_pair_is_named(name, data, why):
    with pytest.raises(BertScopeError, match=why):
        parse_pairs(name, data)


def test_bounds(monkeypatch, tmp_path):
    from bertscope.corpus import pairs

    monkeypatch.setattr(pairs, "MOST_PAIRS", 2)
    with pytest.raises(BertScopeError, match="more than the 2 pairs"):
        parse_pairs("x.jsonl", line() * 3)
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes(line() * 2)
    with pytest.raises(BertScopeError, match="more than the 2 pairs"):
        read_pairs(tmp_path)
    monkeypatch.setattr(pairs, "MOST_FILES", 1)
    with pytest.raises(BertScopeError, match="has 2 files of pairs; at most 1"):
        read_pairs(tmp_path)
    monkeypatch.setattr(pairs, "MOST_BYTES", 10)
    with pytest.raises(BertScopeError, match="larger than"):
        read_pairs(tmp_path / "a.jsonl")


@pytest.mark.parametrize("path", ["none", "a\0b", "~nobody_at_all/x", "x" * 5000, "/dev/null", ""])
def test_paths_that_lead_nowhere(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BertScopeError):
        read_pairs(path)


def test_a_folder_is_its_files_in_order(tmp_path):
    (tmp_path / "b.csv").write_text("c,d\n")
    (tmp_path / "a.jsonl").write_bytes(line())
    (tmp_path / "notes.txt").write_text("no pair")
    (tmp_path / "dir.csv").mkdir()
    found = read_pairs(tmp_path)
    assert list(found.sizes) == ["a", "b"] and found.name == tmp_path.name
    assert read_pairs(str(tmp_path / "b.csv")).pairs == (Pair("c", "d", "b"),)


def test_the_first_pairs_of_each_paradigm_and_what_a_set_is_known_by():
    pairs = PairSet("x", PAIRS)
    few = pairs.first(1)
    assert few.pairs == (PAIRS[0], PAIRS[2], PAIRS[4]) and pairs.first(2) is pairs
    assert pairs.digest == PairSet("y", PAIRS).digest != few.digest
    assert PairSet("x", PAIRS[::-1]).digest != pairs.digest


@pytest.mark.skipif(not BLIMP.is_dir(), reason="BLiMP is not here")
def test_blimp_itself():
    found = read_pairs(BLIMP)
    assert set(found.sizes.values()) == {1000} and len(found.sizes) == 16
    assert {pair.phenomenon for pair in found.pairs} >= {"determiner_noun_agreement", "island_effects"}
    assert all(path.stem in found.sizes for path in BLIMP.glob("*.jsonl"))


# -- miniworld's own --------------------------------------------------------------------------


def test_miniworlds_pairs_differ_in_one_word_and_only_the_good_one_is_of_the_grammar():
    found = contrasts(40)
    assert [p.paradigm for p in found] == [name for name in PARADIGMS for _ in range(40)]
    assert len({(p.paradigm, p.bad) for p in found}) == len(found)
    made = {s.text for d in generate(1500, 0) for s in d.sentences} \
        | {s.text for d in generate(300, 20_200_708) for s in d.sentences}
    for pair in found:
        good, bad = pair.good.split(), pair.bad.split()
        assert len(good) == len(bad) and sum(a != b for a, b in zip(good, bad)) == 1, pair
        assert pair.bad not in made
    assert np.mean([pair.good in made for pair in found]) > 0.9
    assert contrasts(3) == [p for i, p in enumerate(found) if i % 40 < 3]


def test_miniworlds_mistakes_are_mistakes():
    """By word lists of English, knowing nothing of the generator."""
    was = {"was": "were", "is": "are", "were": "was", "are": "is"}
    for pair in contrasts(40):
        (a, b), = [(x.strip(".,?!"), y.strip(".,?!"))
                   for x, y in zip(pair.good.split(), pair.bad.split()) if x != y]
        if pair.phenomenon == "subject-verb agreement":
            assert was.get(a) == b or {a + "s", a + "es", a[:-1] + "ies"} & {b} \
                or {b + "s", b + "es", b[:-1] + "ies"} & {a} or {a, b} == {"have", "has"}, (a, b)
        elif pair.paradigm == "this_or_these":
            assert {a, b} == {"this", "these"}
        elif pair.paradigm == "noun_after_numeral":
            assert a in (b + "s", b + "es", b + "en") and \
                {"two", "three"} & set(pair.good.split())
        elif pair.paradigm == "a_or_an":
            following = pair.good.split()[pair.good.split().index(a) + 1] if a else ""
            assert {a, b} == {"a", "an"} and following
        elif pair.paradigm == "his_or_her":
            woman = any(n in pair.good for n in ("Anna", "Mary", "Laura", "Emma"))
            assert (a, b) == (("her", "his") if woman else ("his", "her"))
        else:
            assert (a, b) in {("he", "him"), ("she", "her"), ("they", "them")}


def test_the_built_in_set():
    found = built_in(5)
    assert found.sizes == dict.fromkeys(PARADIGMS, 5)
    assert read_pairs("miniworld").sizes == dict.fromkeys(PARADIGMS, 200)


# -- one pair ---------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["original", "word_l2r"])
def test_the_parts_of_a_pair_sum_to_its_difference(model, variant):
    first, second = score(model, ["the cat walked on the mat .", "the dogs walked the new mat ."],
                          variant)
    found = parts(first, second)
    assert sum(p.bits for p in found) == pytest.approx((first.pll - second.pll) / math.log(2))
    assert [p.texts for p in found] == [
        ("the", "the"), ("cat", "dog ##s"), ("walk", "walk"), ("##ed", "##ed"), ("on", ""),
        ("the", "the"), ("", "new"), ("mat", "mat"), (".", ".")]
    cat = first.log_probabilities[1]
    dogs = second.log_probabilities[1:3].sum()
    assert found[1].bits == pytest.approx((cat - dogs) / math.log(2))
    assert (found[1].first, found[1].second) == ((2,), (2, 3)) and not found[1].same
    assert found[0].same and found[4].second == ()


def test_the_decisive_part_is_the_winners_best(model):
    first, second = score(model, ["the cat sat .", "the dog sat !"])
    for a, b in ((first, second), (second, first)):
        found = parts(a, b)
        margin = sum(p.bits for p in found)
        best = decisive(found)
        assert best.bits * margin > 0
        assert all(abs(p.bits) <= abs(best.bits) for p in found if p.bits * margin > 0)
    assert decisive(parts(first, first)) is None


# -- many pairs -------------------------------------------------------------------------------


def test_scores_of_pairs_are_those_of_their_sentences(model):
    table = score_pairs(model, PAIRS)
    for number in (0, 1, 2, 3, 5):
        good, bad = (score(model, [s])[0] for s in (PAIRS[number].good, PAIRS[number].bad))
        assert table.good[number] == pytest.approx(good.pll, abs=1e-4)
        assert table.bad[number] == pytest.approx(bad.pll, abs=1e-4)
        assert (table.good_pieces[number], table.bad_pieces[number]) == \
            (len(good.places), len(bad.places))
    assert table.good[2] == table.bad[2] and table.good[3] == table.bad[3], "ties to the bit"
    assert math.isnan(table.good[4]) and math.isnan(table.bad[4])
    assert "longer than" in table.left_out[4] and set(table.left_out.drop(4)) == {""}


def test_accuracy_counts_ties_as_one_half_and_says_what_is_left_out(model):
    table = evaluate(model, PairSet("x", PAIRS))
    table["good"] = [-1.0, -9.0, -5.0, -5.0, math.nan, -3.0]
    table["bad"] = [-2.0, -8.0, -5.0, -6.0, math.nan, -2.0]
    found = accuracies(table)
    assert found.values.tolist() == [
        ["p", "f", 2, 1, 0, 0, 0.5, *wilson(1, 2)],
        ["q", "f", 2, 1, 1, 0, 0.75, *wilson(1.5, 2)],
        ["r", "", 1, 0, 0, 1, 0.0, *wilson(0, 1)]]
    assert mean_accuracy(found)[0] == pytest.approx((0.5 + 0.75 + 0) / 3)
    groups = by_phenomenon(found)
    assert groups.phenomenon.tolist() == ["f", "r"] and groups.pairs.tolist() == [4, 1]
    assert groups.accuracy.tolist() == [0.625, 0.0]


@pytest.mark.parametrize(("right", "of"), [(0, 10), (10, 10), (3, 10), (842, 1000), (1, 1)])
def test_wilson_is_scipys(right, of):
    from scipy.stats import binomtest

    expected = binomtest(right, of).proportion_ci(method="wilson")
    assert wilson(right, of) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert wilson(0, 0) == (0.0, 1.0)


def test_the_interval_of_a_mean_over_paradigms():
    def table(counts, of):
        rows = [(f"p{i}", "", of, k, 0, 0, k / of, *wilson(k, of)) for i, k in enumerate(counts)]
        return pd.DataFrame(rows, columns=["paradigm", "phenomenon", "pairs", "right", "ties",
                                           "left_out", "accuracy", "low", "high"])

    assert mean_accuracy(table([7], 10)) == pytest.approx((0.7, *wilson(7, 10)))
    assert all(math.isnan(x) for x in mean_accuracy(table([], 10)))
    # It covers the true mean about as often as it says, and shrinks with the number of paradigms.
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.4, 1.0, 8)
    inside, widths = 0, []
    for _ in range(400):
        _, low, high = mean_accuracy(table(rng.binomial(40, truth), 40))
        inside += low <= truth.mean() <= high
        widths.append(high - low)
    assert 0.92 <= inside / 400 <= 0.99
    assert np.mean(widths) < 0.5 * np.mean(np.diff([wilson(30, 40)]))


def test_a_comparison_is_mcnemars():
    def table(right):
        return pd.DataFrame({"paradigm": "p", "sentence_good": [f"g{i}" for i in range(len(right))],
                             "sentence_bad": "b", "good": [float(r) for r in right], "bad": 0.5})

    first, second = [1] * 10 + [0] * 2 + [1] * 5, [0] * 10 + [1] * 2 + [1] * 5
    found = compare(table(first), table(second))
    assert (found.only_first, found.only_second) == (10, 2)
    expected = 2 * sum(math.comb(12, k) for k in range(3)) / 2 ** 12  # two-sided binomial tail
    assert found.p_value == pytest.approx(expected)
    assert compare(table(first), table(first)).p_value == 1.0


# -- kept results -----------------------------------------------------------------------------


def test_what_was_done_before_a_cancel_is_kept(model, tmp_path, monkeypatch):
    monkeypatch.setattr(minimal_pairs, "BLOCK", 1)
    pairs, calls = PairSet("x", PAIRS[:4]), []
    real = minimal_pairs.score_pairs

    def counted(model, block, *more):
        calls.append(block[0].good)
        return real(model, block, *more)

    monkeypatch.setattr(minimal_pairs, "score_pairs", counted)

    class Cancelled(Exception):
        pass

    def cancel(message, share):
        if share > 0.5:
            raise Cancelled

    with pytest.raises(Cancelled):
        evaluate(model, pairs, "original", tmp_path, cancel)
    done = evaluate(model, pairs, "original", tmp_path, kept_only=True)
    assert done.sentence_good.tolist() == [PAIRS[0].good, PAIRS[2].good], "one of each paradigm"
    calls.clear()
    told = []
    whole = evaluate(model, pairs, "original", tmp_path,
                     lambda message, share: told.append((message, share)))
    assert calls == [PAIRS[1].good, PAIRS[3].good] and told[-1] == ("q", 1.0)
    pd.testing.assert_frame_equal(whole, evaluate(model, pairs, "original"), check_exact=False)
    keys = [key for key, _ in list_cached(tmp_path, "pairs")]
    assert {key["checkpoint"] for key in keys} == {model.fingerprint} and len(keys) == 4
    assert evaluate(model, pairs, "word_l2r", tmp_path, kept_only=True).empty
    calls.clear()
    evaluate(model, PairSet("renamed", PAIRS[1:3]), "original", tmp_path)
    assert not calls, "results are known by the pairs, not by where they come from"


def test_no_mlm_head_is_said_before_anything_is_scored(tmp_path):
    import transformers

    tiny_models.save(tmp_path, transformers.BertForNextSentencePrediction)
    with pytest.raises(BertScopeError, match="no MLM head"):
        evaluate(load(tmp_path, device="cpu"), PairSet("x", PAIRS))
