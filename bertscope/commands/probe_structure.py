"""``bertscope probe --trees`` and ``--amnesic``: the structural probe, and what the model uses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    import pandas as pd

    from bertscope.analysis.probing.request import Request
    from bertscope.analysis.probing.unit import Progress

#: What the sizes are called there.
SIZES = {"max_train": "max_train", "max_validation": "max_valid", "max_test": "max_test"}
#: Arguments of a task's probe, as they are where nobody gives them: here they would change nothing.
UNUSED = {"layers": None, "word": "mean", "sentence": "mean", "masked": False, "mlp": False, "mix": False,
          "seeds": 1, "control": False, "mdl": False}
UNUSED_BY_TREES, UNUSED_BY_AMNESIC = {"task": None, "apart": False}, {"baselines": True}
#: Columns that are printed.
TREES = ("layer", "uuas", "low", "high", "spearman", "root", "depth_spearman", "best")
AMNESIC = ("layer", "rank", "probe", "majority", "change_task", "change_random", "excess", "excess_low",
           "excess_high")


def refuse_unused(args) -> None:
    """See to it that nobody believes to have asked what is not done.

    Raises:
        BertScopeError: an argument is given that only a task's probe obeys, or several tasks.
    """
    mode = "--trees" if args.trees else "--amnesic"
    for name, value in (UNUSED | (UNUSED_BY_TREES if args.trees else UNUSED_BY_AMNESIC)).items():
        if getattr(args, name) != value:
            flag = "--no-baselines" if name == "baselines" else f"--{name}"
            raise BertScopeError(f"{flag} is about a task's probe and changes nothing with {mode}: leave "
                                 "out one of the two.")
    if args.task and len(args.task) > 1:
        raise BertScopeError("--amnesic is about one task at a time.")


def tables(asked: Request, trees: bool, progress: Progress | None, sizes: dict[str, int],
           ) -> tuple[pd.DataFrame, str]:
    """A row per checkpoint and layer, and for trees also for random weights; and what was done, in words.

    The amnesic control is about the task asked (``upos``).

    Args:
        sizes: sentences of the parts at most, where others than ``StructuralConfig`` and
            ``AmnesicConfig`` begin with are wanted; the keys are those of ``SIZES``.

    Raises:
        BertScopeError: the data are a table, or cannot be asked this.
    """
    import pandas as pd

    from bertscope.analysis.probing.sources import open_source

    source = open_source(asked.data, asked.split_seed, asked.unique)
    if source.gold is None:
        raise BertScopeError("A table has no trees and no masked words; give miniworld or a CoNLL-U file.")
    sizes = {SIZES[name]: most for name, most in sizes.items()}
    found, said = (_trees if trees else _amnesic)(asked, source, sizes, progress)
    return pd.concat(found, ignore_index=True), said


def show(table: pd.DataFrame, trees: bool) -> None:
    """Print the columns that matter."""
    from bertscope.analysis.probing.uncertainty import few

    for name, own in table.groupby("checkpoint", sort=False):
        print(f"# {name}")
        print(own[list(TREES if trees else AMNESIC)].to_string(index=False, float_format="{:.3f}".format))
    if trees:
        print(f"The chain of neighbours: UUAS {table['chain_uuas'][0]:.3f}, Spearman "
              f"{table['chain_spearman'][0]:.3f}. Best: UUAS not significantly below the best layer's.")
    else:
        print("Change of the masked-language-model loss, nats a piece; excess over random directions with "
              "its 95 % interval.")
    if note := few(int(table["sentences"].min())):
        print(note)


def _trees(asked: Request, source, sizes: dict[str, int], progress) -> tuple[list[pd.DataFrame], str]:
    from bertscope.analysis.probing.kept_trees import structural_kept
    from bertscope.analysis.probing.structural import StructuralConfig, chosen
    from bertscope.analysis.probing.structure_methods import of_trees
    from bertscope.analysis.probing.tree_peak import best_layers

    gold, config, found = source.gold, StructuralConfig(seed=asked.seeds[0], **sizes), []
    subjects, test = asked.subjects(), chosen(source.gold, config)["test"]
    for subject in subjects:
        for random in (False, True) if asked.protocol.random else (False,):
            layers, edges = structural_kept(subject.path, gold, config, random, progress)
            name = f"{subject.name}, random weights" if random else subject.name
            found.append(layers.assign(checkpoint=name, best=layers["layer"].isin(best_layers(edges, test))))
    return found, of_trees([subject.name for subject in subjects], gold, config, asked.protocol.random)


def _amnesic(asked: Request, source, sizes: dict[str, int], progress) -> tuple[list[pd.DataFrame], str]:
    from bertscope.analysis.probing.amnesic import AmnesicConfig
    from bertscope.analysis.probing.kept_trees import amnesic_kept
    from bertscope.analysis.probing.structure_methods import of_amnesic

    items = source.items(asked.tasks[0] if asked.tasks else "upos", asked.split_seed, asked.apart)
    config, subjects, found = AmnesicConfig(seed=asked.seeds[0], **sizes), asked.subjects(), []
    for subject in subjects:
        table = amnesic_kept(subject.path, items, config, progress)
        found.append(table[table["removed"] == "task"].assign(checkpoint=subject.name, task=items.task))
    return found, of_amnesic([subject.name for subject in subjects], items, config)


def output(path: Path | None, trees: bool) -> list[Path]:
    """Where the table and the paragraph on methods go: a file for one of them, or a folder for both.

    Raises:
        BertScopeError: the file's ending is none that is written.
    """
    if path is None:
        return []
    if path.suffix not in ("", ".csv", ".parquet", ".md"):
        raise BertScopeError("This result is written as .csv, .parquet or .md (methods), not as "
                             f"{path.suffix}.")
    return [path] if path.suffix else [path / ("trees.csv" if trees else "amnesic.csv"), path / "methods.md"]


def save(table: pd.DataFrame, said: str, path: Path) -> None:
    """Write what the path's ending says.

    Raises:
        BertScopeError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            path.write_text(said, "utf-8")
        else:
            (table.to_parquet if path.suffix == ".parquet" else table.to_csv)(path, index=False)
    except OSError as error:
        raise BertScopeError(f"{path} cannot be written: {error.strerror or error}.") from None
