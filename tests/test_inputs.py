"""How an input is made, against transformers' tokenizer and model, scipy, and the trainer's batches."""

import itertools

import numpy as np
import pytest
import rjieba
import scipy.stats
import tiny_models
import torch
import transformers

from bertscope.analysis import gallery
from bertscope.analysis.activations import load
from bertscope.analysis.input_embeddings import input_embeddings
from bertscope.analysis.inputs import (
    SCHEMES, Made, examples, made, objective, pieces, read_texts, spans)
from bertscope.analysis.intervals import wilson
from bertscope.analysis.mask_tally import many_epochs, some_documents, tally
from bertscope.analysis.place_losses import mean_loss, place_losses
from bertscope.config import RECIPES, RunConfig
from bertscope.errors import BertScopeError
from bertscope.models import build, build_loss
from bertscope.objectives.masking import KEEP, MASK, RANDOM
from bertscope.training.update import batch_tensors

ONE = "The cat sat on the mat. It was a new house. The dog walked. A cat and a dog play."
TWO = "America is of states. The united states walk on. A house sat. The dog and the cat."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "bert"
    tiny_models.save(path)
    return path


@pytest.fixture(scope="module")
def model(folder):
    return load(folder)


def source(model, texts=(ONE, TWO), scheme="nsp", seed=0, **settings):
    settings = {"max_length": 32} | settings
    store = read_texts(model, texts)
    return store, examples(store, model.tokenizer, objective(scheme, **settings), scheme, seed)


def words(model, ids):
    return " ".join(pieces(model.tokenizer, ids))


# -- texts ------------------------------------------------------------------------------------


def test_pieces_are_those_of_transformers_sentence_by_sentence(model, folder):
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    store = read_texts(model, [ONE, "", TWO])
    assert store.numbers == [0, 2]
    assert store.documents[0] == ["The cat sat on the mat.", "It was a new house.",
                                  "The dog walked.", "A cat and a dog play."]
    every = [sentence for document in store.documents for sentence in document]
    for number, sentence in enumerate(every):
        start, end = store.sentence_offsets[number: number + 2]
        assert store.ids[start:end].tolist() == theirs.encode(sentence, add_special_tokens=False)
    assert store.document_offsets.tolist() == [0, 4, 8] and store.word_starts is None


def test_spelled_special_pieces_are_text_but_the_mask(model):
    store, made_of = source(model, ["the [SEP] cat [CLS] sat [PAD] [UNK]. the [MASK] sat on."],
                            "typed", mask_rate=0.9)
    tokenizer = model.tokenizer
    special = [tokenizer.sep_token_id, tokenizer.cls_token_id, tokenizer.pad_token_id]
    assert not np.isin(store.ids, special).any()
    assert (store.ids == tokenizer.mask_token_id).sum() == 1
    row = made(made_of, 0, [0])[0]
    typed = np.flatnonzero(row.ids == tokenizer.mask_token_id)
    assert len(typed) == 1 and row.fate[typed] == -1 and row.words[typed] == -1
    assert len(row.chosen) >= 15


@pytest.mark.parametrize("text", ["", "   \n\t ", "\u200b\u200b", "\x00"])
def test_a_text_without_a_character_is_refused_with_a_sentence(model, text):
    with pytest.raises(BertScopeError, match="type at least one word"):
        read_texts(model, [text, ""])


@pytest.mark.parametrize("text", ["😀 🎉", "<b>the cat</b> <script>alert(1)</script>", "a\udcffb",
                                  "ไทย 日本語 العربية", "the " * 10_000])
def test_any_text_becomes_examples(model, text):
    for scheme in SCHEMES:
        _, made_of = source(model, [text, ONE], scheme)
        rows = list(itertools.islice(many_epochs(made_of, 40), 40))
        assert rows and max(map(len, rows)) <= 32
        for row in rows:
            assert row.ids[0] == model.tokenizer.cls_token_id
            assert row.ids[-1] == model.tokenizer.sep_token_id
            special = np.isin(row.ids, model.tokenizer.all_special_ids)
            assert (row.fate[special] == -1).all()


def chinese_tokenizer():
    text = "".join(gallery.CHINESE_PASSAGES)
    vocabulary = [*tiny_models.SPECIAL, *sorted(set(text))]
    return transformers.BertTokenizerFast(vocab={w: i for i, w in enumerate(vocabulary)})


def test_chinese_words_are_the_segmenters(tmp_path, monkeypatch):
    monkeypatch.setattr(tiny_models, "tokenizer", chinese_tokenizer)
    tiny_models.save(tmp_path / "zh", vocab_size=len(chinese_tokenizer()))
    store, made_of = source(load(tmp_path / "zh"), gallery.CHINESE_PASSAGES, "typed",
                            mask_unit="word", max_length=39)
    sentences = [s for document in store.documents for s in document]
    assert len(sentences) > 4
    expected = [len(word) for s in sentences for word in rjieba.cut(s)]
    starts = np.flatnonzero(store.word_starts)
    assert np.diff([*starts, len(store.ids)]).tolist() == expected and max(expected) > 1
    row = made(made_of, 0, [0])[0]
    numbers = row.words[row.chosen]
    for number in set(numbers.tolist()):
        assert (numbers == number).sum() == (row.words == number).sum(), "a word was cut"


# -- pairs and packing ------------------------------------------------------------------------


def test_next_sentence_pairs_follow_or_come_from_the_other_text(model):
    store, made_of = source(model)
    ends = store.sentence_offsets[store.document_offsets]
    labels = []
    for epoch in range(30):
        for index, row in enumerate(made(made_of, epoch, range(len(made_of.plan(epoch))))):
            a, b = spans(made_of, epoch, index)
            labels.append(row.label)
            assert (a.document == b.document) == (row.label == 0)
            (_, a_end), (b_start, _) = made_of.plan(epoch).of(index)
            if row.label == 0 and not a.cut_back and not b.cut_front:
                assert b_start == a_end
            text = row.source[(row.token_type_ids == 1) & (row.source >= 0)]
            assert ((ends[b.document] <= text) & (text < ends[b.document + 1])).all()
    assert 0.3 < np.mean(labels) < 0.7


@pytest.mark.parametrize("a, b", [("the cat sat .", "a dog walked on the mat"), (ONE, "the dog")])
def test_as_typed_is_transformers_own_pair(model, folder, a, b):
    theirs = transformers.AutoTokenizer.from_pretrained(folder)(a, b)
    _, made_of = source(model, [a, b], "typed", max_length=40)
    for epoch in range(3):
        row = made(made_of, epoch, [0])[0]
        assert row.ids.tolist() == theirs["input_ids"]
        assert row.token_type_ids.tolist() == theirs["token_type_ids"]


def test_as_typed_is_cut_to_the_length_and_says_so(model):
    store, made_of = source(model, [ONE, TWO], "typed", max_length=20)
    row = made(made_of, 0, [0])[0]
    a, b = spans(made_of, 0, 0)
    lost = sum(s.cut_front + s.cut_back for s in (a, b)) + sum(
        len(store.ids[slice(*store.sentence_offsets[[lo, hi]])])
        for lo, hi in ((0, a.first), (a.last + 1, 4), (4, b.first), (b.last + 1, 8)))
    assert len(row) == 20 and len(store.ids) - lost == 17
    alone = made(source(model, [ONE], "typed", max_length=16)[1], 0, [0])[0]
    assert len(alone) == 16 and alone.label is None
    assert words(model, alone.ids[1:-1]) == words(model, store.ids[:14])


def test_packed_examples_have_every_piece_once(model):
    for scheme in ("full_sentences", "doc_sentences", "sentences"):
        store, made_of = source(model, scheme=scheme)
        rows = made(made_of, 1, range(len(made_of.plan(1))))
        taken = np.concatenate([row.source[row.source >= 0] for row in rows])
        assert sorted(taken.tolist()) == list(range(len(store.ids)))
        assert all(row.label is None and not row.token_type_ids.any() for row in rows)


def test_pairs_of_single_sentences_are_refused_with_the_trainers_sentence(model):
    with pytest.raises(BertScopeError, match="at least two documents"):
        source(model, [ONE, ""])[1].plan(0)
    with pytest.raises(BertScopeError, match="two sentences"):
        source(model, ["the cat .", "the dog ."])[1].plan(0)


# -- masking ----------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["piece", "word", "ngram", "span"])
def test_what_is_made_is_what_the_trainer_trains_on(model, unit):
    _, made_of = source(model, mask_unit=unit, mask_rate=0.3)
    indices = np.arange(len(made_of.plan(2)))
    batch, rows = made_of.batch(2, indices), made(made_of, 2, indices)
    for number, row in enumerate(rows):
        size = len(row)
        assert row.shown.tolist() == batch.input_ids[number, :size].tolist()
        asked = batch.masked_lm_labels[number] >= 0
        assert row.chosen.tolist() == batch.masked_lm_positions[number][asked].tolist()
        assert row.ids[row.chosen].tolist() == batch.masked_lm_labels[number][asked].tolist()
        assert row.label == batch.pair_label[number]
        mask = row.shown == model.tokenizer.mask_token_id
        assert (mask == (row.fate == MASK)).all()
        untouched = np.isin(row.fate, (-1, KEEP))
        assert (row.shown == row.ids)[untouched].all()
        # A run begins at its own first piece, and holds together.
        for place in row.chosen:
            assert row.first[place] <= place and row.first[row.first[place]] == row.first[place]
            assert (row.fate[row.first[place]: place + 1] >= 0).all()
    if unit == "span":
        assert all(len(set(row.fate[row.first == first])) == 1
                   for row in rows for first in set(row.first[row.chosen].tolist()))


def test_static_masks_come_again_after_ten_epochs_and_dynamic_ones_do_not(model):
    def drawn(masking, epoch):
        made_of = source(model, masking=masking)[1]
        return [row.shown.tolist() for row in made(made_of, epoch, range(len(made_of.plan(epoch))))]

    assert drawn("static", 13) == drawn("static", 3) != drawn("static", 4)
    assert drawn("dynamic", 13) != drawn("dynamic", 3)
    assert drawn("static", 3) == drawn("dynamic", 3)


def test_shares_beyond_one_are_refused():
    with pytest.raises(BertScopeError, match="add up to more than 1"):
        objective("nsp", mask_share=0.8, random_share=0.3)
    with pytest.raises(BertScopeError, match="nothing to predict"):
        objective("typed", mask_rate=0.0)
    assert objective("full_sentences", mask_rate=0.0).mask_rate == 0


# -- the tally --------------------------------------------------------------------------------


@pytest.mark.parametrize("count, of", [(0, 10), (10, 10), (3, 17), (812, 1000), (1, 100_000)])
def test_the_interval_is_scipys(count, of):
    theirs = scipy.stats.binomtest(count, of).proportion_ci(0.95, "wilson")
    assert wilson(count, of) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert wilson(0, 0) == (0.0, 1.0)


def row_of(fates, first=None, label=None):
    """Ids 10, 11, ...; random pieces are 99, but the first one is the original."""
    fate = np.array(fates)
    ids = np.arange(10, 10 + len(fate))
    shown = np.where(fate == MASK, 4, np.where((fate == RANDOM) & (np.arange(len(fate)) > 1), 99, ids))
    return Made(ids, shown, np.zeros_like(ids), ids, ids, fate,
                np.array(first if first else np.where(fate >= 0, np.arange(len(fate)), -1)), label)


def test_a_tally_counts_pieces_and_a_spans_decisions():
    rows = [row_of([-1, RANDOM, MASK, MASK, KEEP, -1], label=1),
            row_of([-1, MASK, RANDOM, -1], label=0)]
    found = {s.name: (s.count, s.of) for s in tally(rows, objective("nsp"), 50)}
    assert found == {"chosen": (6, 10), "mask": (3, 6), "random": (2, 6), "kept": (1, 6),
                     "hit": (1, 2), "pair": (1, 2)}
    spanned = [row_of([-1, MASK, MASK, MASK, KEEP, KEEP, -1], [-1, 1, 1, 3, 4, 4, -1])]
    found = {s.name: (s.count, s.of) for s in tally(spanned, objective("nsp", mask_unit="span"), 50)}
    assert found["mask"] == (2, 3) and found["kept"] == (1, 3) and found["chosen"] == (5, 7)


def test_over_many_epochs_the_shares_are_the_papers(model):
    _, made_of = source(model, mask_rate=0.3)
    rows = list(many_epochs(made_of, 3000))
    shares = {s.name: s for s in tally(rows, made_of.objective, len(made_of.ordinary_ids))}
    expected = sum(max(1, round(len(row) * 0.3)) for row in rows)
    assert shares["chosen"].count == expected
    for name, theory in (("mask", 0.8), ("random", 0.1), ("kept", 0.1), ("pair", 0.5)):
        share = shares[name]
        assert share.theory == pytest.approx(theory)
        assert abs(share.share - theory) < 4 * np.sqrt(theory * (1 - theory) / share.of)
    static = source(model, masking="static")[1]
    assert len(list(many_epochs(static, 10**6))) == sum(len(static.plan(e)) for e in range(10))


def test_a_corpus_is_looked_at_all_over(model):
    store = read_texts(model, [ONE] * 9)
    documents = np.arange(9)
    size = len(store.ids) // 9
    assert some_documents(store, documents).tolist() == list(range(9))
    assert some_documents(store, documents, 3 * size).tolist() == [0, 3, 6]
    assert len(some_documents(store, documents, 1)) >= 2


# -- the vectors ------------------------------------------------------------------------------

FAMILIES = {"bert": transformers.BertForPreTraining, "roberta": transformers.RobertaForMaskedLM,
            "albert": transformers.AlbertForMaskedLM, "electra": transformers.ElectraForMaskedLM,
            "distilbert": transformers.DistilBertForMaskedLM,
            "deberta-v2": transformers.DebertaV2ForMaskedLM}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_vectors_add_up_to_the_models_own_input(family, tmp_path):
    reference = tiny_models.save(tmp_path / "m", FAMILIES[family], family=family)
    model = load(tmp_path / "m")
    ids, types = np.array([2, 5, 6, 7, 3, 8, 9, 3]), np.array([0, 0, 0, 0, 0, 1, 1, 1])
    more = {"token_type_ids": torch.tensor([types.tolist()])} if family in (
        "bert", "albert", "electra") else {}
    with torch.no_grad():
        theirs = reference(input_ids=torch.tensor([ids.tolist()]), output_hidden_states=True,
                           **more).hidden_states[0][0].numpy()
    found = input_embeddings(model, ids, types)
    assert np.abs(found.outcome - theirs).max() < 1e-5
    assert np.abs(sum(found.parts.values()) - found.total).max() < 1e-5
    mean, variance = (f(found.total, axis=1, keepdims=True) for f in (np.mean, np.var))
    assert np.abs(found.normalised - (found.total - mean) / np.sqrt(variance)).max() < 1e-2
    tables = {name: value.numpy() for name, value in reference.base_model.named_parameters()
              if not value.requires_grad_(False).requires_grad}
    assert np.array_equal(found.parts["token"], tables["embeddings.word_embeddings.weight"][ids])
    assert ("segment" in found.parts) == (family not in ("distilbert", "deberta-v2"))
    assert ("position" in found.parts) == (family != "deberta-v2")
    said = " ".join(found.missing)
    assert ("no segment vectors" in said) == (family in ("distilbert", "deberta-v2"))
    assert ("no position vectors" in said) == (family == "deberta-v2")
    assert ("widens" in said) == (family in ("albert", "electra"))
    assert ("one segment vector" in said) == (family == "roberta")
    lengths = found.lengths()
    assert lengths["token"] == pytest.approx(
        np.mean([np.sqrt((v.astype(float)**2).sum()) for v in found.parts["token"]]), rel=1e-5)


def test_what_cannot_be_taken_apart_is_said_so(tmp_path, model):
    tiny_models.save(tmp_path / "m", transformers.FNetForMaskedLM, family="fnet")
    with pytest.raises(BertScopeError, match="cannot take apart"):
        input_embeddings(load(tmp_path / "m"), np.arange(5), np.zeros(5, np.int64))
    with pytest.raises(BertScopeError, match="at most 40 at once"):
        input_embeddings(model, np.full(41, 5), np.zeros(41, np.int64))
    with pytest.raises(BertScopeError, match="does not know"):
        input_embeddings(model, np.array([5, 10_000]), np.zeros(2, np.int64))


# -- the losses -------------------------------------------------------------------------------


def some_rows(model, **more):
    _, made_of = source(model, **more)
    return [row for epoch in range(3) for row in made(made_of, epoch, range(len(made_of.plan(epoch))))]


def test_losses_are_those_of_transformers_own_class(model, folder):
    theirs = transformers.BertForPreTraining.from_pretrained(folder).eval()
    rows = some_rows(model)
    answers = place_losses(model, rows)
    assert len({len(row) for row in rows}) > 1
    for row, answer in zip(rows, answers):
        labels = np.where(row.fate >= 0, row.ids, -100)
        with torch.no_grad():
            output = theirs(input_ids=torch.tensor([row.shown.tolist()]),
                            token_type_ids=torch.tensor([row.token_type_ids.tolist()]))
        each = torch.nn.functional.cross_entropy(
            output.prediction_logits[0], torch.from_numpy(labels), reduction="none").numpy()
        assert np.isnan(answer.loss).tolist() == (row.fate < 0).tolist()
        assert np.abs(answer.loss[row.chosen] - each[row.chosen]).max() < 1e-4
        probabilities = output.prediction_logits[0].softmax(-1).numpy()
        assert answer.guess[row.chosen].tolist() == probabilities.argmax(-1)[row.chosen].tolist()
        assert np.allclose(answer.confidence[row.chosen], probabilities.max(-1)[row.chosen], atol=1e-5)
        assert answer.p_yes == pytest.approx(
            float(output.seq_relationship_logits.softmax(-1)[0, 0]), abs=1e-5)
    joined = np.concatenate([a.loss for a in answers])
    assert mean_loss(answers) == pytest.approx(float(np.mean(joined[~np.isnan(joined)])), rel=1e-5)


@pytest.mark.parametrize("recipe", ["bert", "roberta", "albert", "deberta", "causal"])
def test_the_mean_is_the_trainers_own_loss(recipe, tmp_path):
    config = RunConfig().override({
        "recipe": recipe, **RECIPES[recipe], "objective.max_length": 32, "model.hidden_size": 32,
        "model.intermediate_size": 64, "model.num_attention_heads": 2,
        "model.initializer_range": 0.5})
    tokenizer = tiny_models.tokenizer()
    network = build(config, tokenizer).eval()
    network.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    model, pairs = load(tmp_path / "m"), config.objective.pairs
    made_of = examples(read_texts(model, [ONE, TWO]), tokenizer, config.objective, pairs, 5)
    indices = np.arange(len(made_of.plan(0)))
    batch = made_of.batch(0, indices)
    with torch.no_grad():
        measured = build_loss(config, network).eval()(**batch_tensors(batch, "cpu"))
    name = "clm" if recipe == "causal" else "mlm"
    answers = place_losses(model, made(made_of, 0, indices), recipe == "causal")
    assert mean_loss(answers) == pytest.approx(
        float(measured[name].loss) / batch.count(name), rel=1e-4)
    if pairs in ("nsp", "sop"):
        right = [a.p_yes if label == 0 else 1 - a.p_yes
                 for a, label in zip(answers, batch.pair_label)]
        assert -np.log(right).sum() == pytest.approx(float(measured[pairs].loss), rel=1e-4)
    else:
        assert all(a.p_yes is None for a in answers)


def test_where_nothing_can_be_chosen_there_is_no_loss(model):
    _, made_of = source(model, ["[MASK] [MASK]"], "typed")
    row = made(made_of, 0, [0])[0]
    answers = place_losses(model, [row])
    assert not len(row.chosen) and np.isnan(answers[0].loss).all() and np.isnan(mean_loss(answers))
    both = place_losses(model, [row, *some_rows(model)])
    assert np.isnan(both[0].loss).all() and mean_loss(both) > 0


def test_a_checkpoint_that_cannot_read_the_examples_says_why(model, tmp_path):
    rows = some_rows(model)
    with pytest.raises(BertScopeError, match="no causal model"):
        place_losses(model, rows, causal=True)
    long = some_rows(model, max_length=32)
    tiny_models.save(tmp_path / "short", max_position_embeddings=20)
    with pytest.raises(BertScopeError, match="reads at most 20"):
        place_losses(load(tmp_path / "short"), long)
    tiny_models.save(tmp_path / "body", transformers.BertModel)
    with pytest.raises(BertScopeError, match="no MLM head"):
        place_losses(load(tmp_path / "body"), rows)
    assert place_losses(model, []) == []
