"""The training loop: one for every recipe."""
