"""What a configuration will cost, before it is trained.

Parameters are counted on the model itself, activations by what autograd saves in a real step, and
operations by counting those of a real step; the time is measured in a few steps on this machine.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from bertscope.config import RunConfig
from bertscope.errors import BertScopeError
from bertscope.models import build, build_loss
from bertscope.objectives import Batch, Examples
from bertscope.training.optimizer import build_optimizer
from bertscope.training.update import batch_tensors, update

FLOAT = 4  # bytes
#: The steps that are measured keep about so much at most, and take about so long.
MEMORY, SECONDS = 1 << 30, 5.0
#: Bytes that a layer keeps per piece and unit of width, roughly; only the size of a trial goes by it.
PER_LAYER = 80


@dataclass(frozen=True)
class Cost:
    """Numbers of one configuration.

    ``parameters``: by part. ``memory``: bytes of weights, gradients, optimiser and activations.
    ``flops_per_token``: multiplications and additions, forward and backward. ``attention_share``:
    the share of them that grows with the square of the length (scores and mixing).
    ``tokens_per_second`` and ``seconds``: measured here, and what the whole training would take.
    """

    parameters: dict[str, int]
    memory: dict[str, int]
    flops_per_token: float
    attention_share: float
    tokens_per_second: float
    seconds: float
    device: str


def plan(config: RunConfig, most_parameters: float = float("inf")) -> Cost:
    """Build the model, take a few steps on random text of the full length, and count.

    Where a whole batch would take long or much memory, fewer examples are measured and the rest is
    scaled up. Nothing is read from disk, nothing is written: the vocabulary counts as large as the
    configuration says.

    Raises:
        BertScopeError: the model has more than ``most_parameters``.
    """
    with torch.device("meta"):
        number = sum(p.numel() for p in build(config, _Vocabulary(config.corpus.vocab_size)).parameters())
    if number > most_parameters:
        raise BertScopeError(f"A model of {number:,} parameters is too large to be tried out beside "
                             "the app; 'bertscope plan' does it.")
    accelerator = Accelerator(cpu=not torch.accelerator.is_available())
    vocabulary = _Vocabulary(config.corpus.vocab_size)
    model = build(config, vocabulary)
    loss_module, optimizer = accelerator.prepare(
        build_loss(config, model).train(), build_optimizer(model, config.training))
    rows = _rows(config)
    tried = max(1, min(rows, MEMORY // (PER_LAYER * config.objective.max_length
                                        * config.model.hidden_size
                                        * config.model.num_hidden_layers)))
    batch = _full_batch(config, vocabulary, tried)
    scale = rows / tried
    activations = round(scale * _activation_bytes(loss_module, batch, accelerator.device))
    flops, attention = _flops(loss_module, batch, accelerator.device)

    def step() -> float:
        started = time.perf_counter()
        update(accelerator, loss_module, optimizer, [batch], config.objectives, config.training.clip)
        if accelerator.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - started

    taken = [step()]
    while len(taken) < 8 and sum(taken) < SECONDS:
        taken.append(step())
    tokens_per_second = batch.tokens / min(taken)  # the first are warming up
    parameters = parameters_by_part(model)
    total = sum(parameters.values())
    training = config.training
    pieces = scale * batch.tokens * training.accumulation * training.steps
    whole = 60 * training.max_minutes if training.max_minutes else pieces / tokens_per_second
    return Cost(
        parameters=parameters,
        memory={"weights": FLOAT * total, "gradients": FLOAT * total, "optimiser": 2 * FLOAT * total,
                "activations": activations},
        flops_per_token=flops / batch.tokens, attention_share=attention,
        tokens_per_second=tokens_per_second, seconds=whole,
        device=str(accelerator.device))


def parameters_by_part(model: nn.Module) -> dict[str, int]:
    """Parameters of the embeddings, the encoder's attention and feed-forward blocks, its
    normalisations, the heads and ELECTRA's generator; shared ones once."""
    counts: Counter = Counter()
    for name, parameter in model.named_parameters():
        counts[_part(name)] += parameter.numel()
    return dict(counts)


def _part(name: str) -> str:
    lowered = name.lower().replace("_", "")
    if "embeddings." in name and "rel_" not in name:
        return "embeddings"
    if name.startswith("generator."):
        return "generator"
    if ".encoder." not in name:
        return "heads"
    if "layernorm" in lowered:
        return "normalisation"
    return "attention" if "attention" in lowered or "rel_embeddings" in name else "feed-forward"


class _Vocabulary:
    """What the example builder asks of a tokenizer."""

    pad_token_id, unk_token_id, cls_token_id, sep_token_id, mask_token_id = range(5)
    all_special_ids = list(range(5))

    def __init__(self, size: int):
        self.size = size

    def __len__(self) -> int:
        return self.size

    def get_vocab(self) -> dict[str, int]:
        return {str(i): i for i in range(self.size)}


def _rows(config: RunConfig) -> int:
    tokens, length = config.training.batch_tokens, config.objective.max_length
    return max(1, tokens // length) if tokens else config.training.batch_size


def _full_batch(config: RunConfig, vocabulary: _Vocabulary, rows: int) -> Batch:
    """A batch of random pieces in which every row is as long as it may be."""
    length = config.objective.max_length

    class Text:
        ids = np.random.default_rng(0).integers(5, len(vocabulary), 8 * (rows + 2) * length)
        sentence_offsets = np.arange(len(ids) + 1)  # of one piece: examples can be filled up
        document_offsets = np.arange(0, len(sentence_offsets), 4 * length)

    examples = Examples(Text, np.arange(len(Text.document_offsets) - 1), vocabulary,
                        config.objective, config.training.seed)
    lengths = examples.plan(0).lengths
    return examples.batch(0, np.argsort(-lengths, kind="stable")[:rows])


def _activation_bytes(loss_module: nn.Module, batch: Batch, device) -> int:
    """Bytes that autograd keeps for the backward pass, each storage once, parameters left out."""
    own = {p.untyped_storage().data_ptr() for p in loss_module.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        measured = loss_module(**batch_tensors(batch, device))
        total = sum(part.loss for part in measured.values())
    del total
    return sum(kept.values())


def _flops(loss_module: nn.Module, batch: Batch, device) -> tuple[float, float]:
    """Operations of one forward and backward pass, and the share of attention's two products."""
    # The plain kernel, so that its matrix products are seen one by one.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        measured = loss_module(**batch_tensors(batch, device))
        sum(part.loss for part in measured.values()).backward()
    loss_module.zero_grad()
    counts = counter.get_flop_counts()["Global"]
    batched = sum(n for kind, n in counts.items() if "bmm" in str(kind))
    return float(sum(counts.values())), batched / max(sum(counts.values()), 1)
