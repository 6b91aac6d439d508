"""`bayescrowd multiselect`: how often to ask each question, as a shopping list."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bayescrowd._version import __version__
from bayescrowd.cli.arguments import (
    Commands,
    add_raw_cells,
    check_outputs,
    natural_number,
)
from bayescrowd.cli.text import align
from bayescrowd.data.text import quantity, shorten

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.data.judgements import Judgements
    from bayescrowd.posterior.repeats import RepeatPosterior
    from bayescrowd.selection.repeats.multi_selection import MultiSelection

__all__ = ["add_to"]

PROBABILITY = 0.9
"""Probability of the intervals."""

MOST_BUDGETS = 1_000
"""Largest number of budgets along a path whose losses are reported."""

MANY_STEPS = 20_000
"""For more judgements than this, time and memory are estimated first."""

PILOT_STEPS = 2_000
"""Number of judgements of the path from which time and memory are estimated."""

BYTES_PER_STEP = 64
"""Memory per judgement and attribute: the path, the noise of averages, and temporary copies."""

_DESCRIPTION = """\
Choose which attributes to have judged and how many times, so that a linear predictor on the
averages has the least squared error that the budget allows."""

_EPILOG = """\
input:
  JUDGEMENTS has a row per judgement with the columns object, attribute and value (a number), and
  optionally worker; some objects need two judgements of an attribute. TARGETS has a row per object
  with the columns object and target. --costs has a row per attribute with the columns attribute
  and cost. The files are CSV, TSV, JSON lines (also with .gz) or Parquet.

output:
  The shopping list for each new object: which attribute to ask about, how many times, at what cost,
  and by how much that lowers the squared error; and the expected error, with a 90 % interval from a
  model of the judgements. --out writes the list, --plot draws error against budget. --json prints
  one JSON document and no summary. If, by the moments, the judgements would explain more than all
  of the target's variance, the projected error is reported as infeasible (null in JSON, with the
  reason as projection_problem), and a warning says why. For a budget of more than 20,000
  judgements, an estimate of time and memory is printed first. Errors are reported for at most 1,000
  budgets, evenly spaced.

exit codes:
  0 done, 2 bad input or usage, 1 a fault of ours

examples:
  bayescrowd multiselect judgements.csv targets.csv --budget 30
  bayescrowd multiselect judgements.csv targets.csv --budget 30 --costs costs.csv --plot loss.png"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "multiselect",
        help="choose how often to ask each question",
        usage="bayescrowd multiselect JUDGEMENTS TARGETS --budget N [--costs FILE] [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.set_defaults(run=_run)
    parser.add_argument("judgements", metavar="JUDGEMENTS", help="file with a row per judgement")
    parser.add_argument("targets", metavar="TARGETS", help="file with a row per object")
    parser.add_argument(
        "--budget",
        type=_amount,
        metavar="N",
        required=True,
        help="number of judgements per object, or what they may cost",
    )
    parser.add_argument("--costs", metavar="FILE", help="file with a row per attribute")
    choice = parser.add_argument_group("selection")
    choice.add_argument(
        "--method", choices=("full", "scoring"), default="full", help="default: %(default)s"
    )
    choice.add_argument(
        "--search",
        choices=("cost-benefit", "gain", "exact"),
        default="cost-benefit",
        help="largest gain per cost, largest gain, or the best of all; default: %(default)s",
    )
    choice.add_argument(
        "--average", choices=("mean", "median"), default="mean", help="default: %(default)s"
    )
    choice.add_argument(
        "--draws",
        type=natural_number,
        metavar="N",
        default=250,
        help="number of draws behind the interval, 0 for no interval; default: %(default)s",
    )
    choice.add_argument("--seed", type=natural_number, metavar="N", default=0, help="default: 0")
    output = parser.add_argument_group("output")
    output.add_argument("--out", metavar="FILE", help="write the list")
    output.add_argument("--plot", metavar="FILE", help="draw error against budget")
    output.add_argument("--json", action="store_true", help="print one JSON document")
    output.add_argument("--force", action="store_true", help="overwrite existing files")
    reading = parser.add_argument_group("reading")
    for role in ("object", "attribute", "value", "worker", "target", "cost"):
        reading.add_argument(f"--{role}", metavar="COLUMN", help=f"column of the {role}")
    add_raw_cells(reading)


def _run(args: argparse.Namespace) -> int:
    _check_arguments(args)
    judgements, target, costs = _read(args)
    selector = _fit(args, judgements, target, costs)
    posterior = _posterior(args, selector, judgements, target)
    shopping = selector.shopping_list().reset_index()
    _write(args, selector, shopping, posterior)
    if args.json:
        document = _document(args, judgements, selector, shopping, posterior)
        print(json.dumps(document, indent=2, ensure_ascii=False, default=str))
    else:
        print(_summary(args, judgements, selector, shopping, posterior))
    return 0


def _check_arguments(args: argparse.Namespace) -> None:
    """Raise, before any work is done, if the inputs or outputs contradict each other."""
    inputs = [args.judgements, args.targets, args.costs]
    if inputs.count("-") > 1:
        raise ValueError("only one file can be read from standard input")
    if args.out == "-":
        raise ValueError("--out -: expected the name of a file")
    check_outputs(inputs=inputs, tables=[args.out], pictures=[args.plot], overwrite=args.force)


def _read(args: argparse.Namespace) -> tuple[Judgements, pd.Series, pd.Series | None]:
    from bayescrowd.cli.progress import stage
    from bayescrowd.io.judgement_files import read_costs, read_judgements, read_targets

    with stage(f"reading {args.judgements}"):
        judgements = read_judgements(
            args.judgements,
            object=args.object,
            attribute=args.attribute,
            value=args.value,
            worker=args.worker,
            raw_cells=args.raw_cells,
        )
        target = read_targets(
            args.targets,
            object=args.object,
            target=args.target,
            objects=judgements.objects,
            raw_cells=args.raw_cells,
        )
        if args.costs is None:
            return judgements, target, None
        costs = read_costs(
            args.costs,
            attribute=args.attribute,
            cost=args.cost,
            attributes=judgements.attributes,
            raw_cells=args.raw_cells,
        )
        return judgements, target, costs


def _fit(
    args: argparse.Namespace, judgements: Judgements, target: pd.Series, costs: pd.Series | None
) -> MultiSelection:
    from bayescrowd.cli.progress import steps
    from bayescrowd.selection.repeats.multi_selection import MultiSelection
    from bayescrowd.selection.repeats.selector import MOST_REPEATS, InfeasibleProjectionWarning

    selector = MultiSelection(
        args.budget, method=args.method, costs=costs, search=args.search, average=args.average
    )
    n_steps = int(args.budget / (1 if costs is None else costs.min()))
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", InfeasibleProjectionWarning
        )  # its advice is for users of Python
        # What `fit` refuses, or does not do step by step, needs no estimate.
        if MANY_STEPS < n_steps <= MOST_REPEATS and args.search != "exact":
            _announce(selector, judgements, target, n_steps)
        with steps("choosing", n_steps):
            selector.fit(judgements, target)
    if selector.projection_problem_ is not None:
        advice = (
            "--method full accounts for correlations"
            if args.method == "scoring"
            else "more objects or fewer attributes help"
        )
        warnings.warn(
            f"{selector.projection_problem_}; {advice}", InfeasibleProjectionWarning, stacklevel=2
        )
    return selector


def _announce(
    selector: MultiSelection, judgements: Judgements, target: pd.Series, n_steps: int
) -> None:
    """Print how long a large budget will take, by the time that a small share of it takes."""
    from sklearn.base import clone

    share = PILOT_STEPS / n_steps
    started = time.perf_counter()
    clone(selector).set_params(budget=selector.budget * share).fit(judgements, target)
    # The list of what each attribute adds walks the path once more.
    seconds = 2 * (time.perf_counter() - started) / share
    gigabytes = BYTES_PER_STEP * n_steps * judgements.n_attributes / 1e9
    print(
        f"bayescrowd: choosing up to {n_steps:,} judgements one by one among "
        f"{quantity(judgements.n_attributes, 'attribute')}: about {seconds:,.0f} s and "
        f"{gigabytes:.1f} GB",
        file=sys.stderr,
        flush=True,
    )


def _posterior(
    args: argparse.Namespace, selector: MultiSelection, judgements: Judgements, target: pd.Series
) -> RepeatPosterior | None:
    from bayescrowd.cli.progress import stage

    if args.draws == 0 or args.average == "median":
        return None
    with stage("drawing from the model of the judgements"):
        posterior = selector.posterior(
            judgements, target, draws=args.draws, warmup=max(args.draws, 50), seed=args.seed
        )
    # Every budget of the curve costs a matrix inverse per draw.
    return replace(
        posterior, repeats=posterior.repeats.iloc[_budgets_to_report(len(posterior.repeats))]
    )


def _budgets_to_report(n_budgets: int) -> list[int]:
    """Positions of the budgets that are reported: all, or evenly spaced ones of a long path."""
    if n_budgets <= MOST_BUDGETS:
        return list(range(n_budgets))
    return [round(place * (n_budgets - 1) / (MOST_BUDGETS - 1)) for place in range(MOST_BUDGETS)]


def _write(
    args: argparse.Namespace,
    selector: MultiSelection,
    shopping: pd.DataFrame,
    posterior: RepeatPosterior | None,
) -> None:
    from bayescrowd.io.writing import write_picture, write_table

    if args.out is not None:
        write_table(shopping, args.out, overwrite=args.force, raw_cells=args.raw_cells)
    if args.plot is not None:
        from matplotlib.figure import Figure

        from bayescrowd.plots.multi_selection import repeat_losses

        figure = Figure(figsize=(6.4, 4.2), dpi=150, layout="constrained")
        repeat_losses(selector, figure.subplots(), posterior=posterior)
        write_picture(figure, args.plot, overwrite=args.force)


def _interval(posterior: RepeatPosterior | None) -> dict[str, float] | None:
    """Mean and interval of the loss of the whole budget."""
    if posterior is None:
        return None
    last = posterior.loss_curve(probability=PROBABILITY).iloc[-1]
    return {name: float(last[name]) for name in ("mean", "lower", "upper")}


def _document(
    args: argparse.Namespace,
    judgements: Judgements,
    selector: MultiSelection,
    shopping: pd.DataFrame,
    posterior: RepeatPosterior | None,
) -> dict[str, Any]:
    """All results, for machines."""
    loss = selector.projected_loss_
    path = loss.rename("projected").to_frame().iloc[_budgets_to_report(len(loss))]
    if posterior is not None:
        path = path.join(posterior.loss_curve(probability=PROBABILITY)[["mean", "lower", "upper"]])
    return {
        "bayescrowd": __version__,
        "input": {
            "judgements": args.judgements,
            "targets": args.targets,
            "n_judgements": judgements.n_judgements,
            "n_objects": judgements.n_objects,
            "n_attributes": judgements.n_attributes,
        },
        "budget": args.budget,
        "method": args.method,
        "search": args.search,
        "average": args.average,
        "shopping_list": _records(shopping),
        "spent": float(shopping["cost"].sum()),
        "projected_loss": _finite(loss.iloc[-1]),
        "projection_problem": selector.projection_problem_,
        "posterior_loss": _interval(posterior),
        "loss_without_judgements": float(loss.iloc[0]),
        "probability": PROBABILITY,
        "losses": _records(path.reset_index()),
        "attributes": _records(selector.attributes_.reset_index()),
    }


def _records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    """Rows for JSON, in which NaN and infinity are null."""
    return [
        {name: _finite(value) for name, value in row.items()} for row in table.to_dict("records")
    ]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _summary(
    args: argparse.Namespace,
    judgements: Judgements,
    selector: MultiSelection,
    shopping: pd.DataFrame,
    posterior: RepeatPosterior | None,
) -> str:
    read = (
        f"{args.judgements}: {quantity(judgements.n_judgements, 'judgement')} of "
        f"{quantity(judgements.n_attributes, 'attribute')} of "
        f"{quantity(judgements.n_objects, 'object')}"
    )
    if len(shopping) == 0:
        return f"{read}\n\nno attribute says anything about the target, so there is nothing to buy"
    rows = [["attribute", "times", "cost", "adds", "of variance"]]
    rows += [
        [
            shorten(row.attribute, 40),
            f"{row.times}",
            f"{row.cost:g}",
            _number(row.adds, ".4g"),
            _number(row.share, ".1%"),
        ]
        for row in shopping.itertuples(index=False)
    ]
    loss = selector.projected_loss_
    spent = f"spent {shopping['cost'].sum():g} of {args.budget:g}"
    lines = [
        read,
        "",
        f"to ask about each new object ({spent})",
        align(rows),
        "",
    ]
    interval = _interval(posterior)
    if interval is not None:
        lines.append(
            f"expected mean squared error: {interval['mean']:.4g}, 90 % interval "
            f"{interval['lower']:.4g} to {interval['upper']:.4g}"
        )
    lines.append(
        f"projected from moments: {_number(loss.iloc[-1], '.4g')}; without any judgement: "
        f"{loss.iloc[0]:.4g}"
    )
    lines += [f"{path} written" for path in (args.out, args.plot) if path is not None]
    return "\n".join(lines)


def _number(value: Any, form: str) -> str:
    return "infeasible" if math.isnan(value) else format(value, form)


def _amount(text: str) -> float:
    """Argument type: a number above 0, as an integer if it is whole."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number above 0")
    return int(number) if number.is_integer() else number
