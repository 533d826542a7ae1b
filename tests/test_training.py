"""The loop on small real runs: it learns, stops, is killed, resumes, and leaves whole files."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForPreTraining, AutoTokenizer

from bertscope.config import RECIPES, RunConfig
from bertscope.errors import BertScopeError
from bertscope.runs import Run, create_run
from bertscope.training.loop import train

TINY = {"model.hidden_size": 32, "model.intermediate_size": 64, "corpus.vocab_size": 256,
        "objective.max_length": 48, "training.batch_size": 8, "training.log_every": 5,
        "training.evaluate_every": 10, "training.checkpoint_every": 10,
        "training.evaluation_examples": 64, "training.learning_rate": 3e-3,
        "corpus.held_out": 0.1, "training.threads": 1}
WORDS = ("the cat dog bird fish sees hears likes old small red near far house tree river and "
         "with under garden morning evening").split()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Forty documents with words of their own."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    documents = []
    for _ in range(40):
        own = rng.choice(WORDS, 6, replace=False)
        documents.append("\n".join(" ".join(rng.choice(own, rng.integers(4, 10))) + "."
                                   for _ in range(12)))
    path.write_text("\n\n".join(documents))
    return path


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


def make(root, name, text, **changes) -> Run:
    recipe = changes.get("recipe", "bert")
    return create_run(name, RunConfig().override(
        {**RECIPES[recipe], **TINY, "corpus.source": str(text), "training.steps": 40,
         **{k.replace("__", "."): v for k, v in changes.items()}}), root)


@pytest.fixture(scope="module")
def finished(root, text):
    run = make(root, "finished", text)
    train(run)
    return run


def weights(run: Run, step: int) -> bytes:
    return (run.checkpoints_path / f"step-{step:08d}" / "model.safetensors").read_bytes()


def without_time(run: Run) -> list[dict]:
    return [{k: v for k, v in line.items() if k not in ("seconds", "tokens_per_second")}
            for line in run.metrics()]


def test_a_run_leaves_what_the_contract_promises(finished):
    assert finished.status()["state"] == "finished" and not finished.alive()
    assert [c.step for c in finished.checkpoints()] == [0, 1, 2, 4, 8, 10, 16, 20, 30, 32, 40]
    record = finished.config_record()
    assert record["corpus"]["documents"] == 40 and record["corpus"]["held_out_documents"] == 4
    assert 0 < record["baselines"]["unigram_accuracy"] < 1
    assert record["versions"]["torch"] == torch.__version__
    trained = [line for line in finished.metrics() if "loss" in line]
    measured = [line for line in finished.metrics() if "eval_mlm_loss" in line]
    assert [line["step"] for line in trained] == list(range(5, 41, 5))
    assert [line["step"] for line in measured] == [0, 10, 20, 30, 40]
    assert measured[-1]["eval_mlm_loss"] < measured[0]["eval_mlm_loss"] - 0.5
    assert trained[-1]["loss"] == pytest.approx(
        trained[-1]["mlm_loss"] + trained[-1]["nsp_loss"])
    assert all(line["gradient_norm"] > 0 and line["tokens_per_second"] > 0 for line in trained)


def test_a_checkpoint_is_a_plain_transformers_directory(finished):
    newest = finished.checkpoints()[-1]
    assert not list(newest.path.rglob("*.bin")) and not list(newest.path.rglob("*.pt"))
    model, info = AutoModelForPreTraining.from_pretrained(newest.path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    tokenizer = AutoTokenizer.from_pretrained(newest.path)
    encoded = tokenizer("the cat sees.", "the dog.", return_tensors="pt")
    assert encoded["token_type_ids"].max() == 1
    assert len(tokenizer) == model.config.vocab_size
    with torch.no_grad():
        assert torch.isfinite(model(**encoded).prediction_logits).all()


def test_the_heldout_loss_is_what_plain_transformers_computes(finished):
    """The last evaluation again, from the saved checkpoint, with dense logits."""
    from bertscope.corpus import prepare
    from bertscope.corpus.store import split_documents
    from bertscope.objectives.examples import evaluation_batches

    config = finished.config()
    corpus = prepare(config.corpus, finished.path.parent)
    _, held_out = split_documents(40, config.corpus.held_out)
    model = AutoModelForPreTraining.from_pretrained(finished.checkpoints()[-1].path).eval()
    total = count = 0
    for batch in evaluation_batches(corpus.store, held_out, corpus.tokenizer, config.objective,
                                    64, 16):
        mask = batch.attention_mask
        with torch.no_grad():
            logits = model(torch.from_numpy(batch.input_ids),
                           token_type_ids=torch.from_numpy(batch.token_type_ids),
                           attention_mask=None if mask is None else torch.from_numpy(mask)
                           ).prediction_logits.flatten(0, 1)
        chosen = logits[torch.from_numpy(batch.masked_index)]
        assert (batch.input_ids.ravel()[batch.masked_index]
                == corpus.tokenizer.mask_token_id).all()
        total += float(torch.nn.functional.cross_entropy(
            chosen, torch.from_numpy(batch.masked_labels), reduction="sum"))
        count += len(batch.masked_labels)
    last = [line for line in finished.metrics() if "eval_mlm_loss" in line][-1]
    assert last["eval_mlm_loss"] == pytest.approx(total / count, abs=1e-5)


def start(run: Run) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-m", "bertscope.training", str(run.path)],
                            stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"})


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def test_a_killed_run_can_be_opened_and_resumed_to_the_same_end(root, text, finished):
    run = make(root, "killed", text)
    process = start(run)
    wait_for(lambda: len(run.metrics()) >= 3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert run.status()["state"] == "interrupted"
    for checkpoint in run.checkpoints():
        AutoModelForPreTraining.from_pretrained(checkpoint.path)
    train(run)
    assert run.status()["state"] == "finished"
    assert weights(run, 40) == weights(finished, 40)


def test_stopping_saves_and_resuming_goes_on_bit_for_bit(root, text, finished):
    run = make(root, "stopped", text)
    process = start(run)
    wait_for(lambda: run.checkpoints() and run.checkpoints()[-1].step >= 2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert run.status()["state"] == "stopped"
    step = run.status()["step"]
    assert run.checkpoints()[-1].step == step == run.latest_state().step < 40
    train(run)
    assert weights(run, 40) == weights(finished, 40)
    own = {line["step"]: line for line in without_time(run) if "eval_mlm_loss" in line}
    for line in without_time(finished):
        if "eval_mlm_loss" in line:
            assert own[line["step"]] == line


def test_a_stop_file_is_a_request(root, text):
    run = make(root, "asked", text, training__steps=100_000)
    process = start(run)
    wait_for(lambda: run.status()["state"] == "training")
    run.ask_to_stop()
    assert process.wait(timeout=60) == 0
    assert run.status()["state"] == "stopped" and not run.stop_asked()


def test_a_time_limit_ends_the_run_with_the_rate_at_zero(root, text):
    run = make(root, "timed", text, training__max_minutes=0.05, training__log_every=1)
    train(run)
    status = run.status()
    assert status["state"] == "finished" and 2.5 < status["seconds"] < 30
    rates = [line["learning_rate"] for line in run.metrics() if "learning_rate" in line]
    assert max(rates) > 0.8 * 3e-3 and rates[-1] < 0.2 * 3e-3


def test_accumulation_and_processes_change_nothing_but_rounding(root, text):
    """1 x 16, 2 micro-batches of 8, and two processes of 8 take the same steps."""
    small = {"training__steps": 6, "model__dropout": 0.0, "training__log_every": 2}
    whole = make(root, "whole", text, training__batch_size=16, **small)
    train(whole)
    parts = make(root, "parts", text, training__batch_size=8, training__accumulation=2, **small)
    train(parts)
    spread = make(root, "spread", text, training__batch_size=8, **small)
    subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2",
                    "--standalone", "-m", "bertscope.training", str(spread.path)],
                   check=True, capture_output=True, timeout=180,
                   env={**os.environ, "OMP_NUM_THREADS": "1"})
    for other in (parts, spread):
        for key in ("loss", "eval_mlm_loss", "gradient_norm", "nsp_accuracy"):
            one, two = ([line[key] for line in run.metrics() if key in line]
                        for run in (whole, other))
            assert len(one) >= 2 and one == pytest.approx(two, rel=1e-5)


@pytest.mark.parametrize("content, part", [
    ("just one document.\nwith two lines.\n", "single document"),
    ("", "no text"),
    ("one.\n\ntwo.\n\nthree.\n\nfour.\n", "two sentences"),
])
def test_a_corpus_that_cannot_be_used_fails_with_a_sentence(tmp_path, content, part):
    path = tmp_path / "odd.txt"
    path.write_text(content)
    run = make(tmp_path / "runs", "odd", path)
    with pytest.raises(BertScopeError, match=part):
        train(run)
    assert run.status()["state"] == "failed" and part in run.status()["message"]


def test_a_loss_that_explodes_stops_the_run_and_keeps_its_checkpoints(root, text, monkeypatch):
    run = make(root, "exploding", text, training__log_every=1)
    from bertscope.training import loop

    monkeypatch.setattr(loop, "learning_rate", lambda *_: float("nan"))
    with pytest.raises(BertScopeError, match="no longer a number"):
        train(run)
    assert run.status()["state"] == "failed"
    assert run.checkpoints()[0].step == 0


def test_a_damaged_state_is_named(root, text):
    run = make(root, "damaged", text, training__steps=4)
    train(run)
    (run.latest_state().path / "optimizer.safetensors").write_bytes(b"x" * 100)
    with pytest.raises(BertScopeError, match="missing or damaged"):
        train(run)


def test_the_oracle_is_the_generators_own_chance():
    """Hand-computed: one choice seen elsewhere, one masked twice, one of its own."""
    from types import SimpleNamespace

    from bertscope.training.evaluation import oracle_accuracy

    oracle = SimpleNamespace(choice=np.array([1, 1, 2, 2, 3, -1]),
                             oracle=np.array([0.9, 0.8, 0.7, 0.6, 0.5, 1.0]),
                             alone=np.array([0.1, 0.2, 0.3, 0.4, 0.5, 1.0]))
    batch = SimpleNamespace(source=np.array([[-1, 0, 1, 2, -1], [-1, 3, 4, 5, -1]]),
                            masked_index=np.array([1, 3, 6, 7, 8]))
    # Row 0: piece 0 is revealed by piece 1; piece 2 by none there (3 is in another row).
    expected = [0.9, 0.3, 0.4, 0.5, 1.0]
    assert oracle_accuracy(oracle, [batch]) == pytest.approx(np.mean(expected))


def test_status_and_metrics_are_json_lines(finished):
    for line in Path(finished.path / "metrics.jsonl").read_text().splitlines():
        json.loads(line)


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_every_recipe_runs_through_the_loop_and_its_checkpoint_opens(root, text, recipe):
    from bertscope.analysis import load

    run = make(root, f"recipe-{recipe}", text, recipe=recipe, training__steps=4)
    train(run)
    assert run.status()["state"] == "finished", run.status()
    lines = run.metrics()
    for name in run.config().objectives:
        assert np.isfinite(lines[-1][f"eval_{name}_loss"])
        assert 0 <= lines[-1][f"eval_{name}_accuracy"] <= 1
    opened = load(run.checkpoints()[-1].path)
    assert opened.has_mlm_head == (recipe in ("bert", "roberta", "albert", "deberta"))
    assert opened.has_nsp_head == (recipe == "bert")
    if recipe == "electra":
        assert load(run.checkpoints()[-1].path / "generator").has_mlm_head


def test_processes_share_an_epoch_without_overlap(root, text):
    """Each rank's batches, put together, are the one process's, and every example comes once."""
    from bertscope.corpus import prepare
    from bertscope.corpus.store import split_documents
    from bertscope.training.data import batches, phases
    from bertscope.training.progress import Position

    config = make(root, "shares", text, training__batch_size=4).config()
    corpus = prepare(config.corpus, root)
    documents, _ = split_documents(40, config.corpus.held_out)
    stages = phases(config, corpus.store, documents, corpus.tokenizer)
    count = len(stages[0].examples.order(0, 4, None, 2))

    def sources(rank, processes, number):
        stream = batches(stages, Position(), config, rank, processes)
        return [tuple(row[row >= 0]) for _, (_, _, made) in zip(range(number), stream)
                for batch in made for row in batch.source]

    one = sources(0, 2, count) + sources(1, 2, count)
    whole = config.override({"training.batch_size": 8})
    stream = batches(stages, Position(), whole, 0, 1)
    alone = [tuple(row[row >= 0]) for _, (_, _, made) in zip(range(count), stream)
             for batch in made for row in batch.source]
    assert sorted(one) == sorted(alone)
    assert len(one) == 8 * count


def test_the_time_left_is_not_told_by_the_first_step():
    """The first step takes a hundred times as long as the others, and 6,000 of it would be hours."""
    from types import SimpleNamespace

    from bertscope.training.progress import StatusWriter

    told = {}
    run = SimpleNamespace(write_status=lambda **status: told.update(status))
    StatusWriter(run, True).training(step=1, total=6000, done=1 / 6000, seconds=3.0, rate=0.0)
    assert told["step"] == 1 and told["eta_seconds"] is None
    StatusWriter(run, True).training(step=300, total=6000, done=0.05, seconds=12.0, rate=5e4)
    assert told["eta_seconds"] == pytest.approx(228.0)
