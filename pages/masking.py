"""Masking: how BERT's input is made, and what this run was fed."""

import importlib

import streamlit as st

from bertscope.ui import frame, loaders
from bertscope.ui.masking import Look

EXPLANATION = r"""
**Masked language modelling.** Of an example with $T$ pieces, $\max(1, \operatorname{round}(0.15\,T))$
are chosen at random. Of these 80 % are shown as `[MASK]`, 10 % as a random piece, and 10 % stay as
they are, so that the model cannot tell which of the pieces that it sees are true. The loss is

$$
-\frac{1}{|C|} \sum_{i \in C} \ln p(w_i \mid \text{what is shown})
$$

over the chosen places $C$ alone. *Static* masking makes ten copies of the data with fixed masks, as
the original did; *dynamic* masking draws anew in every epoch. Devlin et al. 2019, section 3.1 and
appendix A.1; Liu et al. 2019 (RoBERTa), section 4.1.

**The unit.** A word piece; a whole word; an n-gram of one to three words, $p(n) \propto 1/n$ (Lan et
al. 2019, section 4.1); a span of words, geometric with $p = 0.2$, at most ten (Joshi et al. 2020,
section 3.1). In Chinese, words are those of a segmenter (Cui et al. 2021).

**The input** of the first layer is $\operatorname{LN}(E_{w_i} + S_{s_i} + P_i)$: token, segment and
position vectors, added (Devlin et al. 2019, section 3.2).

**The interval** of a share $p$ of $n$ draws is Wilson's (1927):
$\frac{p + z^2/2n \pm z\sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}$ with $z = 1.96$. Of twenty such intervals
one misses the truth.

**What was fed** is not stored: pairs and masks are a pure function of (seed, epoch, index), and the
page calls the trainer's own functions. Two departures from the original code: exactly half of the
pairs are random, and a random piece is never a special one.
"""

#: What each view is called, and its module in ``bertscope.ui.masking``.
VIEWS = {"Step by step": "steps", "Tally": "tally", "What the model was fed": "fed",
         "How often it saw a word": "seen"}


def main() -> None:
    chosen, other = frame.checkpoints()
    view = st.segmented_control("View", list(VIEWS), default=list(VIEWS)[0], required=True,
                                key="show", bind="query-params",
                                label_visibility="collapsed") or list(VIEWS)[0]
    look = Look(chosen, other, loaders.model(chosen))
    importlib.import_module(f"bertscope.ui.masking.{VIEWS[view]}").show(look)


with frame.page("Masking", "How is BERT's input made, and what was this model really fed?"):
    main()
frame.explain(EXPLANATION)
