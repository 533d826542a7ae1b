"""How good a fine-tuned checkpoint is: metrics beside baselines, confusions, calibration, errors."""

from __future__ import annotations

import streamlit as st

from bertscope.errors import BertScopeError
from bertscope.runs import ACTIVE
from bertscope.ui import charts, compared, curves, frame, loaders, theme
from bertscope.ui.fine_tuning import Look, about, asked, figures, tuned_run
from bertscope.ui.probing.figures import confusion as confusion_figure
from bertscope.ui.text import markdown, shorten

EXPLANATION = r"""
**Accuracy** is the share of right answers; **macro-F1** the mean over the labels of
$F_1 = 2PR/(P+R)$, so that rare labels count as much as common ones. Tags in BIO form are judged by whole
**entities**: a mention is right if both its ends and its type are (seqeval; Tjong Kim Sang and De Meulder
2003). Answers in paragraphs by **exact match** and by the **F1** of shared words, both after
lower-casing and without articles and punctuation (Rajpurkar et al. 2016).

Beside them: the *commonest answer* of the training part, and a *linear model* without any pretraining
(words and pairs of words by TF-IDF, or a word with its neighbours, and logistic regression; of
questions the sentence most like the question).

**Calibration.** Answers are sorted by the probability $p$ that the model gives them into 15 bins of equal
width. In a calibrated model, of the answers with $p = 0.8$ four in five are right. The *expected
calibration error* is the mean distance, weighed by how many answers a bin has (Guo et al. 2017,
equation 3):

$$
\mathrm{ECE} = \sum_{b} \frac{n_b}{N} \left| \mathrm{acc}(b) - \mathrm{conf}(b) \right|
$$

The step is chosen on this same validation part, so its numbers flatter a little: that is what the
test part is for. It is looked at once.
"""

#: Labels in the matrix, the most often mistaken; rows of the table of errors.
MOST_LABELS, MOST_SHOWN = 24, 500


def show(look: Look) -> None:
    about(look, asked.opened(look.chosen).loaded)
    if look.run is None:
        st.info("This checkpoint is no run's of ours, so it is not known which examples it is to be measured "
                "on. *Try it* works.", icon=":material/help:")
        return
    try:
        data = asked.data(look.run)
    except BertScopeError as error:
        st.warning(f"{markdown(error)} What was measured while it was trained is below.",
                   icon=":material/folder_off:")
        learning(look)
        return
    found = outcomes(look, data)
    if not found:
        return
    beside_baselines(look, data, found)
    test_part(look, data)
    learning(look)
    if look.spec.numbers:
        frame.figure(figures.numbers([(choice.label, meaning, own.table) for choice, meaning, own in found]),
                     f"{look.chosen.stem}-numbers", "numbers")
    else:
        for column, draw in zip(frame.beside(2 if look.spec.labels else 1, "quality"),
                                (calibration, matrices)):
            with column:
                draw(look, found)
    errors(look, found)


def outcomes(look: Look, data) -> list:
    """[(choice, meaning, Outcome)] of one or two checkpoints on the same examples."""
    return compared.each(look.sides, lambda choice, _: asked.outcome(choice, data))


# -- metrics ------------------------------------------------------------------------------------


def metric_title(name: str) -> str:
    return curves.TASK_METRICS.get(name, name.replace("_", " ").capitalize())


def value_of(name: str, value: float) -> str:
    """A share as per cent; a correlation, or an error, as a number."""
    return f"{value:.3f}" if name in ("pearson", "spearman", "mse") else f"{value:.1%}"


def beside_baselines(look: Look, data, found: list) -> None:
    record = look.run.config_record()
    own, watched = found[0][2].metrics, record.get("metric", "accuracy")
    prefix = f"{look.spec.task}_majority_"
    commonest = {name.removeprefix(prefix): value for name, value in record.get("baselines", {}).items()
                 if name.startswith(prefix)}
    best = asked.linear(look.run, data)
    said = f"{metric_title(watched)} {value_of(watched, own[watched])} on {len(data.valid):,} validation " \
           "examples"
    always = "never answering" if look.spec.task == "question" else "commonest answer"
    grey = [f"{name} {value_of(watched, values[watched])}" for name, values in
            (("linear model", best or {}), (always, commonest)) if watched in values]
    st.markdown(f"##### {said}" + (f" :gray[{', '.join(grey)}]" if grey else ""))
    shares = [name for name in own if name not in ("mse", "order_errors")]
    names = sorted(shares, key=lambda name: name != watched)
    rows = [(always, "baseline", "line-ns-open", commonest)]
    if best:
        rows.append(("linear model", "baseline", "diamond", best))
    rows += [(choice.label, meaning, "circle", theirs.metrics)
             for choice, meaning, theirs in reversed(found)]
    frame.figure(figures.scores(rows, names, [metric_title(n) for n in names]),
                 f"{look.chosen.stem}-scores", "scores")
    import pandas as pd

    table = pd.DataFrame([{"model": name, **values} for name, _, _, values in reversed(rows)])
    with st.expander("The numbers", icon=":material/table:"):
        st.dataframe(table, hide_index=True, width="stretch")
        if "order_errors" in own:
            st.caption(f"{own['order_errors']:,.0f} I- tags do not continue a mention of their type "
                       "(*order errors*).")
    frame.download_csv(table, f"{look.chosen.stem}-scores", "Scores (CSV)", key="scores_csv")


def test_part(look: Look, data) -> None:
    """The test part's numbers where they are known; else a button, with what it means to press it."""
    known = look.run.test_result()
    if known is not None:
        numbers = ", ".join(f"{metric_title(name)} {value_of(name, value)}" for name, value in known.items()
                            if isinstance(value, float) and name not in ("at", "order_errors"))
        st.markdown(f":material/lock: **Test part**, {known.get('examples', 0):,} examples, by the best "
                    f"checkpoint (step {known.get('step', 0):,}): {markdown(numbers)}")
        return
    if not data.test:
        st.caption(":material/lock_open: These examples have no test part.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        ended = look.run.status()["state"] == "finished"
        pressed = st.button("Look at the test part, once", key="test_once", icon=":material/lock_open:",
                            disabled=not ended)
        st.caption("The best checkpoint is measured on examples that nothing was chosen by, and the result "
                   "is kept for good. Whoever changes something after looking has no test part any more."
                   if ended else "When the run is finished, its best checkpoint can be measured on the "
                                 "test part, once.")
    if pressed:
        from bertscope.finetuning import results

        with st.spinner("Measuring the test part …"):
            results.test(look.run)
        st.rerun()


def learning(look: Look) -> None:
    """The watched metric over the steps, as it was measured while the run was trained."""
    import pandas as pd

    metric = look.run.config_record().get("metric", "accuracy")
    rows, key, reference = [], f"eval_{metric}", None
    for choice, _ in look.sides:
        if tuned_run(choice) is not None and not any(r["run"] == choice.run.name for r in rows):
            rows += [{"step": line["step"], "value": line[key], "run": choice.run.name}
                     for line in loaders.metrics(choice.run) if isinstance(line.get(key), (int, float))]
    table = pd.DataFrame(rows, columns=["step", "value", "run"])
    if table["step"].nunique() < 2:
        return
    commonest = look.run.config_record().get("baselines", {}).get(f"{look.spec.task}_majority_{metric}")
    if isinstance(commonest, (int, float)):
        reference = (float(commonest), "commonest answer")
    order = list(dict.fromkeys(table["run"]))
    st.altair_chart(charts.over_steps(
        table, "value", "run", order, f"{metric_title(metric)} on the validation part, over the steps",
        [(choice.checkpoint.step, meaning) for choice, meaning in look.sides if choice.checkpoint],
        reference, colours=[theme.colour(m) for _, m in look.sides][:len(order)], full=True),
        key="quality_steps", width="stretch")
    if look.run.status()["state"] in ACTIVE:
        st.caption(":material/hourglass_top: The run is still being trained.")


# -- calibration, confusions, errors --------------------------------------------------------------


def calibration(look: Look, found: list) -> None:
    from bertscope.finetuning.outcome import calibration_error, reliability

    tables, said = [], []
    for choice, meaning, own in found:
        table = own.table
        tables.append((choice.label, meaning, reliability(table["probability"], table["right"])))
        error = calibration_error(table["probability"], table["right"])
        said.append(f"{error:.1%}")
    st.markdown(f"##### Calibration error {' and '.join(said)}")
    st.caption("Is it right as often as it is sure? Below the dashed line it is too sure of itself.")
    least = 1 / len(look.spec.labels) if look.spec.labels else 0.0
    frame.figure(figures.reliability(tables, least), f"{look.chosen.stem}-reliability", "reliability")
    import pandas as pd

    frame.download_csv(pd.concat([table.assign(checkpoint=name) for name, _, table in tables]),
                       f"{look.chosen.stem}-reliability", "Bins (CSV)", key="reliability_csv")


def matrices(look: Look, found: list) -> None:
    import numpy as np

    from bertscope.finetuning.outcome import confusion

    st.markdown("##### Which label is taken for which?")
    for choice, _, own in found:
        counts = confusion(own)
        square = counts.to_numpy()
        missed = square.sum(0) + square.sum(1) - 2 * np.diag(square)
        kept = sorted(np.argsort(-missed, kind="stable")[:MOST_LABELS])
        if len(found) > 1:
            st.markdown(f"**{markdown(choice.label)}**")
        figure = confusion_figure(square[np.ix_(kept, kept)], [shorten(counts.index[i], 24) for i in kept],
                                  "")
        figure.update_yaxes(title_standoff=8)  # beside long labels, not among them
        frame.figure(figure, f"{choice.stem}-confusion", f"confusion_{choice.label}")
    if len(kept) < len(counts):
        st.caption(f"The {MOST_LABELS} labels that are mistaken most often, of {len(counts):,}.")
    whole = confusion(found[0][2]).rename_axis(index="gold", columns="answer").stack().rename("count")
    frame.download_csv(whole.reset_index(), f"{look.chosen.stem}-confusion", "Confusions (CSV)",
                       key="confusion_csv")


def errors(look: Look, found: list) -> None:
    """What went wrong, the surest first; beside it what the second checkpoint says."""
    table = found[0][2].errors
    if look.spec.numbers:
        st.markdown("##### The largest errors")
    else:
        whole = len(found[0][2].table)
        noun = "words" if look.spec.task == "tokens" else "examples"
        st.markdown(f"##### {len(table):,} of {whole:,} {noun} are wrong :gray[the surest first]")
    if table.empty:
        st.success("There is nothing that it gets wrong here.", icon=":material/check:")
        return
    if len(found) > 1:
        name = f"predicted by {found[1][0].label}"
        table = table.assign(**{name: found[1][2].table["predicted"].reindex(table.index)})
    shown = table.head(MOST_SHOWN).drop(columns=["right"], errors="ignore")
    shown = shown[[*shown.columns.drop("where"), "where"]]
    if look.spec.task == "question":
        given = [name for name in shown if name == "gold" or "predicted" in name]
        shown = shown.replace({name: {"": "(no answer)"} for name in given})
    st.dataframe(shown, hide_index=True, width="stretch", height=min(423, 38 + 35 * len(shown)),
                 column_config={name: st.column_config.NumberColumn(format="%.3f") for name in
                                ("probability", "gold_probability", "error", "f1", "exact_match")
                                if name in shown})
    if len(table) > MOST_SHOWN:
        st.caption(f"The first {MOST_SHOWN:,} are shown; the file has all.")
    frame.download_csv(table, f"{look.chosen.stem}-errors", "Errors (CSV)", key="errors_csv")
