"""Where words begin: by "##" in WordPiece, by a segmenter in text that is written without spaces."""

from __future__ import annotations

import re

import numpy as np

#: Chinese characters, each a word piece of its own in BERT's tokenizers.
_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def continuing(tokenizer) -> np.ndarray:
    """Which pieces of the vocabulary go on with the word before, bool [vocabulary]."""
    flags = np.zeros(len(tokenizer), dtype=bool)
    flags[[i for piece, i in tokenizer.get_vocab().items() if piece.startswith("##")]] = True
    return flags


def without_spaces(text: str) -> bool:
    """Whether a text needs a segmenter: it has Chinese characters."""
    return _CHINESE.search(text) is not None


def segmented(text: str, offsets: list[tuple[int, int]]) -> np.ndarray:
    """Which pieces begin a word, bool [pieces], by the segmenter jieba (Cui et al. 2021 mask whole
    words of Chinese by such a segmenter's boundaries).

    Args:
        offsets: each piece's (start, end) in the characters of ``text``.

    A boundary of the segmenter within a piece begins no word: the piece belongs to the one before.
    """
    import rjieba

    lengths = [len(word) for word in rjieba.cut(text)]
    boundaries = set(np.cumsum([0, *lengths]).tolist())
    starts = np.array([start in boundaries for start, _ in offsets], dtype=bool)
    starts[:1] = True
    return starts
