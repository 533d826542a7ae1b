"""Tables, SentEval's files and columns of entity tags: read as they say, or refused in a sentence
that names the line."""

import json
import random
from pathlib import Path

import pytest

from bertscope.analysis.probing.columns import read_columns
from bertscope.analysis.probing.sources import open_source
from bertscope.analysis.probing.tasks.table import LONGEST_LINE, read_table
from bertscope.errors import BertScopeError

WNUT = Path(__file__).resolve().parents[2] / "shared" / "data" / "wnut17"


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def rows(path: Path, records) -> Path:
    return write(path, "".join(json.dumps(record) + "\n" for record in records))


def texts(items, part):
    return [" ".join(s) if not isinstance(s, str) else s
            for s in (items.sentences[items.sentence[i]] for i in items.where[part])]


# -- tables ---------------------------------------------------------------------------------------


def test_texts_of_a_csv_are_sentences(tmp_path):
    path = write(tmp_path / "mood.csv", 'Label,text,note\r\n' + "".join(
        f'{"good" if i % 2 else "bad"},"film {i}, said ""he""\nsaid",x\r\n' for i in range(50)))
    source = open_source(path)
    items = source.items()
    assert (items.kind, items.task, len(items)) == ("sentence", "mood", 50)
    assert items.sentences[items.sentence[3]] == 'film 3, said "he"\nsaid'
    assert items.labels[3] == "good" and items.classes == ["bad", "good"]
    assert {part: sizes["items"] for part, sizes in items.sizes.items()} == {
        "train": 40, "validation": 5, "test": 5}
    assert [(t.name, t.classes, t.words, t.kind) for t in source.offers()] == [
        ("mood", 2, 50, "sentence")]
    assert source.items("mood") is items
    with pytest.raises(BertScopeError, match="one task, called mood"):
        source.items("upos")


def test_characters_become_words_and_a_word_is_cut_where_a_span_ends(tmp_path):
    text = "Don't re-read Bücher, boats!"
    spans = [("Don't", "a"), ("read", "b"), ("Büch", "a"), ("boats", "b")]
    path = rows(tmp_path / "t.jsonl", [
        {"text": text, "label": label, "start": text.index(part), "end": text.index(part) + len(part),
         "split": "train"} for part, label in spans] + [
        {"text": f"{part} x", "label": "a", "start": 0, "end": 1, "split": part}
        for part in ("dev", "test")])
    items = open_source(path).items()
    first = items.sentences[items.sentence[0]]
    assert first == ["Don", "'", "t", "re", "-", "read", "Büch", "er", ",", "boats", "!"]
    assert [" ".join(first[a:b]) for a, b in items.spans[:4, 0]] == ["Don ' t", "read", "Büch", "boats"]
    assert items.kind == "word" and items.types[1] == "read"
    assert items.sentence[:4].tolist() == [0] * 4  # one sentence, read once


def test_words_with_their_places_and_pairs(tmp_path):
    made = [{"words": ["the", "cat", "sat"], "label": "x", "start": 1, "end": 2, "start2": 2,
             "end2": 3, "part": part} for part in ("train", "validation", "test")]
    made.insert(1, {**made[0], "words": "a dog ran", "label": "y"})
    items = open_source(rows(tmp_path / "p.jsonl", made)).items()
    assert items.kind == "pair" and items.spans.shape == (4, 2, 2)
    assert items.types[:2] == ["cat sat", "dog ran"] and items.sentences[1] == ["a", "dog", "ran"]
    assert items.provenance["sentences_in_two_parts"] == 1  # "the cat sat", in all three


def test_given_parts_are_kept_and_texts_of_two_parts_are_told_or_left_out(tmp_path):
    records = [{"text": f"t{i}", "label": str(i % 2), "split": "train"} for i in range(10)]
    records += [{"text": f"t{i}", "label": str(i % 2), "split": "dev"} for i in (1, 20, 21)]
    records += [{"text": f"t{i}", "label": str(i % 2), "split": "test"} for i in (2, 20, 30)]
    path = rows(tmp_path / "t.jsonl", records)
    items = open_source(path).items()
    assert {p: s["items"] for p, s in items.sizes.items()} == {"train": 10, "validation": 3, "test": 3}
    assert items.provenance["sentences_in_two_parts"] == 3
    unique = open_source(path, unique=True).items()
    parts = {part: set(texts(unique, part)) for part in unique.where}
    assert parts["test"] == {"t2", "t20", "t30"} and parts["validation"] == {"t1", "t21"}
    assert parts["train"] == {f"t{i}" for i in range(10)} - {"t1", "t2"}
    assert "sentences_in_two_parts" not in unique.provenance


@pytest.mark.parametrize("seed", range(4))
def test_without_parts_no_document_and_no_text_is_in_two(tmp_path, seed):
    rng = random.Random(seed)
    records = [{"text": f"text {rng.randrange(300)}", "label": rng.choice("ab"),
                "document": f"d{i // 10}"} for i in range(400)]
    path = rows(tmp_path / "t.jsonl", records)
    items = open_source(path, seed).items()
    kept = {part: set(texts(items, part)) for part in items.where}
    assert not kept["train"] & kept["test"] and not kept["train"] & kept["validation"]
    assert not kept["validation"] & kept["test"]
    assert items.sizes["test"]["items"] == pytest.approx(40, abs=20)
    documents = {part: {items.documents[i] for i in items.where[part]} for part in items.where}
    assert not documents["train"] & documents["test"]
    assert not documents["validation"] & (documents["train"] | documents["test"])
    assert open_source(path, seed).items().fingerprint == items.fingerprint
    assert open_source(path, seed + 9).items().fingerprint != items.fingerprint


def test_a_giant_document_is_for_training(tmp_path):
    records = [{"text": f"t{i}", "label": "ab"[i % 2], "document": "giant" if i < 300 else f"d{i}"}
               for i in range(400)]
    for seed in range(5):
        items = open_source(rows(tmp_path / "t.jsonl", records), seed).items()
        assert {items.parts[i] for i in range(300)} == {"train"}


def test_files_called_train_dev_and_test(tmp_path):
    for part, first in (("train", 0), ("dev", 100), ("test", 200)):
        write(tmp_path / f"my-{part}.csv", "text,label\n" + "".join(
            f"t{i},{i % 2}\n" for i in range(first, first + 20)))
    for source in (tmp_path, tmp_path / "my-dev.csv"):
        items = open_source(source).items()
        assert texts(items, "validation") == [f"t{i}" for i in range(100, 120)]
        assert texts(items, "test") == [f"t{i}" for i in range(200, 220)]
    (tmp_path / "my-dev.csv").unlink()
    items = open_source(tmp_path).items()
    assert texts(items, "test") == [f"t{i}" for i in range(200, 220)]
    assert (items.sizes["train"]["items"], items.sizes["validation"]["items"]) == (18, 2)
    assert "dealt out 90:10" in items.provenance["split"]


HEAD = "text,label\n"
BAD_CSV = [
    ("", "line 1.*name the columns"),
    ("a,b\n1,2\n", "line 1.*name the columns"),
    (HEAD + "x,1\ny\n", "line 3: 1 fields"),
    (HEAD + "x,1\n\ny,1,2\n", "line 4: 3 fields"),
    (HEAD + 'x,1\n"y,1\n', "line 3.*not CSV"),
    (HEAD + "x,1\n ,1\n", "line 3: the text is empty"),
    (HEAD + "x,1\ny,\n", "line 3: there is no label"),
    (HEAD + f"x,1\ny,{'l' * 300}\n", "line 3: label has 300 characters"),
    (HEAD + f"x,1\n{'l' * 30_000},1\n", "line 3: text has 30,000 characters"),
    (HEAD + f"x,1\n{'l' * (LONGEST_LINE + 5)},1\n", "line 3: the line has more than"),
    ("text,label,split\nx,1,train\ny,1,later\n", "line 3: the split is one of"),
    ("text,label,split\nx,1,train\ny,1,\n", "line 3: either every row"),
    ("text,label,start,end\nxx,1,0,1\nyy,1,,\n", "line 3: every row should have as many spans"),
    ("text,label,start,end\nxx,1,0,1\nyy,1,0,x\n", "line 3: start and end should be whole"),
    ("text,label,start,end\nxx,1,0,1\nyy,1,0,\n", "line 3: start and end should be whole"),
    ("text,label,start,end\nxx,1,0,1\nyy,1,1,1\n", "line 3: 1 to 1 is no span"),
    ("text,label,start,end\nxx,1,0,1\nyy,1,-1,1\n", "line 3: -1 to 1 is no span"),
    ("text,label,start,end\nxx,1,0,1\nyy,1,0,3\n", "line 3: the characters 0 to 3 are no span"),
    ("text,label,start,end\nxx,1,0,1\ny  y,1,1,3\n", "line 3: the characters 1 to 3 are no span"),
    ("text,label,start2,end2\nxx,1,0,1\n", "line 2: start2 and end2 need"),
    ("words,label,start,end\na b,1,0,1\na b,1,1,3\n", "line 3: the words 1 to 3 are no span"),
    (HEAD, "no row"),
    (HEAD + "x,1\ny,2\n", "no row in its validation part"),
    (HEAD + "".join(f"t{i},same\n" for i in range(40)), "same label"),
    (HEAD + "".join(f"t{i},l{i}\n" for i in range(1001)), "1,001 different labels"),
]


@pytest.mark.parametrize("text, sentence", BAD_CSV)
def test_a_bad_table_is_refused_and_the_line_is_named(tmp_path, text, sentence):
    with pytest.raises(BertScopeError, match=sentence) as caught:
        open_source(write(tmp_path / "t.csv", text)).items()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


BAD_JSON = [
    ("{", "line 1: this is not a JSON object"),
    ('{"text": "a", "label": "b"}\n[1]', "line 2: this is not a JSON object"),
    ("[" * 90_000, "line 1: this is not a JSON object"),
    ('{"text": ["a"], "label": "b"}', "line 1: text should be text"),
    ('{"text": "a", "label": {"a": 1}}', "line 1: label should be text"),
    ('{"text": "a", "label": null}', "line 1: there is no label"),
    ('{"words": ["a", ""], "label": "x"}', "line 1: words should be a list"),
    ('{"words": [1], "label": "x"}', "line 1: words should be a list"),
    ('{"words": 7, "label": "x"}', "line 1: words should be a list"),
    ('{"text": "a", "label": 1, "start": 1e999, "end": 2}', "line 1: start and end should be whole"),
    ('{"text": "a", "label": 1, "start": NaN, "end": 2}', "line 1: start and end should be whole"),
    ('{"text": "abc", "label": 1, "start": 0.5, "end": 2}', "line 1: start and end should be whole"),
    ('{"text": "abc", "label": 1, "start": true, "end": 2}', "line 1: start and end should be whole"),
    (json.dumps({"words": ["a"] * 6000, "label": "x"}), "line 1: at most 5,000 words"),
]


@pytest.mark.parametrize("text, sentence", BAD_JSON)
def test_bad_json_lines_are_refused_and_the_line_is_named(tmp_path, text, sentence):
    with pytest.raises(BertScopeError, match=sentence):
        open_source(write(tmp_path / "t.jsonl", text)).items()


def test_what_is_not_utf8_is_refused_and_odd_characters_are_not(tmp_path):
    (tmp_path / "b.csv").write_bytes(HEAD.encode() + b"x,1\n\xff\xfe\x00,2\n")
    with pytest.raises(BertScopeError, match="line 3: this is not text in UTF-8"):
        open_source(tmp_path / "b.csv")
    path = rows(tmp_path / "o.jsonl", [{"text": f"a\0\ud800 \u202e{i}", "label": i % 2 == 0}
                                       for i in range(40)])
    items = open_source(path).items()
    assert items.sentences[0] == "a? \u202e0" and items.classes == ["false", "true"]


def test_tsv_takes_quotation_marks_as_they_are(tmp_path):
    path = write(tmp_path / "t.tsv", "label\tsentence\n" + "".join(
        f'{i % 2}\t"half a quote {i}\n' for i in range(30)))
    assert open_source(path).items().sentences[0] == '"half a quote 0'
    semicolons = write(tmp_path / "s.csv", "text;label\na,b;1\n")
    assert [(r.text, r.label) for r in read_table(semicolons)] == [("a,b", "1")]


# -- SentEval -------------------------------------------------------------------------------------


def senteval(tmp_path, extra=""):
    lines = [f"{part}\t{'OI'[i % 2]}\t{part} sentence {i} ." for part, n in (
        ("tr", 40), ("va", 6), ("te", 8)) for i in range(n)]
    return write(tmp_path / "bigram_shift.txt", "\n".join(lines) + "\n" + extra)


def test_sentevals_own_files(tmp_path):
    items = open_source(senteval(tmp_path, "te\tO\tsome other field\tlast one .\n")).items()
    assert (items.kind, items.task, items.classes) == ("sentence", "bigram_shift", ["I", "O"])
    assert {p: s["items"] for p, s in items.sizes.items()} == {"train": 40, "validation": 6, "test": 9}
    assert items.sentences[items.sentence[41]] == ["va", "sentence", "1", "."]
    assert items.sentences[-1] == ["last", "one", "."]


@pytest.mark.parametrize("extra, sentence", [
    ("xx\tO\tx\n", "line 55: a line is tr, va or te"), ("tr\tO\n", "line 55: a line is tr"),
    ("tr\t\tx\n", "line 55: the label or the text"), ("tr\tO\t \n", "line 55: the label or the text")])
def test_a_bad_line_of_sentevals_is_named(tmp_path, extra, sentence):
    with pytest.raises(BertScopeError, match=sentence):
        open_source(senteval(tmp_path, extra))


def test_any_other_text_file_is_refused(tmp_path):
    with pytest.raises(BertScopeError, match="line 1: a text file should be SentEval's"):
        open_source(write(tmp_path / "a.txt", "It was a dark and stormy night.\n"))


# -- columns of entity tags ---------------------------------------------------------------------


def test_columns_are_read_with_documents_and_odd_blanks(tmp_path):
    path = write(tmp_path / "x.conll", "-DOCSTART- -X- O O\n\nEU NNP B-ORG\nrejects VBZ O\n\t\n\n"
                                       "#tag\tO\nNew York\tB-LOC\n\n-DOCSTART- O\n\nA B-X\n")
    made = list(read_columns(path))
    assert [[w.form for w in s.words] for s in made] == [["EU", "rejects"], ["#tag", "New York"], ["A"]]
    assert [w.misc["NER"] for w in made[0].words] == ["B-ORG", "O"]
    assert [s.document for s in made] == ["document 1", "document 1", "document 2"]


@pytest.mark.parametrize("text, sentence", [
    ("EU B-ORG\nrejects\n", "line 2: a word and its tag"),
    ("EU B-ORG\nrejects VBZ\n", "line 2: the last column should be an entity tag"),
    ("EU B-ORG\n" + "x" * 20_000 + " O\n", "line 2: the line has more than"),
    ("a O\n" * 5001, "line 5001: the sentence has more than")])
def test_bad_columns_are_refused_and_the_line_is_named(tmp_path, text, sentence):
    with pytest.raises(BertScopeError, match=sentence):
        open_source(write(tmp_path / "x.conll", text))


@pytest.mark.skipif(not WNUT.is_dir(), reason=f"{WNUT} is not there")
def test_wnut_has_the_entities_that_its_paper_counts():
    """Derczynski et al. (2017, Table 3): 1,975 entities in training, 836 in dev, 1,079 in test."""
    items = open_source(WNUT).items("entity")
    assert {part: sizes["items"] for part, sizes in items.sizes.items()} == {
        "train": 1975, "validation": 836, "test": 1079}
    assert items.label_counts("test")["person"] == 429
