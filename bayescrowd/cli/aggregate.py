"""`bayescrowd aggregate`: true labels and worker quality from a file of judgements."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from bayescrowd._version import __version__
from bayescrowd.cli.aggregate_text import ScoresBesideVote, score_beside_vote, worker_lines
from bayescrowd.cli.agreement_text import (
    agreement_document,
    agreement_line,
    votes_document,
    votes_line,
)
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
    positive_number,
    read_labels,
)
from bayescrowd.cli.inputs import use_own_truth
from bayescrowd.cli.known_labels import (
    GoldAndTruth,
    add_column_options,
    read_gold_and_truth,
    without_truth_warnings,
)
from bayescrowd.cli.new_tasks import label_new_tasks
from bayescrowd.cli.task_tables import first_tasks, task_table
from bayescrowd.data.text import quantity

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.aggregation.protocol import Aggregator
    from bayescrowd.data.annotations import Annotations

__all__ = ["add_to"]

_METHOD_LIST = "\n".join(f"  {name:<17} {method.summary}" for name, method in METHODS.items())

_DESCRIPTION = """\
Aggregate the labels of a crowd: the most probable true label of every task and the quality of
every worker."""

_EPILOG = f"""\
methods:
{_METHOD_LIST}

input:
  A table with one row per judgement: CSV, TSV, JSON lines, a JSON array or Parquet, text also
  gzipped, in UTF-8 or UTF-16; or an export of Mechanical Turk, Toloka or Label Studio. Columns are
  found by their usual names (task, item, image, ...; worker, annotator, judge, ...; label, answer,
  rating, value, ...), which is said on standard error, or named with --task, --worker and --label;
  those of a file without a header with --columns. Rows without a label are left out and counted.
  LABELS may be the name of a data set (bluebird, rte, ...: 'bayescrowd datasets list'), unless
  there is a file of this name. It is scored against its own truth if --truth names no other; --gold
  and --truth take names of data sets, too.
  Labels that differ only in case or surrounding blanks are reported; --tidy merges them.
  Panels of judges may come as a wide table, with a row per task and a column of labels per judge,
  or as one JSON object {{judge: {{task: label}}}}. --format wide takes every column but the task's
  (and one named truth or gold) for a judge; without it, a table is wide if it has no column for the
  worker or the label and its other columns hold the same few labels.
  Known labels of tasks without judgements are left out and counted as well. A task whose true class
  nobody chose counts as wrong (--truth) or is not used (--gold), unless --classes names the class.

output:
  A summary is printed, with the agreement of the workers ('bayescrowd agreement' says more) and,
  where the method knows it, the number of independent votes that a task's labels amount to; '-'
  stands for what is not defined. The results go where --out and --workers say, in the format of the
  extension: .csv, .tsv, .jsonl (each also with .gz) or .parquet. '--out -' prints the table as
  CSV and sends the summary to standard error; --json prints one JSON document with both tables and
  no summary. --plot draws a picture of the fit: .png, .pdf or .svg. In CSV and TSV, text that a
  spreadsheet would run as a formula has an apostrophe in front ('=x for =x), which is taken off on
  reading; --raw-cells does neither.

  per task:    task, label, probability (of that label), entropy (of the task's class
               probabilities, in nats), n_votes (judgements of the task)
  per worker:  worker, accuracy (estimated share of right labels), information (mutual information
               of label and truth, in nats), n_labels, flag (spammer, adversary or empty)

exit codes:
  0 done, 2 bad input or usage, 1 a fault of ours

examples:
  bayescrowd aggregate labels.csv
  bayescrowd aggregate bluebird
  bayescrowd aggregate votes.txt --columns task,worker,label --tidy
  bayescrowd aggregate labels.csv --out aggregated.csv --workers workers.csv
  bayescrowd aggregate labels.csv --save fit.npz
  bayescrowd aggregate new.csv --fit fit.npz --out new-aggregated.csv
  bayescrowd aggregate answers.tsv --task item --label answer --gold known.csv --out -
  zcat labels.csv.gz | bayescrowd aggregate - --method wawa --truth truth.csv --json"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "aggregate",
        help="true labels and worker quality from a file of judgements",
        usage="bayescrowd aggregate LABELS [options]",
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
        help="true labels, used for scoring only: accuracy with its interval and beside that of "
        "the majority vote, macro-F1, log loss, Brier score and expected calibration error are "
        "printed; tasks that are also in --gold are not scored",
    )
    add_column_options(known)
    model_help = "a classifier's probabilities per task and class, which make it one more rater"
    parser.add_argument("--predictions", metavar="FILE", help=model_help)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out", metavar="FILE", help="write a table with one row per task; - prints it"
    )
    output.add_argument(
        "--workers", metavar="FILE", help="write a table with one row per worker; - prints it"
    )
    output.add_argument(
        "--plot",
        metavar="FILE",
        help="draw the workers, how sure the labels are, and with --truth how often they are right",
    )
    output.add_argument(
        "--save", metavar="FIT", help="write the fit to a file, with which --fit labels new tasks"
    )
    output.add_argument(
        "--probabilities",
        action="store_true",
        help="add a column for each class to the table of tasks",
    )
    output.add_argument(
        "--json", action="store_true", help="print one JSON document instead of the summary"
    )
    output.add_argument("--force", action="store_true", help="overwrite existing files")
    add_reading_options(parser)
    fitting = parser.add_argument_group("fitting")
    fitting.add_argument(
        "--fit",
        metavar="FIT",
        help="label the tasks with a fit that --save wrote, instead of a new one; raters whom it "
        "does not know count as the crowd's average, and it is an error if a label is none of its "
        "classes",
    )
    fitting.add_argument(
        "--seed", type=natural_number, metavar="N", help="seed of the random choices; default: 0"
    )
    fitting.add_argument(
        "--n-init",
        type=positive_number,
        metavar="N",
        help="number of starts of EM, of which the best fit is kept",
    )
    fitting.add_argument(
        "--n-iter", type=positive_number, metavar="N", help="maximum number of iterations"
    )


class _Outcome(NamedTuple):
    """What the command reports."""

    source: str
    method: str
    annotations: Annotations
    estimator: Aggregator
    seconds: float
    known: GoldAndTruth
    scores: ScoresBesideVote | None
    agreement: pd.DataFrame
    tasks: pd.DataFrame
    workers: pd.DataFrame


def _run(args: argparse.Namespace) -> int:
    use_own_truth(args)
    if args.fit is not None:
        return label_new_tasks(args)
    _check_files(args)
    estimator = make_estimator(args.method, seed=args.seed, n_init=args.n_init, n_iter=args.n_iter)
    outcome = _aggregate(args, estimator)
    _write(outcome, args)
    if args.json:
        print(json.dumps(_document(outcome), indent=2, ensure_ascii=False, default=str))
    else:
        summary = sys.stderr if "-" in (args.out, args.workers) else sys.stdout
        print(_summary(outcome, args), file=summary)
    return 0


def _aggregate(args: argparse.Namespace, estimator: Aggregator) -> _Outcome:
    from bayescrowd.agreement import agreement_table
    from bayescrowd.cli.progress import iterations, stage
    from bayescrowd.io.model_predictions import read_predictions

    with stage(f"reading {args.labels}"):
        annotations = read_labels(args)
        path = args.predictions
        more = {"predictions": read_predictions(path, annotations)} if path else {}
        known = read_gold_and_truth(args, annotations)
    start = time.perf_counter()
    with iterations(args.method):
        estimator.fit(annotations, gold=known.gold_labels, **more)
    seconds = time.perf_counter() - start
    scores = None
    if known.scored is not None:
        scores = score_beside_vote(estimator.probas_, known.scored, annotations)
    return _Outcome(
        source="standard input" if args.labels == "-" else args.labels,
        method=args.method,
        annotations=annotations,
        estimator=estimator,
        seconds=seconds,
        known=known,
        scores=scores,
        agreement=agreement_table(annotations),
        tasks=task_table(
            estimator.labels_, estimator.probas_, annotations, every_class=args.probabilities
        ),
        workers=estimator.worker_quality_.reset_index(),
    )


def _check_files(args: argparse.Namespace) -> None:
    """Raise before any work is done if the files contradict each other."""
    inputs = [args.labels, args.gold, args.truth, args.predictions]
    outputs = [args.out, args.workers]
    if args.predictions and args.method != DEFAULT_METHOD:
        raise ValueError(f"--predictions: not used by {args.method}; expected {DEFAULT_METHOD}")
    if inputs.count("-") > 1:
        raise ValueError("only one of the files can come from standard input")
    if outputs.count("-") + args.json > 1:
        raise ValueError("only one of --out -, --workers - and --json can print")
    check_outputs(
        inputs=inputs,
        tables=outputs,
        pictures=[args.plot],
        others=[args.save],
        overwrite=args.force,
    )


def _write(outcome: _Outcome, args: argparse.Namespace) -> None:
    from bayescrowd.cli.progress import stage
    from bayescrowd.io.writing import csv_text, write_picture, write_table

    for path, table in ((args.out, outcome.tasks), (args.workers, outcome.workers)):
        if path == "-":
            print(csv_text(table, raw_cells=args.raw_cells), end="")
        elif path is not None:
            with stage(f"writing {path}"):
                write_table(table, path, overwrite=args.force, raw_cells=args.raw_cells)
    if args.plot is not None:
        from matplotlib.figure import Figure

        from bayescrowd.plots.overview import aggregation_overview

        with stage(f"drawing {args.plot}"), without_truth_warnings():
            figure = Figure(figsize=(15, 4.8), dpi=110, layout="constrained")
            aggregation_overview(outcome.estimator, truth=outcome.known.scored, fig=figure)
            write_picture(figure, args.plot, overwrite=args.force)
    if args.save is not None:
        outcome.estimator.save(args.save, overwrite=args.force)


def _document(outcome: _Outcome) -> dict[str, Any]:
    """Everything that was found, for machines."""
    ann, estimator, known = outcome.annotations, outcome.estimator, outcome.known
    dependence = getattr(estimator, "dependence_", None)
    return {
        "bayescrowd": __version__,
        "method": outcome.method,
        "input": {
            "source": outcome.source,
            "n_labels": ann.n_labels,
            "n_tasks": ann.n_tasks,
            "n_workers": ann.n_workers,
            "n_classes": ann.n_classes,
            "n_dropped": ann.n_dropped,
            "n_gold": known.n_used,
            "gold": None if known.gold is None else known.gold.counts(),
            "truth": None if known.truth is None else known.truth.counts(),
        },
        "fit": {
            "converged": bool(estimator.converged_),
            "n_iter": estimator.n_iter_,
            "log_likelihood": estimator.log_likelihood_,
            "n_ties": estimator.n_ties_,
            "seconds": outcome.seconds,
            "why": getattr(estimator, "why_", None),
            "prediction_strength": getattr(estimator, "prediction_strength_", None),
        },
        "agreement": agreement_document(outcome.agreement),
        "effective_votes": None if dependence is None else votes_document(dependence),
        "scores": None if outcome.scores is None else outcome.scores.document(),
        "classes": _records(estimator.priors_.rename_axis("class").reset_index()),
        "tasks": _records(outcome.tasks),
        "workers": _records(outcome.workers),
    }


def _records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    return table.to_dict("records")


def _summary(outcome: _Outcome, args: argparse.Namespace) -> str:
    paragraphs = [_input_lines(outcome), _fit_lines(outcome)]
    if outcome.scores is not None:
        paragraphs.append(outcome.scores.lines(args.truth, outcome.known.n_unscored))
    paragraphs.append(worker_lines(outcome.workers))
    if args.out is None:
        paragraphs.append(first_tasks(outcome.tasks))
    written = [
        f"{path}: {quantity(len(table), noun)} written"
        for path, table, noun in (
            (args.out, outcome.tasks, "task"),
            (args.workers, outcome.workers, "worker"),
        )
        if path not in (None, "-")
    ]
    if args.plot is not None:
        written.append(f"{args.plot}: picture written")
    if args.save is not None:
        written.append(f"{args.save}: fit written; --fit {args.save} labels new tasks with it")
    if written:
        paragraphs.append("\n".join(written))
    return "\n\n".join(paragraphs)


def _input_lines(outcome: _Outcome) -> str:
    ann = outcome.annotations
    counts = (
        f"{quantity(ann.n_labels, 'label')} of {quantity(ann.n_tasks, 'task')} by "
        f"{quantity(ann.n_workers, 'worker')}, {quantity(ann.n_classes, 'class', 'classes')}"
    )
    lines = [f"{outcome.source}: {counts}"]
    if ann.n_dropped:
        lines.append(f"  {quantity(ann.n_dropped, 'row')} without a label left out")
    if empty := int((ann.labels_per_task == 0).sum()):
        lines.append(f"  {quantity(empty, 'task')} without any label")
    lines.append(f"  {agreement_line(outcome.agreement)}")
    return "\n".join(lines)


def _fit_lines(outcome: _Outcome) -> str:
    estimator, tasks = outcome.estimator, outcome.tasks
    course = ""
    if estimator.n_iter_:
        state = "converged" if estimator.converged_ else "NOT converged"
        course = f"{state} after {quantity(estimator.n_iter_, 'iteration')}, "
    fit = f"log-likelihood {estimator.log_likelihood_:,.1f} nats, {outcome.seconds:.2f} s"
    lines = [f"{outcome.method}: {course}{fit}"]
    if n_gold := outcome.known.n_used:
        lines.append(f"  {quantity(n_gold, 'task')} held to the known label (gold)")
    if estimator.n_ties_:
        lines.append(f"  {quantity(estimator.n_ties_, 'tie')} broken by the seed")
    if why := getattr(estimator, "why_", None):
        lines += textwrap.wrap(why, 96, initial_indent="  ", subsequent_indent="  ")
    if (dependence := getattr(estimator, "dependence_", None)) is not None:
        lines.append(f"  {votes_line(dependence)}")
    sure = int((tasks["probability"] >= 0.95).sum())
    lines.append(f"  {sure:,} of {quantity(len(tasks), 'label')} at least 95% sure")
    shares = tasks["label"].value_counts(normalize=True)
    listed = [f"{name}: {shares.get(name, 0.0):.1%}" for name in estimator.classes_[:8]]
    more = f", ... ({len(estimator.classes_):,} classes)" if len(estimator.classes_) > 8 else ""
    lines.append(f"  shares of the labels: {', '.join(listed)}{more}")
    return "\n".join(lines)
