"""Examples from files of every kind, their parts, and what is said of bad ones."""

import json
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from bertscope.errors import BertScopeError
from bertscope.finetuning.config import TASKS, DataConfig
from bertscope.finetuning.data import Answer, Labelled, Question, Tagged, read
from bertscope.finetuning.data.parts import divide, draw, part_of

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
TEXTS = [(f"text number {i}", "good" if i % 3 else "bad") for i in range(30)]


def write(path: Path, text: str) -> str:
    path.write_text(text, "utf-8")
    return str(path)


def table(path: Path, rows, header="text,label", sep=",") -> str:
    lines = [header.replace(",", sep)] + [sep.join(row) for row in rows]
    return write(path, "\n".join(lines) + "\n")


def refused(part: str, **settings) -> str:
    with pytest.raises(BertScopeError, match=part) as caught:
        read(DataConfig(**settings))
    return str(caught.value)


# -- the same examples from every kind of file ------------------------------------------------


def as_csv(path):
    return table(path / "d.csv", TEXTS)


def as_tsv(path):
    return table(path / "d.tsv", TEXTS, sep="\t")


def as_json_lines(path):
    return write(path / "d.jsonl", "\n".join(json.dumps({"text": t, "label": y}) for t, y in TEXTS))


def as_json(path):
    return write(path / "d.json", json.dumps([{"text": t, "label": y} for t, y in TEXTS]))


def as_parquet(path):
    pd.DataFrame(TEXTS, columns=["text", "label"]).to_parquet(path / "d.parquet")
    return str(path / "d.parquet")


@pytest.mark.parametrize("make", [as_csv, as_tsv, as_json_lines, as_json, as_parquet])
def test_every_kind_of_table_gives_the_same_parts(make, tmp_path):
    data = read(DataConfig(source=make(tmp_path)))
    assert data.task == "sentence" and data.labels == ("bad", "good") and not data.numbers
    whole = data.train + data.valid + data.test
    assert sorted((e.text, e.label) for e in whole) == sorted(TEXTS)
    assert len(data.test) == 3 and len(data.valid) == 3
    assert Counter(e.label for e in data.test) == {"good": 2, "bad": 1}  # stratified
    assert any("by seed 0" in note for note in data.notes)


def test_columns_are_found_by_their_names_or_named(tmp_path):
    path = table(tmp_path / "d.csv", [(str(i), y, t, "x") for i, (t, y) in enumerate(TEXTS)],
                 "id,stars,review,other")
    assert read(DataConfig(source=path)).train[0].label in ("good", "bad")
    named = read(DataConfig(source=path, text="review", label="stars"))
    assert named.train == read(DataConfig(source=path)).train
    said = refused("no column 'nothing'", source=path, label="nothing")
    assert "id, stars, review, other" in said


def test_quotes_commas_and_lines_in_a_csv(tmp_path):
    path = write(tmp_path / "d.csv", 'text,label\n"one, ""two""\nthree",a\nfour,b\nfive,a\n')
    data = read(DataConfig(source=path, valid=path, test_share=0.0))
    assert [e.text for e in data.valid] == ['one, "two"\nthree', "four", "five"]
    assert [e.where for e in data.valid] == ["d.csv, line 2", "d.csv, line 4", "d.csv, line 5"]


OPEN = "the quote that opens here is not closed"


@pytest.mark.parametrize("bad, line", [
    ('"never closed,a', 4), ('fine,"never closed', 4), ('"two\nlines","and, open', 4),
    ('5"" disk,a\n"open,b', 5), ('"a ""quoted"" word,b', 4)])
@pytest.mark.parametrize("after", ["", '"late, but well",a\n', 'text,a\n' * 3 + 'more,"a"\n'])
def test_a_quote_that_is_left_open_is_named_and_takes_only_its_line(tmp_path, bad, line, after):
    path = write(tmp_path / "d.csv", f'text,label\none,a\ntwo,b\n{bad}\nthree,a\nfour,b\n{after}')
    assert f"d.csv, line {line}: {OPEN}" in refused(OPEN, source=path, test_share=0.0)
    data = read(DataConfig(source=path, valid=path, test_share=0.0, skip_bad=True))
    texts = [e.text for e in data.valid]
    assert {"one", "two", "three", "four"} <= set(texts)
    assert not any("\n" in text or "never" in text for text in texts)
    if after:
        assert texts[-1] in ("late, but well", "more")


def test_a_quote_that_is_left_open_at_the_end_or_in_the_header(tmp_path):
    last = write(tmp_path / "last.csv", 'text,label\none,a\ntwo,b\nthree,"a')
    assert "last.csv, line 4: the quote" in refused(OPEN, source=last)
    head = write(tmp_path / "head.csv", 'text,"label\none,a\ntwo,b\n')
    assert "head.csv, line 1: the quote" in refused(OPEN, source=head, skip_bad=True)


def test_a_file_full_of_open_quotes_is_read_once(tmp_path):
    path = write(tmp_path / "d.csv", 'text,label\n' + 'a,b "c" ""d\n"x,y\n' * 5000)
    assert "more such rows" in refused(OPEN, source=path)


def test_quotes_in_a_tsv_are_text(tmp_path):
    path = write(tmp_path / "d.tsv", 'text\tlabel\n"so" he said\ta\n"all of it"\tb\n')
    assert [e.text for e in read(DataConfig(source=path, valid=path, test_share=0.0)).valid] == [
        '"so" he said', "all of it"]


def test_a_table_without_a_header(tmp_path):
    path = table(tmp_path / "d.csv", TEXTS[1:], ",".join(TEXTS[0]))
    data = read(DataConfig(source=path, header=False, text="1", label="2"))
    assert len(data.train) + len(data.valid) + len(data.test) == 30


def test_pairs_and_numbers(tmp_path):
    path = table(tmp_path / "d.csv", [(f"a {i}", f"b {i}", str(i / 4)) for i in range(40)],
                 "sentence1,sentence2,score")
    data = read(DataConfig(source=path))
    assert data.task == "pair" and data.numbers and data.labels == ()
    assert data.train[0].pair.startswith("b ") and isinstance(data.train[0].label, float)
    refused("the label '.*' does not occur in the training part", source=path, labels="classes")


def test_whole_numbers_are_classes_in_their_order(tmp_path):
    path = table(tmp_path / "d.csv", [(f"t {i}", str(i % 11)) for i in range(66)])
    assert read(DataConfig(source=path)).labels == tuple(map(str, range(11)))
    assert read(DataConfig(source=path, labels="numbers")).numbers


# -- words and questions ----------------------------------------------------------------------


def test_words_in_columns(tmp_path):
    lines = "".join(f"Anna NNP B-PER\nsaw{i} VBD O\n\n" for i in range(10))
    write(tmp_path / "train.conll", "-DOCSTART- -X- O\n\n" + lines)
    write(tmp_path / "dev.txt.annotated", "Bob NNP B-PER\n\n")
    data = read(DataConfig(source=str(tmp_path)))
    assert data.task == "tokens" and data.labels == ("B-PER", "O")
    assert data.train[0] == Tagged(("Anna", "saw0"), ("B-PER", "O"), "train.conll, sentence at line 3")
    assert data.valid[0].words == ("Bob",) and data.test == []
    assert "The tags mark entities: F1 over whole entities is the metric." in data.notes
    data = read(DataConfig(source=str(tmp_path), label="2"))
    assert data.labels == ("NNP", "VBD") and "The tags are judged word by word, by accuracy." in data.notes


def test_words_in_a_table(tmp_path):
    path = write(tmp_path / "d.jsonl", "\n".join(
        json.dumps({"tokens": ["a", str(i)], "ner_tags": [0, 1]}) for i in range(9)))
    data = read(DataConfig(source=path))
    assert data.task == "tokens" and data.labels == ("0", "1")


def test_words_of_conllu(tmp_path):
    row = "1\t{}\t_\tNOUN\tNN\t_\t0\troot\t_\t_\n2\t.\t_\tPUNCT\t.\t_\t1\tpunct\t_\t_\n\n"
    path = write(tmp_path / "d.conllu", "".join(row.format(f"w{i}") for i in range(9)))
    assert read(DataConfig(source=path)).labels == ("NOUN", "PUNCT")
    assert read(DataConfig(source=path, label="deprel")).labels == ("punct", "root")


def squad(contexts=6, **changes) -> dict:
    """Two questions on each paragraph, whose answer is its last word but one."""
    def paragraph(i):
        context = f"number {i} is in town {i}. so."
        answers = [{"text": f"town {i}", "answer_start": context.index("town")}]
        return {"context": context, "qas": [
            {"id": f"q{i}-{n}", "question": f"where {n}?", "answers": answers} | changes
            for n in range(2)]}

    return {"version": "1.1",
            "data": [{"title": "t", "paragraphs": [paragraph(i) for i in range(contexts)]}]}


def test_squad_keeps_a_paragraph_in_one_part(tmp_path):
    path = write(tmp_path / "d.json", json.dumps(squad(30)))
    data = read(DataConfig(source=path))
    assert data.task == "question"
    first = data.train[0]
    assert first.answers == (Answer(f"town {first.id[1:-2]}", first.context.index("town")),)
    parts = [{e.context for e in part} for part in (data.train, data.valid, data.test)]
    assert all(parts) and not parts[0] & parts[1] and not parts[0] & parts[2]


def test_squad_two_has_questions_without_an_answer(tmp_path):
    path = write(tmp_path / "d.json", json.dumps(squad(is_impossible=True, answers=[])))
    assert all(e.answers == () for e in read(DataConfig(source=path)).train)


def test_questions_of_a_table(tmp_path):
    rows = [{"id": str(i), "question": "who?", "context": f"it was Bob {i}.",
             "answers": {"text": ["Bob"], "answer_start": [7]}} for i in range(10)]
    data = read(DataConfig(source=write(tmp_path / "d.jsonl", "\n".join(map(json.dumps, rows)))))
    assert data.train[0].answers == (Answer("Bob", 7),)
    flat = table(tmp_path / "d.csv", [("who?", f"it was Bob {i}.", "Bob", "7") for i in range(10)],
                 "question,context,answer,answer_start")
    assert read(DataConfig(source=flat)).train[0].answers == (Answer("Bob", 7),)


# -- what is bad is named ---------------------------------------------------------------------


BAD = {
    "an empty text": (table, [*TEXTS, (" ", "good")], "line 32: the text is empty"),
    "a missing label": (table, [*TEXTS, ("x", "")], "line 32: the label is missing"),
    "another number of columns": (table, [*TEXTS, ("x", "good", "y")],
                                  "line 32: it has 3 columns where 2 are expected"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_row_is_named_and_skipped_only_on_demand(kind, tmp_path):
    make, rows, said = BAD[kind]
    path = make(tmp_path / "d.csv", rows)
    assert "--skip-bad" in refused(said, source=path)
    data = read(DataConfig(source=path, skip_bad=True))
    assert len(data.train) + len(data.valid) + len(data.test) == 30
    assert any("Left out as unusable: 1 rows" in note and said in note for note in data.notes)


def test_a_number_that_is_none_is_named_and_skipped_on_demand(tmp_path):
    table(tmp_path / "train.csv", [(f"t {i}", str(i / 4)) for i in range(9)])
    table(tmp_path / "dev.csv", [("x", "1.5"), ("y", "nan"), ("z", "n/a")])
    said = refused("dev.csv, line 3: the label 'nan' is not a number", source=str(tmp_path))
    assert "1 more such rows" in said and "--skip-bad" in said
    data = read(DataConfig(source=str(tmp_path), skip_bad=True))
    assert data.numbers and [e.label for e in data.valid] == [1.5]
    mixed = table(tmp_path / "d.csv", [(f"t {i}", str(i) if i else "?") for i in range(30)])
    refused("line 2: the label '\\?' is not a number", source=mixed, labels="numbers")
    data = read(DataConfig(source=mixed, labels="numbers", skip_bad=True))
    assert len(data.train) + len(data.valid) + len(data.test) == 29


def test_labels_that_are_nearly_numbers_are_classes(tmp_path):
    for one, two in (("--3", "--4"), ("9" * 5000, "8" * 5000)):
        path = table(tmp_path / "d.csv", [(f"t {i}", (one, two)[i % 2]) for i in range(30)])
        assert read(DataConfig(source=path, labels="classes")).labels == tuple(sorted((one, two)))


@pytest.mark.parametrize("answers", [{"text": ["Bob"], "answer_start": 7}, "[" * 200_000,
                                     [{"text": "Bob", "answer_start": float("inf")}]])
def test_answers_of_another_shape_are_named(answers, tmp_path):
    path = write(tmp_path / "d.jsonl", json.dumps(
        {"question": "who?", "context": "it was Bob.", "answers": answers}))
    refused("d.jsonl, line 1: the answers are not answers with their places", source=path)


def test_words_or_tags_that_are_no_list_are_named(tmp_path):
    rows = [{"tokens": ["a", "b"], "tags": ["X", "Y"]}] * 3
    path = write(tmp_path / "d.jsonl", "\n".join(map(json.dumps, [*rows, {"tokens": ["a"], "tags": 5}])))
    refused("line 4: it has 1 words but 0 tags", source=path)
    path = write(tmp_path / "e.jsonl", "\n".join(map(json.dumps, [*rows, {"tokens": 7, "tags": ["X"]}])))
    refused("line 4: it has no words", source=path)


def test_a_label_that_training_has_not_is_named(tmp_path):
    table(tmp_path / "train.csv", TEXTS)
    table(tmp_path / "dev.csv", TEXTS[:5])
    table(tmp_path / "test.csv", [("x", "good"), ("y", "maybe")])
    refused("test.csv, line 3: the label 'maybe' does not occur in the training part",
            source=str(tmp_path))
    assert len(read(DataConfig(source=str(tmp_path), skip_bad=True)).test) == 1


def test_a_column_that_one_part_lacks_is_named(tmp_path):
    table(tmp_path / "train.csv", TEXTS)
    table(tmp_path / "test.csv", TEXTS, "words,label")
    refused("The test part of .* has no column 'text'; it has words, label", source=str(tmp_path))


def test_an_answer_that_is_not_where_it_should_be(tmp_path):
    wrong = squad(answers=[{"text": "Rome", "answer_start": 3}])
    path = write(tmp_path / "d.json", json.dumps(wrong))
    refused("d.json, question q0-0: its answer 'Rome' does not stand at character 3", source=path)


def test_more_words_than_tags(tmp_path):
    path = write(tmp_path / "d.jsonl", "\n".join(
        json.dumps({"tokens": ["a", "b"], "tags": ["X", "Y"][:1 + (i != 3)]}) for i in range(9)))
    refused("d.jsonl, line 4: it has 2 words but 1 tags", source=path)
    odd = write(tmp_path / "d.conll", "a X\nb Y\n\nc X\nd\n\n")
    refused("sentence at line 4: line 5 has 1 columns where 2 are expected", source=odd)


@pytest.mark.parametrize("name, content, said", [
    ("d.jsonl", '{"text": "a", "label": "x"}\n[1]\n', "line 2: it is not a JSON object"),
    ("d.parquet", "no parquet", "is not a Parquet file"),
    ("d.xml", "<pair>", "not well-formed XML"),
    ("d.json", '{"data": [{"paragraphs": [{"qas": [{}]}]}]}', "not laid out like SQuAD"),
    ("d.json", '{"data": [{"paragraphs": null}]}', "not laid out like SQuAD: articles"),
    ("d.csv", "text,text\na,b\n", "two columns of the same name"),
    ("d.csv", "text,label\n", "no row that can be read"),
    ("d.csv", "text,label\na\n", "can be read. The first: d.csv, line 2: it has 1 columns where 2"),
    ("d.csv", "text,label\na,x\nb,x\nc,x\n", "nothing to tell apart"),
    ("d.csv", "number\n1\n2\n", "no column looks like"),
    ("d.jsonl", '{"text": {"a": 1}, "label": "x"}\n', "no column looks like|is not text"),
])
def test_a_file_that_is_something_else(name, content, said, tmp_path):
    refused(said, source=write(tmp_path / name, content))


def test_a_column_of_texts_is_no_label(tmp_path):
    path = table(tmp_path / "d.csv", [(f"t {i}", f"own {i}") for i in range(1500)])
    refused("different labels, such as 'own 0' and", source=path)


def test_a_missing_file_and_a_folder_without_parts(tmp_path):
    refused("does not exist", source=str(tmp_path / "none"))
    refused("no file of examples", source=str(tmp_path))
    table(tmp_path / "one.csv", TEXTS), table(tmp_path / "two.csv", TEXTS)
    refused("call them train, dev and test", source=str(tmp_path))
    refused("file of the test part", source=str(tmp_path / "one.csv"), test="none.csv")
    refused("~no-such-user/d.csv does not exist", source="~no-such-user/d.csv")
    refused("cannot be read|does not exist", source=str(tmp_path / "one.csv"), valid="y" * 300)
    empty = read(DataConfig(source=str(tmp_path / "one.csv"), test=write(tmp_path / "none.csv", "")))
    assert empty.test == [] and "There is no test part." in empty.notes


def test_half_a_surrogate_pair_is_no_character(tmp_path):
    path = write(tmp_path / "d.jsonl", "\n".join(
        '{"text": "a \\ud800 %d", "label": "l\\ud800%d"}' % (i, i % 2) for i in range(30)))
    assert read(DataConfig(source=path)).labels == ("l?0", "l?1")


def test_the_hub_needs_its_package(monkeypatch):
    from bertscope.finetuning.data import hub

    monkeypatch.setattr(hub, "find_spec", lambda name: None)
    refused("pip install datasets", source="hf:glue/rte")
    refused("needs the name of a data set", source="hf:")


class Table(list):
    """Like a data set of the package: rows, and ``features`` with the names of classes."""

    class Classes:
        names = ("no", "yes")

        def int2str(self, number):
            return self.names[number]

    features = {"sentence1": None, "sentence2": None, "label": Classes()}


def test_a_data_set_of_the_hub_has_its_classes_names(monkeypatch):
    """As GLUE: classes are numbers, and the test part's labels are hidden."""
    from types import SimpleNamespace

    from bertscope.finetuning.data import hub

    def load(path, subset):
        assert (path, subset) == ("nyu-mll/glue", "rte")
        return {split: Table({"sentence1": f"a {i}", "sentence2": f"{split} {i}", "label": own(i)}
                             for i in range(12))
                for split, own in (("train", lambda i: i % 2), ("validation", lambda i: 1),
                                   ("test", lambda i: -1))}

    monkeypatch.setattr(hub, "find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load))
    data = read(DataConfig(source="hf:nyu-mll/glue/rte"))
    assert data.task == "pair" and data.labels == ("no", "yes")
    assert len(data.train) == len(data.valid) == 12 and data.test == []
    assert data.valid[0] == Labelled("a 0", "yes", "validation 0",
                                     "nyu-mll/glue/rte, validation row 1")
    assert any("has no labels" in note for note in data.notes)
    monkeypatch.setattr(sys.modules["datasets"], "load_dataset", lambda path, subset: {"all": Table()})
    refused("no split called train, validation or test; it has all", source="hf:mine")


def test_the_package_itself_gives_the_same_rows(tmp_path, monkeypatch):
    """The package datasets reads a folder of Parquet files as it reads one that it fetched."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    text = datasets.Value("string")
    kinds = {"tags": {"tokens": datasets.Sequence(text),
                      "ner_tags": datasets.Sequence(datasets.ClassLabel(names=["O", "B-PER"]))},
             "pairs": {"sentence1": text, "sentence2": text, "label": datasets.ClassLabel(names=["no", "yes"])},
             "asked": {"question": text, "context": text, "answers": datasets.Sequence(
                 {"text": text, "answer_start": datasets.Value("int32")})}}
    rows = {"tags": lambda i: {"tokens": ["Anna", f"ran{i}"], "ner_tags": [1, 0]},
            "pairs": lambda i: {"sentence1": f"a {i}", "sentence2": "b", "label": i % 2},
            "asked": lambda i: {"question": f"where {i}?", "context": "in town.",
                                "answers": {"text": ["town"] * (i % 2), "answer_start": [3] * (i % 2)}}}
    for name, features in kinds.items():
        (tmp_path / name).mkdir()
        for part in ("train", "validation"):
            datasets.Dataset.from_list([rows[name](i) for i in range(9)], datasets.Features(features)).to_parquet(
                tmp_path / name / f"{part}-00000-of-00001.parquet")
    tags, pairs, asked = (read(DataConfig(source=f"hf:{tmp_path / name}")) for name in kinds)
    assert tags.labels == ("B-PER", "O") and tags.train[3].words == ("Anna", "ran3")
    assert pairs.labels == ("no", "yes") and pairs.train[1].label == "yes" and len(pairs.valid) == 9
    assert [e.answers for e in asked.train[:2]] == [(), (Answer("town", 3),)]
    refused("cannot be fetched", source=f"hf:{tmp_path / 'none'}")


# -- parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, part", [
    ("en_ewt-ud-dev", "valid"), ("wnut17train", "train"), ("emerging.test.annotated", "test"),
    ("validation_matched", "valid"), ("my-val", "valid"), ("evaluation", None), ("values", None)])
def test_parts_by_the_names_of_files(name, part):
    assert part_of(name) == part


def test_dev_is_for_training_where_there_is_nothing_else(tmp_path):
    table(tmp_path / "dev.csv", TEXTS)
    table(tmp_path / "test.csv", TEXTS[:4])
    data = read(DataConfig(source=str(tmp_path)))
    assert len(data.train) == 27 and len(data.valid) == 3 and len(data.test) == 4
    assert any("dev is for training" in note for note in data.notes)
    assert any("4 test examples 4 also stand in another part" in note for note in data.notes)


def test_texts_that_read_the_same_stay_together(tmp_path):
    rows = [(f"Text  {i // 2}" if i % 2 else f"text {i // 2}", "a" if i < 50 else "b") for i in range(100)]
    data = read(DataConfig(source=table(tmp_path / "d.csv", rows), test_share=0.3, valid_share=0.3))
    keys = [{e.key for e in part} for part in (data.train, data.valid, data.test)]
    assert not keys[0] & keys[1] and not keys[0] & keys[2] and not keys[1] & keys[2]


def test_divisions_depend_on_the_seed_alone():
    examples = [Labelled(t, y) for t, y in TEXTS]
    assert divide(examples, 0.2, 1) == divide(list(examples), 0.2, 1) != divide(examples, 0.2, 2)
    rest, taken = divide(examples, 0.2, 1)
    assert len(taken) == 6 and rest + taken != examples and not set(rest) & set(taken)


def test_fewer_examples_are_part_of_more():
    examples = [Labelled(t, y) for t, y in TEXTS]
    drawn = {n: draw(examples, n, 5) for n in (3, 6, 15, 30, 99)}
    assert [len(d) for d in drawn.values()] == [3, 6, 15, 30, 30]
    assert set(drawn[3]) <= set(drawn[6]) <= set(drawn[15])
    assert Counter(e.label for e in drawn[15]) == {"good": 10, "bad": 5}
    assert drawn[6] != draw(examples, 6, 6)


# -- built in and shared ----------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_miniworld_has_an_example_of_each_task(task):
    data = read(DataConfig(task=task))
    assert data.task == task and len(data.train) > 1000 and len(data.valid) > 100 < len(data.test)
    assert data.fingerprint == read(DataConfig(task=task)).fingerprint
    groups = [{e.group for e in part} for part in (data.train, data.valid, data.test)]
    assert not groups[0] & groups[1] and not groups[0] & groups[2]
    if task == "question":
        for e in data.train:
            assert all(e.context[a.start:a.start + len(a.text)] == a.text for a in e.answers)
        assert 0.1 < sum(not e.answers for e in data.train) / len(data.train) < 0.3
    elif task == "tokens":
        from bertscope.finetuning.metrics import order_errors

        assert order_errors([e.tags for e in data.train]) == 0
    else:
        assert Counter(e.label for e in data.train).most_common()[0][1] == len(data.train) // 2


COUNTS = {"sentence_polarity": ("sentence", 10662), "rte": ("pair", 4167),
          "ud_english_ewt": ("tokens", 16622), "xquad/xquad.en.json": ("question", 1190),
          "xquad/xquad.zh.json": ("question", 1190), "wnut17": ("tokens", 5690)}


@pytest.mark.parametrize("name", [n for n in COUNTS if n != "ud_english_ewt"])
def test_shared_collections_are_read_whole(name):
    if not (SHARED / name).exists():
        pytest.skip("../shared/data is not here")
    data = read(DataConfig(source=str(SHARED / name)))
    assert (data.task, len(data.train) + len(data.valid) + len(data.test)) == COUNTS[name]


def test_question_examples_are_hashable_and_equal():
    assert Question("q", "c", ()) == Question("q", "c", ()) and len({Question("q", "c", ())}) == 1
