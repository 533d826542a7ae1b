"""``bertscope corpus``: miniworld with its gold."""

from __future__ import annotations

from pathlib import Path

from bertscope.errors import BertScopeError


def add_corpus(commands) -> None:
    parser = commands.add_parser("corpus", help="write miniworld with its gold as CoNLL-U",
                                 description="Write miniworld's text with its exact annotation.")
    parser.add_argument("output", type=Path, help="the .conllu file to write")
    parser.add_argument("--documents", type=int, default=200, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (%(default)s); training uses 0")
    parser.set_defaults(command=_corpus)


def _corpus(args) -> int:
    from bertscope.corpus.conllu import write_conllu
    from bertscope.corpus.miniworld import gold_sentences

    if args.documents < 1 or args.seed < 0:
        raise BertScopeError("--documents must be at least 1 and --seed at least 0.")
    try:
        write_conllu(gold_sentences(args.documents, args.seed), args.output)
    except OSError as error:
        raise BertScopeError(f"{args.output} cannot be written: {error.strerror}.") from None
    print(f"{args.documents} documents in {args.output}")
    return 0
