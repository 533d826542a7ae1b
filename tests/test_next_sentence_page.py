"""The Next sentence page: three views, any text, any checkpoint."""

import json
import shutil

import numpy as np
import pytest
import tiny_models
import transformers

from bertscope.runs import open_run
from test_app import address, after_the_first_visit, app, figures, own_runs, runs, said

COHERENCE, DOCUMENT = "Topic or coherence?", "A document"
__all__ = ["after_the_first_visit", "own_runs", "runs"]  # fixtures


def plain(at) -> str:
    return said(at).replace("\\", "")


def fine(at):
    assert not at.exception and not at.error, (at.exception, at.error)
    return at


# -- one pair ---------------------------------------------------------------------------------


def test_the_answer_is_worded_and_is_the_librarys(runs, tiny_run):
    from bertscope.analysis import load
    from bertscope.analysis.pair_head import route

    at = fine(app("next_sentence", run="tiny", a="the cat sleeps .", b="it is tired ."))
    found = route(load(tiny_run.checkpoints()[-1].path), "the cat sleeps .", "it is tired .")
    assert f"“B follows A”: {found.p_yes:.1%}" in plain(at)
    bars, cls, pooled, votes, layers, steps = figures(at)
    assert bars["data"][1]["text"] == [f"B follows A: {found.p_yes:.1%}"]
    for spec, vector in ((cls, found.cls), (pooled, found.pooled), (votes, found.votes)):
        np.testing.assert_allclose(values(spec), vector, atol=1e-6)
    np.testing.assert_allclose(array(layers["data"][0]["y"]), found.layers, atol=1e-6)
    grid = array(steps["data"][0]["z"])
    assert grid.shape[0] == 3 and steps["data"][0]["x"][-1] == "40"
    np.testing.assert_allclose(grid[:, -1], found.layers, atol=1e-6)
    assert "transformers' own BertForPreTraining: the logits are the same" in plain(at)
    assert f"{found.votes.sum():+.2f}".replace("-", "−") in said(at)


def array(values) -> np.ndarray:
    """Numbers of a Plotly specification, which may be packed."""
    import base64

    if isinstance(values, dict):
        flat = np.frombuffer(base64.b64decode(values["bdata"]), np.dtype(values["dtype"]))
        shape = [int(n) for n in str(values.get("shape", flat.size)).split(",")]
        return flat.reshape(shape)
    return np.array(values, float)


def values(spec) -> np.ndarray:
    return array(spec["data"][0]["z"]).ravel()


def test_albert_and_a_bert_taught_the_order_are_asked_about_order(runs, own_runs, tmp_path):
    tiny_models.save(tmp_path / "albert", transformers.AlbertForPreTraining, family="albert")
    at = fine(app("next_sentence", run=str(tmp_path / "albert"), a="a cat", b="a dog",
                  vs="tiny@40"))
    assert "“A and B are in order”:" in plain(at)
    bars = figures(at)[0]
    assert [t["text"][0].split(":")[0] for t in bars["data"] if "text" in t] == \
        ["B follows A", "A and B are in order"]  # each by its own question, the first on top
    record = own_runs / "tiny" / "config.json"
    config = json.loads(record.read_text())
    config["config"]["objective"]["pairs"] = "sop"
    record.write_text(json.dumps(config))
    at = fine(app("next_sentence", run="tiny", a="a cat", b="a dog"))
    assert "“A and B are in order”:" in plain(at) and "“B follows A”:" not in plain(at)


def test_a_second_checkpoint_without_the_head_is_left_out(runs, tmp_path):
    tiny_models.save(tmp_path / "bare", transformers.BertForMaskedLM)
    at = fine(app("next_sentence", run="tiny", vs=str(tmp_path / "bare")))
    assert "no NSP head" in plain(at) and len(figures(at)) == 6


TEXTS = ("💥😀", "<script>alert(1)</script> & <b>bold</b>", "[SEP] literally [CLS]", "[MASK] [MASK]",
         "Ω≈ç√ 北京 العربية हिन्दी", "\u202eright to left", "$x^2$ **bold** `code` :red[x]", "a " * 900)


def test_any_text_has_an_answer(runs):
    at = app("next_sentence", run="tiny")
    at.toggle(key="over_time").set_value(False).run()
    for text in TEXTS:
        at.text_area(key="a").set_value(text)
        at.text_area(key="b").set_value(text[::-1]).run()
        assert "“B follows A”:" in plain(fine(at)), text
    at.segmented_control(key="view").set_value(DOCUMENT).run()
    for text in TEXTS:
        at.text_area(key="document").set_value("\n".join([text] * 3)).run()
        assert "3 sentences, 2 boundaries" in plain(fine(at)), text


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_no_text_is_asked_for(runs, text):
    at = fine(app("next_sentence", run="tiny", a=text, b="a dog"))
    assert "at least one word" in said(at)
    at = fine(app("next_sentence", run="tiny", view=DOCUMENT, document=text))
    assert "Paste a text" in said(at)


def test_a_text_that_is_too_long_is_a_sentence(runs):
    at = app("next_sentence", run="tiny")
    at.text_area(key="a").set_value("word " * 10_000).run()
    assert not at.exception and "at most 3,000 are taken" in plain(at)
    assert "a" not in address(at) and "too long for the address" in plain(at)


def test_typed_separators_are_ordinary_text(runs, tiny_run):
    """“[SEP]” in A must not end it: the pieces of its letters are read."""
    from bertscope.analysis import load, next_sentence

    at = fine(app("next_sentence", run="tiny", a="a cat [SEP] a dog", b="it sleeps ."))
    model = load(tiny_run.checkpoints()[-1].path)
    p = next_sentence(model, "a cat [SEP] a dog", "it sleeps .").p_next
    assert f"{p:.1%}" in plain(at)
    from bertscope.analysis import encode

    assert encode(model, "a cat [SEP] a dog").tokens.count("[SEP]") == 1


# -- topic or coherence -----------------------------------------------------------------------


@pytest.fixture
def with_corpus(tiny_root, own_runs):
    shutil.copytree(tiny_root / ".corpora", own_runs / ".corpora")
    return own_runs


def test_four_kinds_by_the_model_and_the_bag_of_words(with_corpus):
    from bertscope.analysis import load
    from bertscope.analysis.coherence import as_read, draw, model_scores
    from bertscope.analysis.coherence_summary import summarise
    from bertscope.analysis.held_out import of_run

    at = fine(app("next_sentence", run="tiny", view=COHERENCE, places="100"))
    run = open_run("tiny", with_corpus)
    model = load(run.checkpoints()[-1].path)
    anchors, _ = as_read(model, draw(of_run(run).test, 100))
    scores = model_scores(model, anchors)
    expected = summarise(scores, np.array([anchor.document for anchor in anchors]))
    histograms, dots = figures(at)
    assert len(histograms["data"]) == 8  # four kinds, two readers
    heights = [array(trace["y"]) for trace in histograms["data"]]
    counts = np.histogram(scores[:, 2], 20, (0, 1))[0] / len(scores)
    np.testing.assert_allclose(heights[2], counts, atol=0.05)  # a score may cross a bin's edge
    np.testing.assert_allclose(array(dots["data"][0]["x"]),
                               [expected.auc[k].value for k in ("other", "same", "swapped")],
                               atol=1e-3)
    assert array(dots["data"][1]["x"])[2] == 0.5, "the bag of words is blind to order"
    assert f"{len(anchors)} places in {expected.documents} documents that tiny was not" in plain(at)
    assert "Against a text of another document" in plain(at)
    assert {f.name.split("-")[0] for f in run.analysis_path.iterdir()} == {"coherence", "topics"}
    before = sorted((f.name, f.stat().st_mtime) for f in run.analysis_path.iterdir())
    fine(at.run())
    assert sorted((f.name, f.stat().st_mtime) for f in run.analysis_path.iterdir()) == before


def test_over_the_checkpoints_and_beside_the_untrained_model(with_corpus):
    at = fine(app("next_sentence", run="tiny", view=COHERENCE, places="100", each="2", draw="3"))
    assert not at.get("vega_lite_chart")
    at.button(key="coherence_more").click().run()
    fine(at)
    assert at.get("vega_lite_chart") and len(
        list((with_corpus / "tiny" / "analysis").glob("coherence-*"))) > 3
    at.button(key="try_2").click().run()
    fine(at)
    assert address(at)["vs"] == "tiny@0" and len(figures(at)[0]["data"]) == 12
    assert address(at)["each"] == "2" and address(at)["draw"] == "3"


def test_a_wrong_pair_is_taken_to_the_first_view(with_corpus):
    at = fine(app("next_sentence", run="tiny", view=COHERENCE, places="100", kind="another document"))
    assert at.segmented_control(key="kind").value == "other"
    worst = at.dataframe[1].value.iloc[0]
    at.button(key="take_pair").click().run()
    fine(at)
    assert (at.text_area(key="a").value, at.text_area(key="b").value) == (worst.a, worst.b)
    assert address(at)["a"] == worst.a and "view" not in address(at)
    assert f"“B follows A”: {worst.iloc[2]:.1%}" in plain(at)


def test_documents_of_a_named_corpus(with_corpus, tmp_path):
    (tmp_path / "days.txt").write_text("\n\n".join(
        "\n".join(f"the {noun} is {word} today." for word in ("red", "old", "big", "new"))
        for noun in ("cat", "dog", "tree", "house", "ship", "sea", "barn", "road", "hill", "sun")))
    at = fine(app("next_sentence", run="tiny", view=COHERENCE, docs=str(tmp_path / "days.txt"),
                  places="100"))
    assert "has read these documents before is not known" in plain(at)
    at = app("next_sentence", run="tiny", view=COHERENCE, docs="<b>/nowhere")
    assert not at.exception and "no file or folder" in at.error[0].value.replace("\\", "")


def test_a_checkpoint_of_others_is_asked_for_documents(runs, tmp_path):
    tiny_models.save(tmp_path / "theirs")
    theirs = str(tmp_path / "theirs")
    at = fine(app("next_sentence", run=theirs, view=COHERENCE, places="100"))
    assert len(figures(at)) == 2 and "documents of sotu" in plain(at)
    assert "held out by the run" not in at.selectbox(key="docs").options
    at = fine(at.selectbox(key="docs").set_value("miniworld").run())
    assert len(figures(at)) == 2 and address(at)["docs"] == "miniworld" and "documents of miniworld" in plain(at)


def test_documents_are_uploaded(runs):
    text = "\n\n".join("\n".join(f"the {noun} is {word} today." for word in ("red", "old", "big", "new"))
                       for noun in ("cat", "dog", "tree", "house", "ship", "sea", "barn", "road", "hill"))
    at = fine(app("next_sentence", run="tiny", view=COHERENCE, docs="a file that I upload", places="100"))
    assert "Upload a file with several documents" in plain(at) and not figures(at)
    at = fine(at.file_uploader(key="docs_file").upload("../my days.txt", text.encode(), "text/plain").run())
    assert len(figures(at)) >= 2 and "documents of my days.txt" in plain(at)
    at.file_uploader(key="docs_file").upload("x.jsonl", b"{no json", "text/plain").run()
    assert not at.exception and "x.jsonl" in at.error[0].value.replace("\\", "")
    assert "/tmp" not in plain(at)


def test_a_run_without_its_corpus_offers_to_make_it_again(own_runs):
    run = open_run("tiny", own_runs)
    run.write_config(run.config(), corpus={**run.config_record()["corpus"], "path": "/nowhere"})
    at = app("next_sentence", run="tiny", view=COHERENCE, places="100")
    assert not at.exception and "no longer here" in at.error[0].value.replace("\\", "")
    assert "documents of miniworld" in plain(at) and "is not known" in plain(at)  # others, meanwhile
    at = fine(at.button(key="prepare_again").click().run())
    assert "documents that tiny was not trained on" in plain(at) and "is not known" not in plain(at)


def test_a_corpus_that_cannot_be_made_again_is_a_sentence(own_runs):
    run = open_run("tiny", own_runs)
    run.write_config(run.config(), corpus={"fingerprint": "0" * 24, "path": "/nowhere"})
    at = app("next_sentence", run="tiny", view=COHERENCE, places="100")
    at.button(key="prepare_again").click().run()
    assert not at.exception and "cannot be made again" in plain(at)


# -- a document -------------------------------------------------------------------------------


def test_the_strip_is_the_librarys(runs, tiny_run):
    from bertscope.analysis import load
    from bertscope.analysis.boundaries import boundaries

    sentences = ["The cat sleeps.", "It is tired.", "A ship is on the sea.", "It is red."]
    at = fine(app("next_sentence", run="tiny", view=DOCUMENT, document=" ".join(sentences),
                  around="2"))
    model = load(tiny_run.checkpoints()[-1].path)
    expected = boundaries(model, sentences, 2).p_next
    strip, steps = figures(at)
    np.testing.assert_allclose(array(strip["data"][0]["z"])[0], expected, atol=1e-6)
    np.testing.assert_allclose(array(steps["data"][0]["z"])[:, -1], expected, atol=1e-6)
    table = at.dataframe[0].value
    assert table.text.tolist() == sentences and "4 sentences, 3 boundaries" in plain(at)
    assert f"{expected.min():.1%}" in plain(at)


def test_ten_thousand_words_are_read_to_a_bound(runs):
    at = app("next_sentence", run="tiny", view=DOCUMENT)
    text = "The cat sleeps on the mat. It is tired. " * 1100
    at.text_area(key="document").set_value(text).run()
    fine(at)
    assert "The first 200 of 2,200 sentences" in plain(at)
    assert "too long for the address" in plain(at) and "document" not in address(at)
    at.text_area(key="document").set_value("word. " * 40_000).run()
    assert not at.exception and "at most 100,000 are taken" in plain(at)


def test_experiments_and_two_checkpoints(runs):
    at = fine(app("next_sentence", run="tiny", view=DOCUMENT, vs="tiny@0"))
    strip = figures(at)[0]
    assert array(strip["data"][0]["z"]).shape == (2, 13)
    at.button(key="try_2").click().run()
    fine(at)
    assert address(at)["document"] == at.text_area(key="document").value
    at.segmented_control(key="view").set_value("One pair").run()
    at.segmented_control(key="view").set_value(DOCUMENT).run()
    fine(at)
    assert at.text_area(key="document").value == address(at)["document"]


@pytest.mark.parametrize(("count", "written"), [(13, True), (24, False)])
def test_the_numbers_of_a_strip_have_room_in_their_cells(count, written):
    from bertscope.ui.next_sentence.figures import boundaries

    figure = boundaries([("tiny", np.full(count, 0.714))], [("a", "b")] * count)
    texts = figure.data[0].text
    assert (texts is not None) == written
    assert not written or set(texts[0]) == {"71"} and "percent" in figure.layout.xaxis.title.text


def test_two_checkpoints_of_different_questions_are_told_apart(with_corpus, tmp_path):
    tiny_models.save(tmp_path / "albert", transformers.AlbertForPreTraining, family="albert")
    at = fine(app("next_sentence", run="tiny", view=COHERENCE, places="100", vs=str(tmp_path / "albert")))
    assert "taught different questions, “B follows A” and “A and B are in order”" in plain(at)
    assert "different questions" not in plain(app("next_sentence", run="tiny", view=COHERENCE, places="100",
                                                  vs="tiny@0"))
    at = fine(app("next_sentence", run="tiny", view=DOCUMENT, vs=str(tmp_path / "albert")))
    labels = [column.get("label") for column in json.loads(at.dataframe[0].proto.columns).values()]
    assert "tiny · step 40" in labels and "albert" in labels
