"""All attention heads at a glance: one canvas, a map per head, hover for values, click to choose.

A map's pixel (row, column) is the weight from piece *row* to piece *column*. Weights travel as
bytes of their square root, which spends the 256 levels where most weights are.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

import streamlit as st

_CSS = """
.grid { position: relative; font-family: var(--st-font); color: var(--st-text-color); }
.grid canvas { display: block; cursor: pointer; outline: none; }
.grid canvas:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 3px; }
.grid .tip { position: absolute; pointer-events: none; display: none; z-index: 5; max-width: 22rem;
  padding: .3rem .5rem; font-size: .82rem; white-space: nowrap;
  background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-base-radius);
  box-shadow: 0 2px 8px rgba(0,0,0,.18); }
"""

_JS = """
const css = (element, name) => getComputedStyle(element).getPropertyValue(name).trim();
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

export default function ({ data, parentElement, setTriggerValue }) {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(data);
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  const weights = bytes.subarray(4 + size);
  const { layers: L, heads: A, tokens, scale, signed, chosen } = head;
  const T = tokens.length, root = parentElement.querySelector('.grid');
  const canvas = root.querySelector('canvas'), tip = root.querySelector('.tip');
  const colours = scale.map(([at, hex]) => [at, rgb(hex)]);
  const table = new Uint8ClampedArray(256 * 3);
  for (let v = 0; v < 256; v++) {
    let k = 1; while (k < colours.length - 1 && colours[k][0] < v / 255) k++;
    const [a, from] = colours[k - 1], [b, to] = colours[k], t = (v / 255 - a) / (b - a);
    for (let c = 0; c < 3; c++) table[3 * v + c] = from[c] + t * (to[c] - from[c]);
  }
  const maps = [];
  for (let m = 0; m < L * A; m++) {
    const image = new ImageData(T, T);
    for (let i = 0; i < T * T; i++) {
      const v = weights[m * T * T + i];
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = table[3 * v + c];
      image.data[4 * i + 3] = 255;
    }
    const off = document.createElement('canvas'); off.width = off.height = T;
    off.getContext('2d').putImageData(image, 0, 0); maps.push(off);
  }
  const gutter = 30, top = 20, gap = 6;
  let cell = 0;
  const draw = () => {
    const width = root.clientWidth || 600;
    cell = Math.max(24, Math.min(head.largest, Math.floor((width - gutter) / A) - gap));
    const w = gutter + A * (cell + gap), h = top + L * (cell + gap), ratio = devicePixelRatio || 1;
    canvas.width = w * ratio; canvas.height = h * ratio;
    canvas.style.width = w + 'px'; canvas.style.height = h + 'px';
    const ctx = canvas.getContext('2d');
    ctx.scale(ratio, ratio); ctx.clearRect(0, 0, w, h);
    ctx.imageSmoothingEnabled = cell < T;
    ctx.font = '12px ' + css(root, '--st-font');
    ctx.fillStyle = css(root, '--st-text-color');
    ctx.textAlign = 'center'; ctx.textBaseline = 'middle';
    for (let a = 0; a < A; a++) ctx.fillText(a + 1, gutter + a * (cell + gap) + cell / 2, top / 2);
    for (let l = 0; l < L; l++) {
      ctx.fillText(l + 1, gutter / 2 - 4, top + l * (cell + gap) + cell / 2);
    }
    for (let m = 0; m < L * A; m++) {
      const x = gutter + (m % A) * (cell + gap), y = top + Math.floor(m / A) * (cell + gap);
      ctx.drawImage(maps[m], x, y, cell, cell);
      const here = m === chosen;
      ctx.strokeStyle = css(root, here ? '--st-primary-color' : '--st-border-color');
      ctx.lineWidth = here ? 3 : 1;
      const out = here ? 1 : 0;
      ctx.strokeRect(x - out, y - out, cell + 2 * out, cell + 2 * out);
    }
  };
  const find = (event) => {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left - gutter, y = event.clientY - box.top - top;
    const a = Math.floor(x / (cell + gap)), l = Math.floor(y / (cell + gap));
    const column = Math.floor((x - a * (cell + gap)) / cell * T);
    const row = Math.floor((y - l * (cell + gap)) / cell * T);
    const inside = (i, n) => i >= 0 && i < n;
    if (!inside(a, A) || !inside(l, L) || !inside(row, T) || !inside(column, T)) return null;
    return { l, a, row, column, x: event.clientX - box.left, y: event.clientY - box.top };
  };
  canvas.onmousemove = (event) => {
    const at = find(event);
    tip.style.display = at ? 'block' : 'none';
    if (!at) return;
    const v = weights[((at.l * A + at.a) * T + at.row) * T + at.column] / 255;
    const part = signed ? 2 * v - 1 : v;
    const value = signed ? Math.sign(part) * part * part : v * v;
    tip.textContent = `head ${at.l + 1}-${at.a + 1}: ${tokens[at.row]} → ${tokens[at.column]}  `
      + value.toFixed(2);
    const left = Math.min(at.x + 14, root.clientWidth - tip.offsetWidth - 4);
    tip.style.left = Math.max(0, left) + 'px'; tip.style.top = (at.y + 16) + 'px';
  };
  canvas.onmouseleave = () => { tip.style.display = 'none'; };
  canvas.onclick = (event) => {
    const at = find(event);
    if (at) setTriggerValue('head', at.l * A + at.a);
  };
  canvas.onkeydown = (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: A, ArrowUp: -A }[event.key];
    const next = chosen + move;
    if (!move || next < 0 || next >= L * A) return;
    event.preventDefault();
    setTriggerValue('head', next);
  };
  draw();
  const watcher = new ResizeObserver(draw); watcher.observe(root);
  return () => watcher.disconnect();
}
"""

_grid = st.components.v2.component(
    "bertscope_heads", css=_CSS, js=_JS,
    html='<div class="grid"><canvas tabindex="0" role="img" aria-label="a map per attention head; '
         'arrow keys choose one"></canvas><div class="tip"></div></div>')


def head_grid(weights, tokens: list[str], scale: list[list], chosen: int, key: str,
              on_change: Callable[[], None], signed: bool = False, largest: int = 170) -> None:
    """Draw the maps; after a click ``on_change`` is called, and ``clicked(key)`` gives it the
    head's number, layer · heads + head (both from 0).

    Args:
        weights: float [L, A, T, T] in 0...1, or in -1...1 where ``signed``.
        scale: ``[[position, "#rrggbb"], ...]`` from 0 to 1.
        largest: side of a map in pixels, at most; maps shrink to the width there is.
    """
    import numpy as np

    weights = np.asarray(weights, np.float32)
    root = np.sign(weights) * np.sqrt(np.abs(weights))
    levels = np.clip(np.rint(127.5 * (1 + root) if signed else 255 * root), 0, 255).astype(np.uint8)
    header = json.dumps({"layers": weights.shape[0], "heads": weights.shape[1], "tokens": tokens,
                         "scale": scale, "signed": signed, "chosen": chosen,
                         "largest": largest}).encode()
    _grid(key=key, on_head_change=on_change,
          data=struct.pack("<I", len(header)) + header + levels.tobytes())


def clicked(key: str) -> int | None:
    head = (st.session_state.get(key) or {}).get("head")
    return head if isinstance(head, int) else None
