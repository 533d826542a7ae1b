"""The probes themselves: L-BFGS, logistic regression, one hidden layer, a mix of layers."""

import numpy as np
import pytest
import scipy.optimize
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bertscope.analysis.probing import baselines, classifier, lbfgs, mix, mlp, softmax
from probe_stand_ins import invented


def noisy(words=900, size=12, classes=4, seed=0):
    """Features whose scale differs a thousandfold, labels that are linear in them but for noise."""
    rng = np.random.default_rng(seed)
    clean = rng.normal(size=(words, size))
    scores = clean @ rng.normal(size=(size, classes)) + rng.gumbel(size=(words, classes))
    labels = scores.argmax(1)
    features = (clean * 10.0 ** rng.uniform(-2, 2, size) + rng.normal(size=size) * 5)
    return features.astype(np.float32), labels


# -- L-BFGS -------------------------------------------------------------------------------------


def valleys(scales: torch.Tensor):
    """P Rosenbrock valleys of different steepness."""
    def objective(x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            value = (scales * (x[:, 1] - x[:, 0] ** 2) ** 2 + (1 - x[:, 0]) ** 2).double()
            return value.detach(), torch.autograd.grad(value.sum(), x)[0]
    return objective


def test_each_problem_goes_its_own_way():
    """Together or alone, each ends where scipy ends, after as many steps as alone."""
    scales = torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)
    start = torch.tensor([[-1.2, 1.0], [0.5, -2.0], [-1.2, 1.0]], dtype=torch.float64)
    together = lbfgs.minimise(valleys(scales), start, 1e-6, 300)
    assert together.converged.all()
    for number, scale in enumerate(scales):
        alone = lbfgs.minimise(valleys(scale[None]), start[number:number + 1], 1e-6, 300)
        assert torch.allclose(alone.at[0], together.at[number], atol=1e-9)
        assert alone.iterations[0] == together.iterations[number]
        peer = scipy.optimize.minimize(
            lambda x: float(valleys(scale[None])(torch.tensor(x)[None])[0]), start[number].numpy(),
            method="L-BFGS-B")
        assert together.at[number].tolist() == pytest.approx(peer.x, abs=1e-3) == [1, 1]


def test_a_good_preconditioner_needs_one_step():
    """A quadratic whose exact inverse Hessian is given."""
    hessian = torch.tensor([[4.0, 1.0], [1.0, 300.0]])
    found = lbfgs.minimise(lambda x: ((x @ hessian * x).sum(1).double() / 2, x @ hessian),
                           torch.tensor([[3.0, -2.0]]), 1e-4, 50,
                           lambda g: g @ torch.linalg.inv(hessian))
    assert found.iterations[0] == 1 and found.at.abs().max() < 1e-6


def test_it_ends_without_a_minimum():
    found = lbfgs.minimise(lambda x: (x.sum(1).double(), torch.ones_like(x)),
                           torch.zeros(1, 3), 1e-4, 7)
    assert not found.converged[0] and found.iterations[0] == 7


# -- logistic regression ------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 4])
def test_it_equals_scikit_learn_with_the_penalty_that_it_chose(classes):
    x, y = noisy(classes=classes)
    fitted = classifier.fit(x[:500], y[:500], x[500:700], y[500:700])
    peers = {C: make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=2000, tol=1e-6))
             .fit(x[:500].astype(float), y[:500]) for C in classifier.STRENGTHS}
    best = max(peer.score(x[500:700], y[500:700]) for peer in peers.values())
    assert abs(fitted.valid_accuracy - best) <= 0.005
    assert np.mean(fitted.predict(x[700:]) == peers[fitted.C].predict(x[700:])) >= 0.99
    assert fitted.converged and fitted.C in classifier.STRENGTHS


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("strength", [1e-3, 0.1, 10.0])
def test_probabilities_are_scikit_learns(classes, strength):
    x, y = noisy(classes=classes, words=400)
    fitted = classifier.fit(x, y, x, y, [strength])
    peer = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=5000, tol=1e-8))
    peer.fit(x.astype(float), y)
    scores = fitted.scaler.transform(x) @ fitted.weights.T + fitted.intercept
    p = np.exp(scores - scores.max(1, keepdims=True))
    assert np.abs(p / p.sum(1, keepdims=True) - peer.predict_proba(x)).max() < 0.01


def test_the_solution_is_stationary():
    """At the minimum C * sum of cross-entropies + |W|^2 / 2 has gradient zero."""
    x, y = noisy()
    fitted = classifier.fit(x, y, x, y, strengths=[0.1])
    z = fitted.scaler.transform(x).astype(float)
    scores = z @ fitted.weights.T + fitted.intercept
    p = np.exp(scores - scores.max(1, keepdims=True))
    error = p / p.sum(1, keepdims=True) - np.eye(4)[y]
    gradient = 0.1 * error.T @ z + fitted.weights
    assert np.abs(gradient).max() / (0.1 * len(x)) < 2 * softmax.TOLERANCE
    assert np.abs(error.sum(0)).max() / len(x) < 2 * softmax.TOLERANCE


def test_layers_together_are_layers_alone():
    """Also where they choose other strengths, and one of them is noise."""
    x, y = noisy()
    noise = np.random.default_rng(1).normal(size=x.shape).astype(np.float32)
    plain = np.eye(12, dtype=np.float32)[y] + 0.05 * noise
    layers = [x, noise, plain]
    together = classifier.fit_many([f[:500] for f in layers], y[:500], [f[500:700] for f in layers],
                                   y[500:700])
    assert len({fitted.C for fitted in together}) > 1
    for features, fitted in zip(layers, together, strict=True):
        alone = classifier.fit(features[:500], y[:500], features[500:700], y[500:700])
        assert alone.C == fitted.C and alone.valid_accuracy == pytest.approx(fitted.valid_accuracy)
        assert np.mean(alone.predict(features[700:]) == fitted.predict(features[700:])) > 0.99


def test_of_many_words_some_choose_the_strength_and_all_are_fitted(monkeypatch):
    x, y = noisy(words=3000)
    monkeypatch.setattr(classifier, "PATH_ITEMS", 400)
    fitted = classifier.fit(x[:2000], y[:2000], x[2000:2500], y[2000:2500])
    whole = classifier.fit(x[:2000], y[:2000], x[2000:2500], y[2000:2500], [fitted.C])
    assert np.allclose(fitted.weights, whole.weights, atol=0.05)
    part = classifier.fit(x[:400], y[:400], x[2000:2500], y[2000:2500], [fitted.C])
    assert not np.allclose(fitted.weights, part.weights, atol=0.2)


def test_features_that_never_vary_do_no_harm():
    x, y = noisy()
    padded = np.concatenate([x, np.full((len(x), 2), 1e4), np.zeros((len(x), 1))], axis=1)
    plain, with_constants = (classifier.fit(f[:600], y[:600], f[600:], y[600:])
                             for f in (x, padded.astype(np.float32)))
    assert with_constants.valid_accuracy == pytest.approx(plain.valid_accuracy, abs=0.004)
    assert np.isfinite(with_constants.weights).all()


def test_the_scaler_gives_mean_zero_and_variance_one():
    x, _ = noisy()
    z = classifier.Scaler.fit(x).transform(x)
    assert z.dtype == np.float32
    assert np.allclose(z.mean(0), 0, atol=1e-3) and np.allclose(z.std(0), 1, atol=1e-3)


def test_word_identity_alone_gives_the_most_frequent_label_of_each_known_word():
    made = [w for s in invented(600) for w in s.words]
    train, test = made[:4000], made[4000:]
    types, tags = sorted({w.form for w in train}), sorted({w.upos for w in train})

    def one_hot(words):
        return (np.array([[w.form == t for t in types] for w in words], np.float32),
                np.array([tags.index(w.upos) for w in words]))

    fitted = classifier.fit(*one_hot(train), *one_hot(train), strengths=[10.0])
    predicted = [tags[i] for i in fitted.predict(one_hot(test)[0])]
    assert predicted == baselines.type_predictions(
        [w.form for w in train], [w.upos for w in train], [w.form for w in test])


@pytest.mark.parametrize("fit", [classifier.fit, mlp.fit])
def test_noise_and_shuffled_labels_give_the_majority(fit):
    x, y = noisy(words=3000, size=20, classes=3)
    skewed = np.where(y == 2, 2, np.where(np.arange(3000) % 5 == 0, 1, 0))
    np.random.default_rng(0).shuffle(skewed)
    fitted = fit(x[:1500], skewed[:1500], x[1500:2000], skewed[1500:2000])
    majority = np.mean(skewed[2000:] == np.bincount(skewed[:1500]).argmax())
    assert np.mean(fitted.predict(x[2000:]) == skewed[2000:]) == pytest.approx(majority, abs=0.03)


@pytest.mark.parametrize("fit", [classifier.fit, mlp.fit])
def test_validation_labels_unknown_to_training_count_as_wrong(fit):
    x, y = noisy(classes=2)
    valid = np.where(np.arange(200) < 50, 7, y[600:800])
    fitted = fit(x[:600], y[:600], x[600:800], valid)
    assert fitted.valid_accuracy == np.mean(fitted.predict(x[600:800]) == valid) <= 0.75


def test_it_can_be_cancelled_between_steps():
    class Cancelled(Exception):
        pass

    def check():
        raise Cancelled

    x, y = noisy()
    for fit in (classifier.fit, mlp.fit):
        with pytest.raises(Cancelled):
            fit(x, y, x, y, check=check)


# -- one hidden layer ---------------------------------------------------------------------------


def exclusive(count=3000, seed=0):
    """Whether exactly one of two signs is positive: no line can tell."""
    x = np.random.default_rng(seed).normal(size=(count, 6)).astype(np.float32)
    return x, ((x[:, 0] > 0) != (x[:, 1] > 0)).astype(int)


def test_a_hidden_layer_learns_what_a_line_cannot():
    x, y = exclusive()
    part = slice(0, 2000), slice(2000, 2500), slice(2500, 3000)
    scores = [np.mean(fit(x[part[0]], y[part[0]], x[part[1]], y[part[1]]).predict(x[part[2]])
                      == y[part[2]]) for fit in (classifier.fit, mlp.fit)]
    assert scores[0] < 0.6 and scores[1] > 0.93


def test_the_seed_decides_where_a_network_begins():
    x, y = exclusive(600)
    one, two, other = (mlp.fit(x[:400], y[:400], x[400:], y[400:], [0.0], seed) for seed in (1, 1, 2))
    assert np.array_equal(one.layers[0], two.layers[0])
    assert not np.allclose(one.layers[0], other.layers[0])


def test_the_decay_is_the_one_that_validation_prefers():
    """With little data and much noise the strongest decay is best; it shrinks the weights."""
    x, y = noisy(words=700, size=60)
    fits = [mlp.fit(x[:150], y[:150], x[150:500], y[150:500], [decay]) for decay in mlp.DECAYS]
    chosen = mlp.fit(x[:150], y[:150], x[150:500], y[150:500])
    assert np.allclose(chosen.layers[0], fits[mlp.DECAYS.index(chosen.decay)].layers[0], atol=1e-5)
    norms = [np.linalg.norm(fit.layers[0][:-1]) for fit in fits]
    assert norms[0] > norms[-1]


# -- a mix of layers ----------------------------------------------------------------------------


def layers_of_noise(count=4, size=10, words=1500, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(words, size)).astype(np.float32) for _ in range(count)], rng


def test_the_gradient_of_the_mix_is_that_of_autograd():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 40, 4, generator=generator).half()
    y = torch.randint(0, 3, (40,), generator=generator)
    problem = mix._Mix(x, y, 3)
    vector = torch.randn(18, generator=generator, dtype=torch.float32).requires_grad_()
    share, weights = problem.parts(vector)
    mixed = problem.gamma(share) * torch.einsum("l,lnh->nh", share, x.float())
    loss = torch.nn.functional.cross_entropy(mixed @ weights[:, :-1].T + weights[:, -1], y) \
        + 0.1 * weights[:, :-1].square().sum() / 2
    gradient, = torch.autograd.grad(loss, vector)
    value, ours = problem._loss(vector.detach(), 0.1)
    assert float(value) == pytest.approx(loss.item(), abs=1e-5)
    assert torch.allclose(ours[0], gradient, atol=1e-4)


def test_the_mix_finds_the_layer_that_holds_the_label():
    layers, rng = layers_of_noise()
    y = rng.integers(0, 3, 1500)
    layers[2][:, :3] += 4 * np.eye(3)[y]
    layers[3] *= 50  # a large norm is no merit
    found = mix.fit([x[:1000] for x in layers], y[:1000], [x[1000:1200] for x in layers], y[1000:1200])
    assert found.share[2] > 0.8 and found.centre == pytest.approx(2, abs=0.3)
    assert found.from_uniform > 1
    assert np.mean(found.predict([x[1200:] for x in layers]) == y[1200:]) > 0.95


def test_a_mix_of_equal_layers_prefers_none():
    (layer,), rng = layers_of_noise(1)
    y = (layer[:, 0] + rng.normal(size=1500) > 0).astype(int)
    found = mix.fit([layer[:1000]] * 3, y[:1000], [layer[1000:]] * 3, y[1000:])
    alone = classifier.fit(layer[:1000], y[:1000], layer[1000:], y[1000:])
    assert found.share == pytest.approx([1 / 3] * 3, abs=1e-3)
    assert found.centre == pytest.approx(1, abs=1e-3) and found.from_uniform < 1e-3
    assert found.valid_accuracy == pytest.approx(alone.valid_accuracy, abs=0.01)


def test_a_mix_uses_what_two_layers_hold():
    """Half of the label is in each of two layers: together they are better than either."""
    layers, rng = layers_of_noise(2)
    y = rng.integers(0, 4, 1500)
    layers[0][:, 0] += 3 * (y % 2)
    layers[1][:, 0] += 3 * (y // 2)
    found = mix.fit([x[:1000] for x in layers], y[:1000], [x[1000:] for x in layers], y[1000:])
    alone = [classifier.fit(x[:1000], y[:1000], x[1000:], y[1000:]).valid_accuracy for x in layers]
    assert found.valid_accuracy > max(alone) + 0.1 and 0.2 < found.share[0] < 0.8
