"""Next sentence: does the model think that text B follows text A, and since when?"""

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import charts, frame, loaders, over_time, texts
from bertscope.ui.text import bounded, markdown, shorten

EXPLANATION = r"""
The model reads `[CLS] A [SEP] B [SEP]`, the pieces of B marked as segment 1. From the last
layer's `[CLS]` state the pooler and a linear layer make two numbers, for *B follows A* (label 0)
and *B is from elsewhere* (label 1):

$$
P(\text{B follows A}) = \frac{e^{z_0}}{e^{z_0} + e^{z_1}},\qquad
z = W \tanh(W_p h_{[CLS]} + b_p) + b
$$

In training half of the pairs are neighbours, so chance is one half. The head is often sure of
itself where it should not be: it mostly learns whether two texts are about the same thing. Try
two texts on one subject in the wrong order.

Devlin et al. 2019, section 3.1 (task 2); what the task does and does not teach: Liu et al. 2019
(RoBERTa), section 4.2; Lan et al. 2019 (ALBERT), section 4.6.
"""


def main() -> None:
    chosen, other = frame.checkpoints()
    model = loaders.model(chosen)
    from bertscope.analysis.pair_head import require_pair_head

    require_pair_head(model)  # before any text is asked for
    if chosen.run and "sop" in chosen.run.config().objectives:
        st.info("This run's pair head has learnt the order of two neighbouring texts (SOP): what is "
                "shown as *B follows A* means *they are not swapped*.", icon=":material/swap_horiz:")
    examples = texts.pairs(chosen)
    first = examples[0] if examples else None
    left, right = st.columns(2)
    a = left.text_area("A", first.a if first else "", key="a", height=90, bind="query-params",
                       max_chars=texts.MAX_SENTENCE)
    b = right.text_area("B", first.b if first else "", key="b", height=90, bind="query-params",
                        max_chars=texts.MAX_SENTENCE)
    frame.try_this(*experiments(examples), note="")
    a, b = bounded(a, texts.MAX_SENTENCE), bounded(b, texts.MAX_SENTENCE)
    if not a or not b:
        st.info("Both texts need at least one word.", icon=":material/edit:")
        return
    rows, truncated = answers(chosen, other, a, b)
    verdict(rows[0][2])
    frame.figure(charts.next_sentence(rows), "next-sentence", "nsp_now")
    if truncated:
        st.caption(f"Together the texts are longer than the {model.max_length} pieces that this "
                   "model reads; the longer one was cut.")
    known = next((e for e in examples if (e.a, e.b) == (a, b)), None)
    if known:
        st.caption(("In the corpus B does follow A" if known.follows else
                    "In the corpus B does not follow A")
                   + (f" ({markdown(known.note)})." if known.note else "."))
    table = [{"checkpoint": label, "a": a, "b": b, "p_next": p} for label, _, p in rows]
    import pandas as pd

    frame.download_csv(pd.DataFrame(table), f"{chosen.stem}-next-sentence")
    if chosen.run:
        show_learning(chosen, other, a, b)


def experiments(examples) -> list:
    """True and false neighbours from the corpus, and the same two texts the other way round."""
    acts = [(("neighbours: " if e.follows else "not neighbours: ") + shorten(e.b, 42),
             lambda e=e: frame.set_state(a=e.a, b=e.b)) for e in examples[:2]]
    return [*acts, ("exchange A and B", exchange)]


def exchange() -> None:
    a, b = st.session_state.get("a", ""), st.session_state.get("b", "")
    frame.set_state(a=b, b=a)


def answers(chosen, other, a: str, b: str) -> tuple[list[tuple[str, str, float]], bool]:
    """(label, colour's meaning, P) of the checkpoint and of the second one, if it can."""
    from bertscope.analysis.pairs import next_sentence

    found = next_sentence(loaders.model(chosen), a, b)
    rows = [(chosen.label, "main", found.p_next)]
    if other:
        try:
            rows.append((other.label, "other", next_sentence(loaders.model(other), a, b).p_next))
        except BertScopeError as error:
            st.warning(f"{markdown(other.label)}: {markdown(error)}", icon=":material/compare:")
    return rows, found.truncated


def verdict(p: float) -> None:
    """One line that says what the number means."""
    if 0.4 < p < 0.6:
        said = "It cannot tell whether B follows A"
    else:
        sure = "is sure" if abs(p - 0.5) > 0.4 else "thinks"
        said = f"It {sure} that B " + ("follows A" if p > 0.5 else "comes from elsewhere")
    st.markdown(f"##### {said} :gray[(P = {p:.1%})]")


def show_learning(chosen, other, a: str, b: str) -> None:
    import pandas as pd

    st.divider()
    if not over_time.wanted(chosen):
        return
    names = {chosen.run.name: chosen}
    if other and other.run and other.checkpoint:
        names.setdefault(other.run.name, other)
    rows = []
    for name, choice in names.items():
        also = [c.checkpoint.step for c in (chosen, other)
                if c and c.run and c.checkpoint and c.run.name == name]
        rows += [{"step": step, "run": name, "p_next": p} for step, p in
                 over_time.ask(choice, lambda path, stamp: loaders.p_next(path, stamp, a, b), also)]
    if not rows:
        return
    marks = [(c.checkpoint.step, meaning) for c, meaning in ((chosen, "main"), (other, "other"))
             if c and c.run and c.checkpoint]
    from bertscope.ui import theme

    st.altair_chart(
        charts.over_steps(pd.DataFrame(rows), "p_next", "run", list(names),
                          "P(B follows A) over the training", marks, (0.5, "chance"), full=True,
                          colours=[theme.colour("main"), theme.colour("other")][: len(names)]),
        key="nsp_learning", width="stretch")
    frame.download_csv(pd.DataFrame(rows), f"{chosen.run.name}-next-sentence-over-steps")


with frame.page("Next sentence", "Does the model think that the second text follows the first?"):
    main()
frame.explain(EXPLANATION)
