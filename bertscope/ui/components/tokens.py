"""A sentence as a row of word pieces; a click masks a piece, another click shows it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

_CSS = """
.pieces { display: flex; flex-wrap: wrap; gap: .28rem .3rem; padding: .2rem 0 .4rem;
          font-family: var(--st-font); }
.pieces button { font: inherit; font-size: 1.02rem; line-height: 1.2; padding: .34rem .55rem;
  color: var(--st-text-color); background: var(--st-secondary-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-base-radius);
  cursor: pointer; display: flex; flex-direction: column; align-items: center;
  justify-content: center; }
.pieces button:hover { border-color: var(--st-primary-color); }
.pieces button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
.pieces button[aria-pressed=true] { background: var(--st-primary-color);
  border-color: var(--st-primary-color); color: var(--st-background-color); font-weight: 600; }
.pieces button.inner { margin-left: -.2rem; border-style: dashed; }
.pieces button.special { cursor: default; opacity: .55; background: none; border-color: transparent;
  font-size: .85rem; justify-content: center; }
.pieces button small { font-size: .68rem; font-weight: 400; opacity: .8; }
"""

_JS = """
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector('.pieces');
  const focused = root.querySelector(':focus');
  const place = focused ? [...root.children].indexOf(focused) : -1;
  root.replaceChildren();
  const now = new Set(data.masked);
  data.tokens.forEach((token, i) => {
    const b = document.createElement('button');
    const masked = data.masked.includes(i);
    b.type = 'button';
    b.textContent = masked ? '[MASK]' : token;
    b.disabled = data.fixed.includes(i);
    if (data.special.includes(i)) b.classList.add('special');
    if (token.startsWith('##')) b.classList.add('inner');
    if (!data.special.includes(i)) {
      b.setAttribute('aria-pressed', masked);
      b.title = masked ? 'show this piece again' : 'mask this piece';
    }
    if (masked) {
      const was = document.createElement('small');
      was.textContent = token === '[MASK]' ? '?' : token;
      b.appendChild(was);
    }
    b.onclick = () => {
      if (!now.delete(i)) now.add(i);
      b.setAttribute('aria-pressed', now.has(i));
      setTriggerValue('masked', [...now].sort((x, y) => x - y));
    };
    root.appendChild(b);
  });
  if (place >= 0 && root.children[place]) root.children[place].focus();
}
"""

_bar = st.components.v2.component(
    "bertscope_tokens", html='<div class="pieces" role="group" aria-label="word pieces"></div>',
    css=_CSS, js=_JS)


def token_bar(tokens: Sequence[str], masked: Sequence[int], special: Sequence[int],
              fixed: Sequence[int], key: str, on_change: Callable[[], None]) -> None:
    """Draw the pieces. After a click ``on_change`` is called, and ``clicked(key)`` gives it the
    new places.

    Args:
        masked: places drawn as [MASK].
        special: places of [CLS], [SEP] ...; drawn faintly.
        fixed: places that a click does not change (the special ones, [MASK] typed in the text).
    """
    _bar(key=key, on_masked_change=on_change,
         data={"tokens": list(tokens), "masked": list(masked), "special": list(special),
               "fixed": list(fixed)})


def clicked(key: str) -> list[int]:
    """The places after the click; for the ``on_change`` callback."""
    places = (st.session_state.get(key) or {}).get("masked") or []
    return [i for i in places if isinstance(i, int)]
