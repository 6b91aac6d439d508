"""`bayescrowd posterior`: how certain labels and workers' accuracies are, by posterior draws."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bayescrowd._version import __version__
from bayescrowd.cli.arguments import (
    CONTAINERS,
    LABELS_HELP,
    Commands,
    add_reading_options,
    check_outputs,
    read_labels,
)
from bayescrowd.cli.inputs import use_own_truth
from bayescrowd.cli.known_labels import (
    GoldAndTruth,
    add_column_options,
    read_gold_and_truth,
    without_truth_warnings,
)
from bayescrowd.cli.sampling import (
    add_sampling_options,
    counts_of,
    input_line,
    model_list,
    model_name,
    modes_of,
    number_or_none,
)
from bayescrowd.cli.text import align
from bayescrowd.data.text import quantity, shorten

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.data.annotations import Annotations
    from bayescrowd.metrics import Scores
    from bayescrowd.posterior.diagnostics import Diagnosis

__all__ = ["add_to"]

SURE = 0.95
"""Labels less probable than this are called uncertain."""
N_SHOWN = 6
"""Number of workers shown at either end, and of tasks shown."""

_DESCRIPTION = """\
Draw from the posterior of a crowd model: how probable each task's label is and how accurate each
worker is, with the uncertainty about all other tasks and workers taken into account."""

_EPILOG = """\
methods:
  gibbs  quick and exact, for conjugate models; the default where the model has it
  nuts   Hamiltonian Monte Carlo, for any model
  svi    a normal approximation fitted to mini-batches, for very many labels

input:
  As for 'bayescrowd aggregate': CSV, TSV, JSON, Parquet or a platform's export, with one row per
  judgement or, for panels of judges, one column per judge; or a data set by its name (bluebird).

output:
  A summary is printed: whether the draws can be trusted (worst R-hat, smallest effective sample
  sizes in bulk and tail, divergences, a verdict), the accuracy of workers with 89 % intervals, and
  the tasks whose label is uncertain (less than 95 % probable). --out writes all draws for ArviZ
  (NetCDF, .nc). --labels writes one row per task (task, label, probability, entropy, n_votes) and
  --workers one row per worker (worker, accuracy, lower, upper, n_labels), in the format of the
  extension: .csv, .tsv, .jsonl (each also with .gz) or .parquet; '-' prints CSV. --plot draws the
  workers, the chains and, with --truth, the calibration: .png, .pdf or .svg. --json prints one
  JSON document and no summary. Ctrl-C ends the sampling and keeps the draws so far.

exit codes:
  0 done, 2 bad input or usage, 1 a fault of ours

examples:
  bayescrowd posterior labels.csv
  bayescrowd posterior labels.csv --gold known.csv --truth truth.csv
  bayescrowd posterior labels.csv --model hierarchical_dawid_skene --out fit.nc
  bayescrowd posterior labels.csv --labels labelled.csv --workers workers.csv --plot fit.png"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "posterior",
        help="how certain labels and workers' accuracies are",
        usage="bayescrowd posterior LABELS [options]",
        description=_DESCRIPTION,
    )
    parser.make_epilog = _epilog
    parser.set_defaults(run=_run)
    parser.add_argument("labels", metavar="LABELS", help=LABELS_HELP)
    parser.add_argument(
        "--model",
        type=model_name,
        default="dawid_skene",
        help="model of the crowd, one of those below; default: %(default)s",
    )
    parser.add_argument(
        "--method",
        choices=("gibbs", "nuts", "svi"),
        help="sampler; default: gibbs if the model has it, else nuts",
    )
    add_sampling_options(parser, draws=1000)
    known = parser.add_argument_group("known labels (a table with a task and a label per row)")
    known.add_argument("--gold", metavar="FILE", help="true labels to which the draws are held")
    known.add_argument(
        "--truth",
        metavar="FILE",
        help="true labels, used for scoring only; tasks that are also in --gold are not scored; "
        "default: those of the data set that LABELS names",
    )
    add_column_options(known)
    output = parser.add_argument_group("output")
    output.add_argument("--out", metavar="FILE", help="write all draws to a NetCDF file (.nc)")
    output.add_argument(
        "--labels",
        dest="labels_out",
        metavar="FILE",
        help="write a table with one row per task; - prints it",
    )
    output.add_argument(
        "--workers", metavar="FILE", help="write a table with one row per worker; - prints it"
    )
    output.add_argument(
        "--plot", metavar="FILE", help="draw the workers, the chains and the calibration"
    )
    output.add_argument(
        "--json", action="store_true", help="print one JSON document instead of the summary"
    )
    output.add_argument("--force", action="store_true", help="overwrite existing files")
    add_reading_options(parser)


def _epilog() -> str:
    return f"models:\n{model_list()}\n\n{_EPILOG}"


class _Outcome(NamedTuple):
    """What the command reports."""

    source: str
    model: str
    method: str
    annotations: Annotations
    post: Any
    seconds: float
    diagnosis: Diagnosis
    known: GoldAndTruth
    scores: Scores | None
    probas: pd.DataFrame
    tasks: pd.DataFrame
    workers: pd.DataFrame


def _run(args: argparse.Namespace) -> int:
    use_own_truth(args)
    _check_arguments(args)
    outcome = _sample(args)
    _write(args, outcome)
    if args.json:
        print(json.dumps(_document(args, outcome), indent=2, ensure_ascii=False, default=str))
    else:
        summary = sys.stderr if "-" in (args.labels_out, args.workers) else sys.stdout
        print(_summary(args, outcome), file=summary)
    return 0


def _check_arguments(args: argparse.Namespace) -> None:
    """Raise before any work is done if the arguments contradict each other."""
    if [args.labels, args.gold, args.truth].count("-") > 1:
        raise ValueError("only one of the files can come from standard input")
    if [args.labels_out, args.workers].count("-") + args.json > 1:
        raise ValueError("only one of --labels -, --workers - and --json can print")
    if args.out is not None and Path(args.out).suffix.lower() not in CONTAINERS:
        raise ValueError(
            f"{args.out}: expected a name that ends in .nc for all draws; --labels FILE writes a "
            "table of the labels"
        )
    check_outputs(
        inputs=[args.labels, args.gold, args.truth],
        tables=[args.labels_out, args.workers],
        pictures=[args.plot],
        containers=[args.out],
        overwrite=args.force,
    )


def _sample(args: argparse.Namespace) -> _Outcome:
    from bayescrowd.cli.progress import stage
    from bayescrowd.metrics import score_table
    from bayescrowd.posterior.diagnostics import diagnose
    from bayescrowd.posterior.sample import label_posterior, sample_posterior
    from bayescrowd.posterior.workers import worker_posterior

    with stage(f"reading {args.labels}"):
        annotations = read_labels(args)
        known = read_gold_and_truth(args, annotations)
    start = time.perf_counter()
    # Log-likelihoods and predictive draws are only ever written to a file.
    post = sample_posterior(
        args.model,
        annotations,
        args.method,
        gold=known.gold_labels,
        chains=args.chains,
        draws=args.draws,
        most_draws=args.most_draws,
        warmup=args.warmup,
        seed=args.seed,
        log_likelihood=args.out is not None,
        predictive=args.out is not None,
    )
    seconds = time.perf_counter() - start
    with stage("judging the draws"):
        diagnosis = diagnose(post)
    probas = label_posterior(post).set_axis(annotations.tasks).set_axis(annotations.classes, axis=1)
    workers = worker_posterior(post).set_axis(annotations.workers)
    return _Outcome(
        source="standard input" if args.labels == "-" else args.labels,
        model=args.model,
        method=post.attrs["method"],
        annotations=annotations,
        post=post,
        seconds=seconds,
        diagnosis=diagnosis,
        known=known,
        scores=None if known.scored is None else score_table(probas, known.scored),
        probas=probas,
        tasks=_task_table(probas, annotations),
        workers=workers.rename_axis("worker").reset_index(),
    )


def _task_table(probas: pd.DataFrame, ann: Annotations) -> pd.DataFrame:
    import pandas as pd
    from scipy.special import entr

    values = probas.to_numpy()
    return pd.DataFrame(
        {
            "task": ann.tasks,
            "label": ann.classes.take(values.argmax(axis=1)),
            "probability": values.max(axis=1),
            "entropy": entr(values).sum(axis=1),
            "n_votes": ann.labels_per_task,
        }
    )


def _write(args: argparse.Namespace, outcome: _Outcome) -> None:
    from bayescrowd.cli.progress import stage
    from bayescrowd.io.writing import csv_text, write_picture, write_table
    from bayescrowd.posterior.container import save

    for path, table in ((args.labels_out, outcome.tasks), (args.workers, outcome.workers)):
        if path == "-":
            print(csv_text(table, raw_cells=args.raw_cells), end="")
        elif path is not None:
            write_table(table, path, overwrite=args.force, raw_cells=args.raw_cells)
    if args.out is not None:
        with stage(f"writing {args.out}"):
            save(outcome.post, args.out, overwrite=args.force)
    if args.plot is not None:
        from bayescrowd.plots.posterior import posterior_overview

        with without_truth_warnings():
            figure = posterior_overview(
                outcome.post, probas=outcome.probas, truth=outcome.known.scored
            )
        write_picture(figure, args.plot, overwrite=args.force)


def _document(args: argparse.Namespace, outcome: _Outcome) -> dict[str, Any]:
    """Everything that was found, for machines."""
    diagnosis, known = outcome.diagnosis, outcome.known
    return {
        "bayescrowd": __version__,
        "model": outcome.model,
        "method": outcome.method,
        "input": counts_of(outcome.source, outcome.annotations)
        | {
            "n_gold": known.n_used,
            "gold": None if known.gold is None else known.gold.counts(),
            "truth": None if known.truth is None else known.truth.counts(),
        },
        "sampling": {
            "chains": args.chains,
            "draws": args.draws,
            "seed": args.seed,
            "is_complete": bool(outcome.post.attrs.get("is_complete", 1)),
            "seconds": outcome.seconds,
        },
        "diagnosis": {
            "verdict": diagnosis.verdict,
            "is_trustworthy": diagnosis.is_trustworthy,
            "rhat": number_or_none(diagnosis.rhat),
            "ess_bulk": number_or_none(diagnosis.ess_bulk),
            "ess_tail": number_or_none(diagnosis.ess_tail),
            "n_divergent": diagnosis.n_divergent,
            "pareto_k": number_or_none(diagnosis.pareto_k),
            "problems": list(diagnosis.problems),
        },
        "modes": modes_of(outcome.post),
        "scores": None if outcome.scores is None else outcome.scores._asdict(),
        "tasks": outcome.tasks.to_dict("records"),
        "workers": outcome.workers.to_dict("records"),
    }


def _summary(args: argparse.Namespace, outcome: _Outcome) -> str:
    paragraphs = [input_line(outcome.source, outcome.annotations), _draw_lines(outcome)]
    if outcome.scores is not None:
        paragraphs.append(_score_lines(outcome, args.truth))
    paragraphs += [_worker_lines(outcome.workers), _task_lines(outcome.tasks)]
    written = [
        f"{path}: {what} written"
        for path, what in (
            (args.out, "all draws"),
            (args.labels_out, quantity(len(outcome.tasks), "task")),
            (args.workers, quantity(len(outcome.workers), "worker")),
            (args.plot, "picture"),
        )
        if path not in (None, "-")
    ]
    if written:
        paragraphs.append("\n".join(written))
    return "\n\n".join(paragraphs)


def _draw_lines(outcome: _Outcome) -> str:
    diagnosis, n_gold = outcome.diagnosis, outcome.known.n_used
    held = [f"  {quantity(n_gold, 'task')} held to the known label (gold)"] if n_gold else []
    return "\n".join(
        [
            f"{outcome.model} by {outcome.method}, {outcome.seconds:.1f} s",
            *held,
            f"  worst R-hat                 {diagnosis.rhat:.3f}",
            f"  smallest ESS, bulk          {diagnosis.ess_bulk:,.0f}",
            f"  smallest ESS, tail          {diagnosis.ess_tail:,.0f}",
            f"  divergences                 {diagnosis.n_divergent:,}",
            f"  {diagnosis.verdict}",
        ]
    )


def _score_lines(outcome: _Outcome, truth: str) -> str:
    scores, n_unscored = outcome.scores, outcome.known.n_unscored
    assert scores is not None  # asked for only with a truth
    left_out = f"; {n_unscored:,} more are gold" if n_unscored else ""
    rows = [
        ("accuracy", scores.accuracy),
        ("log loss (nats)", scores.log_loss),
        ("Brier score", scores.brier),
        ("expected calibration error", scores.ece),
    ]
    lines = [f"scored on {quantity(scores.n, 'task')} of {truth}{left_out}"]
    return "\n".join([*lines, *(f"  {name:<26}  {value:.4f}" for name, value in rows)])


def _worker_lines(workers: pd.DataFrame) -> str:
    """The best and the worst workers."""
    ranked = workers.sort_values("accuracy", ascending=False, kind="stable")
    rows = [["worker", "accuracy", "89 % interval", "labels"]]
    if len(ranked) > 2 * N_SHOWN + 1:
        between = f"... and {len(ranked) - 2 * N_SHOWN:,} more"
        rows += [
            *_worker_rows(ranked.head(N_SHOWN)),
            [between, "", "", ""],
            *_worker_rows(ranked.tail(N_SHOWN)),
        ]
    else:
        rows += _worker_rows(ranked)
    return f"workers by accuracy (share of right labels)\n{align(rows)}"


def _worker_rows(workers: pd.DataFrame) -> list[list[str]]:
    return [
        [
            shorten(row.worker, 32),
            f"{row.accuracy:.3f}",
            f"{row.lower:.3f} to {row.upper:.3f}",
            f"{row.n_labels:,}",
        ]
        for row in workers.itertuples(index=False)
    ]


def _task_lines(tasks: pd.DataFrame) -> str:
    doubtful = tasks[tasks["probability"] < SURE].sort_values("probability", kind="stable")
    title = f"{len(doubtful):,} of {quantity(len(tasks), 'label')} less than {SURE:.0%} sure"
    if doubtful.empty:
        return title
    rows = [["task", "label", "probability", "votes"]]
    for row in doubtful.head(N_SHOWN).itertuples(index=False):
        rows.append(
            [
                shorten(row.task, 32),
                shorten(row.label, 32),
                f"{row.probability:.3f}",
                f"{row.n_votes:,}",
            ]
        )
    if len(doubtful) > N_SHOWN:
        rows.append([f"... and {len(doubtful) - N_SHOWN:,} more", "", "", ""])
    return f"{title}, the least sure first\n{align(rows, left=(0, 1))}"
