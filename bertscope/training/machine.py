"""The machine that a run is trained on: device, precision, processes, and what is recorded of them."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.metadata import version
from importlib.util import find_spec

import torch
from accelerate import Accelerator

from bertscope.config import TrainingConfig
from bertscope.errors import BertScopeError
from bertscope.runs import Run


def is_first() -> bool:
    """Whether this is the only process or the first of several, by what their launcher says: known before
    the devices are asked for."""
    return int(os.environ.get("RANK", "0")) == 0


def accelerator(run: Run, training: TrainingConfig) -> Accelerator:
    """Hugging Face's handle on the devices, as the run's settings want it.

    Raises:
        BertScopeError: the precision or the tracker is not to be had here.
    """
    # Moments and probabilities of rare pieces shrink below the smallest normal number, and a CPU
    # takes many times as long for those: a small model's steps became twice as slow in a minute.
    torch.set_flush_denormal(True)
    if training.threads:
        torch.set_num_threads(training.threads)
    return Accelerator(cpu=not torch.accelerator.is_available(),  # many CPUs need to be told
                       mixed_precision=_precision(training.precision),
                       **_tracking(run, training.tensorboard))


def compiled(module):
    """``torch.compile`` of a loss module.

    Raises:
        BertScopeError: there is no compiler.
    """
    if not (shutil.which("g++") or shutil.which("clang++") or torch.cuda.is_available()):
        raise BertScopeError("training.compile needs a C++ compiler (g++) on this machine.")
    return torch.compile(module)


def facts(model, accelerator: Accelerator) -> dict:
    """What the run's record says of any model and machine."""
    packages = ("torch", "transformers", "tokenizers", "accelerate", "numpy")
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "device": str(accelerator.device), "processes": accelerator.num_processes,
        "precision": accelerator.mixed_precision,
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
    }


def _tracking(run: Run, wished: bool) -> dict:
    """Accelerate's own tracker, where event files are wished for."""
    if not wished:
        return {}
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
