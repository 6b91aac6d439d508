"""`bayescrowd compare`: which model best predicts the labels of tasks that it has not seen."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from bayescrowd._version import __version__
from bayescrowd.cli.arguments import (
    LABELS_HELP,
    Commands,
    add_reading_options,
    check_outputs,
    comma_separated,
    read_labels,
)
from bayescrowd.cli.sampling import (
    add_sampling_options,
    counts_of,
    input_line,
    model_list,
    model_name,
    models_of_labels,
    modes_of,
    number_or_none,
)
from bayescrowd.cli.text import align
from bayescrowd.data.text import quantity

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.data.annotations import Annotations
    from bayescrowd.posterior.diagnostics import Diagnosis

__all__ = ["add_to"]

LEAST_DIFFERENCE = 4.0
"""Differences below this many nats mean nothing, whatever their errors (Sivula et al. 2020)."""

_DESCRIPTION = """\
Rank models by how well they predict the labels of a task left out of the fit (PSIS-LOO). No true
labels are needed."""

_EPILOG = """\
input:
  As for 'bayescrowd aggregate': CSV, TSV, JSON, Parquet or a platform's export, with one row per
  judgement or, for panels of judges, one column per judge; or a data set by its name (bluebird).

output:
  One row per model, best first:
  elpd         expected log predictive density of a new task's labels, summed over tasks (nats), and
               its standard error
  difference   difference in elpd from the best model, and its standard error
  weight       weight of the model in the mixture of models that predicts best (stacking)
  p            effective number of parameters
  unreliable   number of tasks whose part of elpd is unreliable (Pareto k above 0.7)
  --out writes the table in the format of the extension: .csv, .tsv, .jsonl or .parquet; '-' prints
  CSV. --plot draws it: .png, .pdf or .svg. --json prints one JSON document and no summary.

exit codes:
  0 done, 2 bad input or usage, 1 a fault of ours

examples:
  bayescrowd compare labels.csv
  bayescrowd compare labels.csv --models dawid_skene,one_coin --draws 1000 --plot models.png"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "compare",
        help="rank models of the labels by leave-one-out prediction",
        usage="bayescrowd compare LABELS [--models A,B,...] [options]",
        description=_DESCRIPTION,
    )
    parser.make_epilog = _epilog
    parser.set_defaults(run=_run)
    parser.add_argument("labels", metavar="LABELS", help=LABELS_HELP)
    parser.add_argument(
        "--models",
        type=_model_names,
        metavar="A,B,...",
        help="models to compare; default: those with a Gibbs sampler, which are quick",
    )
    add_sampling_options(parser, draws=500)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out", metavar="FILE", help="write a table with one row per model; - prints it"
    )
    output.add_argument("--plot", metavar="FILE", help="draw the comparison")
    output.add_argument(
        "--json", action="store_true", help="print one JSON document instead of the summary"
    )
    output.add_argument("--force", action="store_true", help="overwrite existing files")
    add_reading_options(parser)


def _epilog() -> str:
    return f"""\
models:
{model_list()}
  Default: {",".join(_quick_models())}.
  A model with a parameter for each task, such as item_difficulty, has no data on that parameter
  when the task is left out: expect unreliable tasks.

{_EPILOG}"""


def _quick_models() -> list[str]:
    """Names of the models with a Gibbs sampler, which are quick."""
    return [name for name, facts in models_of_labels().items() if facts.has_conditionals]


class _Fit(NamedTuple):
    """One model's posterior."""

    method: str
    post: Any
    diagnosis: Diagnosis
    seconds: float


def _run(args: argparse.Namespace) -> int:
    from bayescrowd.cli.progress import stage
    from bayescrowd.posterior.diagnostics import compare

    if args.out == "-" and args.json:
        raise ValueError("only one of --out - and --json can print")
    check_outputs(
        inputs=[args.labels],
        tables=[args.out],
        pictures=[args.plot],
        overwrite=args.force,
    )
    with stage(f"reading {args.labels}"):
        annotations = read_labels(args)
    fits = {name: _sample(args, annotations, name) for name in args.models or _quick_models()}
    with stage("leaving out each task"):
        table = compare({name: fit.post for name, fit in fits.items()})
    _write(args, table)
    if args.json:
        document = _document(args, annotations, fits, table)
        print(json.dumps(document, indent=2, ensure_ascii=False, default=str))
    else:
        text = _summary(args, annotations, fits, table)
        print(text, file=sys.stderr if args.out == "-" else sys.stdout)
    return 0


def _sample(args: argparse.Namespace, annotations: Annotations, name: str) -> _Fit:
    from bayescrowd.posterior.diagnostics import diagnose
    from bayescrowd.posterior.sample import sample_posterior

    start = time.perf_counter()
    post = sample_posterior(
        name,
        annotations,
        chains=args.chains,
        draws=args.draws,
        most_draws=args.most_draws,
        warmup=args.warmup,
        seed=args.seed,
        predictive=False,
    )
    return _Fit(post.attrs["method"], post, diagnose(post), time.perf_counter() - start)


def _write(args: argparse.Namespace, table: pd.DataFrame) -> None:
    from bayescrowd.io.writing import csv_text, write_picture, write_table

    rows = table.rename_axis("model").reset_index()
    if args.out == "-":
        print(csv_text(rows, raw_cells=args.raw_cells), end="")
    elif args.out is not None:
        write_table(rows, args.out, overwrite=args.force, raw_cells=args.raw_cells)
    if args.plot is not None:
        from matplotlib.figure import Figure

        from bayescrowd.plots.posterior import loo_comparison

        figure = Figure(figsize=(6.4, 0.5 * len(table) + 1.8), dpi=150, layout="constrained")
        loo_comparison(table, figure.subplots())
        write_picture(figure, args.plot, overwrite=args.force)


def _document(
    args: argparse.Namespace,
    annotations: Annotations,
    fits: dict[str, _Fit],
    table: pd.DataFrame,
) -> dict[str, Any]:
    """Everything that was found, for machines."""
    rows = []
    for name, row in table.iterrows():
        fit = fits[str(name)]
        rows.append(
            {
                "model": name,
                **{column: number_or_none(value) for column, value in row.items()},
                "n_bad": int(row["n_bad"]),
                "method": fit.method,
                "seconds": fit.seconds,
                "is_trustworthy": fit.diagnosis.is_trustworthy,
                "verdict": fit.diagnosis.verdict,
                "modes": modes_of(fit.post),
            }
        )
    return {
        "bayescrowd": __version__,
        "input": counts_of(_source(args), annotations),
        "sampling": {"chains": args.chains, "draws": args.draws, "seed": args.seed},
        "conclusion": _conclusion(table),
        "models": rows,
    }


def _summary(
    args: argparse.Namespace,
    annotations: Annotations,
    fits: dict[str, _Fit],
    table: pd.DataFrame,
) -> str:
    rows = [["model", "elpd", "se", "difference", "se", "weight", "p", "unreliable", "seconds"]]
    for row in table.itertuples():
        rows.append(
            [
                str(row.Index),
                f"{row.elpd:,.1f}",
                f"{row.se:.1f}",
                f"{row.elpd_diff:,.1f}",
                f"{row.dse:.1f}",
                f"{row.weight:.2f}",
                f"{row.p:,.1f}",
                f"{row.n_bad:,}",
                f"{fits[str(row.Index)].seconds:.1f}",
            ]
        )
    paragraphs = [
        input_line(_source(args), annotations),
        "models by how well they predict left-out tasks (nats, higher is better)\n" + align(rows),
        _conclusion(table),
    ]
    doubts = [
        f"{name}: {fit.diagnosis.verdict}"
        for name, fit in fits.items()
        if not fit.diagnosis.is_trustworthy
    ]
    if doubts:
        paragraphs.append("\n".join(doubts))
    written = [
        f"{path}: {what} written"
        for path, what in ((args.out, quantity(len(table), "model")), (args.plot, "picture"))
        if path not in (None, "-")
    ]
    if written:
        paragraphs.append("\n".join(written))
    return "\n\n".join(paragraphs)


def _conclusion(table: pd.DataFrame) -> str:
    """A sentence on which models the labels cannot tell from the best."""
    best, *others = table.index
    close = [
        str(name)
        for name in others
        if -table.loc[name, "elpd_diff"] < max(LEAST_DIFFERENCE, 2 * table.loc[name, "dse"])
    ]
    if not others:
        return f"{best} is the only model; there is nothing to compare it with."
    if not close:
        return f"{best} predicts best, by more than two standard errors."
    return f"{best} predicts best, but not clearly better than {', '.join(close)}."


def _source(args: argparse.Namespace) -> str:
    return "standard input" if args.labels == "-" else args.labels


def _model_names(text: str) -> list[str]:
    names = [model_name(name) for name in comma_separated(text)]
    if len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r}: a model is named twice")
    return names
