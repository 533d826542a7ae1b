"""The training loop. Read it from top to bottom: prepare, build, then step after step.

It runs the same for every recipe and for fine-tuning, on a CPU, a GPU, or many of them under
``torchrun`` or ``accelerate launch``: Hugging Face Accelerate moves, wraps and scales. When
something is learnt, measured and saved stands here; what that is, in the run's ``Work``.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress

import numpy as np
import torch
from accelerate import Accelerator
from tqdm import tqdm

from bertscope.runs import Run
from bertscope.training import checkpoints, machine
from bertscope.training.interruptions import Stopped, failures_noted, stop_signals
from bertscope.training.opening import open_work
from bertscope.training.progress import Clock, Position, StatusWriter, Window
from bertscope.training.schedule import is_checkpoint_step, learning_rate
from bertscope.training.update import batch_tensors, keep_bad_batch, update


def train(run: Run) -> None:
    """Train ``run`` from its last saved state, or from the start, until it is finished or stopped.

    Ctrl-C, SIGTERM and a file ``STOP`` in the run's folder finish the step, save and return; a
    second Ctrl-C ends at once. How it ended stands in the run's status.

    Raises:
        BertScopeError: the data, the configuration or a saved state cannot be used.
    """
    main = machine.is_first()
    with ExitStack() as stack:
        if main:
            stack.enter_context(run.lock())
            run.tidy()
            run.write_status(state="preparing", locked=True, message="preparing the data")
        stack.enter_context(failures_noted(run, main))
        stop = stack.enter_context(stop_signals())
        accelerator = machine.accelerator(run, run.settings().training)
        with suppress(Stopped):
            Training(run, accelerator, stop).go()


class Training:
    """A run being trained: what is built once, and where it stands."""

    def __init__(self, run: Run, accelerator: Accelerator, stop: dict):
        self.run, self.accelerator, self.stop = run, accelerator, stop
        self.main = accelerator.is_main_process
        self.note = StatusWriter(run, self.main)
        with accelerator.main_process_first():  # the others find the data prepared
            self.work = open_work(run, self._preparing)
        self.settings = self.work.training
        self.loss_module = self.work.loss_module.to(accelerator.device)
        wrapped, self.optimizer = accelerator.prepare(self.loss_module, self.work.optimizer())
        self.compiled = machine.compiled(wrapped) if self.settings.compile else wrapped
        state = run.latest_state()
        self.fresh = state is None
        self.position = Position() if self.fresh else checkpoints.load(
            run, state, self.work, self.optimizer.optimizer)
        self.clock = Clock(self.position.seconds)
        self.window = Window(self.work.weights, self.position.window if self.main else {})

    def _preparing(self, message: str, fraction: float | None) -> None:
        self.note.preparing(message, fraction)
        if self.stop["asked"] or self.run.stop_asked():
            self.run.write_status(state="stopped", message="stopped while the data was prepared")
            self.run.clear_stop()
            raise Stopped

    def go(self) -> None:
        """From where the run stands to its end."""
        self._open_books()
        with tqdm(total=None if self.settings.max_minutes else self.settings.steps,
                  initial=self.position.step, unit="step", smoothing=0.05,
                  disable=not (self.main and sys.stderr.isatty())) as bar:
            if self.fresh:
                self._save(self._measure())
            self.loss_module.train()
            for self.position.epoch, self.position.batch, micro_batches in self.work.batches(
                    self.position, self.accelerator.process_index, self.accelerator.num_processes,
                    ahead=self.accelerator.device.type != "cpu"):
                done = self._done()
                if done >= 1.0 or self._out_of_patience():
                    break
                norm = self._update(micro_batches, done)
                self._move_on(micro_batches)
                bar.update()
                if self._tell_and_save(norm, bar):
                    break
        self._close_books()

    # -- a step ---------------------------------------------------------------------------------

    def _update(self, micro_batches: list, done: float) -> torch.Tensor:
        """Learn from one batch; returns the gradient's norm before clipping."""
        # Dropout and ELECTRA's samples are keyed by the step, not by the past.
        step = self.position.step
        torch.manual_seed(_step_seed(self.settings.seed, step, self.accelerator.process_index))
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(done, self.settings) * group.get("scale", 1.0)
        outputs, norm = update(self.accelerator, self.compiled, self.optimizer, micro_batches,
                               self.work.weights, self.settings.clip, self._total,
                               keep_bad_batch(self.run, step + 1))
        for measured, batch in zip(outputs, micro_batches):
            self.window.add(measured, batch)
        return norm

    def _move_on(self, micro_batches: list) -> None:
        position = self.position
        position.step += 1
        position.batch += 1
        if self.work.starts_over(position.step):
            position.epoch = position.batch = 0
        position.tokens += int(self._total(torch.tensor(
            [float(sum(batch.tokens for batch in micro_batches))], dtype=torch.float64)))
        position.seconds = self.clock.seconds()

    def _tell_and_save(self, norm: torch.Tensor, bar: tqdm) -> bool:
        """What is said, measured and saved after a step; returns whether it was the last one."""
        settings, step, done = self.settings, self.position.step, self._done()
        stopping = self._agreed(self.stop["asked"] or (self.main and self.run.stop_asked()))
        ended = done >= 1.0
        if step % settings.log_every == 0 or ended:
            self._log_window(norm, bar)
        with self.window.paused():
            measured = {}
            if step % settings.evaluate_every == 0 or ended:
                measured = self._measure()
                if measured:
                    self._note_best(self.work.judged(measured))
            ended = ended or self._out_of_patience()
            if is_checkpoint_step(step, settings.checkpoint_every) or ended or stopping:
                self._save(measured)
        self.note.training(step, settings.steps, done, self.clock.seconds(), self.window.rate)
        return ended or stopping

    # -- what is written ------------------------------------------------------------------------

    def _open_books(self) -> None:
        if self.main:
            self.run.truncate_metrics(-1 if self.fresh else self.position.step)
            self.run.write_config(self.run.settings(), **machine.facts(self.work.model, self.accelerator),
                                  **self.work.facts())
        if self.settings.tensorboard:
            self.accelerator.init_trackers("tensorboard")  # the folder's name

    def _log(self, line: dict, **clock: float) -> None:
        if self.main:
            self.run.append_metrics({"step": self.position.step, **line}, **clock)
        if self.settings.tensorboard:
            self.accelerator.log({**line, **clock}, step=self.position.step)

    def _log_window(self, norm: torch.Tensor, bar: tqdm) -> None:
        line = self.window.line(self._total)
        self._log({**line, "gradient_norm": float(norm),
                   "learning_rate": self.optimizer.param_groups[0]["lr"], "epoch": self.position.epoch,
                   "tokens": self.position.tokens},
                  seconds=self.position.seconds, tokens_per_second=self.window.rate)
        bar.set_postfix({name: f"{line.get(f'{name}_accuracy', line[f'{name}_loss']):.3f}"
                         for name in self.work.weights})

    def _measure(self) -> dict:
        """Held-out numbers, logged."""
        measured = self.work.evaluate(
            lambda batch: batch_tensors(batch, self.accelerator.device), self._total,
            self.accelerator.process_index, self.accelerator.num_processes)
        if measured:
            self._log(measured, seconds=self.clock.seconds())
        return measured

    def _save(self, measured: dict) -> None:
        self.position.window = self.window.state(self._total)
        if self.main:
            checkpoints.save(self.run, self.position, self.work, self.optimizer.optimizer, measured)

    def _close_books(self) -> None:
        if self.settings.tensorboard:
            self.accelerator.end_training()
        early = self._out_of_patience()
        finished = early or self._done() >= 1.0
        if self.main:
            step = self.position.step
            self.run.write_status(state="finished" if finished else "stopped", step=step,
                                  total=step if finished else self.settings.steps,
                                  seconds=self.clock.seconds(), eta_seconds=0.0,
                                  message=self.work.stalled if early else "")
            self.run.clear_stop()

    # -- when it ends ---------------------------------------------------------------------------

    def _done(self) -> float:
        """Share of the training that is done, by the first process's clock where there is a limit."""
        if self.settings.max_minutes is None:
            return self.position.step / self.settings.steps
        elapsed = torch.tensor([self.clock.seconds() if self.main else 0.0], dtype=torch.float64)
        return float(self._total(elapsed)) / (60 * self.settings.max_minutes)

    def _note_best(self, judged: float) -> None:
        position = self.position
        if position.best is None or judged < position.best:
            position.best, position.waited = judged, 0
        else:
            position.waited += 1

    def _out_of_patience(self) -> bool:
        return self.settings.patience is not None and self.position.waited >= self.settings.patience

    # -- over all processes ---------------------------------------------------------------------

    def _total(self, sums: torch.Tensor) -> torch.Tensor:
        """Add up over all processes."""
        if self.accelerator.num_processes == 1:
            return sums
        return self.accelerator.reduce(sums.to(self.accelerator.device), "sum").cpu()

    def _agreed(self, asked: bool) -> bool:
        """Whether any process was asked."""
        return bool(self._total(torch.tensor([float(asked)], dtype=torch.float64)).item())


def _step_seed(seed: int, step: int, process: int) -> int:
    return int(np.random.SeedSequence([seed, step, process]).generate_state(1, np.uint64)[0] >> 1)
