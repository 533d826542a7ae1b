"""What a run was fed, made again, against what its trainer really read; and counts of it."""

import shutil
from collections import Counter

import numpy as np
import pytest

from bertscope.analysis import exposure as counting
from bertscope.analysis import feeding
from bertscope.analysis.cache import list_cached
from bertscope.analysis.exposure import exposure, over_steps, seen_by
from bertscope.analysis.feeding import fed, open_feed, steps_done
from bertscope.presets import run_config
from bertscope.errors import BertScopeError
from bertscope.runs import create_run
from bertscope.training import loop

SMALL = {"corpus.documents": 24, "corpus.vocab_size": 400, "model.hidden_size": 16,
         "model.num_attention_heads": 2, "model.intermediate_size": 16, "training.threads": 1,
         "objective.max_length": 32, "training.evaluation_examples": 8, "training.seed": 3,
         "training.log_every": 5, "training.checkpoint_every": 8}
#: Each goes through several epochs.
KINDS = {
    "pairs": {"training.steps": 24, "training.batch_size": 16},
    "by pieces": {"recipe": "roberta", "training.steps": 14, "training.batch_tokens": 256,
                  "training.accumulation": 2},
    "short first": {"training.steps": 20, "training.batch_size": 12, "training.short_length": 16,
                    "training.short_share": 0.6, "objective.mask_unit": "word",
                    "objective.masking": "static"},
    "causal": {"recipe": "causal", "training.steps": 16, "training.batch_size": 8},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """For each kind, its run and what was really read: a list of micro-batches for every step."""
    root = tmp_path_factory.mktemp("fed") / "runs"
    made = {}
    update = loop.update
    for name, changes in KINDS.items():
        recipe = changes.get("recipe", "bert")
        changes = {k: v for k, v in changes.items() if k != "recipe"}
        run = create_run(name.replace(" ", "-"), run_config(SMALL | changes, recipe=recipe), root)
        read = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "update", lambda accelerator, module, optimizer, batches, *more:
                          read.append(batches) or update(accelerator, module, optimizer, batches,
                                                         *more))
            loop.train(run)
        made[name] = run, read
    return made


@pytest.fixture(params=KINDS)
def kind(request, trained):
    return trained[request.param]


def test_the_examples_of_any_step_are_those_that_were_read(kind):
    run, read = kind
    feed = open_feed(run)
    assert steps_done(run) == len(read) == run.config().training.steps
    epochs = set()
    for step in [*range(len(read), 0, -5), *range(1, len(read) + 1)]:
        found = fed(feed, step)
        epochs.add((found.phase, found.epoch))
        batches = read[step - 1]
        assert found.part.tolist() == [n for n, b in enumerate(batches) for _ in b.input_ids]
        rows = iter(found.rows)
        for batch in batches:
            for number, width in enumerate(lengths(batch)):
                row = next(rows)
                assert row.shown.tolist() == batch.input_ids[number, :width].tolist()
                assert row.token_type_ids.tolist() == batch.token_type_ids[number, :width].tolist()
                assert row.source.tolist() == batch.source[number, :width].tolist()
                asked = batch.masked_lm_labels[number] >= 0
                assert row.chosen.tolist() == batch.masked_lm_positions[number][asked].tolist()
                assert row.ids[row.chosen].tolist() == \
                    batch.masked_lm_labels[number][asked].tolist()
                assert row.label == (None if batch.pair_label is None else batch.pair_label[number])
        assert next(rows, None) is None
    assert len(epochs) > 1, "the run should go through more than one epoch"


def lengths(batch):
    if batch.attention_mask is None:
        return [batch.input_ids.shape[1]] * len(batch.input_ids)
    return batch.attention_mask.sum(1).tolist()


def test_both_phases_are_met(trained):
    run, read = trained["short first"]
    feed = open_feed(run)
    assert [fed(feed, step).phase for step in (1, 12, 13, 20)] == [0, 0, 1, 1]
    assert max(b.input_ids.shape[1] for b in read[11]) <= 16
    assert fed(feed, 13).epoch == fed(feed, 13).batch == 0


@pytest.mark.parametrize("name", ["pairs", "short first"])
def test_the_epochs_are_as_long_as_the_trainers(trained, name):
    feed = open_feed(trained[name][0])
    for phase in range(len(feed.stages)):
        sizes = [feed.size(phase, epoch) for epoch in range(25)]
        assert sizes == [len(feed.order(phase, epoch)) for epoch in range(25)]
        assert len(set(sizes)) > 1, "epochs of pairs differ in their number"


def counted(read, causal, vocabulary):
    """By hand: each piece of each example's text, and each that was asked for."""
    seen, target = Counter(), Counter()
    for batches in read:
        for batch in batches:
            for number, width in enumerate(lengths(batch)):
                text = batch.input_ids[number, :width].copy()
                asked = batch.masked_lm_labels[number] >= 0
                shown = text.copy()
                text[batch.masked_lm_positions[number][asked]] = \
                    batch.masked_lm_labels[number][asked]
                inside = batch.source[number, :width] >= 0
                seen.update(text[inside].tolist())
                target.update(shown[inside].tolist() if causal else
                              batch.masked_lm_labels[number][asked].tolist())
    return [[c[i] for i in range(vocabulary)] for c in (seen, target)]


def test_exposure_is_what_counting_by_hand_gives(kind):
    run, read = kind
    feed = open_feed(run)
    size = len(feed.tokenizer)
    for step in (len(read), 1, 7, 0):
        found = exposure(feed, step)
        seen, target = counted(read[:step], feed.causal, size)
        assert found.exact and found.step == step
        assert found.seen.tolist() == seen and found.target.tolist() == target
    assert found.seen.sum() == 0


def test_counts_are_kept_and_a_later_step_goes_on_from_there(trained, monkeypatch):
    run, read = trained["pairs"]
    shutil.rmtree(run.analysis_path, ignore_errors=True)
    feed, parts = open_feed(run), []
    count = counting._counted
    monkeypatch.setattr(counting, "_counted", lambda feed, after, until, *more:
                        parts.append((after, until)) or count(feed, after, until, *more))
    whole = exposure(feed, 24)
    assert parts[0][0] == 0 and parts[-1][1] == 24
    assert {key["step"] for key, _ in list_cached(run.analysis_path, "exposure")} == {1, 2, 4, 8, 16, 24}
    parts.clear()
    assert np.array_equal(exposure(feed, 24).seen, whole.seen) and parts == [(24, 24)]
    parts.clear()
    messages = []
    exposure(feed, 19, lambda message, share: messages.append(share))
    assert parts == [(16, 19)] and messages[-1] == 1.0


def test_seen_by_answers_for_some_pieces_and_curves_grow(trained):
    run, read = trained["pairs"]
    feed = open_feed(run)
    whole = exposure(feed, 8)
    common = int(whole.seen.argmax())
    found = seen_by(run, [common, 10**9, -1, feed.tokenizer.cls_token_id], 8)
    assert found.seen.tolist() == [whole.seen[common], 0, 0, 0]
    assert found.target[0] == whole.target[common] > 0
    curve = over_steps(feed, [common], 24)
    assert [point.step for point in curve] == [0, 1, 2, 4, 8, 16, 24]
    seen = [int(point.seen[0]) for point in curve]
    assert seen == sorted(seen) and seen[0] == 0 and seen[4] == whole.seen[common]


def test_a_run_that_is_too_long_to_count_is_estimated_and_says_so(trained, monkeypatch):
    run, read = trained["pairs"]
    feed = open_feed(run)
    exact = exposure(feed, 24)
    monkeypatch.setitem(counting.MOST_COUNTED, "piece", 1000)
    about = exposure(feed, 24)
    assert exact.exact and not about.exact
    assert about.seen.sum() == pytest.approx(exact.seen.sum(), rel=0.1)
    assert about.target.sum() == pytest.approx(exact.target.sum(), rel=0.15)
    often = exact.seen > 100
    assert often.sum() > 10
    assert np.median(np.abs(about.seen[often] / exact.seen[often] - 1)) < 0.15
    assert exposure(feed, 0).exact
    fed_by_24 = run.metrics()
    assert counting.fed_pieces(feed, 24) == next(
        line["tokens"] for line in reversed(fed_by_24) if "tokens" in line)


def test_kept_counts_stay_among_the_marks_of_a_longer_run(tmp_path, trained):
    run, _ = trained["pairs"]
    folder = tmp_path / "runs" / "long"
    shutil.copytree(run.path, folder, ignore=shutil.ignore_patterns("analysis", "state"))
    longer = type(run)(folder)
    previous = counting.marks(longer)
    for step in range(100, 8000, 100):
        (longer.checkpoints_path / f"step-{step:08d}").mkdir()
        marks = counting.marks(longer)
        assert len(marks) <= counting.MOST_MARKS
        assert set(marks) >= set(previous) or set(marks) <= {*previous, marks[-1]}
        previous = marks


def test_what_cannot_be_made_again_is_a_sentence(trained, tmp_path):
    run, _ = trained["pairs"]
    with pytest.raises(BertScopeError, match="first examples are those of step 1"):
        fed(open_feed(run), 0)
    folder = tmp_path / "runs" / "moved"
    shutil.copytree(run.path, folder)
    moved = type(run)(folder)
    record = moved.config_record()
    assert open_feed(moved).store.tokens  # by the path that it was trained with
    for known, said in (({**record["corpus"], "path": "/nowhere"}, "no longer here"),
                        ({**record["corpus"], "tokens": 5}, "not the one"),
                        ({"fingerprint": "../../etc"}, "has not prepared"), (None, "has not prepared")):
        moved.write_config(moved.config(), corpus=known)
        with pytest.raises(BertScopeError, match=said):
            open_feed(moved)
    new = create_run("new", run.config(), tmp_path / "runs")
    assert steps_done(new) == 0
    with pytest.raises(BertScopeError, match="has not prepared"):
        open_feed(new)


def test_a_batch_of_many_processes_is_put_together(trained):
    """Two processes read halves of what one would read in a batch of twice the size."""
    from bertscope.training.data import batches
    from bertscope.training.progress import Position

    run, _ = trained["pairs"]
    feed = open_feed(run)
    two = feeding.Feed(run, feed.config, feed.tokenizer, feed.store, feed.documents, feed.stages, 2)
    readers = [batches(two.stages, Position(), two.config, rank, 2) for rank in range(2)]
    for step in range(1, 5):
        mine, theirs = (next(reader)[2][0] for reader in readers)
        found = fed(two, step)
        assert found.part.tolist() == [0] * 16 + [1] * 16
        assert [row.label for row in found.rows] == [*mine.pair_label, *theirs.pair_label]
        assert found.rows[16].shown.tolist() == theirs.input_ids[0, :len(found.rows[16])].tolist()
