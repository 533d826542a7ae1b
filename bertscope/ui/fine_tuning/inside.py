"""What fine-tuning changed inside: before against after, layer by layer."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from bertscope import runs
from bertscope.analysis import timeline
from bertscope.errors import BertScopeError
from bertscope.ui import compared, frame, loaders, over_time, waiting
from bertscope.ui.embeddings import figures as heat
from bertscope.ui.embeddings import results
from bertscope.ui.fine_tuning import Look, about, asked, figures, tuned_run
from bertscope.ui.selection import Choice, find_run
from bertscope.ui.text import markdown

EXPLANATION = r"""
*Before* is the checkpoint that the run began with (of random weights, the run's own step 0), *after* the
chosen one. **Alike** is linear CKA of the same texts' vectors in the same layer, unbiased,

$$
\mathrm{CKA} = \frac{\mathrm{HSIC}(XX^\top, YY^\top)}{\sqrt{\mathrm{HSIC}(XX^\top, XX^\top)\,
\mathrm{HSIC}(YY^\top, YY^\top)}},
$$

1 where the layer still sorts the texts as before, up to rotation and scale; near 0 where nothing is left
of it (Kornblith et al. 2019; Nguyen, Raghu and Kornblith 2021). **Moved** is how far the weights went,

$$
\frac{\lVert W_\text{after} - W_\text{before} \rVert_F}{\lVert W_\text{before} \rVert_F}
$$

over all weights of a layer. Fine-tuning mostly changes the upper layers (Merchant et al. 2020, *What happens
to BERT embeddings during fine-tuning?*; Kovaleva et al. 2019); far moved weights need not mean changed
vectors, nor the other way round.
"""

TEXTS, MOST_STEPS = 300, 8
CLS, MEAN = "[CLS]", "mean of pieces"


def show(look: Look) -> None:
    before = began(look)
    after = loaders.model(look.chosen)
    about(look, after)
    if before is None:
        st.info("It is not known which checkpoint this one began with.", icon=":material/help:")
        return
    st.markdown(f"**Before**: {markdown(before.label)} · **after**: {markdown(look.chosen.label)}")
    if before.run is None or before.run.path != look.run.path:
        check_same(look, loaders.model(before))
    open_elsewhere(look, before)
    texts = sample(look)
    vectors = st.segmented_control("Vectors", [CLS, MEAN], default=MEAN, required=True, key="inside_vectors",
                                   bind="query-params") or MEAN
    left, right = frame.beside(2, "inside")
    with left:
        alike(look, before, texts, vectors)
    with right:
        moved(look, before, after)
    over_steps(look, before, texts, vectors)


def began(look: Look) -> Choice | None:
    """The checkpoint that the run began with; its own step 0 where that is gone or was random."""
    from bertscope.finetuning.gathered import begun

    run = tuned_run(look.chosen)
    if run is None:
        return None
    point = begun(run)
    if point.step >= 0:
        # By its name first: the folder of all runs may have been moved, or copied.
        for place in (found_again(point.start), run.config_record().get("start", {}).get("path")):
            if place and (Path(place) / "config.json").is_file():
                return as_choice(Path(place))
    saved = run.checkpoints()
    return Choice(run.name, run, saved[0]) if saved and saved[0].step == 0 else None


def found_again(name: str) -> str | None:
    """Where a starting point is; None where there is no such checkpoint any more."""
    try:
        return str(runs.find_checkpoint(name))
    except BertScopeError:
        return None


def check_same(look: Look, before) -> None:
    """A warning where the checkpoint of that name is another one by now."""
    known = look.run.config_record().get("encoder", {}).get("fingerprint")
    if known is not None and known != before.fingerprint:
        st.warning("The checkpoint of this name is no longer the one that the run began with: other weights "
                   "stand there now.", icon=":material/difference:")


def began_with(choice: Choice, before) -> bool:
    """Whether a fine-tuned checkpoint began with these weights; random ones are nobody else's."""
    record = choice.run.config_record().get("encoder", {}) if choice.run else {}
    return record.get("fingerprint") == before.fingerprint


def as_choice(path: Path) -> Choice:
    """A folder as the sidebar would choose it: by its run and step, if it is one's."""
    step, run = runs.STEP.fullmatch(path.name), find_run(path.parent.parent.name)
    if step and run is not None and run.path == path.absolute().parent.parent:
        return Choice(run.name, run, runs.Checkpoint(int(step[1]), path))
    return Choice(str(path))


def sample(look: Look) -> tuple[str, ...]:
    """Texts of the validation part; of the training part too where they are few.

    Raises:
        BertScopeError: they cannot be read.
    """
    data = asked.data(look.run)
    found: dict[str, None] = {}
    for example in [*data.valid, *data.train]:
        text = " ".join(example.words) if data.task == "tokens" else \
            example.question if data.task == "question" else example.text
        found.setdefault(text[:1000])
        if len(found) >= TEXTS:
            break
    return tuple(found)


# -- the two pictures -----------------------------------------------------------------------------


def place(vectors: str):
    from bertscope.analysis.vectors import Place

    return Place("cls" if vectors == CLS else "mean")


def similarity(mine, theirs) -> list[float]:
    """CKA of each layer with the same layer before, NaN where there is nothing to compare."""
    import numpy as np

    from bertscope.analysis.cka import cka

    keep = np.isfinite(mine[0, :, 0]) & np.isfinite(theirs[0, :, 0])
    return [cka(a[keep], b[keep]) for a, b in zip(theirs, mine)]


def alike(look: Look, before: Choice, texts: tuple[str, ...], vectors: str) -> None:
    import pandas as pd

    at = place(vectors)
    old = results.vectors(before, texts, at, " before")
    if old is None:
        return
    after = compared.each(look.sides, lambda choice, _: results.vectors(choice, texts, at,
                                                                        f" by {choice.label}"))
    curves = [(choice.label, meaning, similarity(new, old)) for choice, meaning, new in after]
    if not curves:
        return
    names = layer_names(len(curves[0][2]))
    frame.figure(figures.layers(curves, names, "How alike are the vectors, before and after? (CKA)", ".2f",
                                1.05), f"{look.chosen.stem}-cka-before-after", "inside_cka")
    st.caption(f"{len(texts):,} texts of the task. In layer 0 nothing but the embeddings can differ"
               + (": of [CLS] that is the same for all texts." if vectors == CLS else "."))
    frame.download_csv(pd.DataFrame([{"checkpoint": name, "layer": layer, "cka": value} for name, _, values in
                                     curves for layer, value in enumerate(values)]),
                       f"{look.chosen.stem}-cka-before-after", key="inside_cka_csv")


def layer_names(count: int, layers: int = 0) -> list[str]:
    """Of ``count`` points along the layers; fewer than there are layers where these share their weights."""
    if count == 2 and layers > 1:
        return ["embeddings", "all layers"]
    return ["embeddings", *(f"layer {n}" if count < 8 else str(n) for n in range(1, count))]


def moved(look: Look, before: Choice, after) -> None:
    import pandas as pd

    from bertscope.finetuning.changes import weight_distance

    old = loaders.model(before)

    def distance(choice: Choice, meaning: str):
        if meaning == "main":
            return weight_distance(old, after)
        if not began_with(choice, old):
            raise BertScopeError("it began with another checkpoint; how far it is from this one says nothing of "
                                 "how far it moved.")
        return weight_distance(old, loaders.model(choice))

    tables = [(choice.label, meaning, table) for choice, meaning, table in compared.each(look.sides, distance)]
    curves = [(name, meaning, table["distance"].tolist()) for name, meaning, table in tables]
    names = layer_names(len(curves[0][2]), after.num_layers)
    frame.figure(figures.layers(curves, names, "How far did the weights move?",
                                ".1%"), f"{look.chosen.stem}-weights-moved", "inside_moved")
    st.caption("The length of the change, as a share of the weights' own length.")
    frame.download_csv(pd.concat([table.assign(checkpoint=name) for name, _, table in tables]),
                       f"{look.chosen.stem}-weights-moved", key="inside_moved_csv")


def over_steps(look: Look, before: Choice, texts: tuple[str, ...], vectors: str) -> None:
    """CKA with the beginning, layers × the fine-tuning's own steps."""
    import numpy as np
    import pandas as pd

    saved = look.run.checkpoints()
    if len(saved) < 3:
        return
    chosen = timeline.sample(saved, MOST_STEPS, (look.chosen.checkpoint.step,))
    key = ("finetuned cka", before.path, loaders.stamp(before.path), str(look.run.path), look.run.created,
           tuple(c.step for c in chosen), texts, vectors)

    def compute(progress):
        from bertscope.analysis.vectors import text_vectors

        old = text_vectors(before.path, texts, place(vectors), None, opened)
        return over_time.each(chosen, lambda checkpoint: similarity(text_vectors(
            str(checkpoint.path), texts, place(vectors), None, opened), old), progress)

    found = waiting.kept(key, compute, "Reading the texts at the run's checkpoints")
    if not found:
        return
    grid = np.array([values for _, values in found]).T
    steps = [f"{step:,}" for step, _ in found]
    frame.figure(heat.heat(grid, steps, [str(n) for n in range(len(grid))],
                           "Alike to the beginning (CKA), over the fine-tuning", "training step", "layer",
                           min(0.0, float(np.nanmin(grid))), 1.0), f"{look.run.name}-cka-over-steps",
                 "inside_steps")
    frame.download_csv(pd.DataFrame(grid, columns=[step for step, _ in found]).rename_axis("layer").reset_index(),
                       f"{look.run.name}-cka-over-steps", key="inside_steps_csv")


def opened(path):
    return loaders.one_of_many(str(path), loaders.stamp(str(path)))


# -- the other pages ------------------------------------------------------------------------------


def open_elsewhere(look: Look, before: Choice) -> None:
    """Links to other pages with both checkpoints side by side."""
    address = {"run": look.chosen.name, "vs": spec(before)}
    if look.chosen.checkpoint is not None:
        address["step"] = str(look.chosen.checkpoint.step)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**Side by side on**", width="content")
        for page, title, icon in (("attention", "Attention", "grid_on"),
                                  ("embeddings", "Embeddings", "scatter_plot"),
                                  ("probing", "Probing", "layers")):
            st.page_link(f"{frame.PAGES}/{page}.py", label=title, icon=f":material/{icon}:",
                         query_params=address)


def spec(choice: Choice) -> str:
    """A second checkpoint as it stands in an address."""
    return choice.name + (f"@{choice.checkpoint.step}" if choice.checkpoint else "")
