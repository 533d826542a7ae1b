"""The tasks' own metrics: accuracy, macro-F1, correlations, entity F1, SQuAD's exact match and F1."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np


def of_labels(gold: Sequence[int], predicted: Sequence[int], classes: int) -> dict[str, float]:
    """``accuracy``, ``macro_f1`` (the unweighted mean over all classes; one that neither occurs nor
    is predicted counts not), and of two classes ``f1`` of the second."""
    from sklearn.metrics import f1_score

    gold, predicted = np.asarray(gold), np.asarray(predicted)
    present = np.union1d(gold, predicted)
    found = {"accuracy": float((gold == predicted).mean()),
             "macro_f1": float(f1_score(gold, predicted, labels=present, average="macro",
                                        zero_division=0.0))}
    if classes == 2:
        found["f1"] = float(f1_score(gold, predicted, pos_label=1, zero_division=0.0))
    return found


def of_numbers(gold: Sequence[float], predicted: Sequence[float]) -> dict[str, float]:
    """Pearson's and Spearman's correlation, 0 where a side does not vary, and the mean squared
    error."""
    from scipy.stats import pearsonr, spearmanr

    gold, predicted = np.asarray(gold, float), np.asarray(predicted, float)
    varies = len(gold) > 1 and np.ptp(gold) > 0 and np.ptp(predicted) > 0
    return {"pearson": float(pearsonr(gold, predicted).statistic) if varies else 0.0,
            "spearman": float(spearmanr(gold, predicted).statistic) if varies else 0.0,
            "mse": float(((gold - predicted) ** 2).mean())}


# -- words ------------------------------------------------------------------------------------


_MARK = re.compile(r"[BIES](-.*)?")


def marks_entities(labels: Sequence[str]) -> bool:
    """Whether tags mark entities: B, I (E, S) with or without a type behind a hyphen, and O, which
    is missing where every word is in some entity. Without a type only if there is a B."""
    inside = [label for label in labels if label != "O"]
    return all(map(_MARK.fullmatch, inside)) and any(
        label[0] == "B" or "-" in label for label in inside)


def how_judged(labels: Sequence[str]) -> str:
    """A sentence on which metric tags get, and why where that may surprise."""
    if marks_entities(labels):
        return "The tags mark entities: F1 over whole entities is the metric."
    other = next((label for label in labels if label != "O" and not _MARK.fullmatch(label)), None)
    but = "" if other is None or not any(label[:2] in ("B-", "I-") for label in labels) else \
        f": some look like entities', but {other!r} is none of O, B-, I-, E- and S-"
    return f"The tags are judged word by word, by accuracy{but}."


def of_tags(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]],
            entities: bool) -> dict[str, float]:
    """``accuracy`` over words; with ``entities`` also micro ``precision``, ``recall`` and ``f1`` over
    whole entities, by seqeval as conlleval counts them (Tjong Kim Sang & De Meulder 2003): a
    mention is right where its ends and its type are, and an I- that continues nothing begins one."""
    right = sum(g == p for gs, ps in zip(gold, predicted, strict=True)
                for g, p in zip(gs, ps, strict=True))
    found = {"accuracy": right / max(1, sum(map(len, gold)))}
    if entities:
        from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

        precision, recall, f1, _ = precision_recall_fscore_support(
            [list(tags) for tags in gold], [list(tags) for tags in predicted], average="micro",
            zero_division=0)
        found |= {"precision": float(precision), "recall": float(recall), "f1": float(f1),
                  "order_errors": float(order_errors(predicted))}
    return found


def order_errors(sentences: Sequence[Sequence[str]]) -> int:
    """How many I tags do not continue a B or I of their own type."""
    errors = 0
    for tags in sentences:
        before = "O"
        for tag in tags:
            if tag[0] == "I" and not (before[0] in "BI" and before[1:] == tag[1:]):
                errors += 1
            before = tag
    return errors


# -- answers ----------------------------------------------------------------------------------

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = set(string.punctuation)


def normalized(answer: str) -> str:
    """As SQuAD's official script: lower case, without punctuation and articles, single spaces."""
    kept = "".join(c for c in answer.lower() if c not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", kept).split())


def answer_tokens(answer: str) -> list[str]:
    """Words of the normalised answer; in Chinese characters, and its punctuation goes too.

    As MLQA's script for Chinese (Lewis et al. 2020). Where there is no Chinese character, this is
    SQuAD's own.
    """
    text = normalized(answer)
    if not any(map(_is_chinese, text)):
        return text.split()
    spaced = "".join(f" {c} " if _is_chinese(c) else c for c in text
                     if not unicodedata.category(c).startswith("P"))
    return spaced.split()


def _is_chinese(character: str) -> bool:
    return "\u4e00" <= character <= "\u9fff" or "\u3400" <= character <= "\u4dbf"


def exact_match(predicted: str, answers: Sequence[str]) -> float:
    """1.0 where the prediction is one of the answers once both are normalised; no answer is ``""``."""
    own = answer_tokens(predicted)
    return float(any(own == answer_tokens(answer) for answer in _right(answers)))


def answer_f1(predicted: str, answers: Sequence[str]) -> float:
    """The best F1 of shared words over the answers (Rajpurkar et al. 2016, section 6.1; where one
    side has no word, 1.0 if both have none: the script of version 2.0)."""
    return max(_overlap(answer_tokens(predicted), answer_tokens(answer))
               for answer in _right(answers))


def _right(answers: Sequence[str]) -> list[str]:
    """The answers with a word in them; none means that there is no answer."""
    return [answer for answer in answers if answer_tokens(answer)] or [""]


def _overlap(predicted: list[str], gold: list[str]) -> float:
    if not predicted or not gold:
        return float(predicted == gold)
    shared = sum((Counter(predicted) & Counter(gold)).values())
    return 2 * shared / (len(predicted) + len(gold))


def of_answers(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> dict[str, float]:
    """Mean ``exact_match`` and ``f1``; the same over questions with and without an answer where
    there are both."""
    exact = np.array([exact_match(p, g) for p, g in zip(predicted, gold, strict=True)])
    f1 = np.array([answer_f1(p, g) for p, g in zip(predicted, gold, strict=True)])
    found = {"exact_match": float(exact.mean()), "f1": float(f1.mean())}
    has = np.array([bool(g) for g in gold])
    if has.any() and not has.all():
        found |= {"f1_answered": float(f1[has].mean()), "f1_unanswered": float(f1[~has].mean())}
    return found
