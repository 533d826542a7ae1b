"""``bertscope predict``: a masked word, or a fine-tuned model's answer."""

from __future__ import annotations

import argparse
import sys

from bertscope import runs
from bertscope.commands.finetune import predict_task
from bertscope.errors import BertScopeError


def add_predict(commands) -> None:
    parser = commands.add_parser(
        "predict", help="fill in [MASK] with a checkpoint; label a text with a fine-tuned one",
        epilog='Examples:  bertscope predict demo "the [MASK] is very old."\n'
               '           bertscope predict demo-miniworld-pair "who came?" --pair "Anna came."',
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="a run, a run at a step (demo@400), a directory or a hub name")
    parser.add_argument("text", help="a sentence with [MASK] in it; for a fine-tuned checkpoint the "
                                     "text, or the question")
    parser.add_argument("--pair", help="the second text, or the paragraph, for a fine-tuned one")
    parser.add_argument("-k", type=int, default=5, help="candidates for each place (%(default)s)")
    parser.set_defaults(command=_predict)


def _predict(args) -> int:
    from bertscope.analysis.activations import encode, load
    from bertscope.analysis.predictions import predict

    if args.k < 1:
        raise BertScopeError("-k must be at least 1.")
    path = runs.find_checkpoint(args.checkpoint)
    if predict_task(path, args.text, args.pair, args.k):
        return 0
    model = load(path)
    encoded = encode(model, args.text)
    masked = [i for i, piece in enumerate(encoded.input_ids)
              if piece == model.tokenizer.mask_token_id]
    if not masked:
        raise BertScopeError("There is no [MASK] in the text; write it where a word is to be "
                             "guessed, as in \"the [MASK] is very old\".")
    print(f"# {model.path}", file=sys.stderr)
    for place in predict(model, encoded, masked, args.k):
        print("  ".join(f"{c.token} {c.probability:.3f}" for c in place.candidates))
    return 0
