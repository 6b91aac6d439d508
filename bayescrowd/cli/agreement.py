"""`bayescrowd agreement`: how well the workers agree with each other, with intervals."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from bayescrowd._version import __version__
from bayescrowd.cli.agreement_text import agreement_document, agreement_rows
from bayescrowd.cli.arguments import (
    LABELS_HELP,
    Commands,
    add_reading_options,
    check_outputs,
    natural_number,
    positive_number,
    read_labels,
)
from bayescrowd.cli.sampling import counts_of, input_line
from bayescrowd.data.text import quantity

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.data.annotations import Annotations

__all__ = ["add_to"]

LEVEL = 0.95
"""Level of the intervals."""

MOST_WORKERS = 2_000
"""Most workers who are compared in pairs, unless --most says otherwise."""

_DESCRIPTION = """\
How well the workers agree with each other: percent agreement, Fleiss' kappa, Gwet's AC1 and
Krippendorff's alpha, each with an interval; and every two workers on the tasks that they share."""

_EPILOG = """\
measures:
  percent agreement     share of the pairs of labels of a task that agree
  Fleiss' kappa         agreement beyond chance, by the shares of the classes among all labels
  Gwet's AC1            the same with a chance that is small where one class prevails
  Krippendorff's alpha  the same for any number of labels per task; with --metric ordinal or
                        interval, labels that are close to each other agree in part

  Kappa and alpha are low where nearly all labels are of one class, even if workers hardly ever
  disagree; AC1 is not. All of them are 1 for perfect agreement and 0 for labels by chance.

input:
  As for 'bayescrowd aggregate': CSV, TSV, JSON, Parquet or a platform's export, with one row per
  judgement or, for panels of judges, one column per judge.

output:
  A table is printed, with 95% intervals from resampling tasks; - stands where a measure or its
  interval is not defined, as if no task has two labels or only one class was used. --pairwise
  writes a table with one row per pair of workers who share tasks: worker, other, n_shared,
  percent_agreement, cohen_kappa, gwet_ac1 and krippendorff_alpha (nominal), in the format of the
  extension: .csv, .tsv, .jsonl (each also with .gz) or .parquet; '-' prints CSV. --json prints one
  JSON document instead, with null where nothing is defined.

exit codes:
  0 done, 2 bad input or usage, 1 a fault of ours

examples:
  bayescrowd agreement labels.csv
  bayescrowd agreement ratings.csv --metric interval
  bayescrowd agreement grades.csv --metric ordinal --classes poor,fair,good
  bayescrowd agreement labels.csv --pairwise pairs.csv --json"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "agreement",
        help="how well the workers agree with each other",
        usage="bayescrowd agreement LABELS [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.set_defaults(run=_run)
    parser.add_argument("labels", metavar="LABELS", help=LABELS_HELP)
    parser.add_argument(
        "--metric",
        choices=("nominal", "ordinal", "interval"),
        default="nominal",
        help="distances between classes for Krippendorff's alpha: ordinal for classes with an "
        "order, interval for numbers; default: %(default)s",
    )
    parser.add_argument(
        "--seed",
        type=natural_number,
        metavar="N",
        default=0,
        help="seed of the resampling; default: %(default)s",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--pairwise",
        metavar="FILE",
        help="write a table with one row per pair of workers who share tasks; - prints it",
    )
    output.add_argument(
        "--most",
        type=positive_number,
        metavar="N",
        default=MOST_WORKERS,
        help="compare only the N workers with the most labels in pairs; default: %(default)s",
    )
    output.add_argument(
        "--json", action="store_true", help="print one JSON document instead of the table"
    )
    output.add_argument("--force", action="store_true", help="overwrite existing files")
    add_reading_options(parser)


def _run(args: argparse.Namespace) -> int:
    if args.pairwise == "-" and args.json:
        raise ValueError("only one of --pairwise - and --json can print")
    check_outputs(inputs=[args.labels], tables=[args.pairwise], overwrite=args.force)
    from bayescrowd.agreement import agreement_table, pair_table
    from bayescrowd.cli.progress import stage

    with stage(f"reading {args.labels}"):
        annotations = read_labels(args)
    # Without --classes, classes are in the order of their names, which need not be their rank.
    order = args.classes if args.metric == "ordinal" else None
    table = agreement_table(annotations, LEVEL, args.seed, metric=args.metric, order=order)
    pairs = None
    if args.pairwise is not None:
        with stage("comparing pairs of workers"):
            pairs = pair_table(annotations, most=args.most)
        _write(pairs, args)
    if args.json:
        document = _document(args, annotations, table, pairs)
        print(json.dumps(document, indent=2, ensure_ascii=False, default=str))
    else:
        summary = sys.stderr if args.pairwise == "-" else sys.stdout
        print(_summary(args, annotations, table, pairs), file=summary)
    return 0


def _write(pairs: pd.DataFrame, args: argparse.Namespace) -> None:
    from bayescrowd.io.writing import csv_text, write_table

    if args.pairwise == "-":
        print(csv_text(pairs, raw_cells=args.raw_cells), end="")
    else:
        write_table(pairs, args.pairwise, overwrite=args.force, raw_cells=args.raw_cells)


def _document(
    args: argparse.Namespace, ann: Annotations, table: pd.DataFrame, pairs: pd.DataFrame | None
) -> dict[str, Any]:
    """Everything that was found, for machines."""
    return {
        "bayescrowd": __version__,
        "input": counts_of(_source(args), ann) | {"n_compared": _n_compared(ann)},
        "metric": args.metric,
        "level": LEVEL,
        "seed": args.seed,
        "agreement": agreement_document(table),
        "n_pairs": None if pairs is None else len(pairs),
    }


def _summary(
    args: argparse.Namespace, ann: Annotations, table: pd.DataFrame, pairs: pd.DataFrame | None
) -> str:
    n_compared = _n_compared(ann)
    compared = f"  {n_compared:,} of {quantity(ann.n_tasks, 'task')} with two labels or more"
    title = f"agreement with {LEVEL:.0%} intervals (tasks resampled)"
    paragraphs = [
        f"{input_line(_source(args), ann)}\n{compared}",
        f"{title}\n{agreement_rows(table, args.metric)}",
    ]
    if pairs is not None and args.pairwise != "-":
        written = f"{args.pairwise}: {quantity(len(pairs), 'pair')} of workers written"
        if ann.n_workers > args.most:
            written += (
                f", of the {args.most:,} workers with the most labels (--most N compares more)"
            )
        paragraphs.append(written)
    return "\n\n".join(paragraphs)


def _n_compared(ann: Annotations) -> int:
    return int((ann.labels_per_task >= 2).sum())


def _source(args: argparse.Namespace) -> str:
    return "standard input" if args.labels == "-" else str(args.labels)
