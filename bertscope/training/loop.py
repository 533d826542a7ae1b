"""The training loop. Read it from top to bottom: prepare, build, then step after step.

It runs the same for every recipe and for fine-tuning, on a CPU, a GPU, or many of them under
``torchrun`` or ``accelerate launch``: Hugging Face Accelerate moves, wraps and scales. When
something is learnt, measured and saved stands here; what that is, in the run's ``Work``.
"""

from __future__ import annotations

import os
import platform
import signal
import sys
import traceback
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from importlib.metadata import version

import numpy as np
import torch
from accelerate import Accelerator
from safetensors.numpy import save_file
from tqdm import tqdm

from bertscope.errors import BertScopeError
from bertscope.runs import Run
from bertscope.training import checkpoints
from bertscope.training.opening import open_work
from bertscope.training.progress import Clock, Position, StatusWriter, Window
from bertscope.training.schedule import is_checkpoint_step, learning_rate


class _Stopped(Exception):
    """Somebody asked the run to stop before it had begun."""


def train(run: Run) -> None:
    """Train ``run`` from its last saved state, or from the start, until it is finished or stopped.

    Ctrl-C, SIGTERM and a file ``STOP`` in the run's folder finish the step, save and return; a
    second Ctrl-C ends at once. How it ended stands in the run's status.

    Raises:
        BertScopeError: the data, the configuration or a saved state cannot be used.
    """
    training = run.settings().training
    # Moments and probabilities of rare pieces shrink below the smallest normal number, and a CPU
    # takes many times as long for those: a small model's steps became twice as slow in a minute.
    torch.set_flush_denormal(True)
    if training.threads:
        torch.set_num_threads(training.threads)
    accelerator = Accelerator(cpu=not torch.accelerator.is_available(),  # many CPUs need to be told
                              mixed_precision=_precision(training.precision),
                              **_tracking(run, training.tensorboard))
    with ExitStack() as stack:
        if accelerator.is_main_process:
            stack.enter_context(run.lock())
            run.tidy()
            run.write_status(state="preparing", locked=True, message="preparing the data")
        stack.enter_context(_failures_noted(run, accelerator.is_main_process))
        stop = stack.enter_context(_stop_signals())
        with suppress(_Stopped):
            _train(run, accelerator, stop)


def _train(run: Run, accelerator: Accelerator, stop: dict) -> None:
    main = accelerator.is_main_process
    note = StatusWriter(run, main)

    def preparing(message: str, fraction: float | None) -> None:
        note.preparing(message, fraction)
        if stop["asked"] or run.stop_asked():
            run.write_status(state="stopped", message="stopped while the data was prepared")
            run.clear_stop()
            raise _Stopped

    with accelerator.main_process_first():  # the others find the data prepared
        work = open_work(run, preparing)
    training, weights = work.training, work.weights
    loss_module = work.loss_module.to(accelerator.device)
    optimizer = work.optimizer()
    wrapped, optimizer = accelerator.prepare(loss_module, optimizer)
    compiled = _compiled(wrapped) if training.compile else wrapped

    def to_device(batch) -> dict:
        return batch_tensors(batch, accelerator.device)

    def total(sums: torch.Tensor) -> torch.Tensor:
        """Add up over all processes."""
        if accelerator.num_processes == 1:
            return sums
        return accelerator.reduce(sums.to(accelerator.device), "sum").cpu()

    def measure() -> dict:
        return work.evaluate(to_device, total, accelerator.process_index, accelerator.num_processes)

    def log(line: dict, **clock: float) -> None:
        if main:
            run.append_metrics({"step": position.step, **line}, **clock)
        if training.tensorboard:
            accelerator.log({**line, **clock}, step=position.step)

    def save(metrics: dict) -> None:
        position.window = window.state(total)
        if main:
            checkpoints.save(run, position, work, optimizer.optimizer, metrics)

    position, state = Position(), run.latest_state()
    if state:
        position = checkpoints.load(run, state, work, optimizer.optimizer)
    if main:
        run.truncate_metrics(position.step if state else -1)
        run.write_config(run.settings(), **_facts(work.model, accelerator), **work.facts())
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
        for position.epoch, position.batch, micro_batches in work.batches(
                position, accelerator.process_index, accelerator.num_processes,
                ahead=accelerator.device.type != "cpu"):
            done = _progress(position.step, training, clock, total)
            if done >= 1.0 or _out_of_patience(position, training):
                break

            # One update. Dropout and ELECTRA's samples are keyed by the step, not by the past.
            torch.manual_seed(_step_seed(training.seed, position.step, accelerator.process_index))
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(done, training) * group.get("scale", 1.0)
            outputs, norm = update(accelerator, compiled, optimizer, micro_batches, weights,
                                   training.clip, total, _keep_bad_batch(run, position.step + 1))
            for measured, batch in zip(outputs, micro_batches):
                window.add(measured, batch)

            step = position.step = position.step + 1
            position.batch += 1
            if work.starts_over(step):
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
                bar.set_postfix({name: f"{line.get(f'{name}_accuracy', line[f'{name}_loss']):.3f}"
                                 for name in weights})
            with window.paused():
                measured = {}
                if step % training.evaluate_every == 0 or ended:
                    measured = measure()
                    if measured:
                        log(measured, seconds=clock.seconds())
                        _note_best(position, work.judged(measured))
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
                         message=work.stalled if early else "")
        run.clear_stop()


def update(accelerator: Accelerator, loss_module, optimizer, micro_batches: list,
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


def batch_tensors(batch, device) -> dict:
    """A batch's ``inputs`` as the keyword arguments of a loss module, on the device."""
    return {name: None if array is None else torch.from_numpy(array).to(device, non_blocking=True)
            for name, array in batch.inputs.items()}


# -- numbers that went wrong -------------------------------------------------------------------


def _keep_bad_batch(run: Run, step: int):
    """A function that saves the batch at which the loss failed, and says where."""
    def keep(batch) -> tuple[int, str]:
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


def _note_best(position: Position, judged: float) -> None:
    if position.best is None or judged < position.best:
        position.best, position.waited = judged, 0
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


def _compiled(module):
    import shutil

    if not (shutil.which("g++") or shutil.which("clang++") or torch.cuda.is_available()):
        raise BertScopeError("training.compile needs a C++ compiler (g++) on this machine.")
    return torch.compile(module)


def _tracking(run: Run, wished: bool) -> dict:
    """Accelerate's own tracker, where event files are wished for."""
    if not wished:
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


def _facts(model, accelerator: Accelerator) -> dict:
    """What the run's record says of any model and machine."""
    packages = ("torch", "transformers", "tokenizers", "accelerate", "numpy")
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "device": str(accelerator.device), "processes": accelerator.num_processes,
        "precision": accelerator.mixed_precision,
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
    }


@contextmanager
def _failures_noted(run: Run, main: bool):
    """A failure's sentence goes to the status, a defect's traceback to the log as well."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, OSError) and not run.path.is_dir():
            raise BertScopeError(f"The folder of run {run.name!r} was deleted: its training ends.") \
                from None
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
