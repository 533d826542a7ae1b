"""Which dependency relation does a head follow? (Clark et al. 2019, section 4.2, Table 1)"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bertscope.analysis.attention import merge_pieces
from bertscope.analysis.attention_sample import attention_batches
from bertscope.corpus.conllu import Sentence
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.activations import Encoded, LoadedModel, Progress

#: Raise it when the numbers change.
VERSION = 1
#: Every word's guess is the word so many places to the right (negative: left).
OFFSETS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
#: The dependent's strongest weight is on its head; or: of all words the head looks at it most.
DIRECTIONS = ("dependent→head", "head→dependent")
#: Stands for all relations together.
ALL = "all"
#: Relations that are told apart; rarer ones count for all together only.
MOST_RELATIONS = 100
#: Relations that are not scored: the root has no head, and of punctuation it is a convention.
LEFT_OUT = ("root", "punct")

#: (dependent, head, relation); places in the sentence, from 0.
Arc = tuple[int, int, str]


@dataclass(frozen=True)
class RelationCounts:
    """How many arcs each head, and each fixed offset, gets right.

    ``heads``: relation, direction, layer, head (from 1), right, arcs. ``offsets``: relation, offset,
    right, arcs. Relations begin with ``all``, then the most frequent first. ``sentences`` that were
    read, and ``lost``, the arcs that were not: their words were cut off, or have no piece.
    """

    heads: pd.DataFrame
    offsets: pd.DataFrame
    sentences: int
    lost: int


def relation_counts(model: LoadedModel, sentences: Sequence[Sentence], subtypes: bool = False,
                    progress: Progress | None = None) -> RelationCounts:
    """Score every head on every relation, in both directions.

    Between words: the sum over the pieces looked at, the mean over those that look; [CLS], [SEP] and
    a word's weight on itself are left out, the largest of the rest is the guess. For
    head→dependent the matrix is turned over first, as Clark et al. do: of all words, which one looks
    at the dependent most? So both directions guess the head of the same dependents.

    Args:
        subtypes: keep ``nsubj:pass`` apart from ``nsubj``.

    Raises:
        BertScopeError: no sentence has an arc, or the architecture has no attention weights.
    """
    inputs, groups, owners = _read(model, sentences)
    arcs = [_readable(_arcs(sentences[owner], subtypes), pieces)
            for owner, pieces in zip(owners, groups, strict=True)]
    total = sum(len(_arcs(sentence, subtypes)) for sentence in sentences)
    counted = _counted(arcs)
    rows = {name: row for row, name in enumerate(counted)}
    right = np.zeros((len(rows) + 1, 2, model.num_layers, model.num_heads), np.int64)
    for batch in attention_batches(model, inputs, progress):
        for index, weights in batch:
            if arcs[index]:
                _score(right, weights.numpy(), groups[index], arcs[index], rows)
    right[0] = right[1:].sum(0)
    return RelationCounts(_heads(right[:-1], counted), _offsets(arcs, counted), len(inputs),
                          total - counted[ALL])


def offset_counts(sentences: Sequence[Sentence], subtypes: bool = False) -> pd.DataFrame:
    """``RelationCounts.offsets`` over all arcs of the sentences; no model.

    Raises:
        BertScopeError: no sentence has an arc.
    """
    arcs = [_arcs(sentence, subtypes) for sentence in sentences]
    return _offsets(arcs, _counted(arcs))


def relation_counts_cached(checkpoint: str | Path, sentences: Sequence[Sentence],
                           subtypes: bool = False, progress: Progress | None = None,
                           open_model: Callable[[str | Path], LoadedModel] | None = None,
                           kept_only: bool = False) -> RelationCounts | None:
    """:func:`relation_counts`, kept by what is in the checkpoint's weights and the sentences.

    Args:
        open_model, kept_only: as ``head_statistics_cached``.
    """
    import pandas as pd

    from bertscope.analysis.kept import kept

    def compute(model: LoadedModel) -> pd.DataFrame:
        found = relation_counts(model, sentences, subtypes, progress)
        both = pd.concat([found.heads.assign(offset=0),
                          found.offsets.assign(direction="", layer=0, head=0)], ignore_index=True)
        return both.assign(sentences=found.sentences, lost=found.lost)

    key = {"version": VERSION, "sentences": sentences_digest(sentences), "subtypes": subtypes}
    table = kept(checkpoint, "headrelations", key, compute, open_model, kept_only)
    if table is None:
        return None
    of_heads = table["offset"] == 0
    return RelationCounts(
        table.loc[of_heads, ["relation", "direction", "layer", "head", "right", "arcs"]],
        table.loc[~of_heads, ["relation", "offset", "right", "arcs"]].reset_index(drop=True),
        int(table["sentences"].iloc[0]), int(table["lost"].iloc[0]))


def sentences_digest(sentences: Sequence[Sentence]) -> str:
    """24 hex digits of all that is read of them: words, heads, relations."""
    rows = [[(word.form, word.head, word.deprel) for word in sentence.words]
            for sentence in sentences]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:24]


# -- inside -----------------------------------------------------------------------------------


def _arcs(sentence: Sentence, subtypes: bool) -> list[Arc]:
    """Those that are scored."""
    found = []
    for place, word in enumerate(sentence.words):
        base = word.deprel.partition(":")[0]
        if word.head > 0 and base and base not in LEFT_OUT and word.head - 1 != place:
            relation = word.deprel if subtypes else base
            found.append((place, word.head - 1, f"{ALL}:" if relation == ALL else relation))
    return found


def _counted(arcs: Sequence[Sequence[Arc]]) -> dict[str, int]:
    """Arcs of all relations together, then of each, the most frequent first."""
    counts = Counter(relation for own in arcs for _, _, relation in own)
    if not counts:
        raise BertScopeError("These sentences have no dependency arcs that could be scored: the "
                             "columns HEAD and DEPREL are empty, or nothing of them can be read.")
    order = sorted(counts, key=lambda name: (-counts[name], name))[:MOST_RELATIONS]
    return {ALL: counts.total(), **{name: counts[name] for name in order}}


def _read(model: LoadedModel, sentences: Sequence[Sentence],
          ) -> tuple[list[Encoded], list[dict[int, list[int]]], list[int]]:
    """The sentences as the model reads them, ``{word: [pieces]}`` of each, and which it is. Its words
    are joined by spaces, as for probing; a sentence that has no piece is left out."""
    from bertscope.analysis.activations import encode, pieces_of_words

    inputs, groups, owners = [], [], []
    for number, sentence in enumerate(sentences):
        words = [model.text_encoder.clean(word.form) for word in sentence.words]
        try:
            encoded = encode(model, " ".join(words))
        except BertScopeError:
            continue
        inputs.append(encoded)
        groups.append(pieces_of_words(encoded, words))
        owners.append(number)
    return inputs, groups, owners


def _readable(arcs: Sequence[Arc], pieces: dict[int, list[int]]) -> list[Arc]:
    return [arc for arc in arcs if arc[0] in pieces and arc[1] in pieces]


def _between_words(weights: np.ndarray, groups: dict[int, list[int]]) -> np.ndarray:
    """[..., T, T] to [..., W, W]: the sum to, the mean from; -1 from a word to itself. Pieces of no
    word are left out."""
    owners: list[int | None] = [None] * weights.shape[-1]
    for word, pieces in groups.items():
        for piece in pieces:
            owners[piece] = word
    merged, places = merge_pieces(weights, owners)
    kept = [n for n, pieces in enumerate(places) if owners[pieces[0]] is not None]
    found = merged[..., kept, :][..., kept]
    found[..., range(len(kept)), range(len(kept))] = -1
    return found


def _score(right: np.ndarray, weights: np.ndarray, groups: dict[int, list[int]],
           arcs: Sequence[Arc], rows: dict[str, int]) -> None:
    """Add one sentence's right guesses to int64 [relations, 2, L, A]; the last row is for those that
    have none."""
    between = _between_words(weights, groups)
    place = {word: row for row, word in enumerate(groups)}
    dependents = [place[arc[0]] for arc in arcs]
    heads = np.array([place[arc[1]] for arc in arcs])
    relations = [rows.get(arc[2], len(rows)) for arc in arcs]
    for direction, axis in enumerate((-1, -2)):
        guess = between.argmax(axis)[..., dependents]
        np.add.at(right[:, direction], relations, np.moveaxis(guess == heads, -1, 0))


def _heads(right: np.ndarray, counted: dict[str, int]) -> pd.DataFrame:
    import pandas as pd

    places = np.array(list(np.ndindex(right.shape))).reshape(-1, 4).T
    return pd.DataFrame({
        "relation": np.array(list(counted), object)[places[0]],
        "direction": np.array(DIRECTIONS, object)[places[1]],
        "layer": places[2] + 1, "head": places[3] + 1, "right": right.ravel(),
        "arcs": np.array(list(counted.values()))[places[0]]})


def _offsets(arcs: Sequence[Sequence[Arc]], counted: dict[str, int]) -> pd.DataFrame:
    import pandas as pd

    right = {(name, offset): 0 for name in counted for offset in OFFSETS}
    for dependent, head, relation in (arc for own in arcs for arc in own):
        for name in (ALL, relation):
            if (name, head - dependent) in right:
                right[name, head - dependent] += 1
    return pd.DataFrame([(name, offset, count, counted[name])
                         for (name, offset), count in right.items()],
                        columns=["relation", "offset", "right", "arcs"])
