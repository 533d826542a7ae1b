"""What every page has: a question, a frame for errors, experiments, sources, downloads, states."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable
from contextlib import contextmanager

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from bertscope.errors import BertScopeError, CorpusGone
from bertscope.ui import corpus_again, sidebar
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown
from bertscope.ui.theme import colour, plotly_config, remember

PAGES = "pages"
TRAIN_PAGE = f"{PAGES}/train.py"
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


@contextmanager
def page(title: str, question: str):
    """The title at once, then the body; what the user can mend becomes a sentence."""
    _through_app()
    st.title(title, anchor=False)
    st.markdown(f":gray[{question}]")
    try:
        yield
    except BertScopeError as error:
        show_error(error)
        st.caption("Change what you ask, or choose another run or checkpoint in the sidebar.")


def _through_app() -> None:
    """Run app.py first, if it has not run yet.

    Where a folder *pages* lies beside app.py, Streamlit takes it for an app of its older kind until
    ``st.navigation`` has been called once: the first visit to a new server, if it is a link to
    one of the pages, runs that page without app.py.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()


def show_error(error: BertScopeError) -> None:
    st.error(markdown(error), icon=":material/error:")
    if isinstance(error, CorpusGone):
        corpus_again.offer(error.run)


def checkpoints() -> tuple[Choice, Choice | None]:
    """The chosen checkpoint and the second one; where there is none, the page ends with what to do.
    """
    main = sidebar.chosen()
    if not main.name:
        no_run()
    if main.run is None and not main.is_directory and main.name not in _allowed():
        unknown(main)
    if main.path is None:
        no_checkpoint(main)
    other = sidebar.compared()
    if other and other.run is None and not other.is_directory and other.name not in _allowed():
        st.warning(f"The second checkpoint, {markdown(other.name)}, is neither a run nor a "
                   "directory.", icon=":material/help:")
        other = None
    return main, other


def no_run() -> None:
    """The state of a fresh installation; ends the page."""
    demo_card(link=True)
    st.stop()


def demo_card(link: bool = False) -> None:
    """What to do first: a model in three minutes, by one click."""
    with st.container(border=True):
        st.markdown("##### There is no model yet")
        st.markdown("The demo trains a small BERT on *miniworld*, a made-up language of a few "
                    "hundred words. It takes about three minutes, and every page shows it while "
                    "it learns.")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button("Start the demo", type="primary", icon=":material/play_arrow:",
                      key="start_demo", on_click=_start_demo)
            if link:
                st.page_link(TRAIN_PAGE, label="or choose a corpus and a size on the Train page",
                             icon=":material/tune:")
        if error := st.session_state.pop("_start_error", None):
            st.error(markdown(error))


def _start_demo() -> None:
    from bertscope import launch
    from bertscope.launch import demo_run

    try:
        run = demo_run()
        if not run.alive():
            launch.start(run)
        sidebar.choose(run.name)
    except BertScopeError as error:
        st.session_state["_start_error"] = str(error)


def unknown(choice: Choice) -> None:
    """A name that is no run: deleted, mistyped, or on the hub; ends the page."""
    st.warning(f"There is no run called {markdown(choice.name)}, and no such directory. It may "
               "have been deleted. Choose another in the sidebar, or start one on the Train page.",
               icon=":material/help:")
    with st.container(horizontal=True, vertical_alignment="center"):
        if _HUB_NAME.fullmatch(choice.name):
            st.button("Look for it on the Hugging Face hub", icon=":material/cloud_download:",
                      help="Asks huggingface.co for a model of this name and downloads it.",
                      on_click=lambda: _allowed().add(choice.name))
        st.page_link(TRAIN_PAGE, label="Train", icon=":material/model_training:")
    st.stop()


def _allowed() -> set[str]:
    """Hub names that the user asked for in this session: a link alone never makes a download."""
    return st.session_state.setdefault("_hub_names", set())


def no_checkpoint(choice: Choice) -> None:
    """A run that has saved nothing yet; the sidebar reruns the page when that changes."""
    status = choice.run.status()
    if choice.active:
        st.info(f"Run {markdown(choice.name)} is being prepared "
                f"({markdown(status['message'] or status['state'])}). Its first checkpoint, the "
                "model before any training, will be shown here by itself.",
                icon=":material/hourglass_top:")
    else:
        said = status["message"].rstrip(".")
        st.warning(f"Run {markdown(choice.name)} has no checkpoint ({status['state']}"
                   f"{': ' + markdown(said) if said else ''}).", icon=":material/warning:")
    st.page_link(TRAIN_PAGE, label="See how it stands on the Train page",
                 icon=":material/model_training:")
    st.stop()


# -- experiments, sources, downloads ----------------------------------------------------------


def set_state(**values) -> None:
    """For callbacks: put values into widgets by their keys."""
    st.session_state.update(values)


def try_this(*experiments: tuple[str, Callable[[], None]], note: str = "") -> None:
    """Two or three one-click experiments: a label (plain text) and what it does; nothing if none."""
    if not experiments:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="try_this"):
        st.markdown("**Try this**", width="content")
        for number, (label, act) in enumerate(experiments):
            st.button(markdown(label), key=f"try_{number}", on_click=act, type="secondary",
                      icon=":material/science:")
    if note:
        st.caption(note)


def explain(text: str) -> None:
    """The formula and where it comes from, under an expander."""
    with st.expander("How this is computed, and where it comes from", icon=":material/functions:"):
        st.markdown(text)


def beside(count: int, key: str) -> list:
    """Columns for figures, one below the other where the window is narrow."""
    with st.container(key=f"beside_{key}"):
        return list(st.columns(count))


def download(label: str, make, name: str, key: str, help: str | None = None) -> None:
    """The file that ``make()`` returns, made when it is asked for. (With the bytes themselves the browser
    would fetch them for a button that nobody presses, and complain if the run is deleted meanwhile.)"""
    st.download_button(label, remember(make), file_name=name, mime=mimetypes.guess_type(name)[0],
                       icon=":material/download:", on_click="ignore", key=key, type="tertiary", help=help)


def download_csv(frame, name: str, label: str = "CSV", key: str | None = None) -> None:
    """A table, or a function that makes one that may be large, as CSV."""
    def csv() -> bytes:
        return (frame() if callable(frame) else frame).to_csv(index=False).encode()

    download(label, csv, f"{name}.csv", key or f"csv_{name}")


def figure(fig, name: str, key: str, **more):
    """A Plotly figure: the toolbar's camera saves SVG, the line below a page of its own (HTML)."""
    return st.plotly_chart(fig, key=key, width="stretch", theme=None, config=plotly_config(name),
                           **more)


def download_figure(fig, name: str, key: str) -> None:
    """The figure as one offline HTML page in the theme's colours, made when it is asked for."""
    ground = colour("background")

    def page() -> bytes:
        saved = type(fig)(fig).update_layout(paper_bgcolor=ground)
        return saved.to_html(include_plotlyjs=True).replace(
            "<body>", f'<body style="background:{ground}">', 1).encode()

    download("Figure (HTML)", page, f"{name}.html", key)
