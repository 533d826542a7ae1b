"""Alignment of words and answers with pieces, windows, spans, batches and losses, by hand."""

import numpy as np
import pytest
import tiny_models
import torch
from transformers import BertTokenizerFast

from bertscope.analysis.encoding import TextEncoder
from bertscope.finetuning.batches import Feature, collate, order
from bertscope.finetuning.data import Answer, Labelled, Question, Tagged
from bertscope.finetuning.pieces import Cutter
from bertscope.finetuning.tasks import QuestionTask, TaskSpec, build_task
from bertscope.finetuning.tasks.question import best_spans, windows
from bertscope.finetuning.tasks.tokens import first_pieces, stretches

TOKENIZER = tiny_models.tokenizer()


def cutter(most=40, tokenizer=TOKENIZER) -> Cutter:
    return Cutter(TextEncoder(tokenizer, most, True, len(tokenizer)), tokenizer.unk_token_id)


def pieces_of(feature: Feature, tokenizer=TOKENIZER) -> list[str]:
    return tokenizer.convert_ids_to_tokens(feature.input_ids.tolist())


# -- texts and pairs --------------------------------------------------------------------------


@pytest.mark.parametrize("text, pair", [
    ("the cat sat.", None), ("the cat", "a dog sat on the mat"), ("a " * 60, None),
    ("the cat " * 30, "a dog"), ("the cat", "a dog " * 30), ("the cat " * 30, "a dog " * 30)])
def test_texts_and_pairs_are_laid_out_as_transformers_does(text, pair):
    task = build_task(TaskSpec("pair" if pair else "sentence", ("x", "y")), cutter(20))
    (feature,) = task.features([Labelled(text, "y", pair)])
    theirs = TOKENIZER(text, pair, truncation=True, max_length=20)
    assert feature.input_ids.tolist() == theirs["input_ids"]
    assert feature.token_type_ids.tolist() == theirs["token_type_ids"]
    assert feature.label == 1


def test_special_pieces_in_a_text_are_text():
    (feature,) = build_task(TaskSpec("sentence", ("x", "y")), cutter()).features(
        [Labelled("[SEP] cat [CLS]", "x")])
    ids = feature.input_ids.tolist()
    assert ids.count(TOKENIZER.sep_token_id) == ids.count(TOKENIZER.cls_token_id) == 1


def test_a_text_without_a_piece_is_unknown():
    (feature,) = build_task(TaskSpec("sentence", ("x", "y")), cutter()).features(
        [Labelled("\u200b", "x")])
    assert pieces_of(feature) == ["[CLS]", "[UNK]", "[SEP]"]


# -- words ------------------------------------------------------------------------------------


def tagged(words, tags, labels=("A", "B", "C"), most=40, tokenizer=TOKENIZER):
    task = build_task(TaskSpec("tokens", labels), cutter(most, tokenizer))
    return task, task.features([Tagged(tuple(words), tuple(tags))])


def test_only_the_first_piece_of_a_word_has_a_label():
    _, (feature,) = tagged(["the", "unbelievable", "cat", "walked", "."], "ABCAB")
    assert pieces_of(feature) == ["[CLS]", "the", "un", "##believ", "##able", "cat", "walk", "##ed",
                                  ".", "[SEP]"]
    assert feature.label.tolist() == [-100, 0, 1, -100, -100, 2, 0, -100, 1, -100]
    assert feature.places.tolist() == [-1, 0, 1, -1, -1, 2, 3, -1, 4, -1]


def test_words_that_the_tokenizer_splits_further_keep_one_label():
    """BERT's splitting makes three words of "dog's": it is one word here."""
    _, (feature,) = tagged(["dog's", "mat"], "AB")
    assert pieces_of(feature)[1:-1] == ["dog", "'", "s", "mat"]
    assert feature.label.tolist() == [-100, 0, -100, -100, 1, -100]


def test_a_word_that_the_tokenizer_drops_is_unknown_and_has_its_label():
    _, (feature,) = tagged(["the", "\u200b", "cat", "\ufe0f"], "ABCA")
    assert pieces_of(feature) == ["[CLS]", "the", "[UNK]", "cat", "[UNK]", "[SEP]"]
    assert feature.label.tolist() == [-100, 0, 1, 2, 0, -100]


CHINESE = BertTokenizerFast(vocab={t: i for i, t in enumerate(
    [*tiny_models.SPECIAL, *"黑豹队的防守只丢了分，", "308", "30", "##8"])})


def test_chinese_words_of_several_characters():
    _, (feature,) = tagged(["黑豹队", "的", "防守", "308"], "ABCA", tokenizer=CHINESE)
    assert pieces_of(feature, CHINESE)[1:-1] == ["黑", "豹", "队", "的", "防", "守", "308"]
    assert feature.label.tolist() == [-100, 0, -100, -100, 1, 2, -100, 0, -100]


def test_every_word_of_a_long_sentence_is_tagged_once():
    words = ["the", "unbelievable", "cat"] * 9
    task, features = tagged(words, "ABC" * 9, most=10)
    assert len(features) > 3 and all(len(f) <= 10 for f in features)
    assert sorted(p for f in features for p in f.places if p >= 0) == list(range(27))
    for feature in features:  # no word is cut in two
        assert not pieces_of(feature)[1].startswith("##")
    example = Tagged(tuple(words), tuple("ABC" * 9))
    logits = [np.where(f.places[:, None] == np.arange(27), 9.0, 0.0) @ np.eye(3)[np.arange(27) % 3]
              for f in features]
    (chances,) = task.answers([example], features, logits)
    assert task.tags([chances])[0] == list("ABC" * 9)
    assert task.metrics([example], [chances])["accuracy"] == 1.0


def test_a_word_longer_than_the_model_reads():
    words = np.array([0] * 3 + [1] * 10 + [2])
    assert list(stretches(words, 4)) == [(0, 3), (3, 7), (13, 14)]
    assert first_pieces(words[3:7]).tolist() == [1, -1, -1, -1]


# -- windows and answers ----------------------------------------------------------------------


def test_windows_overlap_and_cover_the_end():
    assert list(windows(10, 4, 2)) == [(0, 4), (2, 6), (4, 8), (6, 10)]
    assert list(windows(9, 4, 2)) == [(0, 4), (2, 6), (4, 8), (6, 9)]
    assert list(windows(4, 4, 2)) == [(0, 4)] and list(windows(9, 4, None))[1] == (2, 6)
    assert list(windows(9, 4, 9)) == [(0, 4), (4, 8), (8, 9)]  # no gap, whatever the stride


CONTEXT = " ".join("the cat sat on a mat the dog sat on a new mat in a house".split())


def asked(text, context=CONTEXT, question="cat ?") -> Question:
    return Question(question, context, (Answer(text, context.index(text)),) if text else ())


def answered(example: Question, most=12, stride=3, **spec):
    """The task, its features, and logits that point at each window's label."""
    task = build_task(TaskSpec("question", stride=stride, **spec), cutter(most))
    features = task.features([example])
    logits = []
    for feature in features:
        own = np.zeros((len(feature), 2))
        own[feature.label[0], 0] = own[feature.label[1], 1] = 5.0
        logits.append(own)
    return task, features, logits


@pytest.mark.parametrize("text", ["the cat", "mat the dog", "a new mat", "in a house", "house"])
def test_an_answer_across_a_windows_border_and_at_the_very_end(text):
    """Windows of 7 pieces, 3 apart: each answer lies whole in one, is cut by others, is found."""
    example = asked(text)
    task, features, logits = answered(example)
    assert len(features) == 5 and all(len(f) <= 12 for f in features)
    whole = [f for f in features if f.label.any()]
    cut = [f for f in features if not f.label.any()]
    assert whole and cut
    for feature in whole:
        first, last = feature.label
        start, end = feature.places[first][0], feature.places[last][1]
        assert CONTEXT[start:end] == text
    (span,) = task.answers([example], features, logits)
    assert (span.text, span.start) == (text, CONTEXT.index(text))
    assert task.metrics([example], [span]) == {"exact_match": 1.0, "f1": 1.0}


def test_answers_of_several_pieces_and_in_chinese():
    task, features, logits = answered(asked("unbelievable", "a cat unbelievable new"), most=20)
    assert pieces_of(features[0])[features[0].label[0]:features[0].label[1] + 1] == [
        "un", "##believ", "##able"]
    assert task.answers([asked("unbelievable", "a cat unbelievable new")], features,
                        logits)[0].text == "unbelievable"
    task = QuestionTask(TaskSpec("question"), cutter(20, CHINESE))
    example = Question("了分", "黑豹队的防守只丢了308分，", (Answer("308", 9),))
    (feature,) = task.features([example])
    assert pieces_of(feature, CHINESE)[feature.label[0]] == "308"
    assert feature.label[0] == feature.label[1]


def test_only_valid_spans_of_the_paragraph_are_answers():
    """The question and [SEP] have the highest logits, the end comes before the start, or too late."""
    places = np.array([[-1, -1], [-1, -1], [0, 3], [4, 7], [8, 11], [-1, -1]])
    logits = np.zeros((6, 2))
    logits[1] = logits[5] = 99.0
    logits[4, 0] = logits[2, 1] = 5.0   # backwards: not allowed
    logits[2, 0], logits[4, 1] = 3.0, 3.5
    spans = sorted(best_spans(logits, places, 2), reverse=True)
    assert spans[0] == (8.5, 8, 11)     # [4, 4], a single piece
    assert (6.5, 0, 11) not in spans    # three pieces are too many
    assert (6.5, 0, 11) in best_spans(logits, places, 3)


def test_no_answer_where_it_is_ahead_of_the_best_one():
    example = asked("")
    task, features, logits = answered(example, unanswered=True)
    assert not any(f.label.any() for f in features)
    (span,) = task.answers([example], features, logits)
    assert span.text == "" and span.score == pytest.approx(10.0)
    # One window that is surer of a span than of nothing is enough: the lowest null score counts.
    logits[2][8] = 6.0
    logits[2][0] = 0.0
    (span,) = task.answers([example], features, logits)
    assert span.text and span.score == pytest.approx(12.0)
    margin = build_task(TaskSpec("question", stride=3, unanswered=True, no_answer_margin=-20.0),
                        task.cutter)
    assert margin.answers([example], features, logits)[0].text == ""
    certain = build_task(TaskSpec("question", stride=3), task.cutter)
    assert certain.answers([asked("the cat")], features, logits)[0].text


def test_probabilities_of_answers_add_up_to_one():
    task, features, logits = answered(asked("a new mat"), unanswered=True)
    (spans,) = task.ranked([asked("a new mat")], features, logits)
    assert sum(s.probability for s in spans) == pytest.approx(1.0)
    assert [s.text for s in spans].count("") == 1
    assert spans[0].probability == max(s.probability for s in spans)


# -- batches and losses -----------------------------------------------------------------------


def test_an_epoch_holds_every_example_once_and_little_padding():
    lengths = np.random.default_rng(0).integers(5, 60, 203)
    updates = order(lengths, 8, 1, (3, 0))
    assert sorted(np.concatenate([m for u in updates for m in u])) == list(range(203))
    padding = sum(len(m) * lengths[m].max() for u in updates for m in u) - lengths.sum()
    as_it_comes = sum(8 * lengths[i:i + 8].max() for i in range(0, 200, 8)) - lengths[:200].sum()
    assert padding < 0.1 * as_it_comes
    again = order(lengths, 8, 1, (3, 0))
    assert all((a[0] == b[0]).all() for a, b in zip(updates, again))
    assert any((a[0].shape != b[0].shape or (a[0] != b[0]).any())
               for a, b in zip(updates, order(lengths, 8, 1, (3, 1))))


def test_parts_of_an_update_are_never_empty():
    for count in (1, 3, 7, 8, 9, 17):
        for update in order(np.arange(count) + 3, 2, 4, (0, 0)):
            assert len(update) == 4 and all(len(part) for part in update)


def test_padding_and_its_mask():
    features = [Feature(np.arange(1, n + 1), np.ones(n, int), np.array(n % 2), 0) for n in (3, 5)]
    batch = collate("sentence", features, 0)
    assert batch.input_ids.tolist() == [[1, 2, 3, 0, 0], [1, 2, 3, 4, 5]]
    assert batch.attention_mask.sum() == batch.tokens == 8 and batch.count("sentence") == 2
    assert collate("sentence", features[:1], 0).attention_mask is None


def test_losses_by_hand():
    spec = TaskSpec("tokens", ("A", "B"))
    logits = torch.tensor([[[2.0, 0.0], [0.0, 0.0], [9.0, 0.0]]])
    loss, correct = build_task(spec, None).loss(logits, torch.tensor([[0, 1, -100]]), None, None)
    assert float(loss) == pytest.approx(np.log1p(np.exp(-2)) + np.log(2)) and int(correct) == 1
    task = build_task(TaskSpec("question"), None)
    logits = torch.zeros(1, 3, 2)
    mask = torch.tensor([[1, 1, 0]])
    loss, correct = task.loss(logits, torch.tensor([[1, 0]]), mask, None)
    assert float(loss) == pytest.approx(np.log(2))  # of two pieces: the third is padding
    weighted = build_task(TaskSpec("sentence", ("A", "B")), None)
    loss, _ = weighted.loss(torch.zeros(2, 2), torch.tensor([0, 1]), None, torch.tensor([1.0, 3.0]))
    assert float(loss) == pytest.approx(4 * np.log(2))
    numbers = build_task(TaskSpec("pair"), None)
    loss, correct = numbers.loss(torch.tensor([[1.0], [2.0]]), torch.tensor([1.0, 4.0]), None, None)
    assert float(loss) == 4.0 and correct is None
