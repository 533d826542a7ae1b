"""Colours with one meaning on every page, and how every Plotly figure looks.

The palette is Okabe and Ito's (2008), made for colour-blind readers.
Blue is the chosen checkpoint, orange the one it is compared with, grey a baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path

import streamlit as st

#: Streamlit's wide layout leaves a hand's breadth of nothing around the page, and its columns stay
#: side by side until they are too narrow for a figure. Where ours go below one another they keep one width:
#: figures on one scale can be compared.
CSS = """<style>
[data-testid="stMainBlockContainer"] { padding: 3.2rem 3rem 4rem; max-width: 1500px; }
[data-testid="stSidebarUserContent"] { padding-top: .5rem; }
[class*="st-key-beside"] > [data-testid="stLayoutWrapper"] > [data-testid="stHorizontalBlock"] {
  display: grid; --least: 400px;
  grid-template-columns: repeat(auto-fit, minmax(min(var(--least), 100%), 1fr)); }
[class*="st-key-beside_narrow"] > [data-testid="stLayoutWrapper"] > [data-testid="stHorizontalBlock"] {
  --least: 200px; }
[class*="st-key-beside"] > * > * > [data-testid="stColumn"] { width: auto; min-width: 0; }
@media (max-width: 900px) { [data-testid="stMainBlockContainer"] { padding: 3.2rem 1.2rem 3rem; } }
</style>"""

_LIGHT = {"main": "#0072B2", "other": "#D55E00", "baseline": "#6B7280", "good": "#009E73",
          "text": "#1D2733", "grid": "#E3DED2", "background": "#FCFBF8"}
_DARK = {"main": "#56B4E9", "other": "#E69F00", "baseline": "#9AA4B1", "good": "#2FBF94",
         "text": "#E4E8EC", "grid": "#2B3541", "background": "#11161D"}

#: Labels and words beyond the first two, in fixed order.
CATEGORIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C",
              "#B8A800")
_CATEGORIES_DARK = ("#56B4E9", "#E69F00", "#2FBF94", "#D98CB8", "#F0E442", "#3D8FD1", "#A6ADB5",
                    "#FF8A5B")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star", "hexagon")


def picture(name: str) -> str:
    """An SVG of ours: page icons by name would be fetched from another host."""
    return (Path(__file__).parent / f"{name}.svg").read_text("utf-8")


#: The theme in which a file is made that is asked for later; None where the page says it.
_remembered: ContextVar[bool | None] = ContextVar("dark", default=None)


def dark() -> bool:
    remembered = _remembered.get()
    return st.context.theme.type == "dark" if remembered is None else remembered


def remember(make: Callable) -> Callable:
    """``make`` in the theme of now, whenever it is called: Streamlit makes a file that is clicked for in a
    thread of its own, which knows no visitor."""
    now = dark()

    def made():
        before = _remembered.set(now)
        try:
            return make()
        finally:
            _remembered.reset(before)

    return made


def colour(meaning: str) -> str:
    """The colour of ``main``, ``other``, ``baseline``, ``good``, ``text``, ``grid``."""
    return (_DARK if dark() else _LIGHT)[meaning]


def categories(n: int) -> list[str]:
    """``n`` colours in a fixed order; they repeat after eight."""
    colours = _CATEGORIES_DARK if dark() else CATEGORIES
    return [colours[i % len(colours)] for i in range(n)]


def sequential() -> list[list]:
    """A Plotly scale from the page's background to the main colour's far end (0 to much)."""
    if dark():
        return [[0, "#11161D"], [0.25, "#123A57"], [0.6, "#2F86BF"], [1, "#D6EEFF"]]
    return [[0, "#FCFBF8"], [0.25, "#A9D0E8"], [0.6, "#2D86BD"], [1, "#08304F"]]


def diverging() -> list[list]:
    """Orange (more in the other checkpoint) through the background to blue (more in this one)."""
    return [[0, colour("other")], [0.5, colour("background")], [1, colour("main")]]


def signed() -> list[list]:
    """Purple (less than nothing) through the background to green (more): no checkpoint's colours."""
    less, more = ("#D98CB8", "#2FBF94") if dark() else ("#B5468A", "#009E73")
    return [[0, less], [0.5, colour("background")], [1, more]]


def shade(scale: list[list], share: float) -> str:
    """The colour ``#rrggbb`` of a scale at ``share`` (0 ... 1, held within)."""
    share = min(max(share, 0.0), 1.0)
    (low, start), (high, end) = next(pair for pair in zip(scale, scale[1:]) if share <= pair[1][0])
    part = (share - low) / (high - low)
    return "#" + "".join(f"{round(int(a, 16) + part * (int(b, 16) - int(a, 16))):02X}" for a, b in
                         ((start[i:i + 2], end[i:i + 2]) for i in (1, 3, 5)))


def dress(figure, height: int, **layout):
    """Give a Plotly figure the app's fonts, colours and margins; returns it."""
    axes = {"gridcolor": colour("grid"), "zerolinecolor": colour("grid"),
            "linecolor": colour("grid"), "automargin": True}
    figure.update_xaxes(**axes)
    figure.update_yaxes(**axes)
    figure.update_layout(**{
        "height": height, "margin": {"l": 10, "r": 10, "t": 30, "b": 10},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": colour("text"), "size": 13, "family": '"Source Sans", sans-serif'},
        "title_x": 0, "title_font_size": 14,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "title": None},
        "hoverlabel": {"align": "left"}, "dragmode": "pan", **layout})
    return figure


def plotly_config(name: str) -> dict:
    """Plotly's toolbar: the camera saves ``name.svg``."""
    return {"displaylogo": False, "scrollZoom": False,
            "toImageButtonOptions": {"format": "svg", "filename": name, "scale": 1},
            "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}
