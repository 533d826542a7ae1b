"""What a probe predicts. Each task turns gold annotation into :class:`Items`.

    from bertscope.analysis.probing import data
    from bertscope.analysis.probing.tasks import items, offers

    gold = data("en_ewt/")
    [task.name for task in offers(gold)]       # upos ... feat:Number@NOUN ... sent:depth
    items(gold, "sent:shift", seed=1)

Tables and SentEval's files bring their own labels: ``data`` gives them as one task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from bertscope.analysis.probing.items import Items
from bertscope.analysis.probing.tasks import pair, perturbed, sentence, word
from bertscope.analysis.probing.tasks.common import ENOUGH, TaskInfo, title, types_apart
from bertscope.analysis.probing.tasks.word import COLUMNS, labeller
from bertscope.corpus.conllu import Sentence
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from bertscope.analysis.probing.gold import Gold

__all__ = ["COLUMNS", "ENOUGH", "MAKERS", "TaskInfo", "available_tasks", "items", "labeller",
           "offers", "title", "types_apart"]

#: Sentences of each part that are tried before a task is offered.
LOOK_THROUGH = 2000
#: Every task but the columns and features: name -> maker.
MAKERS: dict[str, Callable[..., Items]] = {
    "head-distance": word.head_distance,
    "ner": word.entity_tags,
    "entity": word.entity_types,
    "pair:deprel": pair.relations,
    "pair:head": pair.governors,
    "pair:coref": pair.coreference,
    "sent:length": sentence.length,
    "sent:word": sentence.content,
    "sent:depth": sentence.depth,
    "sent:tense": sentence.tense,
    "sent:subject": sentence.subject,
    "sent:object": sentence.object_,
    "sent:shift": perturbed.shift,
    "sent:odd": perturbed.odd_one_out,
    "sent:coordination": perturbed.coordination,
}


def items(gold: Gold, task: str, seed: int = 0, apart: bool = False) -> Items:
    """The labelled items of a task.

    Args:
        task: a name of ``MAKERS``, a column (``upos``, ``xpos``, ``deprel``) or ``feat:NAME``,
            where ``@UPOS`` may follow.
        seed: of what is drawn: which sentences balance a task, which are changed and how.
        apart: keep word types apart between the parts, see ``types_apart``.

    Raises:
        BertScopeError: there is no such task, or these data do not serve it.
    """
    if task in MAKERS:
        found = MAKERS[task](gold, task, seed)
    elif word.is_column(task):
        found = word.columns(gold, task, seed)
    else:
        raise BertScopeError(f"There is no task called {task!r}; choose upos, xpos, deprel, "
                             f"feat:NAME (for example feat:Number@NOUN) or {', '.join(MAKERS)}.")
    if apart:
        found = types_apart(found, seed)
    lacking = [part for part, places in found.where.items() if not len(places)]
    if lacking:
        raise BertScopeError(f"{gold.name} has no item for the task {task} in its {lacking[0]} part.")
    if len(found.classes) < 2:
        raise BertScopeError(f"All {len(found.where['train']):,} training items of the task {task} "
                             "have the same label; there is nothing to learn.")
    return found


def available_tasks(sentences: Iterable[Sentence], enough: int = ENOUGH) -> list[TaskInfo]:
    """Columns and features that some sentences can serve: see ``word.offers``."""
    return word.offers(sentences, enough)


def offers(gold: Gold, seed: int = 0, enough: int = ENOUGH) -> list[TaskInfo]:
    """All tasks that the data can serve, words first, then pairs and sentences.

    Columns and features are those with two labels or more on ``enough`` words each, counted exactly.
    The others have two labels, items in every part, and in training twice ``enough``; they are tried
    on the first ``LOOK_THROUGH`` sentences of each part, and are said to have what is found there.
    """
    found = word.offers(gold.sentences, enough)
    part = replace(gold, train=gold.train[:LOOK_THROUGH], valid=gold.valid[:LOOK_THROUGH],
                   test=gold.test[:LOOK_THROUGH])
    for name in MAKERS:
        try:
            made = items(part, name, seed)
        except BertScopeError:
            continue
        if len(made.where["train"]) >= 2 * enough:
            found.append(TaskInfo(name, title(name), len(set(made.labels)), len(made), made.kind))
    return found
