"""Attention: which piece looks at which, in every head, what for, and since when?"""

import importlib

import streamlit as st

from bertscope.ui import frame, loaders, looking, texts
from bertscope.ui.attention import Look, keep_state
from bertscope.ui.text import bounded

#: What each view is called, its module in ``bertscope.ui.attention``, and whether it needs a text.
VIEWS = {
    "All heads": ("all_heads", True),
    "One head": ("one_head", True),
    "What is this head?": ("statistics", False),
    "Which relation?": ("relations", False),
    "Does it matter?": ("matters", True),
    "Flow": ("flow", True),
    "Over training": ("growth", True),
    "bertviz": ("bertviz", True),
}


def main() -> None:
    chosen, other = frame.checkpoints()
    model = loaders.model(chosen)
    keep_state()
    view = st.segmented_control("View", list(VIEWS), default=list(VIEWS)[0], required=True, key="view",
                                bind="query-params", label_visibility="collapsed") or list(VIEWS)[0]
    module, needs_text = VIEWS[view]
    look = Look(chosen, other, model)
    if needs_text:
        look = with_text(look)
    if look:
        view = importlib.import_module(f"bertscope.ui.attention.{module}")
        view.show(look)
        frame.explain(view.EXPLANATION)


def with_text(look: Look) -> Look | None:
    """The text, or the pair, that is asked for; None where there is nothing yet."""
    from bertscope.analysis.activations import encode

    examples = texts.fills(look.chosen)
    left, right = st.columns([3, 2])
    text = texts.area(left, "Text", "text", examples[0].text if examples else "", 72)
    pair = texts.area(right, "Second text (optional)", "pair", "", 72, placeholder="makes it a pair")
    frame.try_this(*experiments(look.chosen, examples))
    text, pair = bounded(text, texts.MAX_SENTENCE), bounded(pair, texts.MAX_SENTENCE) or None
    if not text:
        st.info("Type a sentence above, or take one of the experiments.", icon=":material/edit:")
        return None
    encoded = encode(look.model, text, pair)
    looking.what(look.chosen, look.model, encoded)
    return Look(look.chosen, look.other, look.model, text, pair, encoded)


def experiments(chosen, examples) -> list:
    pairs = texts.pairs(chosen)
    acts = [(e.text, lambda e=e: frame.set_state(text=e.text, pair="")) for e in examples[1:3]]
    if pairs:
        acts.append(("a pair of sentences",
                     lambda: frame.set_state(text=pairs[0].a, pair=pairs[0].b)))
    return acts


with frame.page("Attention", "Which piece looks at which, in every head?"):
    main()
