"""Topic or coherence: the four kinds of pairs, their numbers against scikit-learn, the words."""

import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_models
from sklearn.metrics import roc_auc_score

from bertscope.analysis import coherence_summary, held_out, topic_baseline
from bertscope.analysis.activations import encode, load
from bertscope.analysis.boundaries import boundaries, sentences_of
from bertscope.analysis.coherence import KINDS, as_read, draw, model_scores, pairs_of
from bertscope.analysis.coherence_summary import Estimate, Summary, difference, summarise
from bertscope.analysis.coherence_verdict import conclude
from bertscope.analysis.pairs import next_sentence
from bertscope.errors import BertScopeError, CorpusGone

#: Sentences that say where they stand.
DOCUMENTS = [[f"d{d} s{s}" for s in range(length)] for d, length in enumerate((5, 9, 2, 30, 7))]


def places(text: str) -> tuple[int, list[int]]:
    """The document and the sentences of a text."""
    found = [tuple(map(int, pair)) for pair in re.findall(r"d(\d+) s(\d+)", text)]
    assert len({d for d, _ in found}) == 1
    return found[0][0], [s for _, s in found]


# -- drawing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2])
def test_the_four_kinds_are_what_they_are_called(k):
    anchors = draw(DOCUMENTS, 100, seed=3, sentences=k)
    assert len(anchors) > 20
    for anchor in anchors:
        pairs = {kind: [places(text) for text in anchor.pairs[kind]] for kind in KINDS}
        (d, a), (of_b, b) = pairs["next"]
        assert d == of_b == anchor.document and a[0] == anchor.place
        assert a + b == list(range(a[0], a[0] + 2 * k)), "B goes on where A ends"
        assert pairs["swapped"] == pairs["next"][::-1]
        assert pairs["same"][0] == pairs["other"][0] == (d, a)
        of_same, same = pairs["same"][1]
        assert of_same == d and not set(same) & set(a + b)
        assert same == list(range(same[0], same[0] + k))
        of_other, other = pairs["other"][1]
        assert of_other != d and other == list(range(other[0], other[0] + k))
    assert not {d for d, document in enumerate(DOCUMENTS) if len(document) < 3 * k} & {
        places(text)[0] for anchor in anchors for pair in anchor.pairs.values() for text in pair}


def test_every_free_place_can_be_drawn():
    """Of a document of 5 sentences with A = 1, B = 2, the others are 0, 3 and 4."""
    found = {places(anchor.pairs["same"][1])[1][0]
             for seed in range(60) for anchor in draw(DOCUMENTS, 200, seed)
             if anchor.document == 0 and anchor.place == 1}
    assert found == {0, 3, 4}


def test_anchors_are_spread_and_a_larger_count_begins_with_the_smaller():
    few, many = draw(DOCUMENTS, 4, 7), draw(DOCUMENTS, 12, 7)
    assert {anchor.document for anchor in few} == {0, 1, 3, 4}
    assert many[:4] == few and few != draw(DOCUMENTS, 4, 8)
    places_used = [(anchor.document, anchor.place) for anchor in draw(DOCUMENTS, 10_000)]
    assert len(set(places_used)) == len(places_used)


def test_a_text_that_spells_like_the_true_one_is_never_drawn():
    refrain = ["la la", "one", "la la", "two", "la la", "...", "three"]
    for anchor in draw([refrain, ["la la", "one", "four", "two", "five"]], 500, 0):
        a, b = anchor.pairs["next"]
        assert a != b
        for kind in ("same", "other"):
            assert anchor.pairs[kind][1] not in (a, b)
        assert not any(text == "..." for pair in anchor.pairs.values() for text in pair)


@pytest.mark.parametrize("documents", [
    [], [["a b", "c d", "e f"]], [["a"], ["b"], ["c"]],
    [["so"] * 9, ["so"] * 9], [["x y", "x z", "x w"], ["??", "!!", ".."]]])
def test_too_few_documents_are_a_sentence(documents):
    with pytest.raises(BertScopeError, match="documents"):
        draw(documents, 10)


# -- as the model reads -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("bert")
    tiny_models.save(path)
    return load(path, device="cpu")


def test_what_is_nearest_to_the_seam_is_kept(model):
    left = " ".join(f"cat{i % 10}" for i in range(60)) + " dog unbelievable"
    right = "unbelievable house " + "mat " * 60
    a, b = model.text_encoder.nearest(left, right)
    assert left.endswith(a) and right.startswith(b) and len(a) < len(left) and len(b) < len(right)
    read = encode(model, a, b)
    assert not read.truncated and 36 <= len(read) <= 40
    assert a.split()[0] in left.split(), "no word is cut in two"
    assert model.text_encoder.nearest("a cat", "a dog") == ("a cat", "a dog")
    # The shorter one is kept whole.
    assert model.text_encoder.nearest("the new cat", right)[0] == "the new cat"
    # One endless word has to be cut within.
    a, b = model.text_encoder.nearest("q" * 400, "z" * 400)
    assert a and b and set(a) == {"q"} and set(b) == {"z"}


def test_texts_are_cut_before_they_are_swapped(model):
    documents = [[f"{word} " * 30 + f"number {i}" for i in range(6)] for word in ("cat", "dog")]
    whole = draw(documents, 6)
    anchors, longer = as_read(model, whole)
    assert longer == len(anchors) == 6
    for before, anchor in zip(whole, anchors):
        a, b = anchor.pairs["next"]
        assert before.pairs["next"][0].endswith(a) and before.pairs["next"][1].startswith(b)
        assert anchor.pairs["swapped"] == (b, a)
        assert not any(encode(model, *pair).truncated for pair in anchor.pairs.values())
    short = draw([["a cat", "a dog", "the mat"], ["a house", "the dog", "new"]], 2)
    assert as_read(model, short) == (short, 0)


def test_scores_are_the_single_answers(model):
    anchors = draw([["a cat sat", "a dog", "the mat", "on"], ["house", "the new dog", "play"]], 3)
    scores = model_scores(model, anchors)
    assert scores.shape == (3, 4)
    for row, anchor in zip(scores, anchors):
        for score, kind in zip(row, KINDS):
            assert score == pytest.approx(next_sentence(model, *anchor.pairs[kind]).p_next, abs=1e-5)


# -- numbers ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured():
    """Scores of 90 anchors in 15 documents that are not alike, with ties."""
    rng = np.random.default_rng(5)
    documents = np.sort(rng.integers(0, 15, 90)) * 3  # numbers need not be consecutive
    taste = rng.normal(0, 1, 46)[documents]
    logits = np.array([1.0, 0.4, -0.8, 0.9]) + taste[:, None] + rng.normal(0, 1, (90, 4))
    return (1 / (1 + np.exp(-logits))).round(2), documents


def test_auc_is_scikit_learns(measured):
    scores, documents = measured
    summary = summarise(scores, documents)
    for k, kind in enumerate(KINDS[1:], start=1):
        labels = np.repeat([1, 0], len(scores))
        expected = roc_auc_score(labels, np.concatenate([scores[:, 0], scores[:, k]]))
        assert summary.auc[kind].value == pytest.approx(expected, abs=1e-12)
    assert summary.anchors == 90 and summary.documents == len(set(documents))
    assert summary.mean["other"].value == pytest.approx(scores[:, 2].mean())
    assert summary.says_next["same"].value == pytest.approx((scores[:, 1] > 0.5).mean())
    assert summary.right["same"].value == pytest.approx((scores[:, 1] <= 0.5).mean())
    assert summary.right["next"] == summary.says_next["next"]


def test_intervals_are_those_of_resampled_documents_done_slowly(measured, monkeypatch):
    scores, documents = measured
    monkeypatch.setattr(coherence_summary, "RESAMPLES", 60)
    summary = summarise(scores, documents)
    names = np.unique(documents)
    drawn = np.random.default_rng(0).multinomial(len(names), np.full(len(names), 1 / len(names)),
                                                 size=60)
    aucs, means = [], []
    for counts in drawn:
        rows = np.concatenate([np.tile(np.flatnonzero(documents == name), count)
                               for name, count in zip(names, counts)]).astype(int)
        taken = scores[rows]
        aucs.append(roc_auc_score(np.repeat([1, 0], len(rows)),
                                  np.concatenate([taken[:, 0], taken[:, 2]])))
        means.append(taken[:, 3].mean())
    low, high = np.percentile(aucs, (2.5, 97.5))
    assert summary.auc["other"].low == pytest.approx(low, abs=1e-9)
    assert summary.auc["other"].high == pytest.approx(high, abs=1e-9)
    low, high = np.percentile(means, (2.5, 97.5))
    assert (summary.mean["swapped"].low, summary.mean["swapped"].high) == pytest.approx((low, high))


def test_whole_documents_are_resampled_not_pairs():
    """Ten copies of every anchor add no knowledge, so they narrow no interval."""
    rng = np.random.default_rng(0)
    scores, documents = rng.random((20, 4)), np.arange(20)
    once, tenfold = (summarise(np.tile(scores, (n, 1)), np.tile(documents, n)) for n in (1, 10))
    for kind in KINDS:
        assert once.mean[kind].high == pytest.approx(tenfold.mean[kind].high)
    assert once.auc["same"].low == pytest.approx(tenfold.auc["same"].low)


def test_where_all_agree_the_interval_is_wilsons():
    scores = np.tile([0.9, 0.1, 0.1, 0.1], (30, 1))
    right = summarise(scores, np.repeat(np.arange(10), 3)).right["next"]
    z2 = 1.959964**2
    assert right.value == 1.0 and right.high == pytest.approx(1.0)
    assert right.low == pytest.approx(10 / (10 + z2))  # closed form for 10 of 10


def test_the_difference_is_of_the_same_resamples(measured):
    scores, documents = measured
    same = difference(scores, scores, documents)
    assert all(found == Estimate(0, 0, 0) for found in same.values())
    better = scores.copy()
    better[:, 2] -= 1
    ahead = difference(better, scores, documents)
    expected = summarise(better, documents).auc["other"].value - \
        summarise(scores, documents).auc["other"].value
    assert ahead["other"].value == pytest.approx(expected) and ahead["other"].above(0)
    assert ahead["same"] == Estimate(0, 0, 0)


def test_the_table_has_a_row_for_each_kind(measured):
    table = summarise(*measured).frame()
    assert table.kind.tolist() == list(KINDS)
    assert np.isnan(table.auc[0]) and (table.auc_low[1:] < table.auc_high[1:]).all()


# -- words ------------------------------------------------------------------------------------


def summary(other, same, swapped, documents=100):
    """A summary with these AUCs, each plus or minus .02."""
    aucs = {kind: Estimate(value, value - 0.02, value + 0.02)
            for kind, value in (("other", other), ("same", same), ("swapped", swapped))}
    return Summary(400, documents, {}, {}, {}, aucs)


def ahead(**values):
    return {kind: Estimate(value, value - 0.02, value + 0.02) for kind, value in values.items()}


WORDS = summary(0.9, 0.7, 0.5)


@pytest.mark.parametrize(("found", "gain", "headline"), [
    # topic only: what it knows within a document, shared words know better
    (summary(0.9, 0.62, 0.505), ahead(other=0.0, same=-0.08, swapped=0.005),
     "What it has learnt is topic, as far as these pairs can tell."),
    # the same, but undecided whether better than the bag of words
    (summary(0.9, 0.71, 0.51), ahead(other=0.0, same=0.01, swapped=0.01),
     "What it has learnt is topic, as far as these pairs can tell."),
    (summary(0.95, 0.8, 0.97), ahead(other=0.05, same=0.1, swapped=0.47),
     "It has learnt topic and coherence: which sentence comes next within a document and the order "
     "of two neighbouring texts."),
    (summary(0.58, 0.58, 0.81), ahead(other=-0.37, same=0.0, swapped=0.31),
     "It has learnt coherence better than topic: the order of two neighbouring texts."),
    (summary(0.95, 0.6, 0.6), ahead(other=0.05, same=-0.1, swapped=0.1),
     "It has learnt topic best, but coherence too: the order of two neighbouring texts."),
    (summary(0.5, 0.49, 0.98), ahead(other=-0.4, same=-0.2, swapped=0.48),
     "It has learnt coherence: the order of two neighbouring texts. Whether also topic, these pairs "
     "cannot tell."),
    (summary(0.5, 0.5, 0.51), ahead(other=-0.4, same=-0.2, swapped=0.01),
     "Whether it has learnt anything about pairs, topic or coherence, cannot be told."),
])
def test_the_conclusion_says_what_the_intervals_carry(found, gain, headline):
    assert conclude(found, WORDS, gain).headline == headline


def test_what_overlaps_is_called_undecided():
    verdict = conclude(summary(0.9, 0.51, 0.4), WORDS, ahead(other=0.0, same=-0.19, swapped=-0.1))
    other, same, swapped = verdict.details
    assert "cannot be told" in other and "better than a bag of words" in other
    assert "may be chance" in same and "A bag of words is better, 70%" in same
    assert "less than chance" in swapped and "bag of words cannot know" in swapped
    assert "(95% interval 88% to 92%)" in other


def test_few_documents_are_said_and_without_words_nothing_is_compared():
    verdict = conclude(summary(0.9, 0.8, 0.5, documents=12))
    assert verdict.details[-1] == "The intervals rest on only 12 documents."
    assert not any("bag of words is" in detail for detail in verdict.details)
    # Above chance within a document is no proof of more than topic, where nothing is compared.
    assert verdict.headline == "What it has learnt is topic, as far as these pairs can tell."


# -- the bag of words -------------------------------------------------------------------------


def topical(count: int, seed: int) -> list[list[str]]:
    """Documents on one of three subjects; in each the word of the day goes on."""
    rng = np.random.default_rng(seed)
    subjects = (["ship", "sea", "wind", "sail", "port"], ["bread", "oven", "salt", "cake", "jam"],
                ["horse", "farm", "hay", "barn", "cow"])
    return [[f"the {a} and the {b} of the {c}" for a, b, c in
             (rng.choice(subjects[d % 3], 3) for _ in range(12))] for d in range(count)]


def test_the_bag_of_words_knows_topics_and_is_blind_to_order():
    fitted = topic_baseline.fit(topical(30, 1), topical(9, 2))
    anchors = draw(topical(12, 3), 60)
    scores = fitted.p_next(pairs_of(anchors)).reshape(-1, 4)
    assert np.array_equal(scores[:, 0], scores[:, 3]), "swapping changes nothing at all"
    found = summarise(scores, np.array([anchor.document for anchor in anchors]))
    assert found.auc["other"].value > 0.75  # a third of the others is on the same subject
    assert found.auc["swapped"] == Estimate(0.5, 0.5, 0.5)
    assert 0.7 < fitted.valid_accuracy <= 1 and fitted.features in ("words", "topics")
    assert ((0 <= scores) & (scores <= 1)).all()


def test_its_cosine_is_the_cosine_and_it_repeats():
    words = topic_baseline.TfidfVectorizer(tokenizer=topic_baseline._WORD.findall,
                                           token_pattern=None, sublinear_tf=True)
    words.fit(["a b c", "a d", "e f a"])
    topics = SimpleNamespace(transform=lambda x: x.toarray()[:, :2])
    pairs = [("a b", "a c"), ("d", "d"), ("e", "zzz")]
    cosine = topic_baseline._features(words, topics, pairs)["words"][:, 0]
    for (a, b), found in zip(pairs, cosine):
        x, y = (words.transform([text]).toarray()[0] for text in (a, b))
        scale = np.linalg.norm(x) * np.linalg.norm(y)
        assert found == pytest.approx(x @ y / scale if scale else 0.0)
    one, two = (topic_baseline.fit(topical(12, 1), topical(6, 2), seed=4) for _ in range(2))
    assert np.array_equal(one.p_next([("the ship", "the sea")]), two.p_next([("the ship", "the sea")]))


def test_it_splits_scripts_without_spaces():
    assert topic_baseline._WORD.findall("北京 is big, isn't it") == \
        ["北", "京", "is", "big", "isn", "t", "it"]


def test_too_few_documents_to_learn_from_are_a_sentence():
    with pytest.raises(BertScopeError, match="Fewer than two documents"):
        topic_baseline.fit(topical(1, 0), topical(9, 2))
    numbers = [["1", "2", "3", "4"], ["5", "6", "7", "8"]]
    assert topic_baseline.fit(numbers, numbers).p_next([("1", "9")]).shape == (1,)


# -- which documents --------------------------------------------------------------------------


def test_a_runs_documents_are_those_its_trainer_held_out(tiny_run):
    from bertscope.corpus.sources import documents
    from bertscope.corpus.store import split_documents

    parts = held_out.of_run(tiny_run)
    config = tiny_run.config().corpus
    texts = [document.sentences for document in documents("miniworld", config.documents)]
    seen, kept = split_documents(len(texts), config.held_out)
    plain = [[sentence.lower() for sentence in texts[i]] for i in kept]
    assert [list(document) for document in parts.test] == plain
    others = [list(document) for document in (*parts.train, *parts.valid)]
    assert all(document not in plain for document in others)
    everything = [[sentence.lower() for sentence in texts[i]] for i in seen]
    assert all(document in everything for document in others)
    assert all(list(a) != list(b) for a in parts.train for b in parts.valid)


def test_decoded_sentences_give_the_same_pieces(tiny_run):
    model = load(tiny_run.checkpoints()[-1].path, device="cpu")
    document = held_out.of_run(tiny_run).test[0]
    for place in range(len(document)):
        start, end = document._store.sentence_offsets[document._first + place:][:2]
        assert encode(model, document[place]).input_ids[1:-1].tolist() == \
            document._store.ids[start:end].tolist()
    with pytest.raises(IndexError):
        document[len(document)]


def test_a_corpus_that_is_gone_is_made_again(tiny_root, tmp_path):
    import shutil

    from bertscope.analysis import prepared
    from bertscope.runs import open_run

    there = open_run("tiny", tiny_root)
    shutil.copytree(there.path, tmp_path / "tiny")
    run = open_run("tiny", tmp_path)
    known = run.config_record()["corpus"]
    assert held_out.of_run(run).key == held_out.of_run(there).key  # by the path that it was trained with
    run.write_config(run.config(), corpus={**known, "path": "/nowhere"})
    with pytest.raises(CorpusGone, match="no longer here"):
        held_out.of_run(run)
    messages = []
    prepared.again(run, lambda message, share: messages.append(message))
    assert messages
    again, before = held_out.of_run(run), held_out.of_run(there)
    assert [list(d) for d in again.test] == [list(d) for d in before.test] and again.run == "tiny"
    # Another text under the same name is not what the run was trained on.
    run.write_config(run.config(), corpus={**known, "fingerprint": "0" * 24})
    with pytest.raises(BertScopeError, match="cannot be made again: miniworld is not what it was"):
        prepared.again(run)


def test_a_named_corpus_is_divided(tmp_path):
    (tmp_path / "t.txt").write_text("\n\n".join(f"Text {d} begins.\nIt ends." for d in range(20)))
    parts = held_out.of_corpus(str(tmp_path / "t.txt"))
    sets = [{document[0] for document in part} for part in (parts.train, parts.valid, parts.test)]
    assert [len(s) for s in sets] == [10, 2, 8]
    assert all(not one & two for one, two in itertools.combinations(sets, 2))
    (tmp_path / "one.txt").write_text("Only one.\nDocument.")
    with pytest.raises(BertScopeError, match="two documents"):
        held_out.of_corpus(str(tmp_path / "one.txt"))
    with pytest.raises(BertScopeError, match="no file or folder"):
        held_out.of_corpus(str(tmp_path / "none"))


# -- boundaries -------------------------------------------------------------------------------


def test_boundaries_are_the_pairs_one_by_one(model):
    sentences = sentences_of(model, "a cat sat . A dog walked.\nthe mat\n\n  \nthe new house .")
    assert sentences == ["a cat sat .", "A dog walked.", "the mat", "the new house ."]
    found = boundaries(model, sentences)
    assert found.cut == 0
    for i, p in enumerate(found.p_next):
        assert p == pytest.approx(next_sentence(model, *sentences[i:i + 2]).p_next, abs=1e-5)
    wide = boundaries(model, sentences, around=2).p_next
    assert wide[0] == pytest.approx(
        next_sentence(model, "a cat sat .", "A dog walked. the mat").p_next, abs=1e-5)
    assert wide[1] == pytest.approx(
        next_sentence(model, "a cat sat . A dog walked.", "the mat the new house .").p_next, abs=1e-5)


def test_long_sentences_meet_at_the_boundary(model):
    left, right = "cat " * 50 + "dog .", "mat " * 50 + "dog ."
    found = boundaries(model, [left, right])
    expected = next_sentence(model, *model.text_encoder.nearest(left, right))
    assert found.cut == 1 and not expected.truncated
    assert found.p_next[0] == pytest.approx(expected.p_next, abs=1e-5)


@pytest.mark.parametrize("text", ["", "   \n ", "one sentence only", "\u0000\u0001"])
def test_one_sentence_has_no_boundary(model, text):
    with pytest.raises(BertScopeError, match="at least two sentences"):
        sentences_of(model, text)
