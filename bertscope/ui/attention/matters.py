"""Does it matter? Heads and layers turned off by a click: predictions, pairs and held-out losses change."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import charts, compared, frame, loaders, masks, over_time, theme
from bertscope.ui.attention import Look, cost, switches
from bertscope.ui.attention.boards import IMPORTANCE, PAIR, PREDICTION, board, effects
from bertscope.ui.components.tokens import token_bar
from bertscope.ui.text import markdown

EXPLANATION = r"""
A head that is off gives nothing to its layer: its output $\mathrm{Att}_h$ is multiplied by a gate
$\xi_h = 0$ before the output projection; all the rest of the layer stays. In the table, every head is turned
off alone, in its turn. For *this prediction* the number is how many bits of surprisal
$-\log_2 p(\text{the piece that was there})$ that adds: positive numbers made it worse, negative ones better. (Where
the text itself says `[MASK]`, it is $\operatorname{KL}(\text{as it is}\,\|\,\text{without})$, which has no
sign.) For *this pair* it is the change of the probability that the pair head gives to yes.

*The loss (gradient)* needs one pass forward and back instead of one for each head:

$$
I_h = \mathbb{E}_x \left| \frac{\partial \mathcal{L}(x)}{\partial \xi_h} \right|
    = \mathbb{E}_x \left| \mathrm{Att}_h(x)^\top \frac{\partial \mathcal{L}(x)}{\partial \mathrm{Att}_h(x)}\right|
$$

with the masked-word loss of held-out texts. It is a guess for one head alone, to first order: heads stand in for
each other, so that several together can matter more, or less, than the sum. That is what the curve is for, which
turns the heads off one after the other, the least important first, and measures the loss each time.

Held-out losses are means over 15 % of the pieces, masked (all as `[MASK]`), in nats. Heads can be turned
off without retraining here; what a model would learn that never had them is another question.

Michel et al. 2019, *Are sixteen heads really better than one?*, sections 3 and 4; Voita et al. 2019.
"""


@dataclass(frozen=True)
class Asked:
    """What is asked of the model while heads are off: masked places, a pair, either or none."""

    masked: tuple[int, ...]
    pair: bool


def show(look: Look) -> None:
    from bertscope.analysis.head_gates import require_gates

    require_gates(look.model)
    asked = question(look)
    heads_off = switches.off(look.model.num_layers, look.model.num_heads)
    controls(look, asked, heads_off)
    st.markdown(f"**Off: {switches.in_words(heads_off)}**" if heads_off else
                "Every head is on. Click a head, or *all* of a layer, to turn it off.")
    if asked.masked:
        predictions(look, asked, heads_off)
    if asked.pair:
        pairs(look, heads_off)
    if heads_off and asked.masked and look.chosen.run:
        learning(look, asked, heads_off)
    cost.show(look, heads_off)


def question(look: Look) -> Asked:
    model, encoded = look.model, look.encoded
    pair = bool(look.pair) and (model.has_nsp_head or model.has_sop_head)
    if not model.has_mlm_head:
        if not pair:
            raise BertScopeError("This checkpoint has no MLM head to ask with and without a head, and no "
                                 "pair head with a second text.")
        return Asked((), True)
    masked = masks.places(encoded)
    special = [i for i, s in enumerate(encoded.special) if s]
    token_bar(encoded.tokens, masked, special, special + masks.typed(encoded), "matters_pieces",
              on_change=lambda: masks.take_click("matters_pieces", encoded, masked, False))
    if not masked:
        st.info("Click a piece to mask it: its prediction is what the heads are asked for.",
                icon=":material/touch_app:")
    return Asked(tuple(masked), pair)


# -- the switches ---------------------------------------------------------------------------------------


def controls(look: Look, asked: Asked, heads_off) -> None:
    """A number for each head, turned off alone; a click turns it off in earnest."""
    options = [*([PREDICTION] if asked.masked else []), *([PAIR] if asked.pair else []),
               *([IMPORTANCE] if look.model.has_mlm_head else [])]
    if not options:
        return
    if st.session_state.get("measure") not in (None, *options):
        del st.session_state["measure"]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        measure = st.segmented_control("What each head does for", options, default=options[0],
                                       required=True, key="measure", bind="query-params") or options[0]
        st.button("All on", icon=":material/toggle_on:", on_click=switches.put, args=([],),
                  disabled=not heads_off)
    sides = [(look, "main")]
    if look.other is not None and (there := other_side(look)) is not None:
        sides.append((there, "other"))
    tables = [(one, key, effects(one, asked.masked, measure)) for one, key in sides]
    tables = [(one, key, found) for one, key, found in tables if found is not None]
    if not tables:
        return
    signed = all(found[1] for _, _, found in tables)
    most = max((float(abs(found[0]["value"]).max()) for _, _, found in tables), default=0.0) or 1.0
    columns = frame.beside(2, "switches") if len(tables) > 1 else [st.container(width=760)]
    for column, (one, key, (table, _, say, unit)) in zip(columns, tables):
        with column:
            if len(tables) > 1:
                st.markdown(f"**{markdown(one.chosen.label)}**")
            board(one, table, signed, most, say, unit, heads_off, key)
    table = tables[0][2][0]
    frame.download_csv(table.rename(columns={"value": measure.replace(" ", "_")}),
                       f"{look.chosen.stem}-heads-off", key="csv_switches")


def other_side(look: Look) -> Look | None:
    """The second checkpoint on the same text; None, with a sentence, where it cannot be asked."""
    from bertscope.analysis.activations import encode
    from bertscope.analysis.head_gates import require_gates

    with compared.aside(look.other):
        model = loaders.model(look.other)
        require_gates(model)
        theirs = encode(model, look.text, look.pair)
        if theirs.tokens != look.encoded.tokens:
            raise BertScopeError("it reads other pieces, so the two cannot be put side by side here.")
        return replace(look, chosen=look.other, other=None, model=model, encoded=theirs)


# -- what changes ---------------------------------------------------------------------------------------


def without(look: Look, heads_off):
    """The checkpoint with the heads off that it has."""
    from bertscope.analysis.head_gates import without_heads

    return without_heads(look.model, heads_off)


def predictions(look: Look, asked: Asked, heads_off) -> None:
    from bertscope.analysis.predictions import predict

    before = predict(look.model, look.encoded, asked.masked, 6)
    after = predict(without(look, heads_off), look.encoded, asked.masked, 6) if heads_off else None
    for number, place in enumerate(before[:3]):
        both = [place] + ([after[number]] if after else [])
        most = max(c.probability for p in both for c in p.candidates)
        columns = frame.beside(2, f"matters_{number}") if after else [st.container(width=760)]
        for column, one, label, meaning in zip(columns, both, ("as it is", "without them"),
                                               ("main", "baseline")):
            with column:
                said = f" · P({markdown(one.original)}) = {2 ** -one.surprisal_bits:.2%}" \
                    if one.surprisal_bits is not None else ""
                st.markdown(f"**Place {one.position}, {label}**{said}")
                frame.figure(charts.candidates(one.candidates, meaning, one.original, most),
                             f"{look.chosen.stem}-{label}", f"matters_{number}_{meaning}")
    if len(before) > 3:
        st.caption(f"And {len(before) - 3} more masked places.")


def pairs(look: Look, heads_off) -> None:
    from bertscope.analysis.pair_head import question as asked, route

    name = asked(look.model).yes
    p = route(look.model, look.text, look.pair).p_yes
    said = f"**“{name}”**: {p:.1%} as it is"
    if heads_off:
        said += f", {route(without(look, heads_off), look.text, look.pair).p_yes:.1%} without them"
    st.markdown(said + ".")


# -- over the training ----------------------------------------------------------------------------------


@st.cache_data(max_entries=512, show_spinner=False)
def surprisals(path: str, stamp: float, text: str, pair: str | None, masked: tuple[int, ...],
               heads_off: tuple[tuple[int, int], ...]) -> tuple[float, float]:
    """Mean -log2 P(original) over the masked places, as it is and without heads, by one checkpoint."""
    from bertscope.analysis.activations import encode
    from bertscope.analysis.head_gates import without_heads
    from bertscope.analysis.predictions import predict

    model = loaders.one_of_many(path, stamp)
    encoded = encode(model, text, pair)
    found = []
    for one in (model, without_heads(model, heads_off)):
        bits = [p.surprisal_bits for p in predict(one, encoded, masked, 1) if p.surprisal_bits is not None]
        found.append(sum(bits) / len(bits) if bits else float("nan"))
    return found[0], found[1]


def learning(look: Look, asked: Asked, heads_off) -> None:
    import pandas as pd

    if not over_time.wanted(look.chosen):
        return
    answers = over_time.ask(look.chosen, lambda path, stamp: surprisals(
        path, stamp, look.text, look.pair, asked.masked, tuple(heads_off)))
    rows = [{"step": step, "P": 2.0 ** -bits, "model": label} for step, both in answers
            for bits, label in zip(both, ("as it is", "without them")) if bits == bits]
    if not rows:
        return
    table = pd.DataFrame(rows)
    st.altair_chart(charts.over_steps(
        table, "P", "model", ["as it is", "without them"], "P(the piece that was there) over the training",
        [(look.chosen.checkpoint.step, "main")],
        colours=[theme.colour("main"), theme.colour("baseline")]), key="matters_steps", width="stretch")
    frame.download_csv(table, f"{look.chosen.run.name}-heads-off-over-steps")
