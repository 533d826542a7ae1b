"""Parts that do not leak, where gold annotation comes from, and the tasks of its columns."""

import random
from pathlib import Path

import pytest

from bertscope.analysis.probing import available_tasks, data, splits
from bertscope.analysis.probing.gold import MINIWORLD_SEED, fingerprint
from bertscope.analysis.probing.sampling import hide, sample
from bertscope.analysis.probing.tasks import labeller, title
from bertscope.corpus.conllu import Sentence, Word, write_conllu
from bertscope.errors import BertScopeError
from probe_stand_ins import invented, invented_items, sentence

CHINESE = Path(__file__).resolve().parents[2] / "shared" / "data" / "ud_chinese_gsdsimp"


# -- tasks --------------------------------------------------------------------------------------


def test_labels_are_read_from_columns_and_features():
    word = Word("boats", "boat", "NOUN", "NNS", {"Number": "Plur"}, 2, "nsubj")
    assert [labeller(t)(word) for t in ("upos", "xpos", "deprel", "feat:Number")] == [
        "NOUN", "NNS", "nsubj", "Plur"]
    assert labeller("feat:Number@NOUN")(word) == "Plur"
    assert labeller("feat:Number@VERB")(word) == labeller("feat:Tense")(word) == ""


@pytest.mark.parametrize("task", ["", "pos", "lemma", "feat:", "feat:Number@", "upos "])
def test_an_unknown_task_is_refused(task):
    with pytest.raises(BertScopeError, match="no task"):
        labeller(task)


def test_available_tasks_are_those_with_two_frequent_labels():
    nouns = [Word("a", upos="NOUN", feats={"Number": number, "Case": "Nom"}) for number in
             ["Sing"] * 12 + ["Plur"] * 11]
    verbs = [Word("b", upos="VERB", feats={"Number": "Sing", "Tense": tense}) for tense in
             ["Past"] * 30 + ["Pres"] * 9]
    found = {t.name: t for t in available_tasks([Sentence(nouns + verbs)])}
    assert list(found) == ["upos", "feat:Number"]  # Number is mostly on verbs, with one value
    assert (found["feat:Number"].classes, found["feat:Number"].words) == (2, 62)
    assert "feat:Tense" in {t.name for t in available_tasks([Sentence(nouns + verbs)], enough=9)}
    assert available_tasks([]) == []


def test_titles_are_for_people():
    assert title("upos") == "Part of speech (UPOS)"
    assert title("feat:Number@NOUN") == "Number of nouns"


# -- splits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("documents", [3, 7, 100])
def test_no_document_and_no_sentence_is_in_two_parts(seed, documents):
    made = invented(300, seed, documents, types=8, length=3)  # so short that many occur twice
    parts = splits.split_by_document(made, seed)
    names = [{s.document for s in part} for part in parts]
    texts = [{splits.forms(s) for s in part} for part in parts]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert not names[a] & names[b] and not texts[a] & texts[b]
    assert splits.split_by_document(made, seed) == parts


def test_shares_are_about_80_10_10():
    parts = splits.split_by_document(invented(1000, documents=100))
    assert [round(len(part) / 1000, 1) for part in parts] == [0.8, 0.1, 0.1]


def test_a_giant_document_is_for_training():
    made = [sentence(f"a b{i}", "giant") for i in range(500)]
    made += [sentence(f"c d{i}", f"small {i // 5}") for i in range(100)]
    for seed in range(10):
        train, valid, test = splits.split_by_document(made, seed)
        assert sum(s.document == "giant" for s in train) == 500 and valid and test


def test_documents_too_uneven_give_way_to_blocks():
    made = [sentence(f"a b{i}", "giant") for i in range(500)]
    made += [sentence(f"c d{i}", f"small {i}") for i in range(2)]
    assert [len(part) for part in splits.split_by_document(made)] == pytest.approx(
        [402, 50, 50], abs=15)


@pytest.mark.parametrize("document", ["", "the only one"])
def test_without_documents_consecutive_blocks_are_dealt_out(document):
    made = [sentence(f"word{i} x", document) for i in range(400)]
    train, valid, test = splits.split_by_document(made, 1)
    assert (len(train), len(valid), len(test)) == (320, 40, 40)
    places = [int(s.words[0].form[4:]) for s in test]
    assert sum(b - a != 1 for a, b in zip(places, places[1:])) <= 3  # blocks of ten


def test_too_little_to_split_is_refused():
    for made in ([], [sentence("a b")], [sentence("a b", f"d{i}") for i in range(50)]):
        with pytest.raises(BertScopeError, match="too few different sentences"):
            splits.split_by_document(made)
    assert all(splits.split_by_document([sentence(f"a{i}") for i in range(3)]))


def test_samples_are_whole_sentences_nested_and_bounded():
    counts = [random.Random(0).randrange(6) for _ in range(200)]
    small, large = (splits.sample_sentences(counts, most, 3) for most in (50, 200))
    assert set(small) < set(large) and small == sorted(small)
    assert 45 <= sum(counts[i] for i in small) <= 50
    assert all(counts[i] for i in large)
    assert splits.sample_sentences([0, 9, 0], 5, 0) == [1]  # one sentence at least
    assert splits.sample_sentences([0, 0], 5, 0) == []


# -- where gold comes from ----------------------------------------------------------------------


def test_miniworld_gold_is_of_no_training_document():
    gold = data("miniworld")
    prefixes = {s.document.rsplit("-", 1)[0] for s in gold.sentences}
    assert prefixes == {f"miniworld-{MINIWORLD_SEED}"}
    assert min(len(gold.train), len(gold.valid), len(gold.test)) > 100
    names = {t.name for t in available_tasks(gold.sentences)}
    assert {"upos", "deprel", "feat:Number", "feat:Tense"} <= names
    assert gold.fingerprint == data("miniworld").fingerprint != data("miniworld", 1).fingerprint


@pytest.fixture
def treebank(tmp_path):
    """x-ud-train, x-ud-dev and x-ud-test.conllu."""
    folder = tmp_path / "UD_X"
    folder.mkdir()
    for name, seed in (("train", 0), ("dev", 1), ("test", 2)):
        write_conllu(invented(50, seed), folder / f"x-ud-{name}.conllu")
    return folder


def test_given_parts_are_used_as_they_are(treebank):
    from bertscope.corpus.conllu import read_conllu

    for source in (treebank, str(treebank), treebank / "x-ud-dev.conllu"):
        gold = data(source)
        assert gold.name == "UD_X" and "as they are" in gold.note
        for part, name in ((gold.train, "train"), (gold.valid, "dev"), (gold.test, "test")):
            assert part == list(read_conllu(treebank / f"x-ud-{name}.conllu"))


def test_a_missing_part_is_made_from_the_first(treebank):
    (treebank / "x-ud-train.conllu").unlink()
    gold = data(treebank)
    assert len(gold.test) == 50 and len(gold.train) + len(gold.valid) == 50
    assert not {s.document for s in gold.train} & {s.document for s in gold.valid}
    (treebank / "x-ud-dev.conllu").unlink()
    gold = data(treebank / "x-ud-test.conllu")
    assert len(gold.train) + len(gold.valid) + len(gold.test) == 50


def test_files_of_no_part_are_put_together(treebank):
    for path in list(treebank.iterdir()):
        path.rename(path.with_name(path.name.replace("-ud-", "").replace("test", "contest")
                                   .replace("train", "trainer").replace("dev", "device")))
    gold = data(treebank)
    assert sum(map(len, (gold.train, gold.valid, gold.test))) == 150


def test_a_wrong_source_is_refused_in_a_sentence(tmp_path, treebank):
    def refuses(source, match):
        with pytest.raises(BertScopeError, match=match) as caught:
            data(source)
        assert "\n" not in str(caught.value)

    refuses(tmp_path / "missing", "no gold annotation called")
    refuses(tmp_path, "no .conllu file")
    (tmp_path / "prose.conllu").write_text("It was a dark and stormy night.\n")
    refuses(tmp_path / "prose.conllu", "line 1")
    (tmp_path / "empty.conllu").write_text("\n")
    refuses(tmp_path / "empty.conllu", "no sentence")
    write_conllu([sentence("a b")], tmp_path / "one.conllu")
    refuses(tmp_path / "one.conllu", "too few")
    write_conllu(invented(9), treebank / "y-ud-test.conllu")
    refuses(treebank, "several files for one part")
    assert len(data(treebank / "x-ud-test.conllu").test) == 50  # naming one says which


@pytest.mark.skipif(not CHINESE.is_dir(), reason=f"{CHINESE} is not there")
def test_a_folder_with_dev_and_test_only():
    gold = data(CHINESE)
    assert len(gold.test) == 500 and len(gold.train) + len(gold.valid) == 500
    assert "test part" in gold.note


# -- what is drawn from them --------------------------------------------------------------------


def test_only_training_sentences_follow_the_seed():
    items = invented_items()
    most = {"train": 500, "validation": 100, "test": 200}
    one, two = (items.select(sample(items, most, seed)) for seed in (0, 1))
    for part, size in most.items():
        assert size - 16 < len(one.where[part]) <= size
        same = one.sentence[one.where[part]].tolist() == two.sentence[two.where[part]].tolist()
        assert same == (part != "train")
    larger = sample(items, most | {"train": 1000}, 0)
    assert set(sample(items, most, 0).tolist()) < set(larger.tolist())


def test_whole_sentences_are_drawn():
    items = invented_items()
    chosen = sample(items, {"train": 500, "validation": 100, "test": 200}, 0)
    sentences = set(items.sentence[chosen].tolist())
    assert set(chosen.tolist()) == {i for i, s in enumerate(items.sentence.tolist()) if s in sentences}


def test_hidden_words_are_the_items_and_no_others():
    items = invented_items()
    hidden = hide(items, 0)
    assert 0.1 < len(hidden) / len(items) < 0.2
    masked = {(s, w) for s, words in enumerate(hidden.sentences) for w, word in enumerate(words)
              if word == "[MASK]"}
    assert masked == {(s, int(span[0, 0])) for s, span in zip(hidden.sentence.tolist(), hidden.spans)}
    for place, (s, span) in enumerate(zip(hidden.sentence.tolist(), hidden.spans)):
        assert items.sentences[s][span[0, 0]] == hidden.types[place]
    assert hide(items, 0).fingerprint == hidden.fingerprint != hide(items, 1).fingerprint


def test_only_words_can_be_hidden():
    items = invented_items()
    pairs = type(items)("t", "T", "sentence", items.sentences, items.sentence, [[]] * len(items),
                        items.labels, items.parts)
    with pytest.raises(BertScopeError, match="about sentences"):
        hide(pairs, 0)


def test_another_entity_tag_is_another_annotation():
    """A page keeps tasks by this fingerprint: corrected tags must not show the old ones."""
    before = [Sentence([Word("Rome", misc={"NER": "B-LOC"})])]
    after = [Sentence([Word("Rome", misc={"NER": "B-PER"})])]
    assert fingerprint(before) != fingerprint(after)
    assert fingerprint(before) == fingerprint([Sentence([Word("Rome", misc={"NER": "B-LOC"})])])
