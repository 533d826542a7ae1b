"""The training loop. Read it from top to bottom: prepare, build, then step after step.

It runs the same for every recipe, on a CPU, a GPU, or many of them under ``torchrun`` or
``accelerate launch``: Hugging Face Accelerate moves, wraps and scales; what is learnt, and when it
is saved, stands here.
"""

from __future__ import annotations

import os
import platform
import signal
import sys
import traceback
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import torch
from accelerate import Accelerator
from safetensors.numpy import save_file
from tqdm import tqdm

from bertscope.config import RunConfig
from bertscope.corpus import prepare
from bertscope.corpus.store import split_documents
from bertscope.errors import BertScopeError
from bertscope.models import build, build_loss, parts
from bertscope.objectives import Batch
from bertscope.objectives.examples import evaluation_batches
from bertscope.runs import Run
from bertscope.training import checkpoints
from bertscope.training.data import batches, phases
from bertscope.training.evaluation import evaluate, oracle_accuracy, unigram_baseline
from bertscope.training.optimizer import build_optimizer
from bertscope.training.progress import Clock, Position, StatusWriter, Window
from bertscope.training.schedule import is_checkpoint_step, learning_rate


class _Stopped(Exception):
    """Somebody asked the run to stop before it had begun."""


def train(run: Run) -> None:
    """Train ``run`` from its last saved state, or from the start, until it is finished or stopped.

    Ctrl-C, SIGTERM and a file ``STOP`` in the run's folder finish the step, save and return; a
    second Ctrl-C ends at once. How it ended stands in the run's status.

    Raises:
        BertScopeError: the corpus, the configuration or a saved state cannot be used.
    """
    config = run.config()
    # Moments and probabilities of rare pieces shrink below the smallest normal number, and a CPU
    # takes many times as long for those: a small model's steps became twice as slow in a minute.
    torch.set_flush_denormal(True)
    if config.training.threads:
        torch.set_num_threads(config.training.threads)
    accelerator = Accelerator(cpu=not torch.accelerator.is_available(),  # many CPUs need to be told
                              mixed_precision=_precision(config.training.precision),
                              **_tracking(run, config))
    with ExitStack() as stack:
        if accelerator.is_main_process:
            stack.enter_context(run.lock())
            run.tidy()
            run.write_status(state="preparing", locked=True, message="preparing the corpus")
        stack.enter_context(_failures_noted(run, accelerator.is_main_process))
        stop = stack.enter_context(_stop_signals())
        with suppress(_Stopped):
            _train(run, config, accelerator, stop)


def _train(run: Run, config: RunConfig, accelerator: Accelerator, stop: dict) -> None:
    training, weights, main = config.training, config.objectives, accelerator.is_main_process
    note = StatusWriter(run, main)

    def preparing(message: str, fraction: float | None) -> None:
        note.preparing(message, fraction)
        if stop["asked"] or run.stop_asked():
            run.write_status(state="stopped", message="stopped while the corpus was prepared")
            run.clear_stop()
            raise _Stopped

    # The corpus: the first process prepares it, the others find it prepared.
    with accelerator.main_process_first():
        corpus = prepare(_with_vocabulary(config), run.path.parent, preparing)
    tokenizer, store = corpus.tokenizer, corpus.store
    train_documents, held_out = split_documents(
        len(store.document_offsets) - 1, config.corpus.held_out)
    stages = phases(config, store, train_documents, tokenizer)
    heldout_batches = list(evaluation_batches(
        store, held_out, tokenizer, config.objective, training.evaluation_examples, 64)
    ) if len(held_out) > 1 else []

    # The model. Its loss is a module of its own, so that the wrapped forward does only that.
    model = build(config, tokenizer)
    if training.init_from:
        _begin_with(model, training.init_from)
    if training.gradient_checkpointing:
        for part in parts(model).values():
            part.activation_checkpointing_enable()
    loss_module = build_loss(config, model).to(accelerator.device)
    optimizer = build_optimizer(model, training)
    wrapped, optimizer = accelerator.prepare(loss_module, optimizer)
    compiled = _compiled(wrapped) if training.compile else wrapped

    def to_device(batch: Batch) -> dict:
        return batch_tensors(batch, accelerator.device)

    def total(sums: torch.Tensor) -> torch.Tensor:
        """Add up over all processes."""
        if accelerator.num_processes == 1:
            return sums
        return accelerator.reduce(sums.to(accelerator.device), "sum").cpu()

    def measure() -> dict:
        """Held-out numbers, each process on its share of the batches."""
        if not heldout_batches:
            return {}
        share = heldout_batches[accelerator.process_index:: accelerator.num_processes]
        return evaluate(loss_module, share, to_device, weights, total)

    def log(line: dict, **clock: float) -> None:
        if main:
            run.append_metrics({"step": position.step, **line}, **clock)
        if training.tensorboard:
            accelerator.log({**line, **clock}, step=position.step)

    def save(metrics: dict) -> None:
        position.window = window.state(total)
        if main:
            checkpoints.save(run, position, model, tokenizer, optimizer.optimizer, metrics)

    position, state = Position(), run.latest_state()
    if state:
        position = checkpoints.load(run, state, model, optimizer.optimizer)
    if main:
        run.truncate_metrics(position.step if state else -1)
        run.write_config(config, **_facts(config, model, corpus, train_documents, held_out,
                                          heldout_batches, accelerator))
    if training.tensorboard:
        accelerator.init_trackers("tensorboard")  # the folder's name
    clock, window = Clock(position.seconds), Window(
        weights, position.window if main else {})
    bar = tqdm(total=None if training.max_minutes else training.steps, initial=position.step,
               unit="step", disable=not (main and sys.stderr.isatty()), smoothing=0.05)
    with bar:
        if not state:
            measured = measure()
            if measured:
                log(measured, seconds=clock.seconds())
            save(measured)
        loss_module.train()
        for position.epoch, position.batch, micro_batches in batches(
                stages, position, config, accelerator.process_index, accelerator.num_processes,
                ahead=accelerator.device.type != "cpu"):
            done = _progress(position.step, training, clock, total)
            if done >= 1.0 or _out_of_patience(position, training):
                break

            # One update. Dropout and ELECTRA's samples are keyed by the step, not by the past.
            torch.manual_seed(_step_seed(training.seed, position.step, accelerator.process_index))
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(done, training)
            outputs, norm = update(accelerator, compiled, optimizer, micro_batches, weights,
                                   training.clip, total, _keep_bad_batch(run, position.step + 1))
            for measured, batch in zip(outputs, micro_batches):
                window.add(measured, batch)

            step = position.step = position.step + 1
            position.batch += 1
            if any(step == phase.end for phase in stages):
                position.epoch = position.batch = 0
            position.tokens += int(total(torch.tensor(
                [float(sum(batch.tokens for batch in micro_batches))], dtype=torch.float64)))
            position.seconds = clock.seconds()
            bar.update()

            # What is said and saved about it.
            done = _progress(step, training, clock, total)
            stopping = _agreed(stop["asked"] or (main and run.stop_asked()), total)
            ended = done >= 1.0
            if step % training.log_every == 0 or ended:
                line = window.line(total)
                log({**line, "gradient_norm": float(norm),
                     "learning_rate": optimizer.param_groups[0]["lr"], "epoch": position.epoch,
                     "tokens": position.tokens},
                    seconds=position.seconds, tokens_per_second=window.rate)
                bar.set_postfix({name: f"{line[f'{name}_accuracy']:.3f}" for name in weights})
            with window.paused():
                measured = {}
                if step % training.evaluate_every == 0 or ended:
                    measured = measure()
                    if measured:
                        log(measured, seconds=clock.seconds())
                        _note_best(position, measured["eval_loss"])
                ended = ended or _out_of_patience(position, training)
                if is_checkpoint_step(step, training.checkpoint_every) or ended or stopping:
                    save(measured)
            note.training(step, training.steps, done, clock.seconds(), window.rate)
            if ended or stopping:
                break
    if training.tensorboard:
        accelerator.end_training()
    if main:
        early = _out_of_patience(position, training)
        finished = early or _progress(position.step, training, clock, total) >= 1.0
        run.write_status(state="finished" if finished else "stopped", step=position.step,
                         total=position.step if finished else training.steps,
                         seconds=clock.seconds(), eta_seconds=0.0,
                         message="the held-out loss no longer fell" if early else "")
        run.clear_stop()


def update(accelerator: Accelerator, loss_module, optimizer, micro_batches: list[Batch],
           weights: dict[str, float], clip: float, total=lambda sums: sums,
           keep_bad=lambda batch: None) -> tuple[list[dict], torch.Tensor]:
    """One optimiser step; returns what was measured, and the gradient's norm before clipping.

    Each objective's summed loss is divided by how much the whole update predicts, over
    micro-batches and processes: a mean of means would weigh short rows more.

    Raises:
        BertScopeError: a loss is no longer a number; ``keep_bad`` was given the batch.
    """
    counts = total(torch.tensor([[batch.count(name) for name in weights]
                                 for batch in micro_batches], dtype=torch.float64).sum(0)).tolist()
    scales = {name: weight / max(count, 1) for (name, weight), count in zip(weights.items(), counts)}
    outputs = []
    for batch in micro_batches:
        last = batch is micro_batches[-1]
        with nullcontext() if last else accelerator.no_sync(loss_module):
            measured = loss_module(**batch_tensors(batch, accelerator.device))
            loss = sum(scales[name] * part.loss for name, part in measured.items())
            if not torch.isfinite(loss):
                raise BertScopeError(_diverged(keep_bad(batch)))
            accelerator.backward(loss * accelerator.num_processes)  # DDP takes the mean of these
        outputs.append(measured)
    norm = accelerator.clip_grad_norm_(loss_module.parameters(), clip or float("inf"))
    optimizer.step()
    optimizer.zero_grad()
    return outputs, norm


def batch_tensors(batch: Batch, device) -> dict:
    """A batch as the keyword arguments of a loss module, on the device."""
    names = ("input_ids", "token_type_ids", "attention_mask", "masked_lm_positions",
             "masked_lm_labels", "pair_label")
    arrays = {name: getattr(batch, name) for name in names}
    return {name: None if array is None else torch.from_numpy(array).to(device, non_blocking=True)
            for name, array in arrays.items()}


# -- numbers that went wrong -------------------------------------------------------------------


def _keep_bad_batch(run: Run, step: int):
    """A function that saves the batch at which the loss failed, and says where."""
    def keep(batch: Batch) -> tuple[int, str]:
        name = f"failed-step-{step:08d}.safetensors"
        arrays = {key: np.ascontiguousarray(value) for key, value in vars(batch).items()
                  if value is not None}
        with suppress(OSError):
            save_file(arrays, run.path / name)
        return step, name

    return keep


def _diverged(kept: tuple[int, str] | None) -> str:
    at, where = (f" at step {kept[0]}", f" Its batch is kept in {kept[1]}.") if kept else ("", "")
    return (f"The loss is no longer a number{at}: the learning rate is probably too high. The "
            f"checkpoints before it are whole.{where}")


# -- when it ends ------------------------------------------------------------------------------


def _note_best(position: Position, loss: float) -> None:
    if position.best is None or loss < position.best:
        position.best, position.waited = loss, 0
    else:
        position.waited += 1


def _out_of_patience(position: Position, training) -> bool:
    return training.patience is not None and position.waited >= training.patience


def _progress(step: int, training, clock: Clock, total) -> float:
    """Share of the training that is done, by the first process's clock where there is a limit."""
    if training.max_minutes is None:
        return step / training.steps
    elapsed = torch.tensor([clock.seconds() if _is_first() else 0.0], dtype=torch.float64)
    return float(total(elapsed)) / (60 * training.max_minutes)


def _is_first() -> bool:
    return int(os.environ.get("RANK", "0")) == 0


def _agreed(asked: bool, total) -> bool:
    return bool(total(torch.tensor([float(asked)], dtype=torch.float64)).item())


# -- how it begins -----------------------------------------------------------------------------


def _step_seed(seed: int, step: int, process: int) -> int:
    return int(np.random.SeedSequence([seed, step, process]).generate_state(1, np.uint64)[0] >> 1)


def _with_vocabulary(config: RunConfig):
    """The corpus in the vocabulary of the checkpoint that the run begins with, if any."""
    if config.training.init_from and not config.corpus.tokenizer:
        return replace(config.corpus, tokenizer=config.training.init_from)
    return config.corpus


def _begin_with(model, folder: str) -> None:
    from pathlib import Path

    try:
        checkpoints.load_weights(model, Path(folder))
    except Exception as error:
        raise BertScopeError(f"training.init_from: the weights of {folder} are not those of this "
                             f"recipe and shape ({str(error).splitlines()[0]}).") from error


def _compiled(module):
    import shutil

    if not (shutil.which("g++") or shutil.which("clang++") or torch.cuda.is_available()):
        raise BertScopeError("training.compile needs a C++ compiler (g++) on this machine.")
    return torch.compile(module)


def _tracking(run: Run, config: RunConfig) -> dict:
    """Accelerate's own tracker, where event files are wished for."""
    if not config.training.tensorboard:
        return {}
    from importlib.util import find_spec

    if not find_spec("tensorboard"):
        raise BertScopeError("training.tensorboard needs the package tensorboard: "
                             "pip install tensorboard")
    return {"log_with": "tensorboard", "project_dir": str(run.path)}


def _precision(wish: str) -> str:
    """Accelerate's name of the precision; ``auto`` is bf16 on a GPU that has it."""
    cuda = torch.cuda.is_available()
    if wish == "auto":
        return "bf16" if cuda and torch.cuda.is_bf16_supported() else "no"
    if wish == "fp16" and not cuda:
        raise BertScopeError("Precision fp16 needs a GPU; choose fp32 or auto.")
    return "no" if wish == "fp32" else wish


def _facts(config: RunConfig, model, corpus, train_documents, held_out, heldout_batches,
           accelerator) -> dict:
    """What the run's record says beside its configuration."""
    store, causal = corpus.store, config.recipe == "causal"
    baselines = {}
    if heldout_batches:
        baselines = unigram_baseline(store, held_out, heldout_batches, len(corpus.tokenizer),
                                     causal)
        if store.oracle is not None and not causal:
            baselines["oracle_accuracy"] = oracle_accuracy(store.oracle, heldout_batches)
    packages = ("torch", "transformers", "tokenizers", "accelerate", "numpy")
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "device": str(accelerator.device), "processes": accelerator.num_processes,
        "precision": accelerator.mixed_precision,
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "baselines": baselines,
        "corpus": {
            "fingerprint": corpus.fingerprint, "path": str(corpus.path),
            "documents": len(store.document_offsets) - 1,
            "sentences": len(store.sentence_offsets) - 1, "tokens": len(store.ids),
            "train_documents": len(train_documents), "held_out_documents": len(held_out)},
    }


@contextmanager
def _failures_noted(run: Run, main: bool):
    """A failure's sentence goes to the status, a defect's traceback to the log as well."""
    try:
        yield
    except BaseException as error:
        if main and not isinstance(error, _Stopped):
            known = isinstance(error, BertScopeError)
            if not known and not isinstance(error, KeyboardInterrupt):
                traceback.print_exc()
            message = str(error) if known else f"{type(error).__name__}: {error}"
            with suppress(OSError):  # a full disk takes no status either
                run.write_status(state="failed", message=message)
        raise


@contextmanager
def _stop_signals():
    """The first SIGINT or SIGTERM sets a flag; a second SIGINT interrupts at once."""
    stop = {"asked": False}

    def ask(number, frame):
        if stop["asked"] and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop["asked"] = True
        print("Finishing this step and saving ...", file=sys.stderr)

    try:
        before = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread, as in a notebook's worker: no signals there
        before = {}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
