"""One pair: does B follow A, by which route from [CLS], in which layer, and since when?"""

from __future__ import annotations

import streamlit as st

from bertscope.ui import charts, frame, loaders, looking, over_time, texts, theme
from bertscope.ui.next_sentence import Look, figures, verdict
from bertscope.ui.text import bounded, markdown, shorten

EXPLANATION = r"""
The model reads `[CLS] A [SEP] B [SEP]`, the pieces of B marked as segment 1. The state of `[CLS]`
in the last layer, $h$, goes through the *pooler* and a linear layer to two numbers, one for the
pair being as the text has it (label 0), one for it not being so (label 1):

$$
p = \tanh(W_p h + b_p),\qquad z = W p + b,\qquad
P(\text{label 0}) = \frac{e^{z_0}}{e^{z_0} + e^{z_1}}
$$

BERT's question (NSP) is whether B follows A or is *from elsewhere*, ALBERT's (SOP) whether A and B
are in *order* or swapped. In training half of the pairs are of each kind, so chance is one half.
Each number of $p$ votes for or against with $p_i (W_{0i} - W_{1i})$; the votes and $b_0 - b_1$ add
up to $z_0 - z_1$.

Putting an inner layer's `[CLS]` through the same head asks how far the answer is there already. The
head was trained on the last layer only, so an inner layer may know more than it can say this way.
Layer 0 is the embedding of `[CLS]` alone: the same for every pair.

Devlin et al. 2019, section 3.1 (task 2); Lan et al. 2019, section 3.1 (SOP).
"""


def show(look: Look) -> None:
    from bertscope.analysis.activations import encode
    from bertscope.analysis.pair_head import route

    examples = texts.pairs(look.chosen)
    first = examples[0] if examples else None
    left, right = st.columns(2)
    a = texts.area(left, "A", "a", first.a if first else "", 90)
    b = texts.area(right, "B", "b", first.b if first else "", 90)
    frame.try_this(*experiments(examples), note="")
    a, b = (bounded(text, texts.MAX_SENTENCE, f"The text {name}")
            for text, name in ((a, "A"), (b, "B")))
    if not a or not b:
        st.info("Both texts need at least one word.", icon=":material/edit:")
        return
    looking.what(look.chosen, look.model, encode(look.model, a, b))
    routes = [route(model, a, b) for _, model, _, _ in look.sides]
    rows = [(choice.label, meaning, found.p_yes, question.yes, question.no)
            for (choice, _, question, meaning), found in zip(look.sides, routes)]
    st.markdown(verdict(look.question, routes[0].p_yes))
    frame.figure(figures.answers(rows), "next-sentence", "nsp_now")
    known = next((e for e in examples if (e.a, e.b) == (a, b)), None)
    if known:
        st.caption(("In the corpus B does follow A" if known.follows else
                    "In the corpus B does not follow A")
                   + (f" ({markdown(known.note)})." if known.note else "."))
    import pandas as pd

    frame.download_csv(pd.DataFrame(
        [{"checkpoint": choice.label, "question": question.yes, "a": a, "b": b, "layer": layer,
          "probability": float(p)} for (choice, _, question, _), found in zip(look.sides, routes)
         for layer, p in enumerate(found.layers)]), f"{look.chosen.stem}-next-sentence")
    show_route(look, routes)
    show_layers(look, routes)
    if look.chosen.run:
        show_learning(look, a, b)


def experiments(examples) -> list:
    """True and false neighbours from the corpus, and the same two texts the other way round."""
    acts = [(("neighbours: " if e.follows else "not neighbours: ") + shorten(e.b, 42),
             lambda e=e: frame.set_state(a=e.a, b=e.b)) for e in examples[:2]]
    return [*acts, ("exchange A and B", exchange)]


def exchange() -> None:
    a, b = st.session_state.get("a", ""), st.session_state.get("b", "")
    frame.set_state(a=b, b=a)


def show_route(look: Look, routes) -> None:
    """From [CLS] to the number, with the vectors themselves."""
    import numpy as np

    st.markdown("##### How the number comes about")
    st.caption("Each strip is a vector, one cell a number: purple below 0, green above."
               + (" The same colour is the same number on both sides." if len(routes) > 1 else ""))
    steps = (
        ("cls", "1 · the last layer's state of `[CLS]`"),
        ("pooled", "2 · the *pooler*: a linear layer, then tanh, which keeps all between −1 and 1"),
        ("votes", "3 · each of these numbers votes for yes (green) or no (purple)"))
    columns = frame.beside(len(routes), "route") if len(routes) > 1 else [st.container()]
    most = {name: max(float(np.abs(getattr(r, name)).max()) for r in routes) or 1.0
            for name, _ in steps}
    for column, found, (choice, model, question, meaning) in zip(columns, routes, look.sides):
        with column:
            if len(routes) > 1:
                st.markdown(f"**{markdown(choice.label)}**")
            for name, said in steps:
                st.caption(said)
                frame.figure(figures.strip(getattr(found, name), most[name]),
                             f"{choice.stem}-{name}", f"route_{name}_{meaning}")
            yes, no = found.logits
            st.markdown(
                f"4 · all votes {signed(found.votes.sum())} and the bias {signed(found.bias)}: "
                f"together **{signed(yes - no)}** :gray[(the difference of two logits, "
                f"{signed(yes)} for “{question.yes}” and {signed(no)} for “{question.no}”)]\n\n"
                f"5 · softmax of the two: **{found.p_yes:.1%}** “{question.yes}” "
                f":gray[= 1 / (1 + e to the power {signed(no - yes)})]")
            st.caption(f"Checked against transformers' own {type(model.model).__name__}: the logits "
                       + ("are the same (to 0.00001)." if found.error < 1e-5 else
                          f"differ by {found.error:.5f}."))


def signed(number: float) -> str:
    """With its sign, a true minus."""
    return f"{number:+.2f}".replace("-", "−")


def show_layers(look: Look, routes) -> None:
    st.markdown("##### Each layer's [CLS] through the same head")
    curves = [(choice.label, meaning, found.layers)
              for (choice, _, _, meaning), found in zip(look.sides, routes)]
    frame.figure(figures.by_layer(curves), f"{look.chosen.stem}-by-layer", "nsp_layers")


def show_learning(look: Look, a: str, b: str) -> None:
    """The answer, and each layer's, over the checkpoints."""
    import numpy as np
    import pandas as pd

    chosen, other = look.chosen, look.other
    st.divider()
    if not over_time.wanted(chosen):
        return
    names = {chosen.run.name: chosen}
    if other and other.run and other.checkpoint:
        names.setdefault(other.run.name, other)
    found = {}
    for name, choice in names.items():
        also = [c.checkpoint.step for c in (chosen, other)
                if c and c.run and c.checkpoint and c.run.name == name]
        found[name] = over_time.ask(
            choice, lambda path, stamp: loaders.p_by_layer(path, stamp, a, b), also)
    rows = [{"step": step, "run": name, "layer": layer, "probability": float(p)}
            for name, answers in found.items() for step, layers in answers
            for layer, p in enumerate(layers)]
    if not rows:
        return
    table = pd.DataFrame(rows)
    last = table.groupby("run").layer.transform("max") == table.layer
    marks = [(c.checkpoint.step, meaning) for c, meaning in ((chosen, "main"), (other, "other"))
             if c and c.run and c.checkpoint]
    st.altair_chart(
        charts.over_steps(table[last], "probability", "run", list(names),
                          f"“{look.question.yes}” over the training", marks, (0.5, "chance"),
                          full=True,
                          colours=[theme.colour("main"), theme.colour("other")][: len(names)]),
        key="nsp_learning", width="stretch")
    columns = frame.beside(2, "layers_over_steps") if len(found) > 1 else [st.container()]
    for column, (name, answers) in zip(columns, found.items()):
        if not answers:
            continue
        grid = np.stack([layers for _, layers in answers], axis=1)
        with column:
            st.caption(f"{markdown(name)}: every layer's answer (rows) at every step (columns)")
            frame.figure(figures.over_steps(
                grid, [str(layer) for layer in range(len(grid))], [step for step, _ in answers],
                "layer", [f"layer {layer}" for layer in range(len(grid))]),
                f"{name}-layers-over-steps", f"nsp_layer_steps_{name}")
    frame.download_csv(table, f"{chosen.run.name}-next-sentence-over-steps")
