"""Topic or coherence: four kinds of pairs by the checkpoint, and by a bag of words beside it."""

from __future__ import annotations

import streamlit as st

from bertscope.analysis import timeline
from bertscope.errors import BertScopeError
from bertscope.ui import charts, documents, frame, looking, texts, theme
from bertscope.ui.next_sentence import Look, distributions, results
from bertscope.ui.selection import Choice
from bertscope.ui.text import markdown

SIZES = {"100": 100, "400": 400, "1,600": 1600}
MORE_CHECKPOINTS = 9
EXPLANATION = r"""
*Topic* is what two texts are about. *Coherence* is how a text goes on: which sentence comes next,
and in which order. At places drawn at random (the *seed* decides) in documents that the run was not trained on, four
pairs are made: A with the **true** next text, with another text of the **same** document, with a
text of **another** document, and the true pair **swapped**. Only the first is right. B is never a
text that spells like the true one. What is longer than the model reads is cut, for everybody, so
that the end of A and the beginning of B stay.

The *bag of words* knows which words the two texts hold and nothing else. It is trained on the same
task (the true next text or one of another document), on documents that the run was trained on: the
cosine of TF-IDF vectors, or with it the products of their coordinates in a space of 100 topics
(latent semantic analysis), then logistic regression; which one, and how strong the penalty, is
chosen on further documents. It is blind to the order of A and B by construction.

*Right* is the share of pairs on the right side of one half. The lower figure compares every true
pair with every pair of a kind: how often has the true one the higher score? That is the area under
the ROC curve, and 50% is chance.

$$
\mathrm{AUC} = P(s_{\text{true}} > s_{\text{other}}) + \tfrac12 P(s_{\text{true}} = s_{\text{other}})
$$

Intervals are 95 %, from 1,000 bootstrap resamples of whole documents, since pairs of one document
are not independent; *better* and *worse* than the bag of words are said where the interval of the
difference on the same resamples excludes zero.

The task: Devlin et al. 2019, section 3.1. That topic alone can solve it: Lan et al. 2019 (ALBERT),
sections 3.1 and 4.6; Liu et al. 2019 (RoBERTa), section 4.2, leave it out. The topics: Deerwester
et al. 1990. The bootstrap over groups: Efron and Tibshirani 1993.
"""


def show(look: Look) -> None:
    frame.try_this(*experiments(look))
    source, count, seed, sentences = controls(look)
    pairs = results.test(look.chosen, look.model, source, count, seed, sentences)
    if pairs is None:
        return
    looking.what(look.chosen, look.model)
    st.caption(what(look, pairs))
    scored = []
    for choice, model, _, meaning in look.sides:
        easy = model.parameters <= results.EASY and not choice.active
        found = results.scores(choice, model, pairs, easy)
        if found is not None:
            scored.append((choice, meaning, found))
    if not scored or scored[0][1] != "main":
        return
    words, chosen_for_words = None, None
    try:
        words, chosen_for_words = results.baseline(look.chosen, look.model, pairs, True)
    except BertScopeError as error:
        st.warning(f"There is no bag of words to compare with. {markdown(error)}",
                   icon=":material/compare:")
    show_result(look, pairs, scored, words, chosen_for_words)
    if look.chosen.run:
        show_learning(look, pairs, scored[0][2])


def controls(look: Look) -> tuple[str, int, int, int]:
    """(where the documents are from, places, seed, sentences on each side)."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        source = documents.ask(look.chosen)
        sentences = st.segmented_control("Sentences on each side", [1, 2, 3], default=1,
                                         required=True, key="each", bind="query-params")
        size = st.segmented_control("Places", list(SIZES), default="400", required=True,
                                    key="places", bind="query-params",
                                    help="Four pairs are made at each.")
        seed = st.number_input("Seed", 0, 10_000, 0, key="draw", bind="query-params", width=120,
                               help="Another seed draws other places and other sentences.")
    return source, SIZES[size or "400"], int(seed), int(sentences or 1)


def experiments(look: Look) -> list:
    def draw_again() -> None:
        frame.set_state(draw=(st.session_state.get("draw") or 0) % 10_000 + 1)

    acts = [("two sentences on each side", lambda: frame.set_state(each=2)),
            ("other places", draw_again)]
    run = look.chosen.run
    if run and (saved := run.checkpoints()) and look.chosen.checkpoint.step != saved[0].step:
        first = saved[0].step
        acts.append(("beside the untrained model", lambda: frame.set_state(
            vs_on=True, vs_run=run.name, vs_step=first, _touched=True)))
    return acts


def what(look: Look, pairs) -> str:
    """Which documents these are, and what is known of them."""
    said = (f"{len(pairs.anchors):,} places in {len(set(pairs.documents.tolist())):,} "
            f"{markdown(pairs.name)}, four pairs at each.")
    if pairs.longer:
        said += (f" At {pairs.longer:,} places the texts are longer than the "
                 f"{look.model.max_length} pieces that the model reads: they are cut, for "
                 "everybody, to the end of A and the beginning of B.")
    asked = dict.fromkeys(question.yes for _, _, question, _ in look.sides)
    if len(asked) > 1:
        said += (" The two were taught different questions, " + " and ".join(f"“{markdown(a)}”" for a in asked)
                 + ", so compare what they tell apart rather than their scores.")
    unknown = [choice.label for choice, *_ in look.sides
               if not (pairs.parts.run and same_documents(look.chosen, choice))]
    if unknown:
        said += (f" Whether {markdown(' and '.join(unknown))} has read these documents before is "
                 "not known.")
    return said


def same_documents(one: Choice, two: Choice) -> bool:
    """Whether two runs held out the same documents."""
    if one.run is None or two.run is None:
        return False
    try:
        facts = [(c.run.config_record().get("corpus", {}).get("fingerprint"),
                  c.run.config().corpus.held_out) for c in (one, two)]
    except BertScopeError:
        return False
    return facts[0] == facts[1] and facts[0][0] is not None


def show_result(look: Look, pairs, scored, words, chosen_for_words) -> None:
    import pandas as pd

    from bertscope.analysis.coherence_summary import difference, summarise
    from bertscope.analysis.coherence_verdict import conclude

    rows = [(choice.label, meaning, scores) for choice, meaning, scores in scored]
    if words is not None:
        rows.insert(1, ("bag of words", "baseline", words))
    summaries = [summarise(scores, pairs.documents) for *_, scores in rows]
    of_words = summaries[1] if words is not None else None
    ahead = difference(rows[0][2], words, pairs.documents) if words is not None else None
    found = conclude(summaries[0], of_words, ahead)
    st.markdown(f"##### {markdown(found.headline)}")
    st.markdown("\n".join(f"- {markdown(detail)}" for detail in found.details))
    picture = distributions.histograms(
        [(label, meaning, scores, summary)
         for (label, meaning, scores), summary in zip(rows, summaries)], look.question.yes)
    stem = f"{look.chosen.stem}-topic-or-coherence"
    frame.figure(picture, stem, "coherence_histograms")
    intervals = distributions.comparisons(
        [(label, meaning, summary) for (label, meaning, _), summary in zip(rows, summaries)])
    frame.figure(intervals, f"{stem}-auc", "coherence_auc")
    table = pd.concat([summary.frame().assign(reader=label)
                       for (label, *_), summary in zip(rows, summaries)], ignore_index=True)
    with st.expander("The numbers", icon=":material/table:"):
        numbers = [c for c in table if c not in ("kind", "reader", "pairs", "documents")]
        st.dataframe(table[["reader", "kind", *numbers]], hide_index=True, width="stretch",
                     column_config={c: st.column_config.NumberColumn(format="%.3f")
                                    for c in numbers})
        if chosen_for_words is not None:
            st.caption(f"The bag of words took its *{chosen_for_words.features}* features with "
                       f"C = {chosen_for_words.C:g}: {chosen_for_words.valid_accuracy:.1%} right "
                       "on validation documents.")
    every = every_pair(pairs, rows)
    with st.expander("The pairs, the most wrong first", icon=":material/format_list_bulleted:"):
        show_pairs(every, rows[0][0])
    with st.container(horizontal=True):
        frame.download_csv(table, stem, "Numbers (CSV)")
        frame.download_csv(every, f"{stem}-pairs", "Pairs (CSV)")
        frame.download_figure(picture, stem, "coherence_html")


def every_pair(pairs, rows):
    """A row for each pair with its texts and every reader's score."""
    import pandas as pd

    from bertscope.analysis.coherence import KINDS

    return pd.DataFrame([
        {"document": anchor.document, "place": anchor.place, "kind": kind, "a": anchor.pairs[kind][0],
         "b": anchor.pairs[kind][1], **{label: float(scores[n, k]) for label, _, scores in rows}}
        for n, anchor in enumerate(pairs.anchors) for k, kind in enumerate(KINDS)])


def show_pairs(every, label: str) -> None:
    """The pairs of a kind on which the checkpoint is most sure of the wrong answer; one of them can
    be taken over."""
    from bertscope.analysis.coherence import KINDS

    kind = st.segmented_control("Kind", list(KINDS), default="same", required=True, key="kind",
                                format_func=distributions.NAMES.get, bind="query-params") or "same"
    chosen = every[every.kind == kind].sort_values(label, ascending=kind == "next").head(50)
    st.dataframe(chosen[["a", "b", label]], hide_index=True, width="stretch", height=260,
                 column_config={label: st.column_config.NumberColumn("P", format="%.3f")})
    worst = chosen.iloc[0]
    st.button("Look at the first of them as one pair", icon=":material/arrow_forward:",
              key="take_pair", on_click=frame.set_state,
              kwargs={"view": "One pair", "a": worst.a[:texts.MAX_SENTENCE], 
                      "b": worst.b[:texts.MAX_SENTENCE]})


def show_learning(look: Look, pairs, here) -> None:
    """The same pairs at the run's other checkpoints: what is known, and a button for more."""
    import pandas as pd

    from bertscope.analysis.coherence_summary import summarise

    chosen = look.chosen
    st.divider()
    saved = timeline.sample(chosen.run.checkpoints(), MORE_CHECKPOINTS, (chosen.checkpoint.step,))
    known = results.over_checkpoints(chosen, pairs)
    missing = [c for c in saved if c.step not in known]
    place = st.empty()
    if missing and place.button(f"Test {len(missing)} more of its checkpoints",
                                icon=":material/timeline:", key="coherence_more",
                                help="Shows when each was learnt. Click anywhere to cancel; what is "
                                     "done is kept."):
        with place.container(horizontal=True, vertical_alignment="center"):
            bar = st.progress(0.0)
            st.button("Cancel", icon=":material/close:", key="coherence_more_cancel")
        for number, checkpoint in enumerate(missing):
            results.score_checkpoint(
                Choice(chosen.name, chosen.run, checkpoint), pairs,
                lambda text, share: bar.progress(
                    min((number + (share or 0.0)) / len(missing), 1.0),
                    text=f"step {checkpoint.step:,}: {text}"))
        place.empty()
        known = results.over_checkpoints(chosen, pairs)
    known.setdefault(chosen.checkpoint.step, here)
    if len(known) < 2:
        return
    rows = []
    for step, scores in sorted(known.items()):
        for kind, found in summarise(scores, pairs.documents).auc.items():
            rows.append({"step": step, "against": distributions.NAMES[kind], "auc": found.value,
                         "auc_low": found.low, "auc_high": found.high})
    table, order = pd.DataFrame(rows), [distributions.NAMES[k] for k in ("other", "same", "swapped")]
    st.altair_chart(charts.over_steps(
        table, "auc", "against", order, "How often the true pair has the higher score",
        [(chosen.checkpoint.step, "main")], (0.5, "chance"), full=True,
        colours=theme.categories(3)), key="coherence_learning", width="stretch")
    frame.download_csv(table, f"{chosen.run.name}-topic-or-coherence-over-steps")
