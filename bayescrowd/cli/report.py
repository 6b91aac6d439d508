"""`bayescrowd report`: everything about a crowd in one HTML file."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from bayescrowd._version import __version__
from bayescrowd.cli.arguments import (
    DEFAULT_METHOD,
    LABELS_HELP,
    METHODS,
    Commands,
    add_reading_options,
    check_outputs,
    make_estimator,
    method_name,
    natural_number,
    read_labels,
)
from bayescrowd.cli.inputs import use_own_truth
from bayescrowd.cli.known_labels import add_column_options, read_gold_and_truth

if TYPE_CHECKING:
    from bayescrowd.reports.document import Document

__all__ = ["add_to"]

_DESCRIPTION = """\
Write one HTML file about a crowd that a project lead reads in two minutes: tasks settled and tasks
that need more labels, expected accuracy, whether the raters err together, how good each of them is,
what is confused with what, and which tasks are contested."""

_EPILOG = f"""\
methods:
  {", ".join(METHODS)}

input:
  As for 'bayescrowd aggregate': CSV, TSV, JSON, Parquet or a platform's export, with one row per
  judgement or, for panels of judges, one column per judge. --posterior takes the draws that
  'bayescrowd posterior --out' has written for the same labels.

output:
  One file that loads nothing from a network, opens from disk or out of a mail, in light and dark,
  and prints. Large tables are cut, and say so. The contested tasks can be downloaded as CSV inside
  the page; text that a spreadsheet would run as a formula gets an apostrophe in front, unless
  --raw-cells is given. A headline is printed; --json prints it as a JSON document.

exit codes:
  0 done, 2 bad input or usage, 1 a fault of ours

examples:
  bayescrowd report labels.csv
  bayescrowd report labels.csv --gold known.csv --out crowd.html
  bayescrowd report labels.csv --truth truth.csv --method dawid-skene --drop 0 --out crowd.html"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "report",
        help="everything about a crowd in one HTML file",
        usage="bayescrowd report LABELS [--out FILE] [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.set_defaults(run=_run)
    parser.add_argument("labels", metavar="LABELS", help=LABELS_HELP)
    parser.add_argument(
        "--method",
        type=method_name,
        default=DEFAULT_METHOD,
        help="method of aggregation, one of those below; default: %(default)s",
    )
    known = parser.add_argument_group("known labels (tables with a task and a label per row)")
    known.add_argument("--gold", metavar="FILE", help="true labels that the fit may use")
    known.add_argument(
        "--truth",
        metavar="FILE",
        help="true labels, used for scoring only; tasks that are also in --gold are not scored",
    )
    add_column_options(known)
    content = parser.add_argument_group("content")
    content.add_argument(
        "--posterior", metavar="FILE", help="posterior draws given the same labels (.nc)"
    )
    content.add_argument(
        "--settled",
        type=_probability,
        metavar="P",
        default=0.95,
        help="a task is settled if its label is at least this probable; default: %(default)s",
    )
    content.add_argument(
        "--drop",
        type=natural_number,
        metavar="N",
        help="largest number of raters to refit without, 0 for none; default: 8, or 3 on more "
        "than 20,000 labels",
    )
    content.add_argument("--title", metavar="TEXT", help="title; default: the name of the file")
    content.add_argument(
        "--seed", type=natural_number, metavar="N", default=0, help="seed; default: %(default)s"
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out", metavar="FILE", default="report.html", help="the file; default: %(default)s"
    )
    output.add_argument("--json", action="store_true", help="print the headline as a JSON document")
    output.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_reading_options(parser)


def _run(args: argparse.Namespace) -> int:
    use_own_truth(args)
    inputs = [args.labels, args.gold, args.truth, args.posterior]
    if inputs.count("-") > 1:
        raise ValueError("only one of the files can come from standard input")
    check_outputs(inputs=inputs, others=[args.out], overwrite=args.force)
    from bayescrowd.cli.progress import iterations, stage

    with stage(f"reading {args.labels}"):
        annotations = read_labels(args)
        known = read_gold_and_truth(args, annotations)
        draws = None if args.posterior is None else _draws(args.posterior)
    estimator = make_estimator(args.method)
    if "seed" in estimator.get_params():
        estimator.set_params(seed=args.seed)
    with iterations(args.method):
        estimator.fit(annotations, gold=known.gold_labels)
    import bayescrowd

    source = "standard input" if args.labels == "-" else args.labels
    with iterations("report"):
        made = bayescrowd.report(
            estimator,
            truth=known.scored,
            posterior=draws,
            path=args.out,
            overwrite=args.force,
            settled=args.settled,
            most_dropped=args.drop,
            title=args.title or f"Crowd report: {source}",
            source=source,
            facts={name: str(path) for name, path in _files(args).items() if path is not None},
            raw_cells=args.raw_cells,
        )
    if args.json:
        print(json.dumps(_for_machines(made.document, args.out), indent=2, ensure_ascii=False))
    else:
        print(_summary(made.document))
        print(f"{args.out}: report written ({len(made.html.encode()) / 1e3:,.0f} kB)")
    return 0


def _draws(path: str) -> Any:
    from bayescrowd.posterior.container import load

    try:
        return load(path)
    except FileNotFoundError:
        raise
    except OSError as fault:  # h5py's own words, which do not name the file
        raise ValueError(f"{path}: this is no file of posterior draws ({fault})") from fault


def _files(args: argparse.Namespace) -> dict[str, str | None]:
    """The files that were read besides the labels."""
    return {
        "gold file": args.gold,
        "truth file": args.truth,
        "posterior file": args.posterior,
    }


def _for_machines(document: Document, path: str) -> dict[str, Any]:
    headline = document.headline
    low, high = document.dependence.effective_votes
    return {
        "bayescrowd": __version__,
        "report": path,
        "n_tasks": headline.n_tasks,
        "n_settled": headline.n_settled,
        "settled_at": headline.settled_at,
        "n_unlabelled": headline.n_unlabelled,
        "expected_accuracy": headline.accuracy._asdict(),
        "measured_accuracy": None if headline.measured is None else headline.measured._asdict(),
        "n_votes": document.dependence.n_votes,
        "effective_votes": [low, high],
    }


def _summary(document: Document) -> str:
    headline = document.headline
    accuracy, measured = headline.accuracy, headline.measured
    settled = (
        f"  {headline.n_settled:,} of {headline.n_tasks:,} tasks settled (at least "
        f"{headline.settled_at:.0%} sure), {headline.n_tasks - headline.n_settled:,} need more "
        "labels"
    )
    expected = (
        f"  expected accuracy {accuracy.value:.1%} (90% interval: {accuracy.lower:.1%} to "
        f"{accuracy.upper:.1%})"
    )
    lines = [document.summary, settled, expected]
    if measured is not None:
        lines.append(
            f"  accuracy against the truth {measured.value:.1%} (90% interval: "
            f"{measured.lower:.1%} to {measured.upper:.1%})"
        )
    lines.append(f"  {document.dependence.summary}")
    return "\n".join(lines)


def _probability(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number between 0 and 1")
    return share
