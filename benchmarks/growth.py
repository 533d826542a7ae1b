"""How the cost of training grows: one property of the model or the batch changed at a time.

    python benchmarks/growth.py

Speed is that of ``bertscope plan``: the best of a few steps at full length on this machine.
"""

from __future__ import annotations

import os

from bertscope.launch import TRAINER_THREADS

BASE = {"model.num_hidden_layers": 2, "model.hidden_size": 128, "objective.max_length": 128,
        "training.batch_size": 32, "corpus.vocab_size": 8192, "model.dropout": 0.0}
GROWING = {
    "depth": ("model.num_hidden_layers", (1, 2, 4, 8)),
    "width": ("model.hidden_size", (64, 128, 256, 512)),
    "length": ("objective.max_length", (32, 64, 128, 256, 512)),
    "batch": ("training.batch_size", (8, 16, 32, 64)),
    "vocabulary": ("corpus.vocab_size", (1024, 4096, 8192, 30522)),
}


def main() -> None:
    os.environ.update(TRAINER_THREADS)  # before torch is loaded
    from bertscope.config import RunConfig
    from bertscope.training.cost import plan

    print("| what | value | parameters | memory, MiB | MFLOP a token | attention | tokens a second |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for what, (key, values) in GROWING.items():
        for value in values:
            changes = {**BASE, key: value}
            if what == "length":  # as many pieces a batch
                changes["training.batch_size"] = max(1, 32 * 128 // value)
            width = changes["model.hidden_size"]
            changes |= {"model.num_attention_heads": max(1, width // 64),
                        "model.intermediate_size": 4 * width}
            cost = plan(RunConfig().override(changes))
            print(f"| {what} | {value:,} | {sum(cost.parameters.values()):,} | "
                  f"{sum(cost.memory.values()) / 2**20:,.0f} | {cost.flops_per_token / 1e6:.1f} | "
                  f"{cost.attention_share:.0%} | {cost.tokens_per_second:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
