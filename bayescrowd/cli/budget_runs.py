"""What both parts of `bayescrowd budget` share: policies, options, the table and its summary."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bayescrowd._version import __version__
from bayescrowd.cli.arguments import (
    Parser,
    add_raw_cells,
    check_outputs,
    comma_separated,
    natural_number,
    positive_number,
)
from bayescrowd.cli.exports import command_name, exported_classes, summary_of
from bayescrowd.cli.names import known_name
from bayescrowd.data.text import closest_name, quantity

if TYPE_CHECKING:
    from bayescrowd.budgeted.policy import Policy
    from bayescrowd.data.table_dataset import TableDataset

__all__ = [
    "DEFAULT",
    "EPILOG",
    "POLICIES",
    "add_run_options",
    "budget_list",
    "check_arguments",
    "curve_options",
    "factories",
    "policy_name",
    "policy_names",
    "read_table",
    "run_options",
    "save_picture",
    "settings",
    "share",
    "table_summary",
]

DEFAULT = "budgeted-selection"


class Offered(NamedTuple):
    """A policy as the command line offers it."""

    policy: str
    """Its public name in `bayescrowd`."""
    summary: str
    """What it does, in a few words."""
    options: dict[str, Any]
    """Options that differ from the policy's defaults."""


_SHORT = {
    DEFAULT: Offered(
        "BudgetedSelection", "buy what may improve the classifier most; the default", {}
    ),
    "b-leafs": Offered("BLeafs", "one feature search after another, as published", {}),
    "b-leafs-revisit": Offered(
        "BLeafs",
        "the same, with the rest spent on the selected features",
        {"pick": "posterior-mean", "revisit": True},
    ),
    "ts-greedy": Offered("TsGreedy", "Thompson sampling of whole sets", {}),
    "explore-then-commit": Offered(
        "ExploreThenCommit", "the same for half the budget, then the set that looks best", {}
    ),
    "biased-robin": Offered("BiasedRobin", "stay with a feature while it helps", {}),
    "round-robin": Offered("RoundRobin", "all features in turn", {}),
    "posterior-mean": Offered("PosteriorMeanGreedy", "no exploration at all", {}),
}
"""Policies with a name and a description of their own, the default first."""

POLICIES = _SHORT | {
    command_name(name): Offered(name, summary_of(name), {})
    for name in exported_classes("budgeted.policies")
    if name not in {offer.policy for offer in _SHORT.values()}
}
"""Every exported policy by the name a user types."""

MODELS = ("naive_bayes", "access_path")

PUBLISHED = ("nursery", "breast-cancer")
"""Tables that are known by name, unless there is a file of that name."""

_POLICY_LIST = "\n".join(f"  {name:<20} {offer.summary}" for name, offer in POLICIES.items())

EPILOG = f"""\
input:
  A table with one row per instance, a column that holds its class (--target) and a column per
  feature: CSV, TSV, JSON lines (.jsonl) or Parquet. A column with more than ten different numbers
  is cut at its quantiles into five intervals that hold about as many rows each; other values are
  taken as they are. Empty fields are missing, as are values that --missing lists. Columns with a
  single value are left out, as are those that --ignore names. {" and ".join(PUBLISHED)} are
  published tables, which need no --target ('bayescrowd datasets' says where they come from).

policies:
{_POLICY_LIST}

models:
  naive_bayes  reads the majority of the labels of a feature
  access_path  learns what the labels of a feature mean, even where most of them are wrong"""


def add_run_options(parser: Parser, *, repeats: int) -> None:
    """Declare the options of the table, the crowd, the runs and the output."""
    parser.add_argument(
        "table",
        metavar="TABLE",
        help="labelled table, or the name of a published one; - is standard input",
    )
    parser.add_argument("--target", metavar="COLUMN", help="column that holds the class")
    parser.add_argument(
        "--features",
        type=positive_number,
        metavar="K",
        required=True,
        help="number of features that the classifier may use",
    )
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--ignore", type=comma_separated, metavar="A,B,...", default=[], help="columns to leave out"
    )
    reading.add_argument(
        "--missing",
        type=comma_separated,
        metavar="A,B,...",
        default=[],
        help="values that stand for a missing one, such as '?'",
    )
    add_raw_cells(reading)
    crowd = parser.add_argument_group("crowd")
    crowd.add_argument("--noise", choices=("none", "uniform", "biased"), default="none")
    crowd.add_argument("--rate", type=_rate, metavar="R", help="share of wrong labels")
    crowd.add_argument(
        "--labels",
        type=positive_number,
        metavar="W",
        default=1,
        help="labels of a feature of an instance that are bought at a time (%(default)s)",
    )
    crowd.add_argument(
        "--costs",
        type=_costs,
        metavar="A=C,...",
        default={},
        help="what a label of a feature costs, such as beak=4; 1 for features not named",
    )
    crowd.add_argument("--model", type=_model, default="naive_bayes", help="(%(default)s)")
    runs = parser.add_argument_group("runs")
    runs.add_argument(
        "--repeats", type=positive_number, metavar="N", default=repeats, help="(%(default)s)"
    )
    runs.add_argument("--seed", type=natural_number, metavar="N", default=0, help="(%(default)s)")
    runs.add_argument("--jobs", type=positive_number, metavar="N", help="processes (one per core)")
    runs.add_argument(
        "--resume", metavar="FILE", help="journal of finished runs; created if absent"
    )
    output = parser.add_argument_group("output")
    output.add_argument("--plot", metavar="FILE", help="draw the curves")
    output.add_argument("--json", action="store_true", help="print one JSON document")
    output.add_argument("--force", action="store_true", help="overwrite existing files")


def check_arguments(
    args: argparse.Namespace, *, tables: Sequence[str | None], containers: Sequence[str | None] = ()
) -> None:
    """Raise, before any work is done, if the options contradict each other or the outputs."""
    if args.noise == "none" and args.rate:
        raise ValueError(f"--rate {args.rate:g} needs --noise, the kind of wrong labels")
    if args.noise != "none" and not args.rate:
        raise ValueError(f"--noise {args.noise} needs --rate, the share of wrong labels")
    close = None if os.path.lexists(args.table) else closest_name(args.table, PUBLISHED)
    if close not in (None, args.table):
        raise FileNotFoundError(f"{args.table}: there is no such file; did you mean {close}?")
    if args.target is None and not _is_published(args.table):
        raise ValueError(f"--target is missing: which column of {args.table} holds the class?")
    check_outputs(
        inputs=[args.table],
        tables=tables,
        pictures=[args.plot],
        containers=containers,
        journals=[args.resume],
        overwrite=args.force,
    )


def read_table(args: argparse.Namespace) -> TableDataset:
    """Read the table as the options say, and check that the options fit it."""
    from bayescrowd.cli.labelled_tables import read_labelled_table
    from bayescrowd.cli.progress import stage
    from bayescrowd.data.vocabulary import comma_list

    with stage(f"reading {args.table}"):
        if _is_published(args.table):
            table = _published_table(args)
        else:
            table = read_labelled_table(
                args.table,
                target=args.target,
                ignore=args.ignore,
                missing=args.missing,
                raw_cells=args.raw_cells,
            )
    if args.features > table.features.shape[1]:
        raise ValueError(
            f"--features {args.features}: {table.source} has "
            f"{quantity(table.features.shape[1], 'feature')}"
        )
    for name in args.costs:
        if name not in table.features.columns:
            raise ValueError(
                f"--costs {name}: {table.source} has no such feature; expected one of "
                f"{comma_list(table.features.columns)}"
            )
    cheapest = args.labels * min(args.costs.get(name, 1.0) for name in table.features.columns)
    for budget in args.budget or []:
        if budget < cheapest:
            raise ValueError(
                f"--budget {budget:g}: expected at least {cheapest:g}, the cost of one query"
            )
    return table


def _is_published(name: str) -> bool:
    return name in PUBLISHED and not Path(name).exists()


def _published_table(args: argparse.Namespace) -> TableDataset:
    """A table that is known by name, without the columns that the options leave out."""
    from bayescrowd.data.vocabulary import comma_list
    from bayescrowd.datasets.registry import load_table

    if args.target is not None:
        raise ValueError(f"--target {args.target}: {args.table} is published with its classes")
    table = load_table(args.table)
    for name in args.ignore:
        if name not in table.features.columns:
            raise ValueError(
                f"--ignore {name}: {args.table} has no such column; expected some of "
                f"{comma_list(table.features.columns)}"
            )
    features = table.features.drop(columns=args.ignore)
    return table._replace(features=features, source=args.table, description="")


def curve_options(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments that all calls of `budget_curve` have in common."""
    n_jobs = -1 if args.jobs is None else args.jobs
    return {**run_options(args), "repeats": args.repeats, "n_jobs": n_jobs}


def run_options(args: argparse.Namespace) -> dict[str, Any]:
    """What describes a single run of a curve, besides policy, budget and repeat."""
    return {
        "model": args.model,
        "labels_per_query": args.labels,
        "costs": args.costs,
        "noise": args.noise,
        "rate": args.rate or 0.0,
        "seed": args.seed,
    }


def factories(names: list[str]) -> dict[str, Callable[..., Policy]]:
    """What makes each policy, by the name that a user types."""
    import bayescrowd

    return {
        name: partial(getattr(bayescrowd, POLICIES[name].policy), **POLICIES[name].options)
        for name in names
    }


def save_picture(ax: Any, args: argparse.Namespace) -> None:
    """Write the figure of these axes to `--plot`."""
    from bayescrowd.io.writing import write_picture

    write_picture(ax.figure, args.plot, overwrite=args.force)


def settings(args: argparse.Namespace, table: TableDataset) -> dict[str, Any]:
    """The table and the options, for machines."""
    return {
        "bayescrowd": __version__,
        "input": {
            "source": table.source,
            "target": args.target,
            "n_rows": len(table.target),
            "n_classes": int(table.target.nunique()),
            "features": [str(name) for name in table.features.columns],
            "cuts": {str(name): list(cuts) for name, cuts in _cuts(table).items()},
        },
        "n_features": args.features,
        "model": args.model,
        "labels_per_query": args.labels,
        "costs": args.costs,
        "noise": args.noise,
        "rate": args.rate or 0.0,
        "repeats": args.repeats,
        "seed": args.seed,
    }


def table_summary(args: argparse.Namespace, table: TableDataset) -> str:
    """The table and the labelling, for people."""
    of_target = "" if args.target is None else f" of {args.target}"
    read = (
        f"{table.source}: {quantity(len(table.target), 'row')}, "
        f"{quantity(table.features.shape[1], 'feature')}, "
        f"{quantity(int(table.target.nunique()), 'class', 'classes')}{of_target}"
    )
    lines = [read, *([table.description] if table.description else [])]
    if cuts := _cuts(table):
        lines.append(f"read in intervals, cut at quantiles: {', '.join(map(str, cuts))}")
    if args.noise != "none" or args.labels > 1:
        noise = "" if args.noise == "none" else f", {args.rate:.0%} of them wrong ({args.noise})"
        lines.append(f"{quantity(args.labels, 'label')} per observation{noise}; model {args.model}")
    return "\n".join(lines)


def _cuts(table: TableDataset) -> Mapping[Hashable, Sequence[float]]:
    """The cuts of the numeric features that are read in intervals."""
    from bayescrowd.budgeted.space import FeatureSpace

    return FeatureSpace.from_table(table).cuts


# -- types of arguments -----------------------------------------------------------------------


def budget_list(text: str) -> list[float]:
    """Argument type: budgets with commas between them, sorted in ascending order."""
    budgets = []
    for part in comma_separated(text):
        try:
            budget = float(part)
        except ValueError:
            budget = 0.0
        if not 0 < budget < math.inf:
            raise argparse.ArgumentTypeError(f"{part!r}: expected a number above 0")
        budgets.append(budget)
    if len(set(budgets)) < len(budgets):
        raise argparse.ArgumentTypeError(f"{text!r}: a budget is named twice")
    return sorted(budgets)


def policy_names(text: str) -> list[str]:
    """Argument type: names of policies, or 'all'; the default policy is put first."""
    if text.casefold() == "all":
        return list(POLICIES)
    names = [policy_name(name) for name in comma_separated(text)]
    if len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r}: a policy is named twice")
    return sorted(names, key=lambda name: name != DEFAULT)


def policy_name(text: str) -> str:
    """Argument type: the name of a policy, or of its class, in any spelling."""
    classes = {offer.policy: name for name, offer in POLICIES.items() if not offer.options}
    return known_name(text, {name: name for name in POLICIES} | classes, "policy")


def _costs(text: str) -> dict[str, float]:
    """Argument type: what a label of each feature costs."""
    costs: dict[str, float] = {}
    for part in comma_separated(text):
        name, sign, amount = part.rpartition("=")
        try:
            cost = float(amount)
        except ValueError:
            cost = 0.0
        if not sign or not 0 < cost < math.inf:
            raise argparse.ArgumentTypeError(f"{part!r}: expected FEATURE=COST with a cost above 0")
        if name in costs:
            raise argparse.ArgumentTypeError(f"{text!r}: feature {name!r} is named twice")
        costs[name] = cost
    return costs


def _model(text: str) -> str:
    return known_name(text, {name: name for name in MODELS}, "model")


def _rate(text: str) -> float:
    return _number_between(text, 0, 1, "0 to 1", is_open=False)


def share(text: str) -> float:
    """Argument type: a share that is neither 0 nor 1."""
    return _number_between(text, 0, 1, "a share between 0 and 1", is_open=True)


def _number_between(text: str, low: float, high: float, words: str, *, is_open: bool) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    is_inside = low < number < high if is_open else low <= number <= high
    if not is_inside:
        raise argparse.ArgumentTypeError(f"{text!r}: expected {words}")
    return number
