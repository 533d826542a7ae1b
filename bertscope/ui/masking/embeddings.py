"""Token + segment + position: the actual vectors of a checkpoint as small heat maps."""

from __future__ import annotations

import numpy as np
import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import compared, frame, loaders, theme
from bertscope.ui.masking import Look
from bertscope.ui.text import markdown, plotly

#: Pieces and numbers that are drawn; the rest is computed as well.
MOST_PIECES, MOST_NUMBERS = 24, 256
TITLES = {"token": "token", "segment": "+ segment", "position": "+ position", "sum": "= sum",
          "normalised": "LayerNorm", "projected": "widened"}


def show(look: Look, row, tokens, shown) -> None:
    as_seen = st.segmented_control(
        "The vectors of", ["the text as written", "what the model sees"], key="vectors",
        default="the text as written", required=True, bind="query-params",
        label_visibility="collapsed") == "what the model sees"
    ids, labels = (row.shown, shown) if as_seen else (row.ids, tokens)
    mine, theirs = parts(look.model, ids, row), second(look, ids, row)
    if mine is None:
        return
    for sentence in mine.missing:
        st.caption(f":material/info: {sentence}")
    bounds = limits(mine, theirs)
    for choice, found, key in ((look.chosen, mine, "main"), (look.other, theirs, "other")):
        if found is not None:
            figure = heat_maps(found, labels, bounds, choice.label)
            frame.figure(figure, f"{choice.stem}-embeddings", f"vectors_{key}")
    st.caption("A row is a piece, a column one number of its vector; blue is above 0, orange below, "
               "and the first four maps share one scale. The same position has the same vector in "
               "every text, and so has a segment."
               + cut(mine, len(ids)))


def parts(model, ids, row):
    from bertscope.analysis.input_embeddings import input_embeddings

    try:
        return input_embeddings(model, ids, row.token_type_ids)
    except BertScopeError as error:
        st.info(markdown(error), icon=":material/info:")
        return None


def second(look: Look, ids, row):
    """The second checkpoint's vectors for the same pieces; None where it has others."""
    if look.other is None:
        return None
    with compared.aside(look.other):
        from bertscope.analysis.input_embeddings import input_embeddings

        model = loaders.model(look.other)
        if model.tokenizer.get_vocab() != look.model.tokenizer.get_vocab():
            raise BertScopeError("its vocabulary is another one, so its vectors are of other pieces.")
        return input_embeddings(model, ids, row.token_type_ids)


def limits(*several) -> tuple[float, float]:
    """The values of the strongest colours: of what is added and the sum, and of what is normalised.
    A few outliers would leave all else pale."""
    found = [f for f in several if f is not None]
    return (max(_strong(v) for f in found for v in (*f.parts.values(), f.total)),
            max(_strong(v) for f in found for v in (f.normalised, f.outcome)))


def _strong(values: np.ndarray) -> float:
    return float(np.quantile(np.abs(values), 0.99)) or 1e-6


def cut(found, pieces: int) -> str:
    """What is not drawn."""
    said = []
    if pieces > MOST_PIECES:
        said.append(f"the first {MOST_PIECES} of {pieces:,} pieces")
    if found.total.shape[1] > MOST_NUMBERS:
        said.append(f"the first {MOST_NUMBERS} of {found.total.shape[1]:,} numbers")
    return f" Drawn are {' and '.join(said)}." if said else ""


def heat_maps(found, tokens, bounds: tuple[float, float], label: str):
    """The maps side by side, with one row for each piece."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    maps = [*found.parts.items(), ("sum", found.total), ("normalised", found.normalised)]
    if found.projected is not None:
        maps.append(("projected", found.projected))
    names = [plotly(token) for token in tokens[:MOST_PIECES]]
    figure = make_subplots(rows=1, cols=len(maps), shared_yaxes=True, horizontal_spacing=0.012,
                           subplot_titles=[TITLES[name] for name, _ in maps])
    for column, (name, vectors) in enumerate(maps, start=1):
        late = name in ("normalised", "projected")
        drawn = np.asarray(vectors[:MOST_PIECES, :MOST_NUMBERS], np.float32)
        figure.add_trace(go.Heatmap(
            z=drawn, coloraxis=f"coloraxis{2 if late else 1}",
            customdata=np.repeat(np.array(names, object)[:, None], drawn.shape[1], 1),
            hovertemplate=f"%{{customdata}}, number %{{x}}: %{{z:.3f}}<extra>{name}</extra>"),
            1, column)
    axis = {"colorscale": theme.diverging(), "showscale": False}
    figure.update_layout(
        coloraxis={**axis, "cmin": -bounds[0], "cmax": bounds[0]},
        coloraxis2={**axis, "cmin": -bounds[1], "cmax": bounds[1]})
    figure.update_xaxes(showticklabels=False, showgrid=False, zeroline=False, ticks="")
    figure.update_yaxes(autorange="reversed", showgrid=False, zeroline=False, ticks="")
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=names, tickfont_size=11,
                        row=1, col=1)
    figure.update_annotations(font_size=13)
    return theme.dress(figure, 62 + 14 * len(names), title_text=plotly(label), title_y=0.995,
                       dragmode=False, margin={"l": 10, "r": 10, "t": 50, "b": 6})
