"""The tasks' metrics against counts by hand, published scripts' rules and scikit-learn."""

import numpy as np
import pytest

from bertscope.finetuning import metrics
from bertscope.finetuning.outcome import calibration_error, reliability

# -- entities ---------------------------------------------------------------------------------


def entities(gold, predicted):
    return metrics.of_tags([gold.split()], [predicted.split()], True)


def test_a_mention_is_right_where_its_ends_and_its_type_are():
    """Two mentions, one found whole: precision 1/3 (three were claimed), recall 1/2."""
    found = entities("B-PER I-PER O B-LOC O O", "B-PER I-PER O B-LOC I-LOC B-PER")
    assert found["precision"] == pytest.approx(1 / 3) and found["recall"] == pytest.approx(1 / 2)
    assert found["f1"] == pytest.approx(2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2))
    assert found["accuracy"] == pytest.approx(4 / 6)


@pytest.mark.parametrize("gold, predicted, f1, errors", [
    ("B-PER I-PER", "B-PER I-PER", 1.0, 0),
    ("B-PER I-PER", "O O", 0.0, 0),
    ("O O", "O O", 0.0, 0),                      # nothing to find and nothing found
    ("O B-PER", "O I-PER", 1.0, 1),              # conlleval: an I- that continues nothing begins one
    ("B-PER I-PER", "I-PER B-PER", 0.0, 1),      # wrong order: two mentions of one word
    ("B-PER I-PER O", "B-PER I-LOC O", 0.0, 1),  # another type begins another mention
    ("B-PER B-PER", "B-PER I-PER", 0.0, 0),      # two mentions side by side are not one
    ("B-PER I-PER O I-PER", "B-PER I-PER O I-PER", 1.0, 1),
])
def test_bio_tags_and_their_order(gold, predicted, f1, errors):
    found = entities(gold, predicted)
    assert found["f1"] == pytest.approx(f1) and found["order_errors"] == errors


def test_f1_is_over_all_mentions_not_a_mean_of_sentences():
    gold = [["B-A", "O"], ["B-A", "B-A", "B-A"]]
    found = metrics.of_tags(gold, [["O", "O"], ["B-A", "B-A", "B-A"]], True)
    assert found["recall"] == pytest.approx(3 / 4) and found["f1"] == pytest.approx(6 / 7)


def test_which_tags_are_entities():
    for labels in ("B-PER I-PER O", "O I-PER I-LOC", "B-NP I-NP", "B I O", "B I E S", "B- I- O", "B-a-b O"):
        assert metrics.marks_entities(labels.split()), labels
        assert "F1 over whole entities" in metrics.how_judged(labels.split())
    for labels in ("NOUN VERB O", "O", "I O", "E S", "B-PER O X", "B-PER b-PER", "BIG SMALL"):
        assert not metrics.marks_entities(labels.split()), labels
        assert "by accuracy" in metrics.how_judged(labels.split())
    assert "'X' is none of" in metrics.how_judged(["B-PER", "O", "X"])
    assert "none of" not in metrics.how_judged(["NOUN", "O"])


@pytest.mark.parametrize("gold, predicted, f1, errors", [
    ("B I B I", "B I B I", 1.0, 0), ("B I B I", "B I I I", 0.0, 0), ("O B I O B", "O B I O O", 2 / 3, 0),
    ("B-NP I-NP B-VP", "B-NP I-NP B-NP", 0.5, 0), ("B I O", "O I O", 0.0, 1), ("B- I- O", "B- I- O", 1.0, 0)])
def test_entities_without_a_type_or_without_an_outside(gold, predicted, f1, errors):
    found = entities(gold, predicted)
    assert found["f1"] == pytest.approx(f1) and found["order_errors"] == errors


# -- answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("predicted, answers, exact, f1", [
    ("The Broncos!", ["Broncos"], 1, 1.0),                # articles and punctuation
    ("a  BIG   dog.", ["big dog"], 1, 1.0),               # case and spaces
    ("Denver Broncos", ["Broncos"], 0, 2 / 3),
    ("in 1999", ["1999", "in 1999", "year 1999"], 1, 1.0),  # the best of several
    ("the year 1999", ["1999", "spring of 1999"], 0, 2 / 3),
    ("", ["Broncos"], 0, 0.0),                            # nothing predicted, an answer there
    ("", [], 1, 1.0),                                     # rightly nothing
    ("Broncos", [], 0, 0.0),                              # something where there is none
    ("", ["The"], 1, 1.0),                                # an answer of articles only is none
    ("The", ["Broncos"], 0, 0.0),
    ("dog dog", ["dog"], 0, 2 / 3),                       # words are counted
    ("theatre", ["atre"], 0, 0.0),                        # an article within a word is none
    ("308分", ["308 分"], 1, 1.0),                         # Chinese: spaces mean nothing
    ("三百分", ["三百"], 0, 4 / 5),                         # characters are counted
    ("《黑豹》", ["黑豹"], 1, 1.0),                          # and its punctuation goes
])
def test_exact_match_and_f1(predicted, answers, exact, f1):
    assert metrics.exact_match(predicted, answers) == exact
    assert metrics.answer_f1(predicted, answers) == pytest.approx(f1)


def test_answers_are_averaged_and_told_apart():
    found = metrics.of_answers(["x", "", "", "y z"], [["x"], [], ["y"], ["y"]])
    assert found == pytest.approx({"exact_match": 0.5, "f1": (1 + 1 + 0 + 2 / 3) / 4,
                                   "f1_answered": (1 + 0 + 2 / 3) / 3, "f1_unanswered": 1.0})
    assert set(metrics.of_answers(["x"], [["x"]])) == {"exact_match", "f1"}


# -- labels and numbers -----------------------------------------------------------------------


def test_macro_f1_by_hand():
    """Class 0: P 1/2, R 1; class 1: P 1, R 1/3; class 2 never occurs and is never predicted."""
    found = metrics.of_labels([0, 1, 1, 1], [0, 0, 1, 0], 3)
    f1 = [2 * (1 / 3) / (1 / 3 + 1), 2 * (1 / 3) / (1 / 3 + 1)]
    assert found["accuracy"] == 0.5 and found["macro_f1"] == pytest.approx(np.mean(f1))
    assert metrics.of_labels([0, 1, 1], [1, 1, 0], 2)["f1"] == pytest.approx(1 / 2)


def test_correlations_of_a_line_and_of_what_never_varies():
    found = metrics.of_numbers([1, 2, 3, 4], [1, 4, 9, 16])
    assert found["spearman"] == pytest.approx(1.0) and 0.98 < found["pearson"] < 1.0
    assert metrics.of_numbers([1, 2], [3, 3]) == {"pearson": 0.0, "spearman": 0.0, "mse": 2.5}


# -- calibration ------------------------------------------------------------------------------


def test_calibration_error_by_hand():
    """Bins of width 1/2: four at .9 of which three are right, one at .4 that is right."""
    table = reliability([0.9] * 4 + [0.4], [1, 1, 1, 0, 1], bins=2)
    assert table["count"].tolist() == [1, 4]
    assert table["accuracy"].tolist() == [1.0, 0.75]
    assert calibration_error([0.9] * 4 + [0.4], [1, 1, 1, 0, 1], bins=2) == pytest.approx(
        0.8 * 0.15 + 0.2 * 0.6)


def test_a_probability_on_a_bins_edge_belongs_to_the_lower_one():
    assert reliability([0.5, 1.0, 0.0], [1, 1, 1], bins=2)["count"].tolist() == [2, 1]


def test_sure_and_right_is_calibrated():
    assert calibration_error(np.ones(5), np.ones(5)) == 0.0
