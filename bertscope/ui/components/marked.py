"""Sentences in which some words are marked, with a few words beside each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import streamlit as st

_CSS = """
.marked { display: flex; flex-direction: column; font-family: var(--st-font);
  color: var(--st-text-color); }
.marked > div { display: grid; grid-template-columns: minmax(9rem, 15rem) 1fr; gap: .2rem 1rem;
  padding: .45rem .1rem; border-bottom: 1px solid var(--st-border-color); line-height: 1.5; }
.marked b { font-weight: 600; overflow-wrap: anywhere; }
.marked small { display: block; opacity: .75; font-size: .8rem; font-weight: 400; }
.marked p { margin: 0; overflow-wrap: anywhere; }
.marked mark { background: transparent; color: inherit; font-weight: 600; padding: 0 .2rem;
  border: 2px solid var(--st-primary-color); border-radius: .3rem; }
@media (max-width: 640px) { .marked > div { grid-template-columns: 1fr; } }
"""

_JS = """
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector('.marked');
  root.replaceChildren();
  const add = (parent, name, text) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  };
  data.forEach((row) => {
    const line = add(root, 'div');
    const said = add(line, 'b', row.label);
    add(said, 'small', row.note);
    const sentence = add(line, 'p');
    const chosen = new Set(row.places);
    row.words.forEach((word, i) => {
      if (i) sentence.appendChild(document.createTextNode(row.between));
      if (chosen.has(i)) add(sentence, 'mark', word);
      else sentence.appendChild(document.createTextNode(word));
    });
  });
}
"""

_marked = st.components.v2.component("bertscope_marked", css=_CSS, js=_JS,
                                     html='<div class="marked"></div>')


@dataclass(frozen=True)
class Marked:
    """A sentence: its words, the places of those marked, what is said beside it in bold, and below,
    and what stands between two words. All texts are shown as they are, never interpreted."""

    words: Sequence[str]
    places: Sequence[int]
    label: str
    note: str = ""
    between: str = " "


def marked(rows: Sequence[Marked], key: str) -> None:
    """Draw the sentences, one below the other."""
    _marked(key=key, data=[asdict(row) for row in rows])
