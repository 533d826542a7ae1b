"""Two checkpoints side by side: the second one may fail, the first one may not."""

import pytest
from streamlit.testing.v1 import AppTest

from bertscope.errors import BertScopeError
from bertscope.ui import compared
from bertscope.ui.selection import Choice

SIDES = [(Choice("ours", None, None), "main"), (Choice("*theirs*", None, None), "other")]


def test_of_two_answers_each_keeps_its_checkpoint():
    assert [(choice.name, meaning, answer) for choice, meaning, answer in compared.each(
        SIDES, lambda choice, meaning: meaning.upper())] == [("ours", "main", "MAIN"),
                                                             ("*theirs*", "other", "OTHER")]


def test_the_first_ones_error_ends_the_view():
    def fails(choice, meaning):
        raise BertScopeError("no such head.")

    with pytest.raises(BertScopeError, match="no such head"):
        compared.each(SIDES, fails)


def test_a_cancelled_first_answer_leaves_the_second_unasked():
    asked = []
    assert compared.each(SIDES, lambda choice, meaning: asked.append(meaning)) == []
    assert asked == ["main"]


def test_what_is_not_ours_to_explain_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        with compared.aside(SIDES[1][0]):
            1 / 0


def test_the_second_ones_error_becomes_a_sentence_with_its_name():
    def page():
        from bertscope.errors import BertScopeError
        from bertscope.ui import compared
        from bertscope.ui.selection import Choice

        def answer(choice, meaning):
            if meaning == "other":
                raise BertScopeError("it has no <b>head</b>.")
            return 7

        import streamlit as st
        found = compared.each([(Choice("ours", None, None), "main"),
                               (Choice("*theirs*", None, None), "other")], answer)
        st.text(str([(meaning, value) for _, meaning, value in found]))

    at = AppTest.from_function(page).run()
    assert not at.exception and at.text[0].value == "[('main', 7)]"
    assert at.warning[0].value.replace("\\", "").startswith("*theirs*")
    assert "\\*theirs\\*" in at.warning[0].value and "no" in at.warning[0].value
