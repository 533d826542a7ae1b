"""Intervals, comparisons, the best set, onsets and expected layers."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest, norm, ttest_1samp
from sklearn.metrics import f1_score

from bertscope.analysis.probing import metrics
from bertscope.analysis.probing.centre import Estimate, expected_layer, onset
from bertscope.analysis.probing.uncertainty import (
    FEW, compare, few, holm, interval_of, p_value, resample, resampled, resamples_for, widened)

#: Accuracy of layers 0 to l together, and the expected layers that were published of them
#: (Tenney et al. 2019b, bert-base-uncased; from the paper's own notebook).
TENNEY = {
    "POS": ([88.4, 93.5, 95.0, 95.4, 96.0, 96.4, 96.4, 96.4, 96.6, 96.5, 96.6, 96.4, 96.5], 1.76),
    "Deps": ([85.2, 90.2, 91.3, 92.6, 93.7, 94.1, 94.6, 94.9, 95.2, 95.2, 95.1, 95.3, 95.2], 2.52),
    "Coref": ([80.0, 82.5, 84.3, 85.2, 86.9, 87.6, 88.3, 88.9, 90.3, 90.4, 90.6, 90.3, 90.2], 3.62),
    "SPR1": ([77.8, 78.8, 79.7, 80.3, 80.9, 81.7, 82.1, 82.9, 83.0, 83.5, 83.5, 83.6, 83.5], 4.29),
    "Rel": ([58.9, 66.0, 68.6, 70.9, 74.0, 74.7, 77.3, 78.2, 80.2, 81.2, 81.6, 83.3, 82.9], 4.16),
}


# -- scores -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_macro_f1_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 7, 200)
    predicted = np.where(rng.random(200) < 0.5, gold, rng.integers(2, 9, 200))
    assert metrics.macro_f1(gold, predicted) == pytest.approx(
        f1_score(gold, predicted, average="macro"), abs=1e-12)
    assert metrics.accuracy(gold, predicted) == np.mean(gold == predicted)


def test_new_types_are_counted_apart():
    found = metrics.scores(np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]),
                           np.array([True, True, False, False]))
    assert (found["accuracy"], found["accuracy_new_types"], found["new_types"]) == (0.75, 0.5, 2)
    none = metrics.scores(np.array([0, 1]), np.array([0, 1]), np.array([True, True]))
    assert none["new_types"] == 0 and np.isnan(none["accuracy_new_types"])


# -- resampling ---------------------------------------------------------------------------------


def single(correct, sentence, resamples, seed=0):
    """``resample`` for one cell and one seed."""
    return resample(correct[None, None], sentence, resamples, seed)[0]


def test_with_one_word_a_sentence_the_bootstrap_is_binomial():
    draws = single(np.arange(400) < 300, np.arange(400), 20_000, 1)
    assert draws.mean() == pytest.approx(0.75, abs=1e-3)
    assert draws.std() == pytest.approx(np.sqrt(0.75 * 0.25 / 400), rel=0.02)
    low, high = metrics.interval(draws)
    assert (low, high) == pytest.approx(
        (binom.ppf(0.025, 400, 0.75) / 400, binom.ppf(0.975, 400, 0.75) / 400), abs=0.004)


def test_copies_of_a_word_in_its_sentence_are_no_new_evidence():
    right = np.arange(100) < 70
    one = single(right, np.arange(100), 5000).std()
    nine = single(np.repeat(right, 9), np.repeat(np.arange(100), 9), 5000).std()
    assert nine == pytest.approx(one, rel=1e-9)


def test_cells_are_resampled_together():
    correct = np.random.default_rng(0).random((3, 2, 50)) < 0.8
    sentences = np.repeat([5, 3, 9, 70, 1], 10)  # numbers with gaps, in any order
    draws = resample(correct, sentences, 700, seed=4)
    assert draws.shape == (3, 700)
    assert np.array_equal(draws[1:2], resample(correct[1:2], sentences, 700, seed=4))


def test_seeds_that_differ_widen_the_interval():
    """Two seeds, of which one is right everywhere and the other half of the time."""
    half = np.arange(400) % 2 == 0
    different = np.stack([np.ones(400, bool), half])[None]
    alike = np.stack([half, half])[None]
    spread = [resample(seeds, np.arange(400), 4000).std() for seeds in (different, alike)]
    # Of two seeds a draw has the first 0, 1 or 2 times: accuracies .5, .75 and 1.
    assert spread[0] == pytest.approx(np.sqrt(0.5 * 0.25 ** 2), rel=0.05) and spread[1] < 0.03


# -- comparisons --------------------------------------------------------------------------------


def test_p_of_a_paired_difference_is_that_of_a_normal_test():
    rng = np.random.default_rng(0)
    first = rng.random(2000) < 0.8
    second = np.where(rng.random(2000) < 0.1, rng.random(2000) < 0.65, first)
    draws = resample(np.stack([first, second])[:, None], np.arange(2000), 4000)
    difference = first.mean() - second.mean()
    error = (first.astype(float) - second).std() / np.sqrt(2000)
    assert p_value(difference, draws[0] - draws[1]) == pytest.approx(
        2 * norm.sf(abs(difference) / error), abs=0.02)


def test_under_the_null_a_p_value_falls_below_5_percent_so_often():
    rng = np.random.default_rng(1)
    found = []
    for _ in range(200):
        both = rng.random((2, 1, 300)) < 0.7
        draws = resample(both, np.arange(300), 500)
        found.append(p_value(both[0].mean() - both[1].mean(), draws[0] - draws[1]) < 0.05)
    assert 0.02 <= np.mean(found) <= 0.09


def test_holm_by_hand():
    """Holm 1979: .01 * 4, .02 * 3, then the running maximum."""
    assert holm([0.04, 0.01, 0.02, 0.5]) == pytest.approx([0.08, 0.04, 0.06, 0.5])
    assert holm([0.03, 0.04]) == pytest.approx([0.06, 0.06])
    assert holm([0.9, 0.8]).tolist() == [1, 1] and holm([]).tolist() == []


def layers(accuracies, items=1500, seed=0):
    """Correct or not, by layers that mostly agree with each other."""
    lot = np.random.default_rng(seed).random(items)
    return np.array([lot < accuracy for accuracy in accuracies])[:, None], np.arange(items)


def test_the_best_set_holds_what_cannot_be_told_from_the_best():
    correct, sentence = layers([0.60, 0.85, 0.899, 0.90, 0.897, 0.70])
    found = compare(correct.mean((1, 2)), resample(correct, sentence))
    assert found.against == 3 and found.as_good.tolist() == [False, False, True, True, True, False]
    assert np.isnan(found.p[3]) and found.difference[3] == 0
    assert (found.low <= found.difference).all() and (found.difference <= found.high).all()
    assert found.p[0] < 0.01


def test_of_equal_layers_none_is_left_out_in_95_of_100_cases():
    """Which one is best is chosen by looking: compared with the winner plainly, many would be."""
    rng, left_out, plainly = np.random.default_rng(0), [], []
    for number in range(150):
        right = rng.beta(8, 2, 60)[np.arange(240) // 4]  # sentences of four words, easy and hard ones
        correct = rng.random((7, 1, 240)) < right
        accuracy, draws = correct.mean((1, 2)), resample(correct, np.arange(240) // 4, 500, number)
        left_out.append(not compare(accuracy, draws).as_good.all())
        plainly.append(not compare(accuracy, draws, int(accuracy.argmax())).as_good.all())
    assert np.mean(left_out) <= 0.08 < np.mean(plainly)


def test_more_comparisons_get_more_resamples():
    assert resamples_for(3) == resamples_for(10) < resamples_for(200)
    assert 200 / (resamples_for(200) + 1) < 0.05 / 5  # the smallest p, times their number


# -- where --------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TENNEY)
def test_the_expected_layers_of_the_paper(task):
    """As far as scores rounded to a tenth of a point allow."""
    scores, published = TENNEY[task]
    certain = np.repeat(np.array(scores)[:, None] / 100, 50, axis=1)
    found = expected_layer(np.array(scores) / 100, certain)
    assert found.value == pytest.approx(published, abs=0.05)
    assert found.low == pytest.approx(found.value)


def test_without_a_significant_gain_there_is_no_expected_layer():
    correct, sentence = layers([0.80, 0.803, 0.801, 0.802], items=300)
    noisy = resample(np.random.default_rng(0).permuted(correct, axis=2), sentence)
    found = expected_layer(correct.mean((1, 2)), noisy)
    assert (found.value, found.low, found.high) == (None, None, None) and found.p > 0.05
    assert found.gain == pytest.approx(0.002, abs=0.01)
    worse, sentence = layers([0.9, 0.7])
    assert expected_layer(worse.mean((1, 2)), resample(worse, sentence)).value is None


# -- when ---------------------------------------------------------------------------------------


def learnt(accuracies, items=2000):
    correct, sentence = layers(accuracies, items)
    return correct.mean((1, 2)), resample(correct, sentence, 500)


def test_the_onset_is_where_half_of_the_gain_is_reached():
    steps = [0, 1, 3, 7, 15, 31]                      # log2(step + 1) = 0 ... 5
    accuracies, draws = learnt([0.2, 0.2, 0.2, 0.3, 0.7, 0.8])
    found = onset(steps, accuracies, draws)
    # Half of .2 -> .8 is .5, half way between .3 at 7 and .7 at 15: log2(x + 1) = 3.5.
    assert found.value == pytest.approx(2 ** 3.5 - 1, rel=0.05)
    assert found.p < 0.01


def test_an_onset_is_known_no_better_than_the_checkpoints_are_dense():
    """From step 0 to step 1000 nothing is known: it may have been learnt at once or at last."""
    found = onset([0, 1000, 2000], *learnt([0.2, 0.8, 0.8]))
    assert (found.low, found.high) == (0, 1000) and found.low < found.value < found.high
    dense = onset([0, 1, 3, 7, 15, 31], *learnt([0.2, 0.2, 0.2, 0.3, 0.7, 0.8]))
    assert (dense.low, dense.high) == (7, 15)


def test_what_is_not_learnt_has_no_onset():
    for accuracies in ([0.5, 0.5, 0.5], [0.8, 0.7, 0.6], [0.5, 0.9, 0.5]):
        found = onset([0, 10, 100], *learnt(accuracies))
        assert found.value is None and found.low is None
    assert onset([5], np.array([0.5]), np.zeros((1, 9))) == Estimate(None, None, None, 0.0, 1.0)


def test_the_first_crossing_counts():
    """A task that rises, falls and rises again."""
    found = onset([0, 1, 2, 3, 4], *learnt([0.1, 0.9, 0.2, 0.2, 0.9]))
    assert 0 < found.value <= 1


def test_an_early_task_is_before_a_late_one():
    steps = [0, 10, 100, 1000, 10_000]
    early = onset(steps, *learnt([0.2, 0.6, 0.9, 0.9, 0.9]))
    late = onset(steps, *learnt([0.2, 0.2, 0.25, 0.6, 0.9]))
    assert early.high < late.low


def test_several_estimates_are_corrected_for_their_number():
    sure, barely = Estimate(3.0, 2.0, 4.0, 0.5, 0.001), Estimate(1.0, 0.5, 2.0, 0.1, 0.03)
    assert Estimate.together([barely]) == [barely]
    both = Estimate.together([barely, sure, barely])
    assert both[1].value == 3.0 and both[1].p == pytest.approx(0.003)
    assert both[0] == both[2] == Estimate(None, None, None, 0.1, pytest.approx(0.06))


# -- too little to say anything ---------------------------------------------------------------


def test_from_few_sentences_nothing_is_said_of_chance():
    """Each of five sentences is against it: the bootstrap is sure, a sign test is not."""
    correct = np.stack([np.ones((1, 40), bool), np.zeros((1, 40), bool)])
    for sentences, said in ((5, False), (6, True)):
        sentence = np.arange(40) % sentences
        draws = resampled(correct, sentence)[1]
        assert np.isfinite(draws).all() == said
        assert (p_value(1.0, draws[0] - draws[1]) < 0.05) == said
        assert compare(np.array([1.0, 0.0]), draws).as_good.tolist() == [True, not said]
    assert 2 * binom.cdf(0, 5, 0.5) > 0.05 > 2 * binom.cdf(0, 6, 0.5)


def test_all_right_is_not_certain():
    """The ends of Clopper and Pearson's interval, as SciPy has it."""
    accuracy, sentence = np.array([1.0, 0.0, 0.5]), np.arange(20)
    correct = np.stack([np.ones(20), np.zeros(20), np.arange(20) % 2])[:, None]
    low, high = interval_of(accuracy, resample(correct, sentence), 20)
    whole, nothing = (binomtest(k, 20).proportion_ci(method="exact") for k in (20, 0))
    assert (low[0], high[0]) == pytest.approx((whole.low, 1))
    assert (low[1], high[1]) == pytest.approx((0, nothing.high))
    assert 0.2 < low[2] < 0.35 < 0.65 < high[2] < 0.8


def some_sentences(rng, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Words right in 70 of 100 cases, easy and hard sentences of 1 to 30 words."""
    sentence = np.repeat(np.arange(count), rng.integers(1, 31, count))
    return rng.random(len(sentence)) < rng.beta(7, 3, count)[sentence], sentence


@pytest.mark.parametrize("count", [8, 15])
def test_95_percent_intervals_of_few_sentences_hold_the_truth_so_often(count):
    rng, plain, wide = np.random.default_rng(0), [], []
    for number in range(400):
        correct, sentence = some_sentences(rng, count)
        accuracy, draws = resampled(correct[None, None], sentence, 500, number)
        narrow = resample(correct[None, None], sentence, 500, number)
        for found, own in ((plain, narrow), (wide, draws)):
            low, high = interval_of(accuracy, own, count)
            found.append(low[0] <= 0.7 <= high[0])
    assert np.mean(plain) < 0.915 and 0.935 <= np.mean(wide) <= 0.985


def test_of_many_sentences_draws_stay_as_they_are():
    draws = np.random.default_rng(0).random((3, 50))
    sentence = np.arange(20_000) // 4
    assert widened(draws.mean(1), draws, sentence) == pytest.approx(draws, abs=1e-3)


def test_the_draws_are_widened_to_the_t_test_of_the_sentences():
    """One word a sentence: the usual standard error with n - 1, times the quantile of t."""
    values = np.random.default_rng(3).normal(size=12)
    mean, draws = resampled(values[None, None], np.arange(12), 40_000)
    wanted = ttest_1samp(values, 0).confidence_interval(0.95)
    low, high = metrics.interval(draws[0])
    assert mean[0] == pytest.approx(values.mean())
    assert (low, high) == pytest.approx((wanted.low, wanted.high), abs=0.06)


def test_a_share_stays_a_share():
    correct = (np.arange(12) > 0)[None, None]
    accuracy, draws = resampled(correct, np.arange(12))
    low, high = interval_of(accuracy, draws, 12)
    assert draws.max() > 1 and high[0] == 1 and 0.5 < low[0] < 0.9


def test_it_is_said_that_intervals_of_few_sentences_are_rough():
    assert few(FEW) == "" and "rough" in few(FEW - 1) and "too few" in few(5)
