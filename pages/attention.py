"""Attention: which piece looks at which, in every head?"""

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import charts, frame, loaders, texts, theme
from bertscope.ui.components import heads
from bertscope.ui.text import bounded, markdown

VIEWS = ("All heads", "Head table", "bertviz head view", "bertviz model view")
EXPLANATION = r"""
Head $a$ of layer $l$ gives piece $i$ a distribution over all pieces $j$, and the head's output is
the mean of the value vectors under it:

$$
\alpha_{ij} = \operatorname{softmax}_j\left(\frac{q_i \cdot k_j}{\sqrt{d}}\right)
$$

A row is the piece that looks, a column the piece that is looked at; every row sums to 1. Heads
are written layer-head, from 1 (*head 2-1*). The small maps are drawn by the square root of the
weight, so that small weights can be seen; the tooltip has the weight itself. A weight says where
a head *reads*, not how much that matters for the result (Jain and Wallace 2019; Kobayashi et al.
2020).

In the table: *entropy* of the rows in bits (0: each piece looks at one piece only), *distance*
the mean $|i-j|$, then the mean weight on `[CLS]`, `[SEP]`, the previous, the same and the next
piece. Means over the input's pieces, after Clark et al. 2019, *What does BERT look at?*, sections
3.1 to 3.3.

Vaswani et al. 2017, section 3.2; bertviz: Vig 2019.
"""


def main() -> None:
    chosen, other = frame.checkpoints()
    model = loaders.model(chosen)
    examples = texts.fills(chosen)
    left, right = st.columns([3, 2])
    text = left.text_area("Text", examples[0].text if examples else "", key="text", height=72,
                          bind="query-params", max_chars=texts.MAX_SENTENCE)
    pair = right.text_area("Second text (optional)", key="pair", height=72, bind="query-params",
                           max_chars=texts.MAX_SENTENCE, placeholder="makes it a pair")
    frame.try_this(*experiments(chosen, examples))
    text, pair = bounded(text, texts.MAX_SENTENCE), bounded(pair, texts.MAX_SENTENCE) or None
    if not text:
        st.info("Type a sentence above, or take one of the experiments.", icon=":material/edit:")
        return
    maps = maps_of(model, text, pair)
    theirs = second(other, text, pair) if other else None
    if maps.truncated:
        st.caption(f"Cut to the {model.max_length} pieces that this model reads at once.")
    with st.container(horizontal=True, vertical_alignment="center"):
        view = st.segmented_control("View", VIEWS, default=VIEWS[0], key="view", required=True,
                                    bind="query-params", label_visibility="collapsed")
        words = st.toggle("Whole words", key="words", bind="query-params",
                          help="Join the pieces of a word: weights to them are summed, weights "
                               "from them averaged (Clark et al. 2019, section 4.1).")
    if words:
        maps, theirs = by_words(maps), by_words(theirs) if theirs else None
    if view == VIEWS[0]:
        show_grid(maps, theirs, chosen, other)
    elif view == VIEWS[1]:
        show_table(maps, chosen)
    else:
        show_bertviz(maps, "head" if view == VIEWS[2] else "model", chosen)


def experiments(chosen, examples) -> list:
    pairs = texts.pairs(chosen)
    acts = [(e.text, lambda e=e: frame.set_state(text=e.text, pair="")) for e in examples[1:3]]
    if pairs:
        acts.append(("a pair of sentences",
                     lambda: frame.set_state(text=pairs[0].a, pair=pairs[0].b)))
    return acts


def maps_of(model, text, pair):
    from bertscope.analysis.attention import attention_maps

    return attention_maps(model, text, pair)


def by_words(maps):
    from bertscope.analysis.attention import by_words as join

    return join(maps)


def second(other, text, pair):
    try:
        return maps_of(loaders.model(other), text, pair)
    except BertScopeError as error:
        st.warning(f"{markdown(other.label)}: {markdown(error)}", icon=":material/compare:")
        return None


# -- all heads, and one of them ---------------------------------------------------------------


def show_grid(maps, theirs, chosen, other) -> None:
    layers, count = maps.weights.shape[:2]
    names = [f"{layer}-{head}" for layer in range(1, layers + 1) for head in range(1, count + 1)]
    if st.session_state.get("head") not in (None, *names):
        del st.session_state["head"]
    comparable = theirs is not None and theirs.tokens == maps.tokens \
        and theirs.weights.shape == maps.weights.shape
    difference = False
    with st.container(horizontal=True, vertical_alignment="bottom"):
        head = st.selectbox("Head (layer-head)", names, key="head", bind="query-params", width=150)
        if theirs is not None:
            difference = st.segmented_control(
                "Second checkpoint", ["beside", "difference"], default="beside", key="compare_as",
                required=True, bind="query-params", disabled=not comparable) == "difference"
    if theirs is not None and not comparable:
        st.caption("The second checkpoint has other pieces or heads, so there is no difference to "
                   "draw.")
    number = names.index(head)
    if difference and comparable:
        st.caption(f"Blue: more in {markdown(chosen.label)}. "
                   f"Orange: more in {markdown(other.label)}.")
        one_and_all(maps.weights - theirs.weights, maps, number, "difference", head, True)
    elif theirs is None:
        one_and_all(maps.weights, maps, number, "main", head)
    else:
        most = strongest(number, maps, theirs)
        for column, found, choice, key in zip(frame.beside(2, "heads"), (maps, theirs),
                                              (chosen, other), ("main", "other")):
            with column:
                st.markdown(f"**{markdown(choice.label)}**")
                stacked(found.weights, found, number, key, head, most)
    st.caption("A row of maps is a layer, a column a head. Point at a map for its weights, click "
               "it to enlarge it.")
    import pandas as pd

    l, a = divmod(number, count)
    with st.container(horizontal=True):
        rows = [{"from": i, "from_piece": t, "to": j, "to_piece": u, "weight": float(w)}
                for (i, t), weights in zip(enumerate(maps.tokens), maps.weights[l, a])
                for (j, u), w in zip(enumerate(maps.tokens), weights)]
        frame.download_csv(pd.DataFrame(rows), f"{chosen.stem}-head-{head}", f"Head {head} (CSV)")
        frame.download_figure(charts.heat_map(maps.weights[l, a], maps.tokens, f"Head {head}"),
                              f"{chosen.stem}-head-{head}", "head_html")


def one_and_all(weights, maps, number, key, head, signed=False) -> None:
    left, right = frame.beside(2, "head")
    with left:
        grid(weights, maps, number, key, signed)
    with right:
        one(weights, maps, number, key, head, signed)


def strongest(number, *several) -> float:
    """The largest weight of a head in any of the maps."""
    return max(float(m.weights.reshape(-1, *m.weights.shape[2:])[number].max()) for m in several
               if number < m.weights.shape[0] * m.weights.shape[1])


def stacked(weights, maps, number, key, head, most) -> None:
    count = weights.shape[0] * weights.shape[1]
    grid(weights, maps, min(number, count - 1), key, False)
    if number < count:
        one(weights, maps, number, key, head, False, most)


def grid(weights, maps, number, key, signed) -> None:
    scale = theme.diverging() if signed else theme.sequential()
    heads.head_grid(weights, maps.tokens, scale, number, f"grid_{key}", signed=signed,
                    largest=230 if weights.shape[1] <= 4 else 150,
                    on_change=lambda: take_click(f"grid_{key}", weights.shape[1]))


def take_click(key: str, count: int) -> None:
    number = heads.clicked(key)
    if number is not None:
        st.session_state["head"] = f"{number // count + 1}-{number % count + 1}"


def one(weights, maps, number, key, head, signed, most=None) -> None:
    l, a = divmod(number, weights.shape[1])
    chart = charts.heat_map(weights[l, a], maps.tokens, f"Head {head}", signed, most)
    frame.figure(chart, f"head-{head}", f"head_{key}")


# -- the table and bertviz --------------------------------------------------------------------


def show_table(maps, chosen) -> None:
    from bertscope.analysis.attention import head_summary

    table = head_summary(maps)
    shares = ["cls", "sep", "previous", "self", "next"]
    config = {name: st.column_config.ProgressColumn(name, min_value=0, max_value=1, format="%.2f",
                                                    color=theme.colour("main"))
              for name in shares}
    config["entropy"] = st.column_config.NumberColumn("entropy (bits)", format="%.2f")
    config["distance"] = st.column_config.NumberColumn("distance (pieces)", format="%.1f")
    st.dataframe(table, hide_index=True, width="stretch", column_config=config,
                 height=min(36 * (len(table) + 1) + 3, 640))
    st.caption("Click a column's head to sort by it.")
    frame.download_csv(table, f"{chosen.stem}-heads")


def show_bertviz(maps, view: str, chosen) -> None:
    from bertscope.analysis.bertviz_views import bertviz_page

    layers = None
    count = maps.weights.shape[0]
    if view == "head" and count > 6:
        layers = [st.slider("Layer", 1, count, count, key="bertviz_layer")]
    elif count > 6:
        first = st.slider("Layers", 1, count, (1, 6), key="bertviz_layers")
        layers = list(range(first[0], first[1] + 1))
    page = bertviz_page(maps, view, layers)
    st.iframe(page)
    st.download_button("This view (HTML)", page, f"{chosen.stem}-{view}-view.html", "text/html",
                       icon=":material/download:", on_click="ignore", type="tertiary")


with frame.page("Attention", "Which piece looks at which, in every head?"):
    main()
frame.explain(EXPLANATION)
