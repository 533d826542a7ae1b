"""From text to token ids: sources, sentences, WordPiece, and the memory-mapped token store."""

from bertscope.corpus.prepare import Prepared, prepare

__all__ = ["Prepared", "prepare"]
