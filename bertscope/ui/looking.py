"""The line on every view that says what is being looked at, and the warnings that belong to it."""

from __future__ import annotations

import streamlit as st

from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown

_FAMILIES = {"bert": "BERT", "roberta": "RoBERTa", "albert": "ALBERT", "electra": "ELECTRA",
             "deberta-v2": "DeBERTa", "distilbert": "DistilBERT"}


def what(choice: Choice, model, *inputs) -> None:
    """Run, step, family, shape, parameters; what was cut off ``inputs`` and what they hold that the
    vocabulary does not; a warning where weights are missing, left over, or look untrained.

    Args:
        inputs: ``Encoded`` texts that the view is about.
    """
    st.caption(summary(choice, model) + "".join(map(_cut, inputs)))
    unknown(model, *inputs)
    warnings(model)


def summary(choice: Choice, model) -> str:
    """Run, step, family, shape, parameters, as Markdown."""
    family = _FAMILIES.get(model.family, model.family)
    causal = " read from left to right" if getattr(model.model.config, "is_decoder", False) else ""
    return (f":material/visibility: {markdown(choice.label)} · {markdown(family)}{causal}, "
            f"{model.num_layers} layers × {model.hidden_size} · {model.parameters:,} parameters")


def unknown(model, *inputs) -> None:
    """What ``Encoded`` texts hold that the vocabulary does not."""
    for encoded in inputs:
        lost = unknown_words(encoded, model.tokenizer.unk_token)
        if lost:
            words = ", ".join(f"“{markdown(w)}”" for w in lost[:8])
            st.caption(f":material/help: Not in this model's vocabulary, and read as "
                       f"{markdown(model.tokenizer.unk_token)}: {words}"
                       + (f" and {len(lost) - 8:,} more." if len(lost) > 8 else "."))


def warnings(model) -> None:
    """What should be known of the weights before anything is concluded from them."""
    if model.untrained:
        st.caption(":material/warning: These weights look untrained: no normalisation has moved "
                   "from where it is initialised. What they answer is chance.")
    if model.missing:
        st.caption(f":material/warning: {len(model.missing):,} tensors are missing from the file "
                   f"({markdown(model.missing[0])} …); the heads they belong to are left out.")
    if model.unexpected:
        st.caption(f":material/info: {len(model.unexpected):,} tensors of the file are not used "
                   f"({markdown(model.unexpected[0])} …).")


def unknown_words(encoded, unk: str | None) -> list[str]:
    """The texts behind the pieces that are [UNK], each once, in order."""
    texts = (encoded.text, encoded.pair or "")
    found = (texts[encoded.segments[i]][slice(*encoded.offsets[i])]
             for i, token in enumerate(encoded.tokens)
             if token == unk and not encoded.special[i])
    return list(dict.fromkeys(found))


def _cut(encoded) -> str:
    if not encoded.truncated:
        return ""
    read = sum(end - start for start, end in encoded.offsets)
    whole = len(encoded.text) + len(encoded.pair or "")
    return (f" · **cut** to the {len(encoded):,} pieces that it reads at once "
            f"(about {read:,} of {whole:,} characters)")
