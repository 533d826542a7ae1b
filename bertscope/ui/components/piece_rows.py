"""Rows of word pieces with lines below each piece, and a mark for what was done with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import streamlit as st

_CSS = """
.piece-rows { font-family: var(--st-font); color: var(--st-text-color); }
.piece-rows .row { display: flex; flex-wrap: wrap; gap: .3rem .2rem; padding: .15rem 0 .45rem;
  align-items: flex-start; }
.piece-rows .head { flex: 0 0 100%; font-size: .8rem; opacity: .75; }
.piece-rows .cell { display: inline-flex; flex-direction: column; align-items: center;
  line-height: 1.2; padding: .2rem .36rem; font-size: .98rem; cursor: default; --c: transparent;
  border: 1px solid var(--st-border-color); border-radius: var(--st-base-radius); }
.piece-rows .cell.inner { margin-left: -.14rem; border-left-style: dashed; }
.piece-rows .cell.faint { opacity: .5; border-color: transparent; }
.piece-rows .cell.marked { border: 2px solid var(--c); font-weight: 600;
  background: color-mix(in srgb, var(--c) var(--depth, 14%), transparent); }
.piece-rows .cell.joined { margin-left: -.2rem; }
.piece-rows .cell.under { border-bottom: 3px solid var(--c); }
.piece-rows small { font-size: .68rem; font-weight: 400; opacity: .85; white-space: nowrap; }
.piece-rows .legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .8rem;
  padding-bottom: .2rem; }
.piece-rows .legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .35rem;
  vertical-align: -.1rem; border-radius: .2rem; border: 2px solid var(--c);
  background: color-mix(in srgb, var(--c) 14%, transparent); }
"""

_JS = """
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector('.piece-rows');
  root.replaceChildren();
  const make = (kind, parent, text, name) => {
    const e = document.createElement(kind);
    if (text !== undefined) e.textContent = text;
    if (name) e.className = name;
    parent.appendChild(e);
    return e;
  };
  if (data.legend.length) {
    const legend = make('div', root, undefined, 'legend');
    for (const [colour, text] of data.legend) {
      const entry = make('span', legend);
      make('i', entry).style.setProperty('--c', colour);
      make('span', entry, text);
    }
  }
  for (const row of data.rows) {
    const line = make('div', root, undefined, 'row');
    line.setAttribute('role', 'group');
    if (row.head) { make('div', line, row.head, 'head'); line.setAttribute('aria-label', row.head); }
    for (const cell of row.cells) {
      const names = ['cell', ...['faint', 'marked', 'joined', 'under'].filter((n) => cell[n])];
      if (cell.piece.startsWith('##')) names.push('inner');
      const c = make('span', line, undefined, names.join(' '));
      if (cell.colour) c.style.setProperty('--c', cell.colour);
      if (cell.depth !== null) c.style.setProperty('--depth', cell.depth + '%');
      if (cell.title) c.title = cell.title;
      make('span', c, cell.piece);
      for (const below of cell.lines) make('small', c, below);
    }
  }
}
"""

_rows = st.components.v2.component("bertscope_piece_rows", css=_CSS, js=_JS,
                                   html='<div class="piece-rows"></div>')


@dataclass(frozen=True)
class Cell:
    """A piece as it is drawn. All texts are shown as they are, never interpreted.

    ``lines`` stand below it. ``colour`` (``#rrggbb``) is that of its frame where ``marked``, of the
    line below it where ``under``; ``depth`` (0 to 100) is how much of it fills a marked piece;
    ``joined`` moves a piece to the one before; ``title`` is what the mouse shows.
    """

    piece: str
    lines: tuple[str, ...] = ()
    title: str = ""
    colour: str | None = None
    marked: bool = False
    under: bool = False
    faint: bool = False
    joined: bool = False
    depth: int | None = None


def piece_rows(rows: Sequence[tuple[str, Sequence[Cell]]], key: str,
               legend: Sequence[tuple[str, str]] = ()) -> None:
    """Draw rows, each with a heading (or ``""``); ``legend`` is colours and what they mean."""
    _rows(key=key, data={
        "legend": [list(entry) for entry in legend],
        "rows": [{"head": head, "cells": [asdict(cell) for cell in cells]} for head, cells in rows]})
