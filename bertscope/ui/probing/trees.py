"""Is the dependency tree in the geometry of a layer? The structural probe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from bertscope.ui import compared, frame, loaders, waiting
from bertscope.ui.probing import exports, figures, results, tree_figures
from bertscope.ui.probing.layers import said
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

The shaded layers are those whose UUAS is not significantly below the best (paired bootstrap over
sentences, corrected for their number after Holm 1979).

Beside them the *chain*, where every word hangs from its neighbour, and the same model with random
weights. Trained on one part, ended by a second, tested on a third. In *sentences without sense* every
word is replaced by another that could stand in its place: what is lost was about which words go
together, not about syntax (Hall Maudslay and Cotterell 2021).

Hewitt and Manning 2019, *A structural probe for finding syntax in word representations*.
"""

SIZES = {"300": (300, 100, 200), "2,000": (2000, 500, 1000)}
MEASURES = {"UUAS": ("uuas", "low", "high"), "Spearman": ("spearman", None, None),
            "root": ("root", "root_low", "root_high")}


@dataclass(frozen=True)
class Trees:
    """``layers``: as in ``structural.StructuralResult``, the chain's scores in ``chain_uuas`` and the
    like; ``edges``: layer, sentence, first, second, gold; ``parts``: the sentences of each; what was
    ``asked``: the ``structural.StructuralConfig``."""

    layers: Any
    edges: Any
    parts: dict
    asked: Any

    @property
    def sentences(self) -> list:
        """Those of the test part."""
        return self.parts["test"]


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
        beside = st.toggle("Random weights beside it", value=True, key="tree_random",
                           bind="query-params")
    found = compared.each(look.sides, lambda choice, _: probed(look, choice, SIZES[size], bool(nonce)))
    if not found:
        st.caption("Two maps are learnt for each layer: a minute or more.")
        return
    random = probed(look, look.chosen, SIZES[size], bool(nonce), random=True) if beside else None
    curves(look, found, random)
    one_sentence(look, found)


def probed(look, choice, sizes: tuple[int, int, int], nonce: bool, random: bool = False):
    """``Trees`` of a checkpoint, from the disk or computed; None while it waits or is cancelled."""
    from bertscope.analysis.probing.kept_trees import structural_kept
    from bertscope.analysis.probing.structural import StructuralConfig, chosen

    gold = look.source.gold
    config = StructuralConfig(max_train=sizes[0], max_valid=sizes[1], max_test=sizes[2], nonce=nonce)

    def ask(told=None, kept_only: bool = False):
        return structural_kept(choice.path, gold, config, random, told, results.opener(look),
                               kept_only)

    tables = ask(kept_only=True)
    if tables is None:
        wanted = ("trees", choice.path, loaders.stamp(choice.path), gold.fingerprint, config, random)
        if not random:  # they are asked for together with the trained ones
            results.waits(wanted)
        name = f"trees of {choice.label}" + (" with random weights" if random else "")
        tables = waiting.kept(wanted, lambda told: ask(results.seldom(told)), name)
    return tables and Trees(*tables, chosen(gold, config), config)


def curves(look, found, random) -> None:
    """A measure over the layers, of one or two checkpoints and of random weights."""
    import numpy as np
    import pandas as pd

    from bertscope.analysis.probing.structure_methods import of_trees
    from bertscope.analysis.probing.uncertainty import few

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
    plateau = peak(found[0][2]) if column == "uuas" else []
    where = f"{said(plateau)} {'are' if len(plateau) > 1 else 'is'} best" if plateau else \
        f"highest in layer {int(best.layer)}"
    chance = f"95 % interval {best[low]:.1%} to {best[high]:.1%}; " if low and best[low] == best[low] else ""
    st.markdown(f"##### {measure}: {where}, {best[column]:.1%} :gray[({chance}the chain {chain:.1%})]")
    name = f"{look.chosen.stem}-structural-probe"
    frame.figure(figures.layers(drawn, [("chain", chain)], measure, best=plateau), name, "tree_curve")
    sizes, asked = {name: f"{len(part):,}" for name, part in found[0][2].parts.items()}, found[0][2].asked
    st.caption(f"{sizes['training']} training, {sizes['validation']} validation and {sizes['test']} test "
               f"sentences; rank {asked.rank}, seed {asked.seed}. {few(int(best.sentences)) if low else ''} "
               f"{markdown(look.source.note)}")
    table = pd.concat([own.layers.assign(checkpoint=choice.label) for choice, _, own in found]
                      + ([random.layers.assign(checkpoint="random weights")] if random else []),
                      ignore_index=True)
    with st.container(horizontal=True):
        exports.tables(table, name, "tree")
    exports.paragraph(of_trees([choice.label for choice, *_ in found], look.source.gold, found[0][2].asked,
                               random is not None))


def peak(own) -> list[int]:
    """The layers whose UUAS is not significantly below the best."""
    from bertscope.analysis.probing.tree_peak import best_layers

    key = ("tree peak", own.layers.to_json(), len(own.edges))
    return loaders.keep(key, lambda: best_layers(own.edges, own.sentences))


def one_sentence(look, found) -> None:
    """A test sentence: what a layer recovers, over what is true."""
    first = found[0][2]
    st.markdown("##### One sentence: the recovered tree over the gold one")
    count, layers = len(first.sentences), first.layers.layer.tolist()
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
    words = first.sentences[number].words
    recovered = {}
    for choice, _, own in found:
        edges = own.edges[(own.edges.layer == layer) & (own.edges.sentence == number)]
        if len(edges):
            recovered[choice.label] = set(zip(edges["first"].tolist(), edges.second.tolist()))
    if not recovered:
        st.info("Too few words of this sentence can be read by the model.", icon=":material/info:")
        return
    gold = gold_edges(words, set.union(*recovered.values()))
    root = next((place for place, word in enumerate(words) if word.head == 0), None)
    figure = tree_figures.trees([word.form for word in words], gold, recovered, root)
    frame.figure(figure, f"tree-{number + 1}-layer-{layer}", "tree")
    right = [f"{markdown(name)} {len(gold & edges):,} of {len(gold):,}"
             for name, edges in recovered.items()]
    st.caption("Edges recovered: " + " · ".join(right) + ". The root is in bold; punctuation has none.")


def gold_edges(words, recovered: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The gold tree's edges between the words that are in the recovered one."""
    from bertscope.analysis.probing.trees import edges

    return edges([word.head - 1 for word in words], sorted({place for edge in recovered
                                                            for place in edge}))
