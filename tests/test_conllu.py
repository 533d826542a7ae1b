"""The CoNLL-U reader and writer."""

from pathlib import Path

import pytest

from bertscope.corpus.conllu import Sentence, Word, detokenize, read_conllu, write_conllu
from bertscope.errors import BertScopeError

EWT = Path(__file__).resolve().parents[2] / "shared" / "data" / "ud_english_ewt"

SAMPLE = """\
# newdoc id = d1
# newpar
# sent_id = d1-1
# text = I don't see it.
1\tI\tI\tPRON\tPRP\tCase=Nom|Number=Sing\t4\tnsubj\t4:nsubj\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tsee\tsee\tVERB\tVB\tVerbForm=Inf\t0\troot\t_\t_
4.1\tghost\tghost\tVERB\t_\t_\t_\t_\t_\t_
5\tit\tit\tPRON\tPRP\t_\t4\tobj\t_\tSpaceAfter=No|Flag
6\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_

# newdoc
1\t_\t_\tSYM\t_\t_\t_\t_\t_\t_
"""


def written(tmp_path, text: str | bytes) -> Path:
    path = tmp_path / "sample.conllu"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_reader_keeps_words_metadata_and_documents(tmp_path):
    first, second, third = read_conllu(written(tmp_path, SAMPLE))
    assert [w.form for w in first.words] == ["I", "do", "n't", "see", "it", "."]
    assert first.words[0] == Word("I", "I", "PRON", "PRP", {"Case": "Nom", "Number": "Sing"},
                                  4, "nsubj", {})
    assert first.words[4].misc == {"SpaceAfter": "No", "Flag": ""}
    assert first.metadata == {"newdoc id": "d1", "newpar": "", "sent_id": "d1-1",
                              "text": "I don't see it."}
    assert (first.document, second.document, third.document) == ("d1", "d1", "newdoc 2")
    assert first.text == "I don't see it." and second.text == "Yes"
    assert detokenize(first.words) == "I do n't see it."
    assert third.words[0].form == "_" and third.words[0].head == -1


@pytest.mark.parametrize("text", [
    SAMPLE.replace("\n", "\r\n"), "\ufeff" + SAMPLE, "\n\n  \n" + SAMPLE, SAMPLE.rstrip("\n")])
def test_line_ends_bom_and_blank_lines_do_not_matter(tmp_path, text):
    plain = list(read_conllu(written(tmp_path, SAMPLE)))
    assert list(read_conllu(written(tmp_path, text))) == plain


def test_invalid_utf8_is_replaced(tmp_path):
    path = written(tmp_path, b"1\tcaf\xe9\t_\tNOUN\t_\t_\t0\troot\t_\t_\n")
    assert next(read_conllu(path)).words[0].form == "caf\ufffd"


@pytest.mark.parametrize("line, complaint", [
    ("2\tb\t_\t_", "has 4"),
    ("2 b _ _ _ _ 0 root _ _", "has 1"),
    ("x\tb\t_\t_\t_\t_\t0\troot\t_\t_", "'x' is not a word's number"),
    ("3\tb\t_\t_\t_\t_\t0\troot\t_\t_", "word 2 should come here, not word 3"),
    ("2\t\t_\t_\t_\t_\t0\troot\t_\t_", "no form"),
    ("2\tb\t_\t_\t_\t_\tone\troot\t_\t_", "HEAD must be a number"),
    ("2\tb\t_\t_\t_\tSing\t1\tobj\t_\t_", "FEATS must be like"),
])
def test_malformed_lines_are_named(tmp_path, line, complaint):
    path = written(tmp_path, "# text = a b\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n" + line + "\n")
    with pytest.raises(BertScopeError, match=complaint) as caught:
        list(read_conllu(path))
    assert str(path) in str(caught.value) and "line 3" in str(caught.value)


def test_head_beyond_the_sentence_and_missing_file(tmp_path):
    path = written(tmp_path, "\n1\ta\t_\t_\t_\t_\t7\troot\t_\t_\n")
    with pytest.raises(BertScopeError, match="line 2.*HEAD 7"):
        list(read_conllu(path))
    with pytest.raises(BertScopeError, match="cannot be read"):
        list(read_conllu(tmp_path / "absent.conllu"))
    with pytest.raises(BertScopeError, match="cannot be read"):
        list(read_conllu(tmp_path))


def test_round_trip(tmp_path):
    sentences = list(read_conllu(written(tmp_path, SAMPLE)))
    out = tmp_path / "out.conllu"
    write_conllu(sentences, out)
    assert list(read_conllu(out)) == sentences


def test_writer_marks_a_document_whose_first_sentence_was_dropped(tmp_path):
    sentences = [Sentence([Word("a", head=0)], {}, "x"), Sentence([Word("b", head=0)], {}, "y")]
    out = tmp_path / "out.conllu"
    write_conllu(sentences, out)
    assert [s.document for s in read_conllu(out)] == ["x", "y"]


def test_writer_refuses_what_would_break_the_file(tmp_path):
    for bad in (Word("a\tb", head=0), Word("a\nb", head=0)):
        with pytest.raises(BertScopeError, match="cannot be written"):
            write_conllu([Sentence([bad])], tmp_path / "out.conllu")


@pytest.mark.skipif(not EWT.is_dir(), reason="UD English EWT is not beside the repository")
def test_ewt_agrees_with_the_conllu_package(tmp_path):
    conllu = pytest.importorskip("conllu")
    path = EWT / "en_ewt-ud-dev.conllu"
    ours = list(read_conllu(path))
    with open(path, encoding="utf-8") as file:
        theirs = list(conllu.parse_incr(file))
    assert len(ours) == len(theirs) > 1000
    for mine, other in zip(ours, theirs):
        words = [token for token in other if isinstance(token["id"], int)]

        def lemma(token):  # "_" is a lemma only of the word "_"
            return "" if token["lemma"] == "_" != token["form"] else token["lemma"]

        assert [(w.form, w.lemma, w.upos, w.xpos, w.feats, w.head, w.deprel) for w in mine.words] \
            == [(t["form"], lemma(t), t["upos"], t["xpos"] or "", t["feats"] or {}, t["head"],
                 t["deprel"]) for t in words]
    write_conllu(ours, tmp_path / "dev.conllu")
    assert list(read_conllu(tmp_path / "dev.conllu")) == ours
