"""Codelengths: exact where they are known, in bits and not in nats."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bertscope.analysis.probing import codelength, mlp
from bertscope.analysis.probing.codelength import FRACTIONS, LinearCoder, boundaries, online_code


def cloud(items=2000, size=16, classes=4, seed=0, signal=0.0):
    """Noise, with ``signal`` times the label's own direction in it."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, items)
    x = rng.normal(size=(items, size)) + signal * np.eye(size)[y]
    return ((x - x.mean(0)) / x.std(0)).astype(np.float32), y


def uniform(classes):
    """A probe that answers every label with the same probability."""
    return lambda known, end: np.array([(end - known) * np.log2(classes)])


@pytest.mark.parametrize("items, classes", [(2000, 4), (777, 17), (3, 2), (1, 3)])
def test_a_uniform_probe_compresses_to_exactly_one(items, classes):
    code = online_code(np.zeros(items, int), classes, uniform(classes))
    assert code.compression == pytest.approx(1, abs=1e-12)
    assert code.bits == pytest.approx(items * np.log2(classes)) == code.uniform


@pytest.mark.parametrize("seed", range(3))
def test_the_code_of_random_labels_is_the_uniform_one(seed):
    x, y = cloud(seed=seed)
    code = online_code(y, 4, LinearCoder(x, y, 4))
    assert code.compression == pytest.approx(1, abs=0.05)


def test_a_network_is_also_uniform_on_random_labels():
    x, y = cloud(items=400)
    code = online_code(y, 4, mlp.MLPCoder(x, y, 4), (0.1, 0.5, 1.0))
    assert code.compression == pytest.approx(1, abs=0.1)


def test_one_bit_that_is_plain_to_see_costs_little_more_than_the_first_block():
    for kind, items in ((LinearCoder, 2000), (mlp.MLPCoder, 500)):
        x, y = cloud(items, classes=2, signal=40)
        code = online_code(y, 2, kind(x, y, 2), (0.02, 0.1, 0.5, 1.0))
        assert items / 50 < code.bits < items / 10


def test_it_is_in_bits():
    """Known probabilities: a quarter each, then one half, by hand. The reference code would add
    nats to the first block's bits (ln 2 times as many)."""
    labels = np.array([0, 1, 2, 3] * 25)
    code = online_code(labels, 4, lambda known, end: np.array([(end - known) * 1.0]), (0.1, 1.0))
    assert code.bits == pytest.approx(10 * 2 + 90 * 1)
    assert code.blocks == ((10, 20.0), (100, 90.0))
    assert code.bits != pytest.approx(10 * 2 + 90 * np.log(2))
    assert code.entropy == pytest.approx(2) and code.compression == pytest.approx(200 / 110)


def test_probabilities_are_turned_into_bits_as_scikit_learn_would():
    """One block coded after another, against scikit-learn with the same pseudo-items."""
    x, y = cloud(items=600, classes=3, signal=1.5)
    ours = LinearCoder(x, y, 3, strengths=[0.1])(200, 600)
    peer = LogisticRegression(C=0.1, tol=1e-6, max_iter=2000).fit(
        np.concatenate([x[:200], np.zeros((3, 16))]).astype(float), np.append(y[:200], [0, 1, 2]))
    p = peer.predict_proba(x[200:].astype(float))[np.arange(400), y[200:]]
    assert ours[0] == pytest.approx(-np.log2(p).sum(), rel=0.005)


def test_strengths_together_are_strengths_alone(monkeypatch):
    x, y = cloud(items=500, classes=3, signal=1.5)
    together = LinearCoder(x, y, 3)(100, 500)
    monkeypatch.setattr(codelength, "TOGETHER", 0)
    assert LinearCoder(x, y, 3)(100, 500) == pytest.approx(together, rel=0.01)


def test_labels_that_were_not_sent_yet_stay_possible():
    x, y = cloud(items=400, classes=4, signal=3)
    y[:200] = 0                                            # three labels appear only later
    for coder in (LinearCoder(x, y, 4), mlp.MLPCoder(x, y, 4)):
        bits = coder(200, 201 + int(np.argmax(y[200:] > 0)))
        assert np.isfinite(bits).all() and bits.max() < 60


def test_the_choice_of_a_setting_is_sent_too():
    """Four settings: two bits to say which; the best over all blocks, not the best of each."""
    blocks = iter([np.array([5.0, 9.0, 9.0, 9.0]), np.array([50.0, 20.0, 30.0, 40.0])])
    code = online_code(np.zeros(40, int), 2, lambda known, end: next(blocks), (0.25, 0.5, 1.0))
    assert code.setting == 1 and code.bits == 10 + 9 + 20 + 2


def test_the_blocks_are_the_papers_fractions():
    assert boundaries(1000) == [1, 2, 4, 8, 16, 32, 62, 125, 250, 500, 1000]
    assert boundaries(10) == [1, 2, 5, 10] or boundaries(10)[-1] == 10
    assert FRACTIONS[:5] == (0.001, 0.002, 0.004, 0.008, 0.016)
    for items in (1, 2, 5, 999):
        ends = boundaries(items)
        assert ends == sorted(set(ends)) and ends[0] >= 1 and ends[-1] == items


def test_skewed_labels_are_also_measured_against_their_frequencies():
    """Nine of ten labels are the same: a probe that knows that much is no better than frequency."""
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.1).astype(int)
    x = rng.normal(size=(4000, 8)).astype(np.float32)
    code = online_code(y, 2, LinearCoder(x, y, 2))
    assert code.compression > 1.9
    assert code.compression_by_frequency == pytest.approx(1, abs=0.05)


def test_later_blocks_are_coded_by_what_was_sent_before_only():
    """Another last block changes no earlier one."""
    x, y = cloud(signal=1)
    other = np.append(y[:1000], (y[1000:] + 1) % 4)
    first, second = (online_code(labels, 4, LinearCoder(x, labels, 4, [0.1])) for labels in (y, other))
    assert first.blocks[:-1] == second.blocks[:-1] and first.blocks[-1] != second.blocks[-1]
