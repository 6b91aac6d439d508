"""Known labels of tasks that commands read: gold, which a fit may use, and truth, for scoring."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from bayescrowd.cli.arguments import comma_separated

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.data.annotations import Annotations
    from bayescrowd.io.reading import KnownLabels

__all__ = [
    "GoldAndTruth",
    "add_column_options",
    "read_gold_and_truth",
    "read_known",
    "two_names",
    "without_truth_warnings",
]


class GoldAndTruth(NamedTuple):
    """The known labels that a command was given."""

    gold: KnownLabels | None
    """Labels that the fit may use."""
    truth: KnownLabels | None
    """Labels to score against."""
    scored: pd.Series | None
    """The truth without the tasks whose label the fit was given."""
    n_unscored: int
    """Number of those tasks."""

    @property
    def gold_labels(self) -> pd.Series | None:
        """The gold labels by task."""
        return None if self.gold is None else self.gold.labels

    @property
    def n_used(self) -> int:
        """Number of gold labels that the fit can use: those of a class that somebody chose."""
        return 0 if self.gold is None else len(self.gold.labels) - self.gold.n_unchosen


def add_column_options(group: argparse._ActionsContainer) -> None:
    """Declare `--gold-columns` and `--truth-columns`."""
    for name in ("gold", "truth"):
        group.add_argument(
            f"--{name}-columns",
            type=two_names,
            metavar="TASK,LABEL",
            default=(None, None),
            help=f"columns of the {name} file, if their names are not recognised",
        )


def two_names(text: str) -> tuple[str, str]:
    """Argument type: the columns of a task and its label."""
    names = comma_separated(text)
    if len(names) != 2:
        raise argparse.ArgumentTypeError(f"{text!r}: expected the two names TASK,LABEL")
    return names[0], names[1]


def read_gold_and_truth(args: argparse.Namespace, annotations: Annotations) -> GoldAndTruth:
    """Read the files of `--gold` and `--truth`.

    Raises:
        ValueError: a file cannot be read or does not match the annotations, or every task of the
            truth is also gold.
    """
    gold = read_known(args, "gold", annotations)
    truth = read_known(args, "truth", annotations)
    if truth is None:
        return GoldAndTruth(gold, None, None, 0)
    scored, n_unscored = truth.labels, 0
    if gold is not None:
        is_gold = scored.index.isin(gold.labels.index)
        scored, n_unscored = scored[~is_gold], int(is_gold.sum())
        if scored.empty:
            raise ValueError(
                f"{args.truth}: every task in it is also in the gold file; nothing is left to score"
            )
    return GoldAndTruth(gold, truth, scored, n_unscored)


def read_known(args: argparse.Namespace, name: str, annotations: Annotations) -> KnownLabels | None:
    """The labels of `--gold` or `--truth`, matched with the annotations; None without the option.

    Args:
        args: options of the command, with `--NAME`, `--NAME-columns` and the reading options.
        name: 'gold' or 'truth'.
        annotations: judgements with the tasks and classes to match.
    """
    from bayescrowd.io.reading import read_known_labels

    path = getattr(args, name)
    if path is None:
        return None
    task, label = getattr(args, f"{name}_columns")
    return read_known_labels(
        path, annotations, task=task, label=label, name=name, raw_cells=args.raw_cells
    )


@contextmanager
def without_truth_warnings() -> Iterator[None]:
    """In the `with` block, nothing is said of true labels that do not fit: it has been said."""
    from bayescrowd.data.truth import TruthWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruthWarning)
        yield
