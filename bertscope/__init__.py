"""BertScope: pretrain a small BERT and watch it learn."""

__version__ = "0.1.0"
