"""The paragraph of a paper that says what was done: exactly that, from the result itself."""

from __future__ import annotations

from bertscope.analysis.probing import classifier, mlp, sampling
from bertscope.analysis.probing.result import Result
from bertscope.analysis.probing.uncertainty import ALPHA, RESAMPLES, few
from bertscope.analysis.probing.versions import versions

REFERENCES = {
    "Belrose et al. 2023": "Nora Belrose et al. 2023. LEACE: Perfect linear concept erasure in closed form. "
    "NeurIPS.",
    "Elazar et al. 2021": "Yanai Elazar, Shauli Ravfogel, Alon Jacovi and Yoav Goldberg. 2021. Amnesic "
    "probing: behavioral explanation with amnesic counterfactuals. TACL 9.",
    "Hall Maudslay and Cotterell 2021": "Rowan Hall Maudslay and Ryan Cotterell. 2021. Do syntactic probes "
    "probe syntax? Experiments with Jabberwocky probing. NAACL.",
    "Hewitt and Manning 2019": "John Hewitt and Christopher D. Manning. 2019. A structural probe for finding "
    "syntax in word representations. NAACL.",
    "Ravfogel et al. 2020": "Shauli Ravfogel et al. 2020. Null it out: guarding protected attributes by "
    "iterative nullspace projection. ACL.",
    "Alain and Bengio 2016": "Guillaume Alain and Yoshua Bengio. 2016. Understanding intermediate "
    "layers using linear classifier probes. arXiv:1610.01644.",
    "Conneau et al. 2018": "Alexis Conneau, German Kruszewski, Guillaume Lample, Loïc Barrault and "
    "Marco Baroni. 2018. What you can cram into a single $&!#* vector: probing sentence embeddings for "
    "linguistic properties. ACL.",
    "Hesterberg 2015": "Tim C. Hesterberg. 2015. What teachers should know about the bootstrap: resampling "
    "in the undergraduate statistics curriculum. The American Statistician 69(4).",
    "Hewitt and Liang 2019": "John Hewitt and Percy Liang. 2019. Designing and interpreting probes with "
    "control tasks. EMNLP.",
    "Holm 1979": "Sture Holm. 1979. A simple sequentially rejective multiple test procedure. "
    "Scandinavian Journal of Statistics 6(2).",
    "Hsu 1981": "Jason C. Hsu. 1981. Simultaneous confidence intervals for all distances from the "
    "\"best\". Annals of Statistics 9(5).",
    "Sellam et al. 2022": "Thibault Sellam et al. 2022. The MultiBERTs: BERT reproductions for "
    "robustness analysis. ICLR.",
    "Tenney et al. 2019a": "Ian Tenney et al. 2019. What do you learn from context? Probing for sentence "
    "structure in contextualized word representations. ICLR.",
    "Tenney et al. 2019b": "Ian Tenney, Dipanjan Das and Ellie Pavlick. 2019. BERT rediscovers the "
    "classical NLP pipeline. ACL.",
    "Voita and Titov 2020": "Elena Voita and Ivan Titov. 2020. Information-theoretic probing with minimum "
    "description length. EMNLP.",
}


def methods(result: Result) -> str:
    """Markdown: a paragraph with its citations, and the list of what is cited."""
    return cited(_tasks(result), _representation(result), _probe(result), _baselines(result),
                 _extras(result), _uncertainty(result))


def cited(*sentences: str) -> str:
    """A paragraph of sentences, with the versions that computed it and the list of what they cite."""
    said = " ".join(" ".join([*sentences, _versions()]).split())
    found = [f"- {full}" for short, full in sorted(REFERENCES.items())
             if short in said or short.replace(" and ", " & ") in said]
    return f"{said}\n\n" + "\n".join(found) + "\n"


def _tasks(result: Result) -> str:
    parts = []
    table = result.scores
    for name, items in result.tasks.items():
        row = table[table["task"] == name].iloc[0]
        source = items.provenance.get("source", "data of our own")
        split = str(items.provenance.get("split", "")).rstrip(".")
        source += f"; {split}" if split else ""
        what = {"word": "words", "pair": "pairs of spans", "sentence": "sentences"}[items.kind]
        parts.append(
            f"{items.title} ({source}; {int(row['classes'])} labels; {int(row['items_train']):,} "
            f"training, {int(row['items_validation']):,} validation and {int(row['items_test']):,} test "
            f"{what}, drawn as whole sentences: {int(row['sentences_train']):,}, "
            f"{int(row['sentences_validation']):,} and {int(row['sentences_test']):,})")
    names = "; ".join(parts)
    twice = max(items.provenance.get("sentences_in_two_parts", 0) for items in result.tasks.values())
    notes = [f" {twice:,} sentences of training and validation also occur, word for word, in a later "
             "part."] if twice else []
    notes += [f" Of all parts: {items.provenance['types']}." for items in result.tasks.values()
             if items.provenance.get("types")]
    return f"We probe {_checkpoints(result)} for {names}.{''.join(dict.fromkeys(notes))}"


def _checkpoints(result: Result) -> str:
    names = result.checkpoints
    steps = [result.step(name) for name in names]
    if len(names) > 1 and None not in steps:
        return f"{len(names)} checkpoints (steps {min(steps):,} to {max(steps):,})"
    return " and ".join(names)


def _representation(result: Result) -> str:
    protocol = result.protocol
    kinds = {items.kind for items in result.tasks.values()}
    said = [f"Every layer, 0 (embeddings) to {result.layers[-1]}, is probed on its own"
            if protocol.layers is None else
            f"Layers {', '.join(map(str, result.layers))} (0 = embeddings) are probed, each on its own"]
    if kinds & {"word", "pair"}:
        pieces = {"mean": "the mean of its word pieces", "first": "its first word piece",
                  "last": "its last word piece"}[protocol.word]
        said.append(f"a word is represented by {pieces}")
        if "pair" in kinds:
            said.append("a pair by the two concatenated")
    if "sentence" in kinds:
        said.append("a sentence by " + {
            "cls": "its [CLS] vector", "mean": "the mean of its pieces without [CLS] and [SEP]",
            "max": "the maximum over its pieces without [CLS] and [SEP]"}[protocol.sentence])
    if protocol.hide:
        said.append(f"the probed words, {sampling.MASK_SHARE:.0%} of each sentence, are masked when the "
                    "encoder reads them")
    dropped = int(result.scores.groupby("task")["without_vector"].max().sum())
    if dropped:
        said.append(f"{dropped:,} items without a vector (no piece, or beyond the model's length) are "
                    "left out")
    return "; ".join(said) + "."


def _probe(result: Result) -> str:
    shared = ("Features are standardised with the training items' mean and variance; what is chosen is "
              "chosen on the validation items, separately for each layer and seed; the test items are "
              "used once.")
    if result.protocol.probe == "linear":
        strengths = ", ".join(f"{c:g}" for c in classifier.STRENGTHS)
        return ("The probe is multinomial logistic regression (Alain and Bengio 2016) with an L2 penalty, "
                f"C in {{{strengths}}} (loss summed over items; of more than "
                f"{classifier.PATH_ITEMS:,} training items C is chosen with {classifier.PATH_ITEMS:,} of "
                f"them), fitted by L-BFGS. {shared}")
    return (f"The probe is a perceptron with one hidden layer of {mlp.HIDDEN} rectified units, trained by "
            f"Adam (rate {mlp.RATE:g}, {mlp.BATCH} items a step, at most {mlp.EPOCHS} epochs, stopped "
            f"{mlp.PATIENCE} epochs after the lowest validation loss) with decoupled weight decay in "
            f"{{{', '.join(f'{d:g}' for d in mlp.DECAYS)}}}. {shared}")


def _baselines(result: Result) -> str:
    table, said = result.scores, ["the majority label"]
    if table["word_identity"].notna().any():
        said.append("each word type's most frequent training label (unknown types: the majority label)")
    if table["length_only"].notna().any():
        said.append("the most frequent label of each sentence length")
    if result.untrained:
        said.append("the same architecture with random weights, drawn anew for each seed")
    if 0 in result.layers:
        said.append("layer 0")
    listed = said[0] if len(said) == 1 else ", ".join(said[:-1]) + " and " + said[-1]
    return f"Baselines are {listed}."


def _extras(result: Result) -> str:
    columns, said = result.scores.columns, []
    if "selectivity" in columns and result.scores["selectivity"].notna().any():
        said.append(
            "Selectivity is accuracy minus that on a control task, where each word type has one label "
            "drawn from the training labels' distribution, with the same probe and penalty (Hewitt and "
            "Liang 2019).")
    if "codelength" in columns:
        said.append(
            "Codelength is that of the online code in bits (Voita and Titov 2020) over 0.1, 0.2, 0.4, "
            "0.8, 1.6, 3.2, 6.25, 12.5, 25, 50 and 100 % of the training items in a random order of "
            "sentences; the penalty is the one that gives the shortest code, its choice being part of "
            "the code; compression is the uniform code's length divided by it.")
    if result.protocol.mix:
        said.append(
            "A scalar mix of standardised layers, with variance 1, gives the centre of gravity of its "
            "weights; mixes of layers 0 to l for each l give the expected layer, which is reported only "
            "where the gain over layer 0 is significant (Tenney et al. 2019b).")
    return " ".join(said)


def _uncertainty(result: Result) -> str:
    seeds = len(result.seeds)
    unit = "test sentences" if seeds == 1 else "test sentences and seeds"
    source = "" if seeds == 1 else " (Sellam et al. 2022)"
    rough = " ".join(sorted({note for task in result.tasks if (note := few(result.sentences_tested(task)))}))
    deterministic = " (the probe itself is convex)" if result.protocol.probe == "linear" else ""
    return (f"Numbers are of {'one seed' if seeds == 1 else f'{seeds} seeds, averaged'}; a seed decides "
            "the training sentences, the control labels, the order of the code and the random "
            f"weights{deterministic}. Intervals are 95 % percentiles of at least {RESAMPLES:,} bootstrap "
            f"resamples of {unit}{source}, widened as a t distribution over the sentences asks (Hesterberg "
            "2015); layers are compared on the same resamples with Holm's correction (Holm 1979), the best "
            "one as chosen on them (Hsu 1981), and all layers not significantly below the best "
            f"(alpha = {ALPHA}) count as the best set. {rough}")


def _versions() -> str:
    found = versions()
    return (f"Computed with BertScope {found['bertscope']}, PyTorch {found['torch']} and transformers "
            f"{found['transformers']}.")
