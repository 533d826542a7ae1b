"""Which relation does a head follow? Every head on every dependency relation, against a fixed offset."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import compared, frame, loaders, looking, theme, waiting
from bertscope.ui.attention import Look, gold, values
from bertscope.ui.predict.asked import pick
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown, shorten

EXPLANATION = r"""
In a gold sentence every word (the *dependent*) has a head: of *the dog sleeps*, *dog* is the head of *the*
(relation `det`) and *sleeps* that of *dog* (`nsubj`). Attention between words is the sum over the pieces
looked at and the mean over those that look; `[CLS]`, `[SEP]` and a word's weight on itself are left out. A
head's guess for a dependent is

- *dependent→head*: the word that the dependent looks at most,
- *head→dependent*: the word that looks at the dependent most,

and its accuracy is the share of dependents of that relation for which the guess is right. The *fixed offset* is
the best of “always the word $k$ to the left or right”: what needs no model. Head, direction and offset are
chosen on one part of the sentences and reported on the other, since the best of hundreds on the data it was
chosen by would be flattered. The interval is Wilson's at 95 %; *beats it* says that all of it is above the
offset.

A head that follows a relation well need not be one that the model uses for it: see *Does it matter?* For
comparison, BERT-base on English (Clark et al., Table 1): determiners 94.3 % (head 8-11; offset 51.7), direct
objects 86.8 % (8-10; 40.0), all relations 34.5 % (7-6; 26.3).

Clark et al. 2019, *What does BERT look at?*, section 4.2.
"""


def show(look: Look) -> None:
    found = gold.ask()
    if found is None:
        return
    looking.what(look.chosen, look.model)
    ours = counts(look.chosen, *found)
    if ours is None:
        return
    theirs = second(look, *found)
    best = table(look, ours, theirs)
    if best is not None:
        one_relation(look, ours, theirs, best, found[1])


def counts(choice: Choice, chosen: list, reported: list):
    """``RelationCounts`` of the two parts; None while they are cancelled."""
    from bertscope.analysis.head_relations import relation_counts_cached
    from bertscope.analysis.probing.gold import fingerprint

    both = []
    for part, sentences in (("to choose by", chosen), ("to report on", reported)):
        key = ("head relations", choice.path, loaders.stamp(choice.path), fingerprint(sentences))
        both.append(waiting.kept(
            key, lambda progress, sentences=sentences: relation_counts_cached(
                choice.path, sentences, progress=progress, open_model=lambda _: loaders.model(choice)),
            f"sentences {part}, {choice.label}"))
        if both[-1] is None:
            return None
    return both


def second(look: Look, *parts):
    if look.other is None:
        return None
    with compared.aside(look.other):
        return counts(look.other, *parts)


# -- the best head of each relation ---------------------------------------------------------------------


def table(look: Look, ours, theirs):
    """Draw the table; the best heads of the first checkpoint, None where no relation is frequent enough."""
    from bertscope.analysis.relation_table import best_heads

    st.markdown("##### The best head of each relation")
    best = best_heads(*ours)
    if best.empty:
        st.info("No relation has twenty dependents in both parts: take more sentences.",
                icon=":material/rule:")
        return None
    shown = readable(best)
    if theirs is not None:
        other = readable(best_heads(*theirs)).set_index("relation")[["head", "accuracy"]]
        shown = shown.join(other.add_suffix(f" · {shorten(look.other.label, 24)}"), on="relation")
    picked = st.dataframe(
        shown, hide_index=True, width="stretch", key="relations", on_select="rerun",
        selection_mode="single-row", height=min(36 * (len(shown) + 1) + 3, 480),
        column_config={name: st.column_config.ProgressColumn(
            name, min_value=0, max_value=1, format="percent", width=120,
            color=theme.colour("other" if "·" in name else "baseline" if "offset" in name else "main"))
            for name in shown if name.startswith("accuracy") or name == "offset's accuracy"})
    rows = picked.selection.rows
    if rows and rows[0] < len(best) and rows != st.session_state.get("_relation_row"):
        row = best.iloc[rows[0]]
        frame.set_state(relation=row.relation, head=f"{row.layer}-{row['head']}")
    st.session_state["_relation_row"] = rows
    lost = ours[1].lost
    if lost:
        st.caption(f"{lost:,} dependents could not be read: cut off, or without a piece of their own.")
    frame.download_csv(best, f"{look.chosen.stem}-relations")
    return best


def readable(best):
    """The columns that are shown, in plain words."""
    import pandas as pd

    return pd.DataFrame({
        "relation": best["relation"],
        "head": [f"{l}-{a}" for l, a in zip(best["layer"], best["head"])],
        "accuracy": best["accuracy"],
        "95 % interval": [f"{low:.0%} to {high:.0%}" for low, high in zip(best["low"], best["high"])],
        "direction": best["direction"],
        "dependents": best["arcs"],
        "fixed offset": [f"{k:+d}" for k in best["offset"]],
        "offset's accuracy": best["offset_accuracy"],
        "beats it": ["✓" if b else "" for b in best["beats"]]})


# -- one relation in every head -------------------------------------------------------------------------


def one_relation(look: Look, ours, theirs, best, reported) -> None:
    from bertscope.analysis.head_relations import DIRECTIONS
    from bertscope.analysis.relation_table import accuracies

    st.markdown("##### One relation in every head")
    telling = (best["offset_accuracy"] - best["accuracy"]).argsort(kind="stable")
    names = list(best["relation"].iloc[telling])
    either = "the better one"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        relation = pick("Relation", names, "relation", width=200)
        direction = st.segmented_control("Direction", [either, *DIRECTIONS], default=either, required=True,
                                         key="arc_direction", bind="query-params")
        heads = ours[1].heads
        head = values.which(int(heads["layer"].max()), int(heads["head"].max()))
    wanted = None if direction == either else direction
    row = best[best["relation"] == relation].iloc[0]
    st.caption(f"Share of the {int(row.arcs):,} dependents whose head it finds; the best fixed offset, "
               f"{int(row.offset):+d}, finds {row.offset_accuracy:.1%}. Click a head to open it.")
    sides = [(look.chosen, ours[1], "main")] + ([(look.other, theirs[1], "other")] if theirs else [])
    columns = frame.beside(2, "relation") if theirs else [st.container(width=760)]
    for column, (choice, found, key) in zip(columns, sides):
        with column:
            if theirs:
                st.markdown(f"**{markdown(choice.label)}**")
            if relation not in set(found.heads["relation"]):
                st.caption("It read no such dependent.")
                continue
            values.grid(accuracies(found, relation, wanted), "accuracy", lambda x: f"{x:.0%}", (0.0, 1.0),
                        f"relation_{key}", head, relation)
    example(relation, head, reported)
    values.look_at(head)


def example(relation: str, head: tuple[int, int], sentences) -> None:
    """A sentence with this relation, to be opened in the head's own view."""
    found = next((s for s in sentences if 4 <= len(s.words) <= 20 and any(
        word.deprel.partition(":")[0] == relation for word in s.words)), None)
    if found is None:
        return
    word = next(w for w in found.words if w.deprel.partition(":")[0] == relation)
    governor = found.words[word.head - 1].form if word.head > 0 else "?"

    def go() -> None:
        frame.set_state(view="One head", text=found.text, pair="", by_words=True)

    st.button(f"See head {head[0]}-{head[1]} read: {markdown(shorten(found.text, 80))}", on_click=go,
              icon=":material/science:", key="see_example",
              help=f"There, “{markdown(governor)}” is the head of “{markdown(word.form)}”.")
