"""How texts move over the checkpoints, or through the layers, on maps that do not jump."""

from __future__ import annotations

import streamlit as st

from bertscope.analysis import timeline
from bertscope.errors import BertScopeError
from bertscope.ui import compared, frame, loaders, looking, waiting
from bertscope.ui.embeddings import Look, figures, moving, results, sources
from bertscope.ui.embeddings.map import drawing
from bertscope.ui.text import markdown, shorten

STEPS, LAYERS = "over the checkpoints", "through the layers"
TURNED, PLANE = "turning each map", "one plane for all"
FARTHEST, FOUND, NONE = "the 5 that move most", "those that hold the search", "none"
MOST_CHECKPOINTS, MOST_TRAILS = 16, 12
EXPLANATION = r"""
The same texts at every checkpoint (or layer), a map each. A method on its own may mirror or
rotate its map from step to step, so that everything jumps while nothing has changed. Two ways
against that:

*Turning each map.* Each step's own map is rotated, or mirrored, onto its neighbour's, outwards
from the step that is chosen in the sidebar (or the last layer), whose map is that of the view
*Map*. With centred maps $X$ and $Y$, the orthogonal matrix with the smallest $\lVert XR - Y
\rVert^2$ is $R = UV^\top$, where $U \Sigma V^\top$ is the singular value decomposition of $X^\top
Y$ (orthogonal Procrustes). No distance on a map is changed. What is *not* made alike are the
planes: each step shows the directions in which it varies most itself, so a text may also move
because another direction became the widest. t-SNE and UMAP moreover begin each map from its
neighbour's; where that is not enough they still jump, and distances between steps mean little.

*One plane for all* (PCA). The two directions in which all steps together vary most, the same at
every step. Nothing is turned: what moves has moved in the space of all dimensions. The price is
that each step shows less of its own variance.

The curve below the map says what is lost: the share of the variance that each map holds, and its
trustworthiness. Each map is centred: what all texts have in common, and its drift, is not shown.

Schönemann 1966; Pearson 1901; Kobak and Linderman 2021. Maps that begin from the one before:
Rauber, Falcão and Telea 2016 (dynamic t-SNE couples them more tightly); McInnes et al.'s
AlignedUMAP.
"""


def show(look: Look) -> None:
    frame.try_this(
        ("one plane for all steps", lambda: frame.set_state(keep=PLANE, method="PCA")),
        ("through the layers", lambda: frame.set_state(along=LAYERS)),
        ("the same size at every step", lambda: frame.set_state(equal=True)))
    line = sources.row()
    found = sources.choose(look, line)
    if found is None:
        return
    with line:
        label = sources.label(found)
        trails = st.selectbox("Trails of", [FARTHEST, FOUND, NONE], key="trails", width=200,
                              bind="query-params")
        search = sources.search()
    asked = {**controls(look), "label": label, "trails": trails, "search": search}
    if asked["place"] is None:
        st.info("Type the word whose vectors are wanted.", icon=":material/edit:")
        return
    sources.warn_of_cls(look, asked["place"])
    looking.what(look.chosen, look.model)
    sides = [(look.chosen, "main")]
    if look.other:
        if asked["along"] == STEPS and look.other.run and look.chosen.run and \
                look.other.run.path == look.chosen.run.path:
            st.caption(":material/compare: The second checkpoint is of the same run: it is a step "
                       "of this path.")
        else:
            sides.append((look.other, "other"))
    laid = [path for choice, meaning in sides
            if (path := obtain(look, choice, meaning, found, asked)) is not None]
    if not laid or laid[0]["meaning"] != "main":
        return
    draw(found, laid, asked)


def controls(look: Look) -> dict:
    """What was asked for, by name."""
    can_step = look.chosen.run is not None and len(look.chosen.run.checkpoints()) > 1
    with sources.row():
        along = st.segmented_control("Movement", [STEPS, LAYERS] if can_step else [LAYERS],
                                     default=STEPS if can_step else LAYERS, key="along",
                                     required=True, bind="query-params") or LAYERS
        layer = sources.layer(look) if along == STEPS else look.model.num_layers
        at = sources.place(look)
    with sources.row():
        method, dimensions = drawing()
        ways = [TURNED, PLANE] if method == "pca" else [TURNED]
        keep = st.segmented_control("Points keep their place by", ways, default=TURNED, key="keep",
                                    required=True, bind="query-params") or TURNED
        equal = st.toggle("Same size at every step", key="equal", bind="query-params",
                          value=False, help="Else a map is as large as the texts differ at its step.")
    return {"along": along, "layer": layer, "place": at, "method": method,
            "dimensions": dimensions, "plane": keep == PLANE, "equal": equal}


def obtain(look: Look, choice, meaning: str, found, asked: dict) -> dict | None:
    """A checkpoint's path; None, with a sentence, where there is none (or while cancelled)."""
    stamps = choice.path, loaders.stamp(choice.path)
    checkpoints = []
    if asked["along"] == STEPS:
        if choice.run is None:
            st.caption(f":material/info: {markdown(choice.label)} is a checkpoint without a run: it "
                       "has no path.")
            return None
        checkpoints = timeline.sample(choice.run.checkpoints(), MOST_CHECKPOINTS,
                                      (choice.checkpoint.step,))
    key = ("path", *stamps, tuple(c.step for c in checkpoints), found.rows,
           *(asked[k] for k in ("along", "layer", "place", "method", "dimensions", "plane", "equal")))
    with compared.aside(choice, meaning):
        return waiting.kept(
            key, lambda progress: compute(choice, checkpoints, found.rows, asked, progress, meaning),
            "Laying the path" + (" of the second checkpoint" if meaning == "other" else ""))


def compute(choice, checkpoints, rows, asked: dict, progress, meaning: str) -> dict:
    """The path with what belongs to it: ``steps`` (names), ``reference``, ``numbers`` of texts."""
    import numpy as np

    from bertscope.analysis.movement import lay
    from bertscope.analysis.vectors import text_vectors

    def reading(message, share):
        progress(message, 0.6 * (share or 0.0))

    if asked["along"] == STEPS:
        found = results.steps_vectors(choice, checkpoints, rows, asked["place"], asked["layer"],
                                      reading)
        if not found:
            raise BertScopeError("None of these checkpoints can be read.")
        names = [step for step, _ in found]
        reference = min(range(len(names)), key=lambda i: abs(names[i] - choice.checkpoint.step))
        steps = [vectors for _, vectors in found]
    else:
        states = text_vectors(choice.path, rows, asked["place"], reading,
                              lambda path: loaders.model(choice))
        names, reference, steps = list(range(len(states))), len(states) - 1, list(states)
    keep = np.isfinite([step[:, 0] for step in steps]).all(axis=0)
    path = lay([step[keep] for step in steps], asked["method"], asked["plane"], reference,
               asked["dimensions"], asked["equal"],
               progress=lambda m, s: progress(m, 0.6 + 0.4 * (s or 0.0)))
    return {"choice": choice, "meaning": meaning, "path": path, "steps": names,
            "reference": reference, "numbers": np.flatnonzero(keep)}


# -- what is drawn ----------------------------------------------------------------------------


def draw(found, laid: list[dict], asked: dict) -> None:
    first, columns = laid[0], [st.container()]
    if len(laid) > 1:
        columns = frame.beside(2, "paths")
    boxes = loaders.keep(("boxes", found.rows), lambda: figures.boxes(found.rows))
    x = "training step" if asked["along"] == STEPS else "layer"
    for side, column in zip(laid, columns):
        own = side["path"].coordinates
        if side is not first:
            own = moving.like(own, side, first)
        with column:
            if len(laid) > 1:
                st.markdown(f"**{markdown(side['choice'].label)}**")
            trails = chosen_trails(found, side, asked)
            figure = moving.animation(own, side, found, asked["label"], boxes, trails, x,
                                      len(laid) > 1)
            stem = f"{side['choice'].stem}-path"
            st.plotly_chart(figure, key=f"path_{side['meaning']}", width="stretch", theme=None,
                            config=figures.config(stem, asked["dimensions"] == 3))
            if trails:
                st.caption("Trails: " + " · ".join(
                    f"**{number}** {markdown(shorten(found.rows[side['numbers'][place]], 70))}"
                    for number, place in enumerate(trails, 1)))
            st.caption(summary(side, asked))
            with st.container(horizontal=True):
                frame.download_figure(figure, f"{stem}-animation", f"path_html_{side['meaning']}")
                frame.download_csv(lambda side=side, own=own: moving.table(own, side, found, x), stem,
                                   key=f"path_csv_{side['meaning']}")
    missing = len(found.rows) - len(first["numbers"])
    if missing:
        st.caption(f":material/info: {missing:,} of {len(found.rows):,} texts have no such place at "
                   "some step, and are left out.")
    frame.figure(moving.losses(laid, x), "what-is-kept", "path_losses")


def chosen_trails(found, side: dict, asked: dict) -> list[int]:
    """Places among the side's texts."""
    from bertscope.analysis.movement import farthest

    if asked["trails"] == FARTHEST:
        return farthest(side["path"].coordinates, 5)
    wanted = asked["search"].casefold()
    if asked["trails"] == NONE or not wanted:
        return []
    return [place for place, number in enumerate(side["numbers"])
            if wanted in found.rows[number].casefold()][:MOST_TRAILS]


def summary(side: dict, asked: dict) -> str:
    """What is aligned, and what is lost."""
    path, steps = side["path"], side["steps"]
    noun = "steps" if asked["along"] == STEPS else "layers"
    said = [f"{len(side['numbers']):,} texts at {len(steps)} {noun}"]
    if asked["plane"]:
        said.append("one plane for all, nothing is turned")
    else:
        before, after = path.jumps
        share = f": points go {after / before:.0%} as far from one to the next as without" \
            if before > 0 else ""
        said.append(f"each map turned onto its neighbour's, outwards from "
                    f"{noun[:-1]} {steps[side['reference']]:,}{share}")
    if path.kept is not None:
        held = [k for k in path.kept if k > 0] or [0.0]
        said.append(f"the maps hold {min(held):.0%} to {max(held):.0%} of the variance")
    if asked["equal"]:
        said.append("all maps drawn in one size")
    if asked["trails"] == FOUND and asked["search"]:
        said.append(f"trails of at most {MOST_TRAILS} texts with "
                    f"“{markdown(shorten(asked['search'], 40))}”")
    return " · ".join(said) + "."
