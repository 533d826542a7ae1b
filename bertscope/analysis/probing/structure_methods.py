"""What was done in the structural probe and in the amnesic control, in the words of a paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertscope.analysis.probing import structural, tree_probe, tree_scores
from bertscope.analysis.probing.methods import cited
from bertscope.analysis.probing.uncertainty import ALPHA, RESAMPLES

if TYPE_CHECKING:
    from bertscope.analysis.probing.amnesic import AmnesicConfig
    from bertscope.analysis.probing.gold import Gold
    from bertscope.analysis.probing.items import Items

_INTERVAL = (f"95 % intervals are percentiles of {RESAMPLES:,} bootstrap resamples of test sentences, "
             "widened as a t distribution over the sentences asks (Hesterberg 2015)")


def of_trees(checkpoints: Sequence[str], gold: Gold, config: structural.StructuralConfig, random: bool,
             ) -> str:
    """Markdown, as ``methods``.

    Args:
        random: whether random weights stand beside the result.
    """
    train, valid, test = (len(part) for part in structural.chosen(gold, config).values())
    epochs, lengths = tree_probe.most_epochs(config.epochs, train), tree_scores.LENGTHS
    nonce = ("In the test sentences each content word is replaced by another that could stand in its place "
             "(Hall Maudslay and Cotterell 2021).") if config.nonce else ""
    beside = " and the same architecture with random weights" if random else ""
    return cited(
        f"We learn the structural probe (Hewitt and Manning 2019) of {' and '.join(checkpoints)} on "
        f"{gold.name} ({gold.note.rstrip('.')}): for each layer a linear map of rank {config.rank}, or the "
        "layer's width if smaller, such that squared distances of two words' vectors are their distance in "
        "the dependency tree, and another such that squared lengths are depths. A word is the mean of its "
        "pieces.",
        "Both minimise the mean absolute error per sentence by Adam (rate "
        f"{tree_probe.RATE:g}, divided by ten after an epoch that brings nothing, {tree_probe.BATCH} "
        f"sentences a step, at most {epochs} epochs) on {train:,} training sentences of 2 to "
        f"{structural.LONGEST} words; the epoch is the best of {valid:,} validation sentences.",
        f"On {test:,} test sentences UUAS is the share of the tree's edges in the minimum spanning tree "
        "over predicted distances, punctuation excluded; Spearman's correlation of true and predicted "
        f"distances is averaged over words, then over lengths {lengths.start} to {lengths.stop - 1}; the "
        "root is the word of the smallest predicted depth.",
        nonce,
        f"Baselines are the chain of neighbours{beside}.",
        f"The seed is {config.seed}; {_INTERVAL}; layers whose UUAS is not significantly below the best "
        f"one's on the same resamples (Holm 1979; Hsu 1981; alpha = {ALPHA}) count as the best set.")


def of_amnesic(checkpoints: Sequence[str], items: Items, config: AmnesicConfig) -> str:
    """Markdown, as ``methods``."""
    how = {"leace": "LEACE (Belrose et al. 2023)",
           "inlp": "iterative nullspace projection (Ravfogel et al. 2020)"}[config.method]
    where = {"masked": "masked pieces", "words": "all pieces of words"}[config.places]
    source = items.provenance.get("source", "data of our own")
    return cited(
        f"Amnesic probing (Elazar et al. 2021) of {' and '.join(checkpoints)} for {items.title} ({source}): "
        f"from the states of {where} in one layer, what they say linearly of the labels is removed by "
        f"{how}, and the model goes on from there to its guesses.",
        f"The eraser is learnt from at most {config.max_train:,} training and {config.max_valid:,} "
        f"validation sentences, each masked {config.rounds} times, 15 % of the pieces each time.",
        "We report the change of the masked-language-model loss in nats per masked piece of a labelled "
        f"word on at most {config.max_test:,} test sentences, minus the mean change of {config.controls} "
        "removals of as many directions drawn at random.",
        f"The seed is {config.seed}; {_INTERVAL}, paired, layer by layer.")
