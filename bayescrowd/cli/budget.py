"""`bayescrowd budget`: which labels to buy and how many, tried out on a labelled table."""

from __future__ import annotations

import argparse
import json
import math
import sys
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from bayescrowd.cli.arguments import Commands
from bayescrowd.cli.budget_runs import (
    DEFAULT,
    EPILOG,
    POLICIES,
    add_run_options,
    budget_list,
    check_arguments,
    curve_options,
    factories,
    policy_name,
    policy_names,
    read_table,
    run_options,
    save_picture,
    settings,
    share,
    table_summary,
)
from bayescrowd.cli.sampling import number_or_none
from bayescrowd.cli.text import align
from bayescrowd.data.text import quantity

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.budgeted.evaluation.planning import BudgetPlan
    from bayescrowd.data.table_dataset import TableDataset

__all__ = ["add_to"]

N_BUDGETS = 8
"""Number of budgets that `plan` tries if none are given."""

_SIMULATE_EPILOG = f"""\
{EPILOG}

output:
  Mean test error of each policy at each budget with its standard error over repeats, and its
  difference from the first policy, repeat by repeat. --out writes one row per run, in the format of
  the extension: .csv, .tsv, .jsonl (each also with .gz) or .parquet; '-' prints CSV. --plot draws
  the curves: .png, .pdf or .svg. --json prints one JSON document. --resume names a journal: every
  finished run is recorded there, and the same command continues where it was interrupted.
  --posterior writes what one of the runs has learned, as posterior draws of the model for ArviZ
  (NetCDF, .nc): the last repeat of the first policy at the largest budget. --repeats 1, --policy
  and --budget pick another one.

exit codes:
  0 done, 2 bad input or usage, 1 a fault of ours

examples:
  bayescrowd budget simulate birds.csv --target species --budget 50,100,200 --features 2
  bayescrowd budget simulate nursery --budget 100,200,400 --features 2 --plot curves.png
  bayescrowd budget simulate birds.csv --target species --budget 500 --features 3 --labels 5 \\
      --noise uniform --rate 0.3 --policy budgeted-selection,round-robin --plot curves.png
  bayescrowd budget simulate nursery --budget 200 --features 2 --posterior fit.nc"""

_PLAN_EPILOG = f"""\
{EPILOG}

output:
  The budget at which the mean error is within the tolerance of that of a classifier with as many
  features that learned from all rows, with an interval; or the finding that the largest budget does
  not reach the tolerance, or that the pilot is too small to tell. --plot draws the gap to the best.
  --json prints one JSON document.

exit codes:
  0 done, 2 bad input or usage, 1 a fault of ours

examples:
  bayescrowd budget plan pilot.csv --target species --features 2 --within 0.02
  bayescrowd budget plan pilot.csv --target species --features 2 --within 0.02 --labels 5 \\
      --noise uniform --rate 0.2 --budget 250,500,1000,2000"""


def add_to(commands: Commands) -> None:
    """Declare the command and its two parts."""
    parser = commands.add_parser(
        "budget",
        help="which labels to buy, and how many",
        description="Try out, on a labelled table, which feature labels to buy under a budget.",
    )
    parts = parser.add_subparsers(title="parts", metavar="PART", required=True)
    simulate = parts.add_parser(
        "simulate",
        help="error against budget, by policy",
        usage="bayescrowd budget simulate TABLE [--target COLUMN] --budget B,... --features K "
        "[options]",
        description="Play policies against a crowd that answers from a labelled table, and compare "
        "the classifiers they end with.",
        epilog=_SIMULATE_EPILOG,
    )
    simulate.set_defaults(run=_run_simulate)
    add_run_options(simulate, repeats=16)
    simulate.add_argument(
        "--budget",
        type=budget_list,
        metavar="B,...",
        required=True,
        help="number of labels that may be bought, or what they may cost (--costs)",
    )
    simulate.add_argument(
        "--policy",
        type=policy_names,
        metavar="NAME,...",
        default=list(POLICIES),
        help="policies to compare, or 'all'; default: all",
    )
    simulate.add_argument("--out", metavar="FILE", help="write one row per run; - prints it")
    simulate.add_argument(
        "--posterior",
        metavar="FILE",
        help="write posterior draws (.nc) of the last repeat of the first policy at the largest "
        "budget",
    )
    plan = parts.add_parser(
        "plan",
        help="how much budget is enough",
        usage="bayescrowd budget plan TABLE [--target COLUMN] --features K --within X [options]",
        description="Find how much budget is needed to come within a tolerance of the best "
        "classifier, on pilot data.",
        epilog=_PLAN_EPILOG,
    )
    plan.set_defaults(run=_run_plan)
    add_run_options(plan, repeats=32)
    plan.add_argument(
        "--within",
        type=share,
        metavar="X",
        required=True,
        help="tolerance, as a share of the instances: 0.02 is two in a hundred",
    )
    plan.add_argument(
        "--budget",
        type=budget_list,
        metavar="B,...",
        help="budgets to try; default: chosen by the table",
    )
    plan.add_argument(
        "--policy", type=policy_name, metavar="NAME", default=DEFAULT, help="(%(default)s)"
    )


def _curve(
    args: argparse.Namespace, table: TableDataset, policies: list[str], budgets: list[float]
) -> pd.DataFrame:
    """Run the policies, and all data for comparison."""
    from bayescrowd.budgeted.evaluation.curve import budget_curve

    return budget_curve(
        factories(policies),
        table,
        budgets,
        args.features,
        **curve_options(args),
        all_data=True,
        journal=args.resume,
    )


# -- simulate ---------------------------------------------------------------------------------


def _run_simulate(args: argparse.Namespace) -> int:
    from bayescrowd.budgeted.evaluation.curve_tables import curve_means, paired_differences

    check_arguments(args, tables=[args.out], containers=[args.posterior])
    if args.out == "-" and args.json:
        raise ValueError("only one of --out - and --json can print")
    table = read_table(args)
    curve = _curve(args, table, args.policy, args.budget)
    means = curve_means(curve).droplevel("n_features")
    differences = None
    if len(args.policy) > 1:
        found = paired_differences(curve, against=args.policy[0])
        differences = found.droplevel("n_features")
    _write(args, curve)
    drawn = None if args.posterior is None else _write_posterior(args, table)
    if args.json:
        document = _simulate_document(args, table, means, differences, drawn)
        print(json.dumps(document, indent=2, ensure_ascii=False, default=str))
    else:
        stream = sys.stderr if args.out == "-" else sys.stdout
        print(_simulate_summary(args, table, means, differences, drawn), file=stream)
    return 0


class _Drawn(NamedTuple):
    """The run whose posterior was written."""

    file: str
    policy: str
    budget: float
    repeat: int
    verdict: str
    """Whether the draws can be trusted."""


def _write_posterior(args: argparse.Namespace, table: TableDataset) -> _Drawn:
    """Play the last repeat of the first policy at the largest budget again, and write its draws.

    The curve's own runs may have been in other processes, or in a journal.
    """
    from bayescrowd.budgeted.evaluation.curve import curve_run
    from bayescrowd.cli.progress import stage
    from bayescrowd.posterior.container import save
    from bayescrowd.posterior.diagnostics import diagnose

    name, budget, repeat = args.policy[0], max(args.budget), args.repeats - 1
    with stage("playing one run again"):
        result = curve_run(
            factories([name])[name],
            table,
            budget,
            args.features,
            repeat=repeat,
            **run_options(args),
        )
    post = result.posterior(seed=args.seed)
    with stage(f"writing {args.posterior}"):
        verdict = diagnose(post).verdict
        save(post, args.posterior, overwrite=args.force)
    return _Drawn(args.posterior, name, budget, repeat, verdict)


def _write(args: argparse.Namespace, curve: pd.DataFrame) -> None:
    from bayescrowd.io.writing import csv_text, write_table

    flat = curve.assign(selected=["|".join(map(str, names)) for names in curve["selected"]])
    if args.out == "-":
        print(csv_text(flat, raw_cells=args.raw_cells), end="")
    elif args.out is not None:
        write_table(flat, args.out, overwrite=args.force, raw_cells=args.raw_cells)
    if args.plot is not None:
        from bayescrowd.plots.budget import budget_curves

        save_picture(budget_curves(curve), args)


def _simulate_document(
    args: argparse.Namespace,
    table: TableDataset,
    means: pd.DataFrame,
    differences: pd.DataFrame | None,
    drawn: _Drawn | None,
) -> dict[str, Any]:
    return {
        **settings(args, table),
        "errors": _records(means),
        "against": args.policy[0],
        "differences": [] if differences is None else _records(differences),
        "posterior": None if drawn is None else drawn._asdict(),
    }


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(
        frame.reset_index().to_json(orient="records", double_precision=15)
    )
    return rows


def _simulate_summary(
    args: argparse.Namespace,
    table: TableDataset,
    means: pd.DataFrame,
    differences: pd.DataFrame | None,
    drawn: _Drawn | None,
) -> str:
    from bayescrowd.budgeted.evaluation.curve_tables import ALL_DATA

    header = ["", *(f"{budget:g}" for budget in args.budget)]
    rows = [header]
    for name in [*args.policy, ALL_DATA]:
        part = means.loc[name]
        rows.append([name, *(_with_error(part.loc[b]) for b in args.budget)])
    title = (
        f"test error with {quantity(args.features, 'feature')}, by budget (mean and standard error "
        f"of {quantity(args.repeats, 'repeat')})"
    )
    paragraphs = [
        table_summary(args, table),
        f"{title}\n{align(rows)}",
    ]
    if differences is not None:
        rows = [header]
        for name in args.policy[1:]:
            part = differences.loc[name]
            rows.append([name, *(_with_sign(part.loc[b]) for b in args.budget)])
        paragraphs.append(
            f"error above that of {args.policy[0]}, repeat by repeat; * beyond two standard errors"
            f"\n{align(rows)}"
        )
    unspent = [
        f"{name} spends {means.loc[(name, budget), 'spent']:.0f} of {budget:g}"
        for name in args.policy
        for budget in args.budget
        if means.loc[(name, budget), "spent"] < 0.95 * budget
    ]
    if unspent:
        paragraphs.append(f"budget left unspent: {'; '.join(unspent)}")
    if drawn is not None:
        paragraphs.append(
            f"{drawn.file}: posterior of {drawn.policy} with a budget of {drawn.budget:g}, repeat "
            f"{drawn.repeat} (the last), written\n{drawn.verdict}"
        )
    return "\n\n".join([*paragraphs, *_written(args)])


def _with_error(row: pd.Series) -> str:
    spread = row["standard_error"]
    return f"{row['error']:.3f}" + ("" if math.isnan(spread) else f" ±{spread:.3f}")


def _with_sign(row: pd.Series) -> str:
    difference, spread = float(row["difference"]), float(row["standard_error"])
    if math.isnan(spread):
        return f"{difference:+.3f}"
    mark = "*" if abs(difference) > 2 * spread else " "
    return f"{difference:+.3f} ±{spread:.3f}{mark}"


# -- plan -------------------------------------------------------------------------------------


def _run_plan(args: argparse.Namespace) -> int:
    from bayescrowd.budgeted.evaluation.curve import budget_curve
    from bayescrowd.budgeted.evaluation.planning import LEAST_REPEATS, plan_budget

    if args.repeats < LEAST_REPEATS:
        raise ValueError(f"--repeats {args.repeats}: expected at least {LEAST_REPEATS}")
    check_arguments(args, tables=[])
    table = read_table(args)
    budgets = args.budget or _grid(args, table)
    curve = _curve(args, table, [args.policy], budgets)
    # All data of half the rows say whether more rows would make the best better.
    half = budget_curve(
        {},
        table,
        budgets[:1],
        args.features,
        **curve_options(args),
        train_share=0.4,
        all_data=True,
    )
    plan = plan_budget(curve, policy=args.policy, within=args.within, half=half, seed=args.seed)
    if args.plot is not None:
        save_picture(_plan_picture(args, plan), args)
    if args.json:
        print(json.dumps(_plan_document(args, table, plan), indent=2, ensure_ascii=False))
    else:
        print("\n\n".join([table_summary(args, table), _plan_lines(args, plan), *_written(args)]))
    return 0


def _grid(args: argparse.Namespace, table: TableDataset) -> list[float]:
    """Budgets from five observations per selected feature to all cells, evenly spaced in logs."""
    n_cells = int(0.8 * table.features.notna().to_numpy().sum())
    least = min(5 * args.features, n_cells)
    most = max(min(n_cells, 400 * args.features), least)
    steps = [least * (most / least) ** (i / (N_BUDGETS - 1)) for i in range(N_BUDGETS)]
    price = args.labels * fmean(args.costs.get(name, 1.0) for name in table.features.columns)
    return sorted({float(round(price * max(1, round(step)), 6)) for step in steps})


def _plan_lines(args: argparse.Namespace, plan: BudgetPlan) -> str:
    rows = [["budget", "above the best", "made monotone"]]
    for budget, row in plan.gaps.iterrows():
        gap = f"{row['gap']:+.3f} ±{row['standard_error']:.3f}"
        rows.append([f"{budget:g}", gap, f"{row['monotone']:+.3f}"])
    course = (
        f"error of {args.policy} above that of all data ({plan.best_error:.3f}) with "
        f"{quantity(args.features, 'feature')}\n{align(rows, left=())}"
    )
    return f"{course}\n\n{_answer(args, plan)}"


def _answer(args: argparse.Namespace, plan: BudgetPlan) -> str:
    if plan.verdict == "pilot too small":
        return f"The pilot is too small to answer: {plan.reason}."
    if plan.verdict == "not reached":
        return f"Not within {args.within:g} of the best: {plan.reason}."
    least = float(plan.gaps.index[0])
    answer = f"about {plan.budget:.0f}" if plan.budget > least else f"at most {least:g}"
    low = f"{plan.lower:.0f}" if plan.lower > 0 else f"less than {least:g}"
    largest = float(plan.gaps.index[-1])
    high = f"{plan.upper:.0f}" if math.isfinite(plan.upper) else f"more than {largest:g}"
    return (
        f"Within {args.within:g} of the best with a budget of {answer} "
        f"(90 % interval: {low} to {high})."
    )


def _plan_document(
    args: argparse.Namespace, table: TableDataset, plan: BudgetPlan
) -> dict[str, Any]:
    return {
        **settings(args, table),
        "policy": args.policy,
        "within": args.within,
        "verdict": plan.verdict,
        "reason": plan.reason,
        "budget": number_or_none(plan.budget),
        "lower": plan.lower,
        "upper": number_or_none(plan.upper),
        "best_error": plan.best_error,
        "gaps": _records(plan.gaps),
    }


def _plan_picture(args: argparse.Namespace, plan: BudgetPlan) -> Any:
    from bayescrowd.plots.budget import budget_plan

    return budget_plan(plan, within=args.within)


def _written(args: argparse.Namespace) -> list[str]:
    files = {getattr(args, "out", None): "runs", args.plot: "picture", args.resume: "journal"}
    lines = [f"{path}: {what} written" for path, what in files.items() if path not in (None, "-")]
    return ["\n".join(lines)] if lines else []
