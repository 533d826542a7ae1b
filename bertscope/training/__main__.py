"""``python -m bertscope.training RUN``: what the app starts in the background."""

import sys
from pathlib import Path

from bertscope.errors import BertScopeError
from bertscope.runs import Run
from bertscope.training.loop import train


def main() -> int:
    try:
        train(Run(Path(sys.argv[1])))
    except BertScopeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
