"""Predict's page: words of one's own, whole words, the class, and every kind of text."""

import json

import pytest
from test_app import after_the_first_visit, app, bar_charts, figures, no_runs, runs, said  # fixtures too

from bertscope.analysis import encode, load
from bertscope.analysis.predictions import log_probabilities, predict

__all__ = ["after_the_first_visit", "no_runs", "runs"]
TEXT = "the dog sees a cat ."


def newest(tiny_run):
    return load(tiny_run.checkpoints()[-1].path)


def test_words_of_ones_own_are_rated_or_said_to_be_none(runs, tiny_run):
    at = app("predict", run="tiny", text=TEXT, mask="2", words="sees, zebra , 中, sees,<b>")
    assert not at.exception and not at.error
    model = newest(tiny_run)
    log_p = log_probabilities(model, encode(model, TEXT), [2])[0]
    sees = model.tokenizer.convert_tokens_to_ids("sees")
    text = said(at).replace("\\", "")
    assert f"**sees** {2.718281828 ** log_p[sees]:.2%}, rank {1 + int((log_p > log_p[sees]).sum())}" in text
    assert "“zebra” is" in text and "“中” is not in this model's vocabulary" in text
    curve = json.loads(at.get("vega_lite_chart")[0].proto.spec)
    assert "sees" in json.dumps(curve)
    assert "“<b>” is not in" in text


def test_the_strip_holds_each_checkpoints_leaders(runs, tiny_run):
    at = app("predict", run="tiny", text=TEXT, mask="2")
    (strip,) = [f for f in figures(at) if f["data"][0]["type"] == "heatmap"]
    for row, checkpoint in zip(strip["data"][0]["customdata"], tiny_run.checkpoints()):
        model = load(checkpoint.path)
        expected = predict(model, encode(model, TEXT), [2], 5)[0]
        assert row == [c.token for c in expected.candidates]
    assert strip["layout"]["yaxis"]["ticktext"][-1] == "◀ 40"


def test_what_changed_most_is_between_the_two_that_are_compared(runs):
    at = app("predict", run="tiny", step="40", vs="tiny@4", text=TEXT, mask="2")
    assert "from step 4 to step 40" in said(at)
    table = at.dataframe[0].value
    assert len(table) == 10 and table.change.abs().is_monotonic_decreasing


@pytest.mark.parametrize("measure", ["probability", "rank"])
def test_the_curve_shows_either_measure(runs, measure):
    at = app("predict", run="tiny", text=TEXT, mask="2", measure=measure)
    spec = json.loads(at.get("vega_lite_chart")[0].proto.spec)
    assert measure.capitalize() in json.dumps(spec["title"])
    assert ('"log"' in json.dumps(spec)) == (measure == "rank")


def test_a_click_takes_the_whole_word_along():
    from bertscope.ui.masks import whole_words

    class Encoded:
        word_ids = [None, 0, 1, 1, 1, 2, None]

        def __len__(self):
            return len(self.word_ids)

    encoded = Encoded()
    assert whole_words(encoded, [], [3]) == [2, 3, 4]
    assert whole_words(encoded, [1, 2, 3, 4], [1, 2, 4]) == [1]
    assert whole_words(encoded, [1], [1, 99]) == [1, 99]


def test_whole_words_are_offered_where_a_word_is_of_several_pieces(runs):
    at = app("predict", run="tiny", text=TEXT)
    assert any(t.label == "Mask whole words" for t in at.toggle)
    assert not any(t.label == "Mask whole words"
                   for t in app("predict", run="tiny", text="the sees a .").toggle)


def test_a_class_guesses_before_the_model_answers(runs, tiny_run):
    at = app("predict", run="tiny", view="Class")
    assert not at.exception and not bar_charts(at)
    at.text_input(key="guess").set_value("sees, The,sees,<i>x</i>")
    at.button(key="FormSubmitter:guess-Add").click().run()
    text = said(at).replace("\\", "")
    assert not at.exception and "**sees** × 2" in text and "**the**" in text
    at.toggle(key="reveal").set_value(True).run()
    assert not at.exception and not at.error
    assert len(bar_charts(at)) == 3, "an early, a middle and the chosen checkpoint"
    steps = [c.step for c in tiny_run.checkpoints()]
    assert list(at.dataframe[0].value.columns) == [
        f"tiny · step {steps[i]}" for i in (len(steps) // 4, len(steps) // 2, -1)]
    at.number_input(key="item").set_value(2).run()
    assert not bar_charts(at), "the next sentence begins hidden"
    assert "× 2" not in said(at)


def test_a_teachers_own_sentence(runs):
    at = app("predict", run="tiny", view="Class", own="a [MASK] sleeps .", reveal="true")
    assert not at.exception and len(bar_charts(at)) == 3
    at.text_input(key="own").set_value("no mask").run()
    assert not at.exception and "exactly one word" in said(at).replace("\\", "")


@pytest.mark.parametrize("text", [
    "", "   ", "[MASK]", "[MASK] [MASK]", "<script>alert(1)</script> <b>cat</b>", "💥🦄 ñandú 中文 العربية",
    "the cat [SEP] the dog [CLS] [PAD]", "a " * 1490, "\u202e\u0000\ufeff", "a" * 2900])
def test_every_kind_of_text_has_an_answer(runs, text):
    at = app("predict", run="tiny")
    at.text_area(key="text").set_value(text).run()
    assert not at.exception, at.exception
    if not text.strip("\ufeff \x00\u202e"):
        assert not bar_charts(at)
    elif "[SEP]" in text:
        component = json.loads(at.get("bidi_component")[0].proto.json)
        assert "[SEP]" not in component["tokens"][1:-1]


def test_ten_thousand_words_are_refused_in_one_sentence(runs):
    at = app("predict", run="tiny")
    at.text_area(key="text").set_value("word " * 10_000).run()
    assert not at.exception and "at most 3,000 are taken" in at.error[0].value.replace("\\", "")
    assert "text" not in at.query_params, "an address of that length would be refused"


def test_how_often_a_word_had_been_seen_stands_beside_its_prediction(runs, tiny_run):
    from bertscope.analysis.exposure import seen_by

    at = app("predict", run="tiny", step="16", text=TEXT, mask="2", words="sees", seen="true")
    assert not at.exception and not at.error
    table = at.dataframe[0].value.set_index("piece")
    model = newest(tiny_run)
    (seen,) = seen_by(tiny_run, [model.tokenizer.convert_tokens_to_ids("sees")], 16).seen
    assert table.loc["sees", "seen"] == seen > 0


def test_electra_shows_its_generator_and_what_it_replaced(no_runs):
    from bertscope.presets import run_config
    from bertscope.runs import create_run
    from bertscope.training.loop import train

    run = create_run("electric", run_config({
        "corpus.documents": 60, "model.hidden_size": 32, "model.intermediate_size": 64,
        "training.steps": 4, "training.evaluation_examples": 32}, recipe="electra"), no_runs)
    train(run)
    at = app("predict", run="electric", text="the teacher sees a boy .", mask="2,3", vs="electric@0")
    assert not at.exception and not at.error
    assert "The discriminator reads" in said(at) and len(bar_charts(at)) == 1
    assert len(bar_charts(at)[0]["data"]) == 2, "the second checkpoint beside it"
    at.segmented_control(key="view").set_value("Fill the mask").run()
    assert not at.exception and not at.error
    assert "generator" in said(at) and len(bar_charts(at)) == 4
