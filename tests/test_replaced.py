"""ELECTRA's discriminator and generator, against transformers and against the sampling's own law."""

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from scipy.stats import chisquare

from bertscope.analysis import encode, load
from bertscope.analysis.predictions import log_probabilities
from bertscope.analysis.replaced import fill, p_replaced
from bertscope.errors import BertScopeError

TEXT = "the cat sat on a mat ."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("electra")
    tiny_models.save(path, transformers.ElectraForPreTraining, family="electra")
    tiny_models.save(path / "generator", transformers.ElectraForMaskedLM, family="electra", seed=1)
    return path


def test_probabilities_are_those_of_transformers(folder):
    model = load(folder)
    assert model.has_rtd_head and not model.has_mlm_head and not model.missing
    encoded = encode(model, TEXT)
    theirs = transformers.ElectraForPreTraining.from_pretrained(folder).eval()
    with torch.no_grad():
        logits = theirs(**model.tokenizer(TEXT, return_tensors="pt")).logits
    assert p_replaced(model, encoded) == pytest.approx(torch.sigmoid(logits)[0].numpy(), abs=1e-6)


def test_fillings_are_samples_of_the_generator(folder):
    generator = load(folder / "generator")
    encoded = encode(generator, TEXT)
    drawn = [fill(generator, encoded, [2, 5], seed).input_ids for seed in range(3000)]
    assert all((ids == encoded.input_ids).sum() >= len(encoded) - 2 for ids in drawn)
    p = np.exp(log_probabilities(generator, encoded, [2, 5])[0])
    counts = np.bincount([ids[2] for ids in drawn], minlength=len(p))
    common = p > 0.01  # the rest together
    found = [*counts[common], counts[~common].sum()]
    expected = np.array([*p[common], p[~common].sum()])
    assert chisquare(found, 3000 * expected / expected.sum()).pvalue > 1e-4
    again = fill(generator, encoded, [2, 5], 7)
    assert (again.input_ids == drawn[7]).all()
    assert again.tokens[2] == generator.tokenizer.convert_ids_to_tokens(int(again.input_ids[2]))


def test_other_checkpoints_are_refused(folder):
    generator = load(folder / "generator")
    with pytest.raises(BertScopeError, match="no RTD head"):
        p_replaced(generator, encode(generator, TEXT))
    with pytest.raises(BertScopeError, match="no MLM head"):
        fill(load(folder), encode(generator, TEXT), [2], 0)
