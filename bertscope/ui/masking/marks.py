"""Pieces as cells: what was done with each, in words and colours that are the same everywhere."""

from __future__ import annotations

import numpy as np

from bertscope.ui import theme
from bertscope.ui.components.piece_rows import Cell

#: By fate: the number in ``theme.categories`` (blue as a masked piece is elsewhere), and the words.
_COLOURS = (0, 3, 2)
NAMES = ("[MASK]", "random", "kept")
SAID = ("shown as [MASK]", "a random piece in its place", "left as it is, but asked for")


def colour(fate: int) -> str:
    """The colour of masked, random, kept."""
    return theme.categories(4)[_COLOURS[fate]]


def legend() -> list[tuple[str, str]]:
    return [(colour(fate), f"{name}: {said}") for fate, (name, said) in enumerate(zip(NAMES, SAID))]


def plain(tokens, special) -> list[Cell]:
    """Pieces and nothing else."""
    return [Cell(token, faint=bool(s)) for token, s in zip(tokens, special)]


def places(row, tokens) -> list[Cell]:
    """Each piece with its segment and its position below it."""
    segments = theme.categories(5)
    return [Cell(token, (f"{'AB'[segment]}" if row.label is not None else "A", str(place)),
                 title=f"position {place}, segment {segment}", under=True,
                 colour=segments[4] if segment else theme.colour("baseline"))
            for place, (token, segment) in enumerate(zip(tokens, row.token_type_ids.tolist()))]


def chosen(row, tokens, unit: str) -> list[Cell]:
    """The chosen pieces framed; those of one word, n-gram or span are joined."""
    cells = []
    for place, token in enumerate(tokens):
        picked = bool(row.fate[place] >= 0)
        joined = picked and unit != "piece" and row.first[place] < place
        cells.append(Cell(token, marked=picked, joined=bool(joined), faint=bool(row.words[place] < 0),
                          colour=theme.colour("text") if picked else None,
                          title="chosen" if picked else "special: never chosen"
                          if row.words[place] < 0 else "not chosen"))
    return cells


def fates(row, tokens, shown) -> list[Cell]:
    """What the model sees; below each chosen piece what stood there and what was done."""
    cells = []
    for place, (token, seen) in enumerate(zip(tokens, shown)):
        fate = int(row.fate[place])
        if fate < 0:
            cells.append(Cell(seen, faint=bool(row.words[place] < 0)))
            continue
        cells.append(Cell(seen, (f"was {token}", NAMES[fate]), marked=True, colour=colour(fate),
                          title=f"“{token}”: {SAID[fate]}"))
    return cells


#: Nats at which a piece is filled most: a guess among a thousand pieces.
MOST_LOSS = 7.0


def targets(row, tokens, shown, losses, theirs=None, guesses=(), everywhere: bool = False,
            ) -> list[Cell]:
    """What counts in the loss: the pieces asked for, with -ln p below and as the depth of their
    colour; the rest faint.

    Args:
        losses: ``PlaceLosses`` of the example, or None; ``theirs`` the second checkpoint's.
        guesses: the names of the likeliest pieces at each place, where ``losses`` are given.
        everywhere: all places but the first are asked for (a causal model).
    """
    cells = []
    for place, (token, seen) in enumerate(zip(tokens, shown)):
        fate = int(row.fate[place])
        asked = place > 0 if everywhere else fate >= 0
        if not asked:
            cells.append(Cell(seen, faint=True))
            continue
        depth = None
        lines = [] if everywhere or seen == token else [f"→ {token}"]
        title = SAID[fate] if fate >= 0 else ""
        if losses is not None and np.isfinite(losses.loss[place]):
            lines.append(f"{losses.loss[place]:.2f}")
            depth = round(6 + 54 * min(float(losses.loss[place]) / MOST_LOSS, 1.0))
            title += f" · guess: {guesses[place]} ({losses.confidence[place]:.0%})"
        if theirs is not None and np.isfinite(theirs.loss[place]):
            lines.append(f"({theirs.loss[place]:.2f})")
        cells.append(Cell(seen, tuple(lines), title=title.strip(" ·"), marked=fate >= 0,
                          depth=depth, colour=colour(fate) if fate >= 0 else None))
    return cells
