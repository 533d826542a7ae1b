"""What is this head? Numbers of every head over many texts, its class, and how alike heads are."""

from __future__ import annotations

import streamlit as st

from bertscope.ui import compared, frame, loaders, looking, theme, waiting
from bertscope.ui.attention import Look, head_figures, sample, values
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown

EXPLANATION = r"""
Each number is a mean over all pieces of all texts of the sample: how much weight a piece gives to `[CLS]`,
to the `[SEP]`s, to punctuation, to the piece before it, to itself, to the piece after it. *Entropy*
is $-\sum_j \alpha_{ij}\log_2\alpha_{ij}$ in bits: 0 looks at one piece only. *Distance* is
$\sum_j \alpha_{ij}|i-j|$ in pieces. Same and other segment are of pairs: the weight of word pieces on those
of their own and of the other text.

*Pattern*: vertical (special pieces and punctuation), diagonal (the piece itself and its neighbours), both,
block (one's own text), else heterogeneous. Kovaleva et al. classed maps with a network trained by hand;
here a region counts when at least half of what is beyond an even spread of attention lies in it.

*The map*: two heads are near if they look at the same pieces. Their distance is the square root of the mean
Jensen–Shannon divergence of their rows, which is a metric, and multidimensional scaling puts them on
a plane; the share of the squared distances that it keeps is said.

Clark et al. 2019, *What does BERT look at?*, sections 3 and 6 (Figure 6); Kovaleva et al. 2019, section 4.2;
Endres and Schindelin 2003; Torgerson 1952.
"""


def show(look: Look) -> None:
    found = sample.ask(look)
    if found is None:
        return
    looking.what(look.chosen, look.model)
    texts, _ = found
    table = read(look.chosen, texts)
    if table is None:
        return
    theirs = second(look, texts, read)
    head = overview(look, table, theirs)
    map_of_heads(look, texts, table, head)
    whole_table(look, table, theirs)


def read(choice: Choice, texts: list):
    """The statistics of a checkpoint; None while it is cancelled."""
    from bertscope.analysis.attention_sample import texts_digest
    from bertscope.analysis.head_statistics import head_statistics_cached

    return waiting.kept(
        ("head statistics", choice.path, loaders.stamp(choice.path), texts_digest(texts)),
        lambda progress: head_statistics_cached(choice.path, texts, progress,
                                                lambda _: loaders.model(choice)),
        f"the heads of {choice.label}")


def second(look: Look, texts: list, question):
    """The same of the second checkpoint; None, with a sentence, where there is nothing to read."""
    if look.other is None:
        return None
    with compared.aside(look.other):
        return question(look.other, texts)


# -- one number in every head ---------------------------------------------------------------------------


def overview(look: Look, table, theirs) -> tuple[int, int]:
    """One number in every head of both checkpoints, and the open head in words; which that is."""
    from bertscope.analysis.head_statistics import STATISTICS

    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = [name for name in STATISTICS if table[name].notna().any()]
        if st.session_state.get("statistic") not in (None, *names):
            del st.session_state["statistic"]
        name = st.selectbox("In every head", names, names.index("previous"), key="statistic",
                            bind="query-params", width=220, format_func=in_plain)
        head = values.which(int(table["layer"].max()), int(table["head"].max()))
    said = STATISTICS[name]
    st.caption(f"{said[0].upper()}{markdown(said[1:])}. Click a head to open it.")
    both = [table] if theirs is None else [table, theirs]
    bounds = (0.0, 1.0) if is_share(name) else values.bounds(*(t[name] for t in both))
    columns = frame.beside(2, "statistics") if theirs is not None else [st.container(width=760)]
    for column, one, choice, key in zip(columns, both, (look.chosen, look.other), ("main", "other")):
        with column:
            if theirs is not None:
                st.markdown(f"**{markdown(choice.label)}**")
            values.grid(one, name, form(name), bounds, f"stat_{key}", head, in_plain(name))
    row = table[(table["layer"] == head[0]) & (table["head"] == head[1])].iloc[0]
    st.markdown(in_words(row))
    values.look_at(head)
    return head


def in_plain(name: str) -> str:
    return name.replace("_", " ")


def is_share(name: str) -> bool:
    return name not in ("entropy", "distance")


def form(name: str):
    return (lambda x: f"{x:.0%}") if is_share(name) else (lambda x: f"{x:.1f}")


def in_words(row) -> str:
    """What a head does, as Markdown: its class and where most of its attention goes."""
    names = {"cls": "to [CLS]", "sep": "to [SEP]", "punctuation": "to punctuation",
             "previous": "to the piece before", "self": "to the piece itself",
             "next": "to the piece after"}
    shares = sorted(((float(row[n]), said) for n, said in names.items()), reverse=True)[:3]
    return (f"**Head {int(row.layer)}-{int(row['head'])}** is *{row.pattern}*: "
            + ", ".join(f"{share:.0%} {markdown(said)}" for share, said in shares)
            + f" :gray[· entropy {row.entropy:.1f} bits · distance {row.distance:.1f} pieces]")


# -- how alike heads are --------------------------------------------------------------------------------


def map_of_heads(look: Look, texts: list, table, head: tuple[int, int]) -> None:
    from bertscope.analysis.head_distances import head_map

    divergence = distances(look.chosen, texts)
    if divergence is None:
        return
    ours = head_map(divergence)
    other = second(look, texts, distances)
    theirs = None
    if other is not None:
        theirs = head_map(other, ours.points if other.shape == divergence.shape else None)
    st.markdown("##### Which heads are alike?")
    columns = frame.beside(2, "head_maps") if theirs is not None else [st.container(width=760)]
    shown = [(look.chosen, ours, table, "main")]
    if theirs is not None:
        shown.append((look.other, theirs, read(look.other, texts), "other"))
    spans = [values.bounds(*(m.points[:, axis] for _, m, _, _ in shown)) for axis in (0, 1)]
    for column, (choice, found, classes, key) in zip(columns, shown):
        with column:
            if theirs is not None:
                st.markdown(f"**{markdown(choice.label)}**")
            frame.figure(head_figures.map_of_heads(found.points, classes, spans, head),
                         f"{choice.stem}-heads", f"heads_{key}")
            st.caption(f"The plane keeps {found.shown:.0%} of the squared distances.")


def distances(choice: Choice, texts: list):
    from bertscope.analysis.attention_sample import texts_digest
    from bertscope.analysis.head_distances import head_distances_cached

    return waiting.kept(
        ("head distances", choice.path, loaders.stamp(choice.path), texts_digest(texts)),
        lambda progress: head_distances_cached(choice.path, texts, progress=progress,
                                               open_model=lambda _: loaders.model(choice)),
        f"how alike the heads of {choice.label} are")


# -- all numbers ----------------------------------------------------------------------------------------


def whole_table(look: Look, table, theirs) -> None:
    import pandas as pd

    from bertscope.analysis.head_statistics import STATISTICS

    st.markdown("##### All numbers")
    both = {look.chosen.label: table}
    if theirs is not None:
        both[look.other.label] = theirs
    if len(both) > 1:
        for tab, one in zip(st.tabs([markdown(label) for label in both]), both.values()):
            with tab:
                draw_table(one, STATISTICS)
    else:
        draw_table(table, STATISTICS)
    everything = pd.concat([one.assign(checkpoint=label) for label, one in both.items()])
    frame.download_csv(everything, f"{look.chosen.stem}-head-statistics")


def draw_table(table, meanings: dict[str, str]) -> None:
    shown = table.dropna(axis=1, how="all")
    columns = {}
    for name in shown:
        if name in meanings and is_share(name):
            columns[name] = st.column_config.ProgressColumn(
                in_plain(name), min_value=0, max_value=1, format="%.2f",
                help=markdown(meanings[name]), color=theme.colour("main"))
        elif name in meanings:
            unit = "bits" if name == "entropy" else "pieces"
            columns[name] = st.column_config.NumberColumn(f"{name} ({unit})", format="%.2f",
                                                          help=markdown(meanings[name]))
    regions = [n for n in ("vertical", "diagonal", "either", "block", "rows") if n in shown]
    first = ["layer", "head", "pattern"]
    rest = [n for n in shown if n not in (*first, *regions)]
    st.dataframe(shown[first + rest], hide_index=True, width="stretch", column_config=columns,
                 height=min(36 * (len(shown) + 1) + 3, 520))
