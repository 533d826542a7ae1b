"""The numbers of :mod:`coherence_summary` in plain words, and no more than they carry.

Whatever an interval does not settle is called undecided. A model "knows" a kind of pair where the
interval of its AUC lies above one half. Telling the next sentence from another one of the same
document counts as more than topic only where it clearly does better than the bag of words: that one
tells them apart too, by the words that neighbours share.
"""

from __future__ import annotations

from dataclasses import dataclass

from bertscope.analysis.coherence_summary import Estimate, Summary

#: Fewer documents than this, and the words say so.
FEW = 20
_AGAINST = {"other": "a text of another document", "same": "another text of the same document",
            "swapped": "the same two texts swapped"}
_MORE = {"same": "which sentence comes next within a document",
         "swapped": "the order of two neighbouring texts"}


@dataclass(frozen=True)
class Verdict:
    """``headline`` is one sentence, ``details`` one for each kind of pair, then what limits them."""

    headline: str
    details: list[str]


def conclude(summary: Summary, baseline: Summary | None = None,
             ahead: dict[str, Estimate] | None = None) -> Verdict:
    """What a checkpoint has learnt, as far as these pairs tell.

    Args:
        summary, baseline: of the checkpoint and of the bag of words on the same pairs.
        ahead: by how much the checkpoint's AUCs are larger, from ``coherence_summary.difference``.
    """
    topic = summary.auc["other"]
    more = [kind for kind in ("same", "swapped") if _beyond(kind, summary, ahead)]
    named = " and ".join(_MORE[kind] for kind in more)
    if more and topic.above(0.5):
        if all(summary.auc[kind].high < topic.low for kind in more):
            headline = f"It has learnt topic best, but coherence too: {named}."
        elif any(summary.auc[kind].low > topic.high for kind in more):
            headline = f"It has learnt coherence better than topic: {named}."
        else:
            headline = f"It has learnt topic and coherence: {named}."
    elif more:
        headline = f"It has learnt coherence: {named}. Whether also topic, these pairs cannot tell."
    elif topic.above(0.5):
        headline = "What it has learnt is topic, as far as these pairs can tell."
    else:
        headline = "Whether it has learnt anything about pairs, topic or coherence, cannot be told."
    details = [_detail(kind, summary, baseline, ahead) for kind in ("other", "same", "swapped")]
    if summary.documents < FEW:
        details.append(f"The intervals rest on only {summary.documents} documents.")
    return Verdict(headline, details)


def _beyond(kind: str, summary: Summary, ahead: dict[str, Estimate] | None) -> bool:
    """Whether a kind shows more than topic; the bag of words is at chance on swapped pairs."""
    above = summary.auc[kind].above(0.5)
    return above and (kind == "swapped" or (ahead is not None and ahead[kind].above(0)))


def _detail(kind: str, summary: Summary, baseline: Summary | None, ahead) -> str:
    auc = summary.auc[kind]
    said = f"Against {_AGAINST[kind]} the true pair has the higher score {_percent(auc)}"
    if auc.below(0.5):
        said += ", less than chance (50%): it prefers the wrong one"
    elif not auc.above(0.5):
        said += ": that may be chance (50%), so it cannot be told whether it knows the difference"
    if kind == "swapped":
        return f"{said}. A bag of words cannot know the order."
    if baseline is None or ahead is None:
        return f"{said}."
    gain, theirs = ahead[kind], baseline.auc[kind].value
    points = f"(difference {100 * gain.low:+.1f} to {100 * gain.high:+.1f} points)".replace("-", "−")
    if gain.above(0):
        return f"{said}. It is better than a bag of words, {theirs:.0%} {points}."
    if gain.below(0):
        return f"{said}. A bag of words is better, {theirs:.0%} {points}."
    return f"{said}. Whether it is better than a bag of words, {theirs:.0%}, cannot be told {points}."


def _percent(found: Estimate) -> str:
    return f"in {found.value:.0%} of comparisons (95% interval {found.low:.0%} to {found.high:.0%})"
