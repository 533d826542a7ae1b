"""Every layer: what the model would answer if it stopped there."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import frame, loaders, over_time, waiting
from bertscope.ui.predict import Look, answers, asked, figures
from bertscope.ui.text import markdown

EXPLANATION = r"""
The MLM head is trained to read the last layer. Given the state $h^l_i$ of an earlier layer $l$
instead, it answers all the same:

$$
p^l(w) = \operatorname{softmax}_w\big(E\,\operatorname{LN}(\operatorname{gelu}(W h^l_i + b)) + c
\big)
$$

Layer 0 is the sum of the embeddings: it knows nothing but that there is a `[MASK]` at this place.
After the last layer $L$ it is the model's own answer, exactly. *Distance* is
$\operatorname{KL}(p^L\,\|\,p^l) = \sum_w p^L(w) \log_2 \frac{p^L(w)}{p^l(w)}$ in bits: how
surprised one would be who expects $p^l$ and sees $p^L$.

A layer that answers badly need not know little: its states may hold the answer in a form that this
head, trained on the last layer only, cannot read. *Random weights* is the same architecture before
any training: what it gives is chance.

nostalgebraist 2020, *Interpreting GPT: the logit lens*; its limits, and a lens trained for each
layer: Belrose et al. 2023.
"""

#: What the table shows: its name in the address, and what is written in a cell.
SHOWN = {"answer": "the most probable piece, coloured by its probability",
         "true piece": "the rank of the piece that was there (1 is best), coloured by its "
                       "probability",
         "uncertainty": "the entropy in bits: 0 is certainty",
         "distance": "the distance to the final answer in bits: 0 is the final answer itself"}
#: The table scrolls beyond so many places.
SCROLLS = 16
#: Sentences about single places; more are in the table.
MOST_SENTENCES = 5


def show(look: Look) -> None:
    body(look)
    frame.explain(EXPLANATION)


def body(look: Look) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = st.segmented_control("In the cells", list(SHOWN), default="answer", required=True,
                                     key="lens_show", bind="query-params") or "answer"
        every = st.toggle("All places", key="lens_all", bind="query-params",
                          help="Also the pieces that the model sees: what does it make of them?")
    there = asked.second(look)
    here, theirs = read(look, every), read(there, every) if there else None
    if here is None:
        return
    sentences(look, here)
    tables(look, here, there, theirs, shown)
    frame.download_csv(rows(look, here, there, theirs), f"{look.chosen.stem}-lens")
    st.divider()
    one_word(look, here, there)


def read(look: Look, every: bool):
    """The ``Lens`` of a checkpoint; None while it is cancelled."""
    from bertscope.analysis.lens import lens

    special = look.encoded.special
    places = [i for i in range(len(special)) if not special[i]] if every else list(look.masked)
    return waiting.kept(
        ("lens", *asked.where(look), every),
        lambda progress: lens(look.model, look.encoded, look.masked, places, progress),
        f"every layer of {look.chosen.label}")


def sentences(look: Look, here) -> None:
    """For each masked place, from where on its final answer leads."""
    for at in look.masked[:MOST_SENTENCES]:
        column = here.places.index(at)
        first, stays = int(here.first_leads[column]), int(here.leads_from[column])
        said = f"**Place {at}**: the final answer **{markdown(here.final[column])}** " \
               f"({percent(here.final_probability[-1, column])}) leads "
        last = look.model.num_layers
        said += "from the embeddings on" if stays == 0 else \
            f"only after the last layer, {last}" if stays == last else f"from layer {stays} of {last} on"
        if first < stays:
            said += f" :gray[(it led after {'the embeddings' if first == 0 else f'layer {first}'} " \
                    "too, but lost that lead)]"
        st.markdown(said + ".")
    if len(look.masked) > MOST_SENTENCES:
        st.caption(f"And {len(look.masked) - MOST_SENTENCES:,} more places, in the table.")


def percent(p: float) -> str:
    """Whole percents, and two more digits below one."""
    return f"{p:.0%}" if p >= 0.01 else f"{p:.2%}"


def tables(look: Look, here, there, theirs, shown: str) -> None:
    st.caption(("A column for each place, a row after each layer" if downwards(here) else
                "A row for each place, a column after each layer")
               + f". In a cell: {SHOWN[shown]}."
               + (" ✓ marks the masked places." if len(here.places) > len(look.masked) else ""))
    sides = [(look, here)] + ([(there, theirs)] if theirs else [])
    most = max(top(a, one, shown) for a, one in sides)
    columns = frame.beside(2, "lens") if theirs else [st.container()]
    for column, (a, one), meaning in zip(columns, sides, ("main", "other")):
        with column:
            if theirs:
                st.markdown(f"**{markdown(a.chosen.label)}**")
            tall = len(one.places) > SCROLLS and not downwards(one)
            with st.container(height=60 + figures.CELL * SCROLLS if tall else "content",
                              border=False):
                frame.figure(cells(a, one, shown, most), f"{a.chosen.stem}-lens", f"lens_{meaning}")


def top(look: Look, one, shown: str) -> float:
    """The value that has the strongest colour."""
    if shown == "uncertainty":
        import math

        return math.log2(look.model.model.config.vocab_size)
    return max(float(one.kl_bits.max()), 1.0) if shown == "distance" else 1.0


def cells(look: Look, one, shown: str, most: float):
    """The table as a figure."""
    import numpy as np

    count, width = one.probability.shape
    if shown == "answer":
        values, texts = one.probability, one.tokens
    elif shown == "true piece":
        values = np.nan_to_num(one.true_probability)
        texts = [[f"{rank:,}" if rank else "?" for rank in row] for row in one.true_rank]
    else:
        values = one.entropy_bits if shown == "uncertainty" else one.kl_bits
        texts = [[f"{value:.1f}" for value in row] for row in values]
    hovers = [[hover(one, layer, column) for layer in range(count)] for column in range(width)]
    names = [f"{place}: {piece}" + (" ✓" if place in look.masked and width > len(look.masked)
                                    else "") for place, piece in zip(one.places, one.originals)]
    heads = ["embeddings", *(f"layer {n}" if count <= figures.WIDE or downwards(one) else str(n)
                             for n in range(1, count))]
    if downwards(one):
        return figures.table(values, texts, [list(row) for row in zip(*hovers)], heads, names,
                             most, upwards=True)
    return figures.table(values.T, [list(row) for row in zip(*texts)], hovers, names, heads, most)


def downwards(one) -> bool:
    """Whether the layers stand above each other and the places side by side: many layers, few
    places."""
    layers, places = one.probability.shape
    return layers > figures.WIDE >= places


def hover(one, layer: int, column: int) -> str:
    said = f"after layer {layer}: {one.tokens[layer][column]} " \
           f"{one.probability[layer, column]:.1%}"
    if one.true_rank[layer, column]:
        said += f" · {one.originals[column]}: rank {one.true_rank[layer, column]:,}, " \
                f"{one.true_probability[layer, column]:.1%}"
    return said + f" · entropy {one.entropy_bits[layer, column]:.2f} bits · distance " \
                  f"{one.kl_bits[layer, column]:.2f} bits"


def rows(look: Look, here, there, theirs):
    """Everything, as a table."""
    import pandas as pd

    return pd.DataFrame([
        {"checkpoint": a.chosen.label, "place": place, "piece": one.originals[column],
         "masked": place in a.masked, "layer": layer, "answer": one.tokens[layer][column],
         "probability": one.probability[layer, column],
         "rank_of_true_piece": one.true_rank[layer, column] or None,
         "probability_of_true_piece": one.true_probability[layer, column],
         "probability_of_final_answer": one.final_probability[layer, column],
         "entropy_bits": one.entropy_bits[layer, column],
         "kl_to_final_bits": one.kl_bits[layer, column]}
        for a, one in ((look, here), (there, theirs)) if one is not None
        for column, place in enumerate(one.places) for layer in range(len(one.tokens))])


# -- one word through the layers, and through the training ------------------------------------


def one_word(look: Look, here, there) -> None:
    """P(word) after each layer, beside random weights; then layers and steps."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        at = asked.place(look)
        final = here.final[here.places.index(at)]
        own = through_layers(look, at)
        order = own[-1].argsort()[::-1][:6]
        names = [look.model.tokenizer.convert_ids_to_tokens(int(i)) or f"[{i}]" for i in order]
        true = asked.true_piece(look, at)
        words = list(dict.fromkeys([final, *([true] if true else []), *names]))
        word = asked.pick("Word", words, "lens_word", width=200,
                          help="The final answer, the piece that was there, and the next "
                               "candidates.")
    curves = curve(look, own, word, "main", "solid")
    if there:
        curves += curve(there, through_layers(there, asked.beside(look, there, at)), word, "other",
                        "solid")
    random = waiting.kept(("lens random", *asked.where(look), at), lambda _: untrained(look, at),
                          "random weights")
    if random is not None:
        curves += curve(look, random, word, "baseline", "dot", "random weights")
    title = f"P({word}) at place {at}, layer by layer"
    frame.figure(figures.by_layer(curves, title), f"{look.chosen.stem}-layers", "lens_layers")
    if look.chosen.run:
        learning(look, at, word)


def through_layers(look: Look, at: int):
    path, stamp, text, masked = asked.where(look)
    return loaders.keep(("layers", path, stamp, text, masked, at),
                        lambda: layer_probabilities(look.model, look, at))


def layer_probabilities(model, look: Look, at: int):
    from bertscope.analysis.lens import layer_probabilities as ask

    return ask(model, look.encoded, look.masked, at)


def untrained(look: Look, at: int):
    from bertscope.analysis.probing.untrained import with_random_weights

    return layer_probabilities(with_random_weights(look.model), look, at)


def curve(look: Look, values, word: str, meaning: str, dash: str, name: str = "") -> list:
    from bertscope.analysis.sides import piece_id

    index = piece_id(look.model, word)
    if index is None:
        st.caption(f"{markdown(look.chosen.label)} has no piece {markdown(word)} in its "
                   "vocabulary.")
        return []
    return [(name or look.chosen.label, meaning, dash, values[:, index])]


def learning(look: Look, at: int, word: str) -> None:
    """P(word) after each layer at each of the run's checkpoints."""
    import numpy as np
    import pandas as pd

    from bertscope.analysis.sides import piece_id

    index = piece_id(look.model, word)
    if index is None or not over_time.wanted(look.chosen):
        return
    marks = asked.marks(look)
    found = over_time.ask(look.chosen, lambda path, stamp: answers.layers(
        path, stamp, look.encoded.text, look.masked, at)[:, index], [s for s, _ in marks])
    if not found:
        return
    values = np.stack([v for _, v in found], axis=1)
    names = ["embeddings", *(f"layer {n}" for n in range(1, len(values)))]
    figure = figures.over_steps(values, names, [s for s, _ in found],
                                f"P({word}) at place {at}, layer by layer over the training", marks)
    frame.figure(figure, f"{look.chosen.run.name}-lens-over-steps", "lens_steps")
    table = [{"step": step, "layer": layer, "piece": word, "probability": float(p)}
             for step, row in found for layer, p in enumerate(row)]
    frame.download_csv(pd.DataFrame(table), f"{look.chosen.run.name}-lens-over-steps")
