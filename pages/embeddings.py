"""Embeddings: which texts are alike for the model, and how does it sort them?"""

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import charts, frame, loaders, texts, uploads
from bertscope.ui.text import markdown, shorten

CORPUS, OWN = "from the corpus", "texts of my own"
HOW = {"[CLS]": "cls", "mean of pieces": "mean"}
METHODS = {"PCA": "pca", "t-SNE": "tsne"}
EXPLANATION = r"""
Each text becomes one vector of the chosen layer: the state of `[CLS]`, or the mean of the states
of its word pieces. Layer 0 is the embedding layer, where `[CLS]` is the same for every text.

*PCA* shows the two directions in which the vectors vary most; distances on the map are
projections of real ones, and the axes say which share of the variance they hold. *t-SNE* keeps
neighbourhoods, not distances: the size of a cluster and the space between clusters mean nothing.
*Trustworthiness* says how far neighbours on the map are neighbours in all dimensions (1 = all of
them).

`[CLS]` is trained by next-sentence prediction only; without it, or early on, its map is
arbitrary. Neighbours are by cosine in all dimensions. In many models all cosines are high
(anisotropy), so compare them with each other, not with 1.

Pearson 1901; van der Maaten and Hinton 2008; Venna and Kaski 2001; Ethayarajh 2019.
"""


def main() -> None:
    chosen, other = frame.checkpoints()
    model = loaders.model(chosen)
    corpus = texts.corpus_of(chosen)
    frame.try_this(
        ("the first encoder layer", lambda: frame.set_state(layer=1)),
        ("neighbourhoods by t-SNE", lambda: frame.set_state(method="t-SNE")),
        ("the mean of all pieces", lambda: frame.set_state(pooling="mean of pieces")))
    found = source(corpus)
    if found is None:
        return
    table, labels = found
    labels = sorted(labels, key=lambda name: many_names(table[name]))
    layer, how, method, label = controls(model, labels)
    rows = tuple(table["text"])
    for choice, column, key in zip((chosen, other) if other else (chosen,),
                                   frame.beside(2, "maps") if other else [st.container()],
                                   ("main", "other")):
        with column:
            show(choice, table, rows, layer, how, method, label, key, bool(other))


def source(corpus: str | None):
    """(texts with their labels, label columns), or None while there is nothing to draw."""
    places = [CORPUS, OWN] if corpus else [OWN]
    where = st.segmented_control("Texts", places, default=places[0], key="texts_from",
                                 required=True, label_visibility="collapsed") or places[0]
    if where == CORPUS and corpus:
        limit = st.session_state.get("texts_limit", 300)
        try:
            return loaders.labelled_texts(corpus, limit)
        except BertScopeError as error:
            st.warning(f"The run's corpus cannot be read: {markdown(error)}",
                       icon=":material/folder_off:")
            return None
    left, right = st.columns([2, 1])
    pasted = left.text_area("One text a line, or CSV with a column *text*", key="pasted",
                            height=130, max_chars=200_000,
                            placeholder="text,label\nthe cat sleeps,animal\n…")
    file = right.file_uploader("or a file", ["txt", "csv"], key="texts_file",
                               max_upload_size=uploads.MAX_BYTES // 1_000_000)
    raw = uploads.decode(file.getvalue()) if file else pasted
    if not raw.strip():
        st.info("Paste some texts, at least three, or upload a file.", icon=":material/edit:")
        return None
    table = uploads.table_of_texts(raw)
    from bertscope.analysis import gallery

    return table, gallery.label_columns(table.assign(document=0))


def many_names(values) -> bool:
    """Whether a colour each would be too many; such labels are offered last."""
    return values.dtype.kind not in "if" and values.nunique() > 12


def controls(model, labels):
    """Layer, pooling, method, label."""
    if st.session_state.get("layer", 0) > model.num_layers:
        st.session_state["layer"] = model.num_layers
    with st.container(horizontal=True, vertical_alignment="bottom"):
        layer = st.slider("Layer", 0, model.num_layers, model.num_layers, key="layer", width=170,
                          bind="query-params")
        how = st.segmented_control("Vector", list(HOW), default="[CLS]", key="pooling",
                                   required=True, bind="query-params")
        method = st.segmented_control("Map", list(METHODS), default="PCA", key="method",
                                      required=True, bind="query-params")
        label = st.selectbox("Colour", labels, key="colour", width=140) if labels else None
        if st.session_state.get("texts_from", CORPUS) == CORPUS:
            st.number_input("Texts at most", 20, uploads.MAX_TEXTS, 300, 100, key="texts_limit",
                            width=120)
    return layer, HOW[how], METHODS[method], label


def show(choice, table, rows, layer, how, method, label, key, beside) -> None:
    """One checkpoint's map, with the neighbours of the clicked point below it."""
    try:
        model = loaders.model(choice)
        layer = min(layer, model.num_layers)
        bar = st.empty()
        arguments = (choice.path, loaders.stamp(choice.path), rows, layer, how)
        with st.spinner("Reading the texts …"):
            projected = loaders.projection(
                *arguments, method,
                progress=lambda text, share: bar.progress(min(share or 0.0, 1.0), text=text))
        bar.empty()
    except BertScopeError as error:
        frame.show_error(error)
        return
    points = table.assign(x=projected.coordinates[:, 0], y=projected.coordinates[:, 1])
    names = ("", "")
    if projected.explained:
        names = tuple(f"component {i + 1}: {share:.0%} of the variance"
                      for i, share in enumerate(projected.explained))
    if beside:
        st.markdown(f"**{markdown(choice.label)}**")
    chart = charts.scatter(points, label, list(rows), names, beside)
    event = frame.figure(chart, f"{choice.stem}-layer-{layer}", f"map_{key}", on_select="rerun",
                         selection_mode="points")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{len(rows):,} texts, layer {layer} · trustworthiness "
                   f"{projected.trustworthiness:.2f} · click a point for its neighbours")
        frame.download_csv(points, f"{choice.stem}-layer-{layer}-map", key=f"map_csv_{key}")
        frame.download_figure(chart, f"{choice.stem}-layer-{layer}-map", f"map_html_{key}")
    index = clicked(event, len(rows))
    if index is not None:
        show_neighbours(loaders.vectors(*arguments), index, table, label)


def clicked(event, count: int) -> int | None:
    points = (event or {}).get("selection", {}).get("points", [])
    index = points[0].get("customdata") if points else None
    if isinstance(index, (list, tuple)):
        index = index[0] if index else None
    return int(index) if isinstance(index, (int, float)) and 0 <= index < count else None


def show_neighbours(vectors, index: int, table, label) -> None:
    import pandas as pd

    from bertscope.analysis.embeddings import neighbours

    st.markdown(f"**Nearest to** “{markdown(shorten(table['text'][index], 160))}”")
    nearest = neighbours(vectors, index, 8)
    rows = {"cosine": [c for _, c in nearest], "text": [table["text"][i] for i, _ in nearest]}
    if label:
        rows[label] = [table[label][i] for i, _ in nearest]
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch",
                 column_config={"cosine": st.column_config.NumberColumn(format="%.3f", width=70)})


with frame.page("Embeddings", "Which texts are alike for this model, and how does it sort them?"):
    main()
frame.explain(EXPLANATION)
