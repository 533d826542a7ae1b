"""What leaves the page: tables, a record that reproduces them, LaTeX, and what was done in words."""

from __future__ import annotations

import io

import streamlit as st

from bertscope.ui import frame


def parquet(table) -> bytes:
    """A table as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


def tables(table, name: str, key: str) -> None:
    """A table as CSV and as Parquet."""
    frame.download_csv(table, name, key=f"{key}_csv")
    frame.download("Parquet", lambda: parquet(table), f"{name}.parquet", f"{key}_parquet")


def show(look, result, about: str | None = None) -> None:
    """The downloads of a result, and the paragraph on methods.

    Args:
        about: what the files are called after, by default the task.
    """
    from bertscope.analysis.probing import report
    from bertscope.analysis.probing.methods import methods

    stem = f"{look.chosen.stem}-probe-{about or look.asked.task}".replace(":", "-")
    with st.container(horizontal=True):
        tables(result.summary, stem, "probe")
        frame.download("LaTeX table", lambda: report.latex(result, look.chosen.label).encode(),
                       f"{stem}.tex", "probe_tex")
        frame.download("Record (JSON)", lambda: report.to_json(result).encode(), f"{stem}.json", "probe_json")
        frame.download("Each seed (CSV)", lambda: result.scores.to_csv(index=False).encode(),
                       f"{stem}-seeds.csv", "probe_seeds_csv")
    paragraph(methods(result))


def paragraph(text: str) -> None:
    """What was done, in the words of a paper."""
    with st.expander("Methods paragraph, with citations", icon=":material/article:"):
        st.caption("Says exactly what was done here. Copy it with the button at its corner.")
        st.code(text, language=None, wrap_lines=True)
