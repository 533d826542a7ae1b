"""Cross-entropy over the vocabulary, and its gradient, in one pass over the logits.

``loss = sum_i logsumexp(W h_i + b) - (W h_i + b)[label_i]`` has the gradient ``softmax - one_hot``
with respect to the logits. Both come from the same numbers, so they are made together and in place,
a block of rows at a time: no second [M, vocabulary] for the normalisation's backward, none for the
argmax, and the memory of one block. (As in the fused losses of Hsu et al. 2024, "Liger Kernel", and
Wijmans et al. 2024, "Cut Your Losses in Large-Vocabulary Language Models"; here in plain PyTorch.)
"""

from __future__ import annotations

import torch
from torch.autograd.function import once_differentiable

#: Logits held at a time: 16 MiB on a CPU, 256 MiB on a GPU, which wants larger products.
BLOCK = {"cpu": 1 << 22, "cuda": 1 << 26}


def vocabulary_loss(hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
                    labels: torch.Tensor, smoothing: float = 0.0,
                    ) -> tuple[torch.Tensor, torch.Tensor]:
    """Summed negative log likelihood in nats, and how many labels are a likeliest piece.

    Args:
        hidden: [M, hidden_size]; weight: [vocabulary, hidden_size]; bias: [vocabulary].
        labels: int64 [M]; those below 0 are left out.
        smoothing: share of each label given to all pieces alike (Szegedy et al. 2016, section 7).

    Returns:
        ``loss`` (float32 scalar, differentiable once) and ``correct`` (int64 scalar).
    """
    return _VocabularyLoss.apply(hidden, weight, bias, labels, smoothing)


class _VocabularyLoss(torch.autograd.Function):

    @staticmethod
    def forward(ctx, hidden, weight, bias, labels, smoothing):
        wanted = any(ctx.needs_input_grad[:3])
        rows = max(1, BLOCK.get(hidden.device.type, 1 << 26) // len(weight))
        loss, correct = hidden.new_zeros((), dtype=torch.float32), labels.new_zeros(())
        if wanted:
            grads = [torch.empty_like(hidden, dtype=torch.float32), None, None]
        for start in range(0, len(hidden), rows):
            part = slice(start, start + rows)
            h, label = hidden[part], labels[part]
            kept = label >= 0
            place = label.clamp(min=0)[:, None]
            log_probs = torch.addmm(bias, h, weight.t()).float().log_softmax(-1)
            own = log_probs.gather(1, place)[:, 0]
            likelihood = own if not smoothing else \
                (1 - smoothing) * own + smoothing * log_probs.mean(-1)
            loss -= (likelihood * kept).sum()
            correct += ((own >= log_probs.amax(-1)) & kept).sum()
            if wanted:
                grad = log_probs.exp_()
                if smoothing:
                    grad -= smoothing / len(weight)
                grad.scatter_add_(1, place, grad.new_full(place.shape, smoothing - 1.0))
                grad *= kept[:, None]
                grads[0][part] = grad @ weight
                products = grad.t() @ h.float(), grad.sum(0)
                grads[1:] = products if not start else map(torch.add, grads[1:], products)
        if wanted:
            ctx.save_for_backward(*grads)
            ctx.types = hidden.dtype, weight.dtype, bias.dtype
        ctx.mark_non_differentiable(correct)
        return loss, correct

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss, _):
        return *((grad * grad_loss).to(kind)
                 for grad, kind in zip(ctx.saved_tensors, ctx.types)), None, None
