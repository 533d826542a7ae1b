"""A text as its word pieces, each on a colour of its own with a number below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import streamlit as st

_CSS = """
.shaded { display: flex; flex-wrap: wrap; gap: .3rem .22rem; padding: .2rem 0 .3rem;
          font-family: var(--st-font); color: var(--st-text-color); }
.shaded span { display: inline-flex; flex-direction: column; align-items: center; line-height: 1.2;
  padding: .22rem .42rem; border-radius: var(--st-base-radius); font-size: 1rem;
  border: 1px solid transparent; cursor: default; }
.shaded span.inner { margin-left: -.16rem; border-left: 1px dashed var(--st-border-color); }
.shaded span.faint { opacity: .55; font-size: .85rem; justify-content: center; }
.shaded span.strong { border: 2px solid var(--st-text-color); font-weight: 600; }
.shaded small { font-size: .68rem; font-weight: 400; }
.legend { display: flex; gap: .5rem; align-items: center; font: .8rem var(--st-font);
  color: var(--st-text-color); opacity: .85; }
.legend i { display: inline-block; width: 9rem; height: .7rem; border-radius: .2rem;
  border: 1px solid var(--st-border-color); }
"""

_JS = """
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector('.shaded');
  root.replaceChildren();
  data.pieces.forEach((piece) => {
    const s = document.createElement('span');
    s.textContent = piece.token;
    s.title = piece.title;
    if (piece.colour) { s.style.background = piece.colour; s.style.color = piece.ink; }
    for (const name of ['faint', 'strong']) if (piece[name]) s.classList.add(name);
    if (piece.token.startsWith('##')) s.classList.add('inner');
    if (piece.label) {
      const small = document.createElement('small');
      small.textContent = piece.label;
      s.appendChild(small);
    }
    root.appendChild(s);
  });
  const legend = parentElement.querySelector('.legend');
  legend.replaceChildren();
  if (!data.legend) return;
  const [from, colours, to] = data.legend;
  const text = (words) => { const b = document.createElement('b');
    b.style.fontWeight = 400; b.textContent = words; legend.appendChild(b); };
  text(from);
  const bar = document.createElement('i');
  bar.style.background = `linear-gradient(to right, ${colours.join(', ')})`;
  legend.appendChild(bar);
  text(to);
}
"""

_shaded = st.components.v2.component(
    "bertscope_shaded", css=_CSS, js=_JS,
    html='<div class="shaded" role="group" aria-label="word pieces"></div>'
         '<div class="legend"></div>')


@dataclass(frozen=True)
class Shade:
    """A piece as it is drawn: ``colour`` is ``#rrggbb`` or None, ``label`` a few characters below
    it, ``title`` what the mouse shows. All texts are shown as they are, never interpreted."""

    token: str
    label: str = ""
    title: str = ""
    colour: str | None = None
    faint: bool = False
    strong: bool = False


def shaded(pieces: Sequence[Shade], key: str,
           legend: tuple[str, Sequence[str], str] | None = None) -> None:
    """Draw the pieces; ``legend`` is the words at both ends of the scale and its colours."""
    _shaded(key=key, data={"pieces": [{**asdict(p), "ink": ink(p.colour)} for p in pieces],
                           "legend": legend and [legend[0], list(legend[1]), legend[2]]})


def ink(colour: str | None) -> str | None:
    """Black or white, whichever has the greater contrast on ``#rrggbb`` (WCAG 2, 1.4.3)."""
    if colour is None:
        return None
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#FFFFFF"
