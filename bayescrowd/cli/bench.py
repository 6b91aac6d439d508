"""`bayescrowd bench`: methods measured side by side on a folder of crowds with known truth."""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from bayescrowd._version import __version__
from bayescrowd.cli.arguments import (
    METHODS,
    Commands,
    add_tidy,
    check_outputs,
    comma_separated,
)
from bayescrowd.cli.inputs import data_sets, say
from bayescrowd.cli.names import known_name
from bayescrowd.cli.text import align
from bayescrowd.data.text import quantity, shorten

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.experiments.bench.comparison import Comparison, Measure
    from bayescrowd.experiments.bench.contenders import Contender

__all__ = ["add_to"]

_CLASSES = {method.estimator: name for name, method in METHODS.items()}
"""Every exported aggregator, and the name under which `aggregate` offers it."""

_TITLES: dict[Measure, str] = {
    "error": "error (%)",
    "log_loss": "log loss (nats)",
    "ece": "expected calibration error (%)",
    "seconds": "seconds",
}

_DESCRIPTION = """\
Measure methods of aggregation on every crowd of a folder against the known truth: error, log loss,
calibration and seconds, and each method's paired difference to a reference."""

_EPILOG = f"""\
methods:
  {chr(10).join(f"  {name:<26} {METHODS[short].summary}" for name, short in _CLASSES.items())[2:]}
  Names may also be written as for 'bayescrowd aggregate' (one-coin), in upper or lower case.
  Default: all of them. The majority vote and the reference are always measured.
  --method adds a class of your own, found on Python's path or in the current directory. It is
  constructed without arguments and gets a table with the columns task, worker and label; either
  fit(table) leaves probas_, or fit_predict_proba(table) returns probabilities, tasks x classes.

input:
  One folder per crowd: FOLDER/NAME/labels.csv (or labels.csv.gz) with one row per judgement (task,
  worker, label), and FOLDER/NAME/truth.csv with the true labels of some or all tasks (task, label).
  Methods never see the truth. Instead of a folder, data sets may be named (bluebird,rte).

output:
  A table for each measure, with crowds as rows, methods as columns, and means over the crowds on
  which every method succeeded. Ties count their expected error. The log loss raises probabilities
  of the true class below 1e-6 to 1e-6, so that a certain mistake costs 13.8 nats; so does a task
  whose true class nobody chose, for every method. Differences to the reference are paired: on one
  crowd, their standard error is over its tasks; in the mean, over crowds. Effective votes are
  the number of independent votes to which a task's votes amount (a bracket), as the reference sees
  it. A method that fails on a crowd has the cell 'failed', and its reason is printed below.
  --out writes one row per crowd and method: .csv, .tsv, .jsonl or .parquet; '-' prints CSV.
  --plot draws the comparison: .png, .pdf or .svg. --json prints one JSON document and no tables.
  --journal keeps what is finished in a file, from which the same command continues. What
  depends on other files of a crowd, another version of a method or other settings is measured
  again.

exit codes:
  0 done (also if a method failed on a crowd), 2 bad input or usage, 1 a fault of ours

examples:
  bayescrowd bench crowds
  bayescrowd bench crowds --methods all --journal bench.jsonl --out bench.csv
  bayescrowd bench crowds --methods DawidSkene --method my_methods:MyAggregator --plot bench.png"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "bench",
        help="compare methods on a folder of crowds with known truth",
        usage="bayescrowd bench FOLDER [--methods A,B,...] [--method MODULE:CLASS] [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.set_defaults(run=_run)
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        help="folder with one folder per crowd; or names of data sets, such as bluebird,rte",
    )
    parser.add_argument(
        "--methods",
        type=_method_names,
        metavar="A,B,...",
        default="all",
        help="methods to measure, of those below; default: %(default)s",
    )
    parser.add_argument(
        "--method",
        action="append",
        default=[],
        metavar="MODULE:CLASS",
        help="also measure a class of your own; may be repeated",
    )
    parser.add_argument(
        "--reference",
        type=_exported_name,
        metavar="A",
        default="AutoAggregator",
        help="method to which the others are compared; default: %(default)s",
    )
    add_tidy(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--journal", metavar="FILE", help="keep finished measurements, and continue from them"
    )
    output.add_argument(
        "--out", metavar="FILE", help="write a table with one row per crowd and method; - prints it"
    )
    output.add_argument("--plot", metavar="FILE", help="draw the comparison")
    output.add_argument(
        "--json", action="store_true", help="print one JSON document instead of the tables"
    )
    output.add_argument("--force", action="store_true", help="overwrite existing files")


def _run(args: argparse.Namespace) -> int:
    if args.out == "-" and args.json:
        raise ValueError("only one of --out - and --json can print")
    check_outputs(
        tables=[args.out], pictures=[args.plot], journals=[args.journal], overwrite=args.force
    )
    found = _measure(args)
    _write(args, found)
    if args.json:
        print(json.dumps(_document(args, found), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print(_summary(args, found), file=sys.stderr if args.out == "-" else sys.stdout)
    return 0


def _measure(args: argparse.Namespace) -> Comparison:
    from bayescrowd.cli.progress import stage
    from bayescrowd.experiments.bench.contenders import exported_contender, own_contender
    from bayescrowd.experiments.bench.crowds import published_crowds, read_crowds
    from bayescrowd.experiments.bench.running import run_bench

    contenders: list[Contender] = [exported_contender(name) for name in args.methods]
    contenders += [own_contender(origin) for origin in args.method]
    with stage(f"reading {args.folder}"):
        names = data_sets(args.folder)
        crowds = published_crowds(names) if names else read_crowds(args.folder, tidy=args.tidy)
    for crowd in crowds:
        say(crowd.annotations.notes)
    return run_bench(
        crowds,
        contenders,
        reference=args.reference,
        journal=args.journal,
        announce=_announce,
    )


def _announce(crowd: str, method: str) -> None:
    """Show what is being measured if somebody watches."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{crowd}: {method} ...", end="", file=sys.stderr, flush=True)


def _write(args: argparse.Namespace, found: Comparison) -> None:
    from bayescrowd.io.writing import csv_text, write_picture, write_table

    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    if args.out == "-":
        print(csv_text(found.rows()), end="")
    elif args.out is not None:
        write_table(found.rows(), args.out, overwrite=args.force)
    if args.plot is not None:
        from matplotlib.figure import Figure

        from bayescrowd.plots.bench import bench_differences, bench_scores

        n_lines = min(max(len(found.contenders), 3), 8)  # more than eight may overlap
        height = 2.0 + 0.11 * (len(found.crowds) + 1) * n_lines
        figure = Figure(figsize=(13, height), dpi=150, layout="constrained")
        left, middle, right = figure.subplots(1, 3, sharey=True)
        bench_scores(100 * found.scores("error"), left, title="Error", xlabel="error (%)")
        bench_scores(found.scores("log_loss"), middle, title="Log loss", xlabel="log loss (nats)")
        gap, error = found.differences("error")
        bench_differences(100 * gap, 100 * error, found.reference, right)
        figure.legend(
            *left.get_legend_handles_labels(),
            loc="outside right upper",
            frameon=False,
            fontsize="small",
        )
        write_picture(figure, args.plot, overwrite=args.force)


def _document(args: argparse.Namespace, found: Comparison) -> dict[str, Any]:
    """Everything that was found, for machines; shares are between 0 and 1, NaN becomes null."""
    from bayescrowd.experiments.bench.comparison import MEASURES
    from bayescrowd.experiments.bench.measurement import LEAST_PROBABILITY

    votes, worse = found.effective_votes(), found.worse_than_vote().to_dict("index")
    gaps: dict[Measure, pd.DataFrame] = {m: found.mean_differences(m) for m in MEASURES}
    means = {m: found.means(m) for m in MEASURES}
    return {
        "bayescrowd": __version__,
        "folder": args.folder,
        "reference": found.reference,
        "least_probability": LEAST_PROBABILITY,
        "crowds": [
            {
                "crowd": crowd.name,
                "n_labels": crowd.annotations.n_labels,
                "n_tasks": crowd.annotations.n_tasks,
                "n_workers": crowd.annotations.n_workers,
                "n_classes": crowd.annotations.n_classes,
                "n_scored": len(crowd.truth),
                "n_unchosen_class": crowd.n_unchosen,
                "n_votes": votes.loc[crowd.name, "n_votes"],
                "effective_votes": [_number(votes.loc[crowd.name, end]) for end in ("low", "high")],
            }
            for crowd in found.crowds
        ],
        "methods": [
            {
                "method": method.name,
                "origin": method.origin,
                "version": method.version,
                "settings": method.settings,
                "n_failed": sum(name == method.name for _, name in found.failures),
                **{measure: _number(means[measure][method.name]) for measure in MEASURES},
                **{
                    f"{measure}_difference{end}": _number(gaps[measure].loc[method.name, column])
                    for measure in MEASURES
                    for end, column in (("", "difference"), ("_se", "standard_error"))
                },
                "n_worse_than_vote": int(worse[method.name]["n_worse"]),
                "n_surely_worse_than_vote": int(worse[method.name]["n_surely_worse"]),
            }
            for method in found.contenders
        ],
        "results": [
            {key: _number(value) for key, value in row.items()}
            for row in found.rows().to_dict("records")
        ],
    }


def _summary(args: argparse.Namespace, found: Comparison) -> str:
    from bayescrowd.experiments.bench.comparison import MEASURES

    width = max(shutil.get_terminal_size((100, 24)).columns, 60)
    n_methods = len(found.contenders)
    counts = f"{quantity(len(found.crowds), 'crowd')}, {quantity(n_methods, 'method')}"
    paragraphs = [f"{args.folder}: {counts}; differences are to {found.reference}"]
    for measure in MEASURES:
        rows = [["crowd", *found.method_names], *_score_rows(found, measure)]
        paragraphs.append(f"{_TITLES[measure]}\n{_fit_width(rows, width)}")
    rows = [["crowd", *found.method_names], *_difference_rows(found, "error")]
    title = f"error minus that of {found.reference}, ± standard error over tasks (points)"
    paragraphs.append(f"{title}\n{_fit_width(rows, width)}")
    rows = [["crowd", *found.method_names], *_difference_rows(found, "log_loss")]
    title = f"log loss minus that of {found.reference}, ± standard error over tasks (nats)"
    paragraphs.append(f"{title}\n{_fit_width(rows, width)}")
    paragraphs += [_vote_lines(found), _method_lines(found)]
    if found.failures:
        reasons = [f"  {c}, {m}: {reason}" for (c, m), reason in found.failures.items()]
        paragraphs.append("\n".join(["failed", *reasons]))
    written = [
        f"{path}: {what} written"
        for path, what in ((args.out, quantity(len(found.results), "row")), (args.plot, "picture"))
        if path not in (None, "-")
    ]
    if written:
        paragraphs.append("\n".join(written))
    return "\n\n".join(paragraphs)


def _score_rows(found: Comparison, measure: Measure) -> list[list[str]]:
    scores = found.scores(measure)
    rows = [[shorten(crowd, 24), *map(_cell(measure), scores.loc[crowd])] for crowd in scores.index]
    return [*rows, ["mean", *map(_cell(measure), found.means(measure))]]


def _difference_rows(found: Comparison, measure: Literal["error", "log_loss"]) -> list[list[str]]:
    gap, error = found.differences(measure)
    mean = found.mean_differences(measure)
    scale, decimals = (100, 1) if measure == "error" else (1, 3)

    def cells(values: pd.Series, errors: pd.Series) -> list[str]:
        return [
            "-"
            if name == found.reference or math.isnan(values[name])
            else f"{scale * values[name]:+.{decimals}f} ± {scale * errors[name]:.{decimals}f}"
            for name in found.method_names
        ]

    rows = [[shorten(crowd, 24), *cells(gap.loc[crowd], error.loc[crowd])] for crowd in gap.index]
    return [*rows, ["mean", *cells(mean["difference"], mean["standard_error"])]]


def _vote_lines(found: Comparison) -> str:
    rows = [["crowd", "votes per task", "effective"]]
    for crowd, row in found.effective_votes().iterrows():
        is_known = not math.isnan(row["low"])
        bracket = f"{row['low']:.1f} to {row['high']:.1f}" if is_known else "-"
        rows.append([shorten(crowd, 24), f"{row['n_votes']:.1f}", bracket])
    return f"effective votes, as {found.reference} sees them\n{align(rows)}"


def _method_lines(found: Comparison) -> str:
    """Means of each method, and how often it is much worse than the vote."""
    error, log_loss = found.mean_differences("error"), found.mean_differences("log_loss")
    worse = found.worse_than_vote()
    head = ["method", "error %", "difference", "log loss", "difference", "ECE %", "seconds"]
    rows = [[*head, "worse", "surely"]]
    for name in found.method_names:
        means = {measure: found.means(measure)[name] for measure in _TITLES}
        rows.append(
            [
                name,
                _cell("error")(means["error"]),
                _difference(error, name, 100, 1),
                _cell("log_loss")(means["log_loss"]),
                _difference(log_loss, name, 1, 3),
                _cell("ece")(means["ece"]),
                _cell("seconds")(means["seconds"]),
                str(worse.loc[name, "n_worse"]),
                str(worse.loc[name, "n_surely_worse"]),
            ]
        )
    return (
        f"means over crowds; differences to {found.reference} ± standard error over crowds\n"
        f"{align(rows)}\n"
        "  worse: crowds whose error is more than 3 points and two standard errors above that of\n"
        "  the majority vote; surely: more than 3 points above it by two standard errors"
    )


def _difference(table: pd.DataFrame, method: str, scale: int, decimals: int) -> str:
    gap, error = (scale * table[column][method] for column in ("difference", "standard_error"))
    return "-" if math.isnan(gap) else f"{gap:+.{decimals}f} ± {error:.{decimals}f}"


def _cell(measure: Measure) -> Any:
    """The function that writes a value of a measure."""
    scale, decimals = {"error": (100, 1), "ece": (100, 1)}.get(measure, (1, 3))
    return lambda value: "failed" if math.isnan(value) else f"{scale * value:.{decimals}f}"


def _fit_width(rows: Sequence[Sequence[str]], width: int) -> str:
    """The table in blocks of columns that fit into a line, each with the first column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    blocks: list[list[int]] = [[0]]
    for column in range(1, len(widths)):
        used = 2 + sum(widths[i] + 2 for i in blocks[-1])
        if used + widths[column] > width and len(blocks[-1]) > 1:
            blocks.append([0])
        blocks[-1].append(column)
    return "\n".join(align([[row[i] for i in block] for row in rows]) for block in blocks)


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _exported_name(text: str) -> str:
    """Argument type: an exported aggregator, by its name in Python or on the command line."""
    names = {name: name for name in _CLASSES}
    return known_name(text, names | {short: name for name, short in _CLASSES.items()}, "method")


def _method_names(text: str) -> list[str]:
    if text.lower() == "all":
        return list(_CLASSES)
    names = [_exported_name(name) for name in comma_separated(text)]
    if len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r}: a method is named twice")
    return names
