"""Predict: which word pieces does the model expect in the places that are masked?"""

import dataclasses
import importlib

import streamlit as st

from bertscope.ui import frame, loaders, looking, masks, texts
from bertscope.ui.components.tokens import token_bar
from bertscope.ui.predict import Look
from bertscope.ui.text import bounded

#: What each view is called, its module in ``bertscope.ui.predict``, and what it needs: masked places,
#: a text, or nothing.
VIEWS = {
    "Fill the mask": ("fill", "masks"),
    "Every layer": ("lens", "masks"),
    "Both sides": ("sides", "masks"),
    "Which words mattered": ("words", "masks"),
    "Fill several": ("several", "masks"),
    "Sentence score": ("score", "text"),
    "Minimal pairs": ("minimal_pairs", "nothing"),
    "Class": ("class_mode", "nothing"),
}

#: ELECTRA's own view, where a discriminator is chosen.
REPLACED = "What was replaced"


def main() -> None:
    chosen, other = frame.checkpoints()
    views = VIEWS
    if loaders.model(chosen).has_rtd_head:
        views = {REPLACED: ("replaced", "masks or none"), **VIEWS}
    view = st.segmented_control("View", list(views), default=list(views)[0], required=True, key="view",
                                bind="query-params", label_visibility="collapsed") or list(views)[0]
    module, needs = views[view]
    if view != REPLACED:  # ELECTRA's masks are filled by its generator
        chosen, other = (choice and choice.with_part("generator") for choice in (chosen, other))
    model = loaders.model(chosen)
    if view != REPLACED:
        from bertscope.analysis.mlm_head import require_mlm_head

        require_mlm_head(model)  # before any text is asked for
    look = Look(chosen, other, model)
    if needs != "nothing":
        look = sentence(look, needs)
    if look:
        importlib.import_module(f"bertscope.ui.predict.{module}").show(look)


def sentence(look: Look, needs: str) -> Look | None:
    """The text and, where a view needs them, its masked places; None where there is nothing yet."""
    from bertscope.analysis.activations import encode

    examples = texts.fills(look.chosen)
    text = texts.area(st, "Text", "text", examples[0].text if examples else "", 72,
                      help="Click pieces below to mask them; you can also write [MASK].")
    frame.try_this(*((f"{e.masked}", lambda e=e: masks.use(e.text, (e.start, e.end)))
                     for e in examples[:3]))
    text = bounded(text, texts.MAX_SENTENCE)
    if not text:
        st.info("Type a sentence above, or take one of the experiments.", icon=":material/edit:")
        return None
    encoded = encode(look.model, text)
    looking.what(look.chosen, look.model, encoded)
    if needs == "text":
        return dataclasses.replace(look, encoded=encoded)
    about = next(((e.start, e.end) for e in examples if e.text == text), None)
    masked = masks.places(encoded, about)
    special = [i for i, s in enumerate(encoded.special) if s]
    whole = several_pieces(encoded) and st.toggle(
        "Mask whole words", key="whole", bind="query-params",
        help="A click takes all pieces of the word along, as in whole-word masking.")
    token_bar(encoded.tokens, masked, special, special + masks.typed(encoded), "pieces",
              on_change=lambda: masks.take_click("pieces", encoded, masked, whole))
    if not masked and needs == "masks":
        st.info("Click a piece to mask it.", icon=":material/touch_app:")
        return None
    return dataclasses.replace(look, encoded=encoded, masked=tuple(masked))


def several_pieces(encoded) -> bool:
    """Whether some word of the text is of more than one piece."""
    words = [word for word in encoded.word_ids if word is not None]
    return len(set(words)) < len(words)


with frame.page("Predict", "Which word does the model expect in a place that it cannot see?"):
    main()
