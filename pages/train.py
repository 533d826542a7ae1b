"""Train: start a run, watch it learn, stop, resume and delete it."""

import streamlit as st

from bertscope.ui import frame, run_form, run_watch, sidebar

with frame.page("Train", "How does this model learn, and how far has it come?"):
    run_watch.confirm_deletion()
    main, other = sidebar.chosen(), sidebar.compared()
    views = ["Watch", "New run"] if main.run else ["New run"]
    view = st.segmented_control("View", views, default=views[0], key="train_view", required=True,
                                label_visibility="collapsed") if main.run else "New run"
    if view == "Watch" and main.run:
        run_watch.watch(main.run, other.run if other else None)
    else:
        if main.name and not main.run:
            st.info("The sidebar points at a checkpoint that no run here has made: there is "
                    "nothing to watch. The other pages work on it.", icon=":material/info:")
        if not main.name:
            frame.demo_card()
        st.markdown("##### A new run")
        run_form.form()
    frame.try_this(*run_form.experiments())
    frame.explain(r"""
**Masked words.** Of each example 15 % of the word pieces are hidden (of these 80 % become `[MASK]`,
10 % a random piece, 10 % stay) and predicted; the loss is the mean of $-\log p(\text{piece})$ over
these places. *Perplexity* is $e^{\text{loss}}$.
**Next sentence.** Half of the pairs are two text spans that follow each other, half have a second
span from another document; the loss is the cross-entropy of that choice. The whole loss is the sum.

Held-out numbers are measured on documents that are never trained on, with masks that stay the same.
*Most frequent piece* always answers with the most frequent word piece; *what the grammar allows* is
the accuracy of an oracle that knows the probabilities with which the text was generated.

Devlin, Chang, Lee, Toutanova 2019, *BERT*, section 3.1 and appendix A. Sizes: Turc et al. 2019.""")
