"""The Masking page without a browser: its views, its address, and hostile texts."""

import json
import shutil

import numpy as np
import pytest
import tiny_models
from test_app import (  # fixtures too
    address, after_the_first_visit, app, figures, no_runs, own_runs, runs, said)

from bertscope.runs import open_run

__all__ = ["after_the_first_visit", "no_runs", "own_runs", "runs"]
FED, SEEN, TALLY = "What the model was fed", "How often it saw a word", "Tally"


def rows_of(at, key: str) -> list[dict]:
    """The rows of pieces that were drawn under a key."""
    for component in at.get("bidi_component"):
        if f"-{key}" in component.proto.id or component.proto.id.endswith(key):
            return json.loads(component.proto.json)["rows"]
    raise AssertionError(f"nothing is drawn as {key}: {[c.proto.id for c in at.get('bidi_component')]}")


def cells(at, key: str) -> list[dict]:
    return [cell for row in rows_of(at, key) for cell in row["cells"]]


def fine(at):
    assert not at.exception, at.exception
    assert not at.error, [error.value for error in at.error]
    return at


# -- step by step -----------------------------------------------------------------------------


def test_the_steps_of_a_pair_fit_together(runs):
    at = fine(app("masking", run="tiny"))
    text = said(at)
    assert "Not as this run was trained" not in text
    placed, chosen, fates, targets = (cells(at, k) for k in ("places", "chosen", "fates", "targets"))
    assert placed[0]["piece"] == "[CLS]" and placed[-1]["piece"] == "[SEP]"
    assert [c["lines"][1] for c in placed] == [str(i) for i in range(len(placed))]
    segments = "".join(c["lines"][0] for c in placed)
    assert segments == "A" * segments.count("A") + "B" * segments.count("B") and "B" in segments
    picked = [c["marked"] for c in chosen]
    assert sum(picked) == max(1, round(0.15 * len(placed)))
    assert [c["marked"] for c in fates] == [c["marked"] for c in targets] == picked
    for before, after in zip(placed, fates):
        if after["marked"]:
            assert after["lines"][0] == f"was {before['piece']}"
            assert after["lines"][1] in ("[MASK]", "random", "kept")
            assert (after["piece"] == "[MASK]") == (after["lines"][1] == "[MASK]")
        else:
            assert after["piece"] == before["piece"]
    losses = [float(c["lines"][-1]) for c in targets if c["marked"]]
    assert f"**{np.mean(losses):.2f}" in text.replace("\\", "")
    maps = figures(at)[0]
    titles = [a["text"] for a in maps["layout"]["annotations"]]
    assert titles == ["token", "+ segment", "+ position", "= sum", "LayerNorm"]


def test_drawing_again_is_the_next_epoch_and_static_comes_again_after_ten(runs):
    at = fine(app("masking", run="tiny", masking="static"))
    first = cells(at, "fates")
    at = fine(at.button(key="next_epoch").click().run())
    assert at.session_state["epoch"] == 1 and cells(at, "fates") != first
    assert "copy 2 of 10" in said(at)
    at = fine(at.number_input(key="epoch").set_value(10).run())
    assert cells(at, "fates") == first
    at = fine(at.button(key="next_epoch_here").click().run())
    assert at.session_state["epoch"] == 11


def test_every_setting_is_read_from_the_address(runs):
    at = fine(app("masking", run="tiny", scheme="text 1 as A, text 2 as B", unit="whole words",
                  masking="static", rate="40", mask_share="0", random_share="100", longest="20",
                  epoch="3", text1="the dog sees a cat. near a house is a dog.", text2="a cat."))
    placed, fates = cells(at, "places"), cells(at, "fates")
    assert len(placed) <= 20 and "as typed" in said(at)
    became = {c["lines"][1] for c in fates if c["marked"]}
    assert became == {"random"}
    assert "pair scheme, unit, masking, rate, share of [MASK], share of random pieces, length" in \
        said(at).replace("\\", "")
    at = fine(at.button(key="as_run").click().run())
    assert "Not as this run was trained" not in said(at)


def test_shares_beyond_one_become_a_sentence(runs):
    at = app("masking", run="tiny", mask_share="80", random_share="90")
    assert not at.exception and "add up to more than 1" in at.error[0].value.replace("\\", "")


@pytest.mark.parametrize("asked", [{"rate": "nan"}, {"rate": "-5"}, {"unit": "<b>"}, {"epoch": "1e99"},
                                   {"example": "99999"}, {"longest": "7"}, {"show": "elsewhere"},
                                   {"fed": "x", "show": FED}, {"from": "-3", "show": FED},
                                   {"tally_count": "999999999", "show": TALLY}])
def test_a_hostile_address_shows_the_page_all_the_same(runs, asked):
    fine(app("masking", run="tiny", **asked))


def test_pairs_need_two_texts_and_the_page_says_so(runs):
    at = fine(app("masking", run="tiny", text1="the dog runs. a cat sees the dog.", text2=" "))
    assert "at least two documents" in at.warning[0].value and rows_of(at, "sentences")
    at = fine(app("masking", run="tiny", text1="the dog runs", text2=" ", scheme="single sentences"))
    assert "no pair" in said(at)


TEXTS = {"empty": "", "spaces": "  \n \t ", "emoji": "😀 🎉🎉 😀", "masks": "[MASK] [MASK]",
         "separator": "the dog [SEP] sees a cat", "html": "<script>alert(1)</script> <b>the dog</b>",
         "scripts": "ไทย 日本語 العربية", "markdown": "**a** $x$ :red[b] `c`"}


@pytest.mark.parametrize("kind", TEXTS)
def test_any_text_has_a_designed_answer(runs, kind):
    at = app("masking", run="tiny", scheme="packed across documents")
    at.text_area(key="text1").set_value(TEXTS[kind])
    at.text_area(key="text2").set_value("").run()
    assert not at.exception, at.exception
    if kind in ("empty", "spaces"):
        assert not at.error and "Type a text above" in said(at)
        return
    assert not at.error
    drawn = json.dumps(rows_of(at, "sentences")) + said(at)
    if kind == "masks":
        assert "mask piece itself" in drawn and not any(c["marked"] for c in cells(at, "fates"))
    if kind == "separator":
        assert [c["piece"] for c in cells(at, "places")].count("[SEP]") == 1
    if kind in ("emoji", "scripts"):
        assert "not in this model's vocabulary" in drawn
    for value in (element.value for element in at.markdown):
        assert "<script>" not in value and "<b>the" not in value


def test_ten_thousand_words_are_refused_with_a_sentence(runs):
    at = app("masking", run="tiny")
    at.text_area(key="text1").set_value("word " * 10_000).run()
    assert not at.exception
    assert "characters; at most 3,000 are taken" in at.error[0].value.replace("\\", "")


def test_a_second_checkpoint_of_another_vocabulary_costs_a_sentence(runs, tmp_path):
    tiny_models.save(tmp_path / "other")
    at = fine(app("masking", run="tiny", vs=str(tmp_path / "other")))
    assert "its vocabulary is another one" in said(at)
    assert cells(at, "targets")


@pytest.mark.parametrize("family", ["roberta", "albert", "deberta-v2", "distilbert"])
def test_checkpoints_of_others_and_other_families_are_shown(runs, tmp_path, family):
    import transformers

    tiny_models.save(tmp_path / family, transformers.AutoModelForMaskedLM, family=family)
    at = fine(app("masking", run=str(tmp_path / family), text1="the dog sat on a mat", text2="a cat"))
    assert cells(at, "targets") and figures(at)
    expected = {"roberta": "one segment vector", "albert": "widens", "deberta-v2": "no position vectors",
                "distilbert": "no segment vectors"}
    assert expected[family] in said(at)
    for view in (FED, SEEN):
        at = fine(app("masking", run=str(tmp_path / family), show=view))
        assert "of BertScope's own runs only" in said(at).replace("\\", "")
    assert "two texts" in said(fine(app("masking", run=str(tmp_path / family), show=TALLY)))


# -- the other views --------------------------------------------------------------------------


@pytest.mark.parametrize("of, part", [("the run's corpus", "documents that this run trains on"),
                                      ("the typed texts, epoch after epoch", "of the two texts")])
def test_the_tally_says_what_was_counted(runs, of, part):
    at = fine(app("masking", run="tiny", show=TALLY, tally_of=of, tally_count="300"))
    assert "300 examples" in said(at) and part in said(at)
    labels = figures(at)[0]["layout"]["yaxis"]["ticktext"]
    assert len(labels) == 4 and "80 %" in labels[0] and "50 %" in labels[3]


def test_a_causal_run_predicts_every_piece_and_masks_none(no_runs):
    from bertscope.presets import run_config
    from bertscope.runs import create_run
    from bertscope.training.loop import train

    run = create_run("causal", run_config({
        "corpus.documents": 60, "model.hidden_size": 32, "model.intermediate_size": 64,
        "training.steps": 4, "training.evaluation_examples": 32}, recipe="causal"), no_runs)
    train(run)
    at = fine(app("masking", run="causal"))
    shown = cells(at, "targets")
    assert not any(c["marked"] for c in shown) and "predicts every piece" in said(at)
    assert all(float(c["lines"][-1]) > 0 for c in shown[1:]) and not shown[0]["lines"]
    at = fine(app("masking", run="causal", show=FED))
    drawn = cells(at, "fed_rows")
    assert drawn[0]["piece"] == "[CLS]" and all(c["lines"] for c in drawn if c["piece"] != "[CLS]")
    assert "Nothing is chosen" in said(fine(app("masking", run="causal", show=TALLY)))
    fine(app("masking", run="causal", show=SEEN))


def test_a_corpus_has_no_typed_pairs(runs):
    at = fine(app("masking", run="tiny", show=TALLY, scheme="text 1 as A, text 2 as B"))
    assert "A corpus has no text 1" in said(at)


def test_what_was_fed_is_the_batch_after_the_chosen_checkpoint(runs):
    from bertscope.analysis.feeding import fed, open_feed
    from bertscope.analysis.inputs import pieces

    at = fine(app("masking", run="tiny", step="8", vs="tiny@0", show=FED))
    assert "Step 9" in said(at).replace("\\", "") and "which this step was made from" in said(at)
    feed = open_feed(open_run("tiny", runs))
    found = fed(feed, 9)
    for drawn, row in zip(rows_of(at, "fed_rows"), found.rows):
        assert [c["piece"] for c in drawn["cells"]] == pieces(feed.tokenizer, row.shown)
        marked = [i for i, c in enumerate(drawn["cells"]) if c["marked"]]
        assert marked == row.chosen.tolist()
    assert "How often it had seen these pieces before" in said(at)
    at = fine(app("masking", run="tiny", fed="40", show=FED, **{"from": "13"}))
    assert "batch" in said(at) and "8 steps earlier" in said(at) or "7 steps earlier" in said(at)
    assert rows_of(at, "fed_rows")[0]["head"].startswith("13 · ")
    at = fine(at.button(key="fed_1").click().run())
    assert "Step 1**" in said(at).replace("\\", "")


def test_a_step_before_every_checkpoint_that_is_left_is_shown_without_its_loss(own_runs):
    saved = open_run("tiny", own_runs).checkpoints()
    shutil.rmtree(saved[0].path)
    at = fine(app("masking", run="tiny", show=FED, fed="1"))
    assert "No checkpoint from before this step is left" in said(at)
    assert rows_of(at, "fed_rows") and "Loss by" not in said(at)


def test_how_often_a_word_was_seen(runs):
    from bertscope.analysis.exposure import exposure
    from bertscope.analysis.feeding import open_feed

    at = fine(app("masking", run="tiny", step="16", show=SEEN, words_seen="the dog [SEP]"))
    feed = open_feed(open_run("tiny", runs))
    table = at.dataframe[0].value
    counted = exposure(feed, 16)
    the = feed.tokenizer.convert_tokens_to_ids("the")
    assert table.set_index("piece").loc["the", "seen"] == counted.seen[the] > 0
    assert "[SEP]" not in set(table["piece"]) and "[UNK]" in set(table["piece"])
    assert "was read as" in said(at)
    assert "had not been seen at all" in said(at) and at.get("vega_lite_chart")
    at = fine(app("masking", run="tiny", show=SEEN, words_seen=" "))
    assert "Type a word" in said(at)
    at = fine(app("masking", run="tiny", step="16", show=SEEN, words_seen="the dog", vs="tiny@8"))
    column = list(at.dataframe[0].value)[2]  # beside the run's own, in sight in a narrow window
    table = at.dataframe[0].value.set_index("piece")
    assert column == "by tiny · step 8" and table.loc["the", column] == exposure(feed, 8).seen[the]
    assert table.loc["the", column] < table.loc["the", "seen"]


def test_a_corpus_that_is_gone_is_said_so(own_runs):
    run = open_run("tiny", own_runs)
    run.write_config(run.config(), corpus={"fingerprint": "0123456789abcdef01234567", "path": "/gone"})
    for view in (FED, SEEN):
        at = app("masking", run="tiny", show=view)
        assert not at.exception and "is no longer here" in at.error[0].value.replace("\\", "")
    fine(app("masking", run="tiny"))
    shutil.rmtree(own_runs)


def test_the_step_is_read_from_the_address_and_follows_the_checkpoint(runs):
    at = fine(app("masking", run="tiny", step="8", show=FED, fed="12"))
    assert address(at)["step"] == "8" and at.number_input(key="fed").value == 12
    at = fine(at.select_slider(key="step").set_value(16).run())
    assert at.number_input(key="fed").value == 17
    at = fine(at.number_input(key="fed").set_value(3).run())
    assert at.number_input(key="fed").value == 3 and "1 steps earlier" not in said(at)


def test_a_corpus_that_is_gone_is_made_again_by_a_click(own_runs):
    run = open_run("tiny", own_runs)
    run.write_config(run.config(), corpus={**run.config_record()["corpus"], "path": "/gone"})
    at = app("masking", run="tiny", show=FED)
    assert "is no longer here" in at.error[0].value.replace("\\", "")
    at = fine(at.button(key="prepare_again").click().run())
    assert at.number_input(key="fed").value == 40 and not at.error
