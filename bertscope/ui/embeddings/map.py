"""Many texts as points: which are alike, and how the model sorts them."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import compared, frame, loaders, looking
from bertscope.ui.embeddings import Look, figures, group, results, sources
from bertscope.ui.text import markdown

METHODS = {"PCA": "pca", "t-SNE": "tsne", "UMAP": "umap"}
AXES = {"2-D": 2, "3-D": 3}
MOST_FOUND = 500
EXPLANATION = r"""
Each text becomes one vector of the chosen layer: the state of `[CLS]`, the mean of the states of
its word pieces, or the mean of the pieces of a chosen word or place. Layer 0 is the embedding
layer, where `[CLS]` is the same for every text.

*PCA* shows the two or three directions in which the vectors vary most; the axes say which share
of the variance they hold, and distances on the map are projections of real ones. *t-SNE* and
*UMAP* keep neighbourhoods, not distances: the size of a cluster and the space between clusters
mean nothing. Both begin with the principal components of the 50 leading ones and a fixed seed, so
a map is the same every time. t-SNE: perplexity 30, or a third of $n-1$; UMAP: 15 neighbours,
minimal distance 0.1.

*Trustworthiness* says how far the $k = 5$ nearest on the map are near in all dimensions: with
$r(i, j)$ the rank of $j$ among the nearest of $i$,

$$
T = 1 - \frac{2}{nk(2n - 3k - 1)} \sum_i \sum_{j \in N_k(i)} \max(0,\, r(i, j) - k)
$$

1 is perfect; points thrown at random have about one half. Of more than 2,000 points it is estimated
from 2,000. *Nearest* texts are by cosine in all dimensions, not on the map. In many models all
cosines are high (anisotropy, see the view *Layers*), so compare them with each other, not with 1.

A second checkpoint's map is rotated, or mirrored, to lie as the first one's does (orthogonal
Procrustes): distances on it do not change, and both maps have one scale.

Pearson 1901; van der Maaten and Hinton 2008; McInnes, Healy and Melville 2018; Kobak and Linderman
2021; Venna and Kaski 2001; Schönemann 1966.
"""


def show(look: Look) -> None:
    frame.try_this(
        ("the first encoder layer", lambda: frame.set_state(layer=1)),
        ("neighbourhoods by t-SNE", lambda: frame.set_state(method="t-SNE")),
        ("the mean of all pieces", lambda: frame.set_state(pooling=sources.MEAN)))
    line = sources.row()
    found = sources.choose(look, line)
    if found is None:
        return
    with line:
        label, search = sources.label(found), sources.search()
    at, layer, method, dimensions = controls(look)
    if at is None:
        st.info("Type the word whose vectors are wanted.", icon=":material/edit:")
        return
    sources.warn_of_cls(look, at)
    looking.what(look.chosen, look.model)
    rows = found.rows
    sides = mapped(look, rows, at, layer, method, dimensions)
    if sides:
        keep = common(sides)
        sources.said_of(look, rows, int((~keep).sum()))
        draw(found, sides, keep, label, search)


def mapped(look: Look, rows, at, layer: int, method: str, dimensions: int) -> list[dict]:
    """Vectors and map of each checkpoint; nothing where the first has none, or while cancelled."""
    sides = [side for choice, meaning in look.sides
             if (side := obtain(choice, meaning, rows, at, layer)) is not None]
    if not sides or sides[0]["meaning"] != "main":
        return []
    keep = common(sides)
    for number, side in enumerate(sides):
        side["map"] = results.projection(
            side["choice"], rows, at, side["layer"], method, dimensions, side["states"], keep,
            " of the second checkpoint" if number else "")
        if side["map"] is None:
            return []
    return sides


def controls(look: Look):
    """(place, layer, method, dimensions)."""
    with sources.row():
        layer = sources.layer(look)
        at = sources.place(look)
        return at, layer, *drawing()


def drawing() -> tuple[str, int]:
    """(method, dimensions)."""
    method = st.segmented_control("Map", list(METHODS), default="PCA", key="method", required=True,
                                  bind="query-params") or "PCA"
    axes = st.segmented_control("Axes", list(AXES), default="2-D", key="axes", required=True,
                                bind="query-params") or "2-D"
    return METHODS[method], AXES[axes]


def obtain(choice, meaning: str, rows, at, layer: int) -> dict | None:
    """A checkpoint's vectors; None, with a sentence, where it has none (or while cancelled)."""
    states = None
    with compared.aside(choice, meaning):
        states = results.vectors(choice, rows, at,
                                 " by the second checkpoint" if meaning == "other" else "")
    if states is None:
        return None
    if layer >= len(states):
        st.caption(f":material/info: {markdown(choice.label)} has {len(states) - 1} layers: its last "
                   "one is shown.")
    return {"choice": choice, "meaning": meaning, "states": states,
            "layer": min(layer, len(states) - 1)}


def common(sides: list[dict]):
    """Which texts have a vector in every checkpoint, bool [N]."""
    import numpy as np

    return np.logical_and.reduce([np.isfinite(side["states"][side["layer"], :, 0])
                                  for side in sides])


def draw(found, sides: list[dict], keep, label, search: str,
         boxes: list[str] | None = None, noun: str = "texts") -> None:
    """The maps beside each other, what was gathered, and the nearest of the chosen text. ``boxes``
    are what the mouse shows at each point, the texts' beginnings by default."""
    import numpy as np

    from bertscope.analysis.alignment import turned

    numbers = np.flatnonzero(keep)
    rows = found.rows
    boxes = boxes or loaders.keep(("boxes", rows), lambda: figures.boxes(rows))
    hits = matching(rows, numbers, search)
    maps = [side["map"].coordinates - side["map"].coordinates.mean(0) for side in sides]
    if len(maps) > 1:
        maps[1] = turned(maps[1], maps[0])
    reach = 1.06 * max(float(np.abs(m).max()) for m in maps) if len(maps) > 1 else None
    point = group.point(len(rows))
    columns = frame.beside(2, "maps") if len(sides) > 1 else [st.container()]
    gathered = None
    for side, own, column in zip(sides, maps, columns):
        with column:
            chosen = one(found, side, own, numbers, label, boxes, hits, reach, point, search,
                         len(sides) > 1, noun)
            if chosen and len(chosen) > 1:
                gathered = chosen
    if gathered is None and search:
        gathered = [int(numbers[i]) for i in hits]
    if gathered:
        group.show(found, gathered, numbers, sides[0], maps[0], label, noun)
    point = group.point(len(rows))
    if point is not None and keep[point]:
        nearest = frame.beside(2, "nearest") if len(sides) > 1 else [st.container()]
        for side, own, column in zip(sides, maps, nearest):
            with column:
                group.show_neighbours(found, side, own, numbers, point, label, len(sides) > 1)


def matching(rows, numbers, search: str) -> list[int]:
    """Places among ``numbers`` of the texts that hold what is searched."""
    wanted = search.casefold()
    return [place for place, number in enumerate(numbers) if wanted in rows[number].casefold()
            ] if wanted else []


def one(found, side: dict, own, numbers, label, boxes, hits, reach, point, search, beside: bool,
        noun: str) -> list[int] | None:
    """One checkpoint's map; returns the texts that were gathered or clicked on it."""
    choice, projected, key = side["choice"], side["map"], f"map_{side['meaning']}"
    where = {int(n): place for place, n in enumerate(numbers)}
    clicked = group.selected(key, len(found.rows))
    ring = where.get(point) if point is not None and clicked != [point] else None
    figure = figures.cloud(
        own, found.table[label].iloc[numbers].reset_index(drop=True) if label else None, label,
        [boxes[n] for n in numbers], [int(n) for n in numbers], axis_names(projected, side, own),
        narrow=beside, found=hits[:MOST_FOUND], picked=ring, reach=reach)
    if beside:
        st.markdown(f"**{markdown(choice.label)}**")
    stem = f"{choice.stem}-layer-{side['layer']}"
    space = own.shape[1] == 3
    more = {} if space else {"on_select": "rerun", "selection_mode": ("points", "box", "lasso")}
    st.plotly_chart(figure, key=key, width="stretch", theme=None,
                    config=figures.config(stem, space), **more)
    held = f"holds {sum(projected.explained):.0%} of the variance · " if projected.explained else ""
    hint = "drag to turn it" if space else \
        "click a point for its nearest; the lasso above the map gathers several"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{len(numbers):,} {noun}, layer {side['layer']} · {held}trustworthiness "
                   f"{projected.trustworthiness:.2f} · {hint}")
        frame.download_csv(lambda: with_places(found.table.iloc[numbers], own), f"{stem}-map",
                           key=f"map_csv_{side['meaning']}")
        frame.download_figure(figure, f"{stem}-map", f"map_html_{side['meaning']}")
    if search and not hits:
        st.caption(f":material/search_off: No text holds “{markdown(search)}”.")
    elif len(hits) > MOST_FOUND:
        st.caption(f":material/info: {len(hits):,} texts hold “{markdown(search)}”; the first "
                   f"{MOST_FOUND} are ringed.")
    return clicked


def with_places(table, coordinates):
    """The texts with their places on the map."""
    return table.assign(**{f"map {letter}": coordinates[:, i].round(5)
                           for i, letter in enumerate("xyz"[:coordinates.shape[1]])})


def axis_names(projected, side: dict, own) -> tuple[str, ...]:
    """Which share of the variance an axis holds; a turned map's axes are mixtures."""
    if not projected.explained:
        return ("", "", "")
    if side["meaning"] == "other":
        return ("turned onto the first map", "", "")
    return tuple(f"component {i + 1}: {share:.0%} of the variance"
                 for i, share in enumerate(projected.explained))
