"""Is the dependency tree in the geometry of a layer? The structural probe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import frame, loaders, waiting
from bertscope.ui.probing import exports, figures, results, tree_figures
from bertscope.ui.text import markdown

EXPLANATION = r"""
A linear map $B$ is learnt from a layer's word vectors such that squared distances tell how many edges
lie between two words of the dependency tree, another such that squared lengths tell how deep a word
hangs:

$$
d_B(h_i, h_j) = \lVert B(h_i - h_j) \rVert^2, \qquad
\min_B \sum_{s} \frac{1}{|s|^2} \sum_{i,j} \bigl| d_T(w_i, w_j) - d_B(h_i, h_j) \bigr|
$$

The *recovered tree* joins all words by the shortest edges (a minimum spanning tree), punctuation left
out. **UUAS** is the share of the gold tree's edges that are in it, without direction. **Spearman** is
the rank correlation of true and predicted distances, for each word, averaged over sentences of each
length from 5 to 50 words. *Root*: how often the word of the smallest predicted depth is the root.

Beside them the *chain*, where every word hangs from its neighbour, and the same model with random
weights. Trained on one part, ended by a second, tested on a third. In *sentences without sense* every
word is replaced by another that could stand in its place: what is lost was about which words go
together, not about syntax (Hall Maudslay and Cotterell 2021).

Hewitt and Manning 2019, *A structural probe for finding syntax in word representations*.
"""

SIZES = {"300": (300, 100, 200), "2,000": (2000, 500, 1000)}
#: The map's rank; beyond 64 Hewitt and Manning found no gain.
RANK = 64
MEASURES = {"UUAS": ("uuas", "low", "high"), "Spearman": ("spearman", None, None),
            "root": ("root", "root_low", "root_high")}
KINDS = ("probetrees", "probetree_edges", "probetree_words")


@dataclass(frozen=True)
class Trees:
    """``layers``: as in ``structural.StructuralResult``, the chain's scores in ``chain_uuas`` and the
    like; ``edges``: layer, sentence, first, second, gold; ``words``: sentence, place, form, head."""

    layers: Any
    edges: Any
    words: Any


def show(look) -> None:
    gold = look.source.gold
    if gold is None:
        st.info("A table has no trees. Choose miniworld or a CoNLL-U file with the columns HEAD and "
                "DEPREL.", icon=":material/account_tree:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        size = st.segmented_control("Training sentences", list(SIZES), default="300", required=True,
                                    key="tree_size", bind="query-params") or "300"
        nonce = st.toggle("Test on sentences without sense", key="tree_nonce", bind="query-params")
    found = []
    for choice, meaning in look.sides:
        try:
            own = probed(look, choice, SIZES[size], bool(nonce))
        except BertScopeError as error:
            if meaning == "main":
                raise
            st.warning(f"{markdown(choice.label)}: {markdown(error)}", icon=":material/compare:")
            continue
        if own is not None:
            found.append((choice, meaning, own))
    if not found or found[0][1] != "main":
        st.caption("Two maps are learnt for each layer: a minute or more.")
        return
    random = None
    if look.asked.protocol.random:
        random = probed(look, look.chosen, SIZES[size], bool(nonce), random=True)
    curves(look, found, random)
    one_sentence(look, found)


def probed(look, choice, sizes: tuple[int, int, int], nonce: bool, random: bool = False):
    """``Trees`` of a checkpoint, from the disk or computed; None while it waits or is cancelled."""
    from bertscope.analysis.cache import analysis_folder, kept_frame
    from bertscope.analysis.loading import weights_fingerprint
    from bertscope.analysis.probing import structural

    values = {"rank": RANK, "max_train": sizes[0], "max_valid": sizes[1], "max_test": sizes[2],
              "nonce": nonce}
    key = {"version": structural.VERSION, "checkpoint": weights_fingerprint(choice.path),
           "data": look.source.fingerprint, "random": random, **values}
    folder = analysis_folder(choice.path)
    kept = [kept_frame(folder, kind, key) for kind in KINDS]
    if all(table is not None for table in kept):
        return Trees(*kept)
    wanted = ("trees", choice.path, loaders.stamp(choice.path), tuple(sorted(key.items())))
    results.waits(wanted)
    name = f"trees of {choice.label}" + (", random weights" if random else "")
    return waiting.kept(wanted, lambda told: _compute(
        look, choice, structural.StructuralConfig(**values), folder, key, random,
        results.seldom(told)), name)


def _compute(look, choice, config, folder, key: dict, random: bool, told) -> Trees:
    import pandas as pd

    from bertscope.analysis.cache import cached_frame
    from bertscope.analysis.probing.features import Store
    from bertscope.analysis.probing.structural import structural_probe
    from bertscope.analysis.probing.untrained import with_random_weights

    model = look.model if choice is look.chosen else loaders.model(choice)
    model = with_random_weights(model, 0) if random else model
    made = structural_probe(Store(folder / "features", model), look.source.gold, config,
                            progress=told)
    chain = {f"chain_{name}": value for name, value in made.baselines.items()}
    words = pd.DataFrame([(number, place, word.form, word.head - 1)
                          for number, sentence in enumerate(made.sentences)
                          for place, word in enumerate(sentence.words)],
                         columns=["sentence", "place", "form", "head"])
    tables = (made.layers.assign(**chain), made.edges, words)
    return Trees(*(cached_frame(folder, kind, key, lambda table=table: table)
                   for kind, table in zip(KINDS, tables, strict=True)))


def curves(look, found, random) -> None:
    """A measure over the layers, of one or two checkpoints and of random weights."""
    import numpy as np
    import pandas as pd

    measure = st.segmented_control("Measure", list(MEASURES), default="UUAS", required=True,
                                   key="tree_measure", bind="query-params",
                                   label_visibility="collapsed") or "UUAS"
    column, low, high = MEASURES[measure]
    drawn = [(choice.label, meaning, "solid", own.layers) for choice, meaning, own in found]
    drawn += [("random weights", "baseline", "dot", random.layers)] if random else []
    drawn = [(*rest, table.assign(value=table[column], low=table[low] if low else np.nan,
                                  high=table[high] if high else np.nan)) for *rest, table in drawn]
    first = found[0][2].layers
    best = first.loc[first[column].idxmax()]
    chain = float(first[f"chain_{column}"].iloc[0])
    st.markdown(f"##### {measure} is highest in layer {int(best.layer)}: {best[column]:.1%} "
                + (f":gray[(95 % interval {best[low]:.1%} to {best[high]:.1%}; " if low else ":gray[(")
                + f"the chain {chain:.1%})]")
    name = f"{look.chosen.stem}-structural-probe"
    frame.figure(figures.layers(drawn, [("chain", chain)], measure), name, "tree_curve")
    table = pd.concat([own.layers.assign(checkpoint=choice.label) for choice, _, own in found]
                      + ([random.layers.assign(checkpoint="random weights")] if random else []),
                      ignore_index=True)
    with st.container(horizontal=True):
        exports.tables(table, name, "tree")


def one_sentence(look, found) -> None:
    """A test sentence: what a layer recovers, over what is true."""
    first = found[0][2]
    st.markdown("##### One sentence: the recovered tree over the gold one")
    count, layers = int(first.words.sentence.max()) + 1, first.layers.layer.tolist()
    best = int(first.layers.loc[first.layers.uuas.idxmax()].layer)
    if st.session_state.get("tree_number", 1) > count:
        st.session_state["tree_number"] = 1
    if st.session_state.get("probe_layer") not in (None, *layers):
        del st.session_state["probe_layer"]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        number = int(st.number_input(f"Test sentence, 1 to {count:,}", 1, count, 1, width=190,
                                     key="tree_number", bind="query-params")) - 1
        layer = st.select_slider("Layer", layers, value=best, key="probe_layer", width=280,
                                 bind="query-params") if len(layers) > 1 else layers[0]
    words = first.words[first.words.sentence == number].sort_values("place")
    recovered, gold = {}, set()
    for choice, _, own in found:
        same = own.words[own.words.sentence == number].form.tolist() == words.form.tolist()
        edges = own.edges[(own.edges.layer == layer) & (own.edges.sentence == number)]
        if same and len(edges):
            recovered[choice.label] = list(zip(edges["first"], edges.second))
    if not recovered:
        st.info("Too few words of this sentence can be read by the model.", icon=":material/info:")
        return
    gold = gold_edges(words, first, number)
    root = [int(row.place) for row in words.itertuples() if row.head == -1]
    frame.figure(tree_figures.trees(words.form.tolist(), gold, recovered, root[0] if root else None),
                 f"tree-{number + 1}-layer-{layer}", "tree")
    right = [f"{markdown(name)} {len(gold & set(edges)):,} of {len(gold):,}"
             for name, edges in recovered.items()]
    st.caption("Edges recovered: " + " · ".join(right) + ". The root is in bold; punctuation has none.")


def gold_edges(words, own: Trees, number: int) -> set[tuple[int, int]]:
    """The gold tree's edges between the words that are in the recovered one."""
    from bertscope.analysis.probing.trees import edges

    table = own.edges[own.edges.sentence == number]
    inside = sorted(set(table["first"]) | set(table.second))
    return edges(words["head"].tolist(), inside)
