"""What several views ask of a visitor and of the second checkpoint."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import compared, loaders, masks
from bertscope.ui.predict import Look
from bertscope.ui.text import markdown


def pick(label: str, options: Sequence[str], key: str, **more) -> str:
    """A select box in the address, whose options are others for another text. Options are shown as
    they are; the first one is the default."""
    if st.session_state.get(key) not in (None, *options):
        del st.session_state[key]
    return st.selectbox(label, options, key=key, bind="query-params", **more)


def place(look: Look, **more) -> int:
    """The masked place that the view is about; asked for where several are masked."""
    names = {f"{i}: {look.encoded.tokens[i]}": i for i in look.masked}
    if len(names) == 1:
        return look.masked[0]
    return names[pick("Masked place", list(names), "place", width=180, **more)]


def true_piece(look: Look, at: int) -> str | None:
    """The piece that was there, None where the text itself said [MASK]."""
    known = look.encoded.input_ids[at] != look.model.tokenizer.mask_token_id
    return look.encoded.tokens[at] if known else None


def second(look: Look) -> Look | None:
    """The same characters masked for the second checkpoint; None, with a sentence, where it cannot
    be asked."""
    from bertscope.analysis.activations import encode
    from bertscope.analysis.mlm_head import require_mlm_head

    if look.other is None:
        return None
    with compared.aside(look.other):
        model = loaders.model(look.other)
        require_mlm_head(model)
        theirs = encode(model, look.encoded.text)
        return dataclasses.replace(look, chosen=look.other, other=None, model=model, encoded=theirs,
                                   masked=tuple(transferred(look, theirs)))


def transferred(look: Look, theirs) -> list[int]:
    """The masked places in another tokenizer's pieces of the same characters.

    Raises:
        BertScopeError: that tokenizer cuts them otherwise.
    """
    places = masks.transfer(look.encoded, list(look.masked), theirs)
    if len(places) != len(look.masked):
        raise BertScopeError("Its tokenizer cuts the masked words into other pieces, so the two cannot be "
                             "put side by side.")
    return places


def beside(look: Look, there: Look | None, at: int) -> int:
    """The place in ``there`` that is ``at`` here."""
    return there.masked[look.masked.index(at)]


def where(look: Look) -> tuple:
    """What an answer depends on: the checkpoint as it is, the text and its masks."""
    return (look.chosen.path, loaders.stamp(look.chosen.path), look.encoded.text, look.masked)


def marks(look: Look) -> list[tuple[int, str]]:
    """The chosen step, and the second one where it is of the same run: (step, meaning)."""
    found = [(look.chosen.checkpoint.step, "main")]
    other = look.other
    if other and other.run and other.checkpoint and other.run.name == look.chosen.run.name:
        found.append((other.checkpoint.step, "other"))
    return found


def colours_of(look: Look, there: Look | None) -> str:
    """The caption that says which checkpoint has which colour, as Markdown."""
    return "Blue: " + markdown(look.chosen.label) \
        + (f" · orange: {markdown(there.chosen.label)}" if there else "")
