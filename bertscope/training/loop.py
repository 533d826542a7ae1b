"""The training loop. Read it from top to bottom: prepare, build, then step after step.

It runs the same on a CPU, a GPU, or many of them under ``torchrun`` or ``accelerate launch``:
Hugging Face Accelerate moves, wraps and scales; what is learnt, and when it is saved, stands here.
"""

from __future__ import annotations

import os
import platform
import signal
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from importlib.metadata import version

import torch
from accelerate import Accelerator
from tqdm import tqdm

from bertscope.config import RunConfig
from bertscope.corpus import prepare
from bertscope.corpus.store import split_documents
from bertscope.errors import BertScopeError
from bertscope.models import PretrainingLoss, build
from bertscope.objectives import Batch, Examples
from bertscope.objectives.examples import evaluation_batches
from bertscope.runs import Run
from bertscope.training.checkpoints import Position, load_state, save_checkpoint, save_state
from bertscope.training.evaluation import evaluate, oracle_accuracy, unigram_baseline
from bertscope.training.optimizer import build_optimizer
from bertscope.training.schedule import is_checkpoint_step, learning_rate


def train(run: Run) -> None:
    """Train ``run`` from its last saved state, or from the start, until it is finished or stopped.

    Ctrl-C, SIGTERM and a file ``STOP`` in the run's folder finish the step, save and return; a
    second Ctrl-C ends at once. How it ended stands in the run's status.

    Raises:
        BertScopeError: the corpus, the configuration or a saved state cannot be used.
    """
    config = run.config()
    if config.training.threads:
        torch.set_num_threads(config.training.threads)
    accelerator = Accelerator(cpu=not torch.accelerator.is_available(),  # many CPUs need to be told
                              mixed_precision=_precision(config.training.precision))
    with ExitStack() as stack:
        if accelerator.is_main_process:
            stack.enter_context(run.lock())
            run.write_status(state="preparing", locked=True, message="preparing the corpus")
        stack.enter_context(_failures_noted(run, accelerator.is_main_process))
        stop = stack.enter_context(_stop_signals())
        _train(run, config, accelerator, stop)


def _train(run: Run, config: RunConfig, accelerator: Accelerator, stop: dict) -> None:
    training, main = config.training, accelerator.is_main_process
    note = _StatusWriter(run, main)

    # The corpus: the first process prepares it, the others find it prepared.
    with accelerator.main_process_first():
        corpus = prepare(config.corpus, run.path.parent, note.preparing)
    tokenizer, store = corpus.tokenizer, corpus.store
    train_documents, held_out = split_documents(
        len(store.document_offsets) - 1, config.corpus.held_out)
    examples = Examples(store, train_documents, tokenizer, config.objective, training.seed)
    heldout_batches = list(evaluation_batches(
        store, held_out, tokenizer, config.objective, training.evaluation_examples, 64)
    ) if len(held_out) > 1 else []

    # The model. Its loss is a module of its own, so that the wrapped forward does only that.
    model = build(config.model, tokenizer, config.objective.max_length, training.seed)
    torch.manual_seed(training.seed + accelerator.process_index)  # dropout
    loss_module = PretrainingLoss(model).to(accelerator.device)
    optimizer = build_optimizer(model, training)
    wrapped, optimizer = accelerator.prepare(loss_module, optimizer)

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
        return evaluate(loss_module, share, to_device, total)

    position = Position()
    state = run.latest_state()
    if state:
        position = load_state(run, state, model, optimizer.optimizer)
        if accelerator.process_index:  # the saved random state is the first process's
            torch.manual_seed(training.seed + accelerator.process_index + position.step)
    if main:
        run.truncate_metrics(position.step if state else -1)
        run.write_config(config, **_facts(model, corpus, train_documents, held_out,
                                          heldout_batches, accelerator))

    def save(metrics: dict) -> None:
        if main:
            save_checkpoint(run, position.step, model, tokenizer, metrics)
            save_state(run, position, model, optimizer.optimizer)

    clock = _Clock(position.seconds)
    window = _Window()
    bar = tqdm(total=None if training.max_minutes else training.steps, initial=position.step,
               unit="step", disable=not (main and sys.stderr.isatty()), smoothing=0.05)
    batches = _batches(examples, position, training.batch_size, training.accumulation,
                       accelerator.process_index, accelerator.num_processes)
    with bar:
        if not state:
            measured = measure()
            if main and measured:
                run.append_metrics({"step": 0, **measured, "seconds": clock.seconds()})
            save(measured)
        loss_module.train()
        for position.epoch, position.batch, micro_batches in batches:
            done = _progress(position.step, training, clock, total)
            if done >= 1.0:
                break

            for group in optimizer.param_groups:
                group["lr"] = learning_rate(done, training.learning_rate, training.warmup)
            outputs, norm = update(accelerator, wrapped, optimizer, micro_batches, training.clip,
                                   total)
            for out, batch in zip(outputs, micro_batches):
                window.add(out, batch)

            step = position.step = position.step + 1
            position.batch += 1
            position.tokens += sum(batch.tokens for batch in micro_batches) * accelerator.num_processes
            position.seconds = clock.seconds()
            bar.update()

            done = _progress(step, training, clock, total)
            stopping = _agreed(stop["asked"] or (main and run.stop_asked()), total)
            ended = done >= 1.0 or stopping
            if step % training.log_every == 0 or ended:
                line = window.line(total)
                if not line["loss"] < float("inf"):
                    raise BertScopeError(
                        f"The loss is no longer a number at step {step}: the learning rate is "
                        "probably too high. The checkpoints before it are whole.")
                if main:
                    run.append_metrics({
                        "step": step, **line, "gradient_norm": float(norm),
                        "learning_rate": optimizer.param_groups[0]["lr"],
                        "epoch": position.epoch, "tokens": position.tokens,
                        "seconds": position.seconds})
                    bar.set_postfix(loss=f"{line['loss']:.3f}", mlm=f"{line['mlm_accuracy']:.3f}",
                                    nsp=f"{line['nsp_accuracy']:.3f}")
            with window.paused():
                measured = {}
                if step % training.evaluate_every == 0 or ended:
                    measured = measure()
                    if main and measured:
                        run.append_metrics({"step": step, **measured, "seconds": clock.seconds()})
                if is_checkpoint_step(step, training.checkpoint_every) or ended:
                    save(measured)
            note.training(step, training.steps, done, clock.seconds(), window.rate)
            if ended:
                break
    if main:
        finished = _progress(position.step, training, clock, total) >= 1.0
        run.write_status(state="finished" if finished else "stopped", step=position.step,
                         total=position.step if finished else training.steps,
                         seconds=clock.seconds(), eta_seconds=0.0, message="")
        run.clear_stop()


def update(accelerator: Accelerator, loss_module, optimizer, micro_batches: list[Batch],
           clip: float, total=lambda sums: sums) -> tuple[list, torch.Tensor]:
    """One optimiser step; returns the micro-batches' outputs and the gradient's norm before clipping.

    The summed losses are divided by what the whole update predicts, over micro-batches and
    processes: a mean of means would weigh short rows more.
    """
    masked, rows = total(torch.tensor(
        [sum(b.masked for b in micro_batches),
         sum(len(b.next_sentence_label) for b in micro_batches)], dtype=torch.float64)).tolist()
    outputs = []
    for batch in micro_batches:
        last = batch is micro_batches[-1]
        with nullcontext() if last else accelerator.no_sync(loss_module):
            out = loss_module(**batch_tensors(batch, accelerator.device))
            loss = out.mlm_loss / masked + out.nsp_loss / rows
            accelerator.backward(loss * accelerator.num_processes)  # DDP takes the mean of these
        outputs.append(out)
    norm = accelerator.clip_grad_norm_(loss_module.parameters(), clip or float("inf"))
    optimizer.step()
    optimizer.zero_grad()
    return outputs, norm


def batch_tensors(batch: Batch, device) -> dict:
    """A batch as the keyword arguments of ``PretrainingLoss``, on the device."""
    names = ("input_ids", "token_type_ids", "attention_mask", "masked_lm_positions",
             "masked_lm_labels", "next_sentence_label")
    arrays = {name: getattr(batch, name) for name in names}
    return {name: None if array is None else torch.from_numpy(array).to(device, non_blocking=True)
            for name, array in arrays.items()}


def _precision(wish: str) -> str:
    """Accelerate's name of the precision; ``auto`` is bf16 on a GPU that has it."""
    cuda = torch.cuda.is_available()
    if wish == "auto":
        return "bf16" if cuda and torch.cuda.is_bf16_supported() else "no"
    if wish == "fp16" and not cuda:
        raise BertScopeError("Precision fp16 needs a GPU; choose fp32 or auto.")
    return "no" if wish == "fp32" else wish


def _progress(step: int, training, clock: _Clock, total) -> float:
    """Share of the training that is done, by the first process's clock where there is a limit."""
    if training.max_minutes is None:
        return step / training.steps
    elapsed = torch.tensor([clock.seconds() if _is_first() else 0.0], dtype=torch.float64)
    return float(total(elapsed)) / (60 * training.max_minutes)


def _is_first() -> bool:
    return int(os.environ.get("RANK", "0")) == 0


def _agreed(asked: bool, total) -> bool:
    return bool(total(torch.tensor([float(asked)], dtype=torch.float64)).item())


def _batches(examples: Examples, position: Position, batch_size: int, accumulation: int,
             rank: int, processes: int):
    """Yield (epoch, number, micro-batches of this process), for ever, from ``position`` on.

    The next update's batches are made while the present one is computed.
    """
    def produce():
        epoch, first = position.epoch, position.batch
        while True:
            order = examples.order(epoch, batch_size * accumulation * processes)
            for number in range(first, len(order)):
                mine = order[number].reshape(accumulation, processes, batch_size)[:, rank]
                yield epoch, number, [examples.batch(epoch, indices) for indices in mine]
            epoch, first = epoch + 1, 0

    with ThreadPoolExecutor(1) as pool:
        produced = produce()
        pending = pool.submit(next, produced)
        while True:
            ready = pending.result()
            pending = pool.submit(next, produced)
            yield ready


class _Clock:
    """Seconds of training, those before a resume included."""

    def __init__(self, before: float):
        self.start = time.monotonic() - before

    def seconds(self) -> float:
        return time.monotonic() - self.start


class _Window:
    """Sums since the last logged line, kept on the device: reading them each step would stall."""

    def __init__(self):
        self.sums, self.counts, self.since = None, [0, 0, 0], time.monotonic()
        self.rate = 0.0

    def add(self, out, batch: Batch) -> None:
        sums = torch.stack([out.mlm_loss.detach(), out.mlm_correct.float(),
                            out.nsp_loss.detach(), out.nsp_correct.float()]).double()
        self.sums = sums if self.sums is None else self.sums + sums
        for i, n in enumerate((batch.masked, len(batch.next_sentence_label), batch.tokens)):
            self.counts[i] += n

    @contextmanager
    def paused(self):
        """Time spent on evaluation and saving is not training speed."""
        start = time.monotonic()
        yield
        self.since += time.monotonic() - start

    def line(self, total) -> dict:
        """Means over the window and over all processes; begins a new window."""
        sums = total(torch.cat([self.sums.cpu(), torch.tensor(self.counts, dtype=torch.float64)]))
        mlm_loss, mlm_correct, nsp_loss, nsp_correct, masked, rows, tokens = sums.tolist()
        now = time.monotonic()
        self.rate = tokens / max(now - self.since, 1e-9)
        self.sums, self.counts, self.since = None, [0, 0, 0], now
        return {"loss": mlm_loss / masked + nsp_loss / rows, "mlm_loss": mlm_loss / masked,
                "nsp_loss": nsp_loss / rows, "mlm_accuracy": mlm_correct / masked,
                "nsp_accuracy": nsp_correct / rows, "tokens_per_second": self.rate}


class _StatusWriter:
    """Keeps ``status.json`` fresh, at most twice a second."""

    def __init__(self, run: Run, enabled: bool):
        self.run, self.enabled, self.last = run, enabled, 0.0

    def _due(self) -> bool:
        now = time.monotonic()
        if not self.enabled or now - self.last < 0.5:
            return False
        self.last = now
        return True

    def preparing(self, message: str, fraction: float | None) -> None:
        if self._due():
            self.run.write_status(state="preparing", message=message, fraction=fraction)

    def training(self, step: int, total: int, done: float, seconds: float, rate: float) -> None:
        if self._due():
            self.run.write_status(
                state="training", step=step, total=total, message="", fraction=min(done, 1.0),
                seconds=seconds, tokens_per_second=rate,
                eta_seconds=seconds * (1 - done) / done if done > 0 else None)


def _facts(model, corpus, train_documents, held_out, heldout_batches, accelerator) -> dict:
    """What the run's record says beside its configuration."""
    store = corpus.store
    baselines = {}
    if heldout_batches:
        baselines = unigram_baseline(store, held_out, heldout_batches, len(corpus.tokenizer))
        if store.oracle is not None:
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
        if main:
            known = isinstance(error, BertScopeError)
            if not known and not isinstance(error, KeyboardInterrupt):
                traceback.print_exc()
            message = str(error) if known else f"{type(error).__name__}: {error}"
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
