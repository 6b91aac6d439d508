"""`bayescrowd aggregate`: true labels and worker quality from a file of judgements."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from bayescrowd._version import __version__
from bayescrowd.cli.arguments import (
    DEFAULT_METHOD,
    METHODS,
    Commands,
    add_reading_options,
    check_outputs,
    comma_separated,
    make_estimator,
    method_name,
    natural_number,
    positive_number,
    read_labels,
)
from bayescrowd.cli.text import align
from bayescrowd.data.text import quantity, shorten

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.aggregation.protocol import Aggregator
    from bayescrowd.data.annotations import Annotations
    from bayescrowd.io.reading import KnownLabels
    from bayescrowd.metrics import Scores

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
  gzipped; or an export of Mechanical Turk, Toloka or Label Studio. Columns are found by their usual
  names (task, item, ...; worker, annotator, ...; label, answer, ...) or named with --task, --worker
  and --label. Rows without a label are left out and counted.
  Panels of judges may come as a wide table, with a row per task and a column of labels per judge,
  or as one JSON object {{judge: {{task: label}}}}. --format wide takes every column but the task's
  (and one named truth or gold) for a judge; without it, a table is wide if it has no column for the
  worker or the label and its other columns hold the same few labels.
  Known labels of tasks without judgements are left out and counted as well. A task whose true class
  nobody chose counts as wrong (--truth) or is not used (--gold), unless --classes names the class.

output:
  A summary is printed. The results go where --out and --workers say, in the format of the
  extension: .csv, .tsv, .jsonl (each also with .gz) or .parquet. '--out -' prints the table as
  CSV and sends the summary to standard error; --json prints one JSON document with both tables and
  no summary. In CSV and TSV, text that a spreadsheet would run as a formula has an apostrophe in
  front ('=x for =x), which is taken off on reading; --raw-cells does neither.

  per task:    task, label, probability (of that label), entropy (of the task's class
               probabilities, in nats), n_votes (judgements of the task)
  per worker:  worker, accuracy (estimated share of right labels), information (mutual information
               of label and truth, in nats), n_labels, flag (spammer, adversary or empty)

exit codes:
  0 done, 2 bad input or usage, 1 a fault of ours

examples:
  bayescrowd aggregate labels.csv
  bayescrowd aggregate labels.csv --out aggregated.csv --workers workers.csv
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
    parser.add_argument(
        "labels", metavar="LABELS", help="file of judgements; - reads standard input"
    )
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
        help="true labels, used for scoring only: accuracy, macro-F1, Brier score and expected "
        "calibration error are printed; tasks that are also in --gold are not scored",
    )
    for name in ("gold", "truth"):
        known.add_argument(
            f"--{name}-columns",
            type=_two_names,
            metavar="TASK,LABEL",
            default=(None, None),
            help=f"columns of the {name} file, if their names are not recognised",
        )
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
    gold: KnownLabels | None
    truth: KnownLabels | None
    scores: Scores | None
    n_unscored: int
    """Number of tasks in the truth that are not scored, since the fit was given their label."""
    tasks: pd.DataFrame
    workers: pd.DataFrame


def _run(args: argparse.Namespace) -> int:
    _check_files(args)
    estimator = make_estimator(args.method, seed=args.seed, n_init=args.n_init, n_iter=args.n_iter)
    outcome = _aggregate(args, estimator)
    _write_tables(outcome, args)
    if args.json:
        print(json.dumps(_document(outcome), indent=2, ensure_ascii=False, default=str))
    else:
        summary = sys.stderr if "-" in (args.out, args.workers) else sys.stdout
        print(_summary(outcome, args), file=summary)
    return 0


def _aggregate(args: argparse.Namespace, estimator: Aggregator) -> _Outcome:
    from bayescrowd.cli.progress import iterations, stage
    from bayescrowd.io.reading import read_known_labels, read_predictions
    from bayescrowd.metrics import score_table

    with stage(f"reading {args.labels}"):
        annotations = read_labels(args)
        path = args.predictions
        more = {"predictions": read_predictions(path, annotations)} if path else {}
        known: dict[str, KnownLabels | None] = {"gold": None, "truth": None}
        for name in known:
            if path := getattr(args, name):
                task, label = getattr(args, f"{name}_columns")
                known[name] = read_known_labels(
                    path,
                    annotations,
                    task=task,
                    label=label,
                    name=name,
                    raw_cells=args.raw_cells,
                )
    gold, truth = (None if found is None else found.labels for found in known.values())
    n_unscored = 0
    if gold is not None and truth is not None:
        n_unscored = int(truth.index.isin(gold.index).sum())
        truth = truth[~truth.index.isin(gold.index)]
        if truth.empty:
            raise ValueError(
                f"{args.truth}: every task in it is also in the gold file; nothing is left to score"
            )
    start = time.perf_counter()
    with iterations(args.method):
        estimator.fit(annotations, gold, **more)
    seconds = time.perf_counter() - start
    return _Outcome(
        source="standard input" if args.labels == "-" else args.labels,
        method=args.method,
        annotations=annotations,
        estimator=estimator,
        seconds=seconds,
        gold=known["gold"],
        truth=known["truth"],
        scores=None if truth is None else score_table(estimator.probas_, truth),
        n_unscored=n_unscored,
        tasks=_task_table(estimator, annotations, every_class=args.probabilities),
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
    check_outputs(inputs=inputs, tables=outputs, overwrite=args.force)


def _task_table(estimator: Aggregator, ann: Annotations, *, every_class: bool) -> pd.DataFrame:
    import numpy as np
    import pandas as pd
    from scipy.special import entr

    probas = estimator.probas_.to_numpy()
    table = pd.DataFrame(
        {
            "task": estimator.probas_.index,
            "label": estimator.labels_.array,
            "probability": probas.max(axis=1),
            "entropy": entr(probas).sum(axis=1),
            "n_votes": np.pad(ann.labels_per_task, (0, len(probas) - ann.n_tasks)),  # new ones last
        }
    )
    if every_class:
        columns = {f"probability:{c}": probas[:, k] for k, c in enumerate(estimator.classes_)}
        table = table.assign(**columns)
    return table


def _write_tables(outcome: _Outcome, args: argparse.Namespace) -> None:
    from bayescrowd.cli.progress import stage
    from bayescrowd.io.writing import csv_text, write_table

    for path, table in ((args.out, outcome.tasks), (args.workers, outcome.workers)):
        if path == "-":
            print(csv_text(table, raw_cells=args.raw_cells), end="")
        elif path is not None:
            with stage(f"writing {path}"):
                write_table(table, path, overwrite=args.force, raw_cells=args.raw_cells)


def _document(outcome: _Outcome) -> dict[str, Any]:
    """Everything that was found, for machines."""
    ann, estimator = outcome.annotations, outcome.estimator
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
            "n_gold": _n_used(outcome.gold),
            "gold": None if outcome.gold is None else outcome.gold.counts(),
            "truth": None if outcome.truth is None else outcome.truth.counts(),
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
        "scores": None if outcome.scores is None else outcome.scores._asdict(),
        "classes": _records(estimator.priors_.rename_axis("class").reset_index()),
        "tasks": _records(outcome.tasks),
        "workers": _records(outcome.workers),
    }


def _n_used(gold: KnownLabels | None) -> int:
    return 0 if gold is None else len(gold.labels) - gold.n_unchosen


def _records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    return table.to_dict("records")


def _summary(outcome: _Outcome, args: argparse.Namespace) -> str:
    paragraphs = [_input_lines(outcome), _fit_lines(outcome)]
    if outcome.scores is not None:
        paragraphs.append(_score_lines(outcome, args.truth))
    paragraphs.append(_worker_lines(outcome.workers))
    if args.out is None:
        paragraphs.append(_first_tasks(outcome.tasks))
    written = [
        f"{path}: {quantity(len(table), noun)} written"
        for path, table, noun in (
            (args.out, outcome.tasks, "task"),
            (args.workers, outcome.workers, "worker"),
        )
        if path not in (None, "-")
    ]
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
    return "\n".join(lines)


def _fit_lines(outcome: _Outcome) -> str:
    estimator, tasks = outcome.estimator, outcome.tasks
    course = ""
    if estimator.n_iter_:
        state = "converged" if estimator.converged_ else "NOT converged"
        course = f"{state} after {quantity(estimator.n_iter_, 'iteration')}, "
    fit = f"log-likelihood {estimator.log_likelihood_:,.1f} nats, {outcome.seconds:.2f} s"
    lines = [f"{outcome.method}: {course}{fit}"]
    if n_gold := _n_used(outcome.gold):
        lines.append(f"  {quantity(n_gold, 'task')} held to the known label (gold)")
    if estimator.n_ties_:
        lines.append(f"  {quantity(estimator.n_ties_, 'tie')} broken by the seed")
    if why := getattr(estimator, "why_", None):
        lines += textwrap.wrap(why, 96, initial_indent="  ", subsequent_indent="  ")
    sure = int((tasks["probability"] >= 0.95).sum())
    lines.append(f"  {sure:,} of {quantity(len(tasks), 'label')} at least 95% sure")
    shares = tasks["label"].value_counts(normalize=True)
    listed = [f"{name}: {shares.get(name, 0.0):.1%}" for name in estimator.classes_[:8]]
    more = f", ... ({len(estimator.classes_):,} classes)" if len(estimator.classes_) > 8 else ""
    lines.append(f"  shares of the labels: {', '.join(listed)}{more}")
    return "\n".join(lines)


def _score_lines(outcome: _Outcome, truth: str) -> str:
    scores = outcome.scores
    assert scores is not None  # asked for only with a truth
    left_out = f"; {outcome.n_unscored:,} more are gold" if outcome.n_unscored else ""
    rows = [
        ("accuracy", scores.accuracy),
        ("macro-F1", scores.macro_f1),
        ("Brier score", scores.brier),
        ("expected calibration error", scores.ece),
    ]
    lines = [f"scored on {quantity(scores.n, 'task')} of {truth}{left_out}"]
    return "\n".join([*lines, *(f"  {name:<26}  {value:.4f}" for name, value in rows)])


def _worker_lines(workers: pd.DataFrame) -> str:
    """The best and the worst workers, and how many are flagged."""
    ranked = workers.sort_values("accuracy", ascending=False, kind="stable")
    header = ["worker", "accuracy", "information", "labels", "flag"]
    if "lower" in workers:
        header.insert(2, "90% interval")
    rows = [header]
    if len(ranked) > 6:
        best, worst = _worker_rows(ranked.head(3)), _worker_rows(ranked.tail(3))
        rows += [*best, ["..."] + [""] * (len(header) - 1), *worst]
    else:
        rows += _worker_rows(ranked)
    flags = workers["flag"].value_counts()
    flagged = [
        quantity(int(flags.get(flag, 0)), flag, plural)
        for flag, plural in (("spammer", None), ("adversary", "adversaries"))
    ]
    return (
        "workers by estimated accuracy (information in nats)\n"
        f"{align(rows, left=(0, len(header) - 1))}\n"
        f"  flagged: {' and '.join(flagged)} among {quantity(len(workers), 'worker')}"
    )


def _worker_rows(workers: pd.DataFrame) -> list[list[str]]:
    return [
        [
            shorten(row.worker, 32),
            f"{row.accuracy:.3f}",
            *([f"{row.lower:.3f} to {row.upper:.3f}"] if "lower" in workers else []),
            f"{row.information:.3f}",
            f"{row.n_labels:,}",
            str(row.flag),
        ]
        for row in workers.itertuples(index=False)
    ]


def _first_tasks(tasks: pd.DataFrame) -> str:
    rows = [["task", "label", "probability", "entropy", "votes"]]
    for row in tasks.head(5).itertuples(index=False):
        rows.append(
            [
                shorten(row.task, 32),
                shorten(row.label, 32),
                f"{row.probability:.4f}",
                f"{row.entropy:.4f}",
                f"{row.n_votes:,}",
            ]
        )
    return (
        f"first tasks (entropy in nats; --out FILE writes all {len(tasks):,})\n"
        f"{align(rows, left=(0, 1))}"
    )


def _two_names(text: str) -> tuple[str, str]:
    names = comma_separated(text)
    if len(names) != 2:
        raise argparse.ArgumentTypeError(f"{text!r}: expected the two names TASK,LABEL")
    return names[0], names[1]
