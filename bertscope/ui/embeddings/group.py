"""What is done with points: the chosen one and its neighbours, and a group of them as a list."""

from __future__ import annotations

import streamlit as st

from bertscope.ui.frame import download_csv
from bertscope.ui.text import markdown, shorten

PARAMETER = "point"
#: Rows of a group that are listed; all of them are in the CSV.
MOST_LISTED = 1000
NEAREST = 8


def selected(key: str, count: int) -> list[int] | None:
    """The texts gathered or clicked on the chart ``key``, each once; None where there are none. A
    single one becomes the chosen point, in the address as ``&point=``."""
    points = ((st.session_state.get(key) or {}).get("selection") or {}).get("points", [])
    numbers = []
    for point in points:
        number = point.get("customdata")
        if isinstance(number, (list, tuple)):
            number = number[0] if number else None
        if isinstance(number, (int, float)) and 0 <= number < count:
            numbers.append(int(number))
    numbers = list(dict.fromkeys(numbers))
    if len(numbers) == 1 and st.session_state.get("_point_of", {}).get(key) != numbers[0]:
        st.session_state.setdefault("_point_of", {})[key] = numbers[0]
        _keep(numbers[0])
    return numbers or None


def point(count: int) -> int | None:
    """The chosen text: what was clicked last on one of the maps, else the address's."""
    for key in ("map_main", "map_other"):
        selected(key, count)
    asked = st.query_params.get(PARAMETER, "")
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 9 else count
    return number if number < count else None


def _keep(number: int | None) -> None:
    if number is None:
        st.query_params.pop(PARAMETER, None)
    else:
        st.query_params[PARAMETER] = str(number)


def show(found, gathered: list[int], numbers, side: dict, coordinates, label: str | None,
         noun: str) -> None:
    """A group of texts: its labels beside those of all, a list, a file."""
    where = {int(n): place for place, n in enumerate(numbers)}
    gathered = [n for n in gathered if n in where]
    if not gathered:
        return
    table = found.table.iloc[gathered]
    st.markdown(f"**{len(gathered):,} {noun} gathered** of {len(numbers):,}")
    if label and found.table[label].nunique() <= 50:
        st.caption(composition(found.table.iloc[list(numbers)][label], table[label], label))
    st.session_state["_gathered"] = gathered
    st.dataframe(table.head(MOST_LISTED), hide_index=True, width="stretch", height=260,
                 key="group_rows", on_select=take_row, selection_mode="single-row",
                 column_order=[c for c in ("text", label) if c] + [
                     c for c in table.columns if c not in ("text", label)])
    places = coordinates[[where[n] for n in gathered]]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption((f"The first {MOST_LISTED:,} are listed; the file has all. "
                    if len(gathered) > MOST_LISTED else "")
                   + "Mark a line for its nearest. A double click on the map lets a group go.")
        download_csv(lambda: table.assign(**{f"map {letter}": places[:, i] for i, letter in
                                             enumerate("xyz"[:places.shape[1]])}),
                     f"{side['choice'].stem}-layer-{side['layer']}-group", "This group (CSV)",
                     "group_csv")


def take_row() -> None:
    """The marked line of the list becomes the chosen text."""
    marked = (st.session_state.get("group_rows") or {}).get("selection", {}).get("rows", [])
    gathered = st.session_state.get("_gathered", [])
    if marked and marked[0] < len(gathered):
        _keep(gathered[marked[0]])


def composition(every, own, label: str) -> str:
    """The labels of a group, the most frequent first, each with its share of all texts."""
    shares = every.astype(str).value_counts(normalize=True)
    parts = [f"{markdown(shorten(str(name), 30))} {share:.0%} (of all: {shares[name]:.0%})"
             for name, share in own.astype(str).value_counts(normalize=True).head(6).items()]
    return f"{markdown(shorten(label, 30))}: " + " · ".join(parts)


def show_neighbours(found, side: dict, coordinates, numbers, chosen: int, label: str | None,
                    beside: bool) -> None:
    """The nearest of the chosen text by cosine, and how many of them are near on the map."""
    import pandas as pd

    from bertscope.analysis.embeddings import nearest_on_map, neighbours

    place = int((numbers == chosen).argmax())
    vectors = side["states"][side["layer"]][numbers]
    nearest = neighbours(vectors, place, NEAREST)
    on_map = set(nearest_on_map(coordinates, place, NEAREST))
    title = f"{markdown(side['choice'].label)}: nearest" if beside else "Nearest"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{title} to** “{markdown(shorten(found.rows[chosen], 160))}”")
        if side["meaning"] == "main":
            st.button("Clear", key="clear_point", type="tertiary", icon=":material/close:",
                      on_click=clear)
    texts = [int(numbers[i]) for i, _ in nearest]
    table = {"cosine": [c for _, c in nearest],
             "near on the map": [i in on_map for i, _ in nearest],
             "text": [found.rows[n] for n in texts]}
    if label:
        table["label"] = [str(found.table[label].iloc[n]) for n in texts]
    st.dataframe(pd.DataFrame(table), hide_index=True, width="stretch", column_config={
        "cosine": st.column_config.NumberColumn(format="%.3f", width=70),
        "near on the map": st.column_config.CheckboxColumn(width=110),
        "label": st.column_config.TextColumn(label or "")})
    both = sum(table["near on the map"])
    st.caption(f"By cosine in all {vectors.shape[1]} dimensions. {both} of the {len(nearest)} are "
               f"also among the {len(nearest)} nearest on the map.")


def clear() -> None:
    _keep(None)
