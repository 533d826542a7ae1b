"""WordPiece training (Schuster and Nakajima 2012; Devlin et al. 2019, section 3).

``tokenizers`` does the counting and merging. On its own it numbers pieces in the order of a hash
table, so that every training gives other ids; here the alphabet is chosen and numbered first,
which makes the result a function of the text alone.
"""

from __future__ import annotations

import re
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from transformers import BertTokenizerFast, PreTrainedTokenizerBase

#: Ids 0 to 4.
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
#: The vocabulary's size is a multiple of this: matrix products are faster then.
MULTIPLE = 64
#: A character outside ASCII must be one of so many to get a piece; noise does not.
RAREST = 100_000
#: Characters in a row without a space that are no word (encoded data): not trained on.
_NO_WORD = re.compile(r"\S{1001,}")


def train_tokenizer(sentences: Iterable[str], vocab_size: int, lowercase: bool,
                    ) -> BertTokenizerFast:
    """A BERT tokenizer trained on the sentences, which are read once and may be a generator.

    ``len(tokenizer)`` is ``vocab_size`` rounded up to a multiple of 64. A text too small for so
    many pieces gives the next multiple of 64 above what it has. Left-over places are filled with
    ``[unusedN]`` in the vocabulary itself, so that it and the model's table agree wherever the
    tokenizer is opened. ``lowercase`` also strips accents, as the uncased BERTs do.

    The same sentences give the same ids. Memory is bounded; a copy of the text goes to the
    temporary folder.

    Raises:
        BertScopeError: there is nothing to train on.
    """
    vocab_size = _round_up(vocab_size)
    normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=lowercase)
    with tempfile.TemporaryDirectory(prefix="bertscope-") as folder:
        copy = Path(folder) / "sentences.txt"
        characters = _copy_and_count(sentences, copy, normalizer)
        if not characters:
            raise BertScopeError("There is no text to train a tokenizer on.")
        alphabet = _alphabet(characters, vocab_size)
        # Named as special, the pieces of single characters get their ids before the hash table
        # of words is walked; the trainer's own tokenizer is thrown away.
        first = [*SPECIAL, *alphabet]
        worker = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        worker.normalizer = normalizer
        worker.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        worker.train([str(copy)], trainers.WordPieceTrainer(
            vocab_size=vocab_size, special_tokens=first, limit_alphabet=0, show_progress=False))
    vocabulary = worker.get_vocab()
    for number in range(_round_up(len(vocabulary)) - len(vocabulary)):
        vocabulary[f"[unused{number}]"] = len(vocabulary)
    return _bert(vocabulary, lowercase)


def open_tokenizer(path: str | Path) -> PreTrainedTokenizerBase:
    """A tokenizer directory of any model with ``[CLS]``, ``[SEP]``, ``[MASK]`` and padding.

    Raises:
        BertScopeError: it is missing or damaged, or lacks one of these.
    """
    from transformers import AutoTokenizer

    if not Path(path).is_dir():
        raise BertScopeError(f"There is no tokenizer folder called {str(path)!r}.")
    if not any((Path(path) / name).is_file() for name in _FILES):
        raise BertScopeError(f"The folder {path} has no tokenizer in it.")
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(path), local_files_only=True,
                                                  trust_remote_code=False)
    except Exception as error:  # whatever a stranger's files provoke
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise BertScopeError(f"The tokenizer in {path} cannot be opened: {reason}") from None
    if not getattr(tokenizer, "is_fast", False):
        raise BertScopeError(f"The tokenizer in {path} is not one of the tokenizers library, "
                             "which building a token store needs.")
    missing = [name for name in ("cls", "sep", "mask", "pad")
               if getattr(tokenizer, f"{name}_token_id") is None]
    if missing:
        raise BertScopeError(f"The tokenizer in {path} has no {missing[0]} token, which masked "
                             "language modelling needs.")
    return tokenizer


_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model")


def _bert(vocabulary: dict[str, int], lowercase: bool) -> BertTokenizerFast:
    from transformers import BertTokenizerFast

    return BertTokenizerFast(vocab=vocabulary, do_lower_case=lowercase, strip_accents=lowercase)


def _round_up(size: int) -> int:
    return -(-size // MULTIPLE) * MULTIPLE


def _copy_and_count(sentences: Iterable[str], copy: Path, normalizer) -> Counter[str]:
    """Write the sentences, one a line; return how often each character occurs once normalised."""
    raw: Counter[str] = Counter()
    with open(copy, "w", encoding="utf-8", errors="replace") as handle:
        for sentence in sentences:
            line = _NO_WORD.sub(" ", sentence) + "\n"
            handle.write(line)
            raw.update(line)
    counts: Counter[str] = Counter()
    for character, count in raw.items():
        for normal in normalizer.normalize_str(character.encode("utf-8", "replace").decode()):
            if not normal.isspace():
                counts[normal] += count
    return counts


def _alphabet(counts: Counter[str], vocab_size: int) -> list[str]:
    """Single-character pieces, at the start (``x``) and inside (``##x``) of words, sorted.

    The frequent characters come in until half of the vocabulary is theirs (more where it is
    tiny): printable ASCII before the rest, of which each must be one in ``RAREST``.
    """
    room = max(vocab_size // 2, min(vocab_size - len(SPECIAL), 200))
    least = sum(counts.values()) / RAREST
    ranked = sorted((c for c in counts if c.isascii() or counts[c] >= least),
                    key=lambda c: (not c.isascii(), -counts[c], c))
    pieces: list[str] = []
    for character in ranked:
        forms = [character] if _stands_alone(character) else [character, "##" + character]
        if len(pieces) + len(forms) > room:
            break
        pieces += forms
    return sorted(pieces, key=lambda piece: (piece.startswith("##"), piece))


def _stands_alone(character: str) -> bool:
    """Whether BERT's pre-tokenizer makes it a word of its own: punctuation, Chinese."""
    code = ord(character)
    if character.isascii():
        return not character.isalnum()
    return unicodedata.category(character).startswith("P") or any(
        first <= code <= last for first, last in _CHINESE)


#: The ranges of BERT's ``_is_chinese_char``.
_CHINESE = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF),
            (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0x2F800, 0x2FA1F))
