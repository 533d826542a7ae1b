"""What is known without any model: the numbers every probe has to beat."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence


def majority_label(labels: Sequence[str]) -> str:
    """The most frequent label; of equally frequent ones the first in the alphabet."""
    counts = Counter(labels)
    return min(counts, key=lambda label: (-counts[label], label))


def type_predictions(train_forms: Sequence[str], train_labels: Sequence[str],
                     test_forms: Sequence[str]) -> list[str]:
    """Each test word's most frequent label in training; unknown words get the majority label.

    A word type is a lower-cased form. Of equally frequent labels of a type, the one that is more
    frequent in training as a whole is taken.
    """
    overall = Counter(train_labels)
    majority = majority_label(train_labels)
    counts: dict[str, Counter] = defaultdict(Counter)
    for form, label in zip(train_forms, train_labels, strict=True):
        counts[form.lower()][label] += 1
    best = {form: min(seen, key=lambda label: (-seen[label], -overall[label], label))
            for form, seen in counts.items()}
    return [best.get(form.lower(), majority) for form in test_forms]
